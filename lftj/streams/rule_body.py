"""A clause of a program as streams: the bindings of its variables, and the rows that it derives.

A body is a chain of joins of its atoms, filters and maps, in the order in which variables become bound; a negated atom
takes away what agrees with it. Aggregates are functions by key over the bindings of their braces. A sum may have no
value for a group: the group then has no row, and is one of those `without_result` (refused.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from lftj.language.aggregate_specs import AGGREGATES, accumulated, by_counts
from lftj.language.clause import BodyAtom, Clause, Compare, Term, Value, Var, names_of
from lftj.streams.by_key import ByKey
from lftj.streams.constant import Constant
from lftj.streams.expressions import Map, definition
from lftj.streams.graph import Graph
from lftj.streams.integral import ascending
from lftj.streams.join import Join
from lftj.streams.operators import Columns, Plus
from lftj.streams.ranking import Joined, QuantileByKey, Ranking, TopK
from lftj.streams.stream import Stream, type_of_either
from lftj.streams.totals import Total, Totals
from lftj.values.schema import Column


def constant(graph: Graph, rows: Sequence[tuple[int | float | str, ...]], columns: Columns) -> Stream:
    """A stream that has the same rows at every tick."""
    constant = Constant(tuple(rows), tuple(column.type for column in columns))
    return Stream(graph, graph.add(constant, [], columns))


# Whether a group is without a value, and how many bindings it has.
LACKS, BINDINGS = Column("·lacks", "number"), Column("·bindings", "number")


class ClauseStreams:
    """The bindings of a clause's variables, as a stream with a column for each that is bound so far.

    `without_result`: once the head is made, the groups of its aggregate without a value; None if all have one.
    """

    def __init__(self, graph: Graph, clause: Clause, known: Mapping[str, Stream]) -> None:
        self.clause, self.known = clause, known
        self.without_result: Stream | None = None
        self.left = list(clause.compares)
        self.wildcards = 0
        atoms = list(clause.atoms)
        self.stream: Stream | None = None
        while atoms:
            atom = self._next(atoms)
            atoms.remove(atom)
            self._join(self._atom(atom, wildcards=clause.aggregate is not None))
            self._compare()
        if self.stream is None:
            self.stream = constant(graph, ((),), ())
        self._compare()
        for atom in clause.negated:
            self._without(self._atom(atom))
        assert not self.left, "a checked clause binds every variable"

    def _bound(self) -> dict[str, str]:
        return {} if self.stream is None else self.stream.columns

    def _next(self, atoms: Sequence[BodyAtom]) -> BodyAtom:
        """The first atom that shares a variable with what is bound, else the first."""
        bound = self._bound()
        for atom in atoms:
            if any(isinstance(arg, Var) and arg.name in bound for arg in atom.args):
                return atom
        return atoms[0]

    def _atom(self, atom: BodyAtom, *, wildcards: bool = False) -> Stream:
        """The rows of a relation as bindings of the atom's variables; `wildcards` are variables, too."""
        stream = self.known[atom.predicate]
        names = tuple(f"c{i}" for i in range(len(atom.args)))
        conditions: list[Compare] = []
        made: dict[str, Term] = {}
        columns: list[Column] = []
        for i, (arg, column) in enumerate(zip(atom.args, stream._node.columns, strict=True)):
            here = Var(names[i], column.type)
            if isinstance(arg, Var) and arg.name not in made:
                made[arg.name] = here
                columns.append(Column(arg.name, column.type))
            elif arg is None:
                if wildcards:
                    self.wildcards += 1
                    name = f"·{self.wildcards}"
                    made[name] = here
                    columns.append(Column(name, column.type))
            else:
                conditions.append(Compare("=", here, made[arg.name] if isinstance(arg, Var) else arg))
        return stream._made(
            Map(names, tuple(conditions), tuple(made.values()), str(atom), lenient=True), tuple(columns)
        )

    def _join(self, atom: Stream) -> None:
        if self.stream is None:
            self.stream = atom
        else:
            # Null matches null: where it is not to, a condition says so.
            on = [name for name in atom.columns if name in self.stream.columns]
            self.stream = self.stream._joined(atom, on, Join)

    def _without(self, atom: Stream) -> None:
        assert self.stream is not None
        left, right = self.stream._keys(atom, list(atom.columns))
        self.stream = self.stream - self.stream._semijoined(atom, left, right, nulls=True)

    def _compare(self) -> None:
        """Filter by the comparisons whose variables are bound, and bind what equations can compute."""
        assert self.stream is not None
        done = False
        while not done:
            done = True
            bound = self._bound()
            ready = [c for c in self.left if self._names(c) <= bound.keys()]
            if ready:
                self.left = [c for c in self.left if c not in ready]
                self._map(tuple(ready), self._kept())
                done = False
                continue
            for compare in self.left:
                found = definition(compare, bound)
                if found is not None:
                    self.left.remove(compare)
                    self._map((), {**self._kept(), found[0].name: found[1]})
                    done = False
                    break

    def _names(self, compare: Compare) -> set[str]:
        return names_of(compare.left, compare.right)

    def _kept(self) -> dict[str, Term]:
        return {name: Var(name, type_) for name, type_ in self._bound().items()}

    def _map(self, conditions: tuple[Compare, ...], made: Mapping[str, Term]) -> None:
        assert self.stream is not None
        text = ", ".join([*map(str, conditions), *(f"{n} = {t}" for n, t in made.items() if str(t) != n)])
        columns = tuple(Column(name, term.type) for name, term in made.items())
        terms = None if len(made) == len(self._bound()) else tuple(made.values())
        self.stream = self.stream._made(Map(tuple(self._bound()), conditions, terms, text, lenient=True), columns)

    def add(self, others: Sequence[ClauseStreams]) -> None:
        """The bindings of other clauses as well: those of the variables that all of them have.

        Where a variable may be null in one of them, the others have no value whose code is that of null.
        """
        bounds = [body._bound() for body in (self, *others)]
        shared = [name for name in bounds[0] if all(name in bound for bound in bounds)]
        columns = tuple(Column(name, reduce(type_of_either, (bound[name] for bound in bounds))) for name in shared)
        first, *more = [body.stream.select(*shared) for body in (self, *others) if body.stream is not None]
        self.stream = first._made(Plus(), columns, *more)

    def head(self, columns: Columns) -> Stream:
        """The rows that the clause derives."""
        assert self.stream is not None
        clause, names = self.clause, tuple(self._bound())
        aggregate = clause.aggregate
        if aggregate is None:
            text = ", ".join(map(str, clause.head_args))
            return self.stream._made(Map(names, (), clause.head_args, text, lenient=True), columns)
        groups, operand = aggregate.groups, clause.head_args[aggregate.groups :]
        key = tuple(range(groups))
        if accumulated(aggregate.op):
            bindings = self.stream.distinct()
            terms = (*clause.head_args[:groups], *operand)
            kinds = tuple(Column(f"a{i}", term.type) for i, term in enumerate(terms))
            rows = bindings._made(Map(names, (), terms, ", ".join(map(str, terms)), lenient=True), kinds)
            column, type_ = (groups, operand[0].type) if operand else (-1, "")
            times = groups + 1 if clause.is_counted else -1
            total = Total(str(clause), aggregate.op, column, type_, times)
            totals = Totals(key, columns[:groups], (total,))
            if aggregate.op == "count":
                return rows._made(totals, columns)
            least = AGGREGATES[aggregate.op].least
            counted = (Total("count", "count", -1, "", times),) if least > 1 else ()
            totals = replace(totals, totals=(total, *counted), marked=True)
            marked = rows._made(totals, (*columns, *[BINDINGS] * len(counted), LACKS))
            without = marked._compared(LACKS, "=", Value(1, "number"), "without a value")
            self.without_result = without.select(*(column.name for column in columns[:groups]))
            valued = marked._compared(LACKS, "=", Value(0, "number"), "with a value")
            if counted:
                valued = valued._compared(BINDINGS, ">=", Value(least, "number"), f"of {least} bindings")
            return valued.select(*(column.name for column in columns))
        terms = (*clause.head_args[:groups], *operand)
        rest = tuple(Var(name, type_) for name, type_ in self._bound().items())
        kinds = tuple(Column(f"a{i}", term.type) for i, term in enumerate((*terms, *rest)))
        rows = self.stream._made(Map(names, (), (*terms, *rest), ", ".join(map(str, terms)), lenient=True), kinds)
        if by_counts(aggregate.op):
            number = next(i for i, v in enumerate(rest) if v not in terms)
            narrow = rows.select(*(kinds[i].name for i in (*range(groups + 1), groups + 1 + number)))
            ranking = Ranking(key, ascending((groups,)), narrow._node.columns)
            return narrow._made(ByKey(QuantileByKey(ranking, groups, aggregate.op, groups + 1)), columns)
        if aggregate.op == "cat":
            others = [i for i, v in enumerate(rest, groups + 1) if v not in terms]
            ranking = Ranking(key, ascending((*others, groups)), kinds)
            return rows._made(ByKey(Joined(ranking, groups)), columns)
        ranking = Ranking(key, ((groups, aggregate.op == "max"),), kinds)
        best = rows._made(ByKey(TopK(ranking, 1, once=True, symbol=aggregate.op)), kinds)
        return best.select(*(c.name for c in kinds[: groups + 1]))
