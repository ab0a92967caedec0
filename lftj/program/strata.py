"""The clauses of a database in evaluation order: what derives a relation, what lies below it and what above.

`order` lists all heads bottom up: whatever a head reads comes before it. Strata never change; more clauses, or fewer,
make other strata. A relation that no clause derives is *base* and in no order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lftj.language.clause import Clause, owner
from lftj.language.stratify import components

# So many heads of a recursive component are named.
SHOWN = 3
# Sets of relations that strata remember what follows them of: transactions change the same ones again and again.
KEPT = 256


class Heads(NamedTuple):
    """Heads that are derived together: one head, or the members of a recursive component.

    `name`: the first of them; the head, where there is one · `clauses`: those of all of them · `reads`: the relations
    in their bodies, members of a component included · `acyclic`: whether they are evaluated key by key · `grouped`:
    whether one aggregate derives them, so that there is a row per group: of what it derives no two have the same key.
    """

    name: str
    names: tuple[str, ...]
    clauses: tuple[Clause, ...]
    reads: tuple[str, ...]
    recursive: bool
    acyclic: bool = False
    grouped: bool = False


class Affected(dict[tuple[str, ...], tuple[frozenset[str], tuple[Heads, ...]]]):
    """By relations: (the heads that are derived from them, and those of them that are heads; how they are derived).

    The second is what a commit that changes these relations has to do, bottom up. Found when it is first asked for.
    """

    def __init__(self, strata: Strata) -> None:
        self._by_head, self._readers, self._together = strata.by_head, strata._readers, strata.together

    def __missing__(self, names: tuple[str, ...]) -> tuple[frozenset[str], tuple[Heads, ...]]:
        frontier, found = [*names], set(names) & self._by_head.keys()
        while frontier:
            for head in self._readers.get(frontier.pop(), ()):
                if head not in found:
                    found.add(head)
                    frontier.append(head)
        work = tuple(heads for heads in self._together if not found.isdisjoint(heads.names))
        if len(self) >= KEPT:
            self.clear()
        self[names] = known = frozenset(found), work
        return known


class Strata:
    """`clauses`, and `order`: the heads, bottom up.

    `recursive`: of each head that is derived from itself, all heads that are derived together, one after the other in
    `order`. A head of best values (`Clause.best`), or one that is evaluated key by key (`Clause.acyclic`), is there
    whether or not it is still derived from itself.
    `together`: all heads, bottom up, those of a component as one · `by_head`: the clauses of each head · `marked`: the
    clauses that stand for no rule, whose marks (`Aggregate.op`) have a second word · `affected`: by relations that
    change, what follows them.
    """

    __slots__ = ("_readers", "_reads", "affected", "by_head", "clauses", "marked", "order", "recursive", "together")

    def __init__(self, clauses: Iterable[Clause] = (), order: Iterable[str] = ()) -> None:
        self.clauses = tuple(clauses)
        self.order = tuple(order)
        self.marked = tuple(c for c in self.clauses if c.aggregate is not None and " " in c.aggregate.op)
        self.by_head: dict[str, list[Clause]] = {}
        self._readers: dict[str, dict[str, None]] = {}
        for clause in self.clauses:
            self.by_head.setdefault(clause.head, []).append(clause)
            for name in clause.reads:
                self._readers.setdefault(name, {})[clause.head] = None
        self._reads = {
            head: {name: None for clause in own for name in clause.reads} for head, own in self.by_head.items()
        }
        graph = {head: list(self.reads(head)) for head in self.by_head}
        self.recursive: dict[str, tuple[str, ...]] = {}
        for found in components(graph):
            alone = len(found) == 1 and found[0] not in graph[found[0]]
            if not alone or any(clause.best or clause.acyclic for clause in self.by_head[found[0]]):
                self.recursive |= dict.fromkeys(found, found)
        members = dict.fromkeys(self.recursive.get(head, (head,)) for head in self.order)
        self.together = tuple(map(self._heads, members))
        self.affected = Affected(self)

    def _heads(self, names: tuple[str, ...]) -> Heads:
        clauses = tuple(clause for name in names for clause in self.of(name))
        reads = tuple(dict.fromkeys(read for name in names for read in self.reads(name)))
        acyclic = any(clause.acyclic for clause in clauses)
        grouped = len(clauses) == 1 and clauses[0].aggregate is not None
        return Heads(names[0], names, clauses, reads, names[0] in self.recursive, acyclic, grouped)

    def heads_of(self, head: str) -> Heads:
        """The heads that `head` is derived with."""
        return self._heads(self.recursive.get(head, (head,)))

    def extended(self, added: Iterable[Clause], order: Iterable[str]) -> Strata:
        """These and more clauses; `order` lists all heads, bottom up."""
        more, names = tuple(added), tuple(order)
        known = names[: len(self.order)]
        if known != self.order or any(clause.head in self.by_head or self.read(clause.head) for clause in more):
            return Strata((*self.clauses, *more), names)
        # Nothing that is there reads what is new: it is put on top, and rule after rule does not take the square.
        after = Strata(more, names[len(known) :])
        after.clauses, after.order = (*self.clauses, *more), names
        after.marked, after.together = (*self.marked, *after.marked), (*self.together, *after.together)
        readers = dict(self._readers)
        for name, heads in after._readers.items():
            readers[name] = readers.get(name, {}) | heads
        after.by_head, after._reads = self.by_head | after.by_head, self._reads | after._reads
        after.recursive, after._readers = self.recursive | after.recursive, readers
        after.affected = Affected(after)
        return after

    def without(self, heads: Collection[str]) -> Strata:
        """The clauses of all other heads."""
        clauses = tuple(c for c in self.clauses if c.head not in heads)
        order = [name for name in self.order if name not in heads]
        torn = dict.fromkeys(self.recursive[head] for head in heads if head in self.recursive)
        for members in torn:  # what was recursive may be so no more: some of these heads are below others then
            graph = {name: [r for r in self.reads(name) if r in members] for name in members if name not in heads}
            again = iter([name for found in components(graph) for name in found])
            order = [next(again) if name in graph else name for name in order]
        if torn:
            return Strata(clauses, order)
        # The others are derived as before: to drop relation after relation does not take the square.
        after = Strata()
        after.clauses, after.order, after.recursive = clauses, tuple(order), self.recursive
        after.marked = tuple(c for c in self.marked if c.head not in heads)
        after.together = tuple(group for group in self.together if group.name not in heads)
        after.by_head, after._reads, after._readers = self.by_head.copy(), self._reads.copy(), self._readers.copy()
        for head in heads:
            after.by_head.pop(head, None)
            for name in after._reads.pop(head, {}):
                readers = {reader: None for reader in after._readers.pop(name) if reader != head}
                if readers:
                    after._readers[name] = readers
        after.affected = Affected(after)
        return after

    def moved_since(self, before: Strata) -> frozenset[str]:
        """The heads that are recursive and were not in `before`, or the other way round."""
        return frozenset(head for head in self.recursive.keys() ^ before.recursive.keys() if self.of(head))

    def of(self, name: str) -> list[Clause]:
        """The clauses that derive `name`."""
        return self.by_head.get(name, [])

    def reads(self, name: str) -> Mapping[str, None]:
        """The relations in the bodies of `name`'s clauses, each once."""
        return self._reads.get(name, {})

    def read(self, name: str) -> bool:
        """Whether a clause reads `name`."""
        return name in self._readers

    def readers(self, name: str) -> tuple[str, ...]:
        """The heads whose clauses read `name`."""
        return tuple(self._readers.get(name, ()))

    def place(self, head: str) -> str:
        """Where `head` is evaluated, for people: "p, q (stratum 2 of 3)". Of a part of a rule: where the rule is."""
        heads = list(dict.fromkeys(owner(name) for name in self.order))
        together = {name: self.recursive.get(name, (name,)) for name in heads}
        numbers = {members: number for number, members in enumerate(dict.fromkeys(together.values()), 1)}
        members = together.get(owner(head))
        if members is None:  # of a program that is not there yet
            return head
        more = f", {len(members) - SHOWN} more" if len(members) > SHOWN else ""
        return f"{', '.join(members[:SHOWN])}{more} (stratum {numbers[members]} of {len(numbers)})"

    def below(self, names: Iterable[str]) -> set[str]:
        """`names` and all relations they are derived from."""
        found = set(names)
        frontier = list(found)
        while frontier:
            for predicate in self.reads(frontier.pop()):
                if predicate not in found:
                    found.add(predicate)
                    frontier.append(predicate)
        return found

    def above(self, names: Iterable[str]) -> frozenset[str]:
        """All heads that are derived from `names`, and those of `names` that are heads."""
        return self.affected[tuple(names)][0]
