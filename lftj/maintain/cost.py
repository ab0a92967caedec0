"""What following a change takes, and evaluating anew: estimated from counts, which do not depend on the machine.

The factors are nanoseconds, measured on triangles over a million edges: on pl1m and pl1m_skew, from 10,000 changed rows
to 500,000, while these thin out from two million triangles to some hundred, evaluating anew takes what is estimated
within a fifth, and so do deltas once they have been followed (bench.pairs; records: bench.recording). At first deltas
are taken to be dearer than they are, up to twice on pl1m.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Evaluating: a node opened, a seek, a row derived, stored or compared; planning and the like in any case.
OPEN, SEEK, ROW, ANEW = 100.0, 13.0, 54.0, 1_000_000.0
# A record written and indexed, and a row for which texts are computed.
RECORD, TEXT = 55.0, 5_000.0
# Following by a trace: a changed row with all its lookups and index pages, and a step.
CHANGE, MAINTENANCE_STEP = 10_000.0, 15.0
# Following by deltas: the same where changed rows are joined with the rest (transactions of 10,000 rows: 4.5 us a row
# at 28 steps on pl1m, 7.3 at 61 on pl1m_skew).
JOINED, JOINED_STEP = 2_100.0, 85.0
# Changed rows that are many beside those that are read share the pages they are joined in: from this part on, twice as
# many take so many times as long (from 10,000 rows to 50,000, 200,000 and 500,000: 3.5, 11 and 25 on pl1m).
SHARING, DOUBLED = 1 / 100, 1.75
# Changed rows from which on the steps they took say something about those of the next.
MANY = 16


class RebuildCost(NamedTuple):
    """What deriving a head did when it was last evaluated, or recorded.

    `rows` that were derived, and `stored`: those of the content then.
    """

    opens: int = 0
    seeks: int = 0
    rows: int = 0
    stored: int = 0
    records: int = 0
    texts: int = 0

    def nanoseconds(self, stored: int, thinned: float) -> float:
        """What it is estimated to take now that so many rows are `stored`.

        `thinned`: of the rows that a changed row is joined with, which part is left. What was followed for long may
        have become another relation; but changed rows may be no sample of all, so that nothing thins out by more than
        the content, and that there is more to do is only believed of what was evaluated.
        """
        kept = min(1.0, stored / max(1, self.stored))
        walk = OPEN * self.opens + SEEK * self.seeks * min(1.0, max(kept, thinned))
        return ANEW + walk + ROW * kept * (self.rows + self.stored) + RECORD * self.records + TEXT * self.texts


def following(changed: int, steps: float, read: int, *, by_delta: bool) -> float:
    """Nanoseconds for so many changed rows, and the steps expected of them, where rules `read` so many rows."""
    if not by_delta:
        return changed * CHANGE + steps * MAINTENANCE_STEP
    nanoseconds = changed * JOINED + steps * JOINED_STEP
    many = max(MANY, SHARING * read)
    return nanoseconds if changed <= many else nanoseconds * (DOUBLED / 2) ** math.log2(changed / many)
