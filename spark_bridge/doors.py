"""Doors: the sockets by which processes of one machine find each other, and the way to a nursery (`nursery.py`)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from spark_bridge.bridge_errors import SetupError

WATCH_SECONDS = 0.5
FOLDER_BYTES = 64  # a socket's own name takes some 40 of 103 and more


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


def listening(path: Path) -> socket.socket:
    """A socket that takes connections at `path`, whatever was there before."""
    server = socket.socket(socket.AF_UNIX)
    draft = path.with_suffix(f".{os.getpid()}")
    server.bind(str(draft))
    server.listen(64)
    draft.rename(path)
    return server


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


def nursery_child(path: Path) -> socket.socket | None:
    """A connection to a new child of the nursery at `path`; None if there is no such nursery, or it ended."""
    return opened(path, None)  # however long it takes: on a new machine it compiles kernels first


def start_nursery(path: Path, watch: int) -> subprocess.Popen[bytes]:
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
