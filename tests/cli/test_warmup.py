"""`lftj warmup`, and what a first run says while kernels compile."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from numba.core import event

from lftj import progress
from lftj.cli import main
from lftj.join import delta_join, trace_update, triejoin
from lftj.progress import Progress
from lftj.triggers import row_kernel
from scantree import _compiling, _jit, update
from scantree._compiling import Compiling
from sensitivity import index
from tests.cli.conftest import EDGES, TRIANGLES
from tests.cli.test_process import env
from tests.forked import forks

# A run of `--updates` in which nobody is spared a word, and all kernels are as if nothing were kept: each takes its
# time, and is then loaded, where it has been compiled before, since a cache of its own would take minutes.
STREAM = """
import sys, time
from lftj.cli import main
from scantree import _compiling, _jit
from scantree._compile import Kernel, _Cache
_compiling.PATIENCE, _jit._Announcer.SECONDS_APART = 0.2, 0.5
load, save, part, entry, made = _Cache.load_overload, _Cache.save_overload, Kernel.part, Kernel._entry, []

def slowly(kernel, args):
    made.append(kernel.__name__)
    time.sleep(0.5 if kernel.__name__ in _jit.LONG else 0.1)
    if (kept := load(kernel._cache, args, kernel.targetctx)) is None:
        Kernel.part = part
        kept = entry(kernel, kernel.part(args))
        Kernel.part = nothing_yet
        save(kernel._cache, args, kept)
    return kept

def nothing_yet(kernel, args):
    return args

_Cache.load_overload = _Cache.save_overload = lambda *_: None
Kernel.part, Kernel._entry = nothing_yet, slowly
code = main(["run", "tri.dl", "--updates", "-", "--maintain=tri=trace"])
sys.stdout.write(" ".join(made))
sys.exit(code)
"""
LINE = r"lftj: compiling kernels, once on this machine: (\d+) so far, \d+ s \.\.\."


def test_warmup_says_where_the_code_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("all kernels are compiled (")
    assert err.endswith(f" s) and kept in {_jit.CACHE_DIR}\n")


def test_warmup_says_that_the_code_is_not_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiling.compiling, "kept", False)
    assert main(["warmup"]) == 3
    assert capsys.readouterr().err == (
        f"lftj: error: the kernels are compiled, and cannot be kept in {_jit.CACHE_DIR}\n"
        "  why: the folder cannot be written, so that each process compiles them again\n"
        "  do: make it writable, or set LFTJ_CACHE_DIR to a folder that is\n"
    )


def test_what_following_changes_needs_can_be_compiled_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "--updates"]) == 0
    assert capsys.readouterr() == ("", "")
    needed = trace_update.maintain, triejoin.tracing_triejoin, update.update_packed, index.stage_sites
    assert all(_jit.is_compiled(kernel) for kernel in needed)


COMMITS = """
import sys
import lftj
from lftj.cli import main
from scantree._compile import Kernel
from scantree._jit import LONG
have, asked = Kernel._have, []

def told(kernel, signature, args):
    asked.append(kernel.__name__)
    have(kernel, signature, args)

Kernel._have = told
main(["warmup", "--updates"])
assert asked  # else this is not where kernels come from
rules = "t(x, y, z) :- e(x, y), e(y, z), e(x, z).  p(x, z) :- e(x, y), e(y, z).  s[y] = sum x : { e(x, y) }."
db = lftj.Database(".decl e(x:number, y:number)  " + rules)
db.load("e", [(i, (3 * i + k) % 40) for i in range(40) for k in range(3)])
db.evaluate()
asked.clear()
for i in range(6):
    with db.transaction() as tx:
        tx.insert("e", [(i, i + 20)])
        tx.erase("e", [(i, (3 * i) % 40)])
    with db.transaction() as tx:
        tx.insert("e", [(i, i + 23)])
assert tx.stats["heads"]["s"]["parts"]["@s.1"]["strategy"] == "triggers"
assert {head["strategy"] for head in tx.stats["heads"].values()} != {"recompute"}, tx.stats["heads"]
sys.stdout.write(" ".join(sorted({*asked} & LONG.keys())))  # others are compiled in a blink
"""


@pytest.mark.jit_only
def test_commits_need_nothing_beyond_what_is_compiled_beside_the_first_evaluation() -> None:
    """Deltas became what rules follow by, and the process compiled traces: the second commit paused for 4 s.

    What is kept between processes is tested elsewhere. Here it is enough which entries a process asks for that neither
    `warmup --updates` nor the first evaluation asked for before: with nothing kept, those are compiled.
    """
    command = [*forks().python, "-c", COMMITS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def compiled(announcer: _jit._Announcer, number: int, seconds: float) -> Iterator[None]:
    """A block within the compilation of the last of `number` kernels, each of which takes some time."""
    kernel = event.Event("numba:compile", event.EventStatus.START, data={"dispatcher": triejoin.triejoin})
    for n in range(number):
        announcer.on_start(kernel)
        time.sleep(seconds)
        if n == number - 1:
            yield
        announcer.on_end(kernel)


@pytest.fixture
def announcer(monkeypatch: pytest.MonkeyPatch) -> _jit._Announcer:
    """One that has heard of no kernel yet, and does not wait long."""
    state = Compiling()
    monkeypatch.setenv("LFTJ_QUIET", "0")
    monkeypatch.setattr(_compiling, "PATIENCE", 0.1)
    for module in (_jit, progress):
        monkeypatch.setattr(module, "compiling", state)
    return _jit._Announcer()


@pytest.mark.jit_only
def test_where_lines_stay_a_long_compilation_is_one_line(
    announcer: _jit._Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: a demonstration that opens with a screen of kernels that nobody has heard of."""
    monkeypatch.setattr(sys, "stderr", seen := io.StringIO())
    with compiled(announcer, 30, 0.02):
        pass
    assert [re.fullmatch(LINE, line) is not None for line in seen.getvalue().splitlines()] == [True]


@pytest.mark.jit_only
def test_where_lines_stay_there_is_one_every_few_seconds(
    announcer: _jit._Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kernel that takes long says so again: its pause must not look like a hang either."""
    monkeypatch.setattr(_jit._Announcer, "SECONDS_APART", 0.3)
    monkeypatch.setattr(sys, "stderr", seen := io.StringIO())
    with compiled(announcer, 1, 1.2):
        pass
    assert 2 <= seen.getvalue().count("0 so far") <= 4


@pytest.mark.jit_only
def test_a_terminal_has_one_line_that_is_rewritten_and_taken_away(
    announcer: _jit._Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", seen := Terminal())
    with compiled(announcer, 10, 0.05):
        pass
    draws = seen.getvalue().split("\r\x1b[K")
    assert "\n" not in seen.getvalue()
    assert len(draws) > 3
    assert all(not draw or re.fullmatch(LINE, draw) for draw in draws)
    assert draws[-1] == ""


@pytest.mark.jit_only
def test_a_progress_line_says_it_instead(announcer: _jit._Announcer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setenv("LFTJ_PROGRESS", "")
    monkeypatch.setattr(sys, "stderr", seen := Terminal())
    with Progress().step("evaluating tri"), compiled(announcer, 1, 0.6):
        pass
    _, said, behind = seen.getvalue().partition("lftj: evaluating tri, compiling kernels once on this machine (0 so")
    assert said
    assert re.search(LINE, behind) is None  # before it there may be one, on a machine that is busy


@pytest.mark.jit_only
def test_quick_compilations_with_pauses_between_are_not_announced(
    announcer: _jit._Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiling, "PAUSE", 0.01)
    monkeypatch.setattr(sys, "stderr", seen := io.StringIO())
    for _ in range(5):
        with compiled(announcer, 1, 0.03):
            pass
        time.sleep(0.02)
    assert seen.getvalue() == ""


def test_long_kernels_are_there() -> None:
    homes = (triejoin, trace_update, delta_join, update, index, row_kernel)
    assert [name for name in _jit.LONG if not any(hasattr(home, name) for home in homes)] == []


@pytest.mark.jit_only
def test_a_stream_of_updates_tells_of_compilations_all_along(tmp_path: Path) -> None:
    """Catches: a first commit that takes as long as the first evaluation, and says nothing."""
    (tmp_path / "tri.dl").write_text(TRIANGLES)
    (tmp_path / "edge.facts").write_text(EDGES)
    done = subprocess.run(
        [*forks().python, "-c", STREAM],
        cwd=tmp_path,
        env=env(LFTJ_QUIET="0"),
        input="+edge 1 4\n\n-edge 1 2\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("+tri 1 2 4\n+tri 1 3 4\n\n-tri 1 2 3\n-tri 1 2 4\n\n")
    counts = [int(count) for count in re.findall(LINE, done.stderr)]
    made = done.stdout.splitlines()[-1].split()
    assert {*made} & _jit.LONG.keys() == {"triejoin", "tracing_triejoin", "update_packed", "maintain", "stage_sites"}
    assert len(counts) > 5
    assert counts == sorted(counts)
    assert len(made) - 10 < counts[-1] <= len(made)  # of those that are compiled last, too
