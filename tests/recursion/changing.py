"""Programs whose rules change: a database beside its meaning while rules of recursive components come and go.

A few relations are declared once; each may hold facts, and be derived by rules that are drawn one after the other and
read any of them, so that components form, grow, merge, shrink and break up. The meaning of a program is that of its
present text by the plain evaluator. Two things it does not know are told to it otherwise: recursive minima are minima
of all bounded sums (`Rule.plain`), and path counts are counted (tests/paths/reference.py) and given to it as facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar
from unittest import mock

import pytest
from hypothesis import note

import lftj
from lftj.maintain import delta, step
from lftj.maintain import rounds as following
from lftj.recursion import min_max_fixpoint as best
from lftj.store import stored
from tests.engine import programs
from tests.mixed.programs import Mixed
from tests.mixed.twin import FAILURES
from tests.paths import reference as paths
from tests.plain.evaluate import Contents, Cycle, evaluate, in_order, recursive
from tests.plain.syntax import Program, parse
from tests.recursion import twin
from tests.recursion.programs import make_rows, make_rule

Row = tuple[Any, ...]
PAIR, ONE, TEXT = ("number", "number"), ("number",), ("number", "symbol")
GIVEN = {"e": PAIR, "f": PAIR, "b": ONE, "w": ("number",) * 3, "dag": PAIR}
HEADS = {"a0": PAIR, "a1": PAIR, "a2": PAIR, "u0": ONE, "u1": ONE, "on": (), "t0": TEXT, "t1": TEXT}
FUNCTIONAL = dict.fromkeys(("g", "m0", "m1", "d0", "d1", "r0", "r1"), PAIR)
# Recursive along edges that go upwards: evaluated key by key.
KEYED = {
    "r0": (
        "r0[x] = c + sum r0[y] : { e(x, y), x < y } :- g[x] = c.",
        "r0[x] = max n : { e(x, y), x < y, r0[y] = n ; b(x), n = 3, y = x }.\nr0[x] = 1 :- f(_, x), !e(x, _), !b(x).",
    ),
    "r1": (
        "r1[x] = count : { w(x, y, k), x < y, r1[y] < k } :- b(x).",
        "r1[x] = n + sum k * r1[y] : { w(x, y, k), x < y } :- r0[x] = n.",
    ),
}
# What only the plain evaluator knows: all sums of which d0 and d1 hold the least.
SUMS = {"d0": "s0", "d1": "s1"}
PATHS = "paths"
WISHES = ("auto", "auto", "triggers", "trace", "delta", "recompute")
AGGREGATES = ("count", "sum y", "min y", "max y")


@dataclass(frozen=True)
class Rule:
    """Rules of `head`, as the database gets them and as the plain evaluator does (empty: the same)."""

    head: str
    text: str
    plain: str = ""


def declared() -> Mixed:
    mixed = Mixed()
    for name, schema in {**GIVEN, **HEADS}.items():
        mixed.declare(name, schema)
    for name, schema in FUNCTIONAL.items():
        mixed.declare(name, schema, functional=True)
    mixed.base = [*GIVEN, *HEADS, "g"]
    return mixed


# Rules ----------------------------------------------------------------------------------------------------------


def _of(rng: Random, schema: Row) -> str:
    """A relation with these columns."""
    return rng.choice([name for name, found in {**GIVEN, **HEADS, **FUNCTIONAL}.items() if found == schema])


def _copy(rng: Random, head: str) -> str:
    args = ("x", "y", "z")[: len(HEADS[head])]
    return f"{head}({', '.join(args)}) :- {_of(rng, HEADS[head])}({', '.join(args)})."


def _closure(rng: Random, head: str) -> str:
    edge = _of(rng, PAIR)
    first, last = rng.choice(((edge, head), (head, edge), (head, head)))
    return f"{head}(x, y) :- {edge}(x, y).\n{head}(x, z) :- {first}(x, y), {last}(y, z)."


def _counting(rng: Random, head: str) -> str:
    what = rng.choice(AGGREGATES)
    return f"{head}(x, n) :- {_of(rng, ONE)}(x), n = {what} : {{ {_of(rng, PAIR)}(x, y), {_of(rng, PAIR)}(y, _) }}."


def _looking_up(rng: Random, head: str) -> str:
    return f"{head}(x, n) :- {_of(rng, ONE)}(x), n = {rng.choice(sorted(FUNCTIONAL))}[x]."


def _ternary(rng: Random, head: str) -> str:
    a, b, c = (_of(rng, PAIR) for _ in range(3))
    return f"{head}(x, z) :- {a}(x, y), {b}(y, z), {c}(x, z)."


def _projection(rng: Random, head: str) -> str:
    return f"{head}(x) :- {_of(rng, ONE)}(x), {_of(rng, PAIR)}(x, y), {_of(rng, PAIR)}(y, _)."


def _selection(rng: Random, head: str) -> str:
    return f"{head}(x) :- {_of(rng, ONE)}(x), {_of(rng, ONE)}(x)."


def _written(rng: Random, head: str) -> str:
    return f'{head}(x, cat(to_string(y), "{rng.choice("ab")}")) :- {_of(rng, PAIR)}(x, y).'


def _spread(rng: Random, head: str) -> str:
    return f"{head}(y, s) :- {_of(rng, TEXT)}(x, s), {_of(rng, PAIR)}(x, y)."


def _free(rng: Random, head: str) -> str:
    """A rule over relations of which some are members of a component to be, perhaps."""
    heads = {**HEADS}
    members = {head: heads.pop(head)} | {name: heads[name] for name in rng.sample(sorted(heads), rng.choice((0, 1, 2)))}
    lower = [*GIVEN, "g", *rng.sample([*HEADS, "m0", "d0"], 2)]
    lower = [name for name in lower if name not in members]
    known = Mixed(known={**GIVEN, **HEADS, **FUNCTIONAL})
    return make_rule(rng, known, lower, members, head, start=rng.random() < 0.4)


FORMS = {
    PAIR: (_copy, _closure, _closure, _counting, _looking_up, _ternary, _free, _free, _free),
    ONE: (_copy, _projection, _projection, _selection, _free, _free),
    TEXT: (_copy, _written, _spread, _free),
    (): (_free,),
}


def _least(heads: Iterable[str], reads: dict[str, str], start: str) -> list[Rule]:
    found = []
    for head in heads:
        below, own = reads[head], SUMS[head]
        sums = f"{own}(y, 0) :- {start}(y).\n{own}(y, n) :- {SUMS[below]}(x, c), w(x, y, k), n = c + k, n < 9."
        text = f"{start}(y), n = 0 ; {below}[x] = c, w(x, y, k), n = c + k, n < 9"
        plain = f"{sums}\n{head}[y] = min n : {{ {own}(y, n) }}."
        found.append(Rule(head, f"{head}[y] = min n : {{ {text} }}.", plain))
    return found


def some_rules(rng: Random, present: dict[str, list[Rule]]) -> list[Rule]:
    """Rules to add in one call to a program that has those `present`."""
    kind = rng.random()
    if kind < 0.08 and not present.get("d0") and not present.get("d1"):
        reads = rng.choice(({"d0": "d1", "d1": "d0"}, {"d0": "d0", "d1": "d0"}, {"d0": "d0"}))
        return _least(reads, reads, "b")
    if kind < 0.2 and (open_ := [head for head in ("m0", "m1") if not present.get(head)]):
        head = rng.choice(open_)
        if rng.random() < 0.2:
            return [Rule(head, f"{head}[x] = y :- {_of(rng, PAIR)}(x, y).")]
        return [Rule(head, f"{head}[x] = {rng.choice(AGGREGATES)} : {{ {_of(rng, PAIR)}(x, y) }}.")]
    if kind < 0.27 and (open_ := [head for head in KEYED if not present.get(head)]):
        head = rng.choice(open_)
        return [Rule(head, rng.choice(KEYED[head]))]
    heads = rng.sample(list(HEADS), rng.choice((1, 1, 2)))
    return [Rule(head, rng.choice(FORMS[HEADS[head]])(rng, head)) for head in heads]


# The twin -------------------------------------------------------------------------------------------------------


class Twin(twin.Twin):
    """A database and its meaning while rules come and go. `counting`: it has path counts over `dag`.

    `strategies`: how heads were derived, over all histories.
    """

    strategies: ClassVar[set[str]] = set()

    def __init__(self, sizes: dict[str, int], *, counting: bool) -> None:
        self.rules: dict[str, list[Rule]] = {}
        self.counting = self.counted = False
        mixed = declared()
        mixed.sizes = sizes
        super().__init__(mixed)
        self.held: list[tuple[Any, Contents]] = []
        if counting:
            self.db.path_counts("dag", into=PATHS)
            self.counting = self.counted = True
            self.program = self.with_rules({})
            self.contents = self.meaning()

    def with_rules(self, rules: dict[str, list[Rule]]) -> Program:
        lines = [*self.mixed.lines, *(rule.plain or rule.text for found in rules.values() for rule in found)]
        lines += [f".decl {name}(x:number, n:number)" for name in SUMS.values()]
        if self.counted:
            lines.append(f".decl {PATHS}(x:number, y:number) -> n:number")
        return parse("\n".join(lines))

    def meaning(self) -> Contents:
        """The contents of what the database has; raises what a transaction fails with."""
        given = dict(self.facts)
        if self.counting:
            given[PATHS] = {(*pair, n) for pair, n in paths.count(given["dag"]).items()}
        return {name: rows for name, rows in evaluate(self.program, given).items() if name not in SUMS.values()}

    def expected(self) -> Contents | None:
        try:
            return self.meaning()
        except FAILURES:
            return None

    def _check_component(self, component: tuple[str, ...], given: Contents) -> None:
        if not set(component) & {*SUMS.values(), *KEYED}:
            super()._check_component(component, given)

    def put(self, rules: dict[str, list[Rule]]) -> None:
        """These are the rules from here on."""
        self.rules, self.program = rules, self.with_rules(rules)

    def more(self, added: list[Rule]) -> dict[str, list[Rule]]:
        """The rules with some more."""
        heads = {**dict.fromkeys(self.rules, ()), **{rule.head: () for rule in added}}
        return {head: [*self.rules.get(head, ()), *(r for r in added if r.head == head)] for head in heads}

    def refused(self) -> bool:
        """Whether rules are in a recursion that must not be: of negations or functional heads."""
        try:
            components = in_order(self.program, {})
        except Cycle:
            return True
        for found in (set(found) for found in components if recursive(self.program, found)):
            if found & FUNCTIONAL.keys() and not found <= KEYED.keys():
                return True
        return False

    def add(self, owner: Any, added: list[Rule], maintain: dict[str, str], granularity: dict[str, str]) -> None:
        """Rules, by a transaction or by the database itself; some are refused (`refused`)."""
        before, text = self.rules, "\n".join(rule.text for rule in added)
        self.put(self.more(added))
        if self.refused():
            self.put(before)
            if not any(rule.head in FUNCTIONAL for rule in added):  # a minimum may be in a cycle
                with pytest.raises(lftj.ProgramError):
                    owner.rules(text, maintain=maintain, granularity=granularity)
        else:
            owner.rules(text, maintain=maintain, granularity=granularity)

    def remove(self, tx: Any, head: str) -> None:
        tx.remove_rules(head)
        self.counting &= head != PATHS
        self.put({name: found for name, found in self.rules.items() if name != head})

    def look(self, names: Iterable[str]) -> None:
        """Some relations are as they are to be."""
        for name in names:
            assert list(self.db[name]) == sorted(self.contents[name]), name

    def hold(self) -> None:
        self.held.append((self.db.snapshot(), self.contents))

    def check_held(self) -> None:
        """Snapshots are as they were."""
        for snapshot, contents in self.held:
            assert {name: set(snapshot[name]) for name in snapshot} == contents


# Histories ------------------------------------------------------------------------------------------------------


class Stop(Exception):
    """A user's exception within a transaction."""


def new_rows(rng: Random, twin: Twin, name: str, most: int) -> list[Row]:
    rows = make_rows(rng, twin.program.kinds[name], most, rng.choice((3, 4, 6)))
    if name == "dag":
        return [(min(row), max(row)) for row in rows if row[0] != row[1]]
    return rows


def facts_call(rng: Random, twin: Twin, most: int) -> tuple[str, str, list[Row]]:
    name = rng.choice([*twin.mixed.base, *GIVEN, *GIVEN, *["dag"] * (8 * twin.counting)])
    known = sorted(twin.facts[name])
    if known and rng.random() < 0.4:
        return "erase", name, [rng.choice(known) for _ in range(rng.choice((1, 1, 2, most)))]
    verb = "upsert" if name in FUNCTIONAL else "insert"
    return verb, name, new_rows(rng, twin, name, most)


def some_call(rng: Random, twin: Twin, tx: Any, most: int) -> None:
    """One call of a transaction."""
    kind = rng.random()
    heads = sorted(twin.rules) + [PATHS] * twin.counting
    if kind < 0.2 and heads:
        head = rng.choice(heads)
        note(f"remove {head}")
        twin.remove(tx, head)
        if rng.random() < 0.3:  # the same again, or other rules
            some_rules_call(rng, twin, tx)
    elif kind < 0.4:
        some_rules_call(rng, twin, tx)
    elif kind < 0.5:
        note("preview")
        twin.preview(tx)
    else:
        verb, name, rows = facts_call(rng, twin, most)
        note(f"{verb} {name} {rows}")
        twin.call(tx, verb, name, rows)


def some_rules_call(rng: Random, twin: Twin, owner: Any) -> None:
    added = some_rules(rng, twin.rules)
    maintain = {rule.head: rng.choice(WISHES) for rule in added}
    granularity = {rule.head: rng.choice(("auto", "node", "interval")) for rule in added if rng.random() < 0.3}
    note(f"rules {[rule.text for rule in added]} {maintain} {granularity}")
    twin.add(owner, added, maintain, granularity)


def transaction(rng: Random, twin: Twin, most: int) -> None:
    """A transaction of a few calls, which may fail."""
    before = {name: set(rows) for name, rows in twin.facts.items()}, twin.rules, twin.counting
    fails, expected = rng.random() < 0.1, None
    try:
        with twin.db.transaction() as tx:
            for _ in range(rng.choice((1, 1, 2, 3))):
                some_call(rng, twin, tx, most)
            expected = twin.expected()
            if fails:
                raise Stop
    except (Stop, lftj.Error):
        if not fails and expected is not None:
            raise
        note("failed")
        twin.facts, rules, twin.counting = before
        twin.put(rules)
        return
    assert expected is not None, "must fail"
    twin.differs(tx.delta, expected)
    twin.contents = expected
    told = tx.stats["heads"].values()
    Twin.strategies |= {one["strategy"] for head in told for one in (head, *head.get("parts", {}).values())}


def outside(rng: Random, twin: Twin, most: int) -> None:
    """A load, or rules, of the database itself: what is derived from them is evaluated when it is read."""
    before, rules = {name: set(rows) for name, rows in twin.facts.items()}, twin.rules
    if rng.random() < 0.5:
        name = rng.choice([name for name in twin.mixed.base if name not in FUNCTIONAL])
        rows = new_rows(rng, twin, name, most)
        twin.facts[name] |= set(rows)
        if twin.expected() is None:
            twin.facts = before
            return
        note(f"load {name} {rows}")
        twin.db.load(name, rows)
    else:
        added = some_rules(rng, rules)
        twin.put(twin.more(added))
        refused = twin.refused() or twin.expected() is None
        twin.put(rules)
        if refused:
            return
        note(f"rules of the database {[rule.text for rule in added]}")
        twin.add(twin.db, added, {rule.head: rng.choice(WISHES) for rule in added}, {})
    twin.contents = twin.meaning()


@contextmanager
def small(rng: Random) -> Iterator[None]:
    """Sizes from which on strategies are chosen are such that tests have them; sometimes."""
    with ExitStack() as patched:

        def patch(module: Any, **values: Any) -> None:
            patched.enter_context(mock.patch.multiple(module, **values))

        if rng.random() < 0.6:
            patch(
                delta, DEARER=rng.choice((4.0, 0.0)), WITNESSES=rng.choice((4.0, 1.0)), PLANNED=rng.choice((0.0, 1e5))
            )
        if rng.random() < 0.3:
            rows, part = rng.choice((1, 4)), rng.choice((0.0, 0.5))
            patch(step, BULK_ROWS=rows, BULK_PART=part)
            patch(stored, BULK_ROWS=rows, BULK_PART=part)
        if rng.random() < 0.3:
            patch(following, BULK_ROWS=rng.choice((1, 4)), LOST_ROWS=2, LOST_PART=rng.choice((0.0, 0.2)))
            patch(best, BULK_ROWS=2)
        if rng.random() < 0.5:
            patch(stored, SMALL_PART=10.0)
        yield


def history(rng: Random, count: int, most: int) -> Twin:
    """Rules and facts to begin with, then transactions, loads and looks; all is compared at the end."""
    with small(rng):
        twin = Twin(programs.make_sizes(rng), counting=rng.random() < 0.3)
        for _ in range(rng.choice((2, 4, 6))):
            outside(rng, twin, most)
        for _ in range(count):
            (outside if rng.random() < 0.15 else transaction)(rng, twin, most)
            looked = rng.random()
            if looked < 0.5:
                twin.verify()
            elif looked < 0.8:
                names = rng.sample(sorted(twin.contents), 2)
                note(f"look at {names}")
                twin.look(names)
            if rng.random() < 0.2:
                twin.hold()
        twin.verify()
        twin.check_held()
    return twin
