"""The demonstration: the figures it prints are the published ones, every line fits a terminal, its advice works."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest

import lftj
from lftj.cli import main
from lftj.demo.tour import ACTIVITY, MESSAGES, NEXT
from lftj.demo.window import SECONDS, Window

pytestmark = pytest.mark.jit_only

HEADS = ("wrote", "circle", "sent", "busiest", "reader")


@pytest.fixture(scope="module")
def printed() -> str:
    import contextlib

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["demo"]) == 0
    return out.getvalue()


def results(text: str) -> list[str]:
    """The lines that give figures, without the seconds."""
    return [re.sub(r" in \d+\.\d\d s$", "", line[5:]) for line in text.splitlines() if line.startswith("  -> ")]


def test_the_figures_are_the_published_ones(printed: str) -> None:
    assert results(printed) == [
        "kernels ready",
        "88,234 rows loaded",
        "1,612,010 rows",
        "30,004,668 answers",
        "1,446,223 rows",
        "9,314,849 paths they come from, counted by a query,",
        "59,798 rows loaded",
        "63,695 rows",
        "14,319 rows",
        "29,970 messages in the window, rules evaluated and traced",
        "4,000 more arrive, and old ones leave, in as many commits,",
        "29,970 messages in the window, rules evaluated and traced",
        "4,000 more arrive, and old ones leave, in as many commits,",
    ]
    assert "     781 left; 1,213 circles came, 321 went, 6,778 are there\n" in printed
    assert "       May 24 22:50:48   297 to 1183  +234,297,1183 +297,704,1183 and 3 more\n" in printed


def test_what_it_says_about_the_graphs(shipped_data: Path) -> None:
    db = lftj.Database("""
        .decl f(a:number, b:number)
        .decl m(a:number, b:number, t:number)
        fn(x) :- f(x, _) ; f(_, x).
        mn(x) :- m(x, _, _) ; m(_, x, _).
    """)
    db.load("f", shipped_data / "ego-Facebook.tsv.zst")
    db.load("m", shipped_data / "CollegeMsg.tsv.zst")
    assert (len(db["fn"]), len(db["mn"])) == (4_039, 1_899)


def test_every_line_fits_80_columns_and_has_no_colour(printed: str) -> None:
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b" not in printed


def test_sources_plan_and_advice_are_there(printed: str) -> None:
    assert "SNAP; McAuley and Leskovec, NIPS 2012" in printed
    assert "SNAP; Panzarasa, Opsahl and Carley, JASIST 60(5), 2009" in printed
    assert "    triangle(x, y, z) :- friend(x, y), friend(y, z), friend(x, z).\n      key order " in printed
    assert all(f"  {line}".rstrip() in printed for line in NEXT.splitlines())


def test_the_quick_tour_leaves_the_slow_questions_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--quick"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert results(out) == [
        "kernels ready",
        "88,234 rows loaded",
        "1,612,010 rows",
        "59,798 rows loaded",
        "63,695 rows",
        "14,319 rows",
        "29,970 messages in the window, rules evaluated and traced",
        "200 more arrive, and old ones leave, in as many commits,",
        "29,970 messages in the window, rules evaluated and traced",
        "200 more arrive, and old ones leave, in as many commits,",
    ]


def test_the_window_holds_what_it_should(shipped_data: Path) -> None:
    db = lftj.Database(MESSAGES)
    db.load("message", shipped_data / "CollegeMsg.tsv.zst")
    window = Window(MESSAGES + ACTIVITY, db["message"].numpy(), 31_000, HEADS, maintain="trace")
    commits = list(window.stream(300))
    rows = {tuple(row) for row in window.messages[:31_300].tolist()}
    latest = max(at for *_, at in rows)
    assert set(window.db["message"]) == {row for row in rows if row[2] >= latest - SECONDS}
    assert sum(commit.left for commit in commits) > 0
    again = lftj.Database(MESSAGES + ACTIVITY)
    again.load("message", window.db["message"])
    assert all(again[head] == window.db[head] for head in HEADS)
    sent = Counter(sender for sender, _, _ in window.db["message"])
    assert set(window.db["sent"]) == set(sent.items())
    assert set(window.db["reader"]) == {(receiver,) for _, receiver, _ in window.db["message"]} - {(x,) for x in sent}


def test_progress_of_the_stream_is_for_terminals(shipped_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    db = lftj.Database(MESSAGES)
    db.load("message", shipped_data / "CollegeMsg.tsv.zst")
    window = Window(MESSAGES, db["message"].numpy(), 30_000, ["wrote", "circle"], maintain="recompute")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    list(window.stream(60))
    assert terminal.getvalue().endswith(f"\r     0 of 60 messages ...\r     50 of 60 messages ...\r{'':40}\r")


def test_the_advice_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n1,3\n")
    python, shell = NEXT.split("From the shell")
    code = "\n".join(line[2:] for line in python.splitlines()[2:])
    exec(compile(code, "<advice>", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "1"
    (rules,) = re.findall(r"'''\n(.*?)'''", code, re.DOTALL)
    (tmp_path / "tri.dl").write_text(rules + ".input edge\n.output tri\n")
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n1\t3\n")
    commands = [re.split(r"  +", line.strip())[0].split()[1:] for line in shell.splitlines() if " lftj " in line]
    assert [command[0] for command in commands] == ["check", "explain", "run"]
    assert [main(command) for command in commands] == [0, 0, 0]
    assert (tmp_path / "out" / "tri.csv").read_text() == "1\t2\t3\n"
