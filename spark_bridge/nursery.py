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
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

from spark_bridge.bridge_errors import SetupError

WATCH_SECONDS = 0.5
FOLDER_BYTES = 64  # a socket's own name takes some 40 of 103 and more
PROGRAM = ".decl e(a:number, b:number)  t(x, y, z) :- e(x, y), e(y, z), e(x, z)."


def node_folder() -> Path:
    """Where sockets are: of this user, on this machine."""
    folder = Path(os.environ.get("LFTJ_SPARK_NODE_DIR") or tempfile.gettempdir()) / f"lftj-spark-{os.getuid()}"
    if len(os.fsencode(folder)) > FOLDER_BYTES:
        raise SetupError(
            f"{folder} is too long a name for a folder of sockets",
            why="systems take some hundred bytes for the path of a socket, its name included",
            remedy="set LFTJ_SPARK_NODE_DIR, or TMPDIR, to a folder with a shorter name",
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def address(watch: int, name: str = "") -> Path:
    """The socket of the nursery that belongs to process `watch`; `name` tells several apart."""
    return node_folder() / f"{watch}{name}.nursery"


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 0)
            return not Path("/proc").is_dir()
        return False


# Whoever wants a holder ----------------------------------------------------------------------------------------------


def start(path: Path, watch: int) -> subprocess.Popen[bytes]:
    """A nursery of its own for process `watch`. It takes connections at once, and answers when it is ready."""
    environment = dict(os.environ)
    root = str(Path(__file__).resolve().parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [environment.get("PYTHONPATH")])])
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")  # a holder takes one core
    with listening(path) as server:
        return subprocess.Popen(
            [sys.executable, "-m", "spark_bridge.nursery", str(path), str(watch), str(server.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[server.fileno()],
            env=environment,
        )


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


def opened(path: Path, seconds: float | None) -> socket.socket | None:
    """A connection to whoever serves at `path`; None if nobody does, or does not say "." within so many seconds."""
    door = socket.socket(socket.AF_UNIX)
    door.settimeout(seconds)
    try:
        door.connect(str(path))
        if door.recv(1) == b".":
            door.settimeout(None)
            return door
    except OSError:
        pass
    except BaseException:
        door.close()
        raise
    door.close()
    return None


def child(path: Path) -> socket.socket | None:
    """A connection to a new child of the nursery at `path`; None if there is no such nursery, or it ended."""
    return opened(path, None)  # however long it takes: on a new machine it compiles kernels first


# The process ---------------------------------------------------------------------------------------------------------


def listening(path: Path) -> socket.socket:
    """A socket that takes connections at `path`, whatever was there before."""
    server = socket.socket(socket.AF_UNIX)
    draft = path.with_suffix(f".{os.getpid()}")
    server.bind(str(draft))
    server.listen(64)
    draft.rename(path)
    return server


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


def main(path: str, watch: str, server: str) -> None:
    """A nursery of its own."""
    warm(everything=False)
    _Nursery(socket.socket(fileno=int(server)), Path(path), int(watch)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
