"""The checked program: types, clauses, facts, strata, schemas, directives; incremental checks and queries."""

from __future__ import annotations

import pytest

from lftj.errors import ProgramError
from lftj.language import Apply, CheckedProgram, Clause, Value, Var, check, check_query, parse
from lftj.values.schema import Column, Schema

EDGE = ".decl edge(src:number, dst:number)\n"


def checked(text: str) -> CheckedProgram:
    return check(parse(text))


def schema(name: str, **columns: str) -> Schema:
    return Schema(name, tuple(Column(c, t) for c, t in columns.items()))


KNOWN = {"edge": schema("edge", src="number", dst="number"), "name": schema("name", id="number", text="symbol")}


# Types


@pytest.mark.parametrize(
    ("program", "schemas"),
    [
        ("p(1).", ["p(c0:number)"]),
        ("p(1). p(1.5).", ["p(c0:float)"]),
        ("p(1.5). p(1).", ["p(c0:float)"]),
        ("p(1). p(5u).", ["p(c0:unsigned)"]),
        ('p("a").', ["p(c0:symbol)"]),
        ("p().", ["p()"]),
        ("p(x) :- q(x). q(1.5).", ["p(x:float)", "q(c0:float)"]),
        ("p(x) :- q(x), x < 2. q(1.5).", ["p(x:float)", "q(c0:float)"]),
        ("p(y) :- q(x), y = x * 2. q(1u).", ["p(y:unsigned)", "q(c0:unsigned)"]),
        ("p(x, x) :- q(x). q(1).", ["p(x:number, c1:number)", "q(c0:number)"]),
        ("p(c1, 1, c1) :- q(c1). q(1).", ["p(c1:number, c1_:number, c2:number)", "q(c0:number)"]),
        ("p(1, 2). p(a, b + 1) :- p(a, b).", ["p(a:number, c1:number)"]),
        ("p(x, 1) :- q(x). q(1).", ["p(x:number, c1:number)", "q(c0:number)"]),
        ("p(a, b) :- q(b, a). p(z, w) :- q(z, w). q(1, 2).", ["p(a:number, b:number)", "q(c0:number, c1:number)"]),
        ("p(x) :- x = 1 + 2.5.", ["p(x:float)"]),
        ("p(x) :- x = y, y = z, z = 1u.", ["p(x:unsigned)"]),
        ('p(x, y) :- x = strlen("a"), y = cat("a", "b").', ["p(x:number, y:symbol)"]),
        ("p(x) :- x = to_float(3).", ["p(x:float)"]),
        ("p(x) :- x = min(1, 2.5, 3).", ["p(x:float)"]),
        ('p(x) :- x = max("a", "b").', ["p(x:symbol)"]),
        (".type A <: unsigned .type B = A .decl p(x:B) p(1).", ["p(x:unsigned)"]),
        (".decl a(x:unsigned) p(x, 1) :- a(x), x > 3.", ["a(x:unsigned)", "p(x:unsigned, c1:number)"]),
        # the type of a relation is decided by its own rules, not by its uses
        ("p(1). r(2.5). q(x) :- r(y), p(z), x = y + to_float(z).", ["p(c0:number)", "r(c0:float)", "q(x:float)"]),
        # two heads may read one literal differently
        (".decl f(x:float) .decl n(x:number) f(x), n(x) :- x = 1.", ["f(x:float)", "n(x:number)"]),
    ],
)
def test_inferred_schemas(program: str, schemas: list[str]) -> None:
    assert [str(found) for found in checked(program).schemas.values()] == schemas


def test_every_term_has_its_type() -> None:
    (clause,) = checked('.decl f(x:float)\np(to_string(x + 1), strlen("a") band 3) :- f(x), x > 2.').clauses
    assert clause.head_args == (
        Apply("to_string", (Apply("+", (Var("x", "float"), Value(1.0, "float")), "float"),), "symbol"),
        Apply("band", (Apply("strlen", (Value("a", "symbol"),), "number"), Value(3, "number")), "number"),
    )
    (compare,) = clause.compares
    assert (compare.op, compare.left, compare.right) == (">", Var("x", "float"), Value(2.0, "float"))
    assert type(compare.right.value) is float  # type: ignore[union-attr]


def test_a_conflict_is_reported_at_its_place_and_the_other_one() -> None:
    with pytest.raises(ProgramError) as caught:
        checked(EDGE + ".decl name(id:number, text:symbol)\np(x) :- edge(x, y), name(x, y).")
    (found,) = caught.value.diagnostics
    assert (found.span.line, found.span.column) == (3, 29)
    ((word, place),) = found.related
    assert word == "number, as column `dst` of `edge`"
    assert (place.line, place.column) == (3, 17)


def test_an_unsupported_or_unknown_part_causes_no_further_findings() -> None:
    with pytest.raises(ProgramError) as caught:
        checked(EDGE + 'p(x, c) :- c = autoinc(), foo(x, z), bar(z).\nq(x, y) :- p(x, y), x = "a".')
    assert [found.what for found in caught.value.diagnostics] == [
        "not supported yet: counter `autoinc()`",
        "unknown relation `foo`",
        "unknown relation `bar`",
    ]


# Clauses


@pytest.mark.parametrize(
    ("rule", "clauses"),
    [
        ("p(x) :- edge(x, _).", ["p(x) :- edge(x, _)."]),
        ("p(x), q(x) :- edge(x, _).", ["p(x) :- edge(x, _).", "q(x) :- edge(x, _)."]),
        (
            "p(x) :- edge(x, y), (y = 1 ; y > 5, x < 3 ; edge(y, x)).",
            [
                "p(x) :- edge(x, y), y = 1.",
                "p(x) :- edge(x, y), y > 5, x < 3.",
                "p(x) :- edge(x, y), edge(y, x).",
            ],
        ),
        ("p(x) :- edge(x, 2 * x + 1).", ["p(x) :- edge(x, _e1), _e1 = 2 * x + 1."]),
        ("p(_e1) :- edge(_e1, _e1 + 1).", ["p(_e1) :- edge(_e1, _e2), _e2 = _e1 + 1."]),
        ("p(x) :- edge(x, y), !(x < y).", ["p(x) :- edge(x, y), x >= y."]),
        ("p(x) :- edge(x, y), !!(x < y).", ["p(x) :- edge(x, y), x < y."]),
        ("p(x) :- edge(x, y), !(x = 1 ; y = 2).", ["p(x) :- edge(x, y), x != 1, y != 2."]),
        ("p(x) :- edge(x, y), !(x = 1, y = 2).", ["p(x) :- edge(x, y), x != 1.", "p(x) :- edge(x, y), y != 2."]),
        (
            'p(x) :- edge(x, _), !contains("a", to_string(x)), !match("b", to_string(x)).',
            ['p(x) :- edge(x, _), !contains("a", to_string(x)), !match("b", to_string(x)).'],
        ),
        ("p(x) :- x = 1.", ["p(x) :- x = 1."]),
        ("p(1 + 1).", ["p(1 + 1)."]),
        ("p(x) :- edge(x, _), 1 = 2.", ["p(x) :- edge(x, _), 1 = 2."]),
        ("p() :- edge(_, _).", ["p() :- edge(_, _)."]),
        ("p(x) :- edge(x, -1), x != -(x ^ 2).", ["p(x) :- edge(x, -1), x != -x ^ 2."]),
        ("p(x) :- edge(x, _), (true ; false).", ["p(x) :- edge(x, _), 1 = 1.", "p(x) :- edge(x, _), 1 != 1."]),
    ],
)
def test_lowering(rule: str, clauses: list[str]) -> None:
    made = checked(EDGE + rule).clauses
    assert [str(clause) for clause in made] == clauses
    # a clause is rule text: it can be read again
    again = checked(EDGE + "\n".join(clauses)).clauses
    assert [str(clause) for clause in again] == clauses


def test_negated_constraints_have_their_own_operators() -> None:
    (clause,) = checked('p(x) :- x = "a", !contains("a", x), !match("b", x), !(x != "c").').clauses
    assert [compare.op for compare in clause.compares] == ["=", "not_contains", "not_match", "="]


def test_rules_are_numbered_from_one_and_keep_their_text() -> None:
    program = checked(EDGE + "edge(1, 2).\np(x), q(x) :- edge(x, _); edge(_, x).\nr(x) :- p(x).")
    assert [(clause.head, clause.rule) for clause in program.clauses] == [
        ("p", 1),
        ("p", 1),
        ("q", 1),
        ("q", 1),
        ("r", 2),
    ]
    assert program.clauses[0].text == "p(x), q(x) :- edge(x, _); edge(_, x)."
    assert program.clauses[-1].span.line == 4


def test_variables_of_a_clause_in_order_of_appearance() -> None:
    (clause,) = checked(EDGE + "p(z) :- edge(y, x), edge(x, _), z = y + x.").clauses
    assert [variable.name for variable in clause.variables()] == ["y", "x", "z"]


# Facts


def test_facts_are_python_values_of_the_column_types_without_duplicates() -> None:
    program = checked('.decl f(x:float, s:symbol)\nf(1, "a"). f(1.0, "a"). f(-0.0, "b"). f(0, "b").\np(-5). p(3).')
    assert program.facts == {"f": [(1.0, "a"), (0.0, "b")], "p": [(-5,), (3,)]}
    assert str(program.facts["f"][1][0]) == "0.0"
    assert program.clauses == ()
    assert program.strata == ()


def test_several_facts_in_one_clause_and_a_computed_one() -> None:
    program = checked("p(1), q(2). p(1 + 1), q(3).")
    assert program.facts == {"p": [(1,)], "q": [(2,), (3,)]}
    assert [str(clause) for clause in program.clauses] == ["p(1 + 1)."]


# Strata


def test_strata_are_bottom_up_and_deterministic() -> None:
    program = checked(
        EDGE + "a(x) :- c(x), b(x).\nb(x) :- edge(x, _).\nc(x) :- b(x), d(x).\nd(1).\nz(x) :- edge(x, x)."
    )
    assert program.strata == (("b",), ("c",), ("a",), ("z",))


def test_a_long_chain_of_rules_does_not_recurse_in_python() -> None:
    rules = "\n".join(f"p{i}(x) :- p{i + 1}(x)." for i in range(3000)) + "\np3000(1)."
    assert checked(rules).strata[0] == ("p2999",)


# Warnings


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("p(x) :- edge(x, y).", ["y"]),
        ("p(x) :- edge(x, _y).", []),
        ("p(x) :- edge(x, _).", []),
        ("p(x) :- edge(x, y), y = z.", ["z"]),
        ("p(x) :- edge(x, y); edge(x, y).", []),
        ("p(x) :- edge(x, y); edge(y, x).", []),
        ("p(x), q(y) :- edge(x, y).", []),
    ],
)
def test_single_uses(rule: str, names: list[str]) -> None:
    warnings = checked(EDGE + rule).warnings
    assert [warning.what for warning in warnings] == [f"variable `{name}` occurs only once" for name in names]


# Directives


def test_directives_are_resolved_with_defaults() -> None:
    text = """
    .input edge
    .input edge(filename="e.csv", delimiter=",", headers=true, columns="2:0")
    .output edge(rfc4180=true, compress=TRUE)
    .output edge(IO=stdout, delimiter=" ")
    .printsize edge
    """
    shown = [
        (d.kind, d.io, d.filename, d.delimiter, d.headers, d.rfc4180, d.compress, d.columns)
        for d in checked(EDGE + text).directives
    ]
    assert shown == [
        ("input", "file", "edge.facts", "\t", False, False, False, None),
        ("input", "file", "e.csv", ",", True, False, False, (2, 0)),
        ("output", "file", "edge.csv.gz", ",", False, True, True, None),
        ("output", "stdout", "", " ", False, False, False, None),
        ("printsize", "stdout", "", "\t", False, False, False, None),
    ]
    assert str(checked(EDGE + '.input edge(filename="e")').directives[0]) == '.input edge(filename="e")'


# On top of what a database knows


def test_known_relations_need_no_declaration() -> None:
    program = check(parse("p(x, t) :- edge(x, y), name(y, t)."), known=KNOWN)
    assert str(program.schemas["p"]) == "p(x:number, t:symbol)"
    assert program.schemas["edge"] == KNOWN["edge"]


def test_a_known_relation_may_be_declared_again_alike() -> None:
    check(parse(EDGE + "p(x) :- edge(x, _)."), known=KNOWN)
    with pytest.raises(ProgramError) as caught:
        check(parse(".decl edge(a:number, b:symbol)", "t.dl"), known=KNOWN)
    assert str(caught.value) == (
        "t.dl:1:7: error: relation `edge` is declared again, differently\n"
        "    .decl edge(a:number, b:symbol)\n"
        "          ^^^^\n"
        "  why: the database knows it as `edge(src:number, dst:number)`\n"
        "  do: repeat the same declaration, or choose another name"
    )


def test_rules_and_uses_must_fit_the_known_schema() -> None:
    with pytest.raises(ProgramError) as caught:
        check(parse('name(x, x) :- edge(x, _).\nname("a", "b").\np(x) :- edge(x).', "t.dl"), known=KNOWN)
    assert str(caught.value) == (
        "t.dl:1:9: error: type conflict: `x` is symbol here, as column `text` of `name`, and number elsewhere\n"
        "    name(x, x) :- edge(x, _).\n"
        "            ^\n"
        "  number, as column `src` of `edge`: t.dl:1:20\n"
        "    name(x, x) :- edge(x, _).\n"
        "                       ^\n"
        "  why: a column, and a variable of a rule, holds values of one type\n"
        "  do: use one type, or convert with `to_number`, `to_unsigned`, `to_float` or `to_string`\n"
        "\n"
        't.dl:2:6: error: type conflict: column `id` of `name` is number, and `"a"` is symbol\n'
        '    name("a", "b").\n'
        "         ^^^\n"
        "  why: a column, and a variable of a rule, holds values of one type\n"
        "  do: write a number constant, or use another column\n"
        "\n"
        "t.dl:3:9: error: `edge` has 2 columns, and 1 argument is given\n"
        "    p(x) :- edge(x).\n"
        "            ^^^^^^^\n"
        "  why: the database knows it as `edge(src, dst)`\n"
        "  do: give every column one argument; `_` stands for any value"
    )


def test_clauses_of_the_database_count_for_numbers_strata_and_recursion() -> None:
    first = check(parse("q(x) :- p(x).\np(x) :- edge(x, _)."), known=KNOWN)
    known = {**KNOWN, **first.schemas}
    second = check(parse("r(x) :- q(x)."), known=known, clauses=first.clauses)
    assert [clause.rule for clause in second.clauses] == [3]
    assert second.strata == (("p",), ("q",), ("r",))
    closing = check(parse("p(x) :- q(x)."), known=known, clauses=first.clauses)
    assert closing.strata == (("q", "p"),)
    with pytest.raises(ProgramError, match="negative cycle: `p` -> `q` -> `p`"):
        check(parse("p(x) :- edge(x, _), !q(x)."), known=known, clauses=first.clauses)


# Queries


def query(text: str) -> Clause:
    return check_query(text, KNOWN)


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("edge(1, y)", "query(y) :- edge(1, y)."),
        ("edge(x, y), edge(y, z), x < z.", "query(x, y, z) :- edge(x, y), edge(y, z), x < z."),
        ("z = x + 1, edge(y, x)", "query(z, x, y) :- edge(y, x), z = x + 1."),
        ("edge(1, 2)", "query() :- edge(1, 2)."),
        ("edge(_, x)", "query(x) :- edge(_, x)."),
        ('name(x, t), contains("a", t)', 'query(x, t) :- name(x, t), contains("a", t).'),
        ("edge(x, y), !(x = y)", "query(x, y) :- edge(x, y), x != y."),
        ("edge(x, _), !edge(x, 3)", "query(x) :- edge(x, _), !edge(x, 3)."),
        ("(edge(x, y), edge(y, x))", "query(x, y) :- edge(x, y), edge(y, x)."),
    ],
)
def test_queries(text: str, clause: str) -> None:
    made = query(text)
    assert str(made) == clause
    assert (made.head, made.rule, made.text) == ("query", 0, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "edge(x, y) ; edge(y, x)",
            "<query>:1:1: error: not supported yet: disjunction (`;`) in a query\n"
            "    edge(x, y) ; edge(y, x)\n"
            "    ^^^^^^^^^^^^^^^^^^^^^^^\n"
            "  why: lftj recognises this construct and cannot evaluate it yet\n"
            "  do: write a rule with one clause per alternative, and query its head",
        ),
        (
            "edge(x, y), !_(x)",
            "<query>:1:14: error: `_` cannot name a relation: it is a reserved word\n"
            "    edge(x, y), !_(x)\n"
            "                 ^^^^\n"
            "  why: the word has a meaning of its own in rules\n"
            "  do: choose another name",
        ),
        (
            "egde(x, y)",
            "<query>:1:1: error: unknown relation `egde`\n"
            "    egde(x, y)\n"
            "    ^^^^^^^^^^\n"
            "  why: it is neither declared nor the head of a rule\n"
            "  do: did you mean `edge`?",
        ),
        (
            "edge(x, y), z < x",
            "<query>:1:13: error: variable `z` is not bound by any atom\n"
            "    edge(x, y), z < x\n"
            "                ^\n"
            "  why: a condition or an expression needs the values of its variables before it can be computed\n"
            "  do: use `z` as an argument of an atom, or set it by an equality such as `z = 1`",
        ),
        (
            'edge(x, y), x = "a"',
            '<query>:1:13: error: type conflict: `x` is number and `"a"` is symbol\n'
            '    edge(x, y), x = "a"\n'
            "                ^^^^^^^\n"
            "  `x` is number, as column `src` of `edge`: <query>:1:6\n"
            '    edge(x, y), x = "a"\n'
            "         ^\n"
            "  why: `=` compares two values of one type\n"
            "  do: convert one side with `to_number`, `to_unsigned`, `to_float` or `to_string`",
        ),
        (
            "edge(x, y) :- edge(y, x)",
            "<query>:1:12: error: syntax error: expected `,` or the end of the query, found `:-`\n"
            "    edge(x, y) :- edge(y, x)\n"
            "               ^^\n"
            "  why: `edge(x, y)` cannot go on with it\n"
            "  do: write `,` here, or correct what stands before it",
        ),
        (
            "edge(x, y)\nedge(y, x)",
            "<query>:2:1: error: syntax error: expected `,` or the end of the query, found `edge`\n"
            "    edge(y, x)\n"
            "    ^^^^\n"
            "  why: `edge(x, y)` cannot go on with it\n"
            "  do: write `,` here, or correct what stands before it",
        ),
        (
            "",
            "<query>:1:1: error: syntax error: expected a condition, found the end of the text\n"
            "  why: a query is conditions, such as `edge(x, y), x < y`\n"
            "  do: write a condition here, or correct what stands before it",
        ),
        (
            "x + 1",
            "<query>:1:1: error: `x + 1` is a term, not a condition\n"
            "    x + 1\n"
            "    ^^^^^\n"
            "  why: a body is made of atoms and comparisons\n"
            "  do: compare it with something, or use it as an argument of an atom",
        ),
    ],
)
def test_refused_queries(text: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        query(text)
    assert str(caught.value) == message


def test_schemas_hold_base_types_only() -> None:
    program = checked(".type A <: B .type B = symbol .decl p(x:A, y:B)")
    assert program.schemas == {"p": schema("p", x="symbol", y="symbol")}


# Recursion


def test_types_go_round_a_cycle() -> None:
    """`p` has no type of its own; `q` and `r` give it theirs, by fact and by column, whatever comes first."""
    text = "p(x, y) :- q(x, y).\nq(x, y) :- r(y, x), x >= 0.\nr(x, y) :- p(y, x).\nr(x, 1.5) :- edge(x, _).\n"
    checked = check(parse(text), known=KNOWN)
    assert checked.strata == (("p", "q", "r"),)
    assert [str(checked.schemas[name]) for name in "pqr"] == [
        "p(x:float, y:number)",
        "q(x:float, y:number)",
        "r(x:number, y:float)",
    ]


def test_a_counter_is_a_number_and_a_fact_makes_it_a_float() -> None:
    assert str(check(parse("n(0).\nn(x + 1) :- n(x).")).schemas["n"]) == "n(c0:number)"
    assert str(check(parse("n(0).\nn(x + 1) :- n(x), x < 2.5.")).schemas["n"]) == "n(c0:float)"


def test_components_of_recursion_come_bottom_up() -> None:
    text = """
    top(x) :- b(x), !far(x).
    a(x) :- b(x).
    b(x) :- a(y), edge(y, x).
    b(x) :- edge(x, _), !a0(x).
    a0(x) :- a0(y), edge(y, x).
    a0(1).
    far(x) :- far(y), n = count : { b(z), z < 3 }, edge(y, x), x < n.
    far(x) :- edge(_, x).
    """
    strata = check(parse(text), known=KNOWN).strata
    place = {name: at for at, component in enumerate(strata) for name in component}
    assert [component for component in strata if len(component) > 1] == [("a", "b")]
    assert place["a0"] < place["a"] < place["far"] < place["top"]


def test_what_rules_of_the_database_compute_counts_when_new_ones_close_a_cycle() -> None:
    first = check(parse('q(cat(x, "a")) :- p(x).\np(x) :- name(_, x).\nf[x] = y :- p(x), g(y).\ng("a").'), known=KNOWN)
    known = {**KNOWN, **first.schemas}
    check(parse("p(x) :- p(x), g(x)."), known=known, clauses=first.clauses)
    check(parse("p(x) :- q(x)."), known=known, clauses=first.clauses)
    with pytest.raises(ProgramError, match="not supported yet: functional predicate `f` in recursion \\(`f` -> `p` "):
        check(parse("p(x) :- f(x, _)."), known=known, clauses=first.clauses)
