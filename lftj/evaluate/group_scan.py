"""min, max, cat and quantiles: read from the rows of the one relation below, for the groups that a change touches.

The body is one atom over a relation R, and what it folds is a column of R. Nothing is kept for it but a key order of R
that begins with the group's columns, so that the rows of a group are one run. Whatever changed, even if the least value
was erased, the result of a touched group is read again:

    least, greatest number, unsigned, float     the first, the last row of the run in the order (group, value, ...)
    the same, at several levels of detail       one order and one scan for all of them (below)
    quantile                                    by a scan that sums up counts: one descent to the row of a rank
    least, greatest symbol, its quantiles       the rows of the run: the order of texts is not that of their codes
    cat                                         the rows of the run

`max v : { r(x, _, v) }` per x and `max v : { r(x, y, v) }` per (x, y) share the order (x, y, v) and a scan of v: the
coarse groups fold their run, the finest ones take its last row. Groups that do not contain one another have orders of
their own.

Below a quantile the rows are values, each with the number of bindings that have it: (group..., value, number).

`cat` is the concatenation of the values, without anything between, in the order of the other columns of R as declared,
each in the order of its values (symbols by text), and then of the value itself. So it does not depend on the history.

Complexity, n rows of R and m touched groups: O(m log n), which `steps` counts; for symbols and `cat` also the rows of
the touched groups. Evaluation reads all of R once.

Source: T. Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013, arXiv 1303.5313),
section 2.3.3. Deviation: concatenations are no ropes; they are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.quantiles import Quantile
from lftj.join.dense_groups import NumberedGroups, dense_extremes
from lftj.join.groups import Runs, counts_by_group, places_of_ranks
from lftj.language.aggregate_specs import fraction_of, word_of
from lftj.language.clause import Clause, Var
from lftj.store.change import Change, change_of_rows
from lftj.store.stored import StoredRelation
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary
from scantree.consolidate import runs_of
from scantree.scan import Monoid
from scantree.sort import sorting
from scantree.version import Version

Ints = npt.NDArray[np.int64]

# Up to so many texts are ranked among themselves, not in the whole table, unless it has few for each code.
FEW, RANKED = 2_000, 4


class Extreme(NamedTuple):
    """How an aggregate takes one of the values of a group: the first or, with `last`, the last of them in order.

    `monoid`: the scan that keeps it for runs of rows · `best`: the better of two codes of numbers, or ranks of texts.
    """

    monoid: Monoid
    best: np.ufunc
    last: bool


class InOrder(NamedTuple):
    """How an aggregate of texts folds those of a group: a function of them, in the order of the rows."""

    join: Callable[[list[str]], str]


RowFold = Extreme | InOrder | Quantile

# The kernels of the aggregates by rows.
ROW_FOLDS: dict[str, RowFold] = {
    "min": Extreme(Monoid.MIN, np.minimum, last=False),
    "max": Extreme(Monoid.MAX, np.maximum, last=True),
    "cat": InOrder("".join),
    "quantile_disc": Quantile(between=False),
    "quantile_cont": Quantile(between=True),
}


def row_fold(op: str) -> RowFold | None:
    """The kernel of the aggregate `op`; None if it is no aggregate by rows."""
    fold = ROW_FOLDS.get(word_of(op))
    return fold._replace(fraction=fraction_of(op)) if isinstance(fold, Quantile) else fold


class GroupScan(NamedTuple):
    """Where and how the result of a group is found.

    `relation`: R · `groups`: the columns of R that the head's group columns hold · `operand`: the folded column ·
    `order`: the key order, the group's columns first · `scan`: what its version folds (None: it is a plain one) ·
    `by`: "ends", "scan", "ranks" or "rows".
    """

    relation: str
    op: str
    groups: tuple[int, ...]
    operand: int
    order: tuple[int, ...]
    scan: Monoid | None
    by: str

    @property
    def last(self) -> bool:
        """Whether it is the last value of a group that is taken, and not the first."""
        fold = row_fold(self.op)
        return isinstance(fold, Extreme) and fold.last

    @property
    def width(self) -> int:
        """How many columns of the order are the group's."""
        return len(set(self.groups))

    def version(self, relation: StoredRelation) -> Version:
        """The rows to read."""
        return (
            relation.order(self.order)
            if self.scan is None
            else relation.scan_version(self.order, self.scan, self.order[-1] if self.by == "ranks" else self.operand)
        )

    def describe(self, relation: StoredRelation) -> str:
        """How the result of a touched group is found, in words."""
        names = relation.schema.names
        order = f"{self.relation}[{', '.join(names[c] for c in self.order)}]"
        if self.by == "rows":
            return f"reads the rows of a touched group in {order}"
        if self.by == "ranks":
            return f"finds the row of a rank in a touched group by the scan of {names[self.order[-1]]} in {order}"
        if self.by == "scan":
            return f"folds the rows of a touched group by the scan of {names[self.operand]} in {order}"
        return f"takes the {'last' if self.last else 'first'} row of a touched group in {order}"


def group_scan_of(clause: Clause, relation: StoredRelation, others: Iterable[Clause]) -> GroupScan:
    """The scan of `clause`, an aggregate by rows of `relation`; `others`: the clauses that may share its key order."""
    groups, operand = _columns(clause)
    assert clause.aggregate is not None
    op, own = clause.aggregate.op, frozenset(groups)
    fold = row_fold(op)
    assert fold is not None
    if isinstance(fold, InOrder) or in_dictionary(relation.types[operand]):
        whole = not isinstance(fold, Extreme)  # others come in the order of all columns
        columns = (*sorted(own), *(c for c in range(relation.arity) if c not in own and (whole or c == operand)))
        built = (o for o in sorted(relation.orders) if frozenset(o[: len(own)]) == own and {*columns} <= {*o})
        order = next(built, relation.key_order(columns))
        return GroupScan(relation.name, op, groups, operand, order, None, "rows")
    if isinstance(fold, Quantile):
        order = (*sorted(own), operand, relation.arity - 1)
        return GroupScan(relation.name, op, groups, operand, order, Monoid.SUM, "ranks")
    # The operators that each set of group columns is folded by, with this operand.
    wanted: dict[frozenset[int], dict[str, Monoid]] = {}
    for other in others:
        aggregate = other.aggregate
        other_fold = None if aggregate is None else row_fold(aggregate.op)
        if aggregate is not None and isinstance(other_fold, Extreme) and other.atoms[0].predicate == relation.name:
            columns, folded = _columns(other)
            if folded == operand:
                wanted.setdefault(frozenset(columns), {})[aggregate.op] = other_fold.monoid
    wanted.setdefault(own, {})[op] = fold.monoid
    chain = next(chain for chain in _chains(wanted) if own in chain)
    if len(chain) == 1:
        k = len(own)
        built = (o for o in sorted(relation.orders) if frozenset(o[:k]) == own and operand in o[: k + 1])
        if (found := next(built, None)) is not None:
            return GroupScan(relation.name, op, groups, operand, found, None, "ends")
    order = tuple[int, ...]()
    for columns_of in chain:
        order += tuple(sorted(columns_of - set(order)))
    ends = order if operand in order else (*order, operand)
    order = ends + tuple(c for c in range(relation.arity) if c not in ends)
    if own == chain[-1]:
        # A scan that is there for the coarser groups is a version as good as a plain one.
        coarser = min((item for columns_of in chain[:-1] for item in wanted[columns_of].items()), default=None)
        scan = None if coarser is None or order in relation.orders else coarser[1]
        return GroupScan(relation.name, op, groups, operand, order if scan else relation.key_order(ends), scan, "ends")
    return GroupScan(relation.name, op, groups, operand, order, fold.monoid, "scan")


def _columns(clause: Clause) -> tuple[tuple[int, ...], int]:
    """(the columns of the body's relation that the group holds, the folded one)."""
    (atom,) = clause.atoms
    place = {arg.name: c for c, arg in enumerate(atom.args) if isinstance(arg, Var)}
    columns = [place[term.name] for term in clause.head_args if isinstance(term, Var)]
    return tuple(columns[:-1]), columns[-1]


def _chains(sets: Iterable[frozenset[int]]) -> list[list[frozenset[int]]]:
    """`sets` in chains, each set within the next one."""
    chains: list[list[frozenset[int]]] = []
    for one in sorted(sets, key=lambda s: (len(s), sorted(s))):
        for chain in chains:
            if chain[-1] < one:
                chain.append(one)
                break
        else:
            chains.append([one])
    return chains


def followed(
    scan: GroupScan, relation: StoredRelation, change: Change, head: Version, symbols: SymbolTable
) -> tuple[Change, int]:
    """(the change of the head's content `head`, steps) when `relation`, as it is now, has seen `change`."""
    columns = list(scan.order[: scan.width])
    rows = np.ascontiguousarray(change.rows[columns])
    if columns:
        rows, _, starts = runs_of(rows)
        rows = np.ascontiguousarray(rows[:, starts])
    else:
        rows = rows[:, : min(1, rows.shape[1])]
    as_head = np.ascontiguousarray(rows[[columns.index(c) for c in scan.groups]])
    before = Runs.of(head, as_head)
    runs = Runs.of(scan.version(relation), rows)
    steps = before.steps + runs.steps
    if scan.by == "rows":
        read = runs.rows()
        steps += read.shape[1]
        declared = np.zeros((relation.arity, read.shape[1]), np.int64)
        declared[list(scan.order)] = read
        after = folded(scan, relation, declared, symbols)
    else:
        if scan.by == "ranks":
            values, taken = _quantiles(scan, runs, relation.types[scan.operand])
            steps += taken
        elif scan.by == "scan":
            values, taken = runs.folds()
            steps += taken
        else:
            values = runs.ends(scan.order.index(scan.operand), last=scan.last)
        after = np.compress(runs.there, np.vstack([as_head, values]), axis=1)
    return change_of_rows(len(as_head) + 1, [before.rows()], [after]), steps


def _quantiles(scan: GroupScan, runs: Runs, operand: str) -> tuple[Ints, int]:
    """(the quantile of each run, 0 of an empty one, and the steps)."""
    fold, column = row_fold(scan.op), scan.order.index(scan.operand)
    assert isinstance(fold, Quantile)
    numbers, steps = runs.folds()
    _check_numbers(scan.op, numbers[runs.there])
    lower, upper, rest = fold.ranks(np.maximum(numbers, 1))
    values, taken = runs.ranked(column, lower)
    above, more = runs.ranked(column, upper) if rest.any() else (values, 0)
    return fold.results(values, above, rest, operand), steps + taken + more


def _check_numbers(op: str, numbers: Ints) -> None:
    """Refuse groups of more bindings than can be counted; `numbers` are 0 there."""
    if not numbers.all():
        raise EvaluationError(
            f"`{op}` of a group that counts more than 2^63 - 1 values",
            why="the values of a group are counted in 64 bits; nothing was changed",
            remedy="scale what is given to `counted(value, n)` down",
        )


def folded_content(scan: GroupScan, relation: StoredRelation, symbols: SymbolTable) -> Ints:
    """The rows (group..., result) of all groups of a relation."""
    fold = row_fold(scan.op)
    if isinstance(fold, InOrder):
        return folded(scan, relation, relation.content.columns(), symbols)
    type, k = relation.types[scan.operand], len(scan.groups)
    if isinstance(fold, Quantile):
        columns = (*scan.groups, scan.operand, relation.arity - 1)
        rows = relation.content.some_columns(columns)
        if columns == tuple(range(relation.arity)) and not in_dictionary(type):  # the content is in that order
            return _quantiles_in_order(scan.op, fold, rows, k, type)
    else:
        rows = relation.content.some_columns((*scan.groups, scan.operand))
    return folded_rows(scan.op, rows, k, type, symbols)


def folded(scan: GroupScan, relation: StoredRelation, rows: Ints, symbols: SymbolTable) -> Ints:
    """The rows (group..., result) of all groups in `rows` int64[arity, n], columns as declared; any order."""
    groups, fold = np.ascontiguousarray(rows[list(scan.groups)]), row_fold(scan.op)
    operand = rows[scan.operand]
    if isinstance(fold, Quantile):
        operand = np.vstack([operand, rows[-1]])
    if isinstance(fold, InOrder):
        rest = [c for c in range(relation.arity) if c not in (*scan.groups, scan.operand)]
        keys = [ranked(rows[c], symbols) if in_dictionary(relation.types[c]) else rows[c] for c in rest]
        order = np.lexsort([ranked(operand, symbols), *reversed(keys)])
        groups, operand = np.take(groups, order, axis=1), operand[order]
    return folded_rows(scan.op, np.vstack([groups, operand]), len(groups), relation.types[scan.operand], symbols)


def folded_rows(op: str, rows: Ints, k: int, type: str, symbols: SymbolTable) -> Ints:
    """The rows (group..., result) of all groups in `rows` (group of k columns, operand of `type`).

    What is folded in order comes in order, group by group. Values of quantiles have their counts behind them.
    """
    groups, operand, n, fold = rows[:k], rows[k], rows.shape[1], row_fold(op)
    if isinstance(fold, Quantile):
        if n:
            order, _ = sorting(np.vstack([groups, ranked(operand, symbols) if in_dictionary(type) else operand]))
            rows = np.take(rows, order, axis=1)
        return _quantiles_in_order(op, fold, rows, k, type)
    if isinstance(fold, Extreme):
        if in_dictionary(type):
            ranks = ranked(operand, symbols)
            return NumberedGroups.of(np.ascontiguousarray(groups)).extremes(operand, ranks, last=fold.last)
        dense = dense_extremes(rows, last=fold.last)
        if dense is not None:
            return dense
    # Of the rows of one group those that came first stay first.
    if k:
        groups, moved, starts = runs_of(np.ascontiguousarray(groups))
        operand = operand if moved is None else operand[moved]
    else:
        starts = np.zeros(min(1, n), np.int64)
    distinct = groups[:, starts]
    if n == 0:
        return np.vstack([distinct, operand])
    if isinstance(fold, InOrder):
        texts, ends = _texts(operand, symbols), [*starts[1:].tolist(), n]
        joined = [fold.join(texts[lo:hi]) for lo, hi in zip(starts.tolist(), ends, strict=True)]
        return np.vstack([distinct, symbols.intern(joined)])
    assert fold is not None
    return np.vstack([distinct, fold.best.reduceat(operand, starts)])


def _quantiles_in_order(op: str, fold: Quantile, rows: Ints, k: int, type: str) -> Ints:
    """The rows (group..., quantile) of all groups in `rows` (group of k columns, value of `type`, count), in order."""
    if rows.shape[1] == 0:
        return np.ascontiguousarray(rows[: k + 1])
    starts = np.flatnonzero(np.append(True, (rows[:k, 1:] != rows[:k, :-1]).any(axis=0)))
    counts = np.ascontiguousarray(rows[k + 1])
    numbers = counts_by_group(starts, counts)
    _check_numbers(op, numbers)
    lower, upper, rest = fold.ranks(numbers)
    below, above = (rows[k, places_of_ranks(starts, counts, ranks)] for ranks in (lower, upper))
    return np.vstack([rows[:k, starts], fold.results(below, above, rest, type)])


def ranked(codes: Ints, symbols: SymbolTable) -> Ints:
    """Numbers in the order of the texts of `codes`."""
    if len(symbols) <= RANKED * len(codes):
        return symbols.order(codes, "symbol?")
    distinct, places = np.unique(codes, return_inverse=True)
    if len(distinct) > FEW:
        return symbols.order(codes, "symbol?")
    nulls = int(np.count_nonzero(distinct < 0))  # null, which is the first then
    texts = _texts(distinct[nulls:], symbols)
    ranks = np.empty(len(distinct), np.int64)
    ranks[:nulls] = -1
    ranks[nulls + np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)] = np.arange(len(texts))
    return ranks[places]


def _texts(codes: Ints, symbols: SymbolTable) -> list[str]:
    if len(codes) > FEW:
        texts: list[str] = symbols.decode(codes).to_pylist()
        return texts
    return [symbols.text(code) for code in codes.tolist()]
