"""Terms without a value together: the sets of terms that a body is asked for are few, and the error is the same.

The reference asks for all sets, as many as 2^n of n terms, from the small to the large and in the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, note

import lftj
from lftj.errors import EvaluationError
from lftj.evaluate import by_columns, undefined_terms
from lftj.evaluate import evaluator as evaluating
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.rest_of_body import rest_of
from lftj.evaluate.undefined_atoms import without_undefined
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.plan.partial_functions import partial_in
from lftj.store.stored import StoredRelation
from tests.conftest import examples
from tests.engine import programs

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

look_for_error = undefined_terms.look_for_error


def ask_for_all_sets(
    evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None
) -> str:
    """The error of a clause, or nothing, found by asking for every set of terms."""
    terms, more = partial_in(clause), dict(also or {})
    if evaluator.state.undefined:
        clause, undefined = without_undefined(evaluator, clause)
        more.update(undefined)
    for size in range(1, len(terms) + 1):
        for without in combinations(terms, size):
            rest = rest_of(clause, without)
            if rest is None:
                continue
            chunks: list[Any] = []
            evaluator.walk(rest, limits, chunks.append, also=more)
            rows, count = evaluator.distinct(chunks, len(rest.head_args))
            if count:
                return str(undefined_terms._error(evaluator, clause, without[0], rest, rows[:, 0]))
    return ""


def raised(act: Callable[[], object]) -> EvaluationError | None:
    """The error that `act` raises."""
    try:
        act()
    except EvaluationError as error:
        return error
    return None


def database(rng: Random) -> lftj.Database:
    db = lftj.Database(
        ".decl e(x:number, y:number)\n.decl f(x:number)\n.decl g(a:number, b:number, c:number)\n"
        ".decl s(x:number, n:symbol)\n"
    )
    small = range(-1, rng.choice((2, 4)))
    texts = ("a", "0", "1", "(", "")
    db.load("e", [(rng.choice(small), rng.choice(small)) for _ in range(rng.choice((2, 5, 9)))])
    db.load("f", [(x,) for x in rng.sample(small, rng.choice((0, 1, 2, 2)))])
    db.load("g", [tuple(rng.choice((0, 0, 1, 2)) for _ in "abc") for _ in range(rng.choice((1, 3, 9)))])
    db.load("s", [(rng.choice(small), rng.choice(texts)) for _ in range(rng.choice((1, 3, 6)))])
    return db


ATOMS = ("e(x, y)", "g(a, b, c)", "f(x)", "e(y, w)", "g(a, x, c)", "f(w)", "s(x, n)", "e(x, v)")


def body(rng: Random) -> str:
    """Atoms, and conditions with terms that may have no value: alone, within each other, defining what others read."""
    parts = rng.sample(ATOMS, rng.choice((1, 2, 2, 3)))
    texts = any("n" in part for part in parts)
    bound = sorted(set("xyabcwvn") & set("".join(part[1:] for part in parts)) - {"n"})
    for number in range(rng.choice((1, 2, 3, 4, 5))):
        u, v, w = (rng.choice(bound) for _ in range(3))
        term = rng.choice((f"{u} / {v}", f"6 % {u}", f"{u} ^ ({v} - 1)", f"6 / ({u} - {v})", f"6 / (4 / {u})"))
        if texts and not rng.randrange(3):
            term = rng.choice(("to_number(n)", f"{u} / to_number(n)", "to_number(substr(n, 0, 1))"))
        kind = rng.randrange(8)
        if kind < 4:
            parts.append(f"{term} {rng.choice(('<', '>=', '!=', '>'))} {rng.choice((w, '0', '-9', '2'))}")
        elif kind < 6:
            parts.append(f"z{number} = {term}")
            bound.append(f"z{number}")
        elif kind < 7:
            parts.append(f"{term} + 6 / {w} != {v}")
        else:
            parts.append(rng.choice((f"{u} != 0", f"{u} + {v} > 1", f"!f({u})", f"z{number} = {u}", f"f({term})")))
    rng.shuffle(parts)
    head = rng.sample(bound, min(len(bound), rng.choice((1, 2))))
    shown = [rng.choice((name, name, f"6 / {name}")) for name in head]
    return f"h({', '.join(shown)}) :- {', '.join(parts)}."


@given(programs.seeds)
@examples(400, 15)
def test_the_error_is_that_of_asking_for_every_set(rng: Random) -> None:
    db, rule = database(rng), body(rng)
    note(rule)
    compared = 0

    def both(
        evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None = None
    ) -> None:
        nonlocal compared
        compared += 1
        expected = ask_for_all_sets(evaluator, clause, limits, also)
        error = raised(lambda: look_for_error(evaluator, clause, limits, also))
        assert ("" if error is None else str(error)) == expected
        if error is not None:
            raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluating, "look_for_error", both)
        with suppress(lftj.ProgramError):  # a variable that nothing binds
            db.rules(rule)
            assert raised(lambda: list(db["h"])) is None or compared


def walks(db: lftj.Database, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many walks it takes to find out whether `h` has an error."""
    count, walk = 0, Evaluator.walk

    def counted(self: Evaluator, *given: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        return walk(self, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "walk", counted)
        patch.setattr(by_columns, "MANY", 99)  # else a rule of many variables is not walked
        error = raised(lambda: list(db["h"]))
    assert error is None or "division by zero" in str(error)
    return count


def wide(terms: int, condition: str, rows: list[tuple[int, ...]]) -> lftj.Database:
    names = [f"a{i}" for i in range(terms)]
    declared = ", ".join(f"{name}:number" for name in ("x", *names, "w"))
    divided = ", ".join(f"10 / {name} > 0" for name in names)
    db = lftj.Database(f".decl e({declared})\nh(x) :- e(x, {', '.join(names)}, w), {divided}, {condition}.")
    db.load("e", rows)
    return db


def test_what_no_row_meets_is_found_in_one_more_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took a walk for every set of terms: a minute for ten."""
    for terms in (4, 8, 12):
        rows = [(x, *[0] * terms, x) for x in range(10)]
        assert walks(wide(terms, "w + x > 1000", rows), monkeypatch) == 2


def test_a_row_that_meets_it_elsewhere_costs_a_walk_per_term(monkeypatch: pytest.MonkeyPatch) -> None:
    for terms in (4, 8, 12):
        rows = [(x, *[0] * terms, x) for x in range(10)] + [(1000, *[1] * terms, 1000)]
        assert walks(wide(terms, "w + x > 1000", rows), monkeypatch) <= terms + 3


def test_a_row_without_any_value_costs_a_walk_per_pair_of_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    for terms in (4, 8, 12):
        rows = [(x, *[0] * terms, x) for x in range(10)]
        assert walks(wide(terms, "w + x > 10", rows), monkeypatch) <= terms * (terms + 1)


def test_only_the_combinations_that_occur_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    terms, rng = 10, Random(5)
    rows = []
    for x in range(6):
        row = [rng.choice((0, 1)) for _ in range(terms)]
        row[rng.randrange(terms)] = -1  # fails a condition: no row is in error
        rows.append((x, *row, 2000))
    assert walks(wide(terms, "w + x > 1000", rows), monkeypatch) <= 2 * terms * len(rows)


def test_a_join_on_a_term_is_not_left_out_for_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """What shows that there is no error tries rows of one atom, not pairs of two that only the term joins."""
    db = lftj.Database(
        ".decl r(a:number, x:number)\n.decl q(b:number, y:number)\n"
        "h(x) :- r(a, x), b = 100 / a, q(b, y), x < y, 10 / x > 0, 10 / y > 0."
    )
    db.load("r", [(a, 5000 + a) for a in range(2000)] + [(0, 0)])
    db.load("q", [(b, b - 3000) for b in range(2000)])
    matches, walk = [0], Evaluator.walk

    def counted(self: Evaluator, *given: Any, **more: Any) -> Any:
        evaluation, undefined = walk(self, *given, **more)
        matches.append(evaluation.counters.steps if evaluation.counters else 0)
        return evaluation, undefined

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "walk", counted)
        patch.setattr(by_columns, "MANY", 99)  # else a rule of many variables is not walked
        assert list(db["h"]) == []
    assert max(matches) < 20_000
