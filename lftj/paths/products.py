"""Following changes of the edges: what one edge adds to the counts, or takes, is a column times a row.

    T'      T with a path of length 0 at each node
    insert of (x, y)    T(a, b) += T'(a, x) * T'(y, b)
    erase of (x, y)     T(a, b) -= T'(a, x) * T'(y, b)      for every a that leads to x and b that y leads to

No path to x and none from y runs along the edge (x, y), else there were a cycle; so both products are the same with the
edge and without it. Edges are taken one after the other, those that go before those that come: every graph in between
is then part of the one before or of the one after, and an edge that closes a cycle closes one of the graph after. Each
edge touches exactly |T'(., x)| * |T'(y, .)| pairs, which are the steps that are counted.

A column or a row of a graph in between is that of the graph before and what the products so far change of it; the
stored counts are changed once, by the sum of all products.

Source: V. Tropashko, SQL Design Patterns (2007), "Incremental Evaluation", after G. Dong et al., Maintaining Transitive
Closure of Graphs in SQL (1999). Deviation: one edge at a time in the place of a matrix S of them, so nothing is raised
to powers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause, owner
from lftj.paths.big_counts import REVERSE, Counts, Ints, between, narrowed, products, rows_of, sum_of, summed, under
from lftj.paths.cycle import cycle_error, way
from lftj.store.change import ERASED, INSERTED, Change
from scantree.version import Version

# Edges that touch so many pairs, and such a part of all, are counted anew: a product costs several times what counting
# does.
BULK_PAIRS, BULK_PAIRS_PART = 10_000, 1 / 4


def counts_after(
    evaluator: Evaluator, clause: Clause, changed: Change, limits: Limits
) -> tuple[Version, Change, int] | None:
    """The counts after a change of the edges: (content, change, pairs touched); None if that is too many pairs."""
    edge = clause.atoms[0].predicate
    relation = evaluator.relations[clause.head]
    forward, reverse = relation.content, relation.order(REVERSE)
    done: list[Product] = []
    touched, most = 0, max(BULK_PAIRS, int(BULK_PAIRS_PART * len(relation)))
    for kind in (ERASED, INSERTED):
        for x, y in changed.of_kind(kind).T.tolist():
            limits.look(touched)
            sources, column = summed([_identity(x), under(reverse, x), *(p.to(x) for p in done)])
            targets, row = summed([_identity(y), under(forward, y), *(p.from_(y) for p in done)])
            if kind == INSERTED and x in targets[np.searchsorted(targets, x) :][:1]:
                edges = evaluator.relations[edge].content
                raise cycle_error(evaluator, edge, owner(clause.head), [x, *way(edges, y, x)])
            done.append(Product(sources, column, targets, row, kind))
            touched += len(sources) * len(targets)
            if touched > most:
                return None
    src, dst, more = _net(done)
    limits.look(touched)
    old = between(forward, src, dst)
    gone = (old > 0).astype(bool)
    new = narrowed(sum_of(old, more))
    come = (new > 0).astype(bool)
    assert not new.size or int(new.min()) >= 0, "paths went that were never counted"
    parts = [rows_of(src[there], dst[there], counts[there]) for there, counts in ((gone, old), (come, new))]
    ops = np.repeat(np.array([ERASED, INSERTED], np.int8), [rows.shape[1] for rows in parts])
    # Of a limb that stays as it is the last word is that it comes, which changes nothing.
    content, changes = forward.update(np.concatenate(parts, axis=1), ops)
    return content, Change.of_update(changes), touched


class Product(NamedTuple):
    """What an edge adds (`kind` 1) or takes (-1): `column` by `sources` times `row` by `targets`, all in order."""

    sources: Ints
    column: Counts
    targets: Ints
    row: Counts
    kind: int

    def to(self, node: int) -> tuple[Ints, Counts]:
        """What it changes of the paths to a node: sources and signed counts."""
        return self._along(node, self.targets, self.row, self.sources, self.column)

    def from_(self, node: int) -> tuple[Ints, Counts]:
        """What it changes of the paths from a node: targets and signed counts."""
        return self._along(node, self.sources, self.column, self.targets, self.row)

    def _along(self, node: int, ends: Ints, by: Counts, others: Ints, counts: Counts) -> tuple[Ints, Counts]:
        at = int(np.searchsorted(ends, node))
        if at == len(ends) or ends[at] != node:
            return others[:0], counts[:0]
        return others, self.kind * products(counts, by[at : at + 1]).ravel()


def _identity(node: int) -> tuple[Ints, Counts]:
    """The path of length 0."""
    return np.array([node], np.int64), np.ones(1, np.int64)


def _net(done: list[Product]) -> tuple[Ints, Ints, Counts]:
    """The pairs whose counts change, in order, and by how much."""
    nodes = np.unique(np.concatenate([ends for p in done for ends in (p.sources, p.targets)]))
    n = len(nodes)
    keyed = [
        (
            np.add.outer(np.searchsorted(nodes, p.sources) * n, np.searchsorted(nodes, p.targets)).ravel(),
            p.kind * products(p.column, p.row).ravel(),
        )
        for p in done
    ]
    keys, more = summed(keyed)
    return nodes[keys // n], nodes[keys % n], more
