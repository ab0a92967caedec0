"""A key order that lags behind the content: what it was, and the changes since.

Most transactions ask for few of the key orders that were ever asked for, and bringing one up to date takes as long as a
join of a few rows. So a key order follows when it is asked for, by all changes since at once; and where these become
many, before. One of a relation that a recursive rule derives follows in every round from the one on that asks for it,
in each transaction anew: what no round asks for follows by what all of them came to, and much of what goes in one round
comes back in another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lftj.store.change import Change
from scantree.version import Version

# A key order lags behind by at most so many changes, and such a part of the rows.
MOST, PART = 32, 1 / 64


class Behind(NamedTuple):
    """`version`: the key order as it was · `changes` of the content since, in their order · `rows` of all of them."""

    version: Version
    changes: tuple[Change, ...]
    rows: int

    @classmethod
    def of(cls, held: Version | Behind, change: Change) -> Behind:
        """What is `held` of a key order, after one more change of the content."""
        behind = held if isinstance(held, Behind) else cls(held, (), 0)
        return cls(behind.version, (*behind.changes, change), behind.rows + len(change.kinds))

    def far(self, rows: int) -> bool:
        """Whether that is too far behind a content of so many rows."""
        return len(self.changes) > MOST or self.rows > PART * rows

    def caught_up(self, columns: tuple[int, ...]) -> Version:
        """The content in the key order, which permutes the columns so."""
        changes, order = self.changes, list(columns)
        if not changes:
            return self.version
        if len(changes) == 1:
            return self.version.update(changes[0].rows[order], changes[0].kinds)[0]
        # The last word on a row counts.
        rows = np.concatenate([change.rows[order] for change in changes], axis=1)
        return self.version.update(rows, np.concatenate([change.kinds for change in changes]))[0]
