"""What a database refuses, as streams of what must never be (never.py), beside the relations of a circuit of rules.

    terms        rows for which a term has no value, while all holds that needs no such term (undefined_terms.py)
    groups       groups without a value that a rule asks for, while all holds that needs no such value: a sum that its
                 type does not hold, or one of inf and -inf (undefined_groups.py)
    keys         two values under one key of a functional predicate

The rules by which rows are in error are the database's. What it finds by evaluating again, where it met something
without a value, is a stream here for every combination that may occur: of terms, and of atoms over groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple, TypeVar

from lftj.evaluate.rest_of_body import bound_in, rest_of, without_terms
from lftj.evaluate.undefined_groups import asking_for, is_result, joined_columns, known_columns
from lftj.language.clause import INTERNAL, BodyAtom, CheckedProgram, Clause, Compare, Value, Var, owner
from lftj.language.internal_relations import GROUPS, WITH_ZERO
from lftj.language.null import not_null
from lftj.plan.partial_functions import partial_in, partial_of
from lftj.streams.by_key import ByKey
from lftj.streams.expressions import Map
from lftj.streams.graph import Graph
from lftj.streams.join import Join
from lftj.streams.never import Never, TwoValues, Undefined, UndefinedGroup
from lftj.streams.ranking import Ranking, TopK
from lftj.streams.rule_body import ClauseStreams
from lftj.streams.stream import Stream
from lftj.values.schema import Column, Schema

# What has no value is looked at in all combinations, up to so many in a clause; of more, alone and two by two.
TOGETHER = 4

T = TypeVar("T")


class Lacking(NamedTuple):
    """Rows of an internal relation without a value: a stream of their known `columns`, and the aggregate to blame.

    `own`: they are the groups of this aggregate, and not what depends on them.
    """

    columns: tuple[int, ...]
    rows: Stream
    clause: Clause
    own: bool


class Refused:
    """The streams of what must never be, of a program whose relations are there as streams.

    `without_result`: by the head of an aggregate its clause, and the groups without a value.
    """

    def __init__(
        self,
        graph: Graph,
        program: CheckedProgram,
        clauses: Mapping[str, list[Clause]],
        relations: Mapping[str, Stream],
        without_result: Mapping[str, tuple[Clause, Stream]],
    ) -> None:
        self.graph, self.program, self.clauses, self.relations, self.own = (
            graph,
            program,
            clauses,
            relations,
            without_result,
        )
        self.without_result: dict[str, list[Lacking]] = {}
        self.never: dict[str, list[Stream]] = {}

    def streams(self) -> dict[str, list[Stream]]:
        """By relation, the streams that stop the step if they have a row, and add nothing to it."""
        for component in self.program.strata:
            reads = {read for head in component for clause in self.clauses[head] for read in clause.reads}
            # An aggregate with its zeros belongs to a component only for its groups.
            for head in sorted(component, key=lambda head: not head.endswith(WITH_ZERO)):
                self._groups(head, recursive=not reads.isdisjoint(component))
        for clause in self.program.clauses:
            self._terms(clause)
        for name, schema in self.program.schemas.items():
            if schema.functional:
                self._two_values(name, schema)
        return self.never

    def _add(self, name: str, stream: Stream, operator: Never) -> None:
        schema = self.program.schemas[owner(name)]
        self.never.setdefault(schema.name, []).append(stream._made(operator, schema.columns))

    def _width(self, name: str) -> int:
        """The columns of the relation of a user that a head belongs to."""
        return self.program.schemas[owner(name)].arity

    def _rows(self, clause: Clause, more: Mapping[str, Stream]) -> Stream:
        """The rows that a clause derives from relations and `more`."""
        columns = tuple(Column(f"c{i}", term.type) for i, term in enumerate(clause.head_args))
        return ClauseStreams(self.graph, clause, {**self.relations, **more}).head(columns)

    # -- groups -------------------------------------------------------------------------------------------------------

    def _groups(self, head: str, *, recursive: bool) -> None:
        """Find what lacks a value in a head because something in its bodies does; of a user's head it is an error."""
        if head.endswith(GROUPS):
            return
        if head.endswith(WITH_ZERO):
            found = [self._admitted(head, one) for one in self.without_result.get(head.removesuffix(WITH_ZERO), [])]
        else:
            internal, found = head.startswith(INTERNAL) and not recursive, []
            if head in self.own:
                clause, rows = self.own[head]
                if not internal:  # a recursion needs all of its values
                    self._add(head, rows, UndefinedGroup(self._width(head), clause, rows._node.columns, True))
                found = [Lacking(tuple(range(rows._node.arity)), rows, clause, own=True)]
            for clause in self.clauses[head]:
                found += self._asked(clause, internal)
        if found:
            self.without_result[head] = found

    def _admitted(self, head: str, one: Lacking) -> Lacking:
        """The groups of `one` that the aggregate with its zeros `head` has."""
        clause = self.clauses[head][0]
        joined = tuple(not_null(clause.head_args[c]) for c in joined_columns(self.clauses[head], one.columns))
        if not joined:
            return one
        args = tuple(arg for c in one.columns if isinstance(arg := clause.head_args[c], Var))
        known = replace(clause, head_args=args, atoms=(BodyAtom(head, args),), negated=(), compares=joined)
        return one._replace(rows=self._rows(known, {head: one.rows}))

    def _asked(self, clause: Clause, internal: bool) -> Iterator[Lacking]:
        """Ask a clause for rows of its body without a value: those of an internal head, an error for another."""
        body = (*clause.atoms, *clause.negated)
        places = [i for i, atom in enumerate(body) if atom.predicate in self.without_result]
        terms = tuple(dict.fromkeys(term for c in clause.compares for term in partial_of(c)))
        for some in _together(places):
            for chosen in product(*(self.without_result[body[i].predicate] for i in some)):
                of = dict(zip(some, chosen, strict=True))
                asking, first, names = asking_for(
                    clause,
                    [of[i].columns if i in of else None for i in range(len(body))],
                    lambda name: self.program.schemas[name].types,
                    lambda name: is_result(name, self.clauses.get(name, ())),
                )
                more = {names[i]: one.rows for i, one in of.items()}
                for without in ((), *_together(terms)):
                    rest = without_terms(asking, without)
                    if rest is None:
                        continue
                    if internal:
                        columns = known_columns(clause, bound_in(rest))
                        rest = replace(rest, head_args=tuple(clause.head_args[c] for c in columns))
                        yield Lacking(columns, self._rows(rest, more).distinct(), chosen[0].clause, own=False)
                    else:
                        rows = self._rows(replace(rest, head_args=first), more)
                        width = self._width(clause.head)
                        error = UndefinedGroup(width, chosen[0].clause, rows._node.columns, chosen[0].own)
                        self._add(clause.head, rows, error)

    # -- terms --------------------------------------------------------------------------------------------------------

    def _terms(self, clause: Clause) -> None:
        """Rows of a clause for which terms have no value, while all holds that needs no such term."""
        terms = partial_in(clause)
        if not terms:
            return
        # What lacks a value has an error of its own, or none.
        negated, more = list(clause.negated), dict[str, Stream]()
        for atom in (*clause.atoms, *clause.negated):
            for one in self.without_result.get(atom.predicate, ()):
                args = tuple(atom.args[c] for c in one.columns)
                if None not in args:
                    name = f"{atom.predicate}.undefined{len(more)}"
                    more[name] = one.rows
                    negated.append(BodyAtom(name, args))
        clause = replace(clause, negated=tuple(negated))
        for without in _together(terms):
            rest = rest_of(clause, without)
            if rest is None:
                continue
            columns = tuple(Column(str(variable), variable.type) for variable in rest.head_args)
            found = self._rows(rest, more)
            self._add(clause.head, found, Undefined(self._width(clause.head), clause, columns, without[0]))

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _two_values(self, name: str, schema: Schema) -> None:
        """The second row under a key of a functional predicate, with the value of the first as a last column."""
        relation, last = self.relations[name], schema.arity - 1
        ranking = Ranking(tuple(range(last)), (), schema.columns)
        places = relation._made(
            ByKey(TopK(ranking, 2, numbered=True, symbol="second")), (*schema.columns, Column("·place", "number"))
        )
        names = tuple(places.columns)
        is_second = Compare("=", Var(names[-1], "number"), Value(2, "number"))
        second = places._made(Map(names, (is_second,), None, "second"), places._node.columns)
        pairs = second.select(*schema.names)._joined(
            relation.rename(**{schema.names[last]: "·other"}), list(schema.names[:last]), Join
        )
        differ = Compare("!=", Var(schema.names[last], schema.types[last]), Var("·other", schema.types[last]))
        found = pairs._made(Map(tuple(pairs.columns), (differ,), None, str(differ)), pairs._node.columns)
        self._add(name, found, TwoValues(schema.arity, schema))


def _together(several: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """The combinations that are looked at, each without order."""
    most = len(several) if len(several) <= TOGETHER else 2
    for size in range(1, most + 1):
        yield from combinations(several, size)
