"""A key order that lags behind the content: what it was, and the changes since.

Most transactions ask for few of the key orders that were ever built, and bringing one up to date takes as long as a
join of a few rows. So a key order catches up when it is asked for, by all changes at once, or earlier if there are
many. A key order of a recursive relation is kept up to date in every round once a round of the transaction has asked
for it. A key order that no round asks for catches up by the change of all rounds together, which is smaller: much of
what goes in one round comes back in another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lftj.store.change import Change
from scantree.version import Version

# A key order lags behind by at most so many changes, and such a part of the rows.
MOST, PART = 32, 1 / 64


class LaggingOrder(NamedTuple):
    """`version`: the key order as it was · `changes` of the content since, in order · `rows`: how many these have."""

    version: Version
    changes: tuple[Change, ...]
    rows: int

    @classmethod
    def of(cls, held: Version | LaggingOrder, change: Change) -> LaggingOrder:
        """A key order, of which `held` is kept, after one more change of the content."""
        lagging = held if isinstance(held, LaggingOrder) else cls(held, (), 0)
        return cls(lagging.version, (*lagging.changes, change), lagging.rows + len(change.kinds))

    def far(self, rows: int) -> bool:
        """Whether it lags too far behind a content of `rows` rows."""
        return len(self.changes) > MOST or self.rows > PART * rows

    def catch_up(self, columns: tuple[int, ...]) -> Version:
        """The content in the key order `columns`, a permutation of the columns."""
        changes, order = self.changes, list(columns)
        if not changes:
            return self.version
        if len(changes) == 1:
            return self.version.update(changes[0].rows[order], changes[0].kinds)[0]
        # The last word on a row counts.
        rows = np.concatenate([change.rows[order] for change in changes], axis=1)
        return self.version.update(rows, np.concatenate([change.kinds for change in changes]))[0]
