"""The fuzzer finds what is wrong, and says it with a small program."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import lftj
from lftj import transaction
from lftj.maintain.delta import Delta
from tests.conftest import JIT
from tests.fuzz import __main__ as fuzz
from tests.fuzz import acyclic
from tests.fuzz import twin as twin_of
from tests.fuzz.accepted import accepted
from tests.fuzz.case import FORMS, Case, make_case, run
from tests.fuzz.declared import declared
from tests.fuzz.nulls import admitting_null, with_nulls
from tests.fuzz.questions import as_written, make_question, with_parameters
from tests.fuzz.reduce import smaller
from tests.fuzz.retype import OTHERS, TEXTS, Retyping, qualifies
from tests.fuzz.rewrites import rewritten
from tests.fuzz.twin import FuzzTwin
from tests.mixed.programs import Mixed
from tests.plain.evaluate import Broken, KeyConflict, evaluate, parse
from tests.types.cases import CASES

TEXT = ".decl e(c0:number, c1:number)\n.decl p(c0:number)\np(x) :- e(x, y), !e(y, x).\np(y) :- e(0, y)."


def written() -> Mixed:
    mixed = Mixed(lines=TEXT.splitlines(), base=["e"], maintain={"p": "trace"})
    mixed.known |= {"e": ("number", "number"), "p": ("number",)}
    return mixed


@pytest.fixture(params=[False, True], ids=["in memory", "in a file"])
def twin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FuzzTwin]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FuzzTwin(written(), TEXT, {"p": "trace"}, tmp_path / "a.lftj" if request.param else None)
        yield made
        made.close()


# Cases ------------------------------------------------------------------------------------------------------------


def test_some_cases() -> None:
    done = [run(make_case(seed)) for seed in range(30 if JIT else 2)]
    if JIT:
        verbs = {verb for case in done for calls in case.history for verb, _, _ in calls}
        assert {"insert", "erase", "upsert", "remove_rules", "rules", "preview", "raise", "load", "snapshot"} <= verbs
        assert {"ask", "more", "bad", "reopen"} <= verbs
        assert {case.form for case in done} == set(FORMS)


def test_rewritings_change_the_text() -> None:
    text = ".decl e(a:number, b:number)\np(x, z) :- e(x, y), e(y, z), x != z.\n"
    assert len({rewritten(text, Random(seed))[0] for seed in range(50)}) > 20


@pytest.mark.parametrize("type", OTHERS)
def test_texts_become_values_of_another_type(type: str) -> None:
    text = '.decl e(x:symbol, y:symbol)\n.decl p(x:symbol)\np(x) :- e(x, y), x > y, y != "é".'
    assert qualifies(text)
    mixed = Mixed(lines=text.splitlines(), base=["e"], known={"e": ("symbol", "symbol")})
    rows = [("b", "a"), ("a", "b"), ("c", "é"), ("é", "")]
    retyping = Retyping(type)
    twin = FuzzTwin(mixed, retyping.program(text), {}, None, retyping)
    twin.step([("insert", "e", rows)])
    twin.ask_duckdb()
    assert twin.contents["p"] == {("b",), ("é",)}
    assert list(twin.db["p"]) == [(CASES[type].of(TEXTS.index(x)),) for x in ("b", "é")]


def test_columns_come_to_admit_null() -> None:
    seen = set[str]()
    for seed in range(40):
        mixed = admitting_null(written(), Random(seed))
        assert mixed.lines[0].startswith(".decl e(c0:number")
        seen |= {
            word for word in ("number?", "is_null(", "or_null(", "coalesce(", "null,", "(null)") if word in mixed.text
        }
        program = parse(mixed.text)
        rows = with_nulls(program, "e", [(1, -(2**63))] * 20, Random(seed))
        for at in range(2):
            assert any(row[at] is None for row in rows) == (("e", at) in program.nullable)
        assert not any(-(2**63) in row for row in with_nulls(program, "e", rows, Random(seed), alternatives=True))
    assert {"number?", "is_null(", "or_null(", "coalesce(", "(null)"} <= seen


def test_rewritings_know_that_null_equals_nothing() -> None:
    text = ".decl e(a:number?, b:number)\np(x, z) :- e(x, y), e(y, z), x != z.\nq(x) :- p(x, _).\n"
    done = {name for seed in range(50) for name in rewritten(text, Random(seed))[1]}
    assert done == {"permuted", "shuffled"}


def test_recursions_go_along_acyclic_data() -> None:
    for seed in range(20 if JIT else 3):
        text = acyclic.make_program(Random(seed)).text
        assert accepted(text)
        assert "t0[" in text
    assert not accepted(".decl e(x:number)  p(x) :- e(x), !p(x).")


def test_programs_that_compute_texts_keep_them() -> None:
    assert not qualifies(".decl p(x:symbol)\np(cat(x, x)) :- p(x).")
    assert not qualifies(".decl p(x:number)")


# What histories do ------------------------------------------------------------------------------------------------


def test_rules_go_and_come_back(twin: FuzzTwin) -> None:
    twin.step([("insert", "e", [(1, 2), (0, 5)]), ("remove_rules", "p", [])])
    assert twin.contents["p"] == set()
    twin.again()
    twin.step([("rules", "p", []), ("insert", "e", [(2, 1)])])
    assert twin.contents["p"] == {(0,), (5,)} == set(twin.db["p"])
    twin.step([("remove_rules", "p", []), ("rules", "p", []), ("erase", "e", [(1, 2)])])
    assert twin.contents["p"] == {(0,), (2,), (5,)}
    twin.step([("remove_rules", "p", [])])
    twin.step([("add_rules", "p", []), ("load", "e", [(7, 8)])])
    assert twin.contents["p"] == {(0,), (2,), (5,), (7,)} == set(twin.db["p"])
    twin.verify()


def test_an_exception_in_the_block_changes_nothing(twin: FuzzTwin) -> None:
    twin.step([("insert", "e", [(1, 2)])])
    twin.step([("insert", "e", [(3, 4)]), ("preview", "", []), ("remove_rules", "p", []), ("raise", "", [])])
    assert twin.contents["p"] == {(1,)} == set(twin.db["p"])
    assert twin.facts["e"] == {(1, 2)}
    twin.step([("insert", "e", [(3, 4)])])
    assert twin.contents["p"] == {(1,), (3,)}


def test_a_block_that_changes_something_though_it_raised_is_found(
    twin: FuzzTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def committed(self: transaction.Transaction, kind: object, *rest: object) -> None:
        ended(self, None, None, None)

    ended = transaction.Transaction.__exit__
    monkeypatch.setattr(transaction.Transaction, "__exit__", committed)
    with pytest.raises(AssertionError, match="e"):
        twin.step([("insert", "e", [(3, 4)]), ("raise", "", [])])


def test_rules_come_later(twin: FuzzTwin) -> None:
    twin.step([("insert", "e", [(1, 2), (0, 5)]), ("more", "p(x) :- e(_, x).", [])])
    assert twin.contents["p"] == {(0,), (1,), (2,), (5,)}
    twin.step([("more", ".decl n(x:number)\nn(x) :- p(x), x > 1.", []), ("raise", "", [])])
    assert "n" not in twin.contents
    twin.step([("more", ".decl n(x:number)\nn(x) :- p(x), x > 1.", []), ("remove_rules", "p", [])])
    assert twin.contents["n"] == set()
    twin.again("traces")
    twin.step([("rules", "p", [])])
    assert twin.contents["n"] == {(2,), (5,)} == set(twin.db["n"])


def test_rows_of_a_refused_call_do_not_count(twin: FuzzTwin) -> None:
    twin.step([("bad", "e", [(1, 2), (3, 4)]), ("insert", "e", [(5, 6)])])
    assert twin.facts["e"] == {(5, 6)} == set(twin.db["e"])


def test_questions_are_asked_again(twin: FuzzTwin, monkeypatch: pytest.MonkeyPatch) -> None:
    twin.step([("insert", "e", [(1, 2), (0, 5)]), ("snapshot", "", [])])
    twin.step([("ask", "e({1}, x), !p({3}), x > 1", []), ("ask", "p(x), e(x, y)", []), ("reopen", "lost", [])])
    assert len(twin.asked) == 2
    twin.step([("insert", "e", [(2, 1)])])
    monkeypatch.setattr(twin_of, "answer", lambda *_: set())
    with pytest.raises(AssertionError, match="!p"):
        twin.step([("insert", "e", [(1, 4)])])
    monkeypatch.undo()


def test_questions_have_parameters() -> None:
    question = 'e({-1}, x), s(x, {"a}"}), w(x, 0.5), u({3u}), x < {1.5e-3}'
    assert as_written(question) == 'e(-1, x), s(x, "a}"), w(x, 0.5), u(3u), x < 1.5e-3'
    text, given = with_parameters(question)
    assert text == "e($p0, x), s(x, $p1), w(x, 0.5), u($p2), x < $p3"
    assert given == {"p0": -1, "p1": "a}", "p2": 3, "p3": 0.0015}
    made = {make_question(Random(seed), written()) for seed in range(40)}
    assert sum("{" in question for question in made) > 5


def test_relations_come_to_have_keys_facts_and_nothing() -> None:
    seen = [declared(written(), Random(seed)) for seed in range(60)]
    assert {"empty", "primary-key (c0)"} & {line.partition(") ")[2] for mixed in seen for line in mixed.lines}
    assert any("p" in mixed.base for mixed in seen)
    program = parse(".decl e(c0:number, c1:number) primary-key (c1, c0)  .decl p(c0:number) empty  p(x) :- e(x, x).")
    assert program.primary == {"e": (1, 0)}
    with pytest.raises(Broken):
        evaluate(program, {"e": [(1, 1)]})
    with pytest.raises(KeyConflict):
        evaluate(parse(".decl e(c0:number, c1:number) primary-key (c1)"), {"e": [(1, 1), (2, 1)]})


def test_a_snapshot_that_changed_is_found(twin: FuzzTwin) -> None:
    twin.step([("snapshot", "", []), ("insert", "e", [(1, 2)])])
    ((snapshot, contents),) = twin.held
    assert set(snapshot["e"]) == contents["e"] == set()
    twin.held = [(snapshot, twin.contents)]
    with pytest.raises(AssertionError, match="e of a snapshot"):
        twin.close()
    twin.held = []


# What fails -------------------------------------------------------------------------------------------------------


def test_cases_are_made_small() -> None:
    history = (
        (("insert", "e", [(1, 2), (3, 4)]), ("snapshot", "", [])),
        (("erase", "e", [(1, 2)]),),
        (("remove_rules", "p", []), ("insert", "e", [(5, 6), (7, 8), (9, 9)]), ("raise", "", [])),
    )
    case = Case(1, "mixed", written(), TEXT, (), "trace", history)

    def fails(trial: Case) -> bool:
        rows = [row for calls in trial.history for _, _, given in calls for row in given]
        return (7, 8) in rows and "e(0, y)" in trial.other

    small = smaller(case, fails)
    assert small.history == ((("insert", "e", [(7, 8)]),),)
    assert small.mixed.lines == small.other.splitlines() == [*TEXT.splitlines()[:2], TEXT.splitlines()[3]]


def test_scripts_run() -> None:
    calls = [("insert", "e", [(1, 2)]), ("remove_rules", "p", []), ("rules", "p", []), ("preview", "", [])]
    calls += [("ask", "e({1}, x)", []), ("bad", "e", [(8, 9)]), ("reopen", "", []), ("more", "p(9) :- e(9, _).", [])]
    history = (
        tuple(calls),
        (("load", "e", [(3, 4)]), ("snapshot", "", []), ("erase", "e", [(1, 2)]), ("raise", "", [])),
    )
    made: dict[str, lftj.Database] = {}
    exec(replace(make_case(0), mixed=written(), other=TEXT, strategy="mixed", history=history).script(), made)
    assert set(made["db"]["p"]) == {(1,), (3,)}


@pytest.mark.jit_only
def test_a_wrong_answer_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Delta joins lose a row of what they are to keep."""
    prepared = Delta.prepare

    def wrong(self, step, heads, why, limits):
        staged = prepared(self, step, heads, why, limits)
        relation = staged.relations[heads.name]
        if len(relation.content) > 1:
            less, _ = relation.content.update(relation.content.columns(limit=1), -np.ones(1, np.int8))
            staged.relations = {heads.name: relation.successor(less)}
        return staged

    history = ((("insert", "e", [(1, 2), (3, 4)]), ("insert", "e", [(5, 6)])), (("erase", "e", [(1, 2)]),))
    monkeypatch.setattr(Delta, "prepare", wrong)
    monkeypatch.setattr(fuzz, "make_case", lambda seed: Case(seed, "mixed", written(), TEXT, (), "delta", history))
    assert fuzz.main(["--one", "--seed", "100"]) == 1
    told = capsys.readouterr().out
    assert "seed 100 FAILED: AssertionError: p" in told
    assert "tx.insert('e', " in told
    assert "erase" not in told
    assert TEXT.splitlines()[3] not in told


def test_the_last_line_tells_what_duckdb_saw(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    assert fuzz.main(["--one", "--seed", "1"]) == 0
    assert capsys.readouterr().out.endswith("fuzz: of 1 cases DuckDB also evaluated 1\n")
