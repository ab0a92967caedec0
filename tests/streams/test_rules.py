"""Programs as circuits: database = circuit = plain evaluator after every transaction, and what one refuses all refuse.

Catches: whatever the two implementations of the language do differently, from the order of a body's conditions to the
order of texts.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note

import lftj
from lftj import streams
from lftj.errors import EvaluationError, KeyConflictError
from lftj.language.checker import check
from lftj.language.parse import parse
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.mixed.programs import make_program
from tests.mixed.twin import Refusal, Row, Twin, history

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

ROUNDS, MOST = (5, 8) if JIT else (2, 3)


class Circuit:
    """The circuit of a program, fed with changes, and the contents that its outputs sum up to."""

    def __init__(self, text: str, rng: Random) -> None:
        self.circuit = streams.from_rules(text)._sized(*rng.choice(((2, 2), (4, 2), (256, 64))))
        self.contents: dict[str, set[Row]] = {name: set() for name in self.circuit.outputs}
        self.step({}, {})

    def step(self, before: dict[str, set[Row]], after: dict[str, set[Row]]) -> lftj.Error | None:
        """One tick, from one set of facts to another; the error if it is refused."""
        given = {}
        for name, rows in after.items():
            changed = sorted(rows ^ before[name])
            weights = [1 if row in rows else -1 for row in changed]
            given[name] = streams.zset(changed, weights, columns=self.circuit.inputs[name])
        try:
            made = self.circuit.step(given)
        except lftj.Error as error:
            return error
        for name, delta in made.items():
            rows = self.contents[name]
            for row, weight in delta:
                assert weight == (-1 if row in rows else 1), (name, row, weight)
            rows ^= {row for row, _ in delta}
        return None


class Triplet(Twin):
    """A twin, and the circuit beside it."""

    def __init__(self, mixed: Any, rng: Random) -> None:
        super().__init__(mixed)
        self.beside = Circuit(mixed.text, rng)
        self.compare()

    def compare(self) -> None:
        assert self.beside.contents == self.contents

    def transact(self, calls: list[tuple[str, str, list[Row]]], previews: list[bool]) -> None:
        note(str(calls))
        before = {name: set(rows) for name, rows in self.facts.items()}
        super().transact(calls, [False] * len(previews))
        after = {name: set(rows) for name, rows in self.facts.items()}
        if self.failed > getattr(self, "refused", 0):
            self.refused = self.failed
            self.facts = {name: set(rows) for name, rows in before.items()}
            for verb, name, rows in calls:
                for row in rows:
                    if verb == "upsert":
                        self.facts[name] = {old for old in self.facts[name] if old[:-1] != row[:-1]}
                    (self.facts[name].discard if verb == "erase" else self.facts[name].add)(row)
            wrong, self.facts = self.facts, after
            assert self.beside.step(before, wrong) is not None, "the circuit must refuse it, too"
        else:
            error = self.beside.step(before, after)
            if error is not None:
                raise Refusal("the circuit must take it") from error
        self.compare()


@given(programs.seeds)
@examples(60, 3)
def test_random_programs(rng: Random) -> None:
    """All of the language, over random transactions, some of which are refused."""
    mixed = make_program(rng, keyed=False)
    note(mixed.text)
    history(rng, Triplet(mixed, rng), ROUNDS, MOST)


# Programs of one kind each, in which the random ones are poor ---------------------------------------------------------

PROGRAMS = {
    "text functors": """
      .decl s(x:symbol, n:number)  .decl p(x:symbol, n:number)  .decl q(x:symbol)
      p(cat(x, to_string(n)), strlen(x)) :- s(x, n).
      q(substr(x, 0, 1)) :- s(x, _), contains("a", x), !match("b.*", x).
      q(x) :- s(x, n), p(x, n).
    """,
    "ord and the order of texts": """
      .decl s(x:symbol, n:number)  .decl p(x:symbol)  .decl o(n:number)
      p(x) :- s(x, _), s(y, _), x < y.
      o(c) :- s(x, _), s(y, _), ord(x) = ord(y), c = strlen(x).
    """,
    "cat follows the order of the bindings": """
      .decl s(x:symbol, n:number)
      all[] = cat x : { s(x, n) }.
      by[n] = cat x : { s(x, n) }.
      longest[n] = max x : { s(x, n) }.
      least(x) :- x = min y : { s(y, _) }.
    """,
    "unsigned, float and extreme numbers": """
      .decl u(x:unsigned, y:float)  .decl n(x:number, y:number)  .decl p(x:unsigned)  .decl f(x:float)
      p(x + 1u) :- u(x, _).     p(itou(x)) :- n(x, _).
      f(y * 0.5) :- u(_, y), y < 1.0e300.
      most[] = max x : { u(x, _) }.     low[x] = min y : { n(x, y) }.
      m(z) :- n(x, y), z = min(x, y, 5).
    """,
    "facts in the text": """
      .decl e(x:number, y:number)
      e(1, 2). e(2, 3). e(3, 1).
      t(x, y) :- e(x, y).     t(x, z) :- t(x, y), e(y, z).     t(7, 7).
      one(x) :- t(x, x), !e(x, _).
    """,
    "arity 0": """
      .decl e(x:number, y:number)  .decl some()  .decl none()  .decl flag()
      some() :- e(_, _).     none() :- !some().     both() :- some(), flag().
      c[] = count : { e(x, y), flag() }.
    """,
    "relations that are empty in a component": """
      .decl e(x:number, y:number)  .decl never(x:number, y:number)
      a(x, y) :- never(x, y), b(y, _).     b(x, y) :- a(x, y), e(x, y).     c(x) :- e(x, _), !a(x, _).
    """,
    "mutual recursion": """
      .decl e(x:number, y:number)  .decl start(x:number)
      even(x) :- start(x).     odd(y) :- even(x), e(x, y).     even(y) :- odd(x), e(x, y).
      never(x) :- e(x, _), !even(x), !odd(x).
    """,
    "least costs": """
      .decl e(x:number, y:number)  .decl start(x:number)
      cost[y] = min d : { start(y), d = 0 ; cost[x] = c, e(x, y), c < 6, d = c + 1 }.
      far(x) :- cost[x] > 1.
    """,
    "greatest widths": """
      .decl e(x:number, y:number)  .decl start(x:number)
      wide[y] = max d : { start(y), d = 9 ; wide[x] = w, e(x, y), d = min(w, y) }.
    """,
    "aggregates over recursion": """
      .decl e(x:number, y:number)
      t(x, y) :- e(x, y).     t(x, z) :- t(x, y), t(y, z).
      n[x] = count : { t(x, y), !e(x, y) }.
      s(x, v) :- e(x, _), v = sum y : { t(x, y), y < 3 }.
      average[x] = mean y : { t(x, y) }.
    """,
    "conditions protect a division, wherever they stand": """
      .decl e(x:number, y:number)  .decl f(x:number)
      p(z) :- e(x, y), z = 10 / y, y != 0.
      q(z) :- e(x, y), y != 0, 10 / y > x, z = x % y.
      r(x) :- e(x, y), f(10 / y), y > 0.
    """,
    "divisions that nothing protects": """
      .decl e(x:number, y:number)  .decl f(x:number)
      p(z) :- e(x, y), f(x), z = 10 / y, z > 1.
      q(x) :- e(x, y), z = 6 / y, w = 6 / z, w < 4, f(w).
      s[x] = sum 12 / y : { e(x, y), !f(y) }.
    """,
    "sums out of the range of their type, some of them asked for": """
      .decl big(x:number, y:number)  .decl r(x:number)  .decl f(x:number, y:float)
      p(x, s) :- r(x), s = sum y : { big(x, y) }.
      q(x) :- big(x, _), s = sum y : { big(x, y) }, s > 3, x != 1.
      few(x) :- r(x), x > 1, !big(x, 3), 2 < sum y : { big(x, y), y > 0 }.
      outer[] = sum s : { r(x), x > 0, s = sum y : { big(x, y) }, 10 / x > 3 }.
      floats(x, s) :- r(x), s = sum y : { f(x, y) }.
      two(x) :- a = sum y : { big(x, y) }, b = sum y : { big(x, y), y != 2 }, r(x), a > b.
    """,
    "sums out of range that a recursion asks for": """
      .decl big(x:number, y:number)  .decl e(x:number, y:number)
      t(x, s) :- e(x, _), s = 0.
      t(y, s) :- t(x, _), e(x, y), s = sum z : { big(y, z) }.
      mean_of[x] = mean y : { big(x, y) }.
    """,
    "texts that are numbers, or not": """
      .decl s(x:symbol, n:number)  .decl f(x:number)
      p(n) :- s(x, n), f(to_number(x)).
      q(x) :- s(x, n), match(x, "a"), n > 0.
    """,
    "sums along data, of alternatives": """
      .decl e(x:number, y:number)  .decl own(x:number, v:number)
      total[x] = 1 + sum v : { e(x, y), x < y, total(y, v) ; own(x, v), y = x } :- e(x, _).
      most[x] = x + max v : { e(x, y), x < y, most(y, v) ; own(x, v), y = x } :- own(x, _).
    """,
    "one value for each key": """
      .decl price(x:number) -> y:number  .decl e(x:number, y:number)
      two[x] = y :- e(x, y).
      dear(x) :- price[x] > two[x].
    """,
}
POOLS: dict[str, tuple[Any, ...]] = {**programs.DATA, "number": (0, 1, 2, 3, -1, 2, 1, 2**63 - 1)}
TEXTS = ("a", "0", "1", "ab", "", "é", "b(", "B")


# Of which two are too much.
BIG = (2**62, 2**63 - 1, -(2**63), 1, 2, 3, -5)


def some_rows(rng: Random, kinds: tuple[str, ...], text: str) -> list[Row]:
    """Rows of small domains; of extreme numbers only where nothing adds them."""
    small = "extreme" not in text
    pools = [
        TEXTS if kind == "symbol" else (0, 1, 2, 3, 4) if small and kind == "number" else programs.DATA[kind]
        for kind in kinds
    ]
    if "out of" in text and len(kinds) == 2:
        pools[1] = BIG if kinds[1] == "number" and rng.randrange(2) else pools[1]
        pools[1] = (1.5, float("inf"), float("-inf"), 1e308) if kinds[1] == "float" else pools[1]
    return [tuple(rng.choice(pool) for pool in pools) for _ in range(rng.choice((1, 1, 2, 4)))]


@pytest.mark.parametrize("name", PROGRAMS)
@given(programs.seeds)
@examples(8, 1)
def test_programs_of_one_kind(name: str, rng: Random) -> None:
    text = PROGRAMS[name]
    db, beside = lftj.Database._sized(text, page_rows=2, directory_rows=2), Circuit(text, rng)
    checked = check(parse(text))
    base = sorted(set(checked.schemas) - {name for names in checked.strata for name in names})
    # Facts of the text have weight 1 from the first tick, and may be erased.
    facts: dict[str, set[Row]] = {n: set(checked.facts.get(n, ())) for n in base}
    for _ in range(ROUNDS + 2):
        before = {n: set(rows) for n, rows in facts.items()}
        for n in facts:
            added = some_rows(rng, tuple(db[n].columns.values()), name)
            gone = [row for row in sorted(facts[n]) if not rng.randrange(3)]
            facts[n] = (facts[n] | set(added)) - set(gone)
        note(str(facts))
        refused = None
        try:
            with db.transaction() as tx:
                for n, rows in facts.items():
                    tx.erase(n, sorted(before[n] - rows))
                    tx.insert(n, sorted(rows - before[n]))
        except lftj.Error as error:
            refused = error
        error = beside.step(before, facts)
        assert type(error) is type(refused), (error, refused)
        if refused is not None:
            facts = before
        assert beside.contents == {n: set(db[n]) for n in db}


def test_a_circuit_of_the_builder_s_program() -> None:
    program = lftj.Program()
    x, y, z = lftj.variables("x y z")
    e, t = program.input("e", x=int, y=int), program.relation("t", x=int, y=int)
    program.rule(t(x, y), e(x, y))
    program.rule(t(x, z), t(x, y), e(y, z))
    circuit = streams.from_rules(program)
    made = circuit.step({"e": [(1, 2), (2, 3)]})
    assert set(made["t"].inserted) == {(1, 2), (2, 3), (1, 3)}


def test_the_text_of_a_refused_division() -> None:
    circuit = streams.from_rules(".decl e(x:number, y:number)\np(z) :- e(x, y), z = 10 / y.")
    with pytest.raises(EvaluationError) as caught:
        circuit.step({"e": [(1, 0), (1, 5)]})
    assert str(caught.value) == (
        "<rules>:2:1: in `p(z) :- e(x, y), z = 10 / y.` with x = 1, y = 0: `10 / y` has no value\n"
        "  why: a division by zero, a result out of range or a text that is no number; the step was not made\n"
        "  do: exclude such rows in the body"
    )
    assert circuit.step({"e": [(1, 5)]})["p"] == {(2,): 1}


@pytest.mark.parametrize(
    "body", ["e(x, y), t[y] = n, u(y, v); w(x, y, v), n = 0", "w(x, y, v), n = 0; e(x, y), t[y] = n, u(y, v)"]
)
@pytest.mark.parametrize("least", [7, -(2**63)])
def test_null_may_be_in_one_alternative_of_an_aggregate_in_a_recursion(body: str, least: int) -> None:
    """The circuit refused columns "of different types", which nobody had written down."""
    text = ".decl e(x:number, y:number)  .decl w(x:number, y:number?, v:number?)  .decl u(y:number, v:number)\n"
    text += f"t[x] = count : {{ {body} }}."
    given = {"e": [(1, 2), (2, 3), (3, 9)], "w": [(3, 1, 5), (2, None, None)], "u": [(2, 7), (3, least)]}
    db, circuit = lftj.Database(text), streams.from_rules(text)
    for name, rows in given.items():
        db.load(name, rows)
    if least == 7:
        assert set(circuit.step(given)["t"].inserted) == set(db["t"]) == {(1, 1), (2, 2), (3, 1)}
        return
    for read in (lambda: list(db["t"]), lambda: circuit.step(given)):
        with pytest.raises(EvaluationError, match=f"{least} does not fit into a column that admits null"):
            read()


def test_the_text_of_a_refused_key() -> None:
    circuit = streams.from_rules(".decl price(item:symbol) -> cost:float")
    circuit.step({"price": [("tea", 3.5)]})
    with pytest.raises(KeyConflictError) as caught:
        circuit.step({"price": [("tea", 4.0)]})
    assert str(caught.value) == (
        'output `price`: `price` has two values under one key: price["tea"] = 3.5 and price["tea"] = 4.0\n'
        "  why: a functional predicate has one value for each key; the step was not made\n"
        "  do: take one of the rows away in the same step, or make the predicate a relation"
    )
    assert caught.value.rows == (("tea", 3.5), ("tea", 4.0))
    swapped = streams.zset([("tea", 3.5), ("tea", 4.0)], [-1, 1])
    assert circuit.step({"price": swapped})["price"] == {("tea", 3.5): -1, ("tea", 4.0): 1}


def test_a_recursion_that_begins_with_a_rule_s_constants_is_there_at_the_first_step() -> None:
    circuit = streams.from_rules("upto(n) :- n = 1.  upto(n) :- upto(m), n = m + 1, n < 4.")
    assert circuit.step()["upto"] == {(1,): 1, (2,): 1, (3,): 1}
    assert not circuit.step()["upto"]


def test_a_sum_out_of_range_in_a_recursion_is_refused() -> None:
    text = """.decl part(a:number, b:number, n:number)  .decl cost(a:number, c:number)
      total[a] = s :- cost(a, c), s = c + sum t * n : { part(a, b, n), total[b] = t }."""
    circuit, db, parts = streams.from_rules(text), lftj.Database(text), [(0, 1, 1), (0, 2, 1)]
    first = {"cost": [(0, 0), (1, 5), (2, 2**62)], "part": parts}
    circuit.step(first)
    for name, rows in first.items():
        db.load(name, rows)
    assert set(db["total"]) == {(0, 5 + 2**62), (1, 5), (2, 2**62)}
    with pytest.raises(EvaluationError, match="the sum of a group has no value"):
        circuit.step({"part": [(1, 2, 1)]})
    with pytest.raises(EvaluationError, match="out of the range"), db.transaction() as tx:
        tx.insert("part", [(1, 2, 1)])
    assert circuit.step({"part": streams.zset(parts[:1], [-1])})["total"] == {(0, 5 + 2**62): -1, (0, 2**62): 1}


@pytest.mark.parametrize(
    "rule",
    [
        "h(k) :- t(_, k), u(k), or_null(k).",
        "h(k) :- t(_, k), !u(k), or_null(k).",
        "h[k] = sum i : { t(i, k), u(k), or_null(k) }.",
        "h(i, j) :- t(i, k), t(j, k), or_null(k), i < j.",
        "h(k) :- t(_, k), u(k).",
        "h(i) :- t(i, k), !u(k).",
        "h(i, j) :- t(i, k), t(j, k), i < j.",
    ],
)
def test_null_matches_null_where_rules_say_so(rule: str) -> None:
    """Circuits of rules left rows out that `or_null` asks for, and gave such that it keeps away."""
    random, text = Random(rule), f".decl t(id:number, k:number?)\n.decl u(k:number?)\n{rule}"
    db, circuit = lftj.Database(text), streams.from_rules(text)
    held: dict[str, set[Any]] = {"t": set(), "u": set()}
    total: Counter[Any] = Counter()
    for _ in range(8):
        given = {}
        for name, rows in held.items():
            values = [(x,) for x in (None, 1, 2)] if name == "u" else [(i, x) for i in range(4) for x in (None, 1, 2)]
            flips = random.sample(values, 2)
            types = pa.schema([(c, pa.int64()) for c in (*("id", "k")[-len(values[0]) :], "_weight")])
            weighted = [(*row, -1 if row in rows else 1) for row in flips]
            given[name] = pa.table([pa.array(c, pa.int64()) for c in zip(*weighted, strict=True)], schema=types)
            with db.transaction() as tx:
                tx.erase(name, [row for row in flips if row in rows])
                tx.insert(name, [row for row in flips if row not in rows])
            rows ^= set(flips)
        total.update(dict(circuit.step(given)["h"]))
        assert {row for row, weight in total.items() if weight} == set(db["h"])


def test_alternatives_in_a_recursion_of_which_one_may_be_null() -> None:
    """It was a DataError about streams of different types."""
    text = """
        .decl e(x:number, y:number)
        .decl w(x:number) -> v:number
        .decl t(x:number) -> v:number?
        t[x] = n :- e(x, _), n = sum v + 1 : { e(x, y), x < y, t(y, v) ; w(x, v), y = x }.
    """
    db, circuit = lftj.Database(text), streams.from_rules(text)
    facts: dict[str, Any] = {"e": [(1, 2), (2, 3), (3, 4)], "w": [(2, 7)], "t": [(4, None)]}
    for name, rows in facts.items():
        db.load(name, rows)
    assert list(circuit.step(facts)["t"].inserted) == list(db["t"]) == [(1, 10), (2, 9), (3, 0), (4, None)]
