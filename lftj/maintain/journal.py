"""The journal of a database: what it did, as lines of the logger "lftj", as counts, and as spans of OpenTelemetry.

    logging.getLogger("lftj").setLevel(logging.INFO)      a line for each commit, load and evaluation
                              setLevel(logging.DEBUG)     and one for each head that a commit derived
    db.metrics()                                          counts, from the first call on

A commit of one row takes some twenty microseconds, and to count what it did takes one. So nothing is counted before
somebody has asked, and a commit that nobody looks at costs a number and a test.

Spans are made where the program has imported OpenTelemetry's API before the database is made, loaded or evaluated;
nothing imports it here. They are made afterwards, with the times at which they began and ended, and belong to the span
that is open then: the caller's.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from lftj.language.clause import INTERNAL, owner
from lftj.maintain.commit import Commit
from lftj.maintain.report import amount
from lftj.store.change import INSERTED

LOG = logging.getLogger("lftj")
LOG.addHandler(logging.NullHandler())
INFO = logging.INFO
_TRACE = "opentelemetry.trace"


class RowsChanged(NamedTuple):
    """The rows of a relation that a commit inserted and erased."""

    inserted: int
    erased: int


class Counts:
    """What a database did since `began`, on `time.monotonic`'s clock.

    `loads`, `load_seconds` and rows `loaded` by relation, as given · `evaluations` of heads, when somebody looked, and
    `evaluation_seconds` · `commits`, `commit_seconds`, rows `inserted` and `erased` by relation, `heads` and `seconds`
    by strategy.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.loads = self.evaluations = self.commits = 0
        self.load_seconds = self.evaluation_seconds = self.commit_seconds = 0.0
        self.loaded: Counter[str] = Counter()
        self.inserted: Counter[str] = Counter()
        self.erased: Counter[str] = Counter()
        self.heads: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}

    def committed(self, commit: Commit) -> None:
        """Count a commit."""
        self.commits += 1
        self.commit_seconds += commit.seconds
        for name, rows in changed_rows(commit).items():
            self.inserted[name] += rows.inserted
            self.erased[name] += rows.erased
        for report in commit.reports.values():
            self.heads[report.strategy] += 1
            self.seconds[report.strategy] = self.seconds.get(report.strategy, 0.0) + report.seconds


class Journal:
    """What one database did. Used by the thread that holds the database's lock.

    `commits`: their number. `watched`: somebody counts them, or traces; the logger is asked apart.
    """

    def __init__(self) -> None:
        self.commits = 0
        self.watched = False
        self._counts: Counts | None = None
        self._look()

    def counts(self) -> Counts:
        """What was counted since the first call."""
        if self._counts is None:
            self._counts = Counts()
        self._look()
        return self._counts

    def _look(self) -> None:
        self.watched = self._counts is not None or _TRACE in sys.modules

    def committed(self, commit: Commit) -> None:
        """A commit has been published, the one of number `commits`. For who finds `watched`, or the logger enabled."""
        if self._counts is not None:
            self._counts.committed(commit)
        if not LOG.isEnabledFor(INFO) and _TRACE not in sys.modules:
            return
        changed = changed_rows(commit)
        heads = {name: report.strategy for name, report in commit.reports.items() if not name.startswith(INTERNAL)}
        rows = ", ".join(f"{name} +{r.inserted:,} -{r.erased:,}" for name, r in changed.items()) or "no rows changed"
        ways = "".join(f", {name} by {strategy}" for name, strategy in heads.items())
        about = {
            "commit": self.commits,
            "inserted": sum(r.inserted for r in changed.values()),
            "erased": sum(r.erased for r in changed.values()),
            "heads": heads,
            "milliseconds": commit.seconds * 1e3,
        }
        said = f"commit {self.commits}: {rows}{ways.replace(', ', '; ', 1)}; {commit.seconds * 1e3:.3f} ms"
        LOG.info("%s", said, extra={"lftj": about})
        if LOG.isEnabledFor(logging.DEBUG):
            for name, report in commit.reports.items():
                took = f"{amount(report.steps, 'step')}; {report.seconds * 1e3:.3f} ms"
                said = f"commit {self.commits}: {_named(name)} by {report.strategy}, since {report.why}; {took}"
                LOG.debug("%s", said, extra={"lftj": report.stats()})
        make_span("lftj.commit", commit.seconds, about)

    @contextmanager
    def load(self, name: str) -> Iterator[Callable[[int], None]]:
        """A load of relation `name` goes on in the block, which says how many rows were given."""
        given: list[int] = []
        started = time.perf_counter()
        yield given.append
        seconds, rows = time.perf_counter() - started, sum(given)
        if self._counts is not None:
            self._counts.loads += 1
            self._counts.load_seconds += seconds
            self._counts.loaded[name] += rows
        about = {"relation": name, "rows": rows, "milliseconds": seconds * 1e3}
        LOG.info("load of %s: %s; %.3f ms", name, amount(rows, "row"), seconds * 1e3, extra={"lftj": about})
        make_span("lftj.load", seconds, about)
        self._look()

    def evaluated(self, heads: frozenset[str], seconds: float) -> None:
        """Stale `heads` were evaluated."""
        named = sorted({owner(head) for head in heads})
        if self._counts is not None:
            self._counts.evaluations += len(heads)
            self._counts.evaluation_seconds += seconds
        about = {"heads": named, "milliseconds": seconds * 1e3}
        LOG.info("evaluation of %s; %.3f ms", ", ".join(named), seconds * 1e3, extra={"lftj": about})
        make_span("lftj.evaluation", seconds, about)
        self._look()


def changed_rows(commit: Commit) -> dict[str, RowsChanged]:
    """The rows that a commit changed, by relation of the program."""
    found = {}
    for name, change in commit.changes.items():
        if not name.startswith(INTERNAL):
            # Of one row numpy's count takes ten times as long.
            inserted = change.kinds.tobytes().count(INSERTED)
            found[name] = RowsChanged(inserted, len(change.kinds) - inserted)
    return found


def _named(name: str) -> str:
    """A head as a line names it, a part with the relation in whose rules it is."""
    return f"{owner(name)} ({name})" if name.startswith(INTERNAL) else name


def make_span(name: str, seconds: float, about: Mapping[str, Any]) -> None:
    """A span of OpenTelemetry that ends now, if the program has imported that; `about` become its attributes."""
    trace = sys.modules.get(_TRACE)
    if trace is None:
        return
    ended = time.time_ns()
    attributes = {f"lftj.{key}": _attribute(value) for key, value in about.items()}
    span = trace.get_tracer("lftj").start_span(name, start_time=ended - int(seconds * 1e9), attributes=attributes)
    span.end(end_time=ended)


def _attribute(value: Any) -> Any:
    """A value as OpenTelemetry takes it: a number, a text, or a list of texts."""
    return [f"{key}: {held}" for key, held in value.items()] if isinstance(value, Mapping) else value
