"""Holders: processes that keep the databases of partitions, and the way to them.

Spark gives a task to any of its Python workers, and ends workers that have been idle for a minute; a partition's
database must outlive both. So a worker passes the request on to the partition's holder on its node, a process of its
own with a socket whose path names the query and the partition, and has one forked by the nursery (`nursery.py`) if
there is none. A holder ends when told to, when whoever asked gives up in the middle of the work (a kernel cannot be
stopped otherwise), when the process it watches is gone (the daemon of Spark's workers, or the driver on one machine),
or after an hour without work. One that does not answer the door within seconds (it was stopped) is left to itself and
replaced: what it may yet write, nobody will name.

    client -> holder    one line of JSON: the request
    holder -> client    "." at once, then one line of JSON: what came of it; nothing if it died of it
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from lftj.errors import Error
from spark_bridge.doors import (
    WATCH_SECONDS,
    address,
    alive,
    listening,
    node_folder,
    nursery_child,
    opened,
    start_nursery,
)
from spark_bridge.store import Body

IDLE_SECONDS = 3600.0
DOOR_SECONDS = 10.0
_NOTHING: Body = {"attempt": "", "stats": {}, "damaged": [], "state": ""}
_started: list[subprocess.Popen[bytes]] = []


class HolderDiedError(Error, RuntimeError):
    """A holder ended in the middle of a request. Whoever runs tasks runs it again."""


def ask(
    requests: Sequence[Body], *, watch: int, processes: int | None = None, path: Path | None = None
) -> list[Body | None]:
    """What came of requests, each run by the holder of its partition, side by side; None where the holder died of it.

    `watch`: the process that holders must not outlive. `processes`: so many of them at most; None: one per partition.
    `path`: the nursery to have holders made by, if not that of `watch`.
    """
    nest = address(watch) if path is None else path
    answers: list[bytes] = [b""] * len(requests)
    found: list[Body | None] = [None] * len(requests)
    with ExitStack() as doors, selectors.DefaultSelector() as waiting:
        for i, request in enumerate(requests):
            at = request["partition"] if processes is None else request["partition"] % processes
            socket_path = node_folder() / f"{request['query'][:16]}-{watch}-{at}.sock"
            if request["work"] == "close":
                holder = opened(socket_path, DOOR_SECONDS)  # none is made to be ended
            else:
                holder = _connected(socket_path, watch, nest)
            if holder is None:
                found[i] = {**_NOTHING, "partition": request["partition"], "stage": request["stage"]}
                continue
            door = doors.enter_context(holder)
            with suppress(OSError):
                door.sendall(json.dumps(request).encode() + b"\n")
            waiting.register(door, selectors.EVENT_READ, i)
        while waiting.get_map():
            for key, _ in waiting.select():
                piece = _received(key.fileobj)
                answers[key.data] += piece
                if not piece:
                    waiting.unregister(key.fileobj)
                    if answers[key.data].endswith(b"\n"):
                        found[key.data] = json.loads(answers[key.data])
    return found


def died(partition: int) -> HolderDiedError:
    """The error for a request that nothing came of."""
    return HolderDiedError(
        f"the process that holds partition {partition} ended in the middle of its work",
        why="somebody ended it, or the machine ran out of memory (the system's log says so then)",
        remedy="send it again; if it ends again, take more partitions, or give each more memory",
    )


def _received(door: Any) -> bytes:
    try:
        return bytes(door.recv(1 << 20))
    except OSError:
        return b""


@contextmanager
def _alone() -> Iterator[None]:
    """One at a time on this node."""
    folder = os.open(node_folder(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _connected(path: Path, watch: int, nest: Path) -> socket.socket:
    door = opened(path, DOOR_SECONDS)
    if door is not None:
        return door
    child = nursery_child(nest) or _of_a_new_nursery(nest, watch)
    if child is None:
        raise HolderDiedError(
            f"no process could be made for {path.name}",
            why="the process they are forked from ended",
            remedy="try again (Spark does so by itself)",
        )
    with child:
        with _alone():
            door = opened(path, DOOR_SECONDS)  # somebody else may have had it made meanwhile
            if door is None:
                path.unlink(missing_ok=True)
                child.sendall(os.fsencode(path) + b"\n")
                child.recv(1)
        door = door or opened(path, DOOR_SECONDS)
    if door is None:
        raise HolderDiedError(
            f"the process for {path.name} did not start",
            why=f"it did not answer within {DOOR_SECONDS:g} s",
            remedy="try again (Spark does so by itself)",
        )
    return door


def _of_a_new_nursery(nest: Path, watch: int) -> socket.socket | None:
    """A child of a nursery that has to be started: there is none, or it ended."""
    with _alone():
        door = nursery_child(nest)
        if door is None:
            # One that is forgotten here would warn that it runs on.
            _started[:] = [p for p in _started if p.poll() is None] + [start_nursery(nest, watch)]
    return door or nursery_child(nest)


# The process ---------------------------------------------------------------------------------------------------------


class Holder:
    """Opens the door in one thread while the other works."""

    def __init__(self, path: Path, watch: int) -> None:
        from spark_bridge.partition import Worker

        self.path, self.watch, self.worker = path, watch, Worker()
        self.turn = threading.Lock()
        self.last = time.monotonic()
        self.server = listening(path)
        self.me = os.stat(path).st_ino

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
            try:
                with self.turn:
                    if select.select([door], [], [], 0)[0]:
                        return  # whoever asked gave up while it was another's turn
                    done = self._worked(door, request)
                self.last = time.monotonic()
                with suppress(OSError):
                    door.sendall(json.dumps(done).encode() + b"\n")
            finally:
                # Whatever was raised: `_watch_door` reads from it still, so closing alone tells the other side nothing.
                with suppress(OSError):
                    door.shutdown(socket.SHUT_RDWR)
            if request["work"] == "close":
                self._end()

    def _worked(self, door: socket.socket, request: Body) -> Body:
        finished = threading.Event()
        threading.Thread(target=self._watch_door, args=(door, finished), daemon=True).start()
        try:
            done = self.worker.run(request)
        finally:
            finished.set()
        done["stats"]["process"] = os.getpid()
        return done

    def _watch_door(self, door: socket.socket, finished: threading.Event) -> None:
        with suppress(OSError):
            door.recv(1)  # nothing comes: it returns when the other side has closed, or this one has
        if not finished.is_set():
            self._end()

    def _watch(self) -> None:
        while alive(self.watch) and time.monotonic() - self.last < IDLE_SECONDS:
            time.sleep(WATCH_SECONDS)
        self._end()

    def _end(self) -> None:
        with suppress(OSError):
            if os.stat(self.path).st_ino == self.me:
                self.path.unlink()
        os._exit(0)
