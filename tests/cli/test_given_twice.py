"""Options that would be lost, answers that have nowhere to go, and bags that are watched.

Catches: an option of which only the last one counts, or none; exit code 0 though nothing was written.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from spark_bridge.__main__ import main as bridge
from tests.cli.conftest import Shell
from tests.cli.test_watch import Watch
from tests.forked import forks

CIRCUIT = """
from lftj import streams
circuit = streams.Circuit("bids")
circuit.output("out", circuit.input("bid", price=int))
"""
SCAN = """
.decl scan(item:symbol) -> copies:number bag
.input scan
scan("ink", 1).
.decl n(i:symbol, c:number)
.output n
n(i, c) :- scan(i, c).
"""


# Given twice


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("stream c.py --input bid=a.csv --input bid=b.csv", "--input bid=... is given twice"),
        ("query tri($a,y,z) tri.dl -F facts -p a=1 -p a=2", "-p a=... is given twice"),
        ("query tri($a,y,z) tri.dl -F facts -p a=1 -p $a=2", "-p a=... is given twice"),
        ("run tri.dl -F facts --maintain tri=trace --maintain tri=delta", "--maintain tri=... is given twice"),
        ("run tri.dl -F facts --key-order tri=x,y,z --key-order tri=z,y,x", "--key-order tri=... is given twice"),
        ("explain tri.dl --granularity tri=node --granularity tri=node", "--granularity tri=... is given twice"),
    ],
)
def test_the_same_name_twice(triangles: Shell, command: str, told: str) -> None:
    triangles.write({"c.py": CIRCUIT, "a.csv": "price\n1\n", "b.csv": "price\n2\n"})
    done = triangles(*command.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"lftj: error: {told}\n  why: ")


@pytest.mark.parametrize(
    "command",
    [
        "create --program tri.dl --input edge=1.csv --input edge=2.csv --checkpoint DIR",
        "estimate --program tri.dl --input edge=1.csv --input edge=2.csv",
        "apply --changes edge=1.csv --changes edge=2.csv --batch-id 1 --checkpoint DIR",
        "apply --changes edge=1.csv --delta tri=1 --delta tri=2 --batch-id 1 --checkpoint DIR",
        "result --output tri=1.parquet --output tri=2.parquet --checkpoint DIR",
    ],
)
def test_the_same_relation_twice(triangles: Shell, capsysbinary: pytest.CaptureFixture[bytes], command: str) -> None:
    assert bridge([*command.split(), "--processes", "1"]) == 2
    assert b"=... is given twice\n  why: " in capsysbinary.readouterr().err
    assert "DIR" not in triangles.names()


# Options of a database that has the program


@pytest.mark.parametrize("option", ["--maintain tri=trace", "--key-order tri=z,y,x", "--granularity tri=node"])
def test_options_that_come_too_late(triangles: Shell, option: str) -> None:
    command = ["run", "tri.dl", "-F", "facts", "--database", "kept.lftj"]
    assert triangles(*command).code == 0
    done = triangles(*command, *option.split())
    assert (done.code, done.out) == (2, "")
    name = option.split()[0]
    assert done.err == (
        f"lftj: error: {name} comes too late for kept.lftj\n"
        "  why: the file has the program already, with the plans and strategies that it was made with\n"
        f"  do: leave {name} out, or give --database a new file\n"
    )
    unknown = option.replace("tri=", "tree=").split()
    late, new = triangles(*command, *unknown), triangles(*command[:-1], "new.lftj", *unknown)
    assert (late.code, late.err) == (new.code, new.err)
    assert "`tree`" in late.err
    assert triangles(*command).code == 0


# A stdout that is closed


@pytest.mark.skipif(os.name == "nt", reason="closes stdout as a shell of Unix does")
@pytest.mark.parametrize(
    "command",
    [
        "stream c.py --input bid=a.csv",
        "query 'tri(x,y,z)' tri.dl -F facts",
        "query 'tri(x,y,z)' tri.dl -F facts --format csv",
        "query 'tri(x,y,z)' tri.dl -F facts --format json",
        "query 'tri(x,y,z)' tri.dl -F facts --format arrow",
        "run tri.dl -F facts -D -",
        "fmt - < tri.dl",
        "fmt --diff other.dl",
        "functors",
        "explain tri.dl -F facts",
        "check --json tri.dl",
        "--version",
    ],
)
def test_stdout_is_closed(triangles: Shell, command: str) -> None:
    triangles.write({"c.py": CIRCUIT, "a.csv": "price\n1\n", "other.dl": ".decl  a(x:number)\n"})
    done = _closed(triangles.folder, command)
    assert done.returncode == 3
    assert "stdout is closed\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert "  do: write to a file, or leave stdout open" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="closes stdout as a shell of Unix does")
def test_what_writes_nothing_needs_no_stdout(triangles: Shell) -> None:
    triangles.write({"quiet.dl": ".decl a(x:number)\n.output a\na(1).\n"})
    for command in ("check quiet.dl", "run quiet.dl -D .", "fmt quiet.dl"):
        assert _closed(triangles.folder, command).returncode == 0, command
    assert triangles.read("a.csv") == "1\n"
    assert _closed(triangles.folder, "check nowhere.dl").returncode == 2


def _closed(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A forked process is like a real one in this: test_process tries two of those."""
    line = f"{shlex.join(forks().lftj)} {command} >&-"
    return subprocess.run(["sh", "-c", line], cwd=folder, stderr=subprocess.PIPE, text=True, check=False, timeout=120)


# Bags


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_watching_a_bag(shell: Shell) -> None:
    """Each row of it was there once; facts of the text are not counted twice."""
    shell.write({"tri.dl": SCAN, "facts/scan.facts": "tea\njam\ntea\n"})
    watch = Watch(shell.folder)
    try:
        assert watch.commit() == ["+n ink 1", "+n jam 1", "+n tea 2"]
        watch.replace("facts/scan.facts", "tea\ntea\ntea\nink\n")
        assert watch.commit() == ["-n ink 1", "-n jam 1", "-n tea 2", "+n ink 2", "+n tea 3"]
        watch.replace("facts/scan.facts", "")
        assert watch.commit() == ["-n ink 2", "-n tea 3", "+n ink 1"]
    finally:
        watch.process.kill()
        watch.process.wait()
