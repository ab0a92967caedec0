"""Recursion along data as a circuit: which keys values are computed from, and what is refused if they have a cycle.

A nested circuit that computes each key from others comes to rest where the rows that lead from key to key have no
cycle; with one its values may change without end. So these rows are looked at before it runs: as edges of keys, in a
stream that must have no cycle. A change can close one only by an edge that came, and so within what is above that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lftj.language.clause import BodyAtom, Clause, Term, Value, Var
from lftj.language.internal_relations import is_part
from lftj.recursion.fixpoint import not_among
from lftj.recursion.key_graph import Precedence, Rows, cycle_error, distinct
from lftj.streams.integral import Integral, Order, ascending
from lftj.streams.operators import PER_KEY, Operator, Room, Tick, zset_of
from lftj.streams.operators import Value as StreamValue
from lftj.streams.stream import Stream
from lftj.streams.zsets import ZSet
from lftj.values.schema import Column, Schema
from scantree.consolidate import numbered


@dataclass(frozen=True)
class Leads(Operator):
    """Of each row an edge of keys, as codes: from the key that it looks up to the one whose value it is for.

    `ends`: of both the number of the head, and the parts of the key, each a column of the row or a constant with its
    type; as many numbers for each end as there are in the longest, `width`.
    """

    symbol: ClassVar[str] = "leads"
    ends: tuple[tuple[int, tuple[int | tuple[Any, str], ...]], ...]
    width: int

    def step(self, state: Any, values: Sequence[StreamValue], tick: Tick) -> tuple[StreamValue, Any]:
        """Row by row."""
        rows = zset_of(values[0])
        made = np.zeros((2 * self.width, len(rows)), np.int64)
        for end, (head, parts) in enumerate(self.ends):
            made[end * self.width] = head
            for i, part in enumerate(parts, end * self.width + 1):
                made[i] = rows.rows[part] if isinstance(part, int) else tick.room.symbols.intern_value(*part)
        return ZSet(made, rows.weights), None


@dataclass(frozen=True, eq=False)
class NoCycle(Operator):
    """Nothing, of `arity` columns; an error if the edges that come in have a cycle.

    `heads`: the schemas of the heads, by number · `clauses`: of all of them.
    """

    symbol: ClassVar[str] = "no cycle"
    law: ClassVar[str] = PER_KEY
    arity: int
    heads: tuple[Schema, ...]
    clauses: tuple[Clause, ...]

    def step(self, state: Any, values: Sequence[StreamValue], tick: Tick) -> tuple[StreamValue, Any]:
        """Look at all edges."""
        self.check(zset_of(values[0]).normal().rows, tick.room)
        return ZSet.zero(self.arity), None

    def changes(self) -> tuple[Operator, Order]:
        """The operator that looks at what a change is below."""
        width = 2 * (1 + max(head.arity - 1 for head in self.heads))
        return NoCycleAfter(self), ascending(range(width))

    def check(self, edges: Rows, room: Room) -> None:
        """Raise the error for a cycle of edges int64[2 * width, n], if there is one."""
        if not edges.shape[1]:
            return
        width, count = len(edges) // 2, edges.shape[1]
        ends = np.concatenate([edges[:width], edges[width:]], axis=1)
        nodes, numbers = numbered(ends)
        _, around = Precedence(numbers.reshape(2, count), nodes.shape[1]).levels()
        if not around:
            return
        named = []
        for head, *codes in nodes[:, around].T.tolist():
            schema = self.heads[head]
            if not is_part(schema.name):
                key = zip(codes, schema.types[:-1], strict=False)
                named.append((schema.name, [room.symbols.value(code, type_) for code, type_ in key]))
        types = {schema.name: schema.types for schema in self.heads}
        raise cycle_error(named, types, self.clauses, "the step was not made")


@dataclass(frozen=True, eq=False)
class NoCycleAfter(Operator):
    """`NoCycle` of edges given by their changes: of these, and of the integrals before and after."""

    symbol: ClassVar[str] = "no cycle"
    of: NoCycle

    def step(self, state: Any, values: Sequence[StreamValue], tick: Tick) -> tuple[StreamValue, Any]:
        """Look at what is above the edges that came."""
        delta, after = zset_of(values[0]).normal(), values[2]
        assert isinstance(after, Integral)
        width = len(delta.rows) // 2
        reached = above = distinct([delta.rows[:width, delta.weights > 0]])
        found: list[Rows] = []
        while above.shape[1]:
            found.append(after.under(above)[0].rows)
            above = not_among(distinct([found[-1][width:]]), reached)
            reached = distinct([reached, above])
        if found:
            self.of.check(np.concatenate(found, axis=1), tick.room)
        return ZSet.zero(self.of.arity), None


def without_cycle(
    relations: Mapping[str, Stream], clauses: Sequence[Clause], heads: Sequence[Schema]
) -> dict[str, Stream]:
    """The rows of a recursion along data, of which none is given to a nested circuit if the keys have a cycle."""
    numbers = {schema.name: number for number, schema in enumerate(heads)}
    width = 1 + max(schema.arity - 1 for schema in heads)
    edges: Stream | None = None
    columns = tuple(Column(f"c{i}", "number") for i in range(2 * width))
    for clause in clauses:
        rows, groups = clause.atoms[0], heads[numbers[clause.head]].arity - 1
        above = numbers[clause.head], tuple(_parts(clause.head_args[:groups], rows))
        for atom in (*clause.atoms[1:], *clause.negated):
            below = numbers[atom.predicate], tuple(_parts(atom.args[:-1], rows))
            leads = relations[rows.predicate]._made(Leads((below, above), width), columns)
            edges = leads if edges is None else edges + leads
    if edges is None:
        return {}
    name = clauses[0].atoms[0].predicate
    made = relations[name]
    never = NoCycle(len(made.columns), tuple(heads), tuple(clauses))
    return {name: made + edges._made(never, made._node.columns)}


def _parts(terms: Sequence[Term | None], rows: BodyAtom) -> Iterator[int | tuple[Any, str]]:
    """Where each term of a key is found in a row."""
    places = {arg.name: i for i, arg in enumerate(rows.args) if isinstance(arg, Var)}
    for term in terms:
        assert isinstance(term, Var | Value)
        yield places[term.name] if isinstance(term, Var) else (term.value, term.type)
