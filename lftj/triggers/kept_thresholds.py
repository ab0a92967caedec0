"""Thresholds kept by maps: which rows a running sum lets through is an interval of keys, found by a descent.

    vwap[] = sum p * v : { bids(_, v, p), t > 4 * a }      a: the sum of the volumes above p, t: of all

    derived    bids.1(p, p * v, v)
    maps       c[p] = bids.1, v[p] = sum of p * v, r[p] = sum of v, t[] = sum of v, all changed by an event as usual
    final      the interval of p with r above p at most floor((t - 1) / 4), and the sums of c and of v in it

The running sum falls with the key as long as no value is negative: a row with one is no event, and the clause is then
worked out anew with every change, by sorting. RowSource: the same end as the relative partial aggregate index (SIGMOD
2022), by order statistics of a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause, Compare, Term, Value, Var, replaced
from lftj.language.functors import FLIPPED
from lftj.language.thresholds import RowSource, SumOf, ThresholdBound, ThresholdClause
from lftj.triggers.algebra import (
    Add,
    Final,
    Formula,
    KeyEnd,
    Linear,
    MapDefinition,
    Mul,
    Rel,
    RunEnd,
    TriggerProgram,
    Val,
)
from lftj.triggers.compilation import compiled
from lftj.triggers.derived_relations import COLUMN, DerivedRelation, NoEvents
from lftj.triggers.worth_keeping import EventStatistics
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable
from scantree.version import Version

COUNT, TOTAL = "count", "total"
# Which rows of which relation, by conditions on its columns.
Rows = tuple[str, tuple[Compare, ...]]


class ThresholdFormulas:
    """What is kept of a threshold clause, in the form of `ClauseFormulas`: no keys, and a program of its own.

    `relations`: the derived ones, one for all sources of the same rows.
    """

    keys: tuple[Var, ...] = ()
    shown: tuple[int | Value, ...] = ()
    checked: tuple[Term, ...] = ()

    def __init__(self, clause: Clause, schemas: Mapping[str, Schema]) -> None:
        assert clause.threshold is not None
        assert clause.aggregate is not None
        self.clause, self.schemas_below = clause.threshold, schemas
        self.has_total = clause.aggregate.op.endswith("sum")
        self._sources: dict[Rows, list[Term]] = {}
        self._positive: dict[Rows, set[Term]] = {}
        self._enter()
        self.relations = tuple(
            DerivedRelation(
                f"{source[0]}.{i}", *source, tuple(columns), frozenset(map(columns.index, self._positive[source]))
            )
            for i, (source, columns) in enumerate(self._sources.items(), 1)
        )

    # -- columns ------------------------------------------------------------------------------------------------------

    def _source(self, source: RowSource) -> tuple[Rows, dict[str, Term]]:
        """(what rows a source has, over the columns below; the column of each of its variables)."""
        columns: dict[str, Term] = {}
        conditions = []
        types = self.schemas_below[source.atom.predicate].types
        for i, arg in enumerate(source.atom.args):
            here = Var(COLUMN.format(i), types[i].removesuffix("?"))
            if isinstance(arg, Var):
                columns[arg.name] = here
            elif isinstance(arg, Value):
                conditions.append(Compare("=", here, arg))
        for condition in source.conditions:
            left, right = replaced(condition.left, columns), replaced(condition.right, columns)
            conditions.append(Compare(condition.op, left, right))
        return (source.atom.predicate, tuple(sorted(dict.fromkeys(conditions), key=str))), columns

    def column(self, source: RowSource, term: Term, *, positive: bool = False) -> tuple[Rows, int]:
        """(the rows of a source, the number of the column that a term is there)."""
        rows, columns = self._source(source)
        made, known = replaced(term, columns), self._sources.setdefault(rows, [])
        if made not in known:
            known.append(made)
        self._positive.setdefault(rows, set())
        if positive:
            self._positive[rows].add(made)
        return rows, known.index(made)

    def _enter(self) -> None:
        """Enter every column that is needed."""
        for part in self.clause.parts:
            self.column(part.source, part.key)
        for i, _ in enumerate(self.clause.parts):
            for _, terms in self.clause.products:
                term = terms[i]
                if term is not None and self.has_total:
                    self.column(self.clause.parts[i].source, term)
        for run in self.clause.running:
            self.column(run.total.source, run.key)
            if run.total.operand is not None:
                self.column(run.total.source, run.total.operand, positive=True)
        for total in self.clause.totals:
            rows, _ = self._source(total.source)
            self._sources.setdefault(rows, [])
            self._positive.setdefault(rows, set())
            if total.operand is not None:
                self.column(total.source, total.operand)

    def schemas(self) -> dict[str, Schema]:
        """The schemas of the derived relations."""
        return {
            made.name: Schema(made.name, tuple(Column(f"c{i}", term.type) for i, term in enumerate(made.columns)))
            for made in self.relations
        }

    # -- the program --------------------------------------------------------------------------------------------------

    def program(self, statistics: EventStatistics | None = None) -> tuple[TriggerProgram, str, tuple[str, ...]]:
        """(the program, its map of the count, that of the sum if there is one)."""
        names = dict(zip(self._sources, self.relations, strict=True))
        tops: dict[str, tuple[tuple[Var, ...], Formula]] = {}

        def top(name: str, source: RowSource, key: Var | None, term: Term | None) -> None:
            rows, _ = self._source(source)
            made = names[rows]
            args = tuple(Var(f"x{i}", column.type) for i, column in enumerate(made.columns))
            values = () if term is None else (Val(args[self.column(source, term)[1]]),)
            keys = () if key is None else (args[self.column(source, key)[1]],)
            tops[name] = keys, Mul((Rel(made.name, args), *values))

        products = self.clause.products if self.has_total else ()
        for i, part in enumerate(self.clause.parts):
            top(f"c{i}", part.source, part.key, None)
            for j, (_, terms) in enumerate(products):
                if terms[i] is not None:
                    top(f"v{i}.{j}", part.source, part.key, terms[i])
        for i, run in enumerate(self.clause.running):
            top(f"r{i}", run.total.source, run.key, run.total.operand)
        for i, total in enumerate(self.clause.totals):
            top(f"t{i}", total.source, None, total.operand)
        made = compiled(tops, self.schemas(), statistics=statistics)
        place = dict(zip(tops, made.tops, strict=True))
        counts = tuple(place[f"c{i}"] for i in range(len(self.clause.parts)))
        targets: list[tuple[str, tuple[tuple[int, tuple[str, ...]], ...]]] = [(COUNT, ((1, counts),))]
        if self.has_total:
            summed = tuple(
                (n, tuple(place.get(f"v{i}.{j}", counts[i]) for i in range(len(terms))))
                for j, (n, terms) in enumerate(products)
            )
            targets.append((TOTAL, summed))
        intervals = tuple(tuple(self._end(bound, place) for bound in part.bounds) for part in self.clause.parts)
        nothing = {name: MapDefinition(name, (), Add()) for name, _ in targets}
        program = replace(
            made, maps={**made.maps, **nothing}, tops=tuple(nothing), final=Final(intervals, tuple(targets))
        )
        return program, COUNT, (TOTAL,) if self.has_total else ()

    def _end(self, bound: ThresholdBound, place: Mapping[str, str]) -> KeyEnd | RunEnd:
        """A bound as the end of an interval: a * x + L op 0, with a > 0, is x op -L / a."""
        sign, op = (1, bound.op) if bound.coefficient > 0 else (-1, FLIPPED[bound.op])
        a, terms = sign * bound.coefficient, tuple((-sign * n, place[f"t{i}"]) for n, i in bound.terms)
        # Of integers x < b is x <= b - 1, and x >= b is x > b - 1.
        constant = -sign * bound.constant - (op in ("<", ">="))
        at_most = op in ("<", "<=")
        if bound.running is None:
            return KeyEnd(not at_most, Linear(terms, constant + (0 if at_most else a), a))
        run = self.clause.running[bound.running]
        return RunEnd(place[f"r{bound.running}"], run.above, run.inclusive, at_most, Linear(terms, constant, a))


# -- worked out by sorting ---------------------------------------------------------------------------------------------

Objects = npt.NDArray[np.object_]


def by_sorting(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of the head of a threshold clause, by sorting; integers of any size on the way."""
    relation, threshold = evaluator.relations[clause.head], clause.threshold
    assert threshold is not None
    limits.look(0)
    counted, summed = _sums(evaluator, clause, threshold)
    assert clause.aggregate is not None
    result = summed if clause.aggregate.op.endswith("sum") else counted
    if not counted:
        return relation.build(np.empty((1, 0), np.int64))
    if not NUMBER_MIN <= result <= NUMBER_MAX:
        raise EvaluationError(
            f"the sum of `{clause.text or clause.head}` is out of the range of number",
            why=f"it is {result}, and a number has 64 bits",
            remedy="sum smaller numbers",
        )
    return relation.build(np.array([[result]], np.int64))


def _sums(evaluator: Evaluator, clause: Clause, threshold: ThresholdClause) -> tuple[int, int]:
    """(the count, the sum)."""
    schemas = {name: evaluator.relations[name].schema for name in clause.reads}
    formulas, symbols = ThresholdFormulas(clause, schemas), evaluator.symbols
    columns: dict[object, Objects] = {}
    for rows, made in zip(formulas._sources, formulas.relations, strict=True):
        columns[rows] = _columns(replace(made, positive=frozenset()), evaluator, symbols)

    def of(source: RowSource, term: Term) -> Objects:
        rows, number = formulas.column(source, term)
        found: Objects = columns[rows][number]
        return found

    def size(source: RowSource) -> int:
        return int(columns[formulas._source(source)[0]].shape[1])

    def total(given: SumOf) -> int:
        return size(given.source) if given.operand is None else int(of(given.source, given.operand).sum())

    totals = [total(given) for given in threshold.totals]
    count, sums = 1, []
    kept = []
    for part in threshold.parts:
        keys = of(part.source, part.key)
        mask = np.ones(len(keys), np.bool_)
        for bound in part.bounds:
            value = keys
            if bound.running is not None:
                run = threshold.running[bound.running]
                operand = run.total.operand
                weights = np.ones(size(run.total.source), object) if operand is None else of(run.total.source, operand)
                value = _running(keys, of(run.total.source, run.key), weights, run.above, run.inclusive)
            rest = sum(n * totals[i] for n, i in bound.terms) + bound.constant
            mask &= _COMPARE[bound.op](bound.coefficient * value + rest, 0).astype(np.bool_)
        kept.append(mask)
        count *= int(mask.sum())
    if formulas.has_total:
        for n, terms in threshold.products:
            for part, mask, term in zip(threshold.parts, kept, terms, strict=True):
                n *= int(mask.sum()) if term is None else int(of(part.source, term)[mask].sum())
            sums.append(n)
    return count, sum(sums)


def _columns(made: DerivedRelation, evaluator: Evaluator, symbols: SymbolTable) -> Objects:
    try:
        rows, _ = made.of_all(evaluator.relations[made.predicate].content, symbols)
    except NoEvents as refused:
        raise EvaluationError(
            str(refused.args[0]), why="the rule needs a value for each row", remedy="leave such rows out"
        ) from None
    made_objects: Objects = rows.astype(object)
    return made_objects


def _running(keys: Objects, others: Objects, weights: Objects, above: bool, inclusive: bool) -> Objects:
    """For each key the sum of the weights of the keys above it, or below it."""
    order = np.argsort(others.astype(np.int64), kind="stable")
    ordered = others.astype(np.int64)[order]
    below = np.concatenate([np.zeros(1, object), np.cumsum(weights[order])]) if len(order) else np.zeros(1, object)
    left = np.searchsorted(ordered, keys.astype(np.int64), "left")
    right = np.searchsorted(ordered, keys.astype(np.int64), "right")
    if above:
        result: Objects = below[-1] - below[left if inclusive else right]
    else:
        result = below[right if inclusive else left]
    return result


_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
