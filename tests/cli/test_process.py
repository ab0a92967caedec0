"""The command line as a process of its own: signals, pipes, what is imported, how long it takes to start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lftj import __version__
from tests.cli.conftest import EDGES, TRIANGLES
from tests.cli.test_run import ENDLESS
from tests.forked import forks

LFTJ = [sys.executable, "-m", "lftj"]
ROOT = Path(__file__).resolve().parent.parent.parent


def lftj(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LFTJ, *arguments], cwd=cwd, env=env(**environment), capture_output=True, text=True, check=False
    )


def env(**environment: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    quiet = "ignore::RuntimeWarning"  # of interpreted kernels
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": quiet, **environment}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tri.dl").write_text(TRIANGLES)
    (tmp_path / "edge.facts").write_text(EDGES)
    return tmp_path


def test_python_m_lftj(folder: Path) -> None:
    done = lftj("--version", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"lftj {__version__}\n", "")
    done = lftj("run", "tri.dl", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tri\t2\n", "")


def test_the_command_is_installed() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="lftj")
    assert script.value == "lftj.cli:main"


def test_check_is_light(folder: Path) -> None:
    heavy = ("numba", "llvmlite", "numpy", "pyarrow", "pandas", "polars", "typer", "pydantic", "rich")
    code = (
        "import sys\nfrom collections import Counter\nevents = Counter()\n"
        "sys.setprofile(lambda frame, event, arg: events.update((event,)))\n"
        "from lftj.cli import main\ncode = main(['check', 'tri.dl'])\nsys.setprofile(None)\n"
        f"print(code, [m for m in {heavy} if m in sys.modules], len(sys.modules), events['call'], end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env(), capture_output=True, text=True, check=True
    )
    answer, modules, calls = done.stdout.rsplit(" ", 2)
    assert answer == "0 []"
    assert int(modules) < 300  # 192 of Python 3.11; numpy alone has 140 more
    assert int(calls) < 250_000  # of functions: 134,000


def test_a_wrong_program_is_refused_before_anything_heavy(folder: Path) -> None:
    (folder / "wrong.dl").write_text("p(x) :- q(x).")
    code = (
        "import sys\nfrom lftj.cli import main\ncode = main(['run', 'wrong.dl'])\n"
        "sys.stdout.write(f'{code} {\"numba\" in sys.modules}')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 False"


def test_colours_only_where_wanted(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    (folder / "wrong.dl").write_text("p(x) :- q(x).")

    def seen(**environment: str) -> str:
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [*forks().lftj, "run", "wrong.dl"], cwd=folder, env=env(**environment), stderr=theirs, check=False
        )
        os.close(theirs)
        text = os.read(ours, 10_000).decode()
        os.close(ours)
        assert done.returncode == 1
        return text.splitlines()[0]

    assert seen(TERM="xterm", NO_COLOR="") == "wrong.dl:1:9: \x1b[1;31merror\x1b[0m: unknown relation `q`"
    assert seen(TERM="xterm", NO_COLOR="1") == "wrong.dl:1:9: error: unknown relation `q`"
    assert seen(TERM="dumb", NO_COLOR="") == "wrong.dl:1:9: error: unknown relation `q`"


def test_a_reader_that_stops_reading(folder: Path) -> None:
    (folder / "many.dl").write_text(".decl p(x:number)\n.input p\n.output p\n")
    (folder / "p.facts").write_text("".join(f"{i}\n" for i in range(100_000)))
    child = subprocess.Popen(
        [*forks().lftj, "run", "many.dl", "-D", "-"],
        cwd=folder,
        env=env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline() == b"---------------\n"
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 141


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes stdout")
def test_a_closed_stdout_is_an_error_only_if_it_is_needed(folder: Path) -> None:
    (folder / "quiet.dl").write_text(TRIANGLES.replace(".printsize tri\n", ""))

    def run(program: str) -> tuple[int, str]:
        command = f'exec "{sys.executable}" -m lftj run {program} >&-'
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=env(), stderr=subprocess.PIPE, text=True, check=False
        )
        return done.returncode, done.stderr

    assert run("quiet.dl") == (0, "")
    told = (
        "lftj: error: stdout is closed\n"
        "  why: what is to be written there has nowhere to go\n"
        "  do: write to a file, or leave stdout open\n"
    )
    assert run("tri.dl") == (3, told)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is full")
def test_stdout_is_utf_8_whatever_the_locale_says(folder: Path) -> None:
    (folder / "p.dl").write_text('.decl p(a:symbol)\np("日本 é").\n', encoding="utf-8")
    named = os.fsdecode(b"\xff.dl")  # a name that is no text
    (folder / named).write_text("p( 1).\n")
    shown = {
        ("query", "p(x)", "p.dl"): "x\n------\n日本 é\n".encode(),
        ("query", "p(x)", "p.dl", "--format", "json"): '[{"x": "日本 é"}]\n'.encode(),
        ("query", "p(x)", "p.dl", "--format", "csv"): "x\n日本 é\n".encode(),
        ("fmt", "--diff", named): b"--- \xff.dl\n",
    }
    for arguments, expected in shown.items():
        done = subprocess.run(
            [*LFTJ, *arguments], cwd=folder, env=env(PYTHONIOENCODING="ascii"), capture_output=True, check=False
        )
        assert done.stdout.startswith(expected), done.stderr


def test_texts_among_the_arguments_are_utf_8_whatever_the_locale_says(folder: Path) -> None:
    (folder / "p.dl").write_text('.decl p(a:symbol, n:number)\np("é", 1). p("b", 2).\n', encoding="utf-8")
    (folder / "s.sql").write_text('create table "é" (a text); create view "ö" as select a from "é";', encoding="utf-8")
    shown = {
        ("query", 'p("é", n)', "p.dl"): "n\n-\n1\n",
        ("query", "select n from p where a = 'é'", "p.dl"): "n\n-\n1\n",
        ("query", "p($a, n)", "select n from p where a = $a", "p.dl", "-p", "a=é"): "n\n-\n1\n\nn\n-\n1\n",
        ("explain", "s.sql", "ö", "--maintain", "ö=delta"): "stratum 1: ö(a:symbol?)",
    }
    ascii_only = env(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    for arguments, expected in shown.items():
        done = subprocess.run([*LFTJ, *arguments], cwd=folder, env=ascii_only, capture_output=True, check=False)
        assert done.stdout.decode().startswith(expected), done.stderr


def test_names_of_files_are_utf_8_whatever_the_locale_says(folder: Path) -> None:
    """Names in programs could not be encoded, and the file of a table was not found: its view was empty."""
    (folder / "füße").mkdir()
    (folder / "füße" / "édge.csv").write_text("1,2\n", encoding="utf-8")
    (folder / "p.dl").write_text(
        '.decl e(x:number, y:number)\n.input e(filename="édge.csv", delimiter=",")\n.output e(filename="é.csv")\n',
        encoding="utf-8",
    )
    (folder / "s.sql").write_text('create table "édge"(a int, b int); create view "vü" as select a from "édge";')
    (folder / "api.py").write_text(
        "import lftj\nwith lftj.Database('.decl e(x:number, y:number)', path='bücher.lftj') as db:\n"
        "    db.load('e', 'füße/*.csv')\n    db['e'].to_parquet('é.parquet')\n",
        encoding="utf-8",
    )
    ascii_only = env(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    def run(*command: str) -> tuple[int, str]:
        done = subprocess.run(command, cwd=folder, env=ascii_only, capture_output=True, check=False)
        return done.returncode, done.stderr.decode()

    assert run(*LFTJ, "run", "p.dl", "-F", "füße", "-D", "aüs") == (0, "")
    assert (folder / "aüs" / "é.csv").read_text() == "1\t2\n"
    assert run(*LFTJ, "run", "s.sql", "-F", "füße") == (0, "")
    assert (folder / "vü.csv").read_text() == "a\n1\n"
    assert run(sys.executable, "api.py") == (0, "")
    assert {"bücher.lftj", "é.parquet"} <= {path.name for path in folder.iterdir()}
    assert run(*LFTJ, "backup", "bücher.lftj", "kopie é.lftj") == (0, "lftj: kopie é.lftj is a copy, 0.0 MB\n")
    assert run(*LFTJ, "check", "kopie é.lftj") == (0, "lftj: 1 database checked, no findings\n")
    assert run(*LFTJ, "run", "p.dl", "-F", "fü") == (
        2,
        "lftj: error: -F fü: there is no such folder\n"
        "  why: the facts of the program are read from it\n"
        "  do: name the folder of the .input files\n",
    )


def test_a_full_disk_behind_stdout_is_named(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lftj", "functors"],
            cwd=folder,
            env=env(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == (
        "lftj: error: No space left on device\n"
        "  why: the disk behind stdout, or behind a file that is written, is full\n"
        "  do: make room there, or write elsewhere\n"
    )


@contextmanager
def started(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A process that tells its progress; it is gone after the block, whatever happens there."""
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=env(LFTJ_PROGRESS="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("module", ["lftj.cli.outcome", "lftj.errors", "typer", "lftj.cli.functors_command"])
def test_an_interrupt_while_modules_are_imported(tmp_path: Path, module: str) -> None:
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            exec('raise KeyboardInterrupt')\n"  # as in the making of a dataclass
        "sys.meta_path.insert(0, Finder())\n"
        "from lftj.cli import main\n"
        "sys.exit(main(['functors']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "lftj: interrupted\n")


def test_the_entry_imports_nothing_that_an_interrupt_could_stop(tmp_path: Path) -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nfrom lftj.cli import main\n"
        "print(*sorted(set(sys.modules) - before - {'__future__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "lftj lftj.cli\n"


@pytest.mark.jit_only
def test_an_interrupted_recursion_says_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "n.dl").write_text(".decl n(x:number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n")
    shown = r"lftj: evaluating n \(stratum 1 of 1\), round [\d,]+, [\d,]+ new rows, \d+ s \(Ctrl-C stops\)\n"
    with started(tmp_path, *forks().lftj, "run", "n.dl") as child:
        assert child.stderr is not None
        # Before the first round nothing is counted.
        assert any(re.fullmatch(shown, child.stderr.readline()) for _ in range(20))
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
        assert child.returncode == 130, err
    assert re.search(r"^lftj: interrupted at n\.dl:4:1: in `n\(x \+ 1\) :- n\(x\)\.`, round \d+$", err, re.MULTILINE)


@pytest.mark.jit_only
def test_an_interrupt_ends_a_long_join_at_once_and_leaves_no_half_files(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(ENDLESS)
    (tmp_path / "n.facts").write_text("".join(f"{i}\n" for i in range(2000)))
    (tmp_path / "p.csv").write_text("old")
    with started(tmp_path, *LFTJ, "run", "p.dl", "--key-order", "p=x,y,z,w") as child:
        assert child.stderr is not None
        shown = r"lftj: evaluating p \(stratum 1 of 1\), \d+ s \(Ctrl-C stops\)\n"
        # Loading takes a line of its own where it takes a second.
        assert any(re.fullmatch(shown, child.stderr.readline()) for _ in range(20))
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)  # the join would take hours
        assert (child.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if "evaluating" not in line] == ["lftj: interrupted"]
    assert err.count("evaluating") <= 1  # one every two seconds: the signal may come just before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.facts", "p.csv", "p.dl"]
    assert (tmp_path / "p.csv").read_text() == "old"


def test_bench_passes_its_arguments_on(tmp_path: Path) -> None:
    done = lftj("bench", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m bench.run ")
    done = lftj("bench", "-w", "nothing", cwd=tmp_path)
    assert done.returncode == 2
    assert "no workload 'nothing'" in done.stderr


def test_bench_records_nothing_unless_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches: a command that somebody tries, and that changes files of the checkout which are tracked."""
    from bench import run
    from lftj.cli import bench, main

    called: list[list[str]] = []

    class Child:
        def __init__(self, command: list[str], **_: object) -> None:
            called.append(command)

        def wait(self) -> int:
            return 0

    monkeypatch.setattr(bench.subprocess, "Popen", Child)
    for arguments in ([], ["--record"]):
        assert main(["bench", "-w", "triangle", *arguments]) == 0
    outputs = [run.parse(command[3:]).output for command in called]
    assert outputs == [None, run.results.JOINS]


def test_bench_without_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lftj.cli import bench, main

    monkeypatch.setattr(bench, "ROOT", tmp_path)
    assert main(["bench", "-w", "triangle"]) == 2
    assert capsys.readouterr() == (
        "",
        "lftj: error: the benchmark is not part of the installed package\n"
        "  why: it needs the data sets and the rivals that only a checkout has\n"
        "  do: run `lftj bench` or `make bench` in a checkout of the project\n",
    )
