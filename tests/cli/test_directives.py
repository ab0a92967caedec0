"""`read_inputs` and `write_outputs` of a database: all or nothing, and errors with fields."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lftj
from lftj.io.directive_files import DirectiveError
from lftj.io.rejects import BadRowsError

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of interpreted kernels

PROGRAM = """
.decl e(x:number)
.input e
.input e(filename="more.facts")
.decl f(x:symbol)
.input f
.decl both(x:number, y:symbol)
.output both
both(x, y) :- e(x), f(y).
e(7).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"e": "1\n", "more": "2\n", "f": "a\n"}.items():
        (tmp_path / f"{name}.facts").write_text(text)
    return tmp_path


def test_read_evaluate_write(folder: Path) -> None:
    db = lftj.Database(PROGRAM)
    assert db.read_inputs(folder) == {}
    assert list(db["e"]) == [(1,), (2,), (7,)]
    db.write_outputs(folder / "out")
    assert (folder / "out" / "both.csv").read_bytes() == b"1\ta\n2\ta\n7\ta\n"


def test_one_bad_file_and_nothing_is_loaded(folder: Path) -> None:
    db = lftj.Database(PROGRAM)
    db.load("f", [("before",)])
    assert len(db["both"]) == 1
    (folder / "f.facts").write_text("a\tb\n")
    with pytest.raises(DirectiveError) as caught:
        db.read_inputs(folder)
    assert (caught.value.directive.relation, caught.value.where) == ("f", "<rules>:6:8")
    assert caught.value.what == f"`f` cannot be read: {folder}/f.facts: the source has 2 columns, f(x:symbol) takes 1"
    assert (list(db["e"]), list(db["f"]), list(db["both"])) == ([(7,)], [("before",)], [(7, "before")])
    (folder / "f.facts").write_text("a\n")
    db.read_inputs(folder)
    assert (len(db["e"]), len(db["f"]), len(db["both"])) == (3, 2, 6)


def test_the_cause_is_kept(folder: Path) -> None:
    (folder / "more.facts").write_text("x\ny\n")
    with pytest.raises(DirectiveError) as caught:
        lftj.Database(PROGRAM).read_inputs(folder)
    assert isinstance(caught.value.__cause__, BadRowsError)
    assert caught.value.__cause__.count == 2
    assert isinstance(caught.value, lftj.DataError)


def test_quarantine(folder: Path) -> None:
    (folder / "e.facts").write_text("x\n3\n")
    (folder / "more.facts").write_text("4\ny\n")
    db = lftj.Database(PROGRAM)
    bad = db.read_inputs(folder, on_error="quarantine")
    assert [(reject.source, reject.line) for reject in bad["e"]] == [
        (f"{folder}/e.facts", 1),
        (f"{folder}/more.facts", 2),
    ]
    assert list(bad) == ["e"]
    assert db.rejects["e"] is bad["e"]
    assert list(db["e"]) == [(3,), (4,), (7,)]


def test_nothing_is_written_where_evaluation_fails(folder: Path) -> None:
    db = lftj.Database(PROGRAM + ".decl bad(x:number)\n.output bad\nbad(1 / (x - 1)) :- e(x).\n")
    db.read_inputs(folder)
    with pytest.raises(lftj.Error, match="division by zero"):
        db.write_outputs(folder / "out")
    assert not (folder / "out").exists()


def test_an_output_folder_that_cannot_be_made(folder: Path) -> None:
    db = lftj.Database(PROGRAM)
    with pytest.raises(OSError, match="the output folder cannot be made") as caught:
        db.write_outputs(folder / "e.facts")
    assert isinstance(caught.value, lftj.DataError)
    assert (caught.value.where, caught.value.why) == (f"{folder}/e.facts", "it is a file")


def test_a_name_with_a_nul(folder: Path) -> None:
    """It was told by Python, as an embedded null byte, without a place."""
    db = lftj.Database(PROGRAM)
    with pytest.raises(OSError, match="no file or folder has such a name") as caught:
        db["e"].to_csv(folder / "a\0b.csv")
    assert isinstance(caught.value, lftj.DataError)
    assert caught.value.remedy == "give a name without it"
    with pytest.raises(OSError, match="no file or folder has such a name"):
        db.write_outputs(folder / "a\0b")
    db.rules('.decl t(x:number)\n.output t(filename="a\\x00b.csv")\nt(1).\n')
    for place in (folder, folder / "new"):
        with pytest.raises(DirectiveError, match="no file or folder has such a name") as refused:
            db.write_outputs(place)
        assert refused.value.where == "<rules>:2:9"
    assert not (folder / "new").exists()


def test_two_programs_do_not_write_one_file(folder: Path) -> None:
    """In one program that is an error of it."""
    db = lftj.Database('.decl t(x:number)\n.output t(filename="x.csv")\nt(1).\n')
    db.rules('.decl u(x:number)\n.output u(filename="./x.csv")\nu(2).\n')
    with pytest.raises(DirectiveError) as caught:
        db.write_outputs(folder)
    assert caught.value.what == f"`t` and `u` are both written to {folder.resolve()}/x.csv"
    assert caught.value.where == "<rules>:2:9"
    assert not (folder / "x.csv").exists()


def test_links_to_one_file(folder: Path) -> None:
    program = ".decl t(x:number)\n.output t\nt(1).\n.decl u(x:number)\n.output u\nu(2).\n"
    (folder / "u.csv").symlink_to("t.csv")
    with pytest.raises(DirectiveError, match="`t` and `u` are both written to"):
        lftj.Database(program).write_outputs(folder)
    (folder / "u.csv").unlink()
    (folder / "u.csv").symlink_to(os.devnull)
    lftj.Database(program).write_outputs(folder)
    assert (folder / "t.csv").read_text() == "1\n"


def test_a_builder_program_reads_and_writes_too(folder: Path) -> None:
    program = lftj.Program()
    e = program.input("e", x=int)
    (out,) = program.relations("out")
    (x,) = lftj.variables("x")
    program.rule(out(x), e(x), x > 0)
    program.output("out")
    db = lftj.Database(program)
    db.read_inputs(folder)
    db.write_outputs(folder)
    assert (folder / "out.csv").read_text() == "1\n"
