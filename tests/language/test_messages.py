"""The full text of every message of the parser and the checker: a program, and exactly what its user reads.

The cases stand in `messages/*.txt`, each `== program`, the text of `t.dl`, `== told`, and all findings about it as
they are printed. A program that breaks several rules shows all its findings, in source order.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lftj.errors import ProgramError
from lftj.language import check, parse

FILES = sorted((Path(__file__).parent / "messages").glob("*.txt"))


def _cases() -> list[object]:
    cases: list[object] = []
    for file in FILES:
        for case in file.read_text(encoding="utf-8").split("== program\n")[1:]:
            program, told = case.split("== told\n")
            name = f"{file.stem}: {' '.join(program.split())[-40:]}"
            cases.append(pytest.param(program.removesuffix("\n"), told.removesuffix("\n"), id=name))
    return cases


def _told(text: str) -> str:
    """All findings about a program, warnings included, as they are printed."""
    try:
        return "\n\n".join(warning.render() for warning in check(parse(text, "t.dl")).warnings)
    except ProgramError as error:
        return str(error)


@pytest.mark.parametrize(("program", "message"), _cases())
def test_message(program: str, message: str) -> None:
    assert _told(program) == message


def test_all_cases_were_read() -> None:
    assert [file.stem for file in FILES] == [
        "apart",
        "directives",
        "names",
        "recursion",
        "rules",
        "slips",
        "syntax",
        "types",
    ]
    assert len(_cases()) > 100


def test_the_fields_of_the_error_are_those_of_the_first_error_not_of_a_warning() -> None:
    with pytest.raises(ProgramError) as caught:
        check(parse("p(x) :- x = 1, y = 2.\np(x) :- q(x).", "t.dl"))
    assert [found.severity for found in caught.value.diagnostics] == ["warning", "error"]
    assert caught.value.what == "unknown relation `q`"
    assert caught.value.where == "t.dl:2:9"
    assert caught.value.why == "it is neither declared nor the head of a rule"
    assert caught.value.remedy == "declare it, as in `.decl q(c0:number)`"


def test_numbers_of_any_length_are_refused_in_words() -> None:
    digits = "9" * 401
    assert _told(f"p({digits}).").startswith("t.dl:1:3: error: an integer constant of 401 digits is out of range\n")
    told = _told(f"p(1.5).\np({digits[:320]}).")
    assert told.startswith("t.dl:2:3: error: an integer constant is out of range for float\n")
    assert told.endswith("\n  do: the largest float is about 1.8e308")


def test_too_many_alternatives() -> None:
    pairs = ", ".join(f"(x = {i} ; x = {i + 1})" for i in range(11))
    told = _told(f"p(x) :- {pairs}.").splitlines()
    assert told[0] == "t.dl:1:1: error: a rule with more than 1024 alternatives"
    assert told[-1] == "  do: give parts of the body their own rules"


@pytest.mark.parametrize(
    "term", ["(" * 9000 + "1" + ")" * 9000, "-" * 9000 + "x", "+".join(["1"] * 9000), "^".join(["2"] * 9000)]
)
def test_nesting_beyond_the_stack_is_refused_in_words(term: str) -> None:
    told = _told(f"p({term}).").splitlines()
    assert told[0].endswith(("error: this clause is nested too deeply", "error: a clause is nested too deeply"))
    assert told[-1].startswith("  do: split ")


@pytest.mark.parametrize("before", [0, 30, 500, 990])
def test_of_a_long_line_the_part_around_the_place_is_shown(before: int) -> None:
    text = f"p(x) :- {' ' * before}q(x, y){' ' * (990 - before)}."
    with pytest.raises(ProgramError) as caught:
        check(parse(f".decl p(x:number)\n.decl q(x:number)\n{text}"))
    _, shown, carets = str(caught.value).splitlines()[:3]
    assert len(shown) <= 166
    assert shown.startswith("    …") == (before > 100)
    assert shown.endswith("…") == (before < 900)
    assert shown[carets.index("^") :][: carets.count("^")] == "q(x, y)"
