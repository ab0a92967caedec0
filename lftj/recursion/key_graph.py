"""Which keys the values of keys are computed from, and in which order: levels, or a cycle.

A node is a key of a head. There is an edge from each key that a row looks up to the key whose value the row is for.
After a change only those nodes matter that are reached from it, the *cone* above it: what lies below has its values.

Levels are those of Kahn (*Topological sorting of large networks*, 1962): a level is all nodes of the cone whose
predecessors in the cone are in levels before. If none is left to take, what remains holds a cycle; a cycle that a
change closes goes through a row that came, so it lies in the cone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.errors import CycleError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import INTERNAL, Clause, owner
from lftj.language.internal_relations import is_part
from lftj.language.notation import literal_text
from lftj.recursion.fixpoint import not_among
from lftj.recursion.key_rules import KeyRules
from lftj.store.stored import StoredRelation
from scantree.consolidate import runs_of

Rows = npt.NDArray[np.int64]
# Of a longer cycle only the keys at both ends are written out.
SHOWN = 12
# So many levels, of fewer keys than this on average, are deep data: a level takes about as long as computing so many
# keys one by one.
DEEP, THIN = 256, 64


class DeepError(Exception):
    """There are many levels of few nodes each."""


def refuse_deep(levels: int, size: int) -> None:
    """Raise `DeepError` if so many levels hold few nodes each, of `size` in all."""
    if levels > DEEP and size < THIN * levels:
        raise DeepError


class Precedence:
    """Nodes by number, below `size`, and `edges` int64[2, n] between them: from what is read to what reads it."""

    def __init__(self, edges: Rows, size: int) -> None:
        self.size = size
        edges = edges[:, np.argsort(edges[0], kind="stable")]
        self._above = edges[1]
        self._degrees = np.bincount(edges[0], minlength=size)
        self._starts = np.cumsum(self._degrees) - self._degrees

    def above(self, nodes: Rows) -> Rows:
        """The nodes that read `nodes`, with repeats."""
        lengths = self._degrees[nodes]
        before = np.cumsum(lengths) - lengths
        found: Rows = self._above[np.repeat(self._starts[nodes] - before, lengths) + np.arange(int(lengths.sum()))]
        return found

    def levels(self, *, shallow: bool = False) -> tuple[list[Rows], list[int]]:
        """(the nodes, level by level; the nodes around a cycle, if there is one). `shallow`: as of `KeyGraph`."""
        waiting, found = np.bincount(self._above, minlength=self.size), []
        level = np.flatnonzero(waiting == 0)
        while len(level):
            found.append(level)
            if shallow:
                refuse_deep(len(found), self.size)
            above, done = np.unique(self.above(level), return_counts=True)
            waiting[above] -= done
            level = above[waiting[above] == 0]
        return found, self._around(waiting > 0) if waiting.any() else []

    def _around(self, left: npt.NDArray[np.bool_]) -> list[int]:
        """A cycle among the nodes that are left: each of them reads another one."""
        below = np.repeat(np.arange(self.size), self._degrees)
        among = left[below] & left[self._above]
        reads = dict(zip(self._above[among].tolist(), below[among].tolist(), strict=True))
        node = next(iter(reads))
        place: dict[int, int] = {}
        while node not in place:
            place[node] = len(place)
            node = reads[node]
        return list(place)[place[node] :]


class KeyGraph(Precedence):
    """The cone above `seeds`, keys int64[k, n] of heads: nodes by head, in order, and the edges between them.

    A node's number is its place among the keys of its head, behind those of the heads before. With `shallow`, raises
    `DeepError` if it turns out to be deep.
    """

    def __init__(
        self,
        rules: KeyRules,
        relations: Mapping[str, StoredRelation],
        seeds: Mapping[str, Rows],
        limits: Limits,
        *,
        shallow: bool,
    ) -> None:
        self._rules = rules
        self.keys: dict[str, Rows] = {}
        edges: dict[tuple[str, str], list[tuple[Rows, Rows]]] = {}
        frontier = {head: distinct([rows]) for head, rows in seeds.items() if rows.shape[1]}
        levels = 0
        while frontier:
            levels, size = levels + 1, sum(rows.shape[1] for rows in self.keys.values())
            limits.look(size)
            if shallow:
                refuse_deep(levels, size)
            found: dict[str, list[Rows]] = {}
            for head, keys in frontier.items():
                self.keys[head] = distinct([self.keys[head], keys]) if head in self.keys else keys
            for head, keys in frontier.items():
                for rule, lookup in rules.readers[head]:
                    columns = lookup.place.rows(relations[rule.rows], keys)
                    count = len(next(iter(columns.values())))
                    if count:
                        above = rule.key.keys(columns, count)
                        edges.setdefault((head, rule.clause.head), []).append(
                            (lookup.place.keys(columns, count), above)
                        )
                        found.setdefault(rule.clause.head, []).append(above)
            frontier = {}
            for head, chunks in found.items():
                new = distinct(chunks)
                new = not_among(new, self.keys[head]) if head in self.keys and len(new) else new
                if new.shape[1] and not (head in self.keys and not len(new)):
                    frontier[head] = new
        self._heads = [name for name in rules.names if name in self.keys]
        sizes = [self.keys[head].shape[1] for head in self._heads]
        self._ends: Rows = np.cumsum([0, *sizes])
        pairs = [
            np.stack([self.numbers(head, keys) for head, keys in zip(ends, (below, above), strict=True)])
            for ends, chunks in edges.items()
            for below, above in chunks
        ]
        joined = np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1)
        super().__init__(joined, int(self._ends[-1]))

    def numbers(self, head: str, keys: Rows) -> Rows:
        """The numbers of nodes of `head` that are there."""
        begin, own = self._ends[self._heads.index(head)], self.keys[head]
        if len(own) == 0:
            places: Rows = np.zeros(keys.shape[1], np.int64)
        elif len(own) == 1:
            places = np.searchsorted(own[0], keys[0])
        else:
            places = _places(own, keys)
        numbers: Rows = places + begin
        return numbers

    def in_levels(self, evaluator: Evaluator, clauses: Sequence[Clause], *, shallow: bool) -> list[Rows]:
        """The nodes, level by level. Raises `CycleError`, which names a cycle, and with `shallow` `DeepError`."""
        found, around = self.levels(shallow=shallow)
        if around:
            raise self._cycle(evaluator, clauses, around)
        return found

    def by_head(self, nodes: Rows) -> Iterator[tuple[str, Rows]]:
        """(head, those of `nodes`, which are in order, that are its)."""
        cuts = np.searchsorted(nodes, self._ends)
        for head, lo, hi in zip(self._heads, cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if lo < hi:
                yield head, nodes[lo:hi]

    def keys_of(self, head: str, nodes: Rows) -> Rows:
        """The keys int64[k, n] of nodes of `head`."""
        found: Rows = np.take(self.keys[head], nodes - self._ends[self._heads.index(head)], axis=1)
        return found

    def _cycle(self, evaluator: Evaluator, clauses: Sequence[Clause], around: Sequence[int]) -> CycleError:
        named = []
        for one in around:
            (head, nodes) = next(self.by_head(np.array([one])))
            if not is_part(head):
                types = evaluator.relations[head].schema.types[:-1]
                codes = self.keys_of(head, nodes)[:, 0].tolist()
                named.append((head, [evaluator.decode(c, t) for c, t in zip(codes, types, strict=True)]))
        types_of = {head: evaluator.relations[head].schema.types for head, _ in named}
        return cycle_error(named, types_of, clauses, "nothing was changed")


def cycle_error(
    named: Sequence[tuple[str, Sequence[Any]]], types: Mapping[str, Sequence[str]], clauses: Sequence[Clause], kept: str
) -> CycleError:
    """The error for a cycle of keys, each with its head. `kept`: what was left as it was."""
    query = named[0][0].startswith(INTERNAL)
    if query:  # SQL says nothing of the sums between the rows
        named = [(head, key) for head, key in named if head == named[0][0]]
    heads = list(dict.fromkeys(head for head, _ in named))
    shown = [
        (head, ", ".join(literal_text(v, t) for v, t in zip(key, types[head][:-1], strict=True)))
        for head, key in [*named, named[0]]
    ]
    cycle = tuple(key[0] if len(key) == 1 else tuple(key) for _, key in [*named, named[0]])
    if query:
        return _of_query(heads[0], [f"({key})" for _, key in shown], cycle)
    texts = shortened([f"{head}[{key}]" for head, key in shown])
    rule = next(c for c in clauses if owner(c.head) == heads[0] and len(c.atoms) + len(c.negated) > 1)
    return CycleError(
        f"the value of a key is computed from itself: {texts}",
        cycle=cycle,
        where=f"{rule.span}: in `{rule.text}`",
        why=f"a recursion through an aggregate has a value only where the rows it runs along have no cycle; {kept}",
        remedy="leave out one of the rows on the cycle",
    )


def shortened(around: list[str]) -> str:
    """What is met around a cycle, without the middle of a long one."""
    if len(around) > 2 * SHOWN:
        around[SHOWN:-SHOWN] = [f"... ({len(around) - 2 * SHOWN:,} more)"]
    return " -> ".join(around)


def _of_query(head: str, rows: list[str], cycle: tuple[Any, ...]) -> CycleError:
    """The error for a cycle of a head of SQL: of all its recursions only `union all` goes key by key."""
    return CycleError(
        f"a row of the recursive query in `{owner(head)}` is derived from itself: {shortened(rows)}",
        cycle=cycle,
        why="with `union all` it would be there without end; nothing was changed",
        remedy="write `union`, which has each row once, or leave out one of the rows that lead round the cycle",
    )


def _places(own: Rows, keys: Rows) -> Rows:
    """Where `keys` int64[k, m] stand among `own` int64[k, n], distinct and in order, which hold them all."""
    rows, order, starts = runs_of(np.concatenate([own, keys], axis=1))
    first = np.zeros(rows.shape[1], np.int64)
    first[starts[1:]] = 1
    number = np.cumsum(first)
    if order is None:
        return number[own.shape[1] :]
    places = np.empty_like(number)
    places[order] = number
    return places[own.shape[1] :]


def distinct(chunks: Sequence[Rows]) -> Rows:
    """The distinct keys of chunks int64[k, n], in order."""
    rows = chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)
    if not len(rows):
        return rows[:, : min(1, rows.shape[1])]
    rows, _, starts = runs_of(np.ascontiguousarray(rows))
    return rows if len(starts) == rows.shape[1] else np.ascontiguousarray(rows[:, starts])
