"""The state of a database: everything that a change of it changes, in one object.

A state is never changed. Whoever changes the database (a load, rules, an evaluation, a transaction) makes the next
state and then puts it in the place of the last with one assignment, which nothing can interrupt: an exception, Ctrl-C
or a full arena before it leaves the database as it was, and a reader in another thread sees the one or the other.

Each derived relation is *fresh* (its content is what its rules derive from the contents below it) or *stale*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lftj.language.clause import INTERNAL, Clause, Directive, owner
from lftj.program.strata import Strata
from lftj.store.stored import StoredRelation
from scantree.version import Version

if TYPE_CHECKING:
    from lftj.program.evaluation import Evaluation
    from lftj.program.undefined import UndefinedRows


class State(NamedTuple):
    """`relations` and `strata`, the `stale` heads, how each clause was last evaluated, and what programs asked for.

    `key_orders`: variable orders forced by the user, by rule number; `maintain`: strategies ("trace", "delta"...);
    `granularity`: of traces ("node" or "interval"). `stopped`: stale heads whose evaluation over these relations ran
    out of time, and in words how: a commit does not begin it again to learn what they were. `undefined`: the rows of
    internal heads that have no value (undefined_groups.py), of those that have such rows. `types`: what the names that
    programs gave to types stand for.
    """

    relations: dict[str, StoredRelation] = {}  # noqa: RUF012  (no state is ever changed)
    strata: Strata = Strata()
    stale: frozenset[str] = frozenset()
    evaluations: dict[Clause, Evaluation] = {}  # noqa: RUF012
    key_orders: dict[int, tuple[str, ...]] = {}  # noqa: RUF012
    directives: tuple[Directive, ...] = ()
    maintain: dict[int, str] = {}  # noqa: RUF012
    granularity: dict[int, str] = {}  # noqa: RUF012
    stopped: dict[str, str] = {}  # noqa: RUF012
    undefined: dict[str, tuple[UndefinedRows, ...]] = {}  # noqa: RUF012
    types: dict[str, str] = {}  # noqa: RUF012

    def together(self, head: str) -> tuple[str, ...]:
        """The heads of the recursive component of `head`, which are derived by rounds (lftj/recursion); else none."""
        return self.strata.recursive.get(head, ())

    def with_facts(self, name: str, facts: Version) -> State:
        """The state after a load: what is derived from `name` is stale, and so is `name` itself if rules derive it."""
        relation = self.relations[name]
        if facts is relation.facts:
            return self
        after = relation.successor(relation.content if self.strata.of(name) else facts, facts)
        return self._replace(relations={**self.relations, name: after}).made_stale((name,))

    def with_evaluations(self, evaluations: Mapping[Clause, Evaluation]) -> State:
        """The state that knows of these evaluations, too."""
        return self._replace(evaluations={**self.evaluations, **evaluations})

    def stopped_in(self, heads: Iterable[str], how: str) -> State:
        """The state after an evaluation of stale `heads` ran out of time."""
        return self._replace(stopped=self.stopped | dict.fromkeys(heads, how))

    def made_stale(self, names: Iterable[str]) -> State:
        """The state in which what is derived from `names`, and those of them that are heads, is stale."""
        above = self.strata.above(names)
        return self._replace(stale=self.stale | above, stopped=self.not_stopped_in(above))

    def not_stopped_in(self, heads: Collection[str]) -> dict[str, str]:
        """`stopped` without `heads`, for which other relations are to be read."""
        return {head: how for head, how in self.stopped.items() if head not in heads}

    def without_relation(self, name: str) -> State:
        """The state without a relation that no other reads, its clauses, and what only they were taken apart into.

        Its constraints go with it, and whatever else is a part of it that nothing reads.
        """
        state = self
        for part, relation in self.relations.items():
            if relation.schema.constraint and owner(part) == name:
                state = state.without_rules(part)
        state = state.without_rules(name)
        strata = state.strata
        parts = {name} | {
            part
            for part in state.relations
            if part.startswith(INTERNAL) and owner(part) == name and not strata.of(part) and not strata.read(part)
        }
        return state._replace(
            relations={other: r for other, r in state.relations.items() if other not in parts},
            stale=state.stale - parts,
            directives=tuple(directive for directive in state.directives if directive.relation != name),
        )

    def without_rules(self, head: str) -> State:
        """The state without the clauses of `head`, and what only they were taken apart into.

        The content of `head` is left to the caller.
        """
        strata = self.strata.without({head})
        constraints = {name for name, relation in self.relations.items() if relation.schema.constraint}
        # A part may read itself, as that of a recursive query does.
        needed = strata.below(h for h in strata.order if not h.startswith(INTERNAL) or h in constraints)
        if unread := [h for h in strata.order if h not in needed]:
            strata = strata.without(unread)
        gone = {h for h in self.strata.order if h.startswith(INTERNAL)} - set(strata.order)
        rules = {clause.rule for clause in strata.clauses}
        evaluations = self.evaluations.copy()  # a new dict would take the hash of every clause
        for clause in self.evaluations:
            if clause.head == head or clause.head in gone:
                del evaluations[clause]
        return self._replace(
            relations={name: r for name, r in self.relations.items() if name not in gone},
            strata=strata,
            stale=self.stale - gone,
            stopped=self.not_stopped_in({head} | gone),
            evaluations=evaluations,
            key_orders={rule: order for rule, order in self.key_orders.items() if rule in rules},
            maintain={rule: value for rule, value in self.maintain.items() if rule in rules},
            granularity={rule: value for rule, value in self.granularity.items() if rule in rules},
            undefined={name: rows for name, rows in self.undefined.items() if name not in gone},
        )
