"""Holders: processes that keep the databases of partitions, and the way to them.

Spark gives a task to any of its Python workers, and ends workers that have been idle for a minute; a partition's
database must outlive both. So a worker passes the request on to the partition's holder on its node, a process of its
own with a socket whose path names the query and the partition, and starts it if there is none. A holder ends when told
to, when the process it watches is gone (the daemon of Spark's workers, or the local pool), or after an hour without
work. One that does not answer the door within seconds (it was stopped) is left to itself and replaced: what it may yet
write, nobody will name.

    client -> holder    one line of JSON: the request
    holder -> client    "." at once, then one line of JSON: what came of it; nothing if it died of it
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from spark_bridge.store import Body

IDLE_SECONDS = 3600.0
DOOR_SECONDS = 10.0
START_SECONDS = 120.0
_started: list[subprocess.Popen[bytes]] = []
_starting = threading.Lock()


class HolderDiedError(RuntimeError):
    """A holder ended in the middle of a request. Whoever runs tasks runs it again."""


def node_folder() -> Path:
    """Where sockets are: of this user, on this machine."""
    folder = Path(os.environ.get("LFTJ_SPARK_NODE_DIR") or tempfile.gettempdir()) / f"lftj-spark-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def ask(request: Body, *, watch: int) -> Body:
    """Have the holder of the request's partition run it. `watch`: the process it must not outlive."""
    path = node_folder() / f"{request['query'][:16]}-{watch}-{request['partition']}.sock"
    if request["work"] == "close" and not path.exists():
        return {"partition": request["partition"], "attempt": "", "stats": {}, "damaged": [], "state": ""}
    with _connected(path, watch) as door:
        door.settimeout(None)
        door.sendall(json.dumps(request).encode() + b"\n")
        answer = b"".join(iter(lambda: door.recv(1 << 20), b""))
    if not answer.endswith(b"\n"):
        raise HolderDiedError(f"the process that holds partition {request['partition']} ended")
    found: Body = json.loads(answer)
    return found


def _knock(path: Path) -> socket.socket | None:
    """A connection to the holder at `path`; None if nobody opens."""
    door = socket.socket(socket.AF_UNIX)
    door.settimeout(DOOR_SECONDS)
    try:
        door.connect(str(path))
        if door.recv(1) == b".":
            return door
    except OSError:
        pass
    door.close()
    return None


def _connected(path: Path, watch: int) -> socket.socket:
    door = _knock(path)
    if door is not None:
        return door
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        door = _knock(path)  # somebody else may have started it meanwhile
        if door is not None:
            return door
        path.unlink(missing_ok=True)
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [environment.get("PYTHONPATH")])])
        process = subprocess.Popen(
            [sys.executable, "-m", "spark_bridge.holder", str(path), str(watch)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        with _starting:  # holders are started by several threads, and one that is forgotten here warns that it runs on
            _started[:] = [p for p in _started if p.poll() is None] + [process]
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and process.poll() is None:
            if path.exists():
                door = _knock(path)
                if door is not None:
                    return door
            time.sleep(0.01)
    raise HolderDiedError(f"the process for {path.name} did not start")


# The process ---------------------------------------------------------------------------------------------------------


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 0)
            return not Path("/proc").is_dir()
        return False


class _Holder:
    """Opens the door in one thread while the other works."""

    def __init__(self, path: Path, watch: int) -> None:
        from spark_bridge.partition import Worker

        self.path, self.watch, self.worker = path, watch, Worker()
        self.turn = threading.Lock()
        self.last = time.monotonic()
        self.server = socket.socket(socket.AF_UNIX)
        draft = path.with_suffix(f".{os.getpid()}")
        self.server.bind(str(draft))
        self.server.listen(64)
        self.me = os.stat(draft).st_ino
        draft.rename(path)

    def run(self) -> None:
        """Until there is no more reason to."""
        threading.Thread(target=self._watch, daemon=True).start()
        while True:
            door, _ = self.server.accept()
            with suppress(OSError):
                door.sendall(b".")
                threading.Thread(target=self._serve, args=(door,), daemon=True).start()

    def _serve(self, door: socket.socket) -> None:
        with door, door.makefile("rb") as lines:
            line = lines.readline()
            if not line.endswith(b"\n"):
                return
            request: dict[str, Any] = json.loads(line)
            with self.turn:
                done = self.worker.run(request)
                done["stats"]["process"] = os.getpid()
            self.last = time.monotonic()
            with suppress(OSError):
                door.sendall(json.dumps(done).encode() + b"\n")
            if request["work"] == "close":
                self._end()

    def _watch(self) -> None:
        while _alive(self.watch) and time.monotonic() - self.last < IDLE_SECONDS:
            time.sleep(0.5)
        self._end()

    def _end(self) -> None:
        with suppress(OSError):
            if os.stat(self.path).st_ino == self.me:
                self.path.unlink()
        os._exit(0)


if __name__ == "__main__":
    _Holder(Path(sys.argv[1]), int(sys.argv[2])).run()
