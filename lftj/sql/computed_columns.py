"""Few ways to derive a row: what splits into cases has a head of its own where a rule for each way were too many.

A query is a rule for each way to choose a case of each of its values and an alternative of each of its conditions:
three columns that may be null, each with 1 added, are eight rules, and ten are 1,024. Heads for few values each are
eight rules, too, and one that reads them all:

    select a + 1, ..., f + 1 from t      @v.columns1(id, a + 1, b + 1, c + 1) :- t(id, a, ...), !is_null(a), ...
    with the key `id`                    @v.columns1(id, a + 1, b + 1, null) :- t(id, a, ...), ..., is_null(c).  ...
                                         v(x, ...) :- t(id, _, ...), @v.columns1(id, x, y, z), @v.columns2(id, ...).

Such a head has one row for each key of the rows that its values are computed of, or for what they are computed of
where there is no key, as cases exclude one another. It reads the whole body, so that nothing is computed for rows that
the query does not have. The head of a condition has the rows that meet it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lftj.language import ast
from lftj.language.visitors import Node, lets_null_match, nodes, open_variables
from lftj.sql.branches import Branch, QueryBody, RowAtom
from lftj.sql.cases import FEW, may_have_no_value
from lftj.sql.heads import or_null
from lftj.sql.query_scope import QueryScope, null_of
from lftj.sql.scope import Case, Conjunction
from lftj.sql.view import OutputColumn, Rows

# Of values that have a head, those of up to so many ways share one; each of these is a rule for each way to meet the
# conditions of the body, which have heads of their own where there are more than so many.
TOGETHER, MET = 9, 2


def with_few_ways(scope: QueryScope, values: Sequence[list[Case]], beside: Iterable[Node] = ()) -> list[list[Case]]:
    """The cases of values in a row of the body; each with one case where all together would split into many ways.

    The body gets the atoms of the heads that are made for that, and loses the alternatives of its conditions.
    `beside`: what else names variables of the body.
    """
    if _recursive(scope) or not scope.body.splits(scope.heads.nullable, values, FEW):
        return list(values)
    _conditions(scope, values, beside, whole=True)
    return _apart(scope, scope.body.copy(), values)


def computed_apart(scope: QueryScope, values: list[list[Case]]) -> list[list[Case]]:
    """The cases of values in an expression, each with one case that a head has.

    As they are, if they may have no value: what is around the expression, or is still to come, may leave such rows out.
    For the same reason the heads read no condition of the body that may have none.
    """
    if _recursive(scope):
        return values
    _conditions(scope, values, (), whole=False)
    body = QueryBody(
        scope.body.atoms[:], [parts for parts in scope.body.conditions if _total(part for one in parts for part in one)]
    )
    total = [_total(_parts_of([cases])) for cases in values]
    made = iter(_apart(scope, body, [cases for cases, has_value in zip(values, total, strict=True) if has_value]))
    return [next(made) if has_value else cases for cases, has_value in zip(values, total, strict=True)]


def column_of(scope: QueryScope, cases: list[Case]) -> list[Case]:
    """The one case of a value that is computed in all rows of the body, which a head has; its cases, if none can."""
    return cases if _recursive(scope) else _apart(scope, scope.body.copy(), [cases])[0]


def _total(parts: Iterable[Node]) -> bool:
    """Whether all terms have a value, whatever the row."""
    return not any(map(may_have_no_value, nodes(parts)))


def _conditions(scope: QueryScope, values: Sequence[Sequence[Case]], beside: Iterable[Node], *, whole: bool) -> None:
    """Let heads have conditions of several alternatives, where there are many ways to meet them.

    Those that may have no value come last, so that their heads read the others; not `whole`: none, as more conditions
    may come.
    """
    body = scope.body
    if not body.splits(scope.heads.nullable, (), MET):
        return
    seen = [*values, *scope.placeholders.values(), *(c for table in scope.sources for c in table.columns.values())]
    split = [at for at, alternatives in enumerate(body.conditions) if len(alternatives) > 1]
    total = {at: _total(part for literals in body.conditions[at] for part in literals) for at in split}
    for at in sorted(split, key=lambda at: not total[at]):
        if total[at] or whole:
            _condition(scope, at, (*beside, *_parts_of(seen)), whole=whole)


def _apart(scope: QueryScope, body: QueryBody, values: Sequence[list[Case]]) -> list[list[Case]]:
    """The one case of each value in rows of a body that heads have, which those of few ways share."""
    nullable = scope.heads.nullable
    left = [*dict.fromkeys(tuple(cases) for cases in values if len(cases) > 1)]
    made: dict[tuple[Case, ...], list[Case]] = {}
    while left:
        together = 1
        while together < len(left) and not body.splits(nullable, left[: together + 1], TOGETHER):
            together += 1
        made |= zip(left[:together], _columns(scope, body, left[:together]), strict=True)
        left = left[together:]
    return [made.get(tuple(cases), list(cases)) for cases in values]


def _recursive(scope: QueryScope) -> bool:
    """Whether the body reads a head that is not whole yet, which no other head than its own is to read."""
    return any(row.rows.name in scope.heads.recursive for row in scope.body.atoms)


def _condition(scope: QueryScope, at: int, beside: Sequence[Node], *, whole: bool) -> None:
    """Put an atom in the place of a condition, if nothing else names what only this one binds.

    Its head reads the other conditions of one alternative; not `whole`: those that have a value in any row.
    """
    body = scope.body
    alternatives = body.conditions[at]
    others = [parts for place, parts in enumerate(body.conditions) if place != at]
    given = _given(scope, QueryBody(body.atoms, others), [(literals, literals) for literals in alternatives])
    if given is None:
        return
    variables = [ast.Variable(column.name) for column in given]
    rows = {variable.name for row in body.atoms for variable in row.variables}
    rows |= {parameter.variable.name for parameter in scope.parameters.values()}
    own = _named(part for literals in alternatives for part in literals) - rows
    if own & _named((*beside, *(part for parts in others for literals in parts for part in literals))):
        return
    name = scope.heads.name("where")
    single = QueryBody(body.atoms, [parts for parts in others if len(parts) == 1 and (whole or _total(parts[0]))])
    for branch in single.branches(scope.heads.nullable, alternatives):
        args = [branch.term(variable) for variable in variables]
        scope.heads.rule(name, args, scope.closed(branch, args).body)
    _add(scope, at, Rows.of(scope.heads.sure(name, given), given, bag=False), variables)


def _columns(scope: QueryScope, body: QueryBody, values: Sequence[tuple[Case, ...]]) -> list[list[Case]]:
    """The one case of each of some values in rows of a body, which a head has.

    Their cases themselves, if they name what no atom of the body binds.
    """
    parts = [(case.literals, case.parts) for cases in values for case in cases]
    given = _given(scope, scope.body, parts)
    if given is None:
        return [list(cases) for cases in values]
    variables = [ast.Variable(column.name) for column in given]
    name = scope.heads.name("columns")
    for branch, chosen in _needed(body, _named(_parts_of(values))).choices(scope.heads.nullable, values):
        args = [branch.term(variable) for variable in variables]
        args += [null_of(case) if case.term is None else branch.term(case.term) for case in chosen]
        scope.heads.rule(name, args, scope.closed(branch, args).body)
    columns = list(given)
    for cases in values:
        nullable = any(case.nullable for case in cases)
        type_ = next((case.type for case in cases if case.type), "number")
        columns.append(OutputColumn(scope.heads.variable("column", nullable).name, type_, nullable))
    rows = Rows.of(scope.heads.sure(name, columns), tuple(columns), bag=False, key=tuple(range(len(given))))
    names = [ast.Variable(column.name) for column in columns]
    _add(scope, len(scope.body.conditions), rows, names, leaves_none_out=True)
    return [[Case((), ast.Variable(c.name), c.type, c.nullable)] for c in columns[len(given) :]]


def _add(
    scope: QueryScope, at: int, rows: Rows, variables: Sequence[ast.Variable], *, leaves_none_out: bool = False
) -> None:
    """Add an atom to the body, and let null match null in it: the condition at `at`."""
    scope.body.atoms.append(RowAtom(rows, tuple(variables), leaves_none_out=leaves_none_out))
    scope.body.conditions[at : at + 1] = [[tuple(or_null(scope.heads, variables))]]


def _given(
    scope: QueryScope, body: QueryBody, alternatives: Iterable[tuple[Conjunction, Sequence[Node]]]
) -> tuple[OutputColumn, ...] | None:
    """The variables of a body's atoms and of the query around that decide over alternatives.

    Each of these has its literals, and all its parts: they and, of a case, its term. Those that the parts name, or the
    key of the row that these are of. None if they name others, which not the literals but other conditions bind.
    """
    known = {p.variable.name: OutputColumn(p.variable.name, p.type, p.nullable) for p in scope.parameters.values()}
    of_row: dict[str, RowAtom] = {}
    for row in body.atoms:
        for variable, column in zip(row.variables, row.rows.columns, strict=True):
            nullable = scope.heads.nullable.get(variable.name, column.nullable)
            known.setdefault(variable.name, OutputColumn(variable.name, column.type, nullable))
            of_row.setdefault(variable.name, row)
    elsewhere = _named(part for ways in body.conditions for literals in ways for part in literals)
    found: dict[str, None] = {}
    for literals, parts in alternatives:
        named = _named(parts)
        free = named - Branch((), literals, {}).bound(known)
        if free & elsewhere or free & {variable.name for variable in open_variables(parts)}:
            return None
        for name in sorted(named & known.keys()):
            found |= dict.fromkeys(_key_of(of_row[name], name) if name in of_row else [name])
    return tuple(known[name] for name in found)


def _needed(body: QueryBody, names: set[str]) -> QueryBody:
    """The body without atoms that leave no row out, and bind nothing that is named there or in a condition."""
    alternatives = [literals for parts in body.conditions for literals in parts]
    names = names | _named(part for literals in alternatives for part in literals if not lets_null_match(part))
    kept = [row for row in body.atoms if not (row.leaves_none_out and names.isdisjoint(v.name for v in row.variables))]
    bound = {v.name for row in kept for v in row.variables} | {row.copies.name for row in kept if row.copies}
    conditions = [
        [tuple(part for part in literals if not lets_null_match(part) or _named([part]) <= bound) for literals in parts]
        for parts in body.conditions
    ]
    return QueryBody(kept, conditions)


def _key_of(row: RowAtom, name: str) -> list[str]:
    """The variables that decide over one of a row: those of its key, or it alone if that is the whole row."""
    key = min(row.rows.keys, key=lambda positions: len(positions))
    return [row.variables[at].name for at in sorted(key)] if len(key) < len(row.variables) else [name]


def _parts_of(values: Iterable[Sequence[Case]]) -> Iterator[Node]:
    return (part for cases in values for case in cases for part in case.parts)


def _named(parts: Iterable[Node]) -> set[str]:
    return {node.name for node in nodes(parts) if isinstance(node, ast.Variable)}
