"""The programs in `examples/` print what their docstrings say, and end with what plain Python computes.

`python -m tests.examples.test_examples` writes the outputs into the docstrings (then read the diff).
"""

from __future__ import annotations

import contextlib
import heapq
import io
import re
import runpy
import sys
import textwrap
from collections.abc import Callable, Mapping
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

from lftj import streams

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
OUTPUT = re.compile(r'(?<=Prints:\n\n)(.+?)(?=^""")', re.DOTALL | re.MULTILINE)
Rows = set[tuple[Any, ...]]


def run(name: str) -> tuple[str, Any]:
    """What an example prints, and its database at the end, or its circuit."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        namespace = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return printed.getvalue(), namespace["db"] if "db" in namespace else namespace["circuit"]


def promised(name: str) -> str:
    found = OUTPUT.search((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    assert found is not None, f"{name} does not say what it prints"
    return textwrap.dedent(found[0])


def in_docstring(printed: str) -> str:
    return textwrap.indent("".join(f"{line.rstrip()}\n" for line in printed.splitlines()), "    ")


# What the examples derive, in plain Python from the facts that they end with


def closure(pairs: Rows) -> Rows:
    found = set(pairs)
    while more := {(a, d) for a, b in found for c, d in pairs if b == c} - found:
        found |= more
    return found


def access_rights(facts: Callable[[str], Rows]) -> Mapping[str, Rows]:
    belongs = closure(facts("member"))
    within = closure(facts("inside")) | {(f, f) for (f,) in facts("folder")}
    people = {who for (who,) in facts("person")}

    def reached(rights: Rows) -> Rows:
        found = {(w, r, f) for g, up, r in rights for w, of in belongs if of == g for f, at in within if at == up}
        return {row for row in found if row[0] in people}

    may = reached(facts("grant")) - reached(facts("deny"))
    rights = {r for _, _, r in facts("grant")}
    locked = {(r, f) for r in rights for (f,) in facts("folder") if all(row[1:] != (r, f) for row in may)}
    return {"may": may, "locked": locked}


def points_to(facts: Callable[[str], Rows]) -> Mapping[str, Rows]:
    points, heap, before = set(facts("new")), set[tuple[Any, ...]](), -1
    while before != len(points) + len(heap):
        before = len(points) + len(heap)
        points |= {(to, o) for to, source in facts("copy") for v, o in points if v == source}
        points |= {
            (to, o)
            for to, base, f in facts("load")
            for v, a in points
            if v == base
            for b, g, o in heap
            if (a, f) == (b, g)
        }
        heap |= {
            (a, f, o)
            for base, f, source in facts("store")
            for v, a in points
            if v == base
            for w, o in points
            if w == source
        }
    return {
        "points": points,
        "heap": heap,
        "alias": {(v, w) for v, a in points for w, b in points if a == b and v != w},
    }


def fraud_rings(facts: Callable[[str], Rows]) -> Mapping[str, Rows]:
    payments, logins = facts("payment"), facts("login")
    linked = closure({(a, b) for a, d in logins for b, e in logins if d == e})
    ring = set()
    for chain in permutations(payments, 3):
        (_, a, to, _, first), (_, b, then, _, _), (_, c, back, _, last) = chain
        passed = all(m >= n >= 0.9 * m and d <= e <= d + 3 for (*_, m, d), (*_, n, e) in pairwise(chain))
        if passed and (to, then, back) == (b, c, a) and len({a, b, c}) == 3 and last <= first + 3:
            ring.add((a, b, c))
    suspect = {row for row in ring if any(pair in linked for pair in permutations(row, 2))}
    involved = {account for row in suspect for account in row}
    paid = {(x, sum(row[3] for row in payments if row[1] == x)) for x in involved}
    return {"ring": ring, "suspect": suspect, "paid": paid}


def friend_triangles(facts: Callable[[str], Rows]) -> Mapping[str, Rows]:
    friends: dict[int, set[int]] = {}
    for a, b in facts("friend"):
        friends.setdefault(a, set()).add(b)
        friends.setdefault(b, set()).add(a)
    counts = {x: sum(len(own & friends[y]) for y in own) // 2 for x, own in friends.items()}
    return {
        "triangles": {(x, n) for x, n in counts.items() if n},
        "all": {(sum(counts.values()) // 3,)},
        "clustering": {(x, 2 * n / (len(friends[x]) * (len(friends[x]) - 1))) for x, n in counts.items() if n},
    }


def road_closures(facts: Callable[[str], Rows]) -> Mapping[str, Rows]:
    closed = facts("closed") | {(b, a) for a, b in facts("closed")}
    time, queue = dict[int, int](), [(0, a) for (a,) in facts("station")]
    while queue:
        minutes, here = heapq.heappop(queue)
        if here not in time:
            time[here] = minutes
            for a, b, more in facts("road"):
                if a == here and (a, b) not in closed:
                    heapq.heappush(queue, (minutes + more, b))
    crossings = {a for a, _, _ in facts("road")}
    return {"time": set(time.items()), "cut_off": {(a,) for a in crossings - time.keys()}}


def fraud_alerts(facts: Callable[[str], Rows]) -> Mapping[str, Rows]:
    payments = facts("payment")
    now = max(at for *_, at in payments)
    used: dict[int, list[int]] = {}
    for _, card, cents, at in payments:
        if at >= now - 600:
            used.setdefault(card, []).append(cents)
    busy = {(card, len(all), sum(all)) for card, all in used.items() if len(all) >= 3 and sum(all) >= 100_000}
    owners = dict(facts("owner"))
    assert busy
    return {"busy": busy, "alert": {(owners[card], cents) for card, _, cents in busy}}


PLAIN = {
    function.__name__: function
    for function in (access_rights, points_to, fraud_alerts, fraud_rings, friend_triangles, road_closures)
}


def dashboard_is_right(circuit: streams.Circuit) -> None:
    """However the clicks are cut into steps, all but the late ones count."""
    clicks = runpy.run_path(str(EXAMPLES / "click_dashboard.py"))["CLICKS"]
    for rows in (1, 4, 20):
        changes, found = circuit.incremental(), dict[str, dict[Any, int]]()
        kept, first = [], -(10**9)
        for lo in range(0, len(clicks), rows):
            batch = clicks.slice(lo, rows)
            given = [tuple(row.values()) for row in batch.to_pylist()]
            kept += [row for row in given if row[2] >= first]
            first = max(first, max(row[2] for row in given) - 30)
            for name, delta in changes.step({"click": batch}).items():
                for row, weight in delta:
                    total = found.setdefault(name, {})
                    total[row] = total.get(row, 0) + weight
        by_minute: dict[int, dict[str, list[int]]] = {}
        for user, page, at in kept:
            by_minute.setdefault(at - at % 60, {}).setdefault(page, []).append(user)
        front = set()
        for minute, pages in by_minute.items():
            ranked = sorted(pages, key=lambda page: (-len(pages[page]), page))[:2]
            front |= {(minute, p, len(pages[p]), len(set(pages[p])), i) for i, p in enumerate(ranked, 1)}
        assert {row for row, weight in found["front"].items() if weight} == front
        assert [row for row, weight in found["visitors"].items() if weight] == [(len({row[0] for row in kept}),)]
        long: list[tuple[int, int]] = []
        for user in {row[0] for row in kept}:
            times = sorted(row[2] for row in kept if row[0] == user)
            cuts = [0, *(i for i in range(1, len(times)) if times[i] - times[i - 1] > 45), len(times)]
            long += [(user, hi - lo) for lo, hi in pairwise(cuts) if hi - lo >= 3]
        assert sorted(row for row, weight in found["long"].items() if weight) == sorted(long)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.jit_only if name == "friend_triangles" else ()) for name in NAMES]
)
def test_an_example_prints_what_it_says_and_is_right(name: str) -> None:
    printed, db = run(name)
    assert in_docstring(printed) == textwrap.indent(promised(name), "    ")
    if name == "click_dashboard":
        dashboard_is_right(db)
        return
    for relation, rows in PLAIN[name](lambda name: set(db[name])).items():
        assert set(db[relation]) == rows, relation


def test_the_data_frame_may_be_a_dict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    printed, _ = run("fraud_rings")
    assert printed == promised("fraud_rings")


def test_examples_are_short() -> None:
    lengths = {name: len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in NAMES}
    assert len(lengths) == 7
    assert {name: lines for name, lines in lengths.items() if not 40 <= lines <= 120} == {}


if __name__ == "__main__":
    for name in NAMES:
        path, (printed, _) = EXAMPLES / f"{name}.py", run(name)
        text = path.read_text(encoding="utf-8")
        path.write_text(OUTPUT.sub(lambda _, printed=printed: in_docstring(printed), text, count=1), encoding="utf-8")
