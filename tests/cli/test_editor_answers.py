"""Answers to editors, for texts as they are while somebody types: cut off anywhere, with anything in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lftj.cli import editor_answers as answers
from lftj.language import ast
from lftj.language.analysis import analyse
from lftj.language.occurrences import AGGREGATE, FUNCTOR
from tests.conftest import examples
from tests.language.test_formatting import written

PROGRAM = """\
.decl e(x:number, y:symbol)
.decl f(x:number) -> v:float
p(x) :- e(x, _), y = f[x], y > 1.0.
"""


@st.composite
def typed(draw: st.DrawFn) -> tuple[str, int]:
    """A program of the project with something cut out and something put in, and the place of that."""
    text = draw(st.sampled_from(written()))
    start = draw(st.integers(0, len(text)))
    end = draw(st.one_of(st.just(len(text)), st.integers(start, len(text)), st.just(start)))
    put = draw(
        st.one_of(st.sampled_from([".", ".d", "p(", '"', "/*", "x", ":", " :- ", "{", ")"]), st.text(max_size=4))
    )
    return text[:start] + put + text[end:], start + len(put)


@examples(150)
@given(typed())
def test_any_text_has_answers(given: tuple[str, int]) -> None:
    text, offset = given
    analysis = analyse(text, "t.dl")
    for finding in analysis.findings:
        start, end = analysis.source.bounds(finding.span)
        assert 0 <= start <= end <= len(text)
        assert answers.message(finding)
    for name in analysis.occurrences:
        assert text[name.start : name.end] == name.name
        assert name in analysis.all_of(name)
        assert answers.hover(analysis, name, []) or name.kind == FUNCTOR
        if name.kind not in (FUNCTOR, AGGREGATE):
            assert all(place.name == name.name for place in analysis.definitions(name))
    start, offered = answers.completions(analysis, offset)
    assert start <= offset
    assert len({item.label for item in offered}) == len(offered)
    for symbol in answers.symbols(analysis):
        assert 0 <= symbol.start <= symbol.start + symbol.width <= symbol.end <= len(text)
    name_there = analysis.at(offset)
    assert name_there is None or name_there.start <= offset <= name_there.end


@examples(100)
@given(st.sampled_from(range(10_000)), st.data())
def test_renaming_changes_no_meaning(number: int, data: st.DataObject) -> None:
    """The renamed program is the program with the name replaced in its syntax tree, and nothing else is."""
    texts = written()
    text = texts[number % len(texts)]
    analysis = analyse(text, "t.dl")
    names = [name for name in analysis.occurrences if answers.can_be_renamed(analysis, name)]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    new = "_fresh_name_9" if name.name.startswith("_") else "fresh_name_9"
    assert answers.rename_refusal(analysis, name, new) == ""
    made = text
    for place in reversed(analysis.all_of(name)):
        made = made[: place.start] + new + made[place.end :]
    again = analyse(made, "t.dl")
    assert [finding.severity for finding in again.findings] == [finding.severity for finding in analysis.findings]
    assert len(again.program.items) == len(analysis.program.items)
    there = [(other.kind, new if other.same(name) else other.name) for other in analysis.occurrences]
    assert [(other.kind, other.name) for other in again.occurrences] == there


def test_findings_of_what_a_broken_clause_declares_are_left_out() -> None:
    analysis = analyse(PROGRAM + ".decl q(x:number, \nr(x) :- q(x), nobody(x).\n", "t.dl")
    assert [finding.what for finding in analysis.findings][1:] == ["unknown relation `nobody`"]
    assert [item.name for item in analysis.program.items if isinstance(item, ast.Declaration)] == ["e", "f"]


def test_types_of_the_last_right_text_stay() -> None:
    before = analyse(PROGRAM, "t.dl")
    after = analyse(PROGRAM + "q(x) :- nobody(x).\n", "t.dl", before)
    assert after.columns["p"] == {"x": "number"}
    assert "q" not in after.columns
    y = next(name for name in after.occurrences if name.name == "y")
    assert after.variable_type(y) == "float"
