"""A snapshot: the database at one moment, for reading.

    snap = db.snapshot()
    snap["tri"];  "tri" in snap;  list(snap);  snap.query("tri(1, y, z)")

A snapshot is versions, not copies: taking one costs a moment per relation, and holding it costs the pages that later
changes replace. It never changes and waits for no writer; any number of threads may read it, queries among them one
after the other.
"""

from __future__ import annotations

from lftj import html
from lftj.errors import ForkError
from lftj.evaluate.evaluator import Evaluator
from lftj.maintain.report import amount
from lftj.program.state import State
from lftj.progress import Progress
from lftj.results.answers import Answers
from lftj.results.not_pickled import Unchanging
from scantree.locks import Lock


class Snapshot(Answers, Unchanging):
    """An immutable database: relations by name, and queries. Made by `Database.snapshot`."""

    _instead = 'give the rows of its relations instead, as in `snapshot["tri"].to_arrow()`'

    def __init__(self, evaluator: Evaluator, state: State) -> None:
        frozen = {name: relation.frozen() for name, relation in state.relations.items()}
        self._evaluator = evaluator.over(state._replace(relations=frozen), apart=True)
        self._lock = Lock(ForkError, "the snapshot")
        self._progress = Progress()
        self._known = {}

    def __repr__(self) -> str:
        relations = [self._state.relations[name] for name in self]
        lines = [f"  {relation.schema}  {amount(len(relation), 'row')}" for relation in relations]
        return "\n".join([f"lftj.Snapshot: {amount(len(lines), 'relation')}", *lines])

    def _repr_html_(self) -> str:
        relations = [self._state.relations[name] for name in self]
        rows = [(str(relation.schema), f"{len(relation):,}") for relation in relations]
        table = html.plain_table(("relation", "rows"), rows, numbers=("rows",))
        return html.shown(html.title("lftj.Snapshot", amount(len(rows), "relation")), table)
