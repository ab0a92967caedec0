"""Jump tables: random access to the first keys of one version, for as long as somebody evaluates over it.

A full evaluation seeks the first keys of a relation at random, once per binding of the variables before. Where the
keys are dense enough, a table from key to address (trie.py, `fill_jump`) makes that one cache line, as the index
array of a CSR graph does; maintenance touches few keys and goes through the fences instead, so no table has to be
kept up to date. A table lives in the arena, belongs to one version, and goes with the last join that uses it or with
the version.
"""

from __future__ import annotations

import weakref

from lftj.join import trie
from scantree.memory import Arena, ArenaFullError, Size, allocate, release
from scantree.version import Version

# Words of table per row of the relation, at most: with it a loaded binary relation stays below 24 bytes per row.
SPREAD = 0.75
# ... of one that goes with its join, and in all.
FLEETING, MOST = 32, 1 << 22
# Smaller relations are searched as quickly without a table.
LEAST = 64


class JumpTable:
    """`page`: where the table lies; `low`, `high`: the first keys it covers."""

    __slots__ = ("__weakref__", "high", "low", "page")

    def __init__(self, arena: Arena, page: int, words: int, low: int, high: int) -> None:
        self.page, self.low, self.high = page, low, high
        space = arena.space  # not the arena itself: a queued release must not keep it alive
        finalizer = weakref.finalize(self, arena.drop_later, lambda: release(space, page, words))
        finalizer.atexit = False


# With the edition of the version that a table is of, and the words that it could have.
_tables: weakref.WeakKeyDictionary[Version, tuple[int, float, JumpTable | None]] = weakref.WeakKeyDictionary()


def jump_table(version: Version, sought: float = 0.0) -> JumpTable | None:
    """The version's jump table, made at the first call; None where its first keys are too sparse or memory is short.

    `sought`: how many keys will be, of a version that goes with the join: its table may have a word for each.
    """
    allowed = min(sought, FLEETING * len(version), MOST)
    edition, before, table = _tables.get(version, (-1, 0.0, None))
    if edition != version.edition or (table is None and allowed > before):  # it was amended since, or may be larger now
        table = _make(version, allowed)
        _tables[version] = version.edition, allowed, table
    return table


def _make(version: Version, allowed: float) -> JumpTable | None:
    ends = version.ends(0)
    if ends is None or len(version) < LEAST:
        return None
    arena, root, shape, (low, high) = version.store.arena, version.root, version.store.shape, ends
    words = 2 * (high - low + 2)  # the table ends with the key after the greatest
    if words > max(allowed, SPREAD * len(version)) or high == trie.KEY_MAX:
        return None
    with arena.lock:
        try:
            arena.room(Size(1, words))
        except ArenaFullError:
            return None
        page = int(allocate(arena.space, words))
    trie.fill_jump(arena.space.mem, root, shape.dir_bits, shape.page_bits, page, low, high)
    return JumpTable(arena, page, words, low, high)
