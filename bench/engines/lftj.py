"""lftj itself: `Database.query(...).count()` for counting, a rule for materialising."""

from __future__ import annotations

from typing import Any

from bench.measure import Engine, Mode, Relations
from bench.pattern import Pattern


class Lftj(Engine):
    """A `lftj.Database` per session.

    Every materialising run writes a new head, so nothing is answered from an earlier run.
    """

    name = "lftj"
    package = "lftj"

    def __init__(self) -> None:
        self._db: Any = None
        self._heads = 0
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
        head = f"out{self._heads}"
        self._heads += 1
        self._db.rules(pattern.rule(head))
        return len(self._db[head])

    def counters(self) -> dict[str, int]:
        return dict(self._counters)
