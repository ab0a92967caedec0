"""Sums and extremes of groups that lie close together: the same as those of groups that are sorted.

Catches: a group at the place of another, or lost because its sums are 0; words of negative and unsigned values; groups
that are out of order; ranges as wide as all codes.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given

from lftj.evaluate.accumulators import MOST, Folding, Sums, sums_of
from lftj.join import dense_groups, exactsum
from lftj.values.codes import encode_float
from tests.conftest import examples
from tests.engine.programs import seeds

ENDS = [-(2**63), 2**63 - 1, -(2**32), 2**32, -1, 0, 1, 2**31]


def drawn(rng: Random, n: int, values: list[int]) -> list[int]:
    return [rng.choice(values) if rng.random() < 0.3 else rng.randint(-3, 3) for _ in range(n)]


@given(rng=seeds)
@examples(200, 20)
def test_dense_sums_are_those_of_sorted_groups(rng: Random) -> None:
    groups, n = rng.randint(0, 3), rng.randint(1, 60)
    operand = rng.choice(["", "number", "unsigned", "number"])
    folding = Folding("sum" if operand else "count", groups, operand)
    offset, apart = rng.choice([(0, 1), (2**62, 1), (-(2**63) + 4, 1), (7, 86_400_000_000), (-1, 2**57)])
    rows = [[offset + apart * rng.randint(-2, rng.choice([2, 2, 40])) for _ in range(n)] for _ in range(groups)]
    if operand:
        rows.append(drawn(rng, n, ENDS))
    weights = np.array(drawn(rng, n, [1, -1, 3] if rng.random() < 0.8 else [MOST, -MOST, 5]), np.int64)
    given_rows = np.array(rows, np.int64).reshape(len(rows), n)
    found: list[Sums] = []
    for least in (1, 1 << 62):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dense_groups, "LEAST", least)
            found.append(sums_of(folding, given_rows, weights))
    dense, plain = found
    assert dense.groups.tolist() == plain.groups.tolist()
    assert dense.values.tolist() == plain.values.tolist()
    expected: dict[tuple[int, ...], list[int]] = {}
    for i in range(n):
        sums = expected.setdefault(tuple(row[i] for row in rows[:groups]), [0] * folding.words)
        sums[0] += int(weights[i])
        if operand:
            value = rows[groups][i] % 2**64 ^ 2**63 if operand == "unsigned" else rows[groups][i]
            sums[1] += int(weights[i]) * (value >> 32)
            sums[2] += int(weights[i]) * (value & 0xFFFFFFFF)
    assert list(zip(*dense.groups.tolist(), strict=True)) == sorted(expected) if groups else True
    if np.abs(weights).sum() < MOST:
        assert dense.values.T.tolist() == [expected[group] for group in sorted(expected)]


@given(rng=seeds)
@examples(200, 20)
def test_floats_of_numbered_groups_are_summed_as_those_of_sorted_ones(rng: Random) -> None:
    """In a table of all segments, or group by group in an order that is counted out."""
    k, n = rng.randint(0, 2), rng.randint(0, 60)
    folding = Folding("sum", k, "float")
    groups = np.array([[rng.randint(-2, rng.choice([2, 40])) for _ in range(n)] for _ in range(k)], np.int64)
    values = [0.0, 1e300, -1e300, 1e-300, float("inf"), -float("inf"), 0.1, rng.gauss(0, 1)]
    operand = encode_float(np.array([rng.choice(values) for _ in range(n)], np.float64))
    rows = np.concatenate([groups.reshape(k, n), operand[None, :]])
    weights = np.array([rng.choice([1, 1, 2, -1]) for _ in range(n)], np.int64)
    found: list[Sums] = []
    for least, each in ((1, rng.choice([1, 1 << 40])), (1 << 62, 16)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dense_groups, "LEAST", least)
            patch.setattr(exactsum, "VALUES", each)
            found.append(sums_of(folding, rows, weights))
    dense, plain = found
    assert [part.tolist() for part in dense] == [part.tolist() for part in plain]


@given(rng=seeds)
@examples(100, 10)
def test_runs_are_those_of_equal_numbers(rng: Random) -> None:
    m, room = rng.randint(0, 40), rng.choice([1, 3, 50])
    at = [rng.randrange(room) for _ in range(m)]
    if rng.random() < 0.3:
        at.sort()
    numbered = dense_groups.NumberedGroups(np.array(at, np.int64), room, None, np.arange(room)[None, :])
    there, order, starts = numbered.runs()
    expected = sorted(range(m), key=at.__getitem__)
    assert (list(range(m)) if order is None else order.tolist()) == expected
    assert there.tolist() == sorted(set(at))
    assert starts.tolist() == [[at[i] for i in expected].index(number) for number in sorted(set(at))]


@given(rng=seeds)
@examples(100, 10)
def test_words_of_dense_groups_are_those_of_sorted_ones(rng: Random) -> None:
    k, n, width = rng.randint(0, 3), rng.randint(1, 60), rng.choice([2, 4])
    offset, apart = rng.choice([(0, 1), (-(2**63) + 4, 1), (7, 86_400_000_000)])
    rows = [[offset + apart * rng.randint(-2, rng.choice([2, 20])) for _ in range(n)] for _ in range(k)]
    groups = np.array(rows, np.int64).reshape(k, n)
    words = np.array([drawn(rng, n, [2**56, -(2**56)]) for _ in range(width)], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense_groups, "LEAST", 1)
        found = dense_groups.dense_words(groups, words)
    sums: dict[tuple[int, ...], list[int]] = {}
    for i in range(n):
        held = sums.setdefault(tuple(row[i] for row in rows), [0] * width)
        sums[tuple(row[i] for row in rows)] = [a + b for a, b in zip(held, words[:, i].tolist(), strict=True)]
    assert found is not None or len(sums) > 1
    if found is not None:
        assert found[0].T.tolist() == [list(group) for group in sorted(sums)]
        assert found[1].T.tolist() == [sums[group] for group in sorted(sums)]


@given(rng=seeds)
@examples(100, 10)
def test_dense_extremes_are_those_of_each_group(rng: Random) -> None:
    k, n, last = rng.randint(0, 2), rng.randint(1, 60), rng.random() < 0.5
    rows = [[rng.randint(-2, rng.choice([2, 20])) * 3600 for _ in range(n)] for _ in range(k)] + [drawn(rng, n, ENDS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense_groups, "LEAST", 1)
        found = dense_groups.dense_extremes(np.array(rows, np.int64), last=last)
    held: dict[tuple[int, ...], list[int]] = {}
    for *group, value in zip(*rows, strict=True):
        held.setdefault(tuple(group), []).append(value)
    expected = [(*group, (max if last else min)(values)) for group, values in sorted(held.items())]
    assert found is None or list(zip(*found.tolist(), strict=True)) == expected
    assert found is not None or len(held) > 1
    columns, ranks = np.array(rows, np.int64), np.array([-value // 2 for value in rows[-1]])
    some = dense_groups.NumberedGroups.of(columns[:-1]).extremes(columns[-1], ranks, last=last)
    best = max if last else min
    first = {group: best(values, key=lambda value: -value // 2) for group, values in held.items()}
    assert list(zip(*some.tolist(), strict=True)) == [(*group, value) for group, value in sorted(first.items())]


def test_groups_that_lie_apart_are_sorted() -> None:
    ones = np.ones(400, np.int64)

    def places(*values: int) -> list[list[int]] | None:
        found = dense_groups.NumberedGroups.dense(np.array([values * (400 // len(values))], np.int64))
        return None if found is None else found.sums(ones, None, 0, 32)[0].tolist()

    assert places(0, 1, 2, 1 << 40) is None
    assert places(0, 1 << 40) == [[0, 1 << 40]]  # two steps
    assert places(5, 5 + 60 * 86_400, 5 + 3 * 86_400, 5) == [[5, 5 + 3 * 86_400, 5 + 60 * 86_400]]
    assert places(-(2**63), 2**63 - 1) is None  # wider than a difference can be
