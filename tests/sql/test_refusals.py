"""Statements that DuckDB refuses, or that lftj does not evaluate: what is wrong, and where.

Catches: an answer to what has none, a caret under a word that is right, a message about something else.
"""

from __future__ import annotations

import pytest

import lftj

pytest.importorskip("sqlglot")

TABLE = "create table t (a int, b text, d date); insert into t values (1, 'x', '2024-01-31'), (2, null, null)"
OUTER = "not supported yet: `{}` over columns of the query around only"
# a statement, with « and » around what is marked; what is said
CASES = [
    ("select (select max(«t.a»)) as m from t", OUTER.format("max(t.a)")),
    ("select (select «sum(t.a») from (values (1), (2)) u(x)) as s from t", OUTER.format("sum(t.a)")),
    ("select b from t where a = (select max(«t.a»))", OUTER.format("max(t.a)")),
    ("select b, (select max(«t.a») + min(x) from (values (1)) u(x)) as m from t group by b", OUTER.format("max(t.a)")),
    ("select (select (select max(«t.a»))) as m from t", OUTER.format("max(t.a)")),
]


@pytest.mark.parametrize(("marked", "what"), CASES)
def test_a_statement_is_refused_where_it_is_wrong(marked: str, what: str) -> None:
    begin, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    db = lftj.Database()
    db.sql(TABLE)
    with pytest.raises(lftj.ProgramError) as raised:
        db.sql(text)
    found = raised.value.diagnostics[0]
    assert found.what == what
    assert (found.span.column - 1, found.span.end_column - 1) == (begin, end)
