"""The metrics of a database: numbers about what it did and what it holds, for programs and for Prometheus.

    db.metrics().commits;  db.metrics().as_dict();  db.metrics().prometheus(database="rights")

The first call begins the counting: make it where the database is made. Counts never go back. Rows and memory are those
of the moment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lftj.errors import ArgumentError
from lftj.maintain.journal import Counts

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers of a database. Made by `Database.metrics`.

    Counted for `counted_seconds`: `commits`, `commit_seconds`, the rows they `inserted` and `erased` by relation, facts
    and derived rows alike, the `heads` they derived and the `seconds` that took by strategy · `loads`, `load_seconds`,
    and rows `loaded` by relation, as given · `evaluations` of heads that somebody looked at, and `evaluation_seconds`.

    Of the moment: `rows` by relation, of those that are up to date; how many relations are `stale` · `symbols`,
    distinct texts · `memory`, bytes of pages, and `memory_limit` (None: there is none).
    """

    counted_seconds: float
    commits: int
    commit_seconds: float
    inserted: dict[str, int]
    erased: dict[str, int]
    heads: dict[str, int]
    seconds: dict[str, float]
    loads: int
    load_seconds: float
    loaded: dict[str, int]
    evaluations: int
    evaluation_seconds: float
    rows: dict[str, int]
    stale: int
    symbols: int
    memory: int
    memory_limit: int | None

    @classmethod
    def of(
        cls, counts: Counts, rows: dict[str, int], stale: int, symbols: int, memory: int, memory_limit: int | None
    ) -> Metrics:
        """The metrics that are these counts of now, and the other numbers."""
        return cls(
            time.monotonic() - counts.began,
            counts.commits,
            counts.commit_seconds,
            _positive(counts.inserted),
            _positive(counts.erased),
            dict(counts.heads),
            dict(counts.seconds),
            counts.loads,
            counts.load_seconds,
            dict(counts.loaded),
            counts.evaluations,
            counts.evaluation_seconds,
            rows,
            stale,
            symbols,
            memory,
            memory_limit,
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as a dict, of dicts where it is by relation or strategy."""
        return asdict(self)

    def prometheus(self, **labels: str) -> str:
        """The same in Prometheus' text format, version 0.0.4, with `labels` on every sample; ends in a newline.

        Source: prometheus.io/docs/instrumenting/exposition_formats.
        """
        for name in labels:
            if not _LABEL.fullmatch(name) or name.startswith("__") or name in ("relation", "strategy"):
                raise ArgumentError(
                    f"a label cannot be named {name!r}",
                    why="labels are letters, digits and `_`; `relation` and `strategy` have a meaning here",
                    remedy='give another name, as in `prometheus(database="rights")`',
                )
        lines: list[str] = []
        for name, kind, text, label, samples in self._families():
            lines += (f"# HELP lftj_{name} {text}", f"# TYPE lftj_{name} {kind}")
            for of, value in samples:
                named = {**labels, label: of} if label else labels
                inside = ",".join(f'{key}="{_escaped(str(held))}"' for key, held in named.items())
                lines.append(f"lftj_{name}{f'{{{inside}}}' if inside else ''} {value}")
        return "".join(f"{line}\n" for line in lines)

    def _families(self) -> Iterable[tuple[str, str, str, str, list[tuple[str, float]]]]:
        """(name, kind, what it is, label, samples) of each metric that has some."""
        counted = (
            ("commits", "Transactions committed.", "", self.commits),
            ("commit_seconds", "Time that commits took.", "", self.commit_seconds),
            ("rows_inserted", "Rows that commits inserted, derived ones included.", "relation", self.inserted),
            ("rows_erased", "Rows that commits erased, derived ones included.", "relation", self.erased),
            ("heads_derived", "Derived relations that commits brought up to date.", "strategy", self.heads),
            ("strategy_seconds", "Time that commits took to derive heads.", "strategy", self.seconds),
            ("loads", "Loads.", "", self.loads),
            ("load_seconds", "Time that loads took.", "", self.load_seconds),
            ("rows_loaded", "Rows given to loads.", "relation", self.loaded),
            ("evaluations", "Derived relations evaluated because somebody looked.", "", self.evaluations),
            ("evaluation_seconds", "Time that evaluations took.", "", self.evaluation_seconds),
        )
        measured = (
            ("relation_rows", "Rows of relations that are up to date.", "relation", self.rows),
            ("relations_stale", "Derived relations that wait for somebody to look.", "", self.stale),
            ("symbols", "Distinct texts.", "", self.symbols),
            ("memory_bytes", "Bytes of pages.", "", self.memory),
            ("memory_limit_bytes", "The most bytes of pages that are allowed.", "", self.memory_limit),
        )
        for kind, families in (("counter", counted), ("gauge", measured)):
            for name, text, label, held in families:
                if held is None:
                    continue
                samples = list(held.items()) if isinstance(held, Mapping) else [("", held)]
                if samples:
                    yield f"{name}_total" if kind == "counter" else name, kind, text, label, samples


def _positive(counts: Mapping[str, int]) -> dict[str, int]:
    """The relations of which some were counted."""
    return {name: count for name, count in counts.items() if count}


def _escaped(text: str) -> str:
    """The value of a label as the format writes it."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
