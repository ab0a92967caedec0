"""A prepared query: asked many times, with other values of its parameters each time.

    may = db.prepare_query("may($who, act, res)")
    list(may(who="ann"))

A call evaluates at once, over the database as it is at that moment, and gives a `Query` that has its answer. Of a short
answer it is a lookup: a few microseconds, however many rows the relations have.

It stays valid after commits, loads and changes of rules. If what it reads has other columns by then, the text is
checked again at the next call, which raises `ProgramError` where it does not fit any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lftj import html
from lftj.results.not_pickled import Unchanging
from lftj.results.query import Query

if TYPE_CHECKING:
    from lftj.explain.explanation import Explanation
    from lftj.results.answers import Answers


class PreparedQuery(Unchanging):
    """A query to be asked with values for its parameters. Made by `Database.prepare_query`."""

    __slots__ = ("_database", "_order", "_text", "_timeout")

    _instead = "prepare it where it is to be asked, or give the rows of its answers, by `to_arrow()`"

    def __init__(self, database: Answers, text: str, order: tuple[str, ...] | None, timeout: float | None) -> None:
        self._database, self._text, self._order, self._timeout = database, text, order, timeout

    def __call__(self, /, **given: Any) -> Query:
        """Ask it; the values of the parameters by name.

        Raises `ArgumentError`, a `DataError` and a `TypeError`, for values that are missing, misnamed or of another
        type, and what an evaluation raises.
        """
        database = self._database
        compiled = database._compiled(self._text, self._order)
        query = Query(database, compiled, given, self._timeout)
        if not query._is_short():
            query._evaluate()
        return query

    @property
    def parameters(self) -> dict[str, str]:
        """The types of its parameters by name, in the order of the text."""
        compiled = self._database._compiled(self._text, self._order)
        return {name: parameter.type for name, parameter in compiled.parameters.items()}

    @property
    def columns(self) -> dict[str, str]:
        """The types of its columns by name, in order."""
        schema = self._database._compiled(self._text, self._order).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def explain(self, /, **given: Any) -> Explanation:
        """How it would be evaluated with these values."""
        return Query(self._database, self._database._compiled(self._text, self._order), given, self._timeout).explain()

    def __repr__(self) -> str:
        takes = ", ".join(f"{name}:{type}" for name, type in self.parameters.items())
        return f"PreparedQuery({self._text!r}) of ({takes})"

    def _repr_html_(self) -> str:
        parts = [(f"${name}", type, "parameter") for name, type in self.parameters.items()]
        parts += [(name, type, "column") for name, type in self.columns.items()]
        return html.shown(html.title(self._text, "prepared"), html.plain_table(("name", "type", "is a"), parts))
