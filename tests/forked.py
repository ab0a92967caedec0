"""Commands of lftj as processes, without the seconds that each would take to import the same again.

    subprocess.run([*forks().lftj, "run", "tri.dl"], ...)   what `python -m lftj run tri.dl` does
    forks().python                                          the same for `python -m MODULE ...` and `python -c TEXT ...`

A server (`serve`) imports everything once, starts nothing, and forks a process for each request. That one gets the
arguments, environment, folder and standard streams of whoever asked, and runs the module as `__main__` from its first
line to the end of the interpreter. Who asks is `ask`, a small process that stands for the forked one: it passes SIGINT
and SIGTERM on, ends as that one ends, and takes it along if it is killed.

Where the subject is what is imported, what the environment says to kernels, or which process started this one, tests
take a real process; so do some of every kind of test.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import warnings
from functools import cache

TYPE_CHECKING = False  # who asks does without typing, as without all else that takes time to import
if TYPE_CHECKING:
    from typing import Any

# Both sides: the standard streams that are open, then the request; then the answers, a line each.
STREAMS = (0, 1, 2)


def ask(path: str, arguments: list[str]) -> int:
    """Have a process forked that runs these arguments of `python`; its exit code, once it has ended."""
    import json

    passed_on = signal.SIGINT, signal.SIGTERM
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # until it is known where to
    # Before a descriptor is made, which would take the number of one that is closed.
    streams = [stream for stream in STREAMS if _is_open(stream)]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd(), "streams": streams}
    text = json.dumps(request).encode()
    socket.send_fds(connection, [b"%020d" % len(text)], streams)
    connection.sendall(text)
    answers = connection.makefile("r")
    process = int(answers.readline())
    for number in passed_on:
        signal.signal(number, lambda number, _: os.kill(process, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
    code = int(answers.readline())
    if code < 0:  # by a signal, and so does this one
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def serve(path: str) -> list[str]:
    """Fork a process for each request until stdin is closed; returns in those processes, with the arguments of each."""
    import selectors

    _import_everything()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    woken, wakes = socket.socketpair()
    woken.setblocking(False)
    wakes.setblocking(False)
    before = signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: who asked passes it on
    selector = selectors.DefaultSelector()
    for file in (0, listening, woken):
        selector.register(file, selectors.EVENT_READ)
    waiting: dict[int, socket.socket] = {}  # who asked, by the process
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                for process in waiting:
                    os.kill(process, signal.SIGKILL)
                os._exit(0)
            elif key.fileobj is listening:
                connection, _ = listening.accept()
                try:
                    request, files = _received(connection)
                except EOFError:  # who asked is gone
                    connection.close()
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: of the thread of an allocator
                    process = os.fork()
                if not process:
                    signal.set_wakeup_fd(before)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    for other in (selector, listening, woken, wakes, connection, *waiting.values()):
                        other.close()
                    return _became(request, files)
                for file in files:
                    os.close(file)
                _send(connection, process)
                waiting[process] = connection
                selector.register(connection, selectors.EVENT_READ, process)
            elif key.fileobj is woken:
                woken.recv(1000)
                _tell_of_ended(waiting, selector)
            elif key.data in waiting:  # who asked is gone
                os.kill(key.data, signal.SIGKILL)
                selector.unregister(key.fileobj)


def _tell_of_ended(waiting: dict[int, socket.socket], selector: Any) -> None:
    while waiting:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        connection = waiting.pop(process)
        if connection in selector.get_map():
            selector.unregister(connection)
            _send(connection, os.waitstatus_to_exitcode(status))
        connection.close()


def _send(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # who asked is gone
        connection.sendall(b"%d\n" % number)


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A request, and the streams that are open."""
    import json

    size, files, _, _ = socket.recv_fds(connection, 20, len(STREAMS))
    text, part = b"", size
    while part and len(text) < int(size):
        text += (part := connection.recv(int(size) - len(text)))
    if not part:
        for file in files:
            os.close(file)
        raise EOFError
    return json.loads(text), files


def _became(request: dict[str, Any], files: list[int]) -> list[str]:
    """Take on the environment, folder and streams of who asked."""
    for name in {*os.environ, *request["environment"]}:
        if name == "LFTJ_CACHE_DIR" or name.startswith("NUMBA_"):  # read when kernels were imported
            assert os.environ.get(name) == request["environment"].get(name), f"needs a real process: {name} differs"
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for file, stream in zip(files, request["streams"], strict=True):
        os.dup2(file, stream)
    for file in files:
        if file not in request["streams"]:
            os.close(file)
    for stream, name in enumerate(("stdin", "stdout", "stderr")):
        made = None  # as Python has it where one is closed
        if stream in request["streams"]:
            bytes_of = os.fdopen(stream, "wb" if stream else "rb", closefd=False)
            errors = "backslashreplace" if name == "stderr" else "strict"
            lines = name == "stderr" or bytes_of.isatty()
            made = io.TextIOWrapper(bytes_of, "utf-8", errors, line_buffering=lines)
        else:
            os.close(stream)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    return list(request["arguments"])


def _import_everything() -> None:
    """What commands load: all modules of lftj and what they need, the grammar, and the table of commands."""
    import gc
    import importlib
    import pkgutil

    sys.path.pop(0)  # the folder of this file, where packages have names of others
    import lftj

    for module in pkgutil.walk_packages(lftj.__path__, "lftj."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("pandas", "pygls.lsp.server"):
        try:
            importlib.import_module(name)
        except ImportError:  # an extra that is not there
            continue
    lftj.Database(".decl e(x:number)\n")
    gc.collect()
    gc.freeze()


def run(arguments: list[str]) -> None:
    """Run what `python` with these arguments runs."""
    import runpy

    assert arguments[0] in ("-m", "-c"), "needs a real process"
    sys.path.insert(0, os.getcwd())
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})


class Commands:
    """The first words of commands."""

    def __init__(self, *python: str) -> None:
        self.python = [*python]
        self.lftj = [*python, "-m", "lftj"]


@cache
def forks() -> Commands:
    """One server for all tests of this process, from the first that needs it to the end. Real ones where none forks."""
    if not hasattr(os, "fork"):
        return Commands(sys.executable)
    import atexit
    import subprocess
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="lftj-forks-")  # of a short name: a socket's has at most 100 characters
    path, here = os.path.join(folder.name, "socket"), os.path.abspath(__file__)
    root = os.path.dirname(os.path.dirname(here))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    # Threads do not survive a fork; and of products of matrices there are none.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    server = subprocess.Popen(
        [sys.executable, here, "serve", path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"

    def close() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(close)
    # Isolated and without site-packages it begins in a tenth of the time.
    return Commands(sys.executable, "-I", "-S", here, "ask", path)


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask(sys.argv[2], sys.argv[3:]))
    run(serve(sys.argv[2]))
