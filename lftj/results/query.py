"""A query: a rule body asked once, evaluated when its answer is looked at.

`db.query("tri(1, y, z), y < z")` has one column per named variable. `count()` enumerates nothing it does not have to
and keeps nothing; everything else evaluates the query once and then behaves like a relation. The answer is of the
database as it was when the query was first evaluated. `db.query("tri($x, y, z)", x=1)` has a parameter (compiled.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lftj.results.relation import Columns, Relation
from lftj.results.tabular import Held, Tabular

if TYPE_CHECKING:
    from lftj.explain.explanation import Explanation
    from lftj.program.evaluation import Evaluation
    from lftj.results.answers import Answers
    from lftj.results.compiled import Compiled


class Query(Tabular):
    """A query whose answers are evaluated when you first ask for them: a table of rows, as a relation is."""

    __slots__ = ("__weakref__", "_answer", "_compiled", "_database", "_evaluation", "_given", "_timeout")

    def __init__(self, database: Answers, compiled: Compiled, given: Mapping[str, Any], timeout: float | None) -> None:
        self._database, self._compiled, self._given, self._timeout = database, compiled, given, timeout
        self._answer: Relation | None = None
        self._evaluation: Evaluation | None = None

    def count(self) -> int:
        """Number of answers; they are counted, not kept."""
        if self._answer is not None or (self._given and self._is_short()):
            return len(self.relation())
        n, self._evaluation = self._database._count(self._compiled, self._given, self._timeout)
        return n

    def relation(self) -> Relation:
        """The answers, evaluated at the first call."""
        if self._answer is None and not (self._given and self._is_short()):
            self._evaluate()
        assert self._answer is not None
        return self._answer

    @property
    def columns(self) -> dict[str, str]:
        """The types of its columns by name, in order. Nothing is evaluated for them."""
        if self._answer is None:
            return Columns(self._database._now(self._compiled).schema)
        return self._answer.columns

    def _evaluate(self) -> None:
        """Find the answer, however long it is."""
        self._answer, self._evaluation = self._database._answer(self._compiled, self._given, self._timeout)

    def _is_short(self) -> bool:
        """Look for the answer of a query that is asked many times, which is as a rule short; whether it is."""
        found = self._database._short_answer(self._compiled, self._given, self._timeout)
        if found is not None:
            self._answer, self._evaluation = found
        return found is not None

    @property
    def stats(self) -> dict[str, Any]:
        """Counters of the last evaluation.

        Rows, steps, seeks, opens (nodes of the walk), matches per depth, seconds, key_order. Empty before.
        """
        from lftj.explain.explanation import statistics_of

        return statistics_of(self._evaluation) if self._evaluation is not None else {}

    def explain(self) -> Explanation:
        """How the query is, or was, evaluated."""
        from lftj.explain.explanation import Explanation

        evaluation = self._evaluation or self._database._describe(self._compiled, self._given)
        return Explanation.of_query(evaluation.clause, evaluation, self._database._threads)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return self.count() > 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.relation())

    def __contains__(self, row: object) -> bool:
        return row in self.relation()

    def __eq__(self, other: object) -> bool:
        return self.relation() == (other.relation() if isinstance(other, Query) else other)

    __hash__ = None  # type: ignore[assignment]

    def _described(self) -> str:
        return f"the query {self._compiled.clause.text!r}"

    def _held(self) -> Held:
        return self.relation()._held()

    def __repr__(self) -> str:
        if self._answer is None:
            return f"Query({self._compiled.clause.text!r}), not evaluated yet"
        return repr(self._answer)

    def _repr_html_(self) -> str:
        return self.relation()._repr_html_()
