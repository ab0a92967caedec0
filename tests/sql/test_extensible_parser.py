"""The parser is extended where sqlglot is compiled, too (`pip install "sqlglot[c]"`)."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("sqlglot")

import sqlglot.parsers.duckdb

from lftj.sql import extensible_parser


def test_it_is_made_of_the_source_where_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = sqlglot.parser
    monkeypatch.setattr(extensible_parser, "_is_compiled", lambda _: True)
    made = extensible_parser.extensible_parser()
    assert compiled.Parser not in made.__mro__
    assert made.__mro__[1].__module__ == "sqlglot.parser"
    assert sys.modules["sqlglot.parser"] is sqlglot.parser is compiled

    class Extended(made):  # type: ignore[misc, valid-type]
        def _parse_extract(self) -> sqlglot.exp.Expr:
            found = super()._parse_extract()
            found.set("this", sqlglot.exp.var("extended"))
            return found

    query = "select extract(year from d) as y, list_sort(l) from t"
    tree = Extended(dialect="duckdb").parse(sqlglot.tokenize(query, read="duckdb"), query)[0]
    assert tree.sql("duckdb") == "SELECT EXTRACT(extended FROM d) AS y, LIST_SORT(l) FROM t"


def test_it_is_that_of_sqlglot_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensible_parser, "_is_compiled", lambda _: False)
    assert extensible_parser.extensible_parser() is sqlglot.parsers.duckdb.DuckDBParser
