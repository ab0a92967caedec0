"""`lftj run --updates`: what is printed after each commit, what is refused, and that a pipe can drive it."""

from __future__ import annotations

import gc
import re
import signal
import subprocess
from pathlib import Path

import pytest

import lftj
from lftj.language.notation import ESCAPES_SHOWN
from tests.cli.conftest import EDGES, TRIANGLES, Shell
from tests.cli.test_process import env
from tests.forked import forks

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of interpreted kernels

PROGRAM = TRIANGLES.replace(".printsize tri\n", "")
UPDATES = """\
# the first transaction
+edge 1 4
+edge 1 9
-edge 1 9

-edge 1 2
-edge\t3  4

# nothing but this

+edge 5 5"""
CHANGED = "+tri 1 2 4\n+tri 1 3 4\n\n-tri 1 2 3\n-tri 1 2 4\n-tri 1 3 4\n-tri 2 3 4\n\n\n+tri 5 5 5\n\n"
RUN = ("run", "tri.dl", "-F", "facts", "-D", "out")


@pytest.fixture
def following(shell: Shell) -> Shell:
    """A folder with a program, its facts and changes of them."""
    shell.write({"tri.dl": PROGRAM, "facts/edge.facts": EDGES, "up.txt": UPDATES})
    return shell


def test_each_commit_is_answered_and_the_end_is_written(following: Shell) -> None:
    assert following(*RUN, "--updates", "up.txt") == (0, CHANGED, "")
    assert following.read("out/tri.csv") == "5\t5\t5\n"
    assert following(*RUN, "--updates", "-", stdin=UPDATES) == (0, CHANGED, "")
    assert following(*RUN, "--updates", "-", stdin="") == (0, "", "")
    assert following(*RUN, "--updates", "-", stdin="\n\n") == (0, "\n\n", "")
    assert following.read("out/tri.csv") == "1\t2\t3\n2\t3\t4\n"


def test_line_ends_and_a_byte_order_mark(following: Shell) -> None:
    following.write({"up.txt": b"\xef\xbb\xbf" + UPDATES.replace("\n", "\r\n").encode()})
    assert following(*RUN, "--updates", "up.txt") == (0, CHANGED, "")


@pytest.mark.parametrize("option", ["--maintain=tri=trace", "--maintain=tri=recompute", "--granularity=tri=interval"])
def test_the_same_however_it_is_done(following: Shell, option: str) -> None:
    assert following(*RUN, "--updates", "up.txt", option) == (0, CHANGED, "")


def test_without_outputs_all_heads_are_told(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number)\ntwice(2 * x) :- e(x).\nmore(y + 1) :- twice(y).\ne(1).\n"})
    done = shell("run", "p.dl", "--updates", "-", stdin="+e 2\n-e 1\n")
    assert done == (0, "-twice 2\n+twice 4\n-more 3\n+more 5\n\n", "")
    shell.write({"q.dl": ".decl e(x:number)\n.output e\ntwice(2 * x) :- e(x).\n"})
    assert shell("run", "q.dl", "--updates", "-", stdin="+e 2\n-e 1\n") == (0, "+e 2\n\n", "")


SUMS = ".decl e(x:number, v:number)\ns[x] = sum v : { e(x, v) }.\nu(x) :- e(x, _).\n.output s\n.output u\n"


def test_what_a_database_has_no_value_for_is_mended(shell: Shell) -> None:
    """The run ended before its first update."""
    large = 2**63 - 1
    shell.write({"p.dl": SUMS, "q.dl": SUMS + ".input e\n", "facts/e.facts": f"7\t{large}\n7\t1\n"})
    run = ("run", "p.dl", "--database", "x.lftj", "-D", "out", "--updates", "-")
    assert shell(*run, stdin="+e 1 2\n") == (0, "+s 1 2\n+u 1\n\n", "")
    with lftj.Database(path=shell.folder / "x.lftj") as db:
        db.load("e", [(1, large)])
    done = shell(*run, stdin="+e 2 3\n")
    assert done.out == "+u 2\n\n"
    assert done.code == 1
    assert "the change of `s` in commit 1 is not printed, since it had no value before" in done.err
    assert "the sum of a group is out of the range of number" in done.err
    gc.collect()  # a process that ends in an error closes the file
    done = shell(*run, stdin=f"-e 1 {large}\n\n+e 3 4\n")
    assert done.out == "\n+s 3 4\n+u 3\n\n"
    assert done.code == 0
    assert done.err.count("not printed") == 1
    assert shell.read("out/s.csv") == "1\t2\n2\t3\n3\t4\n"
    # What the run itself reads is refused as ever, before any update.
    for database in ([], ["--database", "y.lftj"]):
        done = shell("run", "q.dl", "-F", "facts", "-D", "out", "--updates", "-", *database, stdin="+e 1 1\n")
        assert (done.code, done.out) == (1, "")


TYPES = """\
.decl p(n:number, u:unsigned, f:float, s:symbol)
.output p(rfc4180=true)
.decl yes()
.output yes(filename="y")
"""
TYPED = """\
+p -9223372036854775808 18446744073709551615 1e300 bare
+p 0 0 .5 "two words"
+p 0 0 -0.0 "tab\\t quote\\" \\u00e9"
+p 1 1 inf #no-comment
+p 1 1 1 ""
+p 1 1 1 back\\slash
+yes
"""
TOLD = """\
+p -9223372036854775808 18446744073709551615 1.0e+300 bare
+p 0 0 0.0 "tab\\t quote\\" é"
+p 0 0 0.5 "two words"
+p 1 1 1.0 ""
+p 1 1 1.0 back\\slash
+p 1 1 inf #no-comment
+yes

"""


def test_updates_in_utf16_are_refused(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number)\n", "up.txt": "+e 1\n+e 2\n".encode("utf-16-le")})
    assert shell("run", "p.dl", "--updates", "up.txt") == (
        3,
        "",
        "up.txt: error: the file is UTF-16 text\n"
        "  why: text files are read as UTF-8\n"
        "  do: convert the file to UTF-8\n",
    )


def test_every_type_and_the_deltas_of_one_are_updates_of_another(shell: Shell) -> None:
    shell.write({"p.dl": TYPES})
    assert shell("run", "p.dl", "--updates", "-", stdin=TYPED) == (0, TOLD, "")
    assert shell("run", "p.dl", "--updates", "-", stdin=TOLD) == (0, TOLD, "")
    gone = TOLD.replace("+p", "-p").replace("+yes", "-yes")
    assert shell("run", "p.dl", "--updates", "-", stdin=TOLD + "\n" + gone) == (0, f"{TOLD}\n{gone}", "")


def test_null_and_times_in_updates_are_read_back(shell: Shell) -> None:
    columns = "d:date?, t:timestamp, l:duration, y:bytes?, s:symbol?, b:bool, u:uuid?"
    shell.write({"p.dl": f".decl p({columns})\nq(d, t, l, y, s, b, u) :- p(d, t, l, y, s, b, u).\n"})
    told = (
        '+p null 2024-05-31T12:30:00 1h30m null "" true null\n'
        '+p null 2024-05-31T12:30:00 1h30m "" "null" false null\n'
        "+p 2024-05-31 2024-05-31T12:30:00.000001 -1d 00ff null false 123e4567-e89b-12d3-a456-426614174000\n\n"
    )
    lines = told + told.replace("+p", "-p")
    assert shell("run", "p.dl", "--updates", "-", stdin=lines) == (0, lines.replace("p ", "q "), "")


def test_latencies(following: Shell) -> None:
    done = following(*RUN, "--updates", "up.txt", "--stats")
    assert (done.code, done.out) == (0, CHANGED)
    lines = [re.sub(r"\d+\.\d{3}", "_", line) for line in done.err.splitlines()]
    assert re.fullmatch(r"commit 1: 3 changes, \+2 -0 rows, _ ms \(tri by \w+\)", lines[0])
    assert lines[2] == "commit 3: 0 changes, +0 -0 rows, _ ms"
    assert lines[3].startswith("commit 4: 1 change, +1 -0 rows, _ ms (tri by ")
    assert lines[-1] == "loaded in _ s, evaluated in _ s, updated in _ s, written in _ s"


# Refusals --------------------------------------------------------------------------------------------------------

DROPPED = "nothing of its transaction (lines 3 to 4) was applied"
BAD = {
    "+edge 1 x5": (
        "9: error: column `b` of `edge`: 'x5' is not a number",
        "            ^^",
        "a number is an integer from -9223372036854775808 to 9223372036854775807: digits, an optional '-', nothing "
        f"else; {DROPPED}",
        "correct the value or declare the column `symbol`",
    ),
    "+edge 1": (
        "8: error: 1 value for `edge`, which takes 2",
        "           ^",
        f"it is declared as edge(a:number, b:number); {DROPPED}",
        "give each column one value",
    ),
    "-edge 1 2 3 4": (
        "11: error: 4 values for `edge`, which takes 2",
        "              ^^^",
        f"it is declared as edge(a:number, b:number); {DROPPED}",
        "give each column one value",
    ),
    "+name 1 Ann Lee": (
        "13: error: 3 values for `name`, which takes 2",
        "                ^^^",
        f"it is declared as name(id:number, text:symbol); {DROPPED}",
        "quote values that hold spaces",
    ),
    "+edgee 1 2": (
        "2: error: there is no relation `edgee`",
        "     ^^^^^",
        f"no rule or declaration names it; {DROPPED}",
        "did you mean `edge`?",
    ),
    "edge 1 2": (
        "1: error: a change begins with `+`, `-` or `=`",
        "    ^^^^",
        f"the sign says what to do with the row; {DROPPED}",
        "write `+edge 1 2` to insert a row, `-edge 1 2` to erase one, `=price anvil 3` to give a key another value, "
        "`# ...` for a comment",
    ),
    "=edge 1 2": (
        "2: error: `edge` is not a functional predicate, so none of its columns is a key",
        "     ^^^^",
        f"it is declared as edge(a:number, b:number); {DROPPED}",
        "erase a row with `-edge`, insert one with `+edge`",
    ),
    "+ edge 1 2": (
        "1: error: no relation is named after `+`",
        "    ^",
        f"the row is one of a relation; {DROPPED}",
        "write `+edge 1 2`, without a space after `+`",
    ),
    '+name 1 "Ann': (
        "9: error: the quoted text does not end as it should",
        "            ^^^^",
        f'it ends with `"`, before a space or the end of the line; {DROPPED}',
        'close it with `"`, and write a quote inside it as `\\"`',
    ),
    '+name 1 "Ann"Lee': (
        "9: error: the quoted text does not end as it should",
        "            ^^^^^^^^",
        f'it ends with `"`, before a space or the end of the line; {DROPPED}',
        'close it with `"`, and write a quote inside it as `\\"`',
    ),
    '+name 1 "a\\q"': (
        "9: error: column `text` of `name`: '\"a\\\\q\"' holds the unknown escape `\\q`",
        "            ^^^^^",
        DROPPED,
        ESCAPES_SHOWN,
    ),
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line(following: Shell, line: str) -> None:
    what, caret, why, remedy = BAD[line]
    following.write({"tri.dl": PROGRAM + ".decl name(id:number, text:symbol)\n", "out/tri.csv": "old"})
    following.write({"up.txt": f"+edge 1 4\n\n+edge 1 8\n{line}\n+edge 7 7\n"})
    told = f"up.txt:4:{what}\n    {line}\n{caret}\n  why: {why}\n  do: {remedy}\n"
    assert following(*RUN, "--updates", "up.txt") == (3, "+tri 1 2 4\n+tri 1 3 4\n\n", told)
    assert following.read("out/tri.csv") == "old"


def test_bytes_that_are_no_text(following: Shell) -> None:
    following.write({"tri.dl": PROGRAM + ".decl name(id:number, text:symbol)\n", "up.txt": b"+name 1 caf\xe9"})
    assert following(*RUN, "--updates", "up.txt") == (
        3,
        "",
        "up.txt:1:9: error: column `text` of `name`: 'caf\\\\xe9' is not UTF-8 text\n"
        "    +name 1 caf\ufffd\n"
        "            ^^^^\n"
        "  why: text files are read as UTF-8; nothing of its transaction (line 1) was applied\n"
        "  do: convert the file to UTF-8\n",
    )


def test_a_rule_without_a_value_drops_the_transaction(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number)\n.decl p(x:number)\n.output p\np(12 / x) :- e(x).\n"})
    done = shell("run", "p.dl", "--updates", "-", stdin="+e 3\n\n+e 4\n+e 0\n\n+e 5\n")
    assert (done.code, done.out) == (1, "+p 4\n\n")
    assert done.err.startswith("p.dl:4:1: in `p(12 / x) :- e(x).`")
    assert "\n  in the transaction that begins at <stdin>:3\n" in done.err
    assert shell.names() == ["p.dl"]


def test_a_second_value_for_a_key_says_which_line_and_how_to_replace_it(shell: Shell) -> None:
    shell.write({"p.dl": '.decl price(item:symbol) -> cost:float\n.output price\nprice["tea"] = 3.0.\n'})
    done = shell("run", "p.dl", "--updates", "-", stdin="=price tea 4.0\n\n+price tea 9.0\n")
    assert (done.code, done.out) == (3, "-price tea 3.0\n+price tea 4.0\n\n")
    assert done.err == (
        'lftj: error: `price` has two values under one key: price["tea"] = 4.0 and price["tea"] = 9.0\n'
        '  price["tea"] = 4.0: a fact (loaded or inserted)\n'
        '  price["tea"] = 9.0: a fact (loaded or inserted)\n'
        "  in the transaction that begins at <stdin>:3\n"
        "  why: price(item:symbol) -> cost:float is a functional predicate; nothing was changed\n"
        "  do: give each key one value; `=` before a change of --updates replaces the value that is there\n"
    )


def test_a_row_for_a_view_says_which_line(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number)\n.decl v(x:number) view\nv(x) :- e(x), x > 1.\n"})
    done = shell("run", "p.dl", "--updates", "-", stdin="+e 2\n\n+e 3\n+v 4\n")
    assert (done.code, done.out) == (3, "+v 2\n\n")
    assert done.err == (
        "lftj: error: `v` is a view, and nothing else can be put there\n"
        "  in the transaction that begins at <stdin>:3\n"
        "  why: its rows are those that its definition gives\n"
        "  do: change the tables that it reads, or collect other rows in a relation that reads `v`\n"
    )


def test_parts_of_rules_are_not_told(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(x:number, y:number)\ndeg(x, n) :- e(x, _), n = count : { e(x, _) }.\n"})
    done = shell("run", "p.dl", "--updates", "-", "--stats", stdin="+e 1 2\n")
    assert (done.code, done.out) == (0, "+deg 1 1\n\n")
    assert re.search(
        r"^commit 1: 1 change, \+1 -0 rows, \d+\.\d+ ms \(deg by \w+( and \w+)?\)$", done.err, re.MULTILINE
    )


REFUSED = {
    ("--updates", "no.txt"): (
        3,
        "no.txt: error: the updates cannot be read\n  why: No such file or directory\n  do: check the name\n",
    ),
    ("--updates", "facts"): (
        3,
        "facts: error: the updates cannot be read\n  why: Is a directory\n  do: check the name\n",
    ),
    ("--maintain", "tri"): (
        2,
        "lftj: error: --maintain tri is unknown\n"
        "  why: what rules derive follows changes by traces, delta joins or triggers, or they are evaluated again\n"
        "  do: name a head and what it is to do, as in tri=auto, tri=trace, tri=delta, tri=triggers or tri=recompute\n",
    ),
    ("--granularity", "tri=step"): (
        2,
        "lftj: error: --granularity tri=step is unknown\n"
        "  why: a trace keeps a record per node of the join, or per interval of keys that a step looked at\n"
        "  do: name a head and what it is to do, as in tri=auto, tri=node or tri=interval\n",
    ),
    ("--maintain", "edge=trace"): (
        2,
        "lftj: error: --maintain: it is given for `edge`, which no rule of this program derives\n"
        "  why: it holds for rules of the program it is given with\n"
        "  do: name the head of a rule of the same program\n",
    ),
    ("--granularity", "trip=node", "--key-order", "tri=x,y,z"): (
        2,
        "lftj: error: --granularity: it is given for `trip`, which no rule of this program derives\n"
        "  why: it holds for rules of the program it is given with\n"
        "  do: did you mean `tri`?\n",
    ),
}


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
def test_what_is_refused(following: Shell, options: tuple[str, ...]) -> None:
    code, told = REFUSED[options]
    assert following(*RUN, *options) == (code, "", told)
    assert following.names() == ["facts", "tri.dl", "up.txt"]


def test_stdin_is_for_one_thing(following: Shell) -> None:
    told = (
        "lftj: error: stdin cannot hold both the program and its updates\n"
        "  why: stdin can be read only once, and the program takes all of it\n"
        "  do: give one of them as a file\n"
    )
    assert following("run", "-", "-F", "facts", "--updates", "-", stdin=PROGRAM) == (2, "", told)
    following.write({"tri.dl": PROGRAM.replace(".input edge", ".input edge(IO=stdin)")})
    told = (
        "tri.dl:2:8: error: stdin cannot hold both the updates and the facts of `edge`\n"
        "  why: stdin can be read only once, and the updates take all of it\n"
        "  do: give one of them as a file\n"
    )
    assert following(*RUN, "--updates", "-") == (2, "", told)


# Pipes -----------------------------------------------------------------------------------------------------------


def start(folder: Path) -> subprocess.Popen[str]:
    (folder / "tri.dl").write_text(PROGRAM)
    (folder / "edge.facts").write_text(EDGES)
    (folder / "tri.csv").write_text("old")
    return subprocess.Popen(
        [*forks().lftj, "run", "tri.dl", "--updates", "-"],
        cwd=folder,
        env=env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def ask(child: subprocess.Popen[str], changes: str) -> list[str]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{changes}\n\n")
    child.stdin.flush()
    answer: list[str] = []
    while (line := child.stdout.readline()) not in ("\n", ""):
        answer.append(line.rstrip())
    return answer


def test_a_pipe_gets_an_answer_to_each_commit(tmp_path: Path) -> None:
    child = start(tmp_path)
    assert ask(child, "+edge 1 4") == ["+tri 1 2 4", "+tri 1 3 4"]
    assert ask(child, "-edge 1 4\n-edge 2 3") == ["-tri 1 2 3", "-tri 1 2 4", "-tri 1 3 4", "-tri 2 3 4"]
    assert ask(child, "# nothing") == []
    assert child.communicate("+edge 2 3") == ("+tri 1 2 3\n+tri 2 3 4\n\n", "")
    assert child.returncode == 0
    assert (tmp_path / "tri.csv").read_text() == "1\t2\t3\n2\t3\t4\n"


def test_an_interrupt_drops_the_open_transaction(tmp_path: Path) -> None:
    child = start(tmp_path)
    assert ask(child, "+edge 1 4") == ["+tri 1 2 4", "+tri 1 3 4"]
    assert child.stdin is not None
    child.stdin.write("-edge 1 2\n")
    child.stdin.flush()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (130, "", "lftj: interrupted\n")
    assert (tmp_path / "tri.csv").read_text() == "old"
