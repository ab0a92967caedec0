"""scantree: sorted rows in versioned copy-on-write pages.

Files in the order a reader meets them: `memory` (the arena all pages live in), `layout` (how a version lies in it),
`sort` and `build` (bulk build, merging), `reorder` (the same rows in another key order),
`cursor` (positions, seeks, ranges), `prefix` (rows that begin with given keys), `scan` (folds of runs of rows), `probe`
and `update` (the next version), `amend` (the same in place, of one that nobody reads any more), `crew` and `parts` (by
several threads), `locks` (which a process refuses that was forked in the midst), `delta` (what differs between two
versions), `surgery` (what a change of rows does to their trie), `reading` and `version` (the Python face), `lagging` (a
version whose changes wait for a reader), `filter` (branches that are certainly not there), `intervals` (interval trees
on top of it), `check` (the invariants, executable). `_jit`, `_compile` and `_compiling` make kernels of functions, and
say so. Knows nothing of rules or joins.

The names below are imported when first used, so that `import scantree` does not import numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scantree.intervals import IntervalTree
    from scantree.memory import Arena, ArenaFullError
    from scantree.scan import Monoid, Scan
    from scantree.version import Delta, Store, Version

__all__ = ["Arena", "ArenaFullError", "Delta", "IntervalTree", "Monoid", "Scan", "Store", "Version"]

_HOMES = {
    "Arena": "scantree.memory",
    "ArenaFullError": "scantree.memory",
    "Delta": "scantree.version",
    "IntervalTree": "scantree.intervals",
    "Monoid": "scantree.scan",
    "Scan": "scantree.scan",
    "Store": "scantree.version",
    "Version": "scantree.version",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'scantree' has no attribute {name!r}")
    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
