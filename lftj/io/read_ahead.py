"""Python's bytes for Arrow's readers, so that a process may end right after they have been read.

Arrow reads ahead in threads of its own, one of which may be the last to drop a block, or what the blocks came from.
Where these are objects of Python's, the thread needs the interpreter for that. If this ends meanwhile, Python ends the
thread, C++ does not expect that, and the process is aborted: "terminate called without an active exception", exit code
134; on a busy machine once in some hundred reads. So blocks are memory of Arrow's (`in_memory`, `in_blocks`), and
whoever has had a stream of Python's read waits until nobody holds it any more (`LetGo`).
"""

from __future__ import annotations

import io
import queue
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# Seconds, of which a thread that has nothing else to do needs a few thousandths at most.
PATIENCE = 1.0


def in_memory(content: bytes) -> pa.NativeFile:
    """All of `content`, copied."""
    import pyarrow as pa

    held = pa.BufferOutputStream()
    held.write(content)
    return pa.BufferReader(held.getvalue())


def in_blocks(stream: io.RawIOBase) -> pa.NativeFile:
    """What `stream` gives, in the same blocks, each copied; the stream itself is to be let go of."""
    import pyarrow as pa

    # No block is smaller than this buffer, so each is read by itself.
    return pa.BufferedInputStream(pa.PythonFile(stream, mode="r"), 1)


class LetGo:
    """Tells when nobody holds an object any more, whoever it was."""

    def __init__(self, held: object) -> None:
        self._gone: queue.SimpleQueue[weakref.ref[object]] = queue.SimpleQueue()
        # `put` is written in C: while a thread runs functions of Python's, it may have to wait for the interpreter.
        self._watched = weakref.ref(held, self._gone.put)

    def wait(self) -> bool:
        """Wait for it, for `PATIENCE` at most; whether the object is gone. The caller holds it no more."""
        try:
            self._gone.get(timeout=PATIENCE)
        except queue.Empty:
            return False
        return True
