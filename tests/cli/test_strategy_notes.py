"""Strategies that are asked for and do not fit, and threads that are not there: said once, on stderr."""

from __future__ import annotations

import os

import pytest

from tests.cli.conftest import Shell

PROGRAM = """\
.decl edge(a:number, b:number)
.input edge
.decl tri(x:number, y:number, z:number)
.output tri
tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).
deg[x] = count : { edge(x, _) }.
copy(x, y) :- edge(x, y).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
name(to_string(x)) :- edge(x, _).
"""


@pytest.fixture
def program(triangles: Shell) -> Shell:
    triangles.write({"p.dl": PROGRAM})
    return triangles


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("tri=triggers", "it is no count, sum or mean; `tri` follows changes by delta"),
        ("path=triggers", "it is recursive; `path` follows changes by rounds"),
        ("name=delta", "its rules compute texts; `name` follows changes by trace"),
        ("copy=trace", "its rules follow changes in a way of their own; `copy` follows changes by alias"),
        ("tri=trace", ""),
        ("tri=delta", ""),
        ("tri=recompute", ""),
        ("tri=auto", ""),
        ("deg=triggers", ""),
        ("path=trace", ""),
        ("path=delta", ""),
    ],
)
def test_a_strategy_that_does_not_fit_is_not_taken_without_a_word(program: Shell, asked: str, said: str) -> None:
    expected = f"lftj: --maintain {asked} does not fit: {said}\n" if said else ""
    done = program("run", "p.dl", "-F", "facts", "-D", "out", "-w", "--maintain", asked)
    assert (done.code, done.err) == (0, "")  # warnings are not wanted
    done = program("run", "p.dl", "-F", "facts", "-D", "out", "--maintain", asked)
    assert (done.code, done.out, done.err) == (0, "", expected)
    assert program.read("out/tri.csv") == "1\t2\t3\n2\t3\t4\n"
    assert program("explain", "p.dl", "-F", "facts", "--maintain", asked).err == expected


def test_it_is_said_of_updates_once(program: Shell) -> None:
    arguments = ("run", "p.dl", "-F", "facts", "-D", "out", "--maintain", "tri=triggers", "--updates", "-")
    done = program(*arguments, stdin="+edge 1 4\n\n-edge 1 4\n")
    assert (done.code, done.err.count("does not fit")) == (0, 1)


def test_granularity_is_of_traces(program: Shell) -> None:
    done = program("explain", "p.dl", "-F", "facts", "--granularity", "copy=node")
    assert done.err == "lftj: --granularity copy=node changes nothing: `copy` follows changes by alias\n"
    assert program("explain", "p.dl", "-F", "facts", "--granularity", "tri=node").err == ""  # it has a trace then


def test_views_of_sql_too(shell: Shell) -> None:
    pytest.importorskip("sqlglot")
    shell.write(
        {"r.sql": "create table e (a int, b int); create view v as select distinct e.a from e join e f on e.b = f.a;"}
    )
    assert "--maintain v=triggers does not fit: " in shell("run", "r.sql", "-D", "out", "--maintain", "v=triggers").err


def test_more_threads_than_cores_are_not_taken_without_a_word(program: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    command = ("run", "p.dl", "-F", "facts", "-D", "out", "-j")
    done = program(*command, "99999")
    assert (done.code, done.out) == (0, "")
    assert done.err == "lftj: --threads 99999: 2 are used, one for each core that this process may use\n"
    assert program(*command, "2") == program(*command, "auto") == (0, "", "")
