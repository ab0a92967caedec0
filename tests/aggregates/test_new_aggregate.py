"""A new aggregate is one entry of the table and its kernel: parsed, printed, typed, built, evaluated, maintained."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lftj
from lftj.evaluate.accumulators import COUNT, RESULTS
from lftj.evaluate.group_scan import ROW_FOLDS, InOrder
from lftj.language.aggregate_specs import AGGREGATES, AggregateSpec
from lftj.language.parse import _lark, _parsed, parse
from lftj.language.types import ADDED, NUMBER, SYMBOL
from lftj.results.monoids import BUILT_IN


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two toys: `pairs`, how often two of the bindings meet; `longest`, the first of the longest texts."""
    pairs = AggregateSpec("pairs", "How many pairs of bindings there are; 0 of none.", frozenset(), NUMBER, empty=0)
    monkeypatch.setitem(AGGREGATES, "pairs", pairs)
    monkeypatch.setitem(RESULTS, "pairs", lambda _, __, values: (values[COUNT] * (values[COUNT] - 1) // 2, None))
    longest = AggregateSpec("longest", "The longest text.", frozenset({SYMBOL}), SYMBOL, by_rows=True)
    monkeypatch.setitem(AGGREGATES, "longest", longest)
    monkeypatch.setitem(ROW_FOLDS, "longest", InOrder(lambda texts: max(texts, key=len)))
    _lark.cache_clear()
    _parsed.cache_clear()
    yield
    _lark.cache_clear()
    _parsed.cache_clear()


PROGRAM = """
    .decl city(name:symbol)
    .decl sale(city:symbol, item:symbol)
    met(c, n) :- city(c), n = pairs : { sale(c, _) }.
    word[c] = longest i : { sale(c, i) }.
"""


def test_every_aggregate_has_its_kernel() -> None:
    assert {op for op, spec in AGGREGATES.items() if spec.by_rows} == set(ROW_FOLDS)
    assert {op for op, spec in AGGREGATES.items() if not spec.by_rows} == set(RESULTS)
    assert {*BUILT_IN} == {op for op, spec in AGGREGATES.items() if not spec.takes_counted}
    assert all(op == spec.name and spec.doc.endswith(".") for op, spec in AGGREGATES.items())
    assert all(spec.operand or spec.result for spec in AGGREGATES.values())


@pytest.mark.usefixtures("toys")
def test_it_is_evaluated_and_follows_changes() -> None:
    db = lftj.Database(PROGRAM)
    db.load("city", [("Rome",), ("Bonn",)])
    db.load("sale", [("Rome", "tea"), ("Rome", "jam"), ("Rome", "coffee")])
    assert list(db["met"]) == [("Bonn", 0), ("Rome", 3)]
    assert list(db["word"]) == [("Rome", "coffee")]
    with db.transaction() as tx:
        tx.insert("sale", [("Bonn", "milk"), ("Rome", "chocolate"), ("Rome", "rum")])
        tx.erase("sale", [("Rome", "coffee")])
    assert list(tx.delta["met"].inserted) == [("Rome", 6)]
    assert list(db["word"]) == [("Bonn", "milk"), ("Rome", "chocolate")]
    with db.transaction() as tx:
        tx.erase("sale", [("Bonn", "milk"), ("Rome", "chocolate")])
    assert list(db["met"]) == [("Bonn", 0), ("Rome", 3)]
    assert [len(text) for _, text in db["word"]] == [3]


@pytest.mark.usefixtures("toys")
def test_it_is_printed_built_and_checked() -> None:
    program = parse(PROGRAM)
    assert parse(lftj.language.to_text(program)) == program
    sale = lftj.Program().input("sale", city=str, item=str)
    (x,) = lftj.variables("x")
    assert str(lftj.agg.pairs(sale(x, ...))) == "pairs : { sale(x, _) }"
    assert repr(lftj.agg.longest) == "<aggregate longest: The longest text.>"
    with pytest.raises(lftj.ProgramError, match="`longest` takes symbol, and `n` is number"):
        lftj.Database(".decl r(x:number, n:number) p[x] = longest n : { r(x, n) }.")
    with pytest.raises(lftj.ProgramError, match="`pairs` takes no operand"):
        lftj.Database(".decl r(x:number, n:number)\np(k) :- k = pairs n : { r(_, n) }.")


def test_a_toy_is_unknown_without_its_entry() -> None:
    assert "pairs" not in AGGREGATES
    assert AGGREGATES["sum"].operand == ADDED
    with pytest.raises(lftj.ProgramError):
        lftj.Database(PROGRAM)
