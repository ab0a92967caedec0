"""What is partitioned, what is replicated, and what is refused, by the name of the rule and the reason."""

from __future__ import annotations

import pytest

import lftj
from spark_bridge.bridge_errors import PlanError
from spark_bridge.emit import program_text
from spark_bridge.plan import ALL, Pattern
from spark_bridge.planner import make_plan

BASE = """
.decl e(a:number, b:number)
.decl s(a:number, n:symbol)
.decl price(item:symbol) -> cost:float
"""


def copies(text: str, **options: object) -> set[str]:
    return {f"{name} {pattern}" for name, pattern in make_plan(BASE + text, **options).copies}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t(x, y, z) :- e(x, y), e(y, z), e(x, z).", {"e x_0", "e all", "t x_0"}),
        ("t(x, z) :- e(x, y), e(z, y), !e(z, x).", {"e x_0", "e all", "t x_1"}),
        ("t(y) :- e(_, y), s(y, _).", {"e x_1", "s x_0", "t x_0"}),
        ("t(x, n) :- e(x, _), n = sum b : { e(x, b) }.", {"e x_0", "@t.1 x_0", "t x_0"}),
        (
            "t(x, n) :- s(x, _), n = sum b : { e(x, b) }.",
            {"e x_0", "s x_0", *(f"{t} x_0" for t in ("@t.1", "@t.1.groups", "@t.1.with0", "t"))},
        ),
        ("t(x) :- e(x, _), k(x). k(1). k(3).", {"e x_0", "k x_0", "t x_0"}),
        ("t(x, k) :- e(x, _), k(k). k(x) :- x = 3.", {"e x_0", "k all", "t x_0"}),
        ("t(y) :- e(x, y), x = 1, y = x.", {"e x_0", "t x_0"}),
        ("t(1, y) :- e(1, y).", {"e x_0", "t x_0"}),
    ],
)
def test_copies(text: str, expected: set[str]) -> None:
    found = copies(text)
    assert {c for c in found if c.split()[0] not in ("s", "price") or c in expected} >= expected
    assert {c for c in found - expected if c.split()[0] not in ("s", "price", "e")} == set()


def test_a_relation_is_derived_once_per_column_it_is_read_by() -> None:
    found = copies("r(x, y) :- e(x, y). q(y, z) :- r(x, y), e(y, z). w(x) :- r(x, _), q(x, _).")
    assert {"r x_0", "r x_1", "q x_0", "w x_0"} <= found


def test_pairs() -> None:
    text = "t(x, y, z) :- e(x, y), e(y, z), e(x, z)."
    assert {"e xy_0_1", "e y_0", "e x_0", "t xy_0_1"} <= copies(text, second=True)


def test_inputs_that_nothing_reads_are_kept() -> None:
    assert {"s x_0", "price x_0"} <= copies("t(x) :- e(x, _).")


def test_a_functional_input_is_where_conflicts_meet() -> None:
    plan = make_plan(BASE + "t(c) :- price(i, c), c > 0.0.")
    assert set(plan.patterns("price")) == {Pattern("x", (0,)), Pattern("x", (1,))}


@pytest.mark.parametrize(
    ("text", "relation", "why"),
    [
        ("n(c) :- c = mean y : { e(_, y) }.", "n", "cannot be partitioned by the value of an aggregate"),
        ("t(x + 1) :- e(x, _).", "t", "`x + 1` in its head is computed"),
        (
            "m(x, y) :- e(x, y), e(y, x). t(x, z) :- m(x, y), m(y, z).",
            "t",
            "`m`, which it reads without `x`, is derived",
        ),
        ("m(x, c) :- s(x, _), c = count : { e(x, _) }. t(c) :- m(_, c).", "t", "by the value of an aggregate"),
        ('f[i] = c :- price(i, c). g[] = c :- price("a", c).', "g", "a functional predicate"),
        ("t() :- e(_, _).", "t", "its head has no variable to partition by"),
    ],
)
def test_refusals(text: str, relation: str, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        make_plan(BASE + text)
    error = refused.value
    assert error.relation == relation
    assert f"`{relation}` cannot be derived partition by partition" in str(error)
    assert why in error.why, error.why
    assert f'replicate=["{relation}"]' in error.remedy
    assert error.where.startswith("<rules>:")
    if "e(_, _)" not in text or relation != "t":
        plan = make_plan(BASE + text + " other(x) :- e(x, _).", replicate=[relation])
        assert (relation, ALL) in plan.copies


def test_recursion_keeps_a_variable_inside_a_partition() -> None:
    plan = make_plan(BASE + "t(x, y) :- e(x, y). t(x, z) :- t(x, y), e(y, z).", rows={"e": 9, "t": 9})
    assert plan.patterns("t") == (Pattern("x", (0,)),)
    assert set(plan.patterns("e")) == {Pattern("x", (0,)), ALL}
    lftj.Database(program_text(plan))


def test_mutual_recursion_keeps_a_variable_inside_a_partition() -> None:
    odd = "odd(x, y) :- e(x, y). odd(x, z) :- even(x, y), e(y, z). even(x, z) :- odd(x, y), e(y, z)."
    plan = make_plan(BASE + odd)
    assert plan.patterns("odd") == plan.patterns("even") == (Pattern("x", (0,)),)
    lftj.Database(program_text(plan))


@pytest.mark.parametrize(
    "text",
    [
        "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z).",
        "u(x, y) :- e(x, y). u(x, z) :- v(x, y), e(y, z). v(x, y) :- u(y, x). t(x, y) :- u(x, y).",
        "v(x, y) :- u(y, x). u(x, z) :- v(x, y), e(y, z). u(x, y) :- e(x, y). t(x, y) :- v(x, y), u(x, y).",
    ],
)
def test_recursion_across_partitions_is_refused_by_name(text: str) -> None:
    with pytest.raises(PlanError) as refused:
        make_plan(BASE + text, outputs=["t"])
    assert refused.value.relation == "t"
    assert "spread over partitions" in refused.value.why or "cannot be partitioned so" in refused.value.why
    lftj.Database(program_text(make_plan(BASE + text + " other(x) :- e(x, _).", replicate=["t"])))


def test_nothing_to_partition() -> None:
    with pytest.raises(PlanError, match="nothing of this program can be partitioned"):
        make_plan(".decl e(a:number) n(c) :- c = count : { e(_) }.", replicate=["n"])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (".decl b(x:number) -> n:number bag  t(x) :- e(x, _), b(x, _).", "`b` is a bag"),
        (".decl k(x:number, y:number) primary-key (y)  t(x) :- e(x, _), k(x, _).", "`k` has a primary key"),
    ],
)
def test_bags_and_primary_keys_are_refused(text: str, what: str) -> None:
    with pytest.raises(PlanError, match=what):
        copies(text)


def test_constraints_are_refused() -> None:
    with pytest.raises(PlanError, match="`bad` must be empty, which no partition can tell") as caught:
        copies(".decl bad(x:number) empty  bad(x) :- e(x, _), x > 3.  t(x) :- e(x, _).")
    assert caught.value.relation == "bad"


@pytest.mark.parametrize("column", ["_op", "_unit", "_OP", "_Unit"])
def test_columns_that_tables_of_rows_have_besides_are_refused(column: str) -> None:
    for text, name in (
        (f".decl g(x:number, {column}:number)  t(x) :- g(x, _).", "g"),
        (f".decl j({column}:number, x:number)  j(x, y) :- e(x, y), e(x, _).", "j"),
        (f".decl f(x:number) -> {column}:number  t(x) :- e(x, _), f(x, _).", "f"),
        (f"j(x, {column}) :- e(x, {column}), e({column}, x).", "j"),
        (f"t(x, s) :- e(x, _), s = sum {column} : {{ e(x, {column}) }}.", ""),
    ):
        if not name:  # what is not a column has any name
            copies(text)
            continue
        with pytest.raises(PlanError, match=f"`{name}` has a column `{column}`") as caught:
            copies(text)
        assert "another name" in caught.value.remedy


def test_outputs_are_those_of_the_directives() -> None:
    text = ".output t  m(x, y) :- e(x, y). t(x) :- m(x, _). u(x + 1) :- e(x, _)."
    assert set(make_plan(BASE + text).outputs) == {"t", "e", "s", "price"}
    with pytest.raises(PlanError, match="there is no relation `v`"):
        make_plan(BASE + text, outputs=["v"])


def test_the_text_of_a_partition() -> None:
    text = program_text(make_plan(".decl e(a:number, b:number) d[x] = sum y : { e(x, y), !e(y, _) }."))
    assert text == (
        ".decl e__x_0(a:number, b:number)\n"
        ".decl e__all(a:number, b:number)\n"
        ".decl d_1__x_0(x:number) -> sum:number\n"
        ".decl d__x_0(x:number) -> c1:number\n"
        "d_1__x_0[x] = sum y : { e__x_0(x, y), !e__all(y, _) }.\n"
        "d__x_0(x, _v1) :- d_1__x_0(x, _v1).\n"
    )
    lftj.Database(text)


def test_explanations_name_what_is_done_with_each_atom() -> None:
    shown = make_plan(BASE + "t(x, y) :- e(x, y), e(y, _), !s(x, _).").explain()
    assert shown == (
        "t(x, y) :- e(x, y), e(y, _), !s(x, _).  [partitioned by x]\n"
        "    e(x, y): partitioned by x\n"
        "    e(y, _): replicated\n"
        "    !s(x, _): partitioned by x"
    )
