"""Derived relations: what a formula reads of one relation, worked out for whole batches of rows.

Whatever concerns one atom only is not done event by event: conditions on its columns, arithmetic, texts, dates, `case`.
An atom becomes a derived relation, the rows that meet its conditions, with the columns that the rest needs:

    lineitem(k, _, p, d, t), t < @1998-09-02, ... p * (100 - d)
    ->   lineitem.1(k, p * (100 - d))       of the rows with t < @1998-09-02

Its rows are a multiset: one for each row that meets the conditions. An event is a row of a derived relation that comes
or goes; `Events` has those of many rows of the relations below, in the order in which these come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.evaluate.term_columns import TermColumns
from lftj.language.clause import Apply, Compare, Term, Value, Var, variables_of
from lftj.triggers.algebra import DELETION, INSERTION
from lftj.values.codes import NUMBER_MAX
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import type_of
from scantree.version import Version

Ints = npt.NDArray[np.int64]
# The variable of a column of the relation below.
COLUMN = "c{}"


class NoEvents(Exception):
    """Rows that cannot become events; `args[0]` says why."""


@dataclass(frozen=True, slots=True)
class DerivedRelation:
    """The rows of `predicate` that meet `conditions`, as the values of `columns`; both over the variables c0, c1, ...

    `name`: in formulas · `positive`: the columns that hold no negative number, or events cannot tell them ·
    `measured`: the columns that statements compute with, each with the variable that it is there.
    """

    name: str
    predicate: str
    conditions: tuple[Compare, ...]
    columns: tuple[Term, ...]
    positive: frozenset[int] = frozenset()
    measured: tuple[tuple[int, str], ...] = ()
    # The columns of the relation below that are read.
    reads: tuple[int, ...] = field(init=False, compare=False)
    # Those of its own, where nothing is computed.
    plain: tuple[int, ...] | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        sides = [side for condition in self.conditions for side in (condition.left, condition.right)]
        read = {_number(var) for term in (*self.columns, *sides) for var in variables_of(term)}
        object.__setattr__(self, "reads", tuple(sorted(read)))
        copied = [_number(term) for term in self.columns if isinstance(term, Var)]
        bare = not self.conditions and not self.positive and len(copied) == len(self.columns)
        object.__setattr__(self, "plain", tuple(copied) if bare else None)

    def __str__(self) -> str:
        where = "".join(f", {condition}" for condition in self.conditions)
        return f"{self.name}({', '.join(map(str, self.columns))}) of {self.predicate}{where}"

    def of_all(self, version: Version, symbols: SymbolTable) -> tuple[Ints, Ints | None]:
        """What `of` says of all rows of a version of the relation below, of which no other columns are copied."""
        if self.plain is not None:
            return version.some_columns(self.plain), None
        return self._made(
            dict(zip(self.reads, version.some_columns(self.reads), strict=True)), version.count(), symbols
        )

    def of(self, rows: Ints, symbols: SymbolTable) -> tuple[Ints, Ints | None]:
        """Of `rows` int64[arity, n] of the relation below: (its rows int64[columns, m], of which row each is made).

        None: from all. Raises `NoEvents` where a term has no value for a row.
        """
        if self.plain is not None:
            return rows[list(self.plain)], None
        return self._made({i: rows[i] for i in self.reads}, rows.shape[1], symbols)

    def _made(self, read: Mapping[int, Ints], n: int, symbols: SymbolTable) -> tuple[Ints, Ints | None]:
        columns = TermColumns({COLUMN.format(i): column for i, column in read.items()}, n, symbols)
        kept = None
        if self.conditions:
            met, without = columns.met(self.conditions)
            if without.any():
                raise NoEvents(f"a condition on `{self.predicate}` has no value for some row")
            columns.take(met)
            kept = np.flatnonzero(met)
        made = np.empty((len(self.columns), columns.count), np.int64)
        for i, term in enumerate(self.columns):
            made[i] = columns.codes(term)
        if not columns.defined.all():
            raise NoEvents(f"what is computed of `{self.predicate}` has no value for some row")
        for i in self.positive:
            if made.shape[1] and int(made[i].min()) < 0:
                large = self.columns[i].type == "unsigned"
                raise NoEvents(f"it adds {'unsigned numbers of 2^63 or more' if large else 'negative numbers'}")
        return made, kept


def _number(var: Var) -> int:
    """Which column of the relation below a variable is."""
    return int(var.name[1:])


class Magnitudes:
    """How large what statements compute with has been, and what follows for what they compute: `checked` terms.

    The rules wrap, or have no value, where a term leaves its type; statements, which may add up before they multiply,
    do neither. So what could leave it is not kept by triggers.
    """

    def __init__(self, checked: Sequence[Term]) -> None:
        self.checked = checked
        # What each variable is at most, in absolute value: rounded up, so that it seldom grows, where that may be.
        self._most: dict[str, int] = {}

    def measure(self, relation: DerivedRelation, rows: Ints) -> None:
        """Take rows int64[columns, n] of a relation into account. Raises `NoEvents` if a term could leave its type."""
        if rows.shape[1]:
            for column, name in relation.measured:
                values = rows[column]
                self.take(name, max(int(values.max()), -int(values.min())))

    def take(self, name: str, value: int) -> None:
        """A variable may have this absolute value. Raises `NoEvents` if a term could leave its type then."""
        before = self._most.get(name, -1)
        if value <= before:
            return
        self._most[name] = 1 << value.bit_length()
        try:
            self._check()
        except NoEvents:
            self._most[name] = value
            try:
                self._check()
            except NoEvents:
                # The rows that have this value may be refused, and the next ones are measured again.
                self._most[name] = before
                raise

    def noted(self) -> dict[str, int]:
        """What is known of the variables, to go on from (`go_on_from`)."""
        return dict(self._most)

    def go_on_from(self, noted: Mapping[str, int]) -> None:
        """Know of the variables what was noted, of the same terms."""
        self._most = dict(noted)

    def most(self, name: str) -> int:
        """The absolute value up to which a variable may be taken without looking again."""
        return min(self._most.get(name, -1), NUMBER_MAX)

    def _check(self) -> None:
        for term in self.checked:
            self._magnitude(term)

    def _magnitude(self, term: Term) -> int:
        """The largest absolute value that a term can have."""
        if isinstance(term, Var):
            return max(self._most.get(term.name, 0), 0)
        if isinstance(term, Value):
            return abs(int(type_of(term.type).read(term.value)))
        assert isinstance(term, Apply)
        parts = [self._magnitude(arg) for arg in term.args]
        largest = parts[0] * parts[1] if term.op == "*" else sum(parts)
        made = type_of(term.type)
        if largest > min(made.high, -(made.low + 1)):
            raise NoEvents(f"`{term}` may leave the range of {term.type}")
        return largest


class Events(NamedTuple):
    """Events in order: `kinds` int64[n] · `rows` int64[n, columns] · `numbers` int64[n], of the changes."""

    kinds: Ints
    rows: Ints
    numbers: Ints


def in_one(parts: Sequence[Events]) -> Events:
    """The events of all parts, ordered by their numbers; those of one number by parts."""
    kinds, rows, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    if len(numbers) and (np.diff(numbers) < 0).any():
        order = np.argsort(numbers, kind="stable")
        kinds, rows, numbers = kinds[order], rows[order], numbers[order]
    return Events(kinds, rows, numbers)


class ChangedRows(NamedTuple):
    """Changes of one relation below: `rows` int64[arity, n], `signs` int8[n] (1, -1), `numbers` int64[n] in order."""

    relation: str
    rows: Ints
    signs: npt.NDArray[np.int8]
    numbers: Ints


class EventMaker:
    """Makes events of changes. `kinds`: the number of each event, by sign and derived relation; `width`: of rows."""

    def __init__(
        self,
        relations: Iterable[DerivedRelation],
        kinds: Mapping[tuple[int, str], int],
        width: int,
        checked: Sequence[Term],
    ) -> None:
        self.by_predicate: dict[str, list[tuple[DerivedRelation, int, int]]] = {}
        for made in relations:
            known = kinds[INSERTION, made.name], kinds[DELETION, made.name]
            self.by_predicate.setdefault(made.predicate, []).append((made, *known))
        self.width = width
        self.magnitudes = Magnitudes(checked)

    def of(self, blocks: Sequence[ChangedRows], symbols: SymbolTable) -> Events:
        """The events of blocks of changes, ordered by the numbers of these, the relations of a change in their order.

        Raises `NoEvents`.
        """
        if len(blocks) == 1 and len(made := self.by_predicate[blocks[0].relation]) == 1:
            return self.of_one(made[0], blocks[0], symbols)
        parts = [self.of_one(made, block, symbols) for block in blocks for made in self.by_predicate[block.relation]]
        return in_one(parts)

    def of_one(self, made: tuple[DerivedRelation, int, int], block: ChangedRows, symbols: SymbolTable) -> Events:
        """The events of one of the derived relations, with the numbers of its events. Raises `NoEvents`."""
        relation, insertion, deletion = made
        columns, kept = relation.of(block.rows, symbols)
        signs, numbers = block.signs, block.numbers
        if kept is not None:
            signs, numbers = signs[kept], numbers[kept]
        return Events(np.where(signs > 0, insertion, deletion), self._rows(relation, columns), numbers)

    def of_all(
        self,
        made: tuple[DerivedRelation, int, int],
        version: Version,
        last: npt.NDArray[np.bool_],
        symbols: SymbolTable,
    ) -> tuple[Events, Events]:
        """The insertions of all rows of a version, in two parts: those made of the rows that are marked `last`.

        `last` bool[rows of the version]. Their numbers are all 0. Raises `NoEvents`.
        """
        relation, insertion, _ = made
        columns, kept = relation.of_all(version, symbols)
        marked, rows = last if kept is None else last[kept], self._rows(relation, columns)
        parts = [rows[~marked], rows[marked]]
        first, second = (Events(np.full(len(part), insertion), part, np.zeros(len(part), np.int64)) for part in parts)
        return first, second

    def _rows(self, relation: DerivedRelation, columns: Ints) -> Ints:
        """Rows of a derived relation, int64[columns, n], as events have them: int64[n, width]. Raises `NoEvents`."""
        if relation.measured:
            self.magnitudes.measure(relation, columns)
        rows = np.zeros((columns.shape[1], self.width), np.int64)
        rows[:, : len(columns)] = columns.T
        return rows
