"""Thresholds: sums over the rows for which a running sum, or a total, passes a bound, as one clause.

    vwap[] = sum p * v : { bids(_, v, p), t = sum w : { bids(_, w, _) },
                           a = sum w : { bids(_, w, q), q > p }, t > 4 * a }.

As rules each price has a row of the running sum `a`, and one bid changes it for all prices below. But which prices
meet the condition is known by one number: as no `w` is negative the running sum falls with the price, so they are
those of an interval. `folded` finds such clauses, and takes the relations of totals and running sums into them: these
are not derived any more, and the clause is worked out by `lftj/triggers/kept_thresholds.py`.

A clause is one of these if it is a count or a sum without groups, its atoms share no variables, and each condition is
about columns of one atom, or linear in totals and either one running sum by a column or that column itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lftj.language.clause import INTERNAL, Aggregate, Apply, BodyAtom, Clause, Compare, Term, Value, Var, names_of
from lftj.language.functors import FLIPPED
from lftj.language.internal_relations import GROUPS, WITH_ZERO

# The first word of the mark of such clauses (`Aggregate.op`).
THRESHOLDS = "thresholds"
_SIGNS = {"+": 1, "-": -1}


@dataclass(frozen=True, slots=True)
class RowSource:
    """The rows of an atom that meet conditions on its variables."""

    atom: BodyAtom
    conditions: tuple[Compare, ...]


@dataclass(frozen=True, slots=True)
class SumOf:
    """The sum of `operand` over the rows of a source, or how many there are; `name`: the variable that it is."""

    name: str
    source: RowSource
    operand: Term | None


@dataclass(frozen=True, slots=True)
class RunningSum:
    """A total of the rows whose `key` is above that of a part, or below it; `inclusive`: or the same."""

    total: SumOf
    key: Var
    above: bool
    inclusive: bool


@dataclass(frozen=True, slots=True)
class ThresholdBound:
    """`coefficient` * x + `terms` + `constant` op 0, op one of < <= > >=.

    x is the running sum number `running`, or without one the key of the part; `terms`: coefficients of totals, by
    their numbers.
    """

    coefficient: int
    running: int | None
    terms: tuple[tuple[int, int], ...]
    constant: int
    op: str


@dataclass(frozen=True, slots=True)
class ThresholdPart:
    """An atom of the clause: its rows, the key that bounds are about, and the bounds."""

    source: RowSource
    key: Var
    bounds: tuple[ThresholdBound, ...]


@dataclass(frozen=True, slots=True)
class ThresholdClause:
    """The sum of products over the rows of all parts: a coefficient, and for each part a term of its own (None: 1)."""

    parts: tuple[ThresholdPart, ...]
    totals: tuple[SumOf, ...]
    running: tuple[RunningSum, ...]
    products: tuple[tuple[int, tuple[Term | None, ...]], ...]


class _Linear(NamedTuple):
    """Coefficients by variable, and a constant."""

    terms: dict[str, int]
    constant: int


def folded(clauses: Sequence[Clause]) -> tuple[tuple[Clause, ...], frozenset[str]]:
    """(the clauses, thresholds as one; the internal relations that are not derived any more)."""
    by_head: dict[str, list[Clause]] = {}
    readers: dict[str, set[str]] = {}
    for clause in clauses:
        by_head.setdefault(clause.head, []).append(clause)
        for name in clause.reads:
            readers.setdefault(name, set()).add(clause.head)
    made: dict[str, Clause] = {}
    gone: set[str] = set()
    for clause in clauses:
        if clause.aggregate is None or clause.aggregate.op not in ("count", "sum") or clause.aggregate.groups:
            continue
        if not any(name.startswith(INTERNAL) and name.endswith(WITH_ZERO) for name in clause.reads):
            continue
        found = _Folding(clause, by_head).found()
        if found is None:
            continue
        threshold, inner = found
        # Nobody else may read what is taken into the clause.
        if all(readers.get(name, set()) <= inner | {clause.head} for name in inner):
            op = f"{THRESHOLDS} {clause.aggregate.op}"
            sources = [*(part.source for part in threshold.parts), *(total.source for total in threshold.totals)]
            sources += [run.total.source for run in threshold.running]
            atoms = tuple({source.atom.predicate: source.atom for source in sources}.values())
            aggregate = Aggregate(op, 0, clause.aggregate.type)
            made[clause.head] = replace(
                clause, atoms=atoms, compares=(), negated=(), aggregate=aggregate, threshold=threshold
            )
            gone |= inner
    kept = tuple(made.get(clause.head, clause) for clause in clauses if clause.head not in gone)
    return kept, frozenset(gone)


class _Folding:
    """One clause on its way; `inner`: the internal relations that would be taken into it."""

    def __init__(self, clause: Clause, by_head: Mapping[str, list[Clause]]) -> None:
        self.clause, self.by_head, self.inner = clause, by_head, set[str]()
        self.totals: list[SumOf] = []
        self.running: list[tuple[RunningSum, Var]] = []

    def found(self) -> tuple[ThresholdClause, set[str]] | None:
        """The clause, and the relations that it takes in; None if it is no such clause."""
        base = [atom for atom in self.clause.atoms if not atom.predicate.startswith(INTERNAL)]
        aux = [atom for atom in self.clause.atoms if atom.predicate.startswith(INTERNAL)]
        if not base or self.clause.negated or not all(map(self.take_in, aux)):
            return None
        names = [_names_of(atom) for atom in base]
        # One variable for two results, or for a result and a column, says that they are equal.
        results = [*(total.name for total in self.totals), *(run.total.name for run, _ in self.running)]
        if sum(map(len, names)) + len(results) != len({*results}.union(*names)) or not all(map(_is_plain, base)):
            return None
        local: list[list[Compare]] = [[] for _ in base]
        bounds: list[list[tuple[Var, ThresholdBound]]] = [[] for _ in base]
        for compare in self.clause.compares:
            used = names_of(compare.left, compare.right)
            home = next((i for i, own in enumerate(names) if used and used <= own), None)
            if home is not None:
                local[home].append(compare)
                continue
            bound = self.bound(compare, base, names)
            if bound is None:
                return None
            bounds[bound[0]].append(bound[1])
        parts = []
        for atom, conditions, own in zip(base, local, bounds, strict=True):
            keys = {key for key, _ in own}
            if len(keys) != 1 or any(key.type != "number" for key in keys):
                return None
            parts.append(
                ThresholdPart(RowSource(atom, tuple(conditions)), keys.pop(), tuple(bound for _, bound in own))
            )
        products = self.products(names)
        if products is None or not (self.running or self.totals):
            return None
        running = tuple(run for run, _ in self.running)
        return ThresholdClause(tuple(parts), tuple(self.totals), running, products), self.inner

    # -- totals and running sums --------------------------------------------------------------------------------------

    def take_in(self, atom: BodyAtom) -> bool:
        """Whether an atom reads a total or a running sum, 0 of nothing, which is taken in."""
        name = atom.predicate
        if not name.endswith(WITH_ZERO) or not all(isinstance(arg, Var) for arg in atom.args):
            return False
        plain = name.removesuffix(WITH_ZERO)
        clauses = self.by_head.get(plain, [])
        if len(clauses) != 1 or clauses[0].aggregate is None or clauses[0].aggregate.op not in ("count", "sum"):
            return False
        (clause,) = clauses
        assert clause.aggregate is not None
        if clause.aggregate.groups > 1 or clause.negated or clause.aggregate.type != "number":
            return False
        *given, result = atom.args
        assert isinstance(result, Var)
        base = [found for found in clause.atoms if not found.predicate.startswith(INTERNAL)]
        supplied = [found for found in clause.atoms if found.predicate == f"{plain}{GROUPS}"]
        if len(base) != 1 or len(base) + len(supplied) != len(clause.atoms) or not _is_plain(base[0]):
            return False
        own = _names_of(base[0])
        operand = None if clause.aggregate.op == "count" else clause.head_args[-1]
        if operand is not None and not names_of(operand) <= own:
            return False
        self.inner |= {name, plain}
        self.inner |= {found for found in (f"{plain}{GROUPS}",) if found in self.by_head}
        compares = list(clause.compares)
        if not given:
            if any(not names_of(c.left, c.right) <= own for c in compares):
                return False
            self.totals.append(SumOf(result.name, RowSource(base[0], tuple(compares)), operand))
            return True
        outer, bound = clause.head_args[0], given[0]
        if not isinstance(outer, Var) or not isinstance(bound, Var) or outer.name in own:
            return False
        apart = [c for c in compares if outer.name in names_of(c.left, c.right)]
        if len(apart) != 1:
            return False
        compares.remove(apart[0])
        ordered = _ordered(apart[0], outer)
        if ordered is None or ordered[0].name not in own or any(not names_of(c.left, c.right) <= own for c in compares):
            return False
        key, op = ordered
        total = SumOf(result.name, RowSource(base[0], tuple(compares)), operand)
        self.running.append((RunningSum(total, key, op in (">", ">="), op in ("<=", ">=")), bound))
        return True

    # -- conditions ---------------------------------------------------------------------------------------------------

    def bound(
        self, compare: Compare, base: Sequence[BodyAtom], names: Sequence[set[str]]
    ) -> tuple[int, tuple[Var, ThresholdBound]] | None:
        """(the number of an atom, its key and a bound); None if the condition says nothing of the kind."""
        if compare.op not in FLIPPED:
            return None
        left, right = _linear(compare.left), _linear(compare.right)
        if left is None or right is None:
            return None
        terms = dict(left.terms)
        for name, coefficient in right.terms.items():
            terms[name] = terms.get(name, 0) - coefficient
        terms = {name: coefficient for name, coefficient in terms.items() if coefficient}
        constant = left.constant - right.constant
        totals = {total.name: i for i, total in enumerate(self.totals)}
        runs = {run.total.name: i for i, (run, _) in enumerate(self.running)}
        others = [name for name in terms if name not in totals]
        if len(others) != 1:
            return None
        (name,) = others
        of_totals = tuple((terms[total], totals[total]) for total in terms if total in totals)
        if name in runs:
            key, running = self.running[runs[name]][1], runs[name]
        else:
            key, running = Var(name, "number"), None
        home = next((i for i, own in enumerate(names) if key.name in own), None)
        if home is None:
            return None
        key = next(a for a in base[home].args if isinstance(a, Var) and a.name == key.name)
        return home, (key, ThresholdBound(terms[name], running, of_totals, constant, compare.op))

    # -- what is summed -----------------------------------------------------------------------------------------------

    def products(self, names: Sequence[set[str]]) -> tuple[tuple[int, tuple[Term | None, ...]], ...] | None:
        """The operand as a sum of products of terms of one atom each."""
        nothing: tuple[Term | None, ...] = (None,) * len(names)
        assert self.clause.aggregate is not None
        if self.clause.aggregate.op == "count":
            return ((1, nothing),)
        operand = self.clause.head_args[0]

        def expanded(term: Term) -> list[tuple[int, tuple[Term | None, ...]]] | None:
            used = names_of(term)
            home = next((i for i, own in enumerate(names) if used and used <= own), None)
            if home is not None:
                return [(1, tuple(term if i == home else None for i in range(len(names))))]
            if isinstance(term, Value) and type(term.value) is int:
                return [(term.value, nothing)]
            if not isinstance(term, Apply) or term.type != "number" or term.op not in ("+", "-", "*", "neg"):
                return None
            parts = [expanded(arg) for arg in term.args]
            if any(part is None for part in parts):
                return None
            known = [part for part in parts if part is not None]
            if term.op == "neg":
                return [(-n, terms) for n, terms in known[0]]
            if term.op in _SIGNS:
                return [*known[0], *((_SIGNS[term.op] * n, terms) for n, terms in known[1])]
            return [(n * m, tuple(map(_times, a, b))) for n, a in known[0] for m, b in known[1]]

        found = expanded(operand) if operand.type == "number" else None
        return None if found is None else tuple(found)


def _times(left: Term | None, right: Term | None) -> Term | None:
    if left is None or right is None:
        return right if left is None else left
    return Apply("*", (left, right), "number")


def _names_of(atom: BodyAtom) -> set[str]:
    return {arg.name for arg in atom.args if isinstance(arg, Var)}


def _is_plain(atom: BodyAtom) -> bool:
    """Whether the arguments are variables, each once, constants and wildcards."""
    names = [arg.name for arg in atom.args if isinstance(arg, Var)]
    return len(names) == len(set(names)) and all(arg is None or isinstance(arg, Var | Value) for arg in atom.args)


def _ordered(compare: Compare, outer: Var) -> tuple[Var, str] | None:
    """(a key, how it compares with the variable `outer`) of a comparison of the two."""
    for mine, other, op in (
        (compare.left, compare.right, compare.op),
        (compare.right, compare.left, FLIPPED.get(compare.op, "")),
    ):
        if mine != outer and isinstance(mine, Var) and other == outer and op in FLIPPED and mine.type == "number":
            return mine, op
    return None


def _linear(term: Term) -> _Linear | None:
    """A term over numbers as coefficients and a constant; None if it is not linear."""
    if term.type != "number":
        return None
    if isinstance(term, Var):
        return _Linear({term.name: 1}, 0)
    if isinstance(term, Value):
        return _Linear({}, term.value)
    if not isinstance(term, Apply) or term.op not in ("+", "-", "*", "neg"):
        return None
    parts = [_linear(arg) for arg in term.args]
    if any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    if term.op == "neg":
        return _scaled(known[0], -1)
    if term.op == "*":
        constant = next((part for part in known if not part.terms), None)
        if constant is None:
            return None
        return _scaled(known[1] if known[0] is constant else known[0], constant.constant)
    right = _scaled(known[1], _SIGNS[term.op])
    names: Iterable[str] = dict.fromkeys((*known[0].terms, *right.terms))
    terms = {name: known[0].terms.get(name, 0) + right.terms.get(name, 0) for name in names}
    return _Linear(terms, known[0].constant + right.constant)


def _scaled(given: _Linear, by: int) -> _Linear:
    return _Linear({name: by * coefficient for name, coefficient in given.terms.items()}, by * given.constant)
