"""The one way kernels are made: `@kernel`, and where their machine code is kept.

A kernel is a plain function over numpy arrays and integers. `@kernel` compiles it on first use (never at import, and
as `_compile.py` tells), without the GIL, and keeps the machine code in a directory of lftj's own:

    <cache>/kernels-<hash of every kernel source, the numba version and the mode>[/leaves-<hash of the leaves' sources>]

numba looks only at a kernel's own file when it decides whether cached code is stale, so a kernel would keep the old
body of a callee that was edited in another file (numba issue 1833). Hashing all sources into the directory name closes
that hole. Bounds-checked code is kept apart for the same reason: numba does not tell the two apart. The directory is
set only while `@kernel` decorates and then restored, so that other users of numba in the same process keep theirs.

`LFTJ_CACHE_DIR` moves the cache. `NUMBA_DISABLE_JIT=1` leaves kernels as the plain functions they are.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import config, types
from numba.core import cgutils, event
from numba.extending import intrinsic

from scantree._cache import cache_root
from scantree._compile import Kernel
from scantree._compiling import compiling, is_quiet

F = TypeVar("F", bound=Callable[..., Any])

# The files that hold kernels; those of `_LEAVES` are called by no kernel of others, and have a folder of their own: an
# edit there does not compile the rest again.
_PACKAGES = ("scantree/*.py", "sensitivity/*.py", "lftj/join/*.py")
_LEAVES = ("lftj/triggers/*.py",)


def _source_hash(*patterns: str) -> str:
    """Digest of files that hold kernels, of numba's version and of the bounds-checking mode."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(f"{numba.__version__} {config.BOUNDSCHECK}".encode())
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


CACHE_DIR = cache_root() / f"kernels-{_source_hash(*_PACKAGES)}"
_LEAF_DIR = CACHE_DIR / f"leaves-{_source_hash(*_LEAVES)}"


# Kernels that take long, and for how many kinds of arguments each is compiled.
LONG = {
    "triejoin": 1,
    "tracing_triejoin": 2,
    "update_packed": 1,
    "maintain": 1,
    "stage_sites": 1,
    "join_changed": 1,
    "run_packed": 1,
    "follow_row": 1,
}


class _Announcer(event.Listener):
    """Says on stderr that kernels are compiled where that takes long: no pause of a first run must look like a hang.

    On a terminal it is one line, rewritten every second and taken away at the end. Elsewhere lines stay, so there is
    one every `SECONDS_APART`. Where a progress line is on the screen, it says it.
    """

    SECONDS_APART = 5.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._said = -math.inf
        self._drawn = False  # on a terminal

    def on_start(self, event: event.Event) -> None:
        """Announce it unless it ends soon."""
        if not isinstance(event.data["dispatcher"], Kernel):  # of others who use numba
            return
        with self._lock:
            compiling.start()
            if compiling.depth == 1 and sys.stderr is not None and not is_quiet():
                self._wait(compiling.wait())

    def on_end(self, event: event.Event) -> None:
        """It is over."""
        if not isinstance(event.data["dispatcher"], Kernel):
            return
        with self._lock:
            compiling.end()
            if not compiling.depth and self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self._clear()

    def _wait(self, seconds: float) -> None:
        """Say it after a while."""
        self._timer = threading.Timer(max(0.0, seconds), self._say)
        self._timer.daemon = True
        self._timer.start()

    def _say(self) -> None:
        """Write the line, unless there was one just now where lines stay; and again after a while."""
        with self._lock:
            if threading.current_thread() is not self._timer:
                return  # what it was about has ended
            live, now = sys.stderr.isatty(), time.monotonic()
            apart = 1.0 if live else self.SECONDS_APART
            if compiling.lines:
                self._drawn = False  # drawn over
            elif live or now - self._said >= apart:
                line = f"lftj: {compiling.text()} ..."
                sys.stderr.write(f"\r\x1b[K{line[: _columns() - 1]}" if live else f"{line}\n")
                sys.stderr.flush()
                self._drawn, self._said = live, now
            else:
                apart += self._said - now
            self._wait(apart)

    def _clear(self) -> None:
        if self._drawn and not compiling.lines:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._drawn = False


def _columns() -> int:
    """The width of the terminal that stderr is: a line that wraps cannot be rewritten."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:  # a stream without a descriptor
        return 80


event.register("numba:compile", _Announcer())

CHECKED = bool(config.BOUNDSCHECK)


if config.DISABLE_JIT:

    def prefetch(array: Any, i: Any) -> None:
        """Ask for the cache line of `array[i]`: nothing to do in the interpreter."""

    def move(array: Any, to: Any, start: Any, n: Any) -> None:
        """`array[to : to + n] = array[start : start + n]` on int64[...]; the two may overlap."""
        array[to : to + n] = array[start : start + n].copy()

else:

    @intrinsic
    def prefetch(typingctx: Any, array: Any, i: Any) -> Any:
        """Ask for the cache line of `array[i]` (one-dimensional, contiguous), without waiting. Any index is safe."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.bitcast(builder.gep(view.data, [args[1]]), ir.IntType(8).as_pointer())
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), i32, i32, i32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(function, [address, i32(0), i32(3), i32(1)])
            return context.get_dummy_value()

        return types.none(array, i), codegen

    @intrinsic
    def _memmove(typingctx: Any, array: Any, to: Any, start: Any, n: Any) -> Any:
        """`move`, without checks."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            target, source = builder.gep(view.data, [args[1]]), builder.gep(view.data, [args[2]])
            cgutils.raw_memmove(builder, target, source, args[3], 8)
            return context.get_dummy_value()

        return types.none(array, types.int64, types.int64, types.int64), codegen

    def move(array: Any, to: Any, start: Any, n: Any) -> None:
        """`array[to : to + n] = array[start : start + n]` on int64[...]; the two may overlap."""
        if n > 0:
            if CHECKED:
                # Reads that only bounds-checked code makes: of the ends, so that it checks them here as elsewhere.
                _ends = array[to] + array[to + n - 1] + array[start] + array[start + n - 1]
            _memmove(array, to, start, n)


def kernel(function: F) -> F:
    """Compile `function` on first call: no Python mode, GIL released, cached on disk in lftj's own directory.

    Kernels own nothing and allocate nothing (arrays come from the caller), so numba's reference counting is off:
    counting the arrays that helpers pass around costs more than most helpers do.
    """
    return _compile(function, forceinline=False)


def inlined(function: F) -> F:
    """Like `kernel`, always inlined: small helpers of hot loops, where passing the arrays costs more than the body."""
    return _compile(function, forceinline=True)


def shared(function: F) -> F:
    """Like `kernel`, for large ones that several others call: there is one copy of its machine code, not one in each.

    A call of it passes all its arguments, so that it has to be for more than a few steps.
    """
    compiled: Any = _compile(function, forceinline=False)
    if not config.DISABLE_JIT:
        compiled.shared = True
    return cast(F, compiled)


def _compile(function: F, forceinline: bool) -> F:
    if config.DISABLE_JIT:
        return function
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False, "boundscheck": None}
    before = config.CACHE_DIR
    leaf = function.__module__.startswith("lftj.") and not function.__module__.startswith("lftj.join.")
    config.CACHE_DIR = str(_LEAF_DIR if leaf else CACHE_DIR)
    try:
        compiled: Any = Kernel(function, targetoptions={**options, "forceinline": forceinline})
        compiled.enable_caching()
    finally:
        config.CACHE_DIR = before
    return cast(F, compiled)


def is_compiled(kernel: Any) -> bool:
    """Whether a call of `kernel` compiles nothing: its machine code is at hand, or in the cache."""
    return bool(config.DISABLE_JIT) or kernel.is_compiled


if not config.DISABLE_JIT:
    move = inlined(move)
