"""`lftj.triggers`: programs from texts, and maps that follow events as users write them."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import SupportsIndex

import numpy as np
import pytest

from lftj import DataError, ProgramError, triggers
from lftj.errors import ArgumentError

REVENUE = "q[] = Sum(p * r, O(k, r) and L(k, p))"
UNEVEN = "q[k] = Sum(p * r, O(k, r) and L(k, p, c))"


def test_a_program_is_read_back_from_its_text() -> None:
    program = triggers.from_calculus(REVENUE)
    assert isinstance(program, triggers.TriggerProgram)
    assert "on +O(k, r): q[] += r * m_O[k]" in triggers.to_m3f(program)
    assert triggers.from_m3f(triggers.to_m3f(program)) == program


def test_the_naive_transform_keeps_more_maps() -> None:
    assert len(triggers.from_calculus(UNEVEN, naive=True).maps) > len(triggers.from_calculus(UNEVEN).maps)


def test_maps_follow_events_of_relations_of_several_widths() -> None:
    maps = triggers.Maps(triggers.from_calculus(UNEVEN))
    events: list[tuple[int, str, Sequence[SupportsIndex]]]
    events = [(+1, "O", (1, 2)), (+1, "L", (1, 10, 7)), (+1, "L", [1, 5, 8]), (+1, "O", (2, np.int64(3)))]
    maps.follow([*events, (+1, "L", (2, 4, 9)), (-1, "L", (1, 10, 7))])
    keys, values = maps.entries("q")
    assert dict(zip(keys[0].tolist(), values.tolist(), strict=True)) == {1: 10, 2: 12}


def test_many_events_give_what_a_plain_sum_gives() -> None:
    rng = np.random.default_rng(5)
    maps = triggers.Maps(triggers.from_calculus(REVENUE))
    rows: dict[str, Counter[tuple[int, int]]] = {"O": Counter(), "L": Counter()}
    events = []
    for _ in range(300):
        name, row = ("O", "L")[int(rng.integers(2))], (int(rng.integers(4)), int(rng.integers(-3, 9)))
        sign = -1 if rows[name][row] > 0 and rng.random() < 0.5 else 1
        rows[name][row] += sign
        events.append((sign, name, row))
    maps.follow(events)
    orders, lines = rows["O"].items(), rows["L"].items()
    due = sum(p * r * n * m for (k, r), n in orders for (key, p), m in lines if k == key)
    assert maps.entries("q")[1].tolist() == ([due] if due else [])


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ((+1, "X", (1, 2)), "event 1: `X` is no relation of the program"),
        ((2, "O", (1, 2)), "event 1: 2 is no sign"),
        ((+1, "O", (1, 2, 3)), "event 1: `O` has 2 columns, the row 3 values"),
        ((+1, "O", (1, "tea")), "event 1: 'tea' is no 64-bit integer"),
        ((+1, "O", (1, 2.0)), "event 1: 2.0 is no 64-bit integer"),
        ((+1, "O", (1, True)), "event 1: True is no 64-bit integer"),
        ((+1, "O", (1, 2**63)), f"event 1: {2**63} is no 64-bit integer"),
        (("O", (1, 2)), "event 1: ('O', (1, 2)) is no event"),
        (None, "event 1: None is no event"),
    ],
)
def test_a_wrong_event_is_refused_and_none_is_followed(event: object, what: str) -> None:
    maps = triggers.Maps(triggers.from_calculus(REVENUE))
    with pytest.raises(DataError) as error:
        maps.follow([(+1, "O", (1, 2)), event])  # type: ignore[list-item]
    assert str(error.value).splitlines()[0] == what
    assert "nothing was changed" in str(error.value)
    assert len(maps) == 0


def test_what_is_no_text_no_program_or_no_list_is_refused() -> None:
    with pytest.raises(DataError, match="`text` cannot be 7"):
        triggers.from_calculus(7)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="`text` cannot be None"):
        triggers.from_m3f(None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="`program` cannot be 'q'"):
        triggers.to_m3f("q")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="`events` cannot be 3"):
        triggers.Maps(triggers.from_calculus(REVENUE)).follow(3)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="variable `z` is not bound"):
        triggers.from_calculus("q[] = Sum(z, O(k, r))")


def test_a_map_that_is_not_there_is_named() -> None:
    maps = triggers.Maps(triggers.from_calculus(REVENUE))
    with pytest.raises(DataError, match=r"the program has no map 'revenue'\n  why: its maps are q, m_O"):
        maps.entries("revenue")
    assert repr(maps) == "<Maps of q: 0 entries>"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_maps_are_not_copied(copied: Callable[[object], object]) -> None:
    """A copy that followed an event did not come to an end."""
    program = triggers.from_calculus(REVENUE)
    with pytest.raises(ArgumentError, match="a Maps can be neither pickled nor copied"):
        copied(triggers.Maps(program))
    assert copy.deepcopy(program) == program
