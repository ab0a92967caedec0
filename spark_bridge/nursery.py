"""Nurseries: processes with everything loaded that a partition needs, which holders are forked from.

A fresh process imports for a second and loads kernels for another before it looks at its first row. A nursery does both
once, and a holder that is forked from it works at once. Each belongs to a process: the daemon of Spark's workers, which
forks it before anything else (`daemon.py`), or a driver on one machine (`local.py`). It ends with that process, or when
the driver ends it.

    client -> nursery    a connection: it forks
    child -> client      "." when it is there
    client -> child      one line, the path of the socket it is to serve; nothing, and it ends
    child -> client      "." when it serves

A nursery forks, and does nothing else: it has no thread of its own that could hold a lock at that moment (those that
libraries keep are idle then), no open file but its socket, and never waits for a client.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

from spark_bridge.doors import WATCH_SECONDS, address, alive, listening

PROGRAM = ".decl e(a:number, b:number)  t(x, y, z) :- e(x, y), e(y, z), e(x, z)."


def warm(*, everything: bool) -> None:
    """Load what a partition needs, by running one; with `everything` all kernels, also those that few programs need."""
    import pyarrow as pa

    import lftj
    from spark_bridge.driver import Partitioned
    from spark_bridge.local import InProcess
    from spark_bridge.partition import FAULTS

    wishes = os.environ.pop(FAULTS, None)  # where tests stop a partition, they do not mean this one
    if everything:
        lftj.Database().prepare()
    rows = pa.table({"a": [1, 1, 2], "b": [2, 3, 3]})
    with tempfile.TemporaryDirectory(prefix="lftj-warm-") as folder:
        query = Partitioned.create(InProcess(), PROGRAM, {"e": rows}, checkpoint=folder, partitions=1)
        query.apply({"e": pa.table({"a": [1, 1], "b": [2, 4], "_op": [-1, 1]})}, batch_id="warm")
    if wishes is not None:
        os.environ[FAULTS] = wishes
    # What is here before a fork stays for good. Frozen it is not looked through by the collector, which takes a tenth
    # of a second with all that numba holds, and its pages stay shared.
    gc.collect()
    gc.freeze()


class _Nursery:
    def __init__(self, server: socket.socket, path: Path, watch: int) -> None:
        self.server, self.path, self.watch = server, path, watch
        self.me = os.stat(path).st_ino

    def run(self) -> None:
        """Fork as often as somebody connects."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a child
        while alive(self.watch):
            if select.select([self.server], [], [], WATCH_SECONDS)[0]:
                door, _ = self.server.accept()
                with door, warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: threads (see the module's text)
                    if os.fork() == 0:
                        self._child(door)
        with suppress(OSError):
            if os.stat(self.path).st_ino == self.me:
                self.path.unlink()
        os._exit(0)

    def _child(self, door: socket.socket) -> None:
        try:
            from spark_bridge.holder import Holder

            self.server.close()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line = b""
            with suppress(ConnectionError), door.makefile("rb") as lines:
                door.sendall(b".")
                line = lines.readline()
            if line.endswith(b"\n"):
                holder = Holder(Path(os.fsdecode(line[:-1])), self.watch)
                door.sendall(b".")
                door.close()
                holder.run()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def fork_here() -> None:
    """A nursery for this process, forked from it: everything is loaded, and there is no thread yet."""
    watch = os.getpid()
    server = listening(address(watch))
    if os.fork():
        server.close()
        return
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)  # those of the daemon are Spark's
        os.dup2(nothing, 1)
        _Nursery(server, address(watch), watch).run()
    finally:
        os._exit(1)


def main(path: str, watch: str, server: str) -> None:
    """A nursery of its own."""
    warm(everything=False)
    _Nursery(socket.socket(fileno=int(server)), Path(path), int(watch)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
