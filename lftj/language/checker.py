"""The checker: from an AST to a `CheckedProgram`, or to all that is wrong with it.

    names.py        what is declared, known and derived; unknown names, arities, unsupported constructs
    desugar.py      negation pushed inwards, disjunction distributed; aggregates and lookups become atoms
    safety.py       every variable gets its values from somewhere; single uses
    cycles.py       dependencies, and negation through itself
    stratify.py     the order of evaluation
    infer.py        types, bottom up along the strata
    null.py         which variables and columns may be null
    min_max.py      minimum and maximum in recursion
    acyclic.py      recursion that is computed key by key
    redundant.py    atoms and clauses that change nothing
    recursion.py    what recursive rules cannot hold
    to_clauses.py   ranges of constants; clauses, if nothing was found

Each pass works on what the earlier ones left intact, so that one mistake is one finding: a rule with an unsupported
part is checked for names only, an unknown relation has no types to conflict with. All findings are raised together in
one `ProgramError`, in source order.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from lftj.language import acyclic, ast
from lftj.language.clause import CheckedProgram, Clause
from lftj.language.cycles import Dependencies, refuse_cycles
from lftj.language.desugar import Desugaring
from lftj.language.diagnostics import Findings, too_deep
from lftj.language.directives import check_directives
from lftj.language.infer import Inference, TypedClause
from lftj.language.internal_relations import InternalRelations
from lftj.language.min_max import recursive_heads, refuse_mixed
from lftj.language.names import KnownRelation, Names, check_uses, named_types, resolve
from lftj.language.null import admit_null, over_known, refuse_codes_of_null, schema_of
from lftj.language.parse import parse_query
from lftj.language.recursion import refuse_functional, refuse_texts, refuse_untyped, warn_of_products
from lftj.language.redundant import without_redundant
from lftj.language.safety import check_single_use
from lftj.language.stratify import components
from lftj.language.text import item_text
from lftj.language.to_clauses import check_constants, check_parameters, fact_row, lower
from lftj.language.visitors import Node, is_scope, literals_of, nodes, open_variables, terms_of
from lftj.values.schema import Column, Schema

QUERY = "query"


def check(
    program: ast.Program,
    *,
    known: Mapping[str, Schema] | None = None,
    clauses: Sequence[Clause] = (),
    types: Mapping[str, str] | None = None,
    last: int | None = None,
) -> CheckedProgram:
    """Check a program, on top of the relations, the clauses and the names of types a database already has.

    Raises ProgramError with every finding, in source order. The rule numbers continue those of `clauses`, or `last`;
    `strata` covers both.
    """
    number = max((clause.rule for clause in clauses), default=0) if last is None else last
    try:
        return _check(program, known or {}, types or {}, clauses, number)
    except RecursionError:
        raise too_deep(program.source) from None


def check_query(text: str, known: Mapping[str, Schema], *, parameters: bool = False) -> Clause:
    """The clause of a query such as `tri(1, y, z), y < z` over known relations.

    Its head is "query"; the head's arguments are the named variables of the text in order of first appearance.
    `parameters`: it may hold some, as in `tri($x, y, z)`. Raises ProgramError.
    """
    try:
        return _check_query(text, known, parameters)
    except RecursionError:
        raise too_deep("<query>") from None


_AS_RULE = {
    "disjunction": "write a rule with one clause per alternative, and query its head",
    "negated": "write a rule for what is negated, and negate its head",
    "aggregate": "write a rule with the aggregate, and query its head",
}


def _of_rules_only(node: Node) -> str:
    """The name of what a query cannot hold, since it takes more than one clause; "" of anything else."""
    if isinstance(node, ast.Aggregate):
        return f"aggregate `{node.op}`"
    if isinstance(node, ast.Disjunction):
        return "disjunction (`;`)" if len(node.alternatives) > 1 else "negated conjunction"
    return ""


def _check(
    program: ast.Program, known: Mapping[str, Schema], types: Mapping[str, str], before: Sequence[Clause], number: int
) -> CheckedProgram:
    findings = Findings()
    names = resolve(program, known, types, findings)
    directives = check_directives(program, names, findings)
    rules = [item for item in program.items if isinstance(item, ast.Rule)]
    derived = {clause.head for clause in before} | {head.name for rule in rules for head in rule.heads}
    parts = InternalRelations(names, known, derived)
    typed: list[TypedClause] = []
    dependencies = Dependencies()
    dependencies.known(before)
    best = recursive_heads(rules, before)
    for rule in rules:
        clauses = _rule(rule, parts, findings, best=best)
        dependencies.rule(rule, clauses)
        typed += clauses
    found = components(dependencies.reads)
    along = _recursion(found, typed, names, dependencies, before, findings)
    findings.raise_if_failed()

    facts: dict[str, dict[tuple[Any, ...], None]] = {}
    made: list[Clause] = []
    previous: ast.Rule | None = None
    options: dict[int, tuple[tuple[str, str], ...]] = {}
    text = ""
    for clause in typed:
        # The rule may be a fact whose parts are not: what stands in the braces of `p(count : { 1 = 2 }).` is a body.
        row = None if any(clause.body) or clause.best else fact_row(clause)
        if row is not None:
            facts.setdefault(clause.head.name, {})[row] = None
            continue
        if clause.rule is not previous:
            previous, number, text = clause.rule, number + 1, item_text(clause.rule)
            options[number] = clause.rule.options
        made.append(lower(clause, text, number))
    schemas = _schemas(names, rules, known)
    warn_of_products([component for component in found if component not in along], made, findings)
    needed = without_redundant(made, schemas)
    gone = {clause.head for clause in made} - {clause.head for clause in needed}
    made, schemas = needed, {name: schema for name, schema in schemas.items() if name not in gone}
    if along:
        split, rows = acyclic.split(made, along, before, parts, findings)
        findings.raise_if_failed()
        gone = {clause.head for clause in made} - {clause.head for clause in split}
        made, schemas = split, {name: schema for name, schema in schemas.items() if name not in gone} | rows
        reads: dict[str, dict[str, None]] = {}
        for known_clause in (*before, *made):
            reads.setdefault(known_clause.head, {}).update(known_clause.reads)
        found = components(reads)
    without: dict[str, Clause] = {}
    made = [over_known(clause, schemas.__getitem__, without) for clause in made]
    schemas |= {name: schema_of(clause) for name, clause in without.items() if name not in known}
    found = _with_known(found, without)
    made = [*(clause for name, clause in without.items() if name not in known), *made]
    heads = {clause.head for clause in (*before, *made)}
    return CheckedProgram(
        schemas=schemas,
        clauses=tuple(made),
        facts={name: list(rows) for name, rows in facts.items()},
        strata=tuple(component for component in found if component[0] in heads),
        directives=directives,
        warnings=findings.in_order(),
        program=program,
        options={rule: given for rule, given in options.items() if given},
        types=named_types(program, names),
    )


def _check_query(text: str, known: Mapping[str, Schema], parameters: bool) -> Clause:
    body = parse_query(text, parameters=parameters)
    findings = Findings()
    names = resolve(ast.Program(()), known, {}, findings)
    variables: dict[str, ast.Variable] = {}
    for variable in open_variables(body):
        variables.setdefault(variable.name, variable)
    head = ast.Atom(QUERY, tuple(variables.values()))
    rule = ast.Rule((head,), body, body[0].span)
    for node in nodes(body):
        if feature := _of_rules_only(node):
            findings.unsupported(f"{feature} in a query", node.span, remedy=_AS_RULE[feature.split()[0]])
    check_uses(ast.Rule((), body), names, findings)
    if findings.failed and any(is_scope(node) for node in nodes(body)):  # what follows is for one conjunction
        findings.raise_if_failed()
    names.relations[QUERY] = KnownRelation(QUERY, [], [None] * len(head.args), ast.NOWHERE, "derived")
    typed = _rule(rule, InternalRelations(names, known), findings, query=True)
    Inference(names, findings).component(typed)
    admit_null(typed, names, findings)
    for clause in typed:
        check_constants(clause, findings)
        check_parameters(clause, findings)
        refuse_codes_of_null(clause, names, findings)
    findings.raise_if_failed()
    return over_known(lower(typed[0], text, 0), known.__getitem__, {}, query=True)


def _rule(
    rule: ast.Rule, parts: InternalRelations, findings: Findings, *, query: bool = False, best: Container[str] = ()
) -> list[TypedClause]:
    """The clauses of a rule, checked for names and groundness; none if it holds something unsupported.

    `best`: the heads whose extremes become rules of candidates.
    """
    if not query:
        check_uses(rule, parts.names, findings)
    if any(isinstance(node, ast.Unsupported) for node in (*literals_of(rule.body), *terms_of(rule))):
        return []
    desugaring = Desugaring(rule, parts, findings)
    clauses = desugaring.clauses(query=query, best=best)
    if not query:
        check_single_use(rule, desugaring.unbound, findings)
    return [TypedClause(p.rule, p.head, p.body, p.fold, p.best, p.joined, desugaring.written) for p in clauses]


def _recursion(
    found: list[tuple[str, ...]],
    typed: list[TypedClause],
    names: Names,
    dependencies: Dependencies,
    before: Sequence[Clause],
    findings: Findings,
) -> list[tuple[str, ...]]:
    """Infer the types, and refuse the recursion that cannot be evaluated; the components that go key by key."""

    def functional(name: str) -> bool:
        return name in names.relations and names.relations[name].functional

    best = {clause.head for clause in before if clause.best} | {clause.head.name for clause in typed if clause.best}
    along = [
        component
        for component in found
        if (len(component) > 1 or component[0] in dependencies.reads[component[0]])
        and best.isdisjoint(component)
        and acyclic.along_data(component, dependencies, functional)
    ]
    recursive = refuse_cycles([c for c in found if c not in along], dependencies, functional, findings)
    places = {clause.head: clause.span for clause in reversed(before)}
    places |= {clause.head.name: clause.head.span for clause in reversed(typed)}
    plain = refuse_mixed(recursive, dependencies.reads, typed, before, findings)
    refuse_functional(plain, dependencies.reads, functional, places, findings)
    _infer(found, typed, names, findings)
    if not findings.failed:  # what is missing there is missing here
        refuse_untyped([*recursive, *along], names, findings)
    refuse_texts(recursive, typed, before, findings)
    return along


def _infer(found: list[tuple[str, ...]], typed: list[TypedClause], names: Names, findings: Findings) -> None:
    by_head: dict[str, list[TypedClause]] = {}
    for clause in typed:
        by_head.setdefault(clause.head.name, []).append(clause)
    inference = Inference(names, findings)
    for component in found:
        clauses = [clause for name in component for clause in by_head.get(name, ())]
        inference.component(clauses)
        admit_null(clauses, names, findings)
    for clause in typed:
        check_constants(clause, findings)


def _with_known(found: list[tuple[str, ...]], without: Mapping[str, Clause]) -> list[tuple[str, ...]]:
    """The components with the relations without null (null.py), each right behind the relation whose rows it has."""
    for name, clause in reversed(list(without.items())):
        source = clause.atoms[0].predicate
        place = next((at + 1 for at, component in enumerate(found) if source in component), 0)
        found = [*found[:place], (name,), *found[place:]]
    return found


def _schemas(names: Names, rules: list[ast.Rule], known: Mapping[str, Schema]) -> dict[str, Schema]:
    """The schemas of all relations; columns that no declaration names have the names of the first rule's variables."""
    first: dict[str, ast.Head] = {}
    for rule in sorted(rules, key=lambda rule: not rule.body):  # facts, which have no variables, last
        for head in rule.heads:
            first.setdefault(head.name, head)
    schemas = {}
    for name, relation in names.relations.items():
        if relation.origin == "known":
            schemas[name] = known[name]
            continue
        derived = relation.origin == "derived"  # else the columns are given
        columns = _named_by(first[name].args) if derived else relation.columns
        types = [type_ or "number" for type_ in relation.types]
        schemas[name] = Schema(
            name,
            tuple(Column(c, t) for c, t in zip(columns, types, strict=True)),
            functional=relation.functional,
            declared=not derived,
            bag=relation.bag,
            key=relation.key,
            view=relation.view,
            constraint=relation.constraint,
            mark=relation.mark,
        )
    return schemas


def _named_by(args: Sequence[ast.Term]) -> list[str]:
    """A name for each argument of a head: a variable's own at its first place, else `c` and the position."""
    variables = [arg.name if isinstance(arg, ast.Variable) else "" for arg in args]
    names: list[str] = []
    for at, name in enumerate(variables):
        if not name or name in variables[:at]:
            name = f"c{at}"
            while name in variables or name in names:
                name += "_"
        names.append(name)
    return names
