"""Extremes in recursion: functional predicates whose value is the least, or the greatest, of what their rules derive.

    dist[y] = min d : { source(y), d = 0 ; dist[x] = c, edge(x, y, w), d = c + w }.
      ->   dist(y, min d) :- source(y), d = 0.
           dist(y, min d) :- dist(x, c), edge(x, y, w), d = c + w.

Outside of recursion an aggregate is a relation of its own, which its braces have filled before it is read
(aggregates.py). In recursion there is no before: each alternative in the braces becomes a clause of the head itself,
with `best`, and what all clauses of the head derive under one key, those without an extreme too, are candidates for its
value.

Such a predicate has no value until the recursion is done. So whatever takes part in the recursion is one of them, and
all have the same notion of better: a relation that read a value in between might hold what no value that stands
derives.

Source: R. Ross, Y. Sagiv, *Monotonic aggregation in deductive databases*, PODS 1992; S. Greco, C. Zaniolo, C. Ganguly,
*Greedy by choice*, PODS 1992.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lftj.errors import Span
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.clause import INTERNAL, Clause, owner
from lftj.language.cycles import shown
from lftj.language.diagnostics import Findings
from lftj.language.infer import TypedClause
from lftj.language.stratify import components, cycle
from lftj.language.visitors import atoms_of


def extreme_of(head: ast.Head, rule: ast.Rule) -> ast.Aggregate | None:
    """The aggregate of a rule `dist[y] = min d : { ... }.`; None of any other head, and of keys that are computed."""
    if not isinstance(head, ast.Assignment) or rule.body:
        return None
    plain = all(isinstance(key, ast.Variable | ast.Constant) for key in head.keys)
    extreme = isinstance(head.value, ast.Aggregate) and bool(AGGREGATES[head.value.op].extreme)
    return head.value if plain and extreme and isinstance(head.value, ast.Aggregate) else None


def recursive_heads(rules: Sequence[ast.Rule], before: Iterable[Clause]) -> set[str]:
    """The heads of rules that are derived from themselves, as far as names tell, and those of best values in `before`.

    `before`: the clauses that the database has.
    """
    reads: dict[str, dict[str, None]] = {}
    found = set()
    for clause in before:
        reads.setdefault(clause.head, {}).update(clause.reads)
        if clause.best:
            found.add(clause.head)
    for rule in rules:
        for head in rule.heads:
            reads.setdefault(head.name, {}).update((atom.name, None) for atom in atoms_of(rule))
    for component in components(reads):
        if len(component) > 1 or component[0] in reads[component[0]]:
            found |= set(component)
    return found


def refuse_mixed(
    recursive: Iterable[tuple[str, ...]],
    reads: Mapping[str, Iterable[str]],
    typed: Iterable[TypedClause],
    before: Iterable[Clause],
    findings: Findings,
) -> list[tuple[str, ...]]:
    """Report what cannot stand in one recursion with extremes; the components without extremes are returned."""
    kinds: dict[str, dict[str, Span]] = {}
    places: dict[str, Span] = {}
    clauses = [(known.head, known.best, known.span) for known in before]
    clauses += [(clause.head.name, clause.best, _place(clause)) for clause in typed]
    for name, op, span in clauses:
        places.setdefault(name, span)
        if op:
            kinds.setdefault(name, {}).setdefault(op, span)
    # A head that is not derived from itself has one notion of better as well.
    alone = [(name,) for name in kinds if not any(name in component for component in recursive)]
    others = []
    for component in (*recursive, *alone):
        ops = {op: span for name in component for op, span in kinds.get(name, {}).items()}
        if not ops:
            others.append(component)
            continue
        word = AGGREGATES[next(iter(ops))].extreme
        # What a rule was taken apart into comes last: of that the program knows no names.
        for name in sorted(component, key=lambda name: name.startswith(INTERNAL)):
            if name not in kinds:
                around = cycle((name, *(member for member in component if member != name)), reads)
                what, remedy = f"`{name}`", f"put what derives `{name}` into the braces, give it a value per key by "
                remedy += f"`{next(iter(ops))}` too, or derive it outside of the recursion"
                if name.startswith(INTERNAL):
                    what = f"an aggregate of `{owner(name)}` whose groups come from rows"
                    remedy = "derive the aggregate outside of the recursion, in a relation with a row for each group"
                findings.unsupported(f"{what} within a recursive {word} ({shown(around)})", places[name], remedy=remedy)
                break
        if len(ops) > 1:
            around = cycle(component, reads)
            findings.unsupported(
                f"minimum and maximum in one recursion ({shown(around) if around else f'`{component[0]}`'})",
                max(ops.values(), key=lambda span: (span.line, span.column)),
                remedy="derive one of them outside of the recursion, or turn its values round (`-d`)",
            )
    return others


def _place(clause: TypedClause) -> Span:
    """Where a clause is in the program: of what a rule was taken apart into, its first atom."""
    atoms = clause.body.atoms if clause.head.name.startswith(INTERNAL) else ()
    return atoms[0].span if atoms else clause.head.span
