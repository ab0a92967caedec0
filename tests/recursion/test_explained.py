"""What is told of a recursive component: `explain`, `tx.stats`, and the progress line.

Catches: figures of zero for work that was done, a plan that nobody is shown, a component that is shown as two strata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import lftj
from lftj.progress import Progress

PROGRAM = """
.decl arc(x:number, y:number)
.decl even(x:number)
.decl odd(x:number)
even(0).
even(y) :- odd(x), arc(x, y).
odd(y)  :- even(x), arc(x, y).
alone(x) :- arc(x, _), !even(x), !odd(x).
"""
RING = [(i, i + 1) for i in range(6)] + [(90, 91)]

EVALUATED = """\
stratum 1: even(x:number)  4 rows
  even(y) :- odd(x), arc(x, y).
    what comes with odd(x)
      key order x, y  (estimated _ steps)
         estimated  reads
        x            _  Δ[0](x) & arc[0,1](x)
        y            _  arc[0,1](x, y)  [not even[0](y)]
      3 runs, 3 rows, _ steps, _ s
  follows changes by rounds: `even`, `odd` are recursive; rounds up to 7, _ bytes a row
stratum 1: odd(x:number)  3 rows
  odd(y) :- even(x), arc(x, y).
    what comes with even(x)
      key order x, y  (estimated _ steps)
         estimated  reads
        x            _  Δ[0](x) & arc[0,1](x)
        y            _  arc[0,1](x, y)  [not odd[0](y)]
      4 runs, 3 rows, _ steps, _ s
  follows changes by rounds: `even`, `odd` are recursive; rounds up to 7, _ bytes a row
stratum 2: alone(x:number)  1 row
"""


def masked(text: str) -> str:
    """Without seconds, steps, bytes and estimates."""
    text = re.sub(r"\d+\.\d{3} (m?s)", r"_ \1", text)
    text = re.sub(r"[\d,]+ (steps|bytes)", r"_ \1", text)
    text = re.sub(r"^( +[a-z] +) [\d,]+  ", r"\1 _  ", text, flags=re.MULTILINE)
    return re.sub(r"^ +estimated  reads", "         estimated  reads", text, flags=re.MULTILINE)


def database() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("arc", RING)
    db.evaluate()
    return db


def test_the_component_is_one_stratum_with_its_delta_plans() -> None:
    assert masked(str(database().explain())).startswith(masked(EVALUATED))


def test_before_the_evaluation_there_are_plans_and_no_figures() -> None:
    db = lftj.Database(PROGRAM)
    text = str(db.explain("even"))
    assert "not evaluated" in text
    assert "runs" not in text
    assert "rounds up to" not in text


def test_as_data() -> None:
    even, odd, alone = json.loads(database().explain().json())["strata"]
    assert even["upkeep"]["component"] == odd["upkeep"]["component"] == ["even", "odd"]
    assert "component" not in alone["upkeep"]
    (rule,) = even["rules"]
    (plan,) = rule["delta_plans"]
    assert (plan["finds"], plan["key_order"], plan["actual"]["rows"]) == ("what comes with odd(x)", ["x", "y"], 3)
    assert rule["actual"] == {key: plan["actual"][key] for key in ("seconds", "rows", "steps")}
    assert rule["actual"]["steps"] > 0
    assert even["upkeep"]["bytes_per_row"] > 0


def test_the_last_commit_with_what_its_joins_did() -> None:
    db = database()
    with db.transaction() as tx:
        tx.erase("arc", [(4, 5)])
    even, odd = (rule for rule in tx.stats["rules"] if rule["head"] in ("even", "odd"))
    assert even["steps"] > 0
    assert odd["steps"] > 0
    heads = tx.stats["heads"]
    assert even["steps"] + odd["steps"] == heads["even"]["steps"] + heads["odd"]["steps"]
    lines = masked(str(db.explain("odd"))).partition("odd(x:number)")[2].splitlines()
    loss, by = "what goes with the loss of", "key order x, y; odd(y) looked up; 1 run"
    assert [line for line in lines if "last commit" in line] == [
        f"    last commit, {loss} arc(x, y): {by}, 1 row, _ steps, _ s",
        "    last commit, other support of odd(y): key order y, x; 1 run, 0 rows, _ steps, _ s",
        f"    last commit, {loss} even(x): {by}, 0 rows, _ steps, _ s",
        "  last commit: rounds, _ steps, 0 rounds, 2 rows examined (0 returned), _ ms",
    ]


def test_what_a_failed_commit_did_is_not_told() -> None:
    db = database()
    before = str(db.explain())

    def fails() -> None:
        with db.transaction() as tx:
            tx.erase("arc", [(0, 1)])
            tx.preview()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert str(db.explain()) == before


@pytest.mark.parametrize(
    ("maintain", "erased", "expected"),
    [(None, 202, "rounds"), (None, 203, "recompute"), ("delta", 203, "rounds"), ("trace", 203, "rounds")],
)
def test_where_much_support_goes_the_component_is_evaluated_anew(
    maintain: str | None, erased: int, expected: str
) -> None:
    """One in fifty of what is read, since as much is derived as read; what comes does not count."""
    pairs = [(2 * i, 2 * i + 1) for i in range(10_000)]
    db = lftj.Database(".decl e(x:number, y:number)\n.decl off(x:number)")
    rules = "t(x, y) :- e(x, y), !off(x).  t(x, z) :- t(x, y), e(y, z)."
    db.rules(rules, maintain={"t": maintain} if maintain else None)
    db.load("e", pairs)
    db.evaluate()
    with db.transaction() as tx:
        tx.erase("e", pairs[: erased - 50])
        tx.insert("e", [(-i, -i - 1) for i in range(1, 400, 2)])
        tx.insert("off", [(x,) for x, _ in pairs[erased - 50 : erased]])
    told = tx.stats["heads"]["t"]
    assert told["strategy"] == expected
    lost = f"{erased} rows that supported others went where there are {10_000 - erased + 50 + 200 + 50:,}"
    assert (lost in told["why"]) == (expected == "recompute")
    assert len(tx.delta["t"].erased) == erased
    assert len(tx.delta["t"].inserted) == 200


def test_a_trace_is_wished_for_where_there_can_be_none() -> None:
    db = lftj.Database(".decl e(x:number, y:number)")
    db.rules("t(x, y) :- e(x, y).  t(x, z) :- t(x, y), e(y, z).", maintain={"t": "trace"})
    db.load("e", RING)
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("e", [(0, 5)])
    why = "`e` changed; 1 row changed (recursive rules keep no traces)"
    assert (tx.stats["heads"]["t"]["strategy"], tx.stats["heads"]["t"]["why"]) == ("rounds", why)


def test_plans_of_a_head_that_follows_by_delta() -> None:
    db = lftj.Database(".decl e(x:number, y:number)\n.decl v(x:number)")
    db.rules("two(x, z) :- e(x, y), e(y, z), !v(y).", maintain={"two": "delta"})
    db.load("e", RING)
    for x in (6, 7):
        lines = masked(str(db.explain("two"))).splitlines()
        shape = re.compile(r"    when (.*) changes: key order (.*); about .* a changed row")
        assert [found.groups() for found in map(shape.fullmatch, lines) if found] == [
            ("e(x, y)", "x, y, z"),
            ("e(y, z)", "y, z, x"),
            ("!v(y)", "y, x, z"),
        ]
        with db.transaction() as tx:
            tx.insert("e", [(x, x + 1)])
    assert tx.stats["heads"]["two"]["strategy"] == "delta"


def test_progress_tells_the_stratum_the_round_and_the_new_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int, str, str]] = []

    def rows(self: Progress, what: Callable[[], str]) -> Callable[..., None]:
        named = what()

        def told(count: int, unit: str = "rows", stage: str = "") -> None:
            seen.append((named, count, unit, stage))

        return told

    monkeypatch.setenv("LFTJ_PROGRESS", "1")  # where nobody is shown the line, nobody is told
    monkeypatch.setattr(Progress, "rows", rows)
    db = database()
    component = [(count, unit, stage) for named, count, unit, stage in seen if named == "even, odd (stratum 1 of 2)"]
    assert {named for named, *_ in seen} == {"even, odd (stratum 1 of 2)", "alone (stratum 2 of 2)"}
    assert {unit for _, unit, _ in component} == {"new rows"}
    # One row a round, those of round 0 being facts; the seventh finds none.
    ends = {stage: count for count, _, stage in component if stage}
    assert ends == {f"round {n}": min(n, 6) for n in range(1, 8)}
    seen.clear()
    with db.transaction() as tx:
        tx.erase("arc", [(4, 5)])
    assert ("even, odd (stratum 1 of 2)", 2, "rows examined", "") in seen


def test_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LFTJ_PROGRESS", "1")
    line = Progress()
    told: Any = line.rows(lambda: "t (stratum 1 of 2)")
    told(1234, "new rows", "round 5")
    assert line._detail == " t (stratum 1 of 2), round 5, 1,234 new rows"
    told(0)
    assert line._detail == " t (stratum 1 of 2)"
