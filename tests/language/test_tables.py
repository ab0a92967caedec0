"""The parser's tables on disk: read again, made again if damaged or of another grammar, and done without."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest

from lftj.language import parse, to_text
from lftj.language.tables import lalr

GRAMMAR = 'start: "a"+ "b"? C\nC: /c/\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LFTJ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One item for every parser that came from a file."""
    found: list[object] = []
    load = lark.Lark.load
    monkeypatch.setattr(lark.Lark, "load", lambda file: found.append(file) or load(file))
    return found


def tree(grammar: str = GRAMMAR) -> lark.Tree[lark.Token]:
    return lalr(grammar, ["start"]).parse("aabc", start="start")


def test_tables_are_made_once_and_read_again(folder: Path, loads: list[object]) -> None:
    made = tree()
    (file,) = folder.iterdir()
    assert (loads, file.name.startswith("grammar-")) == ([], True)
    read = tree()
    assert len(loads) == 1
    assert read == made
    assert [token.end_pos for token in read.children] == [token.end_pos for token in made.children] == [4]
    tree(GRAMMAR.replace("?", "*"))
    assert (len(loads), len(list(folder.iterdir()))) == (1, 2)


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-1], lambda content: content[::-1]])
def test_a_damaged_file_is_made_again(folder: Path, loads: list[object], damage: object) -> None:
    made = tree()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(damage(content))  # type: ignore[operator]
    assert tree() == made
    assert loads == []
    assert (list(folder.iterdir()), len(file.read_bytes())) == ([file], len(content))


def test_no_folder_no_matter(folder: Path, loads: list[object]) -> None:
    folder.write_text("a file where the folder should be")
    assert tree() == tree()
    folder.unlink()
    made = tree()
    (file,) = folder.iterdir()
    file.unlink()
    file.mkdir()  # neither read nor replaced
    assert tree() == made
    assert (loads, list(folder.iterdir())) == ([], [file])


@pytest.mark.parametrize(
    "text",
    [
        "p(x) :- q(x), minimum(x), x != summit.",
        "p(sum, mean) :- q(sum), cat(mean), sum < max(mean, 1).",
        "p(n) :- n = max x : { q(x) }.",
    ],
)
def test_texts_with_and_without_the_words_of_aggregates(text: str) -> None:
    assert to_text(parse(text)).strip() == text
