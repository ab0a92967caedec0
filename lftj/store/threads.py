"""The number of threads of a database: `Database(threads=N)`.

What N threads do together gives the same rows and deltas as one (`lftj.join.ranges`, `lftj.maintain.clause_delta` and
`scantree.parts` say how):

    evaluation      of a clause, and counting a query, range by range of its first variable
    deltas          the changed rows of a clause that is followed by its delta
    updates         the stored rows of a relation, its key orders and scans, under a large batch of changes

Small work is one thread's whatever N is, since threads take time to begin and to end. So is what is not listed: loading
and sorting, recording and following traces, recursion after its first round, aggregates, the making of pages.
"""

from __future__ import annotations

import operator

from lftj.errors import DataError
from scantree.crew import Crew


def crew_of(threads: int) -> Crew | None:
    """The threads of a database beside the caller's; None for one thread. `DataError` if it is no positive number."""
    try:
        n = operator.index(threads)
    except TypeError:
        n = 0
    if n < 1 or isinstance(threads, bool):
        raise DataError(
            f"a database cannot have {threads!r} threads",
            why="`threads` is how many may work at a time, a whole number of 1 or more",
            remedy="give `threads=2`, say, or leave it out for one",
        )
    return Crew(n) if n > 1 else None
