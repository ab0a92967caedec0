"""Tables of text: columns stand in line in a terminal, whatever characters are in them."""

from __future__ import annotations

import pytest

import lftj
from lftj.results.text_table import table_lines, width
from tests.cli.conftest import Shell

PROGRAM = """
.decl city(name:symbol, people:number, note:symbol?)
city("東京", 14, "大きい"). city("Łódź", 1, null). city("e\u0301te\u0301", 2, "🚀🚀"). city("한국", 52, "x").
"""
CELLS = {
    "東京": 4,
    "Łódź": 4,
    "e\u0301te\u0301": 3,
    "🚀🚀": 4,
    "한국": 4,
    "ｆ": 2,
    "a\u200db": 2,
    "ﾊ": 1,
    "": 0,
    "abc": 3,
}


@pytest.mark.parametrize(("text", "cells"), CELLS.items())
def test_the_cells_of_a_text(text: str, cells: int) -> None:
    assert width(text) == cells


def test_columns_stand_in_line() -> None:
    assert table_lines(
        ["a", "b", "n"], [["東京", "x", "1"], ["e\u0301", "🚀", "10"]], [True, True, False], ruled=True
    ) == [
        "a     b    n",
        "----  --  --",
        "東京  x    1",
        "e\u0301     🚀  10",
    ]
    assert table_lines(["名前"], [], [False], ruled=False) == ["名前"]


def ends(lines: list[str], column: str) -> set[int]:
    """Where the numbers of the second column end, in cells: in the header, and in each line that has one."""
    found = {width(lines[0][: lines[0].index(column) + len(column)])}
    for line in lines[1:]:
        end = next((i + 1 for i in range(len(line) - 1, -1, -1) if line[i].isdigit()), None)
        found |= set() if end is None else {width(line[:end])}
    return found


def test_every_table_of_lftj_is_in_line(shell: Shell) -> None:
    """Catches: three printers that pad by characters, so that a Japanese name moves its line by two cells."""
    db = lftj.Database(PROGRAM)
    assert len(ends(repr(db["city"]).splitlines()[1:], "people")) == 1
    pytest.importorskip("sqlglot")
    assert len(ends(repr(db.sql("select name, people, note from city")).splitlines(), "people")) == 1
    shell.write({"city.dl": PROGRAM})
    done = shell("query", "city(name, people, note)", "city.dl")
    assert done.code == 0
    assert len(ends(done.out.splitlines(), "people")) == 1


def test_texts_that_may_be_missing_stand_to_the_left_everywhere(shell: Shell) -> None:
    shell.write({"city.dl": PROGRAM})
    lines = shell("query", "city(name, 1, note)", "city.dl").out.splitlines()
    assert lines == ["name  note", "----  ----", "Łódź  null"]
    lines = shell("query", "city(name, people, note), people < 3", "city.dl").out.splitlines()
    assert lines[2:] == ["e\u0301te\u0301        2  🚀🚀", "Łódź       1  null"]


def test_what_does_not_print_is_spelled(shell: Shell) -> None:
    """Catches: a text that breaks its row in two, or that a terminal obeys."""
    text = "\u6771\u4eac\n\x1b[31m\u202e\U0001f469\u200d\U0001f4bb"
    spelled = "\u6771\u4eac\\n\\x1b[31m\\u202e\U0001f469\u200d\U0001f4bb"
    db = lftj.Database(".decl r(x:symbol, n:number)")
    db.load("r", [(text, 1), ("back\\slash", 2)])
    assert [line.split()[0] for line in repr(db["r"]).splitlines()[2:]] == ["back\\slash", spelled]
    shell.write({"p.dl": '.decl r(x:symbol, n:number)\n.input r(filename="r.csv", rfc4180=true)\n'})
    shell.write({"r.csv": f'"{text}",1\n'.encode()})
    done = shell("query", "r(x, n)", "p.dl")
    assert (done.code, done.out.splitlines()) == (
        0,
        [f"x{' ' * (width(spelled) - 1)}  n", f"{'-' * width(spelled)}  -", f"{spelled}  1"],
    )
    pytest.importorskip("sqlglot")
    done = shell("query", 'select n as "a\n\x1b[2J" from r', "p.dl")
    assert done.out == "a\\n\\x1b[2J\n----------\n         1\n"
    assert repr(db.sql('select n as "a\n" from r')).splitlines()[0] == "a\\n"
