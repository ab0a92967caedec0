"""`lftj fmt`: files in place, stdin to stdout, and what would change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import TRIANGLES, Shell

LOOSE = ".decl  e(x : number)   // edges\np( x ):-e(x).\n"
TIDY = ".decl e(x:number)  // edges\np(x) :- e(x).\n"


def test_files_are_rewritten_in_place(shell: Shell) -> None:
    shell.write({"a.dl": LOOSE, "b.dl": TIDY, "sub/c.dl": LOOSE})
    done = shell("fmt", "a.dl", "b.dl", "sub/c.dl", "a.dl")
    assert done == (0, "", "lftj: 2 files reformatted, 1 file left unchanged\n")
    assert [shell.read(name) for name in ("a.dl", "b.dl", "sub/c.dl")] == [TIDY] * 3
    assert shell("fmt", "a.dl") == (0, "", "lftj: 0 files reformatted, 1 file left unchanged\n")
    assert shell.names() == ["a.dl", "b.dl", "sub"]


def test_permissions_and_links_stay(shell: Shell) -> None:
    shell.write({"a.dl": LOOSE})
    os.chmod(shell.folder / "a.dl", 0o640)
    os.symlink("a.dl", shell.folder / "link.dl")
    assert shell("fmt", "link.dl").code == 0
    assert (shell.folder / "link.dl").is_symlink()
    assert shell.read("a.dl") == TIDY
    assert (shell.folder / "a.dl").stat().st_mode & 0o777 == 0o640


def test_a_file_in_standard_form_is_not_touched(shell: Shell) -> None:
    shell.write({"a.dl": TIDY})
    before = (shell.folder / "a.dl").stat()
    shell("fmt", "a.dl")
    after = (shell.folder / "a.dl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_stdin_goes_to_stdout(shell: Shell) -> None:
    assert shell("fmt", "-", stdin=LOOSE) == (0, TIDY, "")
    assert shell("fmt", "-", stdin="") == (0, "", "")
    assert shell("fmt", "-", "a.dl", stdin=LOOSE) == (
        2,
        "",
        "lftj: error: stdin and files cannot be formatted at once\n"
        "  why: what stdin holds goes to stdout, and files are rewritten\n"
        "  do: give files, or - alone\n",
    )


def test_sql_is_not_formatted(shell: Shell) -> None:
    """Catches: a remedy that has a view of SQL rewritten as a rule."""
    shell.write({"report.sql": "create view v as select 1 as a;\n", "a.dl": LOOSE})
    done = shell("fmt", "report.sql", "a.dl")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "report.sql: error: this is a program of SQL\n"
        "  why: `lftj fmt` formats programs of rules\n"
        "  do: leave it out; `lftj run` and `lftj check` take SQL\n"
        "lftj: 1 file reformatted, 0 files left unchanged\n"
    )
    assert shell.read("report.sql") == "create view v as select 1 as a;\n"
    assert shell.read("a.dl") == TIDY


def test_check_writes_nothing(shell: Shell) -> None:
    shell.write({"a.dl": LOOSE, "b.dl": TIDY})
    assert shell("fmt", "--check", "a.dl", "b.dl") == (
        1,
        "",
        "a.dl: not in standard form\nlftj: 1 file would be reformatted, 1 file left unchanged\n",
    )
    assert shell("fmt", "--check", "b.dl").code == 0
    assert shell("fmt", "--check", "-", stdin=LOOSE)[:2] == (1, "")
    assert shell("fmt", "--check", "-", stdin=TIDY)[:2] == (0, "")
    assert shell.read("a.dl") == LOOSE


def test_diff_writes_nothing(shell: Shell) -> None:
    shell.write({"a.dl": LOOSE.rstrip("\n"), "b.dl": TIDY})
    assert shell("fmt", "--diff", "a.dl", "b.dl") == (
        1,
        "--- a.dl\n+++ a.dl (formatted)\n@@ -1,2 +1,2 @@\n"
        "-.decl  e(x : number)   // edges\n-p( x ):-e(x).\n\\ No newline at end of file\n"
        "+.decl e(x:number)  // edges\n+p(x) :- e(x).\n",
        "",
    )
    assert shell("fmt", "--diff", "b.dl") == (0, "", "")
    assert shell.read("a.dl") == LOOSE.rstrip("\n")


def test_lines_of_a_diff_end_at_line_feeds_only(shell: Shell) -> None:
    comment = "// a\u2028b\x0cc\x85d\x1ce\n"
    shell.write({"a.dl": f"{comment}.decl   e(x:number)\n"})
    assert shell("fmt", "--diff", "a.dl").out == (
        f"--- a.dl\n+++ a.dl (formatted)\n@@ -1,2 +1,2 @@\n {comment}-.decl   e(x:number)\n+.decl e(x:number)\n"
    )


def test_what_does_not_parse_is_left_as_it_is(shell: Shell) -> None:
    shell.write({"a.dl": "p(1\n", "b.dl": LOOSE})
    done = shell("fmt", "a.dl", "no.dl", "b.dl")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("a.dl:1:4: error: syntax error: ")
    assert "no.dl: error: no such program file" in done.err
    assert done.err.endswith("lftj: 1 file reformatted, 0 files left unchanged\n")
    assert (shell.read("a.dl"), shell.read("b.dl")) == ("p(1\n", TIDY)
    assert shell("fmt", "a.dl").code == 1


def test_what_cannot_be_written_does_not_stop_the_others(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write({"a.dl": LOOSE, "b.dl": LOOSE})
    replace = os.replace

    def refused(made: os.PathLike[str], path: os.PathLike[str]) -> None:
        if os.path.basename(path) == "a.dl":
            raise PermissionError(13, "Permission denied")
        replace(made, path)

    monkeypatch.setattr(os, "replace", refused)
    done = shell("fmt", "a.dl", "b.dl")
    assert (done.code, done.out) == (3, "")
    assert "a.dl: error: the program cannot be written\n  why: Permission denied\n" in done.err
    assert done.err.endswith("lftj: 1 file reformatted, 0 files left unchanged\n")
    assert (shell.read("a.dl"), shell.read("b.dl")) == (LOOSE, TIDY)


def test_what_does_not_check_is_formatted(shell: Shell) -> None:
    shell.write({"a.dl": "p(x):-nowhere(x)."})
    assert shell("fmt", "a.dl").code == 0
    assert shell.read("a.dl") == "p(x) :- nowhere(x).\n"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that hold")
def test_a_folder_that_cannot_be_written(shell: Shell) -> None:
    shell.write({"sub/a.dl": LOOSE})
    os.chmod(shell.folder / "sub", 0o555)
    try:
        done = shell("fmt", "sub/a.dl")
    finally:
        os.chmod(shell.folder / "sub", 0o755)
    assert done.code == 3
    assert "error: the program cannot be written" in done.err


def test_formatting_loads_no_engine(shell: Shell) -> None:
    shell.write({"a.dl": TRIANGLES})
    heavy = "{'numba', 'numpy', 'pyarrow'}"
    code = f"import sys; from lftj.cli import main; main(['fmt', 'a.dl']); print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
