"""The trace of a clause that computes texts: traces of its parts, and the step between them.

    p(z, w) :- r(x, y), z = cat(x, y), q(z, w).

    inner   ·(x, y)    :- r(x, y).                    a trace like any other; each binding is one row
    step    z := cat(x, y)                            a function of the row, so the change is mapped as the rows are
    between ·(x, y, z)                                stored, if the outer part joins it with anything
    outer   p(z, w)    :- ·(x, y, z), q(z, w).        a trace over it, or of the same kind again

Where the outer part only takes columns of the rows (*map*: most rules with texts), nothing is stored between: what
the inner trace loses and gains becomes what the rule does.

Used like a `ClauseTrace` by who maintains a head; what is staged is adopted or discarded as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lftj.evaluate.term_columns import TermColumns
from lftj.evaluate.text_steps import step
from lftj.join.run import Counters, Limits
from lftj.language.clause import Clause, Var
from lftj.maintain.clause_trace import ClauseTrace, Maintained, Trace
from lftj.maintain.step import TraceChange, trace_change
from lftj.maintain.trace_layout import Order
from lftj.program.text_split import TextSplit
from lftj.store.change import change_of_rows
from lftj.store.stored import StoredRelation
from lftj.values.symbols import SymbolTable
from scantree.version import Rows, Version

Versions = Mapping[Order, Version]


def is_map(split: TextSplit) -> bool:
    """Whether the outer part only takes columns of the intermediate rows."""
    return len(split.outer.atoms) == 1 and not split.outer.compares and not split.outer.negated


def mapped(split: TextSplit, rows: Rows, count: int, symbols: SymbolTable) -> tuple[Rows, bool]:
    """What a map makes of rows int64[inner's columns, count]: (rows of the head, whether a term had no value)."""
    stepped = step(split, rows, count, symbols)
    columns = TermColumns(dict(zip(split.schema.names, stepped.rows, strict=True)), stepped.size, symbols)
    made = {i: columns.codes(term) for i, term in enumerate(split.outer.head_args)}
    stacked = np.stack(list(made.values())) if made else np.empty((0, stepped.size), np.int64)
    columns.columns = {str(i): row for i, row in enumerate(stacked)}
    columns.take(np.ones(stepped.size, np.bool_))
    kept = np.stack(list(columns.columns.values())) if made else stacked
    return kept, stepped.undefined or columns.undefined


@dataclass(slots=True)
class TextMaintained:
    """What maintaining came to, as `Maintained` says it: of both parts together.

    `inner`, `outer`: what is staged for them (None: nothing to do) · `between`: the intermediate relation after it ·
    `stepped`, `saw_undefined`: of the trace after it.
    """

    erased: list[Rows]
    inserted: list[Rows]
    inner: Maintained | None
    outer: Maintained | TextMaintained | None
    between: StoredRelation | None
    stepped: bool
    saw_undefined: bool = False

    @property
    def parts(self) -> list[Maintained | TextMaintained]:
        """What is staged."""
        return [part for part in (self.inner, self.outer) if part is not None]

    @property
    def steps(self) -> int:
        """Steps of both parts."""
        return sum(part.steps for part in self.parts)

    @property
    def surgeries(self) -> int:
        """Surgeries that were looked at."""
        return sum(part.surgeries for part in self.parts)

    @property
    def removed(self) -> int:
        """Records that went."""
        return sum(part.removed for part in self.parts)

    @property
    def added(self) -> int:
        """Records that came."""
        return sum(part.added for part in self.parts)


@dataclass(slots=True)
class TextTrace(Trace):
    """The recorded trace of `clause`, split as `split`.

    `outer` and `between` are None for a map. `stepped`: whether a term of the step had no value for some row.
    """

    clause: Clause
    split: TextSplit
    inner: ClauseTrace
    symbols: SymbolTable
    outer: ClauseTrace | TextTrace | None = None
    between: StoredRelation | None = None
    stepped: bool = False
    orders: tuple[Order, ...] = field(init=False)

    def __post_init__(self) -> None:
        own = () if self.outer is None else self.outer.orders
        self.orders = tuple(dict.fromkeys((*self.inner.orders, *(o for o in own if o[0] != self.split.schema.name))))

    @property
    def parts(self) -> tuple[ClauseTrace, ...]:
        """The traces of joins that it consists of."""
        return (self.inner, *(() if self.outer is None else self.outer.parts))

    @property
    def saw_undefined(self) -> bool:
        """Whether a term has no value for some row, in a part or in a step."""
        return self.stepped or self.inner.saw_undefined or (self.outer is not None and self.outer.saw_undefined)

    @property
    def stepped_rows(self) -> int:
        """Rows for which texts were computed when it was recorded."""
        return self.inner.counters.rows + (self.outer.stepped_rows if isinstance(self.outer, TextTrace) else 0)

    @property
    def once(self) -> bool:
        """Whether a binding of the rule is known by the row it derives: it names what the inner part binds."""
        shown = {term.name for term in self.split.outer.head_args if isinstance(term, Var)}
        return self.outer is None and shown >= set(self.split.schema.names[: len(self.split.inner.head_args)])

    @property
    def counters(self) -> Counters:
        """What recording took, all parts together."""
        done = [part.counters for part in self.parts]
        return Counters(*(sum(getattr(c, name) for c in done) for name in ("steps", "seeks", "opens", "rows")))

    def maintain(
        self, old: Versions, new: Versions, changes: Mapping[Order, TraceChange], limits: Limits
    ) -> TextMaintained:
        """What the `changes`, which lead from `old` to `new`, do to the clause. The trace stays as it is."""
        own = {order: changes[order] for order in self.inner.orders if order in changes}
        result = TextMaintained([], [], None, None, self.between, self.stepped)
        try:
            if own:
                result.inner = self.inner.maintain(
                    {order: old[order] for order in self.inner.orders},
                    {order: new[order] for order in self.inner.orders},
                    own,
                    limits,
                )
            sides = (result.inner.erased, result.inner.inserted) if result.inner is not None else ([], [])
            if self.outer is None:
                result.erased, result.inserted = ([self._mapped(result, rows)] if rows else [] for rows in sides)
            else:
                self._through(self.outer, result, old, new, changes, limits)
        except BaseException:
            self.discard(result)
            raise
        held = (result.inner or self.inner, result.outer or self.outer)
        result.saw_undefined = result.stepped or any(part is not None and part.saw_undefined for part in held)
        return result

    def _mapped(self, result: TextMaintained, chunks: list[Rows]) -> Rows:
        rows = np.concatenate(chunks, axis=1)
        made, undefined = mapped(self.split, rows, rows.shape[1], self.symbols)
        result.stepped = result.stepped or undefined
        return made

    def _through(
        self,
        outer: ClauseTrace | TextTrace,
        result: TextMaintained,
        old: Versions,
        new: Versions,
        changes: Mapping[Order, TraceChange],
        limits: Limits,
    ) -> None:
        """Take the inner part's change to the intermediate relation, and that with the others to the outer part."""
        assert self.between is not None
        before = after = self.between
        name = self.split.schema.name
        theirs = {order: changes[order] for order in outer.orders if order in changes}
        if result.inner is not None:
            sides = []
            for chunks in (result.inner.erased, result.inner.inserted):
                rows = np.concatenate([np.empty((len(self.split.inner.head_args), 0), np.int64), *chunks], axis=1)
                stepped = step(self.split, rows, rows.shape[1], self.symbols)
                result.stepped = result.stepped or stepped.undefined
                sides.append([stepped.rows])
            change = change_of_rows(before.arity, *sides)
            if len(change.kinds):
                content, _ = before.content.update(change.rows, change.kinds)
                after = before.successor(content, change=change)
                for order in outer.orders:
                    if order[0] == name:
                        columns = order[1]
                        sorted_after = after.order_after(columns, before, change)
                        theirs[order] = trace_change(change, before.order(columns), sorted_after, columns)
        result.between = after
        if theirs:
            result.outer = outer.maintain(
                {o: before.order(o[1]) if o[0] == name else old[o] for o in outer.orders},
                {o: after.order(o[1]) if o[0] == name else new[o] for o in outer.orders},
                theirs,
                limits,
            )
            result.erased, result.inserted = result.outer.erased, result.outer.inserted

    def adopt(self, result: TextMaintained) -> None:
        """Make the outcome of `maintain` the trace."""
        if result.inner is not None:
            self.inner.adopt(result.inner)
        if result.outer is not None and self.outer is not None:
            self.outer.adopt(result.outer)  # type: ignore[arg-type]
        self.between, self.stepped = result.between, result.stepped

    def discard(self, result: TextMaintained) -> None:
        """`result` is not to be adopted; what it staged goes with it."""
        if result.inner is not None:
            self.inner.discard(result.inner)
        if result.outer is not None and self.outer is not None:
            self.outer.discard(result.outer)  # type: ignore[arg-type]

    def memory(self) -> int:
        """Bytes of intermediate relations."""
        own = 0 if self.between is None else sum(self.between.memory().values())
        return own + (self.outer.memory() if isinstance(self.outer, TextTrace) else 0)
