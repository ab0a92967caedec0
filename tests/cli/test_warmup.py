"""`lftj warmup`, and what a first run says while kernels compile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lftj.cli import main
from lftj.join import delta_join, trace_update, triejoin
from lftj.triggers import row_kernel
from scantree import _jit, update
from sensitivity import index
from tests.cli.conftest import EDGES, TRIANGLES
from tests.cli.test_process import env

# A run of `--updates` in which nobody is spared a word.
STREAM = """
import sys
from lftj.cli import main
from scantree import _jit
_jit.PATIENCE = 0.0
sys.exit(main(["run", "tri.dl", "--updates", "-", "--maintain=tri=trace"]))
"""


def test_warmup_says_where_the_code_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("all kernels are compiled (")
    assert err.endswith(f" s) and kept in {_jit.CACHE_DIR}\n")


def test_what_following_changes_needs_can_be_compiled_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "--updates"]) == 0
    assert capsys.readouterr() == ("", "")
    needed = trace_update.maintain, triejoin.tracing_triejoin, update.update_packed, index.stage_sites
    assert all(_jit.is_compiled(kernel) for kernel in needed)


COMMITS = """
import os, sys
from pathlib import Path
import lftj
from scantree._jit import CACHE_DIR, LONG
rules = "t(x, y, z) :- e(x, y), e(y, z), e(x, z).  p(x, z) :- e(x, y), e(y, z).  s[y] = sum x : { e(x, y) }."
db = lftj.Database(".decl e(x:number, y:number)  " + rules)
db.load("e", [(i, (3 * i + k) % 40) for i in range(40) for k in range(3)])
db.evaluate()
before = set(CACHE_DIR.glob("**/*.nbc"))
for i in range(6):
    with db.transaction() as tx:
        tx.insert("e", [(i, i + 20)])
        tx.erase("e", [(i, (3 * i) % 40)])
    with db.transaction() as tx:
        tx.insert("e", [(i, i + 23)])
assert tx.stats["heads"]["s"]["parts"]["@s.1"]["strategy"] == "triggers"
assert {head["strategy"] for head in tx.stats["heads"].values()} != {"recompute"}, tx.stats["heads"]
made = {path.name.split(".")[1].partition("-")[0] for path in set(CACHE_DIR.glob("**/*.nbc")) - before}
sys.stdout.write(" ".join(sorted(made & LONG.keys())))  # others are compiled in a blink
"""


@pytest.mark.jit_only
def test_commits_need_nothing_beyond_what_is_compiled_beside_the_first_evaluation(tmp_path: Path) -> None:
    """Deltas became what rules follow by, and the process compiled traces: the second commit paused for 4 s."""
    environment = {**os.environ, "LFTJ_CACHE_DIR": str(tmp_path), "LFTJ_BACKGROUND": "0", "LFTJ_QUIET": "1"}
    updates = "import sys; from lftj.cli import main; sys.exit(main(['warmup', '--updates']))"
    subprocess.run([sys.executable, "-c", updates], env=environment, check=True, timeout=300)
    done = subprocess.run([sys.executable, "-c", COMMITS], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_long_compilation_is_told_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_jit, "CACHE_DIR", tmp_path)
    announcer = _jit._Announcer()
    announcer._say("update_packed")
    for kernel, kinds in _jit.LONG.items():
        for kind in range(kinds):
            (tmp_path / f"file.{kernel}-1.py311.{kind}.nbc").touch()
    announcer._say("update_packed")
    assert capsys.readouterr().err == (
        "lftj: compiling update_packed, once on this machine; at most 8 more like it are still to be compiled ...\n"
        "lftj: compiling update_packed, once on this machine ...\n"
    )


def test_long_kernels_are_there() -> None:
    homes = (triejoin, trace_update, delta_join, update, index, row_kernel)
    assert [name for name in _jit.LONG if not any(hasattr(home, name) for home in homes)] == []


@pytest.mark.jit_only
def test_a_stream_of_updates_tells_of_each_long_compilation(tmp_path: Path) -> None:
    """Catches: a first commit that takes as long as the first evaluation, and says nothing."""
    (tmp_path / "tri.dl").write_text(TRIANGLES)
    (tmp_path / "edge.facts").write_text(EDGES)
    done = subprocess.run(
        [sys.executable, "-c", STREAM],
        cwd=tmp_path,
        env=env(LFTJ_CACHE_DIR=str(tmp_path / "cache"), LFTJ_QUIET="0"),
        input="+edge 1 4\n\n-edge 1 2\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("+tri 1 2 4\n+tri 1 3 4\n\n-tri 1 2 3\n-tri 1 2 4\n\n")
    told = set(re.findall("lftj: compiling ([a-z_]+), once on this machine", done.stderr))
    compiled = {one for one in _jit.LONG if any(tmp_path.glob(f"cache/kernels-*/**/*.{one}-*.nbi"))}
    assert compiled == {"triejoin", "tracing_triejoin", "update_packed", "maintain", "stage_sites"}
    assert compiled <= told
    *_, last = [line for line in done.stderr.splitlines() if "still to be compiled" in line]
    assert "at most 3 more" in last  # what follows by deltas, and by triggers
