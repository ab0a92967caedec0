"""Columns of codes by variable, and terms computed over them, a column at a time.

    x, y of some rows    ->    the codes of x * (y - 1), and of which rows it has a value

For what reads columns (by_columns.py), computes texts (text_steps.py) or keys (recursion/key_rules.py), and for rows of
streams. Where numpy means the same, it computes (column_functions.py, text_arrays.py), else the machine of joins; for
texts, functions of Python are called once for each distinct combination of arguments. A term of one variable whose
values lie close together is computed once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.evaluate import column_functions, text_arrays
from lftj.evaluate.column_functions import OF_DAYS, days_of
from lftj.join.dense_groups import Places
from lftj.language.clause import Apply, Compare, Parameter, Term, Value, Var, names_of
from lftj.language.functors import TEXT_TESTS, known_as
from lftj.language.types import DATE, TIMESTAMP
from lftj.plan.lowering import apply_columns
from lftj.plan.partial_functions import UNDEFINED, term_of_test
from lftj.program.text_split import computes_text
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary, to_stored
from lftj.values.value_type import Misfit
from scantree.consolidate import runs_of

Rows = npt.NDArray[np.int64]
# Rows for each value that a variable may have, from which on terms of it are computed once for each value.
REPEATED = 4
NOTHING_GIVEN: Mapping[str, int] = {}


class TermColumns:
    """Columns of codes by variable, and terms evaluated over them.

    A row for which a term has no value holds any code there, and goes with the next `take`; `undefined` says that one
    went so.
    """

    def __init__(
        self, columns: dict[str, Rows], count: int, symbols: SymbolTable, given: Mapping[str, int] = NOTHING_GIVEN
    ) -> None:
        self.columns, self.count, self.symbols, self.given = columns, count, symbols, given
        self.undefined = False
        self._defined = np.ones(count, np.bool_)

    def take(self, keep: npt.NDArray[np.bool_]) -> None:
        """Keep only the rows marked, of those whose terms all have values."""
        self.undefined = self.undefined or not self._defined.all()
        keep = keep & self._defined
        if keep.all():
            return
        self.columns = {name: column[keep] for name, column in self.columns.items()}
        self.count = int(np.count_nonzero(keep))
        self._defined = np.ones(self.count, np.bool_)

    @property
    def defined(self) -> npt.NDArray[np.bool_]:
        """The rows whose terms all have values, of those evaluated since the last `take`."""
        return self._defined

    def met(self, conditions: Sequence[Compare]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """(the rows that meet all conditions, those that meet all but some that have no value)."""
        tests = [condition for condition in conditions if _is_null_test(condition)]
        if tests and len(tests) < len(conditions):
            # A condition on what cannot be null is asked of the rows only in which it is not.
            held = np.ones(self.count, np.bool_)
            for test in tests:
                held &= self.holds(test)
            others = [condition for condition in conditions if not _is_null_test(condition)]
            if held.all():
                return self.met(others)
            tested = self.marked(held, (side for other in others for side in (other.left, other.right)))
            kept, without = np.zeros(self.count, np.bool_), np.zeros(self.count, np.bool_)
            kept[held], without[held] = tested.met(others)
            return kept, without
        kept, without = np.ones(self.count, np.bool_), np.zeros(self.count, np.bool_)
        before = self._defined
        for condition in conditions:
            self._defined = np.ones(self.count, np.bool_)
            held = self.holds(condition)
            kept &= held | ~self._defined
            without |= ~self._defined
        self._defined = before
        return kept & ~without, kept & without

    def marked(self, rows: npt.NDArray[np.bool_], terms: Iterable[Term]) -> TermColumns:
        """The rows marked, with the columns that terms read."""
        columns = {name: self.columns[name][rows] for name in names_of(*terms)}
        return TermColumns(columns, int(np.count_nonzero(rows)), self.symbols, self.given)

    def codes_where(self, held: npt.NDArray[np.bool_], term: Term) -> Rows:
        """The codes of `term` for the rows marked, and 0 for the others, for which it need not have a value."""
        if held.all():
            return self.codes(term)
        marked = self.marked(held, [term])
        codes = np.zeros(self.count, np.int64)
        codes[held] = marked.codes(term)
        self._defined[held] &= marked.defined
        return codes

    def holds(self, compare: Compare) -> npt.NDArray[np.bool_]:
        """Which rows satisfy `compare`."""
        if compare.op == UNDEFINED:
            assert isinstance(compare.left, Apply)
            for arg in compare.left.args:
                self.codes(arg)
            with_arguments = self._defined.copy()
            self.codes(compare.left)
            without, self._defined = ~self._defined, with_arguments
            return without
        if compare.op in TEXT_TESTS:
            wanted = not compare.op.startswith("not_")
            term = term_of_test(compare)
            answer = self._applied(term.op, term.args, term.type)
            held: npt.NDArray[np.bool_] = (answer != 0) == wanted
            return held
        left, right = self.codes(compare.left), self.codes(compare.right)
        if compare.op not in ("=", "!="):
            left = self.symbols.order(left, compare.left.type)
            right = self.symbols.order(right, compare.right.type)
        result: npt.NDArray[np.bool_] = _ORDER[compare.op](left, right)
        return result

    def codes(self, term: Term) -> Rows:
        """The codes of `term`, one per row."""
        if isinstance(term, Var):
            return self.columns[term.name]
        if isinstance(term, Value):
            code = self.symbols.intern_value(term.value, term.type)
            return np.full(self.count, code, np.int64)
        if isinstance(term, Parameter):
            return np.full(self.count, self.given[term.name], np.int64)
        if (known := self._once_for_each(term)) is not None:
            return known
        own = Apply(term.op, tuple(Var("", arg.type) for arg in term.args), term.type)
        if computes_text(own):
            return self._applied(term.op, term.args, term.type)
        arguments = [self.codes(arg) for arg in term.args]
        if term.op in OF_DAYS and term.args[0].type == TIMESTAMP:  # there are fewer days than instants
            days = TermColumns({"": days_of(arguments[0])}, self.count, self.symbols)
            return days.codes(replace(term, args=(Var("", DATE),)))
        whole = column_functions.applied(term.op, [arg.type for arg in term.args], arguments, term.type)
        if whole is not None:
            return whole
        codes, defined = apply_columns(term, arguments)
        self._defined &= defined
        return codes

    def _once_for_each(self, term: Apply) -> Rows | None:
        """The codes of a term of one variable, computed once for each of its values; None if these are many."""
        names = names_of(term)
        if len(names) != 1:
            return None
        column = self.columns[min(names)]
        places = Places.of(column[None, :])
        if places is None or places.room * REPEATED > self.count:
            return None
        if places.room == 1:
            once = TermColumns({min(names): column[:1]}, 1, self.symbols, self.given)
            code = once.codes(term)[0]
            self._defined &= once.defined
            return np.full(self.count, code)
        at = column - places.least[0]
        if places.steps[0] > 1:
            at //= places.steps[0]
        there = np.zeros(places.room, np.bool_)
        there[at] = True
        values = places.groups(np.flatnonzero(there))[0]
        once = TermColumns({min(names): values}, len(values), self.symbols, self.given)
        codes, defined = np.zeros(places.room, np.int64), np.zeros(places.room, np.bool_)
        codes[there], defined[there] = once.codes(term), True
        defined[there] = once.defined
        self._defined &= defined[at]
        found: Rows = codes[at]
        return found

    def _applied(self, op: str, args: Sequence[Term], type: str) -> Rows:
        """A functor over texts applied to terms, once per distinct combination of codes."""
        arguments, function = [self.codes(arg) for arg in args], known_as(op).text
        assert function is not None
        if not self.count:
            return np.empty(0, np.int64)
        whole = text_arrays.applied(op, args, arguments, self.symbols)
        if whole is None:
            whole = column_functions.applied(op, [arg.type for arg in args], arguments, type)
        if whole is not None:
            return whole
        rows, order, starts = runs_of(np.stack(arguments))
        distinct, runs = rows[:, starts], np.repeat(np.arange(len(starts)), np.diff(starts, append=self.count))
        inverse = runs
        if order is not None:
            inverse = np.empty(self.count, np.int64)
            inverse[order] = runs
        values = []
        for column, arg in zip(distinct, args, strict=True):
            values.append(self.symbols.values(column, arg.type))
        results = [_value(function, row, type) for row in zip(*values, strict=True)]
        self._defined &= np.array([result is not None for result in results])[inverse]
        if in_dictionary(type):
            codes = self.symbols.intern(["" if result is None else result for result in results])
        else:
            codes = np.array([0 if result is None else result for result in results], np.int64)
        return codes[inverse]


def _value(function: Callable[..., object], row: tuple[object, ...], type: str) -> Any:
    """`function` of `row` as it is stored, a code or a text of the dictionary; None if there is no such value."""
    try:
        return to_stored(function(*row), type)
    except (ValueError, Misfit):
        return None


def _is_null_test(compare: Compare) -> bool:
    return isinstance(compare.right, Value) and compare.right.value is None  # by `>`, too, where it is the least code


_ORDER: dict[str, Callable[..., npt.NDArray[np.bool_]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
