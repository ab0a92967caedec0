"""Souffle's syntax: what is accepted, and under which name the rest is refused. Nothing here may be a syntax error."""

from __future__ import annotations

import pytest

from lftj.errors import ProgramError
from lftj.language import check, parse

DECLARED = """
.decl e(x:number, y:number)
.decl s(t:symbol, n:number)
.decl u(x:unsigned)
.decl f(x:float)
"""

ACCEPTED = [
    ".decl a(x:number) brie",
    ".decl a(x:number) btree inline no_magic",
    ".decl a(x:number) btree_delete",
    ".decl a(x:number) input output printsize",
    ".decl a()",
    ".decl a, b, c(x:number, y:symbol)",
    ".type T = number .type S <: T .decl a(x:S) p(x) :- a(x), e(x, _).",
    ".number_type N .symbol_type S .type R .decl a(n:N, s:S, r:R)",
    '.input e .input s(IO=file, filename="s.csv", delimiter=",", headers=true, rfc4180=true, columns="1:0")',
    ".input e, s",
    ".input e()",
    ".output e(IO=stdout) .printsize e .output s(compress=true)",
    ".input e(IO=stdin)",
    "e(1, 2). e(-1, 0x10). e(0b11, 0).",
    "u(5u). u(5). u(18446744073709551615).",
    "f(1). f(1.5). f(-2.5). f(1e3).",
    's("a", 1). s("quote \\" and \\\\", 2).',
    "p(x), q(x) :- e(x, _).",
    "p(x) :- e(x, _) ; e(_, x).",
    "p(x) :- (e(x, _) ; e(_, x)), x > 1.",
    "p(x) :- e(x, x).",
    'p(x) :- e(x, _), !(x = 1), !contains("a", "b").',
    "p(x) :- e(x, y), x < y, x <= y, x != y, y > x, y >= x.",
    "p(x + y * 2 - 1 / 3 % 4 ^ 2) :- e(x, y).",
    "p(-x) :- e(x, _).",
    "p(x band y bor 1 bxor 2 bshl 1 bshr 1 bshru 1) :- e(x, y).",
    "p(x land y lor 1 lxor 0) :- e(x, y).",
    "p(bnot x, lnot y) :- e(x, y).",
    "p(min(x, y), max(x, y, 3)) :- e(x, y).",
    'p(cat(t, "x", t), strlen(t)) :- s(t, _).',
    "p(substr(t, 0, n), ord(t)) :- s(t, n).",
    "p(to_number(t), to_string(n), to_float(n), to_unsigned(n)) :- s(t, n).",
    "p(itof(n), itou(n), utoi(x), utof(x), ftoi(y), ftou(y)) :- s(_, n), u(x), f(y).",
    'p(t) :- s(t, _), match("a.*", t), contains("b", t).',
    "p(x) :- e(x, _), true.",
    "p(z) :- e(x, y), z = x + y.",
    "p(z) :- z = y, y = x, x = 1.",
    "p(x) :- e(x + 1, x).",
    "p(?x) :- e(?x, _unused).",
    "p(x) :- e(x, y), !e(y, x).",
    "p(x) :- e(x, _), !e(x, _), !e(1, x + 1).",
    "p(x) :- e(x, _), !(e(x, y), e(y, x)).",
    "p(x) :- e(x, _), x = count : { e(_, _) }.",
    "p(x) :- x = count : e(_, _).",
    "p(x) :- x = sum y : { e(_, y) }.",
    "p(x) :- x = sum(y * 2) : { e(_, y) }.",
    "p(x) :- x = sum -y : { e(_, y) }.",
    "p(x) :- x = min y + 1 : { e(z, y) ; e(y, z) }.",
    "p(x) :- x = 2 * max y : e(_, y).",
    "p(x) :- x = mean y : { f(y) }.",
    "p(x) :- f(x), x < mean 1.5 * y : { f(y) }.",
    "p(x, s) :- e(x, _), s = sum y : { e(x, y), y < count : { e(y, _) } }.",
    "p(t) :- t = cat x : { s(x, _) }.",
    ".decl g(x:number) -> y:float .input g g[1] = 2.5. p(x, g[x]) :- e(x, _), g[g2[x]] = 1.0. g2[x] = y :- e(x, y).",
    "g[x] = count : { e(x, _) }.",
    "// comment\n/* another\n// one */ p(1).",
    "p(1).p(2).q(3).",
]


@pytest.mark.parametrize("program", ACCEPTED)
def test_accepted(program: str) -> None:
    check(parse(DECLARED + program))


REFUSED = [
    ("p(x) :- e(x, _), x = @f(x).", "user-defined functor `@f`"),
    ("p(x) :- e(x, _), x = @@f y : 0, { e(_, y) }.", "user-defined aggregate `@@f`"),
    ("p(x) :- e(x, _), x = autoinc().", "counter `autoinc()`"),
    ("p($) :- e(_, _).", "counter `$`"),
    ("p(x) :- x = range(1, 5).", "multi-valued functor `range`"),
    ("p(as(x, number)) :- e(x, _).", "type cast `as`"),
    ("p([x, 1]) :- e(x, _).", "record constructor"),
    ("p(nil).", "record `nil`"),
    ("p($Leaf) :- e(_, _).", "algebraic data type constructor `$Leaf`"),
    ("p($Node(x, $Leaf())) :- e(x, _).", "algebraic data type constructor `$Node`"),
    ("p(127.0.0.1).", "IP address constant"),
    ("p(__ITERATION__()).", "iteration counter `__ITERATION__()`"),
    ("e(x, y) <= e(x, z) :- y <= z.", "subsumption (`<=` between heads)"),
    ("p(x) :- e(x, _). .plan 0:(1,2), 1:(2,1)", "query plan (`.plan`)"),
    (".limitsize e(n=10)", "`.limitsize`"),
    (".type T = number | symbol", "union type `T`"),
    (".type T = [x:number, y:T]", "record type `T`"),
    (".type T = Leaf {} | Node { l:T, r:T }", "algebraic data type `T`"),
    (".comp C<T> : D, E<T> { .decl q(x:T) q(x) :- r(x). .override q }", "component `C` (`.comp`)"),
    (".init c = C<number>", "component instance `c` (`.init`)"),
    (".override q", "override of `q` (`.override`)"),
    ("p(x) :- c.q(x).", "component relation `c.q`"),
    ("c.q(x) :- e(x, _).", "component relation `c.q`"),
    (".output c.q", "component relation `c.q`"),
    ('.pragma "legacy"', "`.pragma`"),
    ('.pragma "a" "b"', "`.pragma`"),
    (".functor f(x:number, y:symbol):number stateful", "user-defined functor `f` (`.functor`)"),
    (".functor f(number):number", "user-defined functor `f` (`.functor`)"),
    (".lattice L<> { Bottom -> 0, Lub -> @lub(_, _) }", "lattice `L` (`.lattice`)"),
    (".decl a(x:number<>)", "lattice attribute `x:number<>`"),
    (".decl a(x:c.T)", "component type `c.T`"),
    (".decl d = debug_delta(e)", "`debug_delta` relation"),
    (".decl a(x:number, y:number) eqrel", "qualifier `eqrel` of relation `a`"),
    (".decl a(x:number) overridable", "qualifier `overridable` of relation `a`"),
    (".decl a(x:number, y:number) choice-domain x, (x, y)", "qualifier `choice-domain x, (x, y)` of relation `a`"),
    ('.include "more.dl"', "`.include`"),
    ('#include "more.dl"', "preprocessor line (`#include`)"),
    ("#define N \\\n 5\np(N).", "preprocessor line (`#define`)"),
    (".once", "`.once`"),
    ('.input e(IO=sqlite, dbname="x")', "`IO=sqlite` in `.input e`"),
    (".input e(format=json)", "option `format` in `.input e`"),
]


def _features(program: str) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        check(parse(DECLARED + program))
    errors = [found.what for found in caught.value.diagnostics if found.severity == "error"]
    assert all(what.startswith("not supported yet: ") for what in errors), errors
    return [what.removeprefix("not supported yet: ") for what in errors]


@pytest.mark.parametrize(("program", "feature"), REFUSED)
def test_refused_by_name_and_nothing_else(program: str, feature: str) -> None:
    if program.startswith("#define"):
        program = program.replace("p(N).", "p(5).")
    assert _features(program) == [feature]


def test_every_unsupported_construct_of_a_program_is_reported_at_once() -> None:
    program = "\n".join(
        [
            '.pragma "legacy"',
            ".type U = number | symbol",
            ".decl a(x:U) eqrel",
            "p(x) :- a(x), c = count : { a($) }, e(x, c), !e(c, @g(x)).",
            ".comp C { .decl x(y:number) }",
            "q(@f(x)) :- e(x, _).",
        ]
    )
    assert _features(program) == [
        "`.pragma`",
        "union type `U`",
        "qualifier `eqrel` of relation `a`",
        "counter `$`",
        "user-defined functor `@g`",
        "component `C` (`.comp`)",
        "user-defined functor `@f`",
    ]


def test_names_from_an_inclusion_are_not_reported_as_unknown() -> None:
    assert _features('#include "lib.dl"\np(x) :- lib(x, T), lib_f(x) = 1.\n.decl a(x:LibType)\n.input lib') == [
        "preprocessor line (`#include`)"
    ]


@pytest.mark.parametrize("line", ['.include "types.dl"', '#include "types.dl"'])
def test_an_inclusion_says_how_a_program_of_several_files_is_given(line: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check(parse(f"{line}\n{DECLARED}"))
    remedies = [found.remedy for found in caught.value.diagnostics]
    assert remedies == ["give both texts as one, as in `cat types.dl rules.dl | lftj run -`"]


@pytest.mark.parametrize("name", ["sum", "min", "count", "mean", "max", "input", "output", "stateful", "inline"])
def test_words_of_the_language_as_variables(name: str) -> None:
    program = check(parse(f"{DECLARED} p({name}) :- e({name}, z), {name} < z, z = {name} + min({name}, 1)."))
    assert str(program).startswith(f"p({name}) :- e({name}, z)")


@pytest.mark.parametrize("name", ["input", "output", "inline", "brie", "stateful", "number", "IO"])
def test_words_of_the_language_as_relations(name: str) -> None:
    program = check(parse(f".decl a(x:number) {name}(1). {name}(x) :- a(x). .output {name}"))
    assert program.facts == {name: [(1,)]}
