"""What the command line refuses: the whole message and the exit code of each; nothing is written, nothing on stdout."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lftj
from lftj.cli import main
from lftj.cli.outcome import worded
from lftj.cli.souffle import refusal
from tests.cli.conftest import TRIANGLES, Shell

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of interpreted kernels

RUN = ("run", "tri.dl", "-F", "facts")

USAGE = {
    ("run",): "lftj: error: missing argument 'PROGRAM'\n"
    "  why: these are not the arguments that `lftj run` takes\n"
    "  do: see `lftj run --help`\n",
    ("run", "tri.dl", "more.dl"): (
        "lftj: error: got unexpected extra argument (more.dl)\n"
        "  why: these are not the arguments that `lftj run` takes\n"
        "  do: see `lftj run --help`\n"
    ),
    ("go",): "lftj: error: no such command 'go'\n"
    "  why: these are not the arguments that `lftj` takes\n"
    "  do: see `lftj --help`\n",
    ("rum",): "lftj: error: no such command 'rum'\n"
    "  why: these are not the arguments that `lftj` takes\n"
    "  do: did you mean `lftj run`?\n",
    ("tri.dl", "-F", "facts"): (
        "lftj: error: no such command 'tri.dl'\n"
        "  why: these are not the arguments that `lftj` takes\n"
        "  do: to evaluate a program, `lftj run tri.dl`\n"
    ),
    ("run", "tri.dl", "--fact-dirs", "x"): "lftj: error: no such option: --fact-dirs\n"
    "  why: `lftj run` has no option of that name\n"
    "  do: did you mean --fact-dir?\n",
    ("check", "tri.dl", "-F", "x"): "lftj: error: no such option: -F\n"
    "  why: `lftj check` has no option of that name\n"
    "  do: see `lftj check --help`\n",
    (*RUN, "-c"): (
        "lftj: error: Souffle's option -c is not supported\n"
        "  why: lftj compiles no program: its kernels are made once per machine\n"
        "  do: leave it out\n"
    ),
    (*RUN, "-M", "A=1"): (
        "lftj: error: Souffle's option -M is not supported\n"
        "  why: there is no preprocessor\n"
        "  do: write one file, with the macros expanded\n"
    ),
    (*RUN, "--profile=log"): (
        "lftj: error: Souffle's option --profile is not supported\n"
        "  why: there is no profile file\n"
        "  do: use --stats, or `lftj explain --run`\n"
    ),
    (*RUN, "-j0"): (
        "lftj: error: --threads 0 is not a number of threads\n"
        "  why: it is how many threads may work at a time\n"
        "  do: give 1 or more, or auto: one per core\n"
    ),
    (*RUN, "--timeout", "soon"): "lftj: error: --timeout soon is not a time\n"
    "  why: it is a number of seconds, more than 0\n"
    "  do: give seconds, such as 60 or 0.5\n",
    (*RUN, "--timeout", "0"): "lftj: error: --timeout 0 is not a time\n"
    "  why: it is a number of seconds, more than 0\n"
    "  do: give seconds, such as 60 or 0.5\n",
    (*RUN, "--memory-limit", "lots"): (
        "lftj: error: --memory-limit lots is not a size\n"
        "  why: it is a number of bytes, 1 or more, or such a number in words\n"
        "  do: give bytes, 500MB (powers of 1000) or 2GiB (powers of 1024)\n"
    ),
    (*RUN, "--memory-limit", "0"): (
        "lftj: error: --memory-limit 0 is not a size\n"
        "  why: it is a number of bytes, 1 or more, or such a number in words\n"
        "  do: give bytes, 500MB (powers of 1000) or 2GiB (powers of 1024)\n"
    ),
    (*RUN, "--memory-limit", "1KB"): (
        "lftj: error: --memory-limit 1KB is too little for any program\n"
        "  why: relations are stored in pages, and a few relations without rows take tens of thousands of bytes\n"
        "  do: give 64KB or more\n"
    ),
    (*RUN, "--on-error", "skip"): (
        "lftj: error: --on-error skip is unknown\n"
        "  why: files with bad rows are refused, or their bad rows are kept apart\n"
        "  do: give --on-error raise or --on-error quarantine\n"
    ),
    (*RUN, "--key-order", "tri"): (
        "lftj: error: --key-order tri is not a key order\n"
        "  why: it is the order in which the rules of a head bind their variables\n"
        "  do: name a head and its rule's variables, as in tri=x,y,z\n"
    ),
    (*RUN, "--key-order", "tri=x,y"): (
        "tri.dl:6:1: error: --key-order: the key order (x, y) does not name each variable of the rule once\n"
        "  why: the variables of `tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).` are x, y, z\n"
        "  do: list all of them, outermost first\n"
    ),
    (*RUN, "--key-order", "edge=a,b"): (
        "lftj: error: --key-order: a key order is given for `edge`, which no rule of this program derives\n"
        "  why: it holds for rules of the program it is given with\n"
        "  do: name the head of a rule of the same program\n"
    ),
    ("run", "tri.dl", "-F", "nowhere"): (
        "lftj: error: -F nowhere: there is no such folder\n"
        "  why: the facts of the program are read from it\n"
        "  do: name the folder of the .input files\n"
    ),
    (*RUN, "-D", "tri.dl"): "lftj: error: -D tri.dl: this is not a folder\n"
    "  why: every relation is written to a file of its own in it\n"
    "  do: name a folder, or - for stdout\n",
    (*RUN, "-D", "a/b"): (
        "lftj: error: -D a/b: there is no folder 'a' to make it in\n"
        "  why: one folder is made, not those above it\n"
        "  do: name a folder that exists, one that can be made, or - for stdout\n"
    ),
    ("run", "tir.dl"): "tir.dl: error: no such program file\n"
    "  why: the working directory is CWD\n"
    "  do: did you mean `tri.dl`?\n",
    ("run", "no/tri.dl"): "no/tri.dl: error: no such program file\n"
    "  why: the working directory is CWD\n"
    "  do: check the folder: 'no' does not exist\n",
    ("run", ""): "lftj: error: the program has no name\n"
    "  why: the empty text names no file\n"
    "  do: name a program file, or - for stdin\n",
    (*RUN, "--on-error"): "lftj: error: option '--on-error' requires an argument\n"
    "  why: these are not the arguments that `lftj run` takes\n"
    "  do: see `lftj run --help`\n",
    ("run", "facts"): "facts: error: this is a folder, not a program\n"
    "  why: a program is one file of rules\n"
    "  do: name a program file\n",
    ("run", "."): ".: error: this is a folder, not a program\n"
    "  why: a program is one file of rules\n"
    "  do: name a program in it, such as `tri.dl`\n",
    ("run", "a\0b"): "a\\x00b: error: the program cannot be read\n  why: embedded null byte\n  do: check the name\n",
    ("explain", "tri.dl", "trj"): (
        "lftj: error: there is no relation `trj`\n  why: no rule or declaration names it\n  do: did you mean `tri`?\n"
    ),
    ("explain", "tri.dl", "nope"): (
        "lftj: error: there is no relation `nope`\n"
        "  why: no rule or declaration names it\n"
        "  do: declare it with `.decl`, or see `lftj explain PROGRAM` for what there is\n"
    ),
}


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_usage(triangles: Shell, arguments: tuple[str, ...]) -> None:
    before = triangles.names()
    assert triangles(*arguments) == (2, "", USAGE[arguments].replace("CWD", str(triangles.folder)))
    assert triangles.names() == before


@pytest.mark.parametrize("option", ["-I", "-o", "-g", "-p", "-t", "-z", "-m", "-W", "-P", "-v", "--show", "--macro"])
def test_every_option_of_souffle_is_refused_by_name(triangles: Shell, option: str) -> None:
    known = refusal(option)
    assert known is not None
    message = f"lftj: error: Souffle's option {option} is not supported\n  why: {known[0]}\n  do: {known[1]}\n"
    assert triangles(*RUN, option, "x") == (2, "", message)


def test_no_refused_option_is_one_that_lftj_has() -> None:
    assert [o for o in ("-F", "-D", "-j", "-w", "-h", "--jobs", "--no-warn", "--help", "--version") if refusal(o)] == []


def test_program_errors_come_before_data_and_folders(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number)\n.input e\np(x) :- e(y).\nq(x) :- f(x).\n"})
    done = shell("run", "p.dl", "-F", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert [line for line in done.err.splitlines() if line.startswith("p.dl")] == [
        "p.dl:3:3: error: variable `x` occurs in the head but in no atom of the body",
        "p.dl:3:11: warning: variable `y` occurs only once",
        "p.dl:4:9: error: unknown relation `f`",
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            b'p(1).\np("caf\xe9").\n',
            "p.dl:2:7: error: the program is not UTF-8 text\n"
            "  why: the byte 0xe9 cannot stand here\n"
            "  do: save the file as UTF-8\n",
        ),
        (
            "p(1).".encode("utf-16"),
            "p.dl:1:1: error: the program is not UTF-8 text\n"
            "  why: the byte 0xff cannot stand here\n"
            "  do: save the file as UTF-8; it looks like UTF-16\n",
        ),
        (
            "p(1). p(2).".encode("utf-16-le"),
            "p.dl:1:2: error: the program is not UTF-8 text\n"
            "  why: the byte 0x00 cannot stand here\n"
            "  do: save the file as UTF-8; it looks like UTF-16\n",
        ),
        (
            "p(1).\n// ж\n".encode("utf-16-be"),
            "p.dl:1:1: error: the program is not UTF-8 text\n"
            "  why: the byte 0x00 cannot stand here\n"
            "  do: save the file as UTF-8; it looks like UTF-16\n",
        ),
    ],
)
def test_a_program_that_is_not_utf8(shell: Shell, content: bytes, told: str) -> None:
    shell.write({"p.dl": content})
    assert shell("run", "p.dl") == (1, "", told)


def test_a_byte_order_mark_is_no_text(shell: Shell) -> None:
    shell.write({"p.dl": b"\xef\xbb\xbf.decl p(x:number)\n.printsize p\np(1).\n"})
    assert shell("run", "p.dl") == (0, "p\t1\n", "")


def test_a_link_that_leads_nowhere_is_named(shell: Shell) -> None:
    """It was proposed as what might be meant instead of itself."""
    (shell.folder / "tri.dl").symlink_to("gone.dl")
    assert shell("run", "tri.dl") == (
        2,
        "",
        f"tri.dl: error: no such program file\n  why: the working directory is {shell.folder}\n"
        "  do: mend the link: it leads to 'gone.dl'\n",
    )


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs file permissions that bind")
def test_a_program_without_permission(triangles: Shell) -> None:
    (triangles.folder / "tri.dl").chmod(0)
    told = (
        "tri.dl: error: no permission to read the program\n"
        "  why: the operating system does not let this user open it\n"
        "  do: change its permissions\n"
    )
    assert triangles("run", "tri.dl") == (2, "", told)


# --- data -------------------------------------------------------------------------------------------------------------


def replaced(old: str, new: str) -> str:
    assert old in TRIANGLES
    return TRIANGLES.replace(old, new)


DATA = {
    "missing": (
        {"tri.dl": TRIANGLES},
        "tri.dl:2:8: error: `edge` cannot be read: edge.facts: no such file\n"
        "    .input edge\n"
        "           ^^^^\n"
        "  why: a source must be there when it is loaded; nothing was\n"
        "  do: check the name, and the folder of the facts, which -F names\n",
    ),
    "nearly": (
        {"tri.dl": TRIANGLES, "edges.facts": ""},
        "tri.dl:2:8: error: `edge` cannot be read: edge.facts: no such file\n"
        "    .input edge\n"
        "           ^^^^\n"
        "  why: a source must be there when it is loaded; nothing was\n"
        "  do: did you mean 'edges.facts'?\n",
    ),
    "too few": (
        {"tri.dl": TRIANGLES, "edge.facts": "1 2\n"},
        "tri.dl:2:8: error: `edge` cannot be read: edge.facts:1: the lines have 1 field, "
        "edge(a:number, b:number) takes 2\n"
        "    .input edge\n"
        "           ^^^^\n"
        "  why: the delimiter is '\\t', the first line '1 2'\n"
        "  do: give the right delimiter= or declare fewer columns\n",
    ),
    "too many": (
        {"tri.dl": TRIANGLES, "edge.facts": "1\t2\t3\n"},
        "tri.dl:2:8: error: `edge` cannot be read: edge.facts: the source has 3 columns, "
        "edge(a:number, b:number) takes 2\n"
        "    .input edge\n"
        "           ^^^^\n"
        "  why: columns are matched by position where the names differ, so there must be as many\n"
        '  do: pick the columns: columns="0:1"\n',
    ),
    "too many, named": (
        {"tri.dl": replaced(".input edge", ".input edge(headers=true)"), "edge.facts": "w\ta\tc\n1\t2\t3\n"},
        "tri.dl:2:8: error: `edge` cannot be read: edge.facts: the source has 3 columns (`w`, `a`, `c`), "
        "edge(a:number, b:number) takes 2\n"
        "    .input edge(headers=true)\n"
        "           ^^^^\n"
        "  why: columns are matched by position where the names differ, so there must be as many\n"
        '  do: pick the columns: columns="0:1"\n',
    ),
    "header not told": (
        {"tri.dl": TRIANGLES, "edge.facts": "a\tb\n1\t2\n"},
        "tri.dl:2:8: error: `edge` cannot be read: edge.facts:1: 1 bad row: column `a` of `edge`: 'a' is not a number\n"
        "    .input edge\n"
        "           ^^^^\n"
        "  why: a number is an integer from -9223372036854775808 to 9223372036854775807: digits, an optional '-', "
        "nothing else\n"
        "  do: correct the value or declare the column `symbol`; if line 1 is a header, say headers=true, "
        "or keep the good rows with --on-error quarantine\n",
    ),
    "unquoted": (
        {
            "tri.dl": '.decl s(x:symbol, y:symbol)\n.output s(delimiter=",")\ns("a,b", "c").\n',
        },
        "tri.dl:2:9: error: `s` cannot be written: s.csv: column `x` of `s`: 'a,b' holds the delimiter ',' "
        "or a line end\n"
        '    .output s(delimiter=",")\n'
        "            ^\n"
        "  why: without quotes no reader could tell it from two fields or rows\n"
        "  do: write with rfc4180=true, or to .parquet\n",
    ),
    "no folder": (
        {"tri.dl": '.decl s(x:number)\n.output s(filename="sub/s.csv")\n'},
        "tri.dl:2:9: error: `s` cannot be written: CWD/sub/s.csv: the file cannot be written\n"
        '    .output s(filename="sub/s.csv")\n'
        "            ^\n"
        "  why: the folder 'CWD/sub' does not exist\n"
        "  do: check the folder and its permissions\n",
    ),
    "two from stdin": (
        {"tri.dl": ".decl p(x:number)\n.input p(IO=stdin)\n.decl q(x:number)\n.input q(IO=stdin)\n.printsize q\n"},
        "tri.dl:4:8: error: `q` and `p` are both to be read from stdin\n"
        "    .input q(IO=stdin)\n"
        "           ^\n"
        "  why: stdin can be read once; the second would find nothing\n"
        "  do: read one of them from a file\n",
    ),
}


@pytest.mark.parametrize("case", DATA)
def test_data(shell: Shell, case: str) -> None:
    files, told = DATA[case]
    shell.write(files)
    assert shell("run", "tri.dl") == (3, "", told.replace("CWD", str(shell.folder)))
    assert shell.names() == sorted(files)


@pytest.mark.parametrize("command", [("query", "tri(x, y, z)"), ("query", "select a from edge"), ("explain", "--run")])
def test_only_run_keeps_bad_rows_apart(shell: Shell, command: tuple[str, str]) -> None:
    """An option that a command does not have is no remedy."""
    shell.write({"tri.dl": TRIANGLES, "edge.facts": "1\t2\n1\tx\n"})
    done = shell(*command, "tri.dl")
    assert (done.code, done.out) == (3, "")
    assert done.err.endswith("  do: correct the value or declare the column `symbol`\n")
    assert shell("run", "tri.dl").err.endswith(", or keep the good rows with --on-error quarantine\n")


def test_more_columns_than_are_declared_are_told_and_passed_over(shell: Shell) -> None:
    shell.write({"tri.dl": replaced(".input edge", ".input edge(headers=true)"), "edge.facts": "w\ta\tb\n1\t2\t3\n"})
    told = (
        "lftj: warning: edge.facts: columns passed over: `w`\n"
        "  why: edge(a:number, b:number) has no such columns, and all of its own are there by name\n"
        "  do: pick the columns with columns= in the `.input` directive\n"
    )
    assert shell("run", "tri.dl") == (0, "tri\t0\n", told)


@pytest.mark.parametrize("arguments", [["run", "-"], ["run", "tri.dl", "--updates", "-"]])
def test_stdin_that_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tri.dl").write_text(".decl p(x:number)\n.printsize p\n")
    monkeypatch.setattr("sys.stdin", None)
    assert main(arguments) == 2
    assert "error: stdin is closed\n  why: - reads what the command is given there\n" in capsys.readouterr().err


def test_program_and_facts_cannot_both_come_from_stdin(shell: Shell) -> None:
    program = ".decl p(x:number)\n.input p(IO=stdin)\n.printsize p\n"
    told = (
        "<stdin>:2:8: error: stdin cannot hold both the program and the facts of `p`\n"
        "  why: stdin can be read only once, and the program takes all of it\n"
        "  do: give the program as a file\n"
    )
    assert shell("run", "-", stdin=program) == (2, "", told)


def test_a_rule_without_a_value_is_a_mistake_of_the_program(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number, y:number)\ne(1, 0).\n.decl p(x:number)\n.output p\np(x / y) :- e(x, y).\n"})
    assert shell("run", "p.dl") == (
        1,
        "",
        "p.dl:5:1: in `p(x / y) :- e(x, y).` with x = 1, y = 0: error: division by zero\n"
        "  why: the quotient has no value; nothing was changed\n"
        "  do: exclude the divisor 0 in the body, e.g. `y != 0`\n",
    )
    assert shell.names() == ["p.dl"]


# --- the words of the command line ------------------------------------------------------------------------------------

# What the library says of its own calls and arguments; a command line has neither.
LIBRARY = re.compile(r"\b(?:db|tx|lftj)\.\w|\(db\)|`\w+=`|`\w+\(\)`|\bon_error=|\bmissing=")
# Rooms and files whose messages a command can show. Those of the builder, of transactions, of scans and the like speak
# to Python programs alone.
SHOWN_BY_COMMANDS = ("cli", "engine", "io", "join", "language", "plan", "rounds", "values")
# Messages that no command can bring about, with the reason.
FOR_PYTHON_ONLY = {
    "use `tx.rules`": "rules are added before the first transaction of --updates",
    "on_error={} is unknown": "--on-error is checked before",
    'give on_error="raise" or on_error="quarantine"': "the same",
    "leave it out; from Python, `import lftj` and `lftj.Database": "says that it speaks of Python",
    "module 'lftj.language' has no attribute": "an error of imports",
    "lftj has no functor": "an error of the builder",
    "lftj has no aggregate": "an error of the builder",
    '`lftj.variables("x y")` makes several variables': "an error of the builder",
    "give conditions, as in `db.query": "an argument of the wrong type",
    "rules are a text, or a `lftj.Program": "the same",
    "give rules, as in `db.rules": "the same",
    "a rule is written `head :- body.`": "its `p()` is an atom",
    "the counter `autoinc()`": "a feature of the language",
    "counter `autoinc()`": "a feature of the language",
    "iteration counter `__ITERATION__()`": "a feature of the language",
    "write `count()`": "SQL's word for it, in a program",
}


def messages_in(path: Path) -> Iterator[str]:
    """The texts of a file, but for docstrings: a placeholder stands for what an f-string fills in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | bare:
            yield node.value


def test_messages_of_commands_speak_of_commands() -> None:
    """`list(db)`, `timeout=` and the like are nothing that a command line has."""
    package = Path(lftj.__file__).parent
    spoken = {
        message: path.name
        for room in SHOWN_BY_COMMANDS
        for path in sorted((package / room).rglob("*.py"))
        for message in messages_in(path)
        if " " in message and LIBRARY.search(message)
    }
    assert "raise `timeout=`, or look at `explain()` for a cheaper key order" in spoken  # the sweep sees the texts
    left = [
        (name, worded(message))
        for message, name in spoken.items()
        if LIBRARY.search(worded(message)) and not any(message.startswith(known) for known in FOR_PYTHON_ONLY)
    ]
    assert left == []


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (
            "select x from e",
            "put it into a file whose name ends in .sql, or write `answer(x) :- edge(x, y), y > 1.` "
            "and `.output answer`",
        ),
        (
            "insert into e values (1)",
            "put it into a file whose name ends in .sql, or write a fact, `edge(1, 2).`, "
            "or change the rows with --updates",
        ),
        (
            "p(x) :- e($w).",
            "use a variable or a constant here, and ask the rule's head: `lftj query 'p($w, x)' PROGRAM -p w=...`",
        ),
        ("?- e(x)", "ask `lftj query 'tri(1, y, z)' PROGRAM`"),
    ],
)
def test_other_languages_are_answered_in_words_of_commands(shell: Shell, line: str, remedy: str) -> None:
    shell.write({"p.dl": f".decl e(x:number)\n{line}\n"})
    assert f"  do: {remedy}\n" in shell("run", "p.dl").err


def test_the_functors_are_named_by_their_command(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number)\np(zzzzzzzz(x)) :- e(x).\n"})
    remedy = "the functors are listed by `lftj functors`"
    assert f"  do: {remedy}\n" in shell("run", "p.dl").err
    assert f"  do: {remedy}\n" in shell("check", "p.dl").out
    assert json.loads(shell("check", "p.dl", "--json").out)[0]["remedy"] == remedy


def test_databases_are_explained_in_words_of_the_command_line(shell: Shell) -> None:
    for command in (("log", "none.lftj"), ("compact", "none.lftj")):
        done = shell(*command)
        assert (done.code, done.out) == (3, "")
        assert done.err == (
            "lftj: error: there is no file none.lftj\n"
            "  why: the command reads a file that is there\n"
            "  do: check the path; `lftj run PROGRAM --database FILE` makes one\n"
        )
    lftj.Database(path="shop.lftj").close()
    done = shell("run", "shop.lftj")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "shop.lftj: error: this is a database, not a program\n"
        "  why: a program is a text of rules or of SQL\n"
        "  do: name the program; a database is asked by `lftj query QUERY shop.lftj`, and written to by "
        "`lftj run PROGRAM --database FILE`\n"
    )


def test_a_folder_is_no_database(shell: Shell) -> None:
    (shell.folder / "folder.lftj").mkdir()
    assert shell("check", "folder.lftj") == (
        3,
        "",
        "lftj: error: folder.lftj is a folder\n  why: a database is one file\n  do: give a file, such as shop.lftj\n",
    )


def test_what_a_terminal_obeys_is_spelled_in_messages(shell: Shell) -> None:
    """A file may hold anything; the caret stays below its place, and a carriage return at the end is no part."""
    shell.write({"p.dl": "p(1).\n \x1b[31mq(2).\n", "p.sql": "select 1;\r\nselekt\ta \x9b1m\r\n"})
    assert shell("run", "p.dl").err == (
        "p.dl:2:2: error: syntax error: expected a declaration, a directive, a rule or a fact, found `\\x1b`\n"
        "     \N{REPLACEMENT CHARACTER}[31mq(2).\n"
        "     ^\n"
        "  why: a program is facts `p(1, 2).`, rules `head :- body.` and directives such as `.decl`\n"
        "  do: write a declaration, a directive, a rule or a fact here, or correct what stands before it\n"
    )
    _, line, caret, *_ = shell("check", "p.sql").out.splitlines()
    assert (line, caret) == ("    selekt a \N{REPLACEMENT CHARACTER}1m", "    ^^^^^^")
    done = shell("run", "a\x1b.dl")
    assert done.err.startswith("a\\x1b.dl: error: no such program file\n")


@pytest.mark.parametrize(
    ("number", "why", "remedy"),
    [
        (
            errno.EACCES,
            "the operating system does not let this user do it",
            "change the permissions of the file and of its folder",
        ),
        (
            errno.EIO,
            "the operating system says so",
            "check the files and folders of the command, and what stdout leads to",
        ),
    ],
)
def test_errors_of_the_system_say_why_and_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, number: int, why: str, remedy: str
) -> None:
    def command() -> int:
        raise OSError(number, os.strerror(number), "a/b")

    monkeypatch.setattr("lftj.cli._plain_check", lambda _: command)
    expected = f"lftj: error: {os.strerror(number)}: a/b\n  why: {why}\n  do: {remedy}\n"
    assert shell("check") == (3, "", expected)


def test_an_interrupt_in_the_making_of_a_class_is_one(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def __set_name__(self, *_: object) -> None:
            raise KeyboardInterrupt

    def command() -> int:
        type("Made", (), {"field": Interrupted()})
        return 0

    monkeypatch.setattr("lftj.cli._plain_check", lambda _: command)
    assert shell("check") == (130, "", "lftj: interrupted\n")


def test_a_damaged_database_is_no_program(shell: Shell) -> None:
    """Its first bytes may be what is damaged: by its name it is a database."""
    shell.write({"rubbish.lftj": b"\xff\xfe rubbish", "empty.lftj": b""})
    done = shell("check", "rubbish.lftj")
    assert done.code == 3
    assert "not a database" in done.out + done.err
    assert "do: check the name; if it was a database, go back to a backup\n" in done.out + done.err
    for command in ("log", "compact", "check"):
        assert "empty.lftj is empty" in shell(command, "empty.lftj").err


def test_another_program_for_a_database_is_told_without_calls_of_python(shell: Shell) -> None:
    shell.write({"one.dl": ".decl e(a:number)\n", "two.dl": ".decl e(a:symbol)\n"})
    assert shell("run", "one.dl", "--database", "e.lftj").code == 0
    done = shell("run", "two.dl", "--database", "e.lftj")
    assert done.code == 3
    assert done.err.endswith(
        "do: give the program that it was made with, or --database a new file; Python changes the rules in a file\n"
    )
    assert shell("run", "one.dl", "--database", "e.lftj").code == 0
    assert shell("run", "two.dl", "--database", "new.lftj").code == 0
