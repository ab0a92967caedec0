"""`values (1, 'a'), (2, 'b')`: rows that are written out, as facts.

Where they name columns, as in `from t, lateral (values (t.a), (t.b)) v(x)`, a row is a select: `select t.a union all
select t.b`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import NUMBER
from lftj.sql.cases import Known
from lftj.sql.conversions import common
from lftj.sql.query_scope import Derived, Outside, QueryScope
from lftj.sql.sql_expressions import Expressions, value
from lftj.sql.view import OutputColumn, Rows

if TYPE_CHECKING:
    from lftj.sql.queries import Queries


def values(queries: Queries, node: exp.Values, around: Outside | None) -> Derived:
    """The head with the rows of `values`: a bag if some are alike."""
    scope, text = QueryScope(queries, None), queries.text
    written = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    if len({len(row) for row in written}) > 1:
        raise text.error(
            "rows of different lengths in `values`",
            node,
            why="all rows have the same columns",
            remedy="write as many values in each",
        )
    if node.find(exp.Column, exp.Query):
        return queries.rows_of(_selects(written), around)
    of = Expressions(scope)
    rows: list[list[ast.Term]] = [[] for _ in written]
    columns = []
    for at, parts in enumerate(zip(*written, strict=True)):
        found = []
        for part in parts:
            cases = value(part, scope)
            if len(cases) != 1 or cases[0].literals or not isinstance(cases[0].term, ast.Constant | None):
                raise text.unsupported("what is no constant in `values`", part, "use `select` and `union all`")
            found.append(cases[0])
        known = common([(case.term, case.type) for case in found], node, text)
        type_ = known or NUMBER
        for row, case, part in zip(rows, found, parts, strict=True):
            row.append(
                ast.Constant(None, type_)
                if case.term is None
                else of.cast(Known((), case.term, case.type), type_, part)
            )
        nullable = any(case.term is None for case in found)
        columns.append(OutputColumn(f"col{at}", type_, nullable, untyped=not known))
    counted = Counter(tuple(row) for row in rows)
    bag = max(counted.values()) > 1
    facts = [(*row, ast.Constant(n, NUMBER)) if bag else row for row, n in counted.items()]
    return Derived(Rows.of(queries.heads.facts("values", facts), tuple(columns), bag=bag))


def _selects(rows: Sequence[Sequence[exp.Expr]]) -> exp.Query:
    """The rows as selects, one after the other."""
    if len(rows) == 1:
        return exp.Select(expressions=[exp.alias_(part.copy(), f"col{at}") for at, part in enumerate(rows[0])])
    half = len(rows) // 2
    return exp.Union(this=_selects(rows[:half]), expression=_selects(rows[half:]), distinct=False)
