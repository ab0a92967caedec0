"""Recursion along acyclic data: contents, deltas and previews against the plain reference, cycles, and what is refused.

Programs that compare the nodes of an edge have acyclic data whatever the facts are; cycles have tests of their own.

Catches: a key computed before one that it reads, a change that stops half way up, a value kept of a key whose rows are
gone, a binding of two alternatives counted twice, a cycle that is not noticed or named wrongly, a failed commit that
leaves something behind.
"""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, note

import lftj
from lftj import streams
from tests.conftest import JIT, examples
from tests.engine import programs
from tests.mixed.programs import Mixed
from tests.mixed.twin import Twin
from tests.plain.evaluate import evaluate, parse
from tests.recursion.programs import Written
from tests.recursion.twin import full, some_calls

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")
ROUNDS, MOST = (7, 12) if JIT else (2, 4)

ACYCLIC = {
    "roll-up": Written("e/3 w/2!", "t/2!", "t[x] = w[x] + sum q * t[y] : { e(x, y, q), x < y }."),
    "groups of the braces": Written(
        "e/2 w/2!", "t/2!", "t[x] = sum t[y] : { e(x, y), x < y }.\nt[x] = c :- w[x] = c, !(e(x, y), x < y)."
    ),
    "counted": Written("e/2 f/1", "t/2!", "t[x] = count : { e(x, y), x < y, t[y] = n, n < 2 } :- f(x)."),
    # What is counted stands beside the bindings where a text is computed: `y` was "bound by the recursion only".
    "counted texts": Written(
        "e/2 f/1",
        "t/2!",
        't[x] = count : { t(y, _), e(y, _), x < y, !contains("1", to_string(x + y)) } :- f(x).\n'
        "t[x] = sum strlen(to_string(z)) : { t(y, _), e(x, z), e(y, _), (x < y, z != 1 ; x < y, y < z) }"
        " :- !f(x), e(x, _).",
    ),
    "mean": Written(
        "e/2 w/nf!", "t/nf!", "t[x] = v + mean t[y] : { e(x, y), x < y } :- w[x] = v.\nt[x] = v :- w[x] = v, !e(x, _)."
    ),
    "floats": Written("e/2 w/nf!", "t/nf!", "t[x] = w[x] + sum t[y] : { e(x, y), x < y }."),
    "longest": Written(
        "e/2 w/2!",
        "t/2!",
        "t[x] = d + max t[y] : { e(x, y), x < y } :- w[x] = d.\nt[x] = d :- w[x] = d, !(e(x, y), x < y).",
    ),
    "texts": Written(
        "e/2 w/ns!",
        "t/ns!",
        "t[x] = cat(v, max t[y] : { e(x, y), x < y }) :- w[x] = v.\nt[x] = v :- w[x] = v, !(e(x, y), x < y).",
    ),
    "alternatives": Written(
        "e/2 w/2!", "t/2!", "t[x] = c + sum v : { e(x, y), x < y, t(y, v) ; w(x, v), y = v } :- w(x, c)."
    ),
    "paths": Written(
        "e/2",
        "r/2 t/3!",
        "r(x, y) :- e(x, y), x < y.\nr(x, z) :- r(x, y), e(y, z), y < z.\n"
        "t[x, b] = d + sum n : { e(x, y), x < y, t[y, b] = n } :- r(x, b), d = count : { e(x, b), x < b }.",
    ),
    "two keys": Written(
        "e/2 w/2!", "t/2!", "t[x] = t[y] + t[z] :- e(x, y), x < y, z = y + 1, !e(x, z).\nt[x] = c :- w[x] = c."
    ),
    "mutual": Written(
        "e/2 w/2!",
        "a/2! t/2!",
        "a[x] = w[x] + sum t[y] : { e(x, y), x < y }.\nt[x] = w[x] - sum a[y] : { e(x, y), x < y }.",
    ),
    "negated": Written("e/2 w/2!", "t/2!", "t[x] = 1 :- e(x, y), x < y, !t(y, _).\nt[x] = 2 :- w[x] = 7, !e(x, _)."),
    "another value": Written(
        "e/2 w/2!",
        "t/2!",
        "t[x] = 1 :- e(x, y), x < y, !t(y, 1).\nt[x] = 0 :- e(x, y), w[x] = v, x < y, t[y] = n, !t(y, v - n).\n"
        "t[x] = c :- w[x] = c, !e(x, _).",
    ),
    "counted but for a value": Written("e/2 f/2", "t/2!", "t[x] = count : { e(x, y), x < y, !t(y, v) } :- f(x, v)."),
    "nested": Written(
        "e/2 w/2!", "t/2!", "t[x] = w[x] + sum n + 1 : { e(x, y), x < y, n = sum v : { e(y, z), y < z, t(z, v) } }."
    ),
    "nested, without a value": Written(
        "e/2 f/1", "t/2!", "t[x] = sum n : { e(x, y), x < y, n = count : { e(y, z), y < z, !t(z, _) } } :- f(x)."
    ),
    "one has zeros": Written(
        "e/2 q/2 f/1",
        "t/2!",
        "t[x] = n :- e(x, _), n = sum v : { q(x, y), x < y, t(y, v) }, "
        "m = mean y : { e(x, y), x < y, f(y), !t(y, 7) }.\nt[x] = x :- f(x), !e(x, _).",
    ),
    "constants and repeated variables in keys": Written(
        "e/2 w/2!",
        "t/3!",
        "t[x, x] = c + sum v : { e(x, y), x < y, t(y, y, v) } :- w(x, c).\n"
        "t[x, 77] = count : { e(x, y), x < y, t(y, y, 0) } :- w(x, _).\n"
        "t[77, x] = n :- w[x] = n, e(x, y), x < y, t(y, 77, 1).",
    ),
    "computed key": Written("w/2!", "t/2!", "t[x + 1] = t[x] + c :- w[x] = c, x < 3, x > -2.\nt[-1] = 1 :- w[_] = _."),
    "divided": Written("e/2 w/2!", "t/2!", "t[x] = 12 / v :- e(x, y), x < y, t[y] = v, v != 0.\nt[x] = c :- w[x] = c."),
    # A value that is looked up was any value to an atom that is not of the recursion: `!s(y, v)` read as `!s(y, _)`.
    "negated outside": Written(
        "e/2 s/2 w/2!",
        "t/2!",
        "t[x] = n :- w[x] = c, n = c + sum v : { e(x, y), x < y, t(y, v), !s(y, v) }, !(s(x, n), e(n + 1, _)).",
    ),
    "read above": Written(
        "e/3 w/2!",
        "t/2! big/1 n/1!",
        "t[x] = w[x] + sum q * t[y] : { e(x, y, q), x < y }.\nbig(x) :- t[x] > 3.\nn[] = count : { big(_) }.",
    ),
}


def run(rng: Random, name: str, *, facts: bool) -> None:
    mixed: Mixed = ACYCLIC[name].mixed(sizes=programs.make_sizes(rng))
    if facts:
        mixed.base.append("t")
    note(f"{mixed.text} {mixed.sizes}")
    twin = Twin(mixed)
    for at in range(ROUNDS):
        calls = full(rng, twin, MOST) if at == 0 else some_calls(rng, twin, rng.choice((1, 2, MOST)))
        if at and not rng.randrange(12):
            calls = [("erase", name, sorted(rows)) for name, rows in twin.facts.items() if rows]
        note(str(calls))
        twin.transact(calls, [not rng.randrange(4) for _ in calls])


@pytest.mark.parametrize("name", ACYCLIC)
@examples(8, 2)
@given(programs.seeds)
def test_histories(name: str, rng: Random) -> None:
    run(rng, name, facts=False)


@pytest.mark.parametrize("name", ACYCLIC)
@examples(3, 1)
@given(programs.seeds)
def test_histories_with_facts_of_the_head(name: str, rng: Random) -> None:
    run(rng, name, facts=True)


ROLL_UP = """.decl uses(p:number, s:number, q:number)
.decl own(p:number) -> c:number
.decl total(p:number) -> c:number
total[p] = own[p] + sum q * total[s] : { uses(p, s, q) }.
"""
Row = tuple[int, ...]


def along(uses: set[Row], own: dict[int, int]) -> dict[object, set[int]]:
    """What each part that has a value of its own leads to."""
    return {p: {s for q, s, _ in uses if q == p and s in own} for p in own}


def has_cycle(leads: dict[object, set[int]]) -> bool:
    left = dict(leads)
    while done := [p for p, to in left.items() if not to & left.keys()]:
        for p in done:
            del left[p]
    return bool(left)


@examples(25, 3)
@given(programs.seeds)
def test_cycles_are_refused_and_named(rng: Random) -> None:
    """A transaction goes through exactly if no part that has a value leads to itself; else nothing is changed."""
    db = lftj.Database._sized(ROLL_UP, **programs.make_sizes(rng))
    uses: set[Row] = set()
    own: dict[int, int] = {}
    for _ in range(15 if JIT else 4):
        after, values = set(uses), dict(own)
        cycle: tuple[object, ...] = ()
        try:
            with db.transaction() as tx:
                for _ in range(rng.randint(1, 4)):
                    row = (rng.randrange(6), rng.randrange(6), rng.randint(-2, 3))
                    if rng.random() < 0.5:
                        (after.discard if row in after else after.add)(row)
                        (tx.insert if row in after else tx.erase)("uses", [row])
                    elif rng.random() < 0.8:
                        values[row[0]] = row[2]
                        tx.upsert("own", [(row[0], row[2])])
                    elif row[0] in values:
                        tx.erase("own", [(row[0], values.pop(row[0]))])
        except lftj.errors.CycleError as error:
            cycle = error.cycle
        leads = along(after, values)
        assert bool(cycle) == has_cycle(leads)
        if cycle:
            assert cycle[0] == cycle[-1]
            assert all(s in leads[p] for p, s in pairwise(cycle))
        else:
            uses, own = after, values
        facts: dict[str, Any] = {"uses": uses, "own": set(own.items())}
        assert set(db["total"]) == evaluate(parse(ROLL_UP), facts)["total"]


def test_the_message_names_the_rule_the_cycle_and_what_to_do() -> None:
    db = lftj.Database(ROLL_UP)
    db.load("own", [(1, 1), (2, 2), (3, 3)])
    db.load("uses", [(1, 2, 1), (2, 3, 1), (3, 1, 1)])
    with pytest.raises(lftj.errors.CycleError) as caught:
        len(db["total"])
    shown = str(caught.value)
    assert "total[1] -> total[2] -> total[3] -> total[1]" in shown
    assert "<rules>:4:1" in shown
    assert "own[p] + sum" in shown
    assert caught.value.remedy


def test_a_cycle_through_what_is_negated_is_named() -> None:
    """It was a StopIteration: no rule was found that looks a value up."""
    db = lftj.Database(".decl e(x:number, y:number)  won[x] = 1 :- e(x, y), !won(y, _).")
    db.load("e", [(1, 2), (2, 3), (3, 1)])
    with pytest.raises(lftj.errors.CycleError, match=r"won\[1\] -> won\[2\] -> won\[3\]") as caught:
        len(db["won"])
    assert caught.value.cycle == (3, 1, 2, 3)
    assert "won[x] = 1 :- e(x, y), !won(y, _)." in str(caught.value)


def test_a_mean_within_a_recursion_is_a_float_for_all_rules() -> None:
    """Whole numbers of another rule made the column one of numbers, which had the bits of the floats."""
    rules = "t[x] = mean v : { e(x, y), t(y, v) }.  t[x] = 1 :- e(_, x), !e(x, _)."
    db = lftj.Database(f".decl e(x:number, y:number)  {rules}")
    db.load("e", [(1, 2), (1, 3)])
    assert list(db["t"]) == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_rules_are_removed_and_added() -> None:
    db = lftj.Database(ROLL_UP)
    db.load("own", [(1, 1), (2, 2)])
    db.load("uses", [(1, 2, 3)])
    assert dict(db["total"]) == {1: 7, 2: 2}
    with db.transaction() as tx:
        tx.remove_rules("total")
    assert not len(db["total"])
    with db.transaction() as tx:
        tx.rules("total[p] = own[p] - sum q * total[s] : { uses(p, s, q) }.")
        tx.upsert("own", [(2, 5)])
    assert dict(db["total"]) == {1: 1 - 15, 2: 5}
    assert set(tx.delta["total"].inserted) == {(1, -14), (2, 5)}
    assert sorted(name for name in db) == ["own", "total", "uses"]


def test_a_clause_is_added_to_a_recursion() -> None:
    db = lftj.Database(ROLL_UP + ".decl bought(p:number, c:number)")
    db.load("own", [(1, 1)])
    db.load("uses", [(1, 2, 3)])
    assert dict(db["total"]) == {1: 1}
    db.rules("total[p] = c :- bought(p, c).")
    with db.transaction() as tx:
        tx.insert("bought", [(2, 10)])
    assert dict(db["total"]) == {1: 31, 2: 10}


def test_rules_that_make_others_recursive_are_refused() -> None:
    db = lftj.Database(".decl e(x:number, y:number)\n.decl w(x:number) -> c:number\nt[x] = c :- w[x] = c.")
    with pytest.raises(lftj.ProgramError, match="which is there, recursive") as caught:
        db.rules("t[x] = sum t[y] : { e(x, y) }.")
    assert "in one text" in str(caught.value)


def test_a_sum_out_of_range_is_refused() -> None:
    db = lftj.Database(ROLL_UP)
    db.load("own", [(1, 0), (2, 2**62), (3, 2**62)])
    with pytest.raises(lftj.errors.EvaluationError, match="out of the range of number"), db.transaction() as tx:
        tx.insert("uses", [(1, 2, 1), (1, 3, 1)])
    assert dict(db["total"]) == {1: 0, 2: 2**62, 3: 2**62}


def test_a_term_without_a_value_is_refused() -> None:
    db = lftj.Database(".decl e(x:number, y:number)\nf[x] = 100 / f[y] :- e(x, y).\nf[0] = 0.\nf[5] = 5.")
    db.load("e", [(7, 5)])
    assert dict(db["f"]) == {0: 0, 5: 5, 7: 20}
    with pytest.raises(lftj.errors.EvaluationError, match="division by zero"), db.transaction() as tx:
        tx.insert("e", [(1, 0)])
    assert dict(db["f"]) == {0: 0, 5: 5, 7: 20}


@pytest.mark.parametrize(
    "body", ["e(x, y), f[y] = n, v = 12 / (y - 5)", "e(x, y), f[y] = n, v = n; w(x, y), v = 12 / y, n = 0"]
)
def test_a_group_none_of_whose_bindings_has_a_value_is_refused(body: str) -> None:
    """It was left out without a word, as were the bindings of an alternative none of which had one."""
    db = lftj.Database(
        f".decl e(x:number, y:number)\n.decl w(x:number, y:number)\nf[x] = count : {{ {body} }}.\nf[5] = 1."
    )
    db.load("e", [(6, 5)])
    db.load("w", [(6, 0)])
    with pytest.raises(lftj.errors.EvaluationError, match="division by zero"):
        list(db["f"])


@pytest.mark.parametrize("op", ["count", "sum v", "max v"])
def test_a_condition_without_a_value_is_refused_where_no_other_row_is(op: str) -> None:
    """It was taken for one that does not hold."""
    rule = f"t[x] = 0 :- b(x), !e(x, _).\nt[x] = n :- e(x, _), n = {op} : {{ e(x, y), t(y, v), 10 / v > 1 }}."
    db = lftj.Database(f".decl b(x:number)\n.decl e(x:number, y:number)\n.decl t(x:number) -> v:number\n{rule}")
    db.load("b", [(1,), (2,)])
    assert list(db["t"]) == [(1, 0), (2, 0)]
    with pytest.raises(lftj.errors.EvaluationError, match="division by zero"), db.transaction() as tx:
        tx.insert("e", [(1, 2)])
    assert list(db["t"]) == [(1, 0), (2, 0)]
    db.load("e", [(1, 2)])
    with pytest.raises(lftj.errors.EvaluationError, match="division by zero"):
        len(db["t"])


def test_path_counts_are_an_instance() -> None:
    """Paths counted by a rule, and by `path_counts`, on graphs with many paths."""
    rng = Random(3)
    edges = {(a, b) for a in range(14) for b in range(a + 1, 14) if rng.random() < 0.4}
    db = lftj.Database(
        ".decl e(x:number, y:number)\n.decl r(x:number, y:number)\nr(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).\n"
        "n[x, b] = d + sum c : { e(x, y), n[y, b] = c } :- r(x, b), d = count : { e(x, b) }."
    )
    db.load("e", sorted(edges))
    db.path_counts("e", into="paths")
    for _ in range(5):
        assert list(db["n"]) == list(db["paths"])
        gone = rng.sample(sorted(edges), 3)
        with db.transaction() as tx:
            tx.erase("e", gone)


@pytest.mark.parametrize(
    "name", ["roll-up", "alternatives", "longest", "mutual", "negated", "nested", "paths", "negated outside"]
)
def test_circuits_agree(name: str) -> None:
    """`from_rules` of the same program, step by step."""
    mixed = ACYCLIC[name].mixed()
    heads = [head for head in mixed.known if head not in mixed.base]
    for seed in range(6 if JIT else 1):
        rng = Random(seed)
        db, circuit = lftj.Database(mixed.text), streams.from_rules(mixed.text)
        held: dict[str, set[Any]] = {name: set() for name in (*mixed.base, *heads)}
        for _ in range(6 if JIT else 2):
            given: dict[str, Any] = {}
            with db.transaction() as tx:
                for base in mixed.base:
                    width = len(mixed.known[base])
                    rows = {tuple(rng.randrange(5) for _ in range(width)) for _ in range(3)}
                    if base in mixed.functional:
                        taken = {row[:-1] for row in held[base]}
                        rows = set(
                            {row[:-1]: row for row in rows if row in held[base] or row[:-1] not in taken}.values()
                        )
                    come, gone = sorted(rows - held[base]), sorted(rows & held[base])
                    tx.erase(base, gone)
                    tx.insert(base, come)
                    held[base] = held[base] - set(gone) | set(come)
                    if rows:
                        given[base] = streams.zset(come + gone, [1] * len(come) + [-1] * len(gone))
            deltas = circuit.step(given)
            for head in heads:
                held[head] = held[head] - set(deltas[head].erased) | set(deltas[head].inserted)
                assert set(db[head]) == held[head]


CYCLIC = {
    "summed": ("number", "t[x] = c + n :- w(x, c), n = sum t[y] : { e(x, y) }."),
    "negated": ("symbol", "t[x] = c :- w(x, c), !e(x, _).\nt[x] = 5 :- e(x, y), !t(y, _), !w(x, _)."),
    "mutual": ("number", "t[x] = c + n :- w(x, c), n = sum u[y, 1] : { e(x, y) }.\nu[y, 1] = t[y] - 1 :- e(_, y)."),
    "counted": ("symbol", "t[x, z] = c + n :- w(x, c), w(z, _), n = count : { e(x, y), t(y, z, _) }."),
}


@pytest.mark.parametrize("name", CYCLIC)
def test_circuits_refuse_a_cycle_as_a_database_does(name: str) -> None:
    """They went round it up to a million times, or for good."""
    node, rules = CYCLIC[name]
    text = f".decl e(x:{node}, y:{node})\n.decl w(x:{node}) -> v:number\n{rules}"
    nodes: Any = range(5) if node == "number" else "abcde"
    for seed in range(5 if JIT else 1):
        rng, db, circuit, whole = Random(seed), lftj.Database(text), streams.from_rules(text), streams.circuit_of(text)
        facts: dict[str, list[Any]] = {"e": [], "w": [(x, i) for i, x in enumerate(nodes)]}
        db.load("w", facts["w"])
        len(db["t"])
        circuit.step({"w": facts["w"]})
        for _ in range(8 if JIT else 3):
            row = (rng.choice(nodes), rng.choice(nodes))
            sign = -1 if row in facts["e"] else 1
            after = {**facts, "e": [x for x in facts["e"] if x != row] + [row] * (sign > 0)}
            refused = ""
            try:
                with db.transaction() as tx:
                    (tx.insert if sign > 0 else tx.erase)("e", [row])
            except lftj.errors.CycleError as error:
                refused = str(error).replace("nothing was changed", "the step was not made")
            for one, rows in ((circuit, {"e": streams.zset([row], [sign])}), (whole, after)):
                if refused:
                    with pytest.raises(lftj.errors.CycleError) as caught:
                        one.step(rows)
                    assert len(caught.value.cycle) > 1
                    assert str(caught.value).splitlines()[1:] == refused.splitlines()[1:]
                else:
                    one.step(rows)
            facts = facts if refused else after
        assert set(whole.step(facts)["t"].inserted) == set(db["t"])


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("term", ["d + max e", "d + max e, d > @0s"])
def test_the_end_of_tasks_is_an_instant(declared: bool, term: str) -> None:
    """Of what type a sum is depends on the recursion: the clause that begins it says so, wherever it stands."""
    aggregate, _, more = term.partition(", ")
    db = lftj.Database(
        ".decl after(t:symbol, u:symbol)  .decl days(t:symbol, d:duration)  .decl start(t:symbol, s:timestamp)"
        + (".decl end(t:symbol) -> e:timestamp " if declared else " ")
        + f"end[t] = {aggregate} : {{ after(t, u), end[u] = e }} :- days(t, d){', ' if more else ''}{more}. "
        "end[t] = s + d :- days(t, d), start(t, s), !after(t, _)."
    )
    day, begin = dt.timedelta(days=1), dt.datetime(2024, 2, 28)
    db.load("after", [("c", "b"), ("b", "a"), ("c", "a")])
    db.load("days", [("a", day), ("b", 2 * day), ("c", day / 2)])
    db.load("start", [("a", begin)])
    assert list(db["end"]) == [("a", begin + day), ("b", begin + 3 * day), ("c", begin + 3.5 * day)]
    with db.transaction() as tx:
        tx.erase("after", [("c", "b")])
    assert list(tx.delta["end"].inserted) == [("c", begin + 1.5 * day)]


def test_decimals_of_unlike_scales_in_a_recursion_are_refused_with_words_of_the_rule() -> None:
    with pytest.raises(lftj.ProgramError) as info:
        lftj.Database(
            ".decl own(p:number) -> c:decimal(10,2)  .decl uses(p:number, s:number, q:decimal(4,1)) "
            "total[p] = own[p] + sum q * total[s] : { uses(p, s, q) }."
        )
    assert "all clauses of `total` derive rows of the same types" in str(info.value)
    assert "do: give them as many digits behind the point, with `to_decimal`" in str(info.value)
    assert "@" not in str(info.value)


def test_null_is_like_null_in_what_the_rows_of_a_key_negate() -> None:
    """A key with null had two values: that of the rule for keys that begin, and that of the rule for all others."""
    db = lftj.Database("""
        .decl start(x:number, z:number?) -> n:number
        .decl step(y:number, w:number?, x:number, z:number?)
        come[x, z] = sum n : { step(y, w, x, z), ways(y, w, n), or_null(w), or_null(z) }.
        ways[x, z] = n :- start(x, z, n), !come(x, z, _), or_null(z).
        ways[x, z] = n + m :- start(x, z, n), come(x, z, m), or_null(z).
        ways[x, z] = m :- step(_, _, x, z), come(x, z, m), !start(x, z, _), or_null(z).
    """)
    with db.transaction() as tx:
        tx.insert("start", [(1, None, 2), (2, None, 5)])
        tx.insert("step", [(1, None, 2, None), (2, None, 3, 7)])
    assert list(db["ways"]) == [(1, None, 2), (2, None, 7), (3, 7, 7)]
    with db.transaction() as tx:
        tx.erase("start", [(2, None, 5)])
    assert list(db["ways"]) == [(1, None, 2), (2, None, 2), (3, 7, 2)]


@pytest.mark.parametrize("type", ["number", "number?", "unsigned?", "symbol?"])
def test_a_negated_value_is_another_value_or_none(type: str) -> None:
    """The value was not looked at: `!state(y, 2)` did not hold of a key that had any."""
    a, b, c, d = "abcd" if type == "symbol?" else (1, 2, 3, 4)
    db = lftj.Database(f"""
        .decl next(x:{type}, y:{type})
        .decl first(x:{type})
        state[x] = 1 :- first(x).
        state[x] = 2 :- next(x, y), !state(y, 2), !first(x).
    """)
    with db.transaction() as tx:
        tx.insert("next", [(b, a), (c, b)])
        tx.insert("first", [(a,)])
    assert list(db["state"]) == [(a, 1), (b, 2)]
    with db.transaction() as tx:
        tx.insert("first", [(b,)])
    assert list(tx.delta["state"].inserted) == [(b, 1), (c, 2)]
    if "?" in type:
        with db.transaction() as tx:
            tx.insert("next", [(None, a), (d, None)])
        assert set(tx.delta["state"].inserted) == {(None, 2), (d, 2)}  # there is no row that null matches


@pytest.mark.parametrize("type", ["number", "number?", "unsigned?", "symbol?"])
def test_a_key_that_may_be_null_has_no_sum_of_nothing_beside_its_own(type: str) -> None:
    """The rule for keys without a sum read the sums, without that of null, before there were any: all keys had two."""
    a, b, c = "abc" if type == "symbol?" else (1, 2, 3)
    db = lftj.Database(f"""
        .decl next(x:{type}, y:{type})
        .decl own(x:{type}, v:number)
        total[x] = 1 + sum v : {{ next(x, y), total(y, v) ; own(x, v), y = x }} :- next(x, _).
    """)
    with db.transaction() as tx:
        tx.insert("next", [(b, a), (c, b)])
        tx.insert("own", [(b, 5)])
    assert list(db["total"]) == [(b, 6), (c, 7)]
    if "?" in type:
        with db.transaction() as tx:
            tx.insert("own", [(None, 7), (c, 1)])
            tx.insert("next", [(None, b)])
        assert list(tx.delta["total"].inserted) == [(c, 8)]
    with db.transaction() as tx:
        tx.erase("own", [(b, 5)])
    assert dict(db["total"])[b] == 1


@pytest.mark.parametrize("type", ["number", "unsigned", "symbol"])
def test_null_is_no_key_that_a_sum_of_nothing_is_asked_for(type: str) -> None:
    """Reading a column of texts that had null and must not was an ArrowIndexError."""
    a, b = "ab" if type == "symbol" else (1, 2)
    db = lftj.Database(f"""
        .decl own(p:{type}?) -> c:number
        .decl uses(p:{type}, s:{type}?)
        total[p] = own[p] + sum total[s] : {{ uses(p, s) }}.
    """)
    with db.transaction() as tx:
        tx.upsert("own", [(a, 1), (b, 2), (None, 5)])
        tx.insert("uses", [(a, b), (b, None)])
    assert list(db["total"]) == [(a, 3), (b, 2)]
    with db.transaction() as tx:
        tx.erase("uses", [(a, b)])
    assert list(db["total"]) == [(a, 1), (b, 2)]


@pytest.mark.parametrize("type", ["number", "symbol"])
def test_the_least_of_what_may_be_null_beside_what_is_looked_up(type: str) -> None:
    """Null was left out with all that was looked up: an AssertionError, or a KeyError where that was all."""
    a, b = "ab" if type == "symbol" else (1, 2)
    db = lftj.Database(f"""
        .decl e(x:number, y:number, k:{type}?)
        .decl own(x:number, k:{type})
        t[x] = k :- e(_, x, _), k = max l : {{ e(x, y, l), x < y, !t(y, _) }}, !own(x, _).
        t[x] = k :- own(x, k).
        u[x] = m :- e(x, _, _), m = min l : {{ e(x, y, l), x < y, u(y, _) ; own(x, l), y = x }}.
    """)
    with db.transaction() as tx:
        tx.insert("e", [(1, 2, a), (1, 2, None), (2, 3, None), (0, 1, b), (0, 2, None), (2, 4, b)])
        tx.insert("own", [(3, a), (2, b)])
    assert list(db["t"]) == [(2, b), (3, a)]
    assert list(db["u"]) == [(0, b), (1, a), (2, b)]
    with db.transaction() as tx:
        tx.erase("own", [(2, b)])
    assert list(db["t"]) == [(2, b), (3, a)]
    assert list(db["u"]) == []


def test_rules_of_one_head_of_a_recursion_go_and_come_back() -> None:
    """What was left read a head that was none any more: a KeyError."""
    rng = Random(7)
    heads = {
        "a": "a[x] = v + sum c : { e(x, y), x < y, b(y, c) } :- w[x] = v.",
        "b": "b[x] = v + count : { e(x, y), x < y, !a(y, 4) } :- w[x] = v.",
    }
    columns = ".decl e(x:number, y:number)  .decl w(x:number) -> c:number"
    columns += "  .decl a(x:number) -> c:number  .decl b(x:number) -> c:number\n"
    db = lftj.Database(columns + "\n".join(heads.values()))
    facts: dict[str, set[Row]] = {name: set() for name in ("e", "w", *heads)}
    gone = ""
    for at in range(30 if JIT else 6):
        with db.transaction() as tx:
            for name in ("e", "w", gone) if gone else ("e", "w"):
                row = (rng.randrange(5), rng.randrange(5)) if name in "ew" else (rng.randrange(5, 8), rng.randrange(5))
                if row in facts[name]:
                    tx.erase(name, [row])
                    facts[name].discard(row)
                else:
                    tx.insert(name, [row]) if name == "e" else tx.upsert(name, [row])
                    facts[name] = {old for old in facts[name] if name == "e" or old[0] != row[0]} | {row}
            if at % 5 == 2:
                gone = "ab"[at // 5 % 2]
                tx.remove_rules(gone)
            elif at % 5 == 4:
                tx.rules(heads[gone])
                gone = ""
        expected = evaluate(parse(columns + "\n".join(text for head, text in heads.items() if head != gone)), facts)
        for head in heads:
            assert set(db[head]) == expected[head]


@pytest.mark.parametrize("type", ["number", "symbol"])
def test_null_is_no_key_that_a_count_of_what_has_no_value_is_asked_for(type: str) -> None:
    """The group is in the braces only as a key that has no value, where it may be null."""
    a, b, c = "abc" if type == "symbol" else (1, 2, 3)
    db = lftj.Database(f"""
        .decl key(k:{type}?)
        .decl next(x:{type}, y:{type})
        .decl t(x:{type}, k:{type}?) -> n:number
        t[x, k] = n + 1 :- key(x), key(k), n = count : {{ next(x, y), !t(y, k, _) }}.
    """)
    with db.transaction() as tx:
        tx.insert("key", [(a,), (None,)])
        tx.insert("next", [(a, b), (a, c)])
    assert list(db["t"]) == [(a, a, 3)]
    with db.transaction() as tx:
        tx.insert("key", [(b,)])
    assert list(db["t"]) == [(a, a, 2), (a, b, 2), (b, a, 1), (b, b, 1)]
