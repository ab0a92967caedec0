"""lftj itself: `Database.query(...)`, with `.count()` for counting and `.relation()` for materialising."""

from __future__ import annotations

from typing import Any

from bench.measure import Engine, Mode, Relations
from bench.pattern import Pattern


class Lftj(Engine):
    """A `lftj.Database` per session.

    Materialising stores the answer as a sorted relation, as a rule with this body does; every run evaluates anew.
    """

    name = "lftj"
    package = "lftj"

    def __init__(self) -> None:
        self._db: Any = None
        self._answer: Any = None
        self._counters: dict[str, int] = {}

    def compile(self, pattern: Pattern, relations: Relations, mode: Mode) -> None:
        session = Lftj()
        session.load(pattern, relations)
        session.run(pattern, mode)

    def load(self, pattern: Pattern, relations: Relations) -> None:
        import lftj

        self._db = lftj.Database()
        self._db.rules(pattern.declarations())
        for name, rows in relations.items():
            self._db.load(name, rows)

    def run(self, pattern: Pattern, mode: Mode) -> int:
        if mode == "count":
            query = self._db.query(str(pattern))
            count = int(query.count())
            self._counters = {key: int(query.stats[key]) for key in ("seeks", "steps", "rows") if key in query.stats}
            return count
        self._answer = None  # replacing frees the rows of the run before, as DuckDB's CREATE OR REPLACE does
        self._answer = self._db.query(str(pattern)).relation()
        return len(self._answer)

    def counters(self) -> dict[str, int]:
        return dict(self._counters)
