"""`lftj check` and `lftj explain`; help and version."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

from lftj import __version__
from lftj.cli import _plain_check
from lftj.cli.app import parse
from tests.cli.conftest import TRIANGLES, Shell

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of interpreted kernels

WRONG = ".decl e(x:number)\np(x) :- e(y).\n"
WARNED = ".decl e(x:number, y:number)\np(x) :- e(x, y).\n"


def test_findings_go_to_stdout_and_the_count_to_stderr(shell: Shell) -> None:
    shell.write({"a.dl": WRONG, "b.dl": WARNED, "c.dl": TRIANGLES})
    assert shell("check", "a.dl", "b.dl", "c.dl") == (
        1,
        "a.dl:2:3: error: variable `x` occurs in the head but in no atom of the body\n"
        "    p(x) :- e(y).\n"
        "      ^\n"
        "  why: a rule can only derive values that its body binds\n"
        "  do: bind `x` in an atom of the body, or drop it from the head\n"
        "\n"
        "a.dl:2:11: warning: variable `y` occurs only once\n"
        "    p(x) :- e(y).\n"
        "              ^\n"
        "  why: it joins nothing; a second use may be misspelt\n"
        "  do: write `_`, or `_y` if the name is worth keeping\n"
        "\n"
        "b.dl:2:14: warning: variable `y` occurs only once\n"
        "    p(x) :- e(x, y).\n"
        "                 ^\n"
        "  why: it joins nothing; a second use may be misspelt\n"
        "  do: write `_`, or `_y` if the name is worth keeping\n",
        "lftj: 3 programs checked, 1 error, 2 warnings\n",
    )


def test_no_findings_and_warnings_alone_pass(shell: Shell) -> None:
    shell.write({"b.dl": WARNED, "c.dl": TRIANGLES})
    assert shell("check", "c.dl") == (0, "", "lftj: 1 program checked, no findings\n")
    assert shell("check", "-", stdin=TRIANGLES) == (0, "", "lftj: 1 program checked, no findings\n")
    assert shell("check", "b.dl")[::2] == (0, "lftj: 1 program checked, 1 warning\n")


def test_an_evaluation_is_compared_with_databases_only(shell: Shell) -> None:
    shell.write({"c.dl": TRIANGLES})
    assert shell("check", "--evaluate", "c.dl") == (
        2,
        "",
        "lftj: error: --evaluate is for databases in files\n"
        "  why: a program is checked without reading data, so that there is nothing derived to compare\n"
        "  do: leave it out, or name databases\n",
    )


def test_an_unreadable_program_does_not_hide_the_others(shell: Shell) -> None:
    shell.write({"a.dl": WRONG})
    done = shell("check", "no.dl", "a.dl")
    assert done.code == 2
    assert done.out.startswith("a.dl:2:3: error: ")
    assert done.err == (
        "no.dl: error: no such program file\n"
        f"  why: the working directory is {shell.folder}\n"
        "  do: did you mean `a.dl`?\nlftj: 1 program checked, 1 error, 1 warning\n"
    )


def test_findings_as_json(shell: Shell) -> None:
    shell.write({"a.dl": ".decl e(x:number)\n.decl e(x:number)\n", "c.dl": TRIANGLES})
    done = shell("check", "--json", "a.dl", "c.dl")
    assert (done.code, done.err) == (1, "")
    assert json.loads(done.out) == [
        {
            "severity": "error",
            "what": "relation `e` is declared twice",
            "why": "only one of the two declarations could hold",
            "remedy": "drop one of the two declarations",
            "predicate": "e",
            "file": "a.dl",
            "line": 2,
            "column": 7,
            "end_line": 2,
            "end_column": 8,
            "source_line": ".decl e(x:number)",
            "related": [
                {
                    "what": "declared here",
                    "file": "a.dl",
                    "line": 1,
                    "column": 7,
                    "end_line": 1,
                    "end_column": 8,
                    "source_line": ".decl e(x:number)",
                }
            ],
        }
    ]
    assert shell("check", "c.dl", "--json") == (0, "[]\n", "")


@pytest.mark.parametrize(
    "arguments",
    [("a.dl",), ("-",), ("a.dl", "--json"), ("--json", "a b.dl", "-", "é.dl"), ("a.dl", "--json", "--json", "check")],
)
def test_plain_arguments_mean_what_typer_takes_them_for(arguments: tuple[str, ...]) -> None:
    plain, typers = _plain_check(("check", *arguments)), parse(("check", *arguments))
    assert isinstance(plain, partial)
    assert isinstance(typers, partial)
    assert (plain.func, plain.args, plain.keywords) == (typers.func, typers.args, typers.keywords)


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("check",), ("check", "--json"), ("check", "--help"), ("check", "a.dl", "-h"), ("check", "--", "a.dl"),
        ("check", "a.dl", "--js"), ("check", ""), ("run", "a.dl"), ("--version", "check", "a.dl"),
    ],
)  # fmt: skip
def test_other_arguments_are_left_to_typer(arguments: tuple[str, ...]) -> None:
    assert _plain_check(arguments) is None


def test_explain_on_the_facts_there_are(triangles: Shell) -> None:
    done = triangles("explain", "tri.dl", "-F", "facts")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "stratum 1: tri(x:number, y:number, z:number)  not evaluated"
    assert lines[1] == "  tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z)."
    ran = triangles("explain", "tri.dl", "-F", "facts", "--run", "tri", "--key-order", "tri=y,x,z")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "stratum 1: tri(x:number, y:number, z:number)  2 rows"
    assert ran.out.splitlines()[2] == "    key order y, x, z  (forced)"


def test_explain_as_json(triangles: Shell) -> None:
    (stratum,) = json.loads(triangles("explain", "tri.dl", "-F", "facts", "--json").out)["strata"]
    assert (stratum["name"], stratum["evaluated"], stratum["rows"]) == ("tri", False, None)
    (stratum,) = json.loads(triangles("explain", "tri.dl", "-F", "facts", "--json", "--run").out)["strata"]
    assert (stratum["evaluated"], stratum["rows"], stratum["rules"][0]["actual"]["rows"]) == (True, 2, 2)


def test_explain_without_facts_says_what_is_missing(shell: Shell) -> None:
    shell.write({"tri.dl": TRIANGLES + ".decl s(x:number)\n.input s(IO=stdin)\n"})
    done = shell("explain", "tri.dl", "-F", "facts", stdin="never read")
    assert done.code == 0
    assert done.err == (
        "lftj: there is no facts/edge.facts; `edge` is planned with the program's own facts only\n"
        "lftj: stdin is not read; `s` is planned with the program's own facts only\n"
    )
    assert done.out.startswith("stratum 1: tri(x:number, y:number, z:number)  not evaluated\n")


@pytest.mark.parametrize(
    "command",
    [(), ("run",), ("query",), ("check",), ("fmt",), ("lsp",), ("watch",), ("doctor",), ("explain",), ("demo",)],
)
def test_help_fits_80_columns(shell: Shell, command: tuple[str, ...]) -> None:
    for flag in ("-h", "--help"):
        done = shell(*command, flag)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Usage: {' '.join(['lftj', *command])} [OPTIONS]")
        assert max(map(len, done.out.splitlines())) <= 80
        shown = re.sub(r"\[ARGS\]\.\.\.|\{?(PROGRAM|QUERY|FILE)\}?\.\.\.", "", done.out)
        assert "..." not in shown  # nothing is cut


def test_help_says_what_is_taken(shell: Shell) -> None:
    """Catches: SQL and databases that the manual has and the help has not."""

    def helped(command: str) -> str:
        return " ".join(shell(command, "--help").out.split())

    for command in ("run", "query", "check", "explain"):
        assert "SQL" in helped(command)
    for command in ("query", "check", "explain"):
        assert "atabase" in helped(command)
    assert ".jsonl" in helped("stream")
    assert "default: True" not in helped("lsp")


def test_the_benchmark_is_not_offered_to_users(shell: Shell) -> None:
    assert "bench" not in shell("--help").out


def test_without_a_command_help_goes_to_stderr(shell: Shell) -> None:
    done = shell()
    assert (done.code, done.out) == (2, "")
    assert done.err == shell("--help").out


def test_version(shell: Shell) -> None:
    assert shell("--version") == (0, f"lftj {__version__}\n", "")
