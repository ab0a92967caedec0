"""Words of aggregates that are functors or names where no `:` and braces follow their operand."""

from __future__ import annotations

import datetime as dt

import pytest

import lftj


@pytest.mark.parametrize(
    "rule",
    [
        "b(x) :- a(x), min(x) = @2024-03-31T03:30:00, max(x) < @2024-03-31T04:30:00.5.",
        "b(x) :- a(x), !(a(y), min(y) != @2024-03-31T03:30).",
        "b(x) :- x = min max(y, @2024-03-31T03:30:00) : { a(y), min(y) > @2023-03-31T03:30:00 }.",
    ],
)
def test_colons_of_a_time_begin_no_braces(rule: str) -> None:
    """`min(x) != @...T03:30` was read as an aggregate, whose operand ends at a colon."""
    db = lftj.Database(f".decl a(x:timestamp)  a(@2024-03-31T03:30:00).  {rule}")
    assert list(db["b"]) == [(dt.datetime(2024, 3, 31, 3, 30),)]
