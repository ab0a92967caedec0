"""What commits need is compiled by another process while the first evaluation runs.

Kernels are compiled once on a machine. Those that a transaction needs take as long as those of the first evaluation,
and facts that are evaluated are likely to change; so where they are not in the cache, the first evaluation starts
`lftj warmup --updates` beside it, at the lowest priority. Until that is done no head is followed, for which a commit
would have to wait: heads are evaluated again, which takes no new kernels.

The process outlives the one that started it, has nothing to do with its input and output, ends after `MOST` seconds at
the latest, and writes to the cache of kernels only, where files appear whole or not at all. It holds a lock from before
it starts until it ends however it ends, so that there is one at a time on a machine, and everybody can tell.

None is started on one core, where it would only be in the way, nor with `LFTJ_BACKGROUND=0`: then what a commit needs
is compiled when it first needs it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from numba import config

from lftj import arguments
from lftj.join import delta_join, trace_update
from lftj.triggers.row_kernel import follow_row, run_packed
from scantree import _jit, update

MOST = 600
# What takes long of all that commits need.
NEEDED = (update.update_packed, delta_join.join_changed, run_packed, follow_row, trace_update.maintain)
# Why no head is followed for a while on a new machine.
COMPILING = "what that takes is being compiled in the background"
_LOCK = "background.lock"
_CODE = """
import os, signal, sys
sys.path[0] = sys.argv[1]
os.setsid()
os.nice(19)
signal.alarm(int(sys.argv[2]))
from lftj.cli import main
sys.exit(main(["warmup", "--updates"]))
"""


class _Background:
    """The process, as far as this one knows: whether it may still be asked for, or may still run."""

    def __init__(self) -> None:
        self.asked = False
        self.child = 0
        self.over = False


_state = _Background()


def begin() -> None:
    """Start the process, if there is anything for it to do; at most once."""
    if _state.asked:
        return
    _state.asked = True
    if _is_wanted() and not all(map(_jit.is_compiled, NEEDED)):
        _state.child, _state.over = _start(), False
    else:
        _state.over = True


def is_busy() -> bool:
    """Whether the process is at work, this one's or another's."""
    if _state.over or not _is_wanted():
        return False
    _state.over = _is_free()
    if _state.over and _state.child:
        # So that it leaves no trace in the system's list of processes; somebody may have seen to it already.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(_state.child, 0)
    return not _state.over


def _is_wanted() -> bool:
    return (
        os.environ.get("LFTJ_BACKGROUND") != "0"
        and os.name == "posix"
        and arguments.cores() > 1
        and not config.DISABLE_JIT
        and not config.BOUNDSCHECK
        and Path(sys.executable or "").name.startswith("python")
    )


def _start() -> int:
    """Start the process, unless there is one; its id, or 0."""
    import fcntl

    lock = -1
    try:
        _jit.CACHE_DIR.mkdir(parents=True, exist_ok=True)
        lock = os.open(_jit.CACHE_DIR / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", _CODE, str(Path(_jit.__file__).parent.parent), str(MOST)],
            {**os.environ, "LFTJ_BACKGROUND": "0", "LFTJ_QUIET": "1"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                # It holds the lock by a descriptor of its own, which nobody else inherits.
                (os.POSIX_SPAWN_DUP2, lock, lock + 1),
            ],
        )
    except OSError:  # there is one, or the cache cannot be written, or no process can be made
        return 0
    finally:
        if lock >= 0:
            os.close(lock)


def _is_free() -> bool:
    """Whether nobody holds the lock."""
    import fcntl

    try:
        lock = os.open(_jit.CACHE_DIR / _LOCK, os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
