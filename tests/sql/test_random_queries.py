"""Random queries, as views and asked once, against DuckDB: the same rows, as often, after every transaction."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from bench.triggers_run import differ
from tests.conftest import JIT
from tests.duckdb_databases import duckdb_database
from tests.sql.random_queries import TABLES, queries, transactions

pytest.importorskip("sqlglot")

from lftj.sql import cases, computed_columns, first_hits, query_scope

pytestmark = pytest.mark.skipif(not JIT, reason="interpreted kernels take a minute for it")


def beside(views: list[str], made: list[list[str]], maintain: str | None = None, few: int = cases.FEW) -> None:
    """Follow the views through the transactions, and compare them with DuckDB's answers after each.

    Those of an even number of characters in a database that reads the columns of small tables as it does of large ones.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (cases, computed_columns, first_hits, query_scope):
            patch.setattr(module, "FEW", few)
        _beside(views, made, maintain)


def _beside(views: list[str], made: list[list[str]], maintain: str | None) -> None:
    db, rival = lftj.Database._sized(columns_from=(1 << 13) * (len("".join(views)) % 2)), duckdb_database()
    rival.execute("set order_by_non_integer_literal = true")  # texts may be joined in the order of a constant
    for table in TABLES.values():
        db.sql(table)
        rival.execute(table)
    for i, query in enumerate(views):
        db.sql(f"create view v{i} as {query}", maintain=None if maintain is None else {f"v{i}": maintain})
    for statements in made:
        db.sql(";\n".join(statements))
        for statement in statements:
            rival.execute(statement)
        for i, query in enumerate(views):
            expected: list[Any] = rival.execute(query).fetchall()
            assert differ(db.sql(f"select * from v{i}"), expected) == "", f"the view {query}"
    for query in views:
        expected = rival.execute(query).fetchall()
        assert differ(db.sql(query), expected) == "", query
        db.sql(f"create or replace table made as {query}")
        assert differ(db.sql("select * from made"), expected) == "", f"the table as {query}"


@given(st.lists(queries(), min_size=1, max_size=2), transactions())
def test_views_are_what_duckdb_computes_anew(views: list[str], made: list[list[str]]) -> None:
    beside(views, made)


@given(st.lists(queries(), min_size=1, max_size=2), transactions())
def test_views_whose_values_have_heads_of_their_own(views: list[str], made: list[list[str]]) -> None:
    """As those of many ways have."""
    beside(views, made, few=1)


@given(st.lists(queries(), min_size=1, max_size=2), transactions(), st.sampled_from(["triggers", "delta"]))
def test_views_follow_by_the_strategy_that_is_asked_for(views: list[str], made: list[list[str]], maintain: str) -> None:
    beside(views, made, maintain)
