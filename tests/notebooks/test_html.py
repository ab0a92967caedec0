"""What objects show in a notebook: well-formed HTML in which nothing of the user's is markup."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

import lftj
from lftj import html
from tests.conftest import ROOT

HOSTILE = '</style><script>alert("1")</script>&amp;\n'


class Outline(HTMLParser):
    """The tags of a text, which must close in order; the texts between them; the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append((dict(attrs).get("class") or "", []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)
            if self.open[-1:] and {"td", "th"} & set(self.open):
                self.rows[-1][1][-1] += data


@pytest.fixture
def db() -> lftj.Database:
    db = lftj.Database(
        ".decl s(x:symbol, n:number)  big(x) :- s(x, n), n > 1.  loop(n, m) :- s(_, n), s(_, m).\n"
        "loop(n, k) :- loop(n, m), loop(m, k).  many[x] = count : { s(x, _) }."
    )
    db.load("s", [(HOSTILE, 1), ("b", 2)])
    return db


def test_a_database_says_what_it_holds_and_how(db: lftj.Database) -> None:
    before = Outline(db._repr_html_())
    assert [cells[0] for _, cells in before.rows] == [
        "relation", "s(x:symbol, n:number)", "big(x:symbol)", "loop(n:number, m:number)",
        "many(x:symbol) -> c1:number",
    ]  # fmt: skip
    assert [cells[1] for _, cells in before.rows[1:]] == ["2", "not evaluated", "not evaluated", "not evaluated"]
    assert [cells[3] for _, cells in before.rows[1:]] == ["facts"] + [
        f"{rules}, evaluated when read" for rules in ("1 rule", "2 rules", "1 rule")
    ]
    db.evaluate()
    after = Outline(db._repr_html_())
    assert [cells[1] for _, cells in after.rows[1:]] == [f"{len(db[name]):,}" for name in db]
    assert all(
        cells[3].split(", ")[1] in ("delta", "trace", "recompute", "rounds", "scan", "alias")
        for _, cells in after.rows[2:]
    )
    assert all(cells[2].endswith("kB") for _, cells in after.rows[1:])


def test_heads_of_other_kinds() -> None:
    db = lftj.Database(".decl e(a:number, b:number)  e(1, 2).  e(2, 3).")
    db.path_counts("e", into="paths")
    assert [cells[0] for _, cells in Outline(db._repr_html_()).rows[1:]][-1].startswith("paths(")
    assert Outline(lftj.Database()._repr_html_()).rows == [("", ["relation", "rows", "memory", "kept by"])]


def every_object(db: lftj.Database) -> dict[str, Any]:
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("s", [(HOSTILE, 5), ("c", 7)])
        tx.erase("s", [(HOSTILE, 1)])
    with pytest.raises(lftj.Error) as caught:
        db.query(f's("{HOSTILE[:-1]}')
    return {
        "database": db,
        "relation": db["s"],
        "query": db.query("s(x, n)"),
        "answer": db.query("s($x, n)", x=HOSTILE),
        "prepared": db.prepare_query("s($x, n)"),
        "delta": tx.delta["s"],
        "deltas": tx.delta,
        "snapshot": db.snapshot(),
        "explanation": db.explain(),
        "query's explanation": db.query("s($x, n)", x=HOSTILE).explain(),
        "error": caught.value,
    }


def test_nothing_of_the_users_is_markup(db: lftj.Database) -> None:
    for name, thing in every_object(db).items():
        text = thing._repr_html_()
        outline = Outline(text)
        assert not outline.tags & {"script", "b", "i"}, name
        assert text.count("</style>") == 1, name
        assert text.startswith('<div class="lftj"><style>'), name
        assert "http" not in text, name


@pytest.mark.parametrize("shown", [html.title, html.text, html.error])
def test_what_xml_has_no_character_for_is_spelled(shown: Callable[[str], str]) -> None:
    """A notebook is stored as UTF-8, which has no half of a surrogate pair; line ends and tabs stay."""
    assert "&lt;a\\x00\\x1b\\ud800\\ufffe\tb\nc" in shown("<a\0\x1b\ud800\ufffe\tb\nc")


def test_rows_and_types_of_a_relation(db: lftj.Database) -> None:
    outline = Outline(db["s"]._repr_html_())
    assert outline.texts[:3] == ["s", " ", "2 rows"]
    shown = HOSTILE.encode("unicode_escape").decode()
    assert outline.rows == [("", ["xsymbol", "nnumber"]), ("", [shown[:31] + "…", "1"]), ("", ["b", "2"])]
    db.load("s", [("k", n) for n in range(100)])
    outline = Outline(db["s"]._repr_html_())
    assert len(outline.rows) == 11
    assert outline.texts[-1] == "... 92 more"
    assert Outline(lftj.Database(".decl p()  p().")["p"]._repr_html_()).texts == ["p", " ", "1 row"]


def test_signs_of_a_delta(db: lftj.Database) -> None:
    delta = every_object(db)["deltas"]
    outline = Outline(delta["s"]._repr_html_())
    assert [(kind, cells[0], cells[2]) for kind, cells in outline.rows[1:]] == [
        ("erased", "−", "1"), ("inserted", "+", "5"), ("inserted", "+", "7"),
    ]  # fmt: skip
    assert outline.texts[2] == "2 inserted, 1 erased"
    titles = Outline(delta._repr_html_()).texts
    assert [name for name in delta if name in titles] == list(delta)
    assert delta._ipython_key_completions_() == list(delta)
    assert db._ipython_key_completions_() == ["s", "big", "loop", "many"]
    with db.transaction() as tx:
        pass
    assert "nothing changed" in tx.delta._repr_html_()
    with db.transaction() as tx:
        tx.insert("s", [("k", n) for n in range(50, 100)])
    assert Outline(tx.delta["s"]._repr_html_()).texts[-1] == "... 40 more"


def test_an_error_shows_its_message(db: lftj.Database) -> None:
    with pytest.raises(lftj.ProgramError) as caught:
        db.query("s(x, n), y < 1")
    text = "".join(Outline(caught.value._repr_html_()).texts)
    assert text == f"ProgramError: {caught.value}"


def test_plain_tracebacks_are_as_ever(db: lftj.Database) -> None:
    with pytest.raises(lftj.Error) as caught:
        db["nowhere"]
    assert "answers.py" in "".join(traceback.format_exception(caught.value))
    shown = "".join(caught.value._render_traceback_())
    assert "answers.py" not in shown
    assert "test_html.py" in shown
    assert shown.endswith(f"lftj.errors.UnknownRelationError: {caught.value}\n")


def test_the_style_is_for_both_themes() -> None:
    """It sets no colour of text or page that one of the themes would hide."""
    assert "color: inherit" in html.STYLE
    assert not {"black", "white", "#fff", "#000"} & set(html.STYLE.replace(";", " ").split())


def test_ipython_is_not_imported() -> None:
    code = (
        "import lftj, sys\ndb = lftj.Database('.decl e(a:number)')\ndb['e']._repr_html_(); db._repr_html_()\n"
        "try: db['x']\nexcept lftj.Error as error: error._render_traceback_()\nassert 'IPython' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
