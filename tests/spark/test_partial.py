"""Counts and sums whose groups cross partitions: answers and changes are those of one database."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj.errors import EvaluationError
from spark_bridge import LocalQuery
from spark_bridge.bridge_errors import PlanError
from spark_bridge.change_tables import ChangeTables
from spark_bridge.partial import PartTotals
from spark_bridge.plan import PART
from spark_bridge.planner import make_plan

ORDERS = """
.decl orders(k:number, d:symbol, r:number)
.decl lines(k:number, l:number, p:decimal(10,2))
"""
RULES = """
revenue[d] = sum p * r : { orders(k, d, r), lines(k, _, p) }.
many[d] = count : { orders(k, d, _), lines(k, _, _) }.
total[] = sum p : { lines(_, _, p) }.
open_lines[d] = count : { orders(k, d, _), lines(k, l, _), !orders(l, _, _) }.
"""
NAMES = ("revenue", "many", "total", "open_lines")


def rows_of(table: pa.Table) -> set[tuple[object, ...]]:
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_key(name: str) -> bool:
    """Whether a plan over large relations keeps parts of it."""
    program = make_plan(ORDERS + RULES, outputs=[name], rows={"orders": 10**6, "lines": 10**6})
    return program.outputs[name].kind == PART


def test_parts_are_kept_where_that_spares_rows() -> None:
    assert by_key("revenue")
    assert by_key("total")
    small = make_plan(ORDERS + RULES, outputs=["revenue"], rows={"orders": 10, "lines": 10})
    assert small.outputs["revenue"].kind == "x"


@pytest.mark.parametrize("seed", range(2))
def test_answers_and_changes_are_those_of_one_database(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_bridge.planner.SPARED", 0.1)
    rng = Random(seed)
    orders = {(k, f"day {rng.randrange(4)}", rng.randrange(-2, 4)) for k in range(30)}
    lines = {(rng.randrange(30), i, rng.randrange(1000)) for i in range(120)}
    db = lftj.Database(ORDERS + RULES)

    def cents(rows: object) -> list[tuple[object, ...]]:
        from decimal import Decimal

        return [(k, i, Decimal(p) / 100, *more) for k, i, p, *more in rows]  # type: ignore[attr-defined]

    db.load("orders", sorted(orders))
    db.load("lines", cents(sorted(lines)))
    facts = {"orders": sorted(orders), "lines": cents(sorted(lines))}
    with LocalQuery.create(ORDERS + RULES, facts, processes=2) as query:
        plan = query._query.state.layout(0).plan
        assert {plan.outputs[name].kind for name in ("revenue", "many", "total")} == {PART}
        for batch in range(4):
            for name in NAMES:
                assert rows_of(query.result(name)) == set(db[name]), name
            changes = []
            for i in range(12):
                if rng.random() < 0.5 and lines:
                    row = rng.choice(sorted(lines))
                    lines.discard(row)
                    changes.append((*row, -1))
                else:
                    row = (rng.randrange(30), 1000 * batch + i + 200, rng.randrange(1000))
                    lines.add(row)
                    changes.append((*row, 1))
            query.apply({"lines": cents(changes)}, batch_id=f"batch {batch}")
            before = {name: set(db[name]) for name in NAMES}
            with db.transaction() as tx:
                tx.erase("lines", cents([row[:-1] for row in changes if row[-1] < 0]))
                tx.insert("lines", cents([row[:-1] for row in changes if row[-1] > 0]))
            for name in NAMES:
                found = rows_of(query.delta(name, since=batch))
                expected = {(*row, -1) for row in before[name] - set(db[name])}
                assert found == expected | {(*row, 1) for row in set(db[name]) - before[name]}, name
        assert query.verify()["ok"]


def test_rules_over_parts_are_refused() -> None:
    with pytest.raises(PlanError, match="partition by partition"):
        make_plan(".decl e(x:number, y:number) t[] = sum y : { e(_, y) }. big(s) :- t(s), s > 10.", outputs=["big"])
    with pytest.raises(PlanError, match="partition by partition"):
        make_plan(".decl e(x:number, y:float) t[] = sum y : { e(_, y) }.", outputs=["t"])


@pytest.mark.parametrize(
    ("text", "why", "remedy"),
    [
        ("n[] = count : { e(1, 2) }.", "its body has no variable to partition by", 'replicate=["n"]'),
        (
            "n[] = mean y : { e(_x, y) }.",
            "the parts of a mean of float cannot be put together",
            "its sum and its count",
        ),
        ("n[] = min s : { t(_x, s) }.", "the parts of a min of symbol cannot be put", 'replicate=["n"]'),
        (
            "n[] = count : { e(_x, _) }. n[] = sum y : { e(_x, y) }.",
            "several rules derive it",
            'replicate=["n"]',
        ),
    ],
)
def test_refusals_say_why_parts_are_of_no_use(text: str, why: str, remedy: str) -> None:
    with pytest.raises(PlanError, match="`n` cannot be derived partition by partition") as refused:
        make_plan(".decl e(x:number, y:number) .decl t(x:number, s:symbol) " + text)
    assert why in refused.value.why
    assert remedy in refused.value.remedy
    assert refused.value.where.startswith("<rules>:1:")


def test_a_sum_of_parts_out_of_range_is_an_error() -> None:
    program = make_plan(".decl e(x:number, y:number) t[] = sum y : { e(_, y) }.", outputs=["t"])
    parts = pa.table({"s": pa.array([2**62, 2**62], pa.int64())})
    totals = PartTotals(program.schemas["t"])
    with pytest.raises(EvaluationError, match="out of the range"):
        totals.step(ChangeTables(parts.slice(0, 0), parts))
    totals.add(ChangeTables(parts.slice(1), parts.slice(0, 0)))
    assert totals.rows().to_pylist() == [{program.schemas["t"].names[0]: 2**62}]


@pytest.mark.parametrize("type_", ["number", "decimal(18,2)"])
def test_a_batch_whose_sums_only_together_leave_their_type_is_refused(tmp_path: Path, type_: str) -> None:
    """No partition finds anything wrong: the batch was committed, and reading the sum was an error from then on."""
    most = 2**63 - 1 if type_ == "number" else Decimal("9999999999999999.99")
    least = 1 if type_ == "number" else Decimal("0.01")
    text = f".decl e(x:number, y:{type_}) t[] = sum y : {{ e(_, y) }}."

    def rows(*found: tuple[int, Any], op: int | None = None) -> pa.Table:
        kind = pa.int64() if type_ == "number" else pa.decimal128(18, 2)
        made = pa.table({"x": pa.array([x for x, _ in found]), "y": pa.array([y for _, y in found], kind)})
        return made if op is None else made.append_column("_op", pa.array([op] * len(found)))

    given = [(x, most // 8 if type_ == "number" else Decimal("1249999999999999.99")) for x in range(8)]
    with pytest.raises(EvaluationError, match="out of the range"):
        LocalQuery.create(
            text, {"e": rows(*given, *((x + 8, y) for x, y in given))}, checkpoint=tmp_path / "no", processes=4
        )
    with LocalQuery.create(text, {"e": rows(*given)}, checkpoint=tmp_path / "q", processes=4) as query:
        total = sum(y for _, y in given)
        room = most - total
        for step, (row, op, expected) in enumerate(
            [
                ((100, room + least), 1, None),
                ((101, room), 1, most),
                ((102, least), 1, None),
                ((101, room), -1, total),
                ((103, -most), 1, total - most),
                ((104, least), 1, total - most + least),
            ]
        ):
            before = query.result("t").to_pylist(), query.version
            if expected is None:
                with pytest.raises(EvaluationError, match="out of the range"):
                    query.apply({"e": rows(row, op=op)}, batch_id=f"b{step}")
                assert (query.result("t").to_pylist(), query.version) == before
            else:
                query.apply({"e": rows(row, op=op)}, batch_id=f"b{step}")
                assert [next(iter(found.values())) for found in query.result("t").to_pylist()] == [expected]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_spark_adds_parts_up(spark: Any, tmp_path: Path) -> None:
    from spark_bridge import SparkQuery

    text = ".decl e(x:number, y:number) t[] = sum y : { e(_, y) }. n[y] = count : { e(_x, y), e(y, _) }."
    rows = [(i % 17, i % 5) for i in range(60)]
    frame = spark.createDataFrame(rows, "x long, y long")
    db = lftj.Database(text)
    db.load("e", rows)
    query = SparkQuery.create(spark, text, {"e": frame}, checkpoint=tmp_path / "q", partitions=2)
    assert {tuple(row) for row in query.result("t").collect()} == set(db["t"])
    changes = spark.createDataFrame([(3, 3, -1), (100, 3, 1)], "x long, y long, _op long")
    query.apply({"e": changes}, batch_id="b")
    before = next(iter(db["t"]))
    with db.transaction() as tx:
        tx.erase("e", [(3, 3)])
        tx.insert("e", [(100, 3)])
    after = next(iter(db["t"]))
    expected = {(*before, -1), (*after, 1)} if before != after else set()
    assert {tuple(row) for row in query.delta("t", 0).collect()} == expected


@pytest.mark.parametrize(
    "head", ["t(x:number, _op_sum:number) -> X:number", "t(moved:number, k0:number) -> sum:number"]
)
def test_columns_may_be_called_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    """Also by names that look like those by which parts and changes are put together."""
    monkeypatch.setattr("spark_bridge.planner.SPARED", 0.0)  # parts, though they spare next to no rows here
    text = f".decl e(_op_sum:number, y:number) .decl {head}  t[x, y] = count : {{ e(k, x), e(k, y) }}."
    db, rows = lftj.Database(text), [(i % 7, i % 3) for i in range(40)]
    db.load("e", rows)
    before = set(db["t"])
    with LocalQuery.create(text, {"e": rows}, processes=2) as query:
        query.apply({"e": [(0, 0, -1), (3, 9, 1)]}, batch_id="1")
        query.apply({"e": [(3, 9, -1), (4, 8, 1)]}, batch_id="2")
        with db.transaction() as tx:
            tx.erase("e", [(0, 0)])
            tx.insert("e", [(4, 8)])
        after = set(db["t"])
        assert rows_of(query.delta("t", 0)) == {(*r, -1) for r in before - after} | {(*r, 1) for r in after - before}
        assert rows_of(query.delta("e", 0)) == {(0, 0, -1), (4, 8, 1)}


@pytest.mark.spark
@pytest.mark.jit_only
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", ["count", "max n"])
def test_spark_adds_up_columns_that_differ_in_case_alone(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    from spark_bridge import SparkQuery

    monkeypatch.setattr("spark_bridge.planner.SPARED", 0.0)  # parts, though they spare next to no rows here
    monkeypatch.setattr("spark_bridge.spark.SMALL_BYTES", -1)  # put together by Spark
    text = f""".decl e(a:number, A:number, n:number) .decl c(x:number, X:number) -> y:number
    c[x, X] = {op} : {{ e(k, x, n), e(k, X, _) }}."""
    rows = [(i % 7, i % 3, i % 5) for i in range(40)]
    db = lftj.Database(text)
    db.load("e", rows)
    before = set(db["c"])
    frame = spark.createDataFrame(rows, "x long, y long, z long")
    query = SparkQuery.create(spark, text, {"e": frame}, checkpoint=tmp_path / "q", partitions=2)
    assert query._query.in_parts("c", 0)
    assert {tuple(row) for row in query.result("c").collect()} == before
    assert query.result("c").columns == ["x", "X", "y"]
    query.apply({"e": spark.createDataFrame([(1, 7, 7, 1)], "x long, y long, z long, _op long")}, batch_id="b")
    with db.transaction() as tx:
        tx.insert("e", [(1, 7, 7)])
    after = set(db["c"])
    changed = {(*r, -1) for r in before - after} | {(*r, 1) for r in after - before}
    assert {tuple(row) for row in query.delta("c", 0).collect()} == changed
    query.close()
