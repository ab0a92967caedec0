"""`lftj query`: questions to a program and its facts."""

from __future__ import annotations

import json
import subprocess

import pyarrow as pa
import pytest

from tests.cli.conftest import TRIANGLES, Shell
from tests.forked import forks

NAMES = """\
.decl name(who:symbol, age:number, height:float)
name("Ann", 41, 1.7).
name("Bert, the \\"old\\"", 103, 1.65).
"""


def test_the_answer_is_a_table(triangles: Shell) -> None:
    assert triangles("query", "tri(1, y, z)", "tri.dl", "-F", "facts") == (0, "y  z\n-  -\n2  3\n", "")
    assert triangles("query", "tri(x, _, 4)", "edge(x, y), y > 3", "tri.dl", "-F", "facts") == (
        0,
        "x\n-\n2\n\nx  y\n-  -\n2  4\n3  4\n",
        "",
    )


def test_texts_stand_to_the_left(shell: Shell) -> None:
    shell.write({"p.dl": NAMES})
    assert shell("query", "name(who, age, m)", "p.dl").out == (
        "who              age     m\n"
        "---------------  ---  ----\n"
        "Ann               41   1.7\n"
        'Bert, the "old"  103  1.65\n'
    )


def test_csv_and_json(shell: Shell) -> None:
    shell.write({"p.dl": NAMES})
    done = shell("query", "name(who, age, _), age > 50", "name(who, _, m)", "p.dl", "--format", "csv")
    assert done == (
        0,
        'who,age\n"Bert, the ""old""",103\n\nwho,m\nAnn,1.7\n"Bert, the ""old""",1.65\n',
        "",
    )
    done = shell("query", "name(who, age, _), age > 50", "name(who, 1, m)", "p.dl", "--format", "json")
    assert [json.loads(line) for line in done.out.splitlines()] == [[{"who": 'Bert, the "old"', "age": 103}], []]


def test_values_of_every_type_are_written_as_in_fact_files(shell: Shell) -> None:
    types = "date?, timestamp, duration, bytes, bool, decimal(4,2), uuid?, number"
    columns = ", ".join(f"{name}:{type}" for name, type in zip("abcdefgh", types.split(", "), strict=True))
    shell.write({"p.dl": f".decl v({columns})\n.input v\n"})
    fields = "\t2024-05-31T12:30:00\t1h30m\t00ff\ttrue\t1.50\t\t7"
    shell.write({"facts/v.facts": f"{fields}\n"})
    query = ("query", "v(a, b, c, d, e, f, g, h)", "p.dl", "-F", "facts", "--format")
    assert shell(*query, "csv").out == f"a,b,c,d,e,f,g,h\n{fields.replace(chr(9), ',')}\n"
    assert json.loads(shell(*query, "json").out) == [
        {"a": None, "b": "2024-05-31T12:30:00", "c": "1h30m", "d": "00ff", "e": True, "f": "1.50", "g": None, "h": 7}
    ]
    assert shell(*query, "table").out.splitlines()[2].split() == [
        "null", "2024-05-31T12:30:00", "1h30m", "00ff", "true", "1.50", "null", "7"
    ]  # fmt: skip


def test_csv_does_not_write_an_empty_text_as_null(shell: Shell) -> None:
    shell.write({"p.dl": '.decl s(x:symbol?)\ns(""). s(null). s("a").\n'})
    for query in ("s(x)", "select x from s"):
        done = shell("query", query, "p.dl", "--format", "csv")
        assert (done.code, done.out) == (3, "")
        assert "an empty value cannot be told from null" in done.err
        assert done.err.endswith("  do: ask with --format json or --format arrow, which tell null apart\n")
    assert shell("query", "s(x), is_null(x)", "p.dl", "--format", "csv").out == "x\n\n"
    assert json.loads(shell("query", "s(x)", "p.dl", "--format", "json").out) == [{"x": None}, {"x": ""}, {"x": "a"}]


def test_a_query_without_variables_is_true_or_false(triangles: Shell) -> None:
    def asked(text: str, form: str) -> str:
        return triangles("query", text, "tri.dl", "-F", "facts", "--format", form).out

    for form in ("table", "csv"):
        assert (asked("tri(1, 2, 3)", form), asked("tri(1, 2, _), edge(3, 3)", form)) == ("true\n", "false\n")
    assert (asked("tri(1, 2, 3)", "json"), asked("tri(3, 2, 1)", "json")) == ("[{}]\n", "[]\n")


@pytest.mark.parametrize("wrong", ["name(who, age, _), age / 0 > 1", "select nothing from name", "select 1 / 0 / 'x'"])
def test_of_queries_of_which_one_is_refused_nothing_is_printed(shell: Shell, wrong: str) -> None:
    shell.write({"p.dl": NAMES})
    for right in ("name(who, age, _)", "select age from name"):
        done = shell("query", right, wrong, "p.dl")
        assert (done.code, done.out) == (1, "")
        assert "error" in done.err


def test_an_arrow_stream(triangles: Shell) -> None:
    command = (*forks().lftj, "query", "tri(x, y, z)", "tri.dl", "-F", "facts", "--format", "arrow")
    done = subprocess.run(command, cwd=triangles.folder, capture_output=True, check=True)
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.to_pydict() == {"x": [1, 2], "y": [2, 3], "z": [3, 4]}


def test_only_what_is_needed_is_read(shell: Shell) -> None:
    program = TRIANGLES + ".decl other(x:number)\n.input other\n.decl bad(x:number)\nbad(1 / x) :- other(x).\n"
    shell.write({"p.dl": program, "facts/edge.facts": "1\t2\n"})
    assert shell("query", "edge(x, y)", "p.dl", "-F", "facts", "-w") == (0, "x  y\n-  -\n1  2\n", "")
    done = shell("query", "bad(x)", "p.dl", "-F", "facts")
    assert (done.code, done.out) == (3, "")
    shell.write({"facts/other.facts": "0\n"})
    assert shell("query", "bad(x)", "p.dl", "-F", "facts").code == 1


def test_parameters_are_values_of_the_type_that_is_due(shell: Shell) -> None:
    shell.write({"p.dl": NAMES})
    asked = ("name($who, age, _)", "name(x, $age, _)", "name(x, _, m), m > $least", "p.dl", "--format", "json")
    done = shell("query", *asked, "-p", "who=Ann", "-p", "age=103", "--param", "least=1.68")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        [{"age": 41}],
        [{"x": 'Bert, the "old"'}],
        [{"x": "Ann", "m": 1.7}],
    ]
    done = shell("query", "name($who, age, _)", "p.dl", "-p", 'who=Bert, the "old"')
    assert done == (0, "age\n---\n103\n", "")


def test_the_program_may_come_from_stdin(shell: Shell) -> None:
    assert shell("query", "name(x, 41, _)", "-", stdin=NAMES) == (0, "x\n---\nAnn\n", "")


_LAST = "queries come first, and the program or database is the last argument"
_LONG = ", ".join(["p(x)"] * 100)  # longer than names of files may be


@pytest.mark.parametrize(
    ("given", "what", "why", "command"),
    [
        ("a.dl|p(x)", "the program does not come last: p(x) is not a file, and a.dl is one", "", "'p(x)' a.dl"),
        (
            f"a.dl|{_LONG}",
            f"the program does not come last: {_LONG} is not a file, and a.dl is one",
            "",
            f"'{_LONG}' a.dl",
        ),
        (
            "p(x)|a.dl|select x from p",
            "the program does not come last: select x from p is not a file, and a.dl is one",
            "",
            "'p(x)' 'select x from p' a.dl",
        ),
        (
            "select x from p|a.dl|b.dl",
            "a.dl and b.dl cannot be asked at once",
            ", one; its fact files are found in the folder of -F",
            "'select x from p' a.dl",
        ),
        (
            "a.dl|b.dl|p(x)",
            "a.dl and b.dl cannot be asked at once",
            ", one; its fact files are found in the folder of -F",
            "'p(x)' a.dl",
        ),
        (
            "p(x)|a.dl|my facts",
            "the program does not come last: my facts is a folder, and a.dl is a file",
            "; the folder of the facts is an option",
            "'p(x)' a.dl -F 'my facts'",
        ),
        ("p(x)|p(1)", "no program is given: the last argument is the query `p(1)`", "", "'p(x)' 'p(1)' tri.dl"),
    ],
)
def test_a_file_in_the_wrong_place_is_named_with_the_right_command(
    shell: Shell, given: str, what: str, why: str, command: str
) -> None:
    shell.write({"a.dl": ".decl p(x:number)\np(1).\n", "b.dl": "q(1).\n", "my facts/p.facts": ""})
    code, out, err = shell("query", *given.split("|"))
    assert (code, out) == (2, "")
    assert err.startswith(f"lftj: error: {what}\n  why: {_LAST}{why}\n  do: ")
    assert err.endswith(f", as in `lftj query {command}`\n")


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (("p.dl",), 2, "lftj: error: a query and a program are needed"),
        (("p.dl", "name(x, _, _)"), 2, "lftj: error: the program does not come last: name(x, _, _) is not a file, and"),
        (("name(x, _, _)", "q.dl"), 2, "q.dl: error: no such program file"),
        (("name($who, x, _)", "p.dl"), 2, "lftj: error: the query `name($who, x, _)` needs a value for `$who`"),
        (("name($who, x, _)", "p.dl", "-p", "who"), 2, "lftj: error: -p who gives no parameter a value"),
        (("name($w, x, _)", "p.dl", "-p", "w=1", "-p", "v=2"), 2, "lftj: error: -p v: no query has a parameter `$v`"),
        (("name(x, $age, _)", "p.dl", "-p", "age=old"), 2, "lftj: error: -p age=old: the value "),
        (("nam(x)", "p.dl"), 1, "<query>:1:1: error: unknown relation `nam`"),
        (("name(x, _, _)", "p.dl", "--format", "xml"), 2, "lftj: error: --format xml is unknown"),
        (("name(x, _, _)", "name(_, x, _)", "p.dl", "--format", "arrow"), 2, "lftj: error: --format arrow is for one"),
        (("name(x, _, _)", "p.dl", "-F", "nowhere"), 2, "lftj: error: -F nowhere: there is no such folder"),
        (("name(x, _, _)", "p.dl", "-F", "p.dl"), 2, "lftj: error: -F p.dl: this is not a folder"),
    ],
)
def test_refusals(shell: Shell, arguments: tuple[str, ...], code: int, first: str) -> None:
    shell.write({"p.dl": NAMES})
    done = shell("query", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(first)
    assert "\n  why: " in done.err
    assert "\n  do: " in done.err


@pytest.mark.parametrize(
    ("type_", "given", "remedy"),
    [
        ("number", "old", "give a number"),
        ("number", "99999999999999999999", "give a number"),
        ("unsigned", "-1", "give an unsigned"),
        ("float", "nan", "give a float"),
        ("date", "1", "give a date"),
        ("decimal(10,2)", "1.234", "give a decimal(10,2)"),
    ],
)
def test_a_value_of_a_parameter_that_does_not_fit_is_not_to_be_mended_in_a_column(
    shell: Shell, type_: str, given: str, remedy: str
) -> None:
    """Declaring the column as a symbol was proposed, which has the query compare the column with a text."""
    shell.write({"p.dl": f".decl p(x:{type_}, y:number)\n"})
    done = shell("query", "p($x, y)", "p.dl", "-p", f"x={given}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"lftj: error: -p x={given}: the value ")
    assert done.err.endswith(f"\n  do: {remedy}, as in -p x=...\n")
