"""`Database(threads=)`, `lftj run --threads`, and what `explain` says of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

import lftj
from lftj.errors import DataError
from tests.cli.conftest import EDGES, TRIANGLES, Shell, shell

__all__ = ["shell"]  # a fixture

TRIANGLE = ".decl e(x:number, y:number)\ntri(x, y, z) :- e(x, y), e(y, z), e(x, z).\n.decl r(x:number, y:number)\n"


@pytest.mark.parametrize("threads", [0, -2, 1.5, "two", None, True])
def test_a_number_of_threads_that_is_none(threads: Any) -> None:
    with pytest.raises(DataError) as caught:
        lftj.Database(threads=threads)
    assert str(caught.value) == (
        f"a database cannot have {threads!r} threads\n"
        "  why: `threads` is how many may work at a time, a whole number of 1 or more\n"
        "  do: give `threads=2`, say, or leave it out for one"
    )


def test_one_thread_has_no_crew() -> None:
    assert lftj.Database()._arena.crew is None
    assert lftj.Database(threads=1)._arena.crew is None
    crew = lftj.Database(threads=3)._arena.crew
    assert crew is not None
    assert (crew.threads, crew._pool) == (3, None)  # no thread is made before there is work for it


def explained(threads: int) -> str:
    db = lftj.Database(TRIANGLE, threads=threads)
    db.load("e", [(x, y) for x in range(10) for y in range(10)])
    db.evaluate()
    return re.sub(r"\d+\.\d{3} s", "0.000 s", str(db.explain("tri")))


def test_explain_says_how_many_threads_there_were(forced: None) -> None:
    assert ", 0.000 s, 10 ranges of x on 2 threads\n" in explained(2)
    assert ", 0.000 s\n" in explained(1)
    db = lftj.Database(TRIANGLE, threads=2)
    db.load("e", [(1, 2)])
    query = db.query("e(1, y)")
    query.count()
    assert str(query.explain()).endswith(", on one thread")
    assert query.explain().data["query"]["actual"]["threads"] == 1


@pytest.mark.parametrize("option", ["--threads", "-j", "--jobs"])
@pytest.mark.parametrize("number", ["1", "2", "auto"])
def test_run_with_threads(shell: Shell, option: str, number: str) -> None:
    shell.write({"tri.dl": TRIANGLES, "edge.facts": EDGES})
    assert shell("run", "tri.dl", option, number) == (0, "tri\t2\n", "")


@pytest.mark.parametrize("number", ["0", "two", "-1", "²"])
def test_run_with_a_number_of_threads_that_is_none(shell: Shell, number: str) -> None:
    shell.write({"tri.dl": TRIANGLES, "edge.facts": EDGES})
    assert shell("run", "tri.dl", f"--threads={number}") == (
        2,
        "",
        f"lftj: error: --threads {number} is not a number of threads\n"
        "  why: it is how many threads may work at a time\n  do: give 1 or more, or auto: one per core\n",
    )
