"""`lftj watch`: a process that follows its files."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.cli.conftest import EDGES, TRIANGLES, Shell
from tests.forked import forks

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
PATIENCE = 120


class Watch:
    """A running `lftj watch`: what it prints, line by line."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [*forks().lftj, "watch", "tri.dl", "-F", "facts", "--interval", "0.02", *options]
        self.process = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.folder = folder
        self.out, self.err = self._lines(self.process.stdout), self._lines(self.process.stderr)

    def _lines(self, stream: IO[str]) -> queue.Queue[str]:
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in stream:
                lines.put(line.rstrip("\n"))
            stream.close()

        threading.Thread(target=read, daemon=True).start()
        return lines

    def commit(self) -> list[str]:
        """The lines of the next commit."""
        lines = []
        while line := self.out.get(timeout=PATIENCE):
            lines.append(line)
        return lines

    def told(self, start: str) -> str:
        """The next line of stderr that begins so."""
        while not (line := self.err.get(timeout=PATIENCE)).startswith(start):
            pass
        return line

    def replace(self, name: str, content: str) -> None:
        """Write a file as editors do: beside its place, and moved there."""
        beside = self.folder / f"{name}.part"
        beside.write_text(content)
        beside.replace(self.folder / name)


@pytest.fixture
def watch(triangles: Shell) -> Iterator[Callable[..., Watch]]:
    running: list[Watch] = []

    def start(*options: str) -> Watch:
        running.append(Watch(triangles.folder, *options))
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.wait()


def test_deltas_come_as_files_change(watch: Callable[..., Watch]) -> None:
    running = watch()
    assert running.commit() == ["+tri 1 2 3", "+tri 2 3 4"]
    assert running.told("lftj: watching") == "lftj: watching 2 files; Ctrl-C ends it"
    running.replace("facts/edge.facts", EDGES + "1\t4\n")
    assert running.commit() == ["+tri 1 2 4", "+tri 1 3 4"]
    running.replace("facts/edge.facts", EDGES.replace("2\t3\n", ""))
    assert running.commit() == ["-tri 1 2 3", "-tri 1 2 4", "-tri 1 3 4", "-tri 2 3 4"]
    running.replace("tri.dl", TRIANGLES.replace("edge(x, z).", "!edge(z, x)."))
    assert running.commit() == ["+tri 1 2 4", "+tri 1 3 4"]
    with (running.folder / "facts" / "edge.facts").open("a") as file:
        file.write("4\t5\n")
    assert running.commit() == ["+tri 2 4 5", "+tri 3 4 5"]
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(PATIENCE) == 130
    assert running.told("lftj: interrupted")
    assert running.out.empty()


def test_null_among_what_changes(watch: Callable[..., Watch], triangles: Shell) -> None:
    program = ".decl edge(a:number, b:number?)\n.input edge\nto(b) :- edge({a}, b).\n"
    triangles.write({"tri.dl": program.format(a=1), "facts/edge.facts": "1\t\n1\t2\n2\t3\n"})
    running = watch()
    assert running.commit() == ["+to null", "+to 2"]
    running.told("lftj: watching")
    running.replace("tri.dl", program.format(a=2))
    assert running.commit() == ["-to null", "-to 2", "+to 3"]


def test_values_of_another_type_are_other_rows(watch: Callable[..., Watch], triangles: Shell) -> None:
    """They were equal in Python, so that nothing was printed, and later lines erased rows that were never told."""
    program = ".decl edge(a:number, b:{type})\n.input edge\nto(b) :- edge(_, b).\n"
    triangles.write({"tri.dl": program.format(type="number"), "facts/edge.facts": "1\t1\n1\t2\n"})
    running = watch()
    assert running.commit() == ["+to 1", "+to 2"]
    running.told("lftj: watching")
    running.replace("tri.dl", program.format(type="decimal(5,1)"))
    assert running.commit() == ["-to 1", "-to 2", "+to 1.0", "+to 2.0"]
    running.replace("facts/edge.facts", "1\t1\n")
    assert running.commit() == ["-to 2.0"]


def test_copies_of_a_bag_are_those_of_its_file_and_of_the_text(watch: Callable[..., Watch], triangles: Shell) -> None:
    program = (
        '.decl scan(item:symbol) -> copies:number bag\n.input scan\nscan("tea", {n}).\nmany(i, c) :- scan(i, c).\n'
    )
    triangles.write({"tri.dl": program.format(n=2), "facts/scan.facts": "tea\nmilk\nmilk\n"})
    running = watch()
    assert running.commit() == ["+many milk 2", "+many tea 3"]
    running.told("lftj: watching")
    running.replace("facts/scan.facts", "tea\ntea\n")
    assert running.commit() == ["-many milk 2", "-many tea 3", "+many tea 4"]
    running.replace("tri.dl", program.format(n=5))
    assert running.commit() == ["-many tea 4", "+many tea 7"]


def test_constraints_hold_once_all_files_are_read(watch: Callable[..., Watch], triangles: Shell) -> None:
    """Whichever file is read first, what it holds lacks what the other one brings."""
    program = """
.decl item(name:symbol)
.input item
.decl scan(name:symbol)
.input scan
.decl alone(name:symbol) empty
alone(n) :- item(n), !scan(n).
alone(n) :- scan(n), !item(n).
seen(n) :- item(n), scan(n).
.output seen
"""
    triangles.write({"tri.dl": program, "facts/item.facts": "tea\n", "facts/scan.facts": "tea\n"})
    running = watch()
    assert running.commit() == ["+seen tea"]
    running.told("lftj: watching")
    running.replace("facts/item.facts", "tea\njam\n")
    assert running.told("lftj: error") == 'lftj: error: `alone` must stay empty, and would have the row alone("jam")'
    running.replace("facts/scan.facts", "tea\njam\n")
    assert running.commit() == ["+seen jam"]


def test_a_broken_file_is_told_and_the_last_good_state_stays(watch: Callable[..., Watch]) -> None:
    running = watch("--no-initial")
    running.told("lftj: watching")
    running.replace("facts/edge.facts", EDGES + "1\tx\n")
    assert "edge.facts:6" in running.told("tri.dl:2:8: ")
    assert running.told("lftj:") == "lftj: the last good state stays"
    running.replace("tri.dl", TRIANGLES + "broken(")
    assert running.told("tri.dl:7:8: error: syntax error")
    running.replace("tri.dl", TRIANGLES + ".decl pair(x:number)\n.output pair\npair(x) :- edge(x, 2).\n")
    running.told("lftj: the last good state stays")
    running.replace("facts/edge.facts", EDGES + "1\t4\n")
    assert running.commit() == ["+tri 1 2 4", "+tri 1 3 4", "+pair 1"]
    (running.folder / "facts" / "edge.facts").unlink()
    running.told("lftj: the last good state stays")
    running.replace("facts/edge.facts", EDGES)
    assert running.commit() == ["-tri 1 2 4", "-tri 1 3 4"]


def test_it_may_begin_with_a_broken_program(watch: Callable[..., Watch], triangles: Shell) -> None:
    triangles.write({"tri.dl": "broken("})
    running = watch()
    assert running.told("tri.dl:1:8: error")
    assert running.told("lftj: w") == "lftj: waiting for a change"
    running.replace("tri.dl", TRIANGLES)
    assert running.commit() == ["+tri 1 2 3", "+tri 2 3 4"]


def test_facts_in_the_text_stay(watch: Callable[..., Watch], triangles: Shell) -> None:
    triangles.write({"tri.dl": TRIANGLES + "edge(1, 2).\nedge(9, 1).\n"})
    running = watch()
    assert running.commit() == ["+tri 1 2 3", "+tri 2 3 4"]
    running.replace("facts/edge.facts", "2\t3\n1\t3\n9\t2\n")
    assert running.commit() == ["-tri 2 3 4", "+tri 9 1 2"]


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (("no.dl",), "no.dl: error: no such program file"),
        (("-",), "lftj: error: stdin cannot be watched"),
        (("tri.dl", "-F", "nowhere"), "lftj: error: -F nowhere: there is no such folder"),
        (("tri.dl", "--interval", "0"), "lftj: error: --interval 0 is not a time"),
        (("tri.dl", "--interval", "soon"), "lftj: error: --interval soon is not a time"),
        (("in.dl",), "in.dl:2:8: error: stdin cannot be watched, and `e` is read from it"),
    ],
)
def test_refusals(triangles: Shell, arguments: tuple[str, ...], first: str) -> None:
    triangles.write({"in.dl": ".decl e(x:number)\n.input e(IO=stdin)\n"})
    done = triangles("watch", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(first)
