"""Following changes of the edges: what one edge adds to the counts, or takes, is a column times a row.

    T'      T with a path of length 0 at each node
    insert of (x, y)    T(a, b) += T'(a, x) * T'(y, b)
    erase of (x, y)     T(a, b) -= T'(a, x) * T'(y, b)      for every a that leads to x and b that y leads to

No path to x and none from y runs along the edge (x, y), else there were a cycle; so both products are the same with the
edge and without it. Edges are taken one after the other, those that go before those that come: every graph in between
is then part of the one before or of the one after, and an edge that closes a cycle closes one of the graph after. Each
edge touches exactly |T'(., x)| * |T'(y, .)| pairs, which are the steps that are counted.

Source: incremental-transitive-closure.txt (G. Dong and others), the sections on insertion and deletion. Deviation: one
edge at a time in the place of a matrix S of them, so nothing is raised to powers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from lftj.engine.change import ERASED, INSERTED, Change
from lftj.engine.strategy import Derived, RuleWork
from lftj.errors import CountRangeError
from lftj.language.clause import Clause, owner
from lftj.language.notation import literal_text
from lftj.paths.count import counted
from lftj.paths.cycle import cycle_error, way
from lftj.paths.declare import NUMBERS
from lftj.paths.limbs import REVERSE, Counts, Ints, between, narrowed, products, rows_of, total, under, widened

if TYPE_CHECKING:
    from lftj.engine.commit import Commit
    from lftj.engine.evaluate import Evaluator
    from lftj.engine.stored import StoredRelation
    from lftj.join.run import Limits
    from scantree.version import Version

# A change of so many edges, and such a part of all, is counted anew.
BULK_ROWS, BULK_PART = 1_000, 1 / 8


def derive_paths(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of the head of `clause`, one of the two of path counts, from scratch.

    Raises `CycleError`, or `CountRangeError` if a count is no number.
    """
    below = clause.atoms[0].predicate
    holder = evaluator.relations[clause.head]
    if clause.aggregate is None or clause.aggregate.op != NUMBERS:
        return counted(evaluator, holder, below, owner(clause.head), limits)
    limbs = evaluator.relations[below].content
    _check_range(evaluator, clause.head, limbs)
    return holder.assemble([np.ascontiguousarray(limbs.columns()[1:])], in_order=True)


def follow_paths(commit: Commit, clause: Clause, limits: Limits) -> Derived:
    """The content of the head of `clause` after the changes of a commit."""
    staged, began = commit.staged, time.perf_counter()
    below = clause.atoms[0].predicate
    relation, edges = staged.relations[clause.head], staged.relations[below]
    changed = commit.changes.get(below)
    numbers = clause.aggregate is not None and clause.aggregate.op == NUMBERS
    steps = 0
    if changed is None or clause.head in commit.new_heads or (not numbers and _bulk(changed, edges)):
        strategy, why = "recompute", "there is nothing to go on from" if changed is None else "many edges changed"
        content = derive_paths(staged, clause, limits)
        change = Change.between(relation.content, content)
    elif numbers:
        strategy, why = "copy", "the counts changed"
        _check_range(staged, clause.head, edges.content)
        kept = changed.rows[0] == 0
        change = Change(np.compress(kept, changed.rows[1:], axis=1), changed.kinds[kept])
        content = relation.content
        if len(change.kinds):
            content, _ = content.update(change.rows, change.kinds)
    else:
        strategy, why = "products", f"{len(changed.kinds):,} edges changed"
        content, change, steps = _products(commit, clause, changed, limits)
    surgeries = 0 if changed is None else len(changed.kinds)
    work = RuleWork(0, steps, 0, 0, surgeries, time.perf_counter() - began)
    content = content if len(change.kinds) else relation.content
    return Derived(content, change, {}, strategy, why, steps, 0, 0, None, [work])


def _bulk(change: Change, edges: StoredRelation) -> bool:
    return len(change.kinds) >= BULK_ROWS and len(change.kinds) > BULK_PART * len(edges)


def _products(commit: Commit, clause: Clause, changed: Change, limits: Limits) -> tuple[Version, Change, int]:
    """The counts after a change of the edges: (content, change, pairs touched)."""
    staged, edge = commit.staged, clause.atoms[0].predicate
    relation = staged.relations[clause.head]
    forward, reverse = relation.content, relation.order(REVERSE)
    waiting = [(x, y, kind) for kind in (ERASED, INSERTED) for x, y in changed.of_kind(kind).T.tolist()]
    touched = 0
    for number, (x, y, kind) in enumerate(waiting, 1):
        limits.look(touched)
        sources, column = _with_itself(x, *under(reverse, x))
        targets, row = _with_itself(y, *under(forward, y))
        if kind == INSERTED and x in targets[np.searchsorted(targets, x) :][:1]:
            edges = staged.relations[edge].content
            raise cycle_error(staged, edge, owner(clause.head), [x, *way(edges, y, x)])
        touched += len(sources) * len(targets)
        src, dst = np.repeat(sources, len(targets)), np.tile(targets, len(sources))
        old, more = between(forward, sources, targets), products(column, row).ravel()
        new = total(old, more) if kind == INSERTED else _difference(old, more)
        batch, ops = _replacing(src, dst, old, new)
        forward, done = forward.update(batch, ops)
        if number < len(waiting):
            reverse, _ = reverse.update(batch[list(REVERSE)], ops)
    change = Change.of_update(done) if len(waiting) == 1 else Change.between(relation.content, forward)
    return forward, change, touched


def _with_itself(node: int, others: Ints, counts: Counts) -> tuple[Ints, Counts]:
    """The ends of the paths at a node, and their counts, with the path of length 0."""
    at = int(np.searchsorted(others, node))
    return np.insert(others, at, node), np.insert(counts, at, 1)


def _difference(counts: Counts, less: Counts) -> Counts:
    if counts.dtype == less.dtype:
        return narrowed(counts - less)
    return narrowed(widened(counts) - widened(less))


def _replacing(
    src: Ints, dst: Ints, old: Counts, new: Counts
) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.int8]]]:
    """The rows of pairs with their `old` counts and with their `new` ones, and whether they go (-1) or come (1).

    A row of both is there last as one that comes, which changes nothing.
    """
    assert not new.size or int(new.min()) >= 0, "paths went that were never counted"
    there, stays = (old > 0).astype(bool), (new > 0).astype(bool)
    gone, come = rows_of(src[there], dst[there], old[there]), rows_of(src[stays], dst[stays], new[stays])
    ops = np.repeat(np.array([ERASED, INSERTED], np.int8), [gone.shape[1], come.shape[1]])
    return np.concatenate([gone, come], axis=1), ops


def _check_range(evaluator: Evaluator, into: str, limbs: Version) -> None:
    """Raise `CountRangeError`, which names a pair, if a count is no number."""
    at = limbs.seek([1])
    if at == limbs.end():
        return
    _, src, dst, _ = limbs.row(at)
    count = int(between(limbs, np.array([src]), np.array([dst]))[0])
    kind = evaluator.relations[into].schema.types[0]
    ends = " to ".join(literal_text(evaluator.decode(code, kind), kind) for code in (src, dst))
    raise CountRangeError(
        f"`{into}` has a count that no number holds: {count} paths from {ends}",
        why="a number has 64 bits; the counts themselves are exact and are kept up to date",
        remedy="read them from what `db.path_counts` returned, where they are integers of any size",
    )
