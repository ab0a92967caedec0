"""`lftj query` and `lftj explain` of a database in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lftj
from tests.cli.conftest import Shell


@pytest.fixture
def kept(triangles: Shell) -> Shell:
    """A folder with a database in a file, and without the program and the facts that it was made of."""
    assert triangles("run", "tri.dl", "-F", "facts", "-D", "out", "--database", "tri.lftj").code == 0
    (triangles.folder / "tri.dl").unlink()
    (triangles.folder / "facts" / "edge.facts").unlink()
    return triangles


def test_a_database_is_asked_as_a_program_is(kept: Shell) -> None:
    """Catches: a database that can only be asked from Python."""
    assert kept("query", "tri(1, y, z)", "edge(x, y), y > 3", "tri.lftj") == (
        0,
        "y  z\n-  -\n2  3\n\nx  y\n-  -\n2  4\n3  4\n",
        "",
    )
    assert kept("query", "tri(x, y, 4)", "tri.lftj", "--format", "csv").out == "x,y\n2,3\n"
    assert kept("query", "tri($x, y, z)", "tri.lftj", "--format", "json", "-p", "x=1").out == '[{"y": 2, "z": 3}]\n'
    assert kept("query", "tri(1, 2, 3)", "tri.lftj").out == "true\n"


def test_a_database_is_asked_in_sql_too(kept: Shell) -> None:
    asked = ("select x, y from tri where z > $least", "tri(x, _, 3)", "tri.lftj", "-p", "least=3")
    done = kept("query", *asked, "--format", "json")
    assert done == (0, '[{"x": 2, "y": 3}]\n[{"x": 1}]\n', "")
    first = ("query", "select x from tri order by x desc limit $most", "tri.lftj", "-p", "most=1", "--format", "csv")
    assert kept(*first) == (0, "x\n2\n", "")


def test_rules_and_sql_ask_a_program_at_once(triangles: Shell) -> None:
    """Catches: a query of SQL that is taken for one of rules, since another of the line is."""
    done = triangles("query", "tri(x, _, 3)", "select count(*) as n from edge", "tri.dl", "-F", "facts")
    assert done == (0, "x\n-\n1\n\nn\n-\n5\n", "")


@pytest.mark.parametrize(
    "text",
    ["from tri", "table tri", 'from "tri"', "(select * from tri)", "\n-- all\nselect * from tri", "/* all */from tri"],
)
def test_sql_is_known_by_how_a_statement_may_begin(triangles: Shell, text: str) -> None:
    """Catches: a statement that `db.sql` answers, and that is refused as a query of rules."""
    done = triangles("query", text, "tri.dl", "-F", "facts", "--format", "csv")
    assert done == (0, "x,y,z\n1,2,3\n2,3,4\n", "")
    ours = triangles("query", "/* all */ (tri(x, y, z), x > 1)", "tri.dl", "-F", "facts", "--format", "csv")
    assert ours.out == "x,y,z\n2,3,4\n"


def test_a_database_is_known_by_what_it_holds(kept: Shell) -> None:
    (kept.folder / "tri.lftj").rename(kept.folder / "shop")
    assert kept("query", "tri(1, y, z)", "shop", "--format", "csv").out == "y,z\n2,3\n"


def test_a_database_is_asked_while_somebody_writes_to_it(kept: Shell) -> None:
    with lftj.Database(path=kept.folder / "tri.lftj") as db:
        with db.transaction() as tx:
            tx.insert("edge", [(1, 4)])
        assert kept("query", "tri(1, y, 4)", "tri.lftj", "--format", "csv").out == "y\n2\n3\n"
        assert "tri(x:number, y:number, z:number)  4 rows" in kept("explain", "tri.lftj").out
        with db.transaction() as tx:
            tx.erase("edge", [(1, 4)])
    assert kept("query", "tri(1, y, 4)", "tri.lftj", "--format", "csv").out == "y\n"


def test_asking_changes_nothing(kept: Shell) -> None:
    path = kept.folder / "tri.lftj"
    before = path.read_bytes()
    assert kept("explain", "tri.lftj", "--run").code == 0
    for text in ("insert into edge values (9, 9)", "with t as (select 9 as a) insert into edge select a, a from t"):
        done = kept("query", text, "tri.lftj")
        assert (done.code in (2, 3), done.out) == (True, "")
        assert "do: ask with `select`; `lftj run PROGRAM --database FILE --updates CHANGES` changes rows" in done.err
    assert path.read_bytes() == before


def test_a_database_is_explained(kept: Shell) -> None:
    done = kept("explain", "tri.lftj", "tri")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("stratum 1: tri(x:number, y:number, z:number)  2 rows\n")
    assert ", 31 seeks, " in kept("explain", "tri.lftj", "tri", "--run").out  # figures of an evaluation
    assert json.loads(kept("explain", "tri.lftj", "--json").out)["strata"]
    assert kept("explain", "tri.lftj", "nothing").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("query", "tri(x, _, _)", "none.lftj"), 3, "there is no file none.lftj"),
        (("explain", "none.lftj"), 3, "there is no file none.lftj"),
        (("query", "tri(x, _, _)", "tri.lftj", "-F", "out"), 2, "-F out: tri.lftj is a database, and reads no fact"),
        (("explain", "tri.lftj", "--maintain", "tri=trace"), 2, "--maintain comes too late for tri.lftj"),
        (("query", "tri(x, _, $z)", "tri.lftj"), 2, "needs a value for `$z`"),
        (("query", "select * from tri where z = $z", "tri.lftj"), 2, "needs a value for `$z`"),
        (("query", "tri(x, _, _)", "tri.lftj", "-p", "z=1"), 2, "no query has a parameter `$z`"),
        (("query", "tree(x, _, _)", "tri.lftj"), 1, "unknown relation `tree`"),
        (("query", "tri.lftj", "tri(x, _, _)"), 2, "the program does not come last"),
    ],
)
def test_refusals(kept: Shell, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = kept(*arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "\n  why: " in done.err
    assert "\n  do: " in done.err


def test_a_damaged_database_is_not_answered_from(shell: Shell) -> None:
    shell.write({"rubbish.lftj": b"\xff\xfe rubbish"})
    done = shell("query", "tri(x, _, _)", "rubbish.lftj")
    assert (done.code, done.out) == (3, "")
    assert "not a database" in done.err


def test_where_a_database_is_refused_the_message_says_how_it_is_asked(kept: Shell) -> None:
    for command in ("run", "watch", "fmt"):
        done = kept(command, "tri.lftj")
        assert (done.code, done.out) == (2, "")
        assert "a database is asked by `lftj query QUERY tri.lftj`" in done.err
    assert Path("tri.lftj").exists()
