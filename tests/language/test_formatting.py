"""`lftj fmt` changes blanks and line ends only, and what it made it leaves alone.

The laws hold for every program that is written anywhere in tests/, docs/ and examples/, and for random ones with
comments and blanks strewn between their tokens; the forms are those of the examples below.
"""

from __future__ import annotations

import ast as python
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lftj.errors import ProgramError
from lftj.language import ast, parse, to_text
from lftj.language.formatting import formatted
from lftj.language.line_breaks import WIDTH
from lftj.language.pieces import source_items
from tests.conftest import examples
from tests.language.test_round_trip import programs

ROOT = Path(__file__).resolve().parent.parent.parent


def tokens_and_comments(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    pieces = [piece for item in source_items(text) for piece in item.pieces]
    tokens = [(piece.kind, piece.text) for piece in pieces if not piece.is_comment]
    return tokens, [piece.text for piece in pieces if piece.is_comment]


def same(program: ast.Program) -> str:
    """What is equal for programs that mean the same: constructs that are refused hold their source, with its blanks."""
    return re.sub(r"text='[^\n]*?', defines|text=\"[^\n]*?\", defines", "defines", repr(program))


def check(text: str) -> None:
    made = formatted(text)
    if made != text:
        assert same(parse(made)) == same(parse(text))
        assert tokens_and_comments(made) == tokens_and_comments(text)
        assert formatted(made) == made
    assert made == "" or (made.endswith("\n") and not made.endswith("\n\n"))
    assert "\n\n\n" not in re.sub(r'/\*[\s\S]*?\*/|"(\\.|[^"\\])*"', "c", made)


@cache
def written() -> list[str]:
    """The texts in the sources of the project that parse as programs."""
    texts: dict[str, None] = {}
    for path in sorted(
        [*(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py"), *ROOT.glob("lftj/demo/*.py")]
    ):
        for node in python.walk(python.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, python.Constant) and isinstance(node.value, str) and _looks_like_rules(node.value):
                texts.setdefault(node.value)
    for path in sorted((ROOT / "docs").glob("*.md")):
        texts |= dict.fromkeys(
            re.findall(r"^\$ cat \S+\.dl\n((?:(?!\$ ).*\n)*?)(?=\$ |```)", path.read_text("utf-8"), re.M)
        )
    return list(filter(_parses, texts))


def _looks_like_rules(text: str) -> bool:
    return ":-" in text or ".decl" in text


def _parses(text: str) -> bool:
    try:
        parse(text)
    except ProgramError:
        return False
    return True


def test_the_programs_of_the_project_are_found() -> None:
    assert len(written()) > 900


def test_every_program_of_the_project_keeps_its_meaning_and_its_form() -> None:
    for text in written():
        check(text)


_GAPS = st.sampled_from(
    [
        "",
        " ",
        "  ",
        "\n",
        "\n\n\n",
        "\r\n",
        " // c\n",
        "\n// own\n",
        "/* b */",
        "\n/* two\n  lines */\n",
        " /* two\n  lines */",
        " /* b */\n",
        " // a\n// b\n\n",
    ]
)


@st.composite
def strewn(draw: st.DrawFn) -> str:
    """A random program with blanks and comments between its tokens."""
    text = to_text(draw(programs))
    parts: list[str] = []
    for item in source_items(text):
        for piece in item.pieces:
            gap = draw(_GAPS)
            if not gap and parts and not text[: piece.start].endswith(parts[-1]):
                gap = " "
            parts += [gap, piece.text]
    return "".join([*parts, draw(_GAPS)])


@examples(200)
@given(strewn())
def test_random_programs_keep_their_meaning_and_their_form(text: str) -> None:
    assume(_parses(text))  # a comment before its `:` hides that a word is an aggregate's
    check(text)


@examples(100)
@given(programs)
def test_a_line_beyond_the_width_holds_one_condition_or_argument(program: ast.Program) -> None:
    for line in formatted(to_text(program)).splitlines():
        if len(line) > WIDTH and line.startswith(" "):
            assert re.search(r"[,;] ", re.sub(r'"(\\.|[^"\\])*"', '""', line)) is None


def form(text: str, expected: str) -> None:
    assert formatted(text) == expected
    check(text)


def test_blanks() -> None:
    form(
        """\
.decl  p ( x : number,y:symbol )->z:float   btree
.type A=number   .type B  <:  A
.input p ( IO = file,delimiter="\\t" )
.output p()
q ( x ) :-p ( x,_,- y ),x>=-1,y=- - z,y<2*( 3 - -4 )^2,! r ( x ) ,!( r(x);s( ) ).
f [ x ]=n:-n=count:{p ( x , _ , _)},m=sum( y ):{p(_,_,y)},k=max-y:{p(_,_,y)}.
g[x]=bnot x band 3 :- agg<<n = count()>>p(x,_,_).
h[x]=quantile_disc ( .5)y:{p(x,_,y)}.
""",
        """\
.decl p(x:number, y:symbol) -> z:float btree
.type A = number
.type B <: A
.input p(IO=file, delimiter="\\t")
.output p()
q(x) :- p(x, _, -y), x >= -1, y = --z, y < 2 * (3 - -4) ^ 2, !r(x), !(r(x); s()).
f[x] = n :- n = count : { p(x, _, _) }, m = sum (y) : { p(_, _, y) }, k = max -y : { p(_, _, y) }.
g[x] = bnot x band 3 :- agg<<n = count()>> p(x, _, _).
h[x] = quantile_disc ( .5) y : { p(x, _, y) }.
""",
    )


def test_blank_lines_and_facts_of_one_line() -> None:
    form(
        "\n\n\np(1).p(2).   p(3). // three\n\n\n\np(4).\nq(x) :- p(x). q(5).\n\n// end\n\n",
        "p(1). p(2). p(3).  // three\n\np(4).\nq(x) :- p(x).\nq(5).\n\n// end\n",
    )
    fact = "edge(1000000000, 2000000000). "
    assert formatted(fact * 7) == f"{fact * 3}".rstrip() + "\n" + f"{fact * 3}".rstrip() + "\n" + fact.rstrip() + "\n"


def test_a_text_without_items() -> None:
    form("", "")
    form("  \n\t", "")
    form("\n// only\n", "// only\n")


LONG = ", ".join(f"condition(x, argument{i})" for i in range(4))
BROKEN = ",\n    ".join(f"condition(x, argument{i})" for i in range(4))


def test_a_long_body_has_a_condition_to_a_line() -> None:
    form(f"head(x) :- {LONG}.", f"head(x) :-\n    {BROKEN}.\n")


def test_alternatives_have_lines_of_their_own() -> None:
    form(
        "head(x) :- " + "; ".join(["some(x, 1), other(x, 2)"] * 4) + ".",
        "head(x) :-\n" + ";\n".join(["    some(x, 1), other(x, 2)"] * 4) + ".\n",
    )
    form(f"head(x) :- a(x); {LONG}.", f"head(x) :-\n    a(x)\n    ;\n    {BROKEN}.\n")


def test_what_is_still_too_long_is_opened_up() -> None:
    words = [f'"a text of some length {i}"' for i in range(5)]
    form(
        f"head(x) :- a(x), n = count : {{ {LONG}, b(x) }}, c({', '.join(words)}).",
        "head(x) :-\n    a(x),\n    n = count : {\n        "
        + BROKEN.replace("    ", "        ")
        + ",\n        b(x)\n    },\n    c(\n        "
        + ",\n        ".join(words)
        + "\n    ).\n",
    )
    form(f"fact({', '.join(words)}).", "fact(\n    " + ",\n    ".join(words) + "\n).\n")


def test_comments_stay_where_they_belong() -> None:
    form(
        """\
/* head
     of the file */
.decl p(x:number, // the x
  y:number /* the y */)// after
p(1, 2). /* a */ /* b */ // c
r(x) :- // opens
   p(x,_) // one
   , q(x, y)   // two
   // above three
   , /* in */ y<3 // three
   // last
   .
s(x) :- p(x, _) // first
   ; // second
     q(x, _).
/* before */ t(1).
""",
        """\
/* head
     of the file */
.decl p(
    x:number,  // the x
    y:number /* the y */
)  // after
p(1, 2). /* a */ /* b */  // c
r(x) :-  // opens
    p(x, _),  // one
    q(x, y),  // two
    // above three
    /* in */ y < 3.  // three
// last
s(x) :-
    p(x, _);  // first
    // second
    q(x, _).
/* before */ t(1).
""",
    )


def test_comments_before_what_comes_on_a_line_of_its_own() -> None:
    """They end their line then: the second time, they stood behind the conditions before them."""
    form(
        "m[t] = min e : { a(t, e); b(t, e) /* x\n y */ }.",
        "m[t] = min e : {\n    a(t, e);\n    b(t, e) /* x\n y */\n}.\n",
    )
    form(
        "m(t) :- (a(t); b(t) /* x\n y */).",
        "m(t) :-\n    (\n        a(t);\n        b(t) /* x\n y */\n    ).\n",
    )
    form("m(t) :- a(t) /* x\n y */; b(t).", "m(t) :-\n    a(t); /* x\n y */\n    b(t).\n")
    form("m(t) :- a(t); b(t) /* x\n y */.", "m(t) :-\n    a(t)\n    ;\n    b(t) /* x\n y */.\n")
    wide, inner = "wide" * 20, BROKEN.replace("\n", "\n    ")
    form(
        f"m(t) :- ({LONG}, b(t, {wide}) /* wide */).",
        f"m(t) :-\n    (\n        {inner},\n        b(t, {wide}) /* wide */\n    ).\n",
    )


def test_several_comments_behind_a_separator() -> None:
    form("p(x) :- a(x) /* a */\n, /* b */\n b(x).", "p(x) :-\n    a(x), /* a */ /* b */\n    b(x).\n")
    form("p(x) :- a(x), /* a */ /* b */ // c\n b(x).", "p(x) :-\n    a(x), /* a */ /* b */  // c\n    b(x).\n")
    form("p(x) :- a(x), /* a */ /* b */ b(x),\n c(x).", "p(x) :- a(x), /* a */ /* b */ b(x), c(x).\n")


def test_line_ends_of_windows_stay_if_all_are() -> None:
    assert formatted("p(1).\r\nq(x):-p(x).\r\n") == "p(1).\r\nq(x) :- p(x).\r\n"
    assert formatted("p(1).\r\nq(x):-p(x).\n") == "p(1).\nq(x) :- p(x).\n"


def test_what_the_engine_does_not_evaluate_stays_as_it_is() -> None:
    form(
        '.comp  C<T> {\n  p(x):-q(x).\n}\n.pragma  "a"\n#define  X  1\n.init a  =  C<D>\n',
        '.comp  C<T> {\n  p(x):-q(x).\n}\n.pragma  "a"\n#define  X  1\n.init a  =  C<D>\n',
    )


def test_what_does_not_parse_is_refused_with_all_its_errors() -> None:
    with pytest.raises(ProgramError) as refused:
        formatted("p(1)\nq(2.\nr(3).", "t.dl")
    assert [str(found.span) for found in refused.value.diagnostics] == ["t.dl:2:1"]


def test_what_is_nested_too_deeply_is_refused_in_words() -> None:
    check("p(x) :- q(x), x = " + "(" * 40 + "x + 1" + ")" * 40 + ".")
    with pytest.raises(ProgramError, match="nested too deeply"):
        formatted("p(x) :- q(x), x = " + "(" * 900 + "x" + ")" * 900 + ".")
