"""`lftj run`: Souffle's flags, files and layouts, byte for byte; what is kept apart; limits."""

from __future__ import annotations

import errno
import gzip
import os
import re
from pathlib import Path

import pytest

import lftj
from tests.cli.conftest import EDGES, TRIANGLES, Shell

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of interpreted kernels

EVERYTHING = """\
.decl link(from:symbol, to:symbol, cost:float)
.input link(filename="links.csv", rfc4180=true, headers=true)
.decl size(n:number, u:unsigned)
.input size(delimiter=";", columns="2:0")
.decl ready()
.input ready
.decl cheap(from:symbol, to:symbol)
.output cheap(headers=true)
.decl costs(from:symbol, cost:float)
.output costs(filename="costs.txt", delimiter="|")
.decl big(u:unsigned)
.output big(compress=true)
.decl quoted(from:symbol, n:number)
.output quoted(rfc4180=true, headers=true)
.decl go()
.output go
.decl none(x:number)
.output none
.decl told(n:number)
.output told(IO=stdout, headers=true)
.printsize cheap
.printsize none
cheap(a, b) :- link(a, b, c), c < 2.
costs(a, c) :- link(a, _, c).
big(u) :- size(_, u), u > 5.
quoted(a, n) :- link(a, _, _), size(n, _), n < 0.
go() :- ready().
none(x) :- size(x, _), x > 100.
told(n) :- size(n, _).
"""
FACTS = {
    "facts/links.csv": 'from,to,cost\n"Köln, Süd",b,1.5\nb,"say ""x""",0.1\nb,c,1e300\n',
    "facts/size.facts": "18446744073709551615;x;-9223372036854775808\n7;y;3\n",
    "facts/ready.facts": "()\n",
}
STDOUT = """\
---------------
told
n
===============
-9223372036854775808
3
===============
cheap\t2
none\t0
"""


def test_every_option_of_the_directives(shell: Shell) -> None:
    shell.write({"all.dl": EVERYTHING, **FACTS})
    assert shell("run", "all.dl", "-F", "facts", "-D", "out") == (0, STDOUT, "")
    assert shell.names("out") == ["big.csv.gz", "cheap.csv", "costs.txt", "go.csv", "none.csv", "quoted.csv"]
    assert shell.read("out/cheap.csv") == 'from\tto\nKöln, Süd\tb\nb\tsay "x"\n'
    assert shell.read("out/costs.txt") == "Köln, Süd|1.5\nb|0.1\nb|1e+300\n"
    assert gzip.decompress((shell.folder / "out/big.csv.gz").read_bytes()) == b"7\n18446744073709551615\n"
    assert shell.read("out/quoted.csv") == 'from,n\n"Köln, Süd",-9223372036854775808\nb,-9223372036854775808\n'
    assert shell.read("out/go.csv") == "()\n"
    assert shell.read("out/none.csv") == ""


def test_what_one_program_writes_another_reads(shell: Shell) -> None:
    shell.write({"all.dl": EVERYTHING, **FACTS})
    shell("run", "all.dl", "-F", "facts", "-D", "out")
    first = {name: (shell.folder / "out" / name).read_bytes() for name in shell.names("out")}
    copies = {
        "cheap": ("from:symbol, to:symbol", "headers=true"),
        "costs": ("from:symbol, cost:float", 'filename="costs.txt", delimiter="|"'),
        "big": ("u:unsigned", 'filename="big.csv.gz", compress=true'),
        "quoted": ("from:symbol, n:number", "rfc4180=true, headers=true"),
        "go": ("", ""),
        "none": ("x:number", ""),
    }
    lines = []
    for name, (columns, options) in copies.items():
        read = ", ".join(filter(None, [options, f'filename="{name}.csv"' if "filename" not in options else ""]))
        lines.append(f".decl {name}({columns})\n.input {name}({read})\n.output {name}({options})")
    shell.write({"copy.dl": "\n".join(lines)})
    assert shell("run", "copy.dl", "-F", "out", "-D", "again") == (0, "", "")
    assert {name: (shell.folder / "again" / name).read_bytes() for name in shell.names("again")} == first


def test_defaults_are_the_current_folder(shell: Shell) -> None:
    shell.write({"tri.dl": TRIANGLES, "edge.facts": EDGES})
    assert shell("run", "tri.dl") == (0, "tri\t2\n", "")
    assert shell.names() == ["edge.facts", "tri.csv", "tri.dl"]
    assert shell.read("tri.csv") == "1\t2\t3\n2\t3\t4\n"


@pytest.mark.parametrize(
    "flags",
    [
        ("-F", "facts", "-D", "out"),
        ("-Ffacts", "-Dout"),
        ("--fact-dir=facts", "--output-dir=out"),
        ("-F", "facts", "-D", "out/", "-w", "-j1"),
        ("-F", "facts", "-D", "out", "--jobs", "auto", "--no-warn"),
    ],
)
def test_spellings_of_the_flags(triangles: Shell, flags: tuple[str, ...]) -> None:
    assert triangles("run", "tri.dl", *flags) == (0, "tri\t2\n", "")
    assert triangles.names("out") == ["tri.csv"]
    assert triangles.names() == ["facts", "out", "tri.dl"]


def test_flags_may_stand_before_the_program(triangles: Shell) -> None:
    assert triangles("run", "-F", "facts", "-D", "out", "tri.dl") == (0, "tri\t2\n", "")


def test_everything_to_stdout_as_souffle_lays_it_out(triangles: Shell) -> None:
    told = "---------------\ntri\nx\ty\tz\n===============\n1\t2\t3\n2\t3\t4\n===============\ntri\t2\n"
    assert triangles("run", "tri.dl", "-F", "facts", "-D", "-") == (0, told, "")
    assert triangles.names() == ["facts", "tri.dl"]


def test_a_relation_without_columns_on_stdout(shell: Shell) -> None:
    shell.write({"p.dl": '.decl yes()\n.output yes\nyes() :- "a" = "a".\n.decl no()\n.output no(IO=stdout)\n'})
    told = (
        "---------------\nyes\n\n===============\n()\n===============\n"
        "---------------\nno\n\n===============\n===============\n"
    )
    assert shell("run", "p.dl", "-D", "-") == (0, told, "")


def test_the_program_from_stdin(triangles: Shell) -> None:
    assert triangles("run", "-", "-F", "facts", "-D", "out", stdin=TRIANGLES) == (0, "tri\t2\n", "")
    wrong = triangles("run", "-", stdin="p(x) :- q(x).")
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err.startswith("<stdin>:1:9: error: unknown relation `q`\n")


def test_facts_from_stdin(shell: Shell) -> None:
    shell.write({"tri.dl": TRIANGLES.replace(".input edge", '.input edge(IO=stdin, delimiter=" ")')})
    assert shell("run", "tri.dl", stdin="1 2\n2 3\n1 3\n") == (0, "tri\t1\n", "")
    assert shell("run", "tri.dl", stdin="") == (0, "tri\t0\n", "")
    bad = shell("run", "tri.dl", stdin="1 2\n2 x\n")
    assert (bad.code, bad.out) == (3, "")
    assert bad.err.startswith("tri.dl:2:8: error: `edge` cannot be read: <stdin>:2: 1 bad row: column `b` of `edge`: ")


@pytest.mark.parametrize("program", ["", ".decl p(x:number)\np(1).\n"])
def test_a_program_that_asks_for_nothing_says_so(shell: Shell, program: str) -> None:
    shell.write({"p.dl": program})
    said = "lftj: the program has no `.output` and no `.printsize`, so nothing was evaluated\n"
    assert shell("run", "p.dl") == (0, "", said)


def test_warnings_are_told_once_and_switched_off(triangles: Shell) -> None:
    triangles.write({"w.dl": TRIANGLES + "other(x) :- edge(x, y).\n"})
    warned = triangles("run", "w.dl", "-F", "facts", "-D", "out")
    assert (warned.code, warned.out) == (0, "tri\t2\n")
    assert warned.err.count("warning: ") == 1
    assert warned.err.startswith("w.dl:7:21: warning: ")
    assert triangles("run", "w.dl", "-F", "facts", "-D", "out", "-w") == (0, "tri\t2\n", "")


def test_gzip_is_told_by_content_as_souffle_does(shell: Shell) -> None:
    shell.write({"tri.dl": TRIANGLES, "edge.facts": gzip.compress(EDGES.encode())})
    assert shell("run", "tri.dl") == (0, "tri\t2\n", "")


def test_parquet_by_extension(shell: Shell) -> None:
    shell.write({"p.dl": TRIANGLES.replace(".output tri", '.output tri(filename="tri.parquet")'), "edge.facts": EDGES})
    assert shell("run", "p.dl") == (0, "tri\t2\n", "")
    back = TRIANGLES.replace("edge(a:number, b:number)", "edge(a:number, b:number, c:number)")
    back = back.replace(".input edge", '.input edge(filename="tri.parquet", columns="0:1:2")')
    shell.write({"q.dl": back.replace("edge(x, y), edge(y, z), edge(x, z)", "edge(x, y, z)")})
    assert shell("run", "q.dl") == (0, "tri\t2\n", "")
    assert shell.read("tri.csv") == "1\t2\t3\n2\t3\t4\n"


# --- bad rows ---------------------------------------------------------------------------------------------------------


def test_bad_rows_refuse_the_file(triangles: Shell) -> None:
    triangles.write({"facts/edge.facts": "1\t2\n2\tx\n1\t3\t4\n", "out/tri.csv": "old"})
    told = """\
tri.dl:2:8: error: `edge` cannot be read: facts/edge.facts:2: 2 bad rows; the first: column `b` of `edge`: 'x' is not \
a number
    .input edge
           ^^^^
  why: a number is an integer from -9223372036854775808 to 9223372036854775807: digits, an optional '-', nothing else
  do: correct the value or declare the column `symbol`, or keep the good rows with --on-error quarantine
"""
    assert triangles("run", "tri.dl", "-F", "facts", "-D", "out") == (3, "", told)
    assert triangles.read("out/tri.csv") == "old"


def test_bad_rows_kept_apart(triangles: Shell) -> None:
    triangles.write({"facts/edge.facts": EDGES + "7\tx\n1\t3\t4\n"})
    done = triangles("run", "tri.dl", "-F", "facts", "-D", "out", "--on-error", "quarantine")
    assert done == (0, "tri\t2\n", "lftj: 2 bad rows of `edge` left out; see out/edge.rejects\n")
    assert triangles.names("out") == ["edge.rejects", "tri.csv"]
    assert triangles.read("out/edge.rejects") == (
        "source\tline\tcolumn\ttext\treason\n"
        "facts/edge.facts\t6\tb\tx\tcolumn `b` of `edge`: 'x' is not a number\n"
        "facts/edge.facts\t7\t\t\"1\t3\t4\"\t'1\\t3\\t4' has 3 fields where 2 fields are due\n"
    )
    triangles.write({"facts/edge.facts": EDGES})
    assert triangles("run", "tri.dl", "-F", "facts", "-D", "out", "--on-error=quarantine") == (0, "tri\t2\n", "")
    assert triangles.names("out") == ["tri.csv"]


def test_bad_rows_go_to_stderr_where_there_is_no_output_folder(triangles: Shell) -> None:
    triangles.write({"facts/edge.facts": EDGES + "7\tx\n"})
    before = triangles.names()
    done = triangles("run", "tri.dl", "-F", "facts", "-D", "-", "--on-error", "quarantine")
    assert done.code == 0
    assert done.out == triangles("run", "tri.dl", "-F", "facts", "-D", "-", "--on-error", "quarantine").out
    assert done.out.splitlines() == [
        "---------------",
        "tri",
        "x\ty\tz",
        "===============",
        "1\t2\t3",
        "2\t3\t4",
        "===============",
        "tri\t2",
    ]
    assert done.err == (
        "lftj: 1 bad row of `edge` left out:\n"
        "source\tline\tcolumn\ttext\treason\n"
        "facts/edge.facts\t6\tb\tx\tcolumn `b` of `edge`: 'x' is not a number\n"
    )
    assert triangles.names() == before


def test_rejects_of_several_files_of_one_relation(shell: Shell) -> None:
    program = TRIANGLES.replace(".input edge", '.input edge\n.input edge(filename="more.facts")')
    shell.write({"tri.dl": program, "edge.facts": "1\t2\n?\t3\n", "more.facts": "2\t3\n!\t1\n1\t3\n"})
    done = shell("run", "tri.dl", "--on-error", "quarantine")
    assert done == (0, "tri\t1\n", "lftj: 2 bad rows of `edge` left out; see edge.rejects\n")
    assert [line.split("\t")[0:4] for line in shell.read("edge.rejects").splitlines()[1:]] == [
        ["edge.facts", "2", "a", "?"],
        ["more.facts", "2", "a", "!"],
    ]


# --- limits and figures -----------------------------------------------------------------------------------------------

# Forced, so that nothing is spent on planning: --key-order p=x,y,z,w.
ENDLESS = """\
.decl n(x:number)
.input n
.decl p(x:number)
.output p
p(x) :- n(x), n(y), n(z), n(w), x * y * z * w = -7.
"""


@pytest.mark.jit_only
def test_the_time_limit(shell: Shell) -> None:
    shell.write({"p.dl": ENDLESS, "n.facts": "".join(f"{i}\n" for i in range(2000)), "p.csv": "old"})
    assert shell("run", "p.dl", "--timeout", "0.3", "--key-order", "p=x,y,z,w") == (
        124,
        "",
        "lftj: error: the time limit of 0.3 s ran out after 0 rows\n"
        "  why: evaluation was stopped; the database is as it was before\n"
        "  do: raise --timeout, or look at `lftj explain` for a cheaper key order\n",
    )
    assert shell.names() == ["n.facts", "p.csv", "p.dl"]
    assert shell.read("p.csv") == "old"


def test_the_memory_limit(triangles: Shell) -> None:
    triangles.write({"facts/edge.facts": "".join(f"{i}\t{i * 7 % 10_000}\n" for i in range(10_000))})
    stopped = triangles("run", "tri.dl", "-F", "facts", "--memory-limit", "100.1KB")
    assert (stopped.code, stopped.out) == (124, "")
    assert re.sub(r"error: \d[\d,]*", "error: N", stopped.err) == (
        "lftj: error: N bytes of pages are needed, the limit is 100,100\n"
        "  why: the change was not made; the database is as it was before\n"
        "  do: raise --memory-limit, or load less\n"
    )
    assert triangles("run", "tri.dl", "-F", "facts", "--memory-limit", "0.5GiB").code == 0


def test_a_forced_key_order_and_the_figures(triangles: Shell) -> None:
    done = triangles("run", "tri.dl", "-F", "facts", "--key-order", "tri=z,y,x", "--stats")
    assert (done.code, done.out) == (0, "tri\t2\n")
    lines = done.err.splitlines()
    assert lines[0] == "stratum 1: tri(x:number, y:number, z:number)  2 rows"
    assert lines[2] == "    key order z, y, x  (forced)"
    assert re.fullmatch(r"loaded in \d+\.\d{3} s, evaluated in \d+\.\d{3} s, written in \d+\.\d{3} s", lines[-1])
    assert triangles.read("tri.csv") == "1\t2\t3\n2\t3\t4\n"


# --- a run that fails leaves its database as it was -------------------------------------------------------------------

BAG = """\
.decl b(x:number) -> n:number bag
.input b(filename="b.csv")
.decl c(x:number, n:number)
.output c
c(x, 12 / (n - 2)) :- b(x, n).
"""


def _kept(shell: Shell) -> list[tuple[object, ...]]:
    with lftj.Database(path="bag.lftj", read_only=True) as db:
        return sorted(db["b"])


def test_rows_of_a_bag_are_there_once_after_retries(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    run = ("run", "bag.dl", "--database", "bag.lftj", "-D", "out")
    shell.write({"bag.dl": BAG, "b.csv": "1\n1\n"})
    for _ in range(2):  # what is derived has no value
        done = shell(*run)
        assert (done.code, done.out) == (1, "")
        assert "division by zero" in done.err
        assert _kept(shell) == []
    shell.write({"b.csv": "1\n"})
    for updates in ([], ["--updates", "up.txt"]):
        shell.write({"up.txt": "+b 7\n", "not/c.csv/here": "", "no/folder": ""})
        for folder in ("not", "no/folder", "no/no/no"):
            done = shell(*run[:-1], folder, *updates)
            assert done.code in (2, 3)
            assert done.out == ""
            assert _kept(shell) == []
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        for _ in range(2):
            done = shell(*run)
            assert (done.code, done.out) == (3, "")
            assert done.err.startswith("bag.dl:4:9: error: `c` cannot be written: ")  # also of the rules in the file
            assert _kept(shell) == []
    assert shell(*run).code == 0
    assert _kept(shell) == [(1, 1)]
    assert shell.read("out/c.csv") == "1\t-12\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which none can be made")
@pytest.mark.parametrize("updates", [[], ["--updates", "up.txt"]])
def test_a_folder_that_cannot_be_made_is_told_before_anything_is_kept(shell: Shell, updates: list[str]) -> None:
    shell.write({"bag.dl": BAG, "b.csv": "1\n", "up.txt": "+b 7\n"})
    done = shell("run", "bag.dl", "--database", "bag.lftj", "-D", "/proc/nope", *updates)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("/proc/nope: error: the output folder cannot be made")
    assert _kept(shell) == []


def test_outputs_that_cannot_be_written_are_told_before_anything_is_read(shell: Shell) -> None:
    shell.write({"bag.dl": BAG, "out/c.csv/here": ""})
    done = shell("run", "bag.dl", "--database", "bag.lftj", "-D", "out")
    assert done == (
        3,
        "",
        f"bag.dl:4:9: error: `c` cannot be written: {shell.folder}/out/c.csv: the file cannot be written\n"
        "    .output c\n"
        "            ^\n"
        "  why: Is a directory\n"
        "  do: check the folder and its permissions\n",
    )
    assert shell.names() == ["bag.dl", "out"]
