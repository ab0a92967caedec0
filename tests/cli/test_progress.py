"""The progress line: silent at first, moving while the work does, gone when it ends."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import pytest

from lftj import progress
from lftj.progress import Progress
from scantree import crew


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    for every in ("_LIVE_EVERY", "_NOTEBOOK_EVERY", "_PLAIN_EVERY"):
        monkeypatch.setattr(progress, every, 0.01)


def stderr(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, wish: str = "") -> io.StringIO:
    monkeypatch.setenv("LFTJ_PROGRESS", wish)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def work(seconds: float) -> None:
    line = Progress()
    with line.step("loading e"), line.step("evaluating"):
        told = line.rows(lambda: "tri")
        if told is not None:
            told(1234)
        time.sleep(seconds)


def test_quick_work_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, Terminal())
    work(0.01)
    assert seen.getvalue() == ""


SHOWN = "lftj: evaluating tri, 1,234 rows, 0 s (Ctrl-C stops)"


@pytest.mark.usefixtures("impatient")
def test_a_terminal_gets_one_line_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, Terminal())
    work(0.3)
    draws = seen.getvalue().split("\r")
    assert draws[1] == SHOWN
    assert draws[-2:] == [" " * len(SHOWN), ""]
    assert "\n" not in seen.getvalue()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (200, SHOWN),
        (len(SHOWN) + 1, SHOWN),
        (len(SHOWN), "lftj: evaluating tri, 1,234 rows, 0 s"),
        (38, "lftj: evaluating tri, 1,234 rows, 0 s"),
        (30, "lftj: evaluating tri, 1,2, 0 s"[:24] + ", 0 s"),
        (10, "lftj, 0 s"),
        (4, ", 0"),
    ],
)
def test_the_line_is_as_wide_as_the_terminal_and_never_wraps(
    monkeypatch: pytest.MonkeyPatch, columns: int, shown: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    seen = stderr(monkeypatch, Terminal())
    work(0.2)
    draws = seen.getvalue().split("\r")
    assert {draw.rstrip() for draw in draws} == {shown, ""}
    assert max(map(len, draws)) < columns


def test_a_terminal_that_becomes_narrower_keeps_nothing_of_the_wider_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, Terminal())
    line = progress.TerminalLine()
    monkeypatch.setenv("COLUMNS", "60")
    line.draw("x" * 100, ", 7 s")
    monkeypatch.setenv("COLUMNS", "25")  # 59 characters now take three rows
    line.draw("x" * 100, ", 7 s")
    monkeypatch.setenv("COLUMNS", "24")  # 24 take one still, and all of it
    line.clear()
    line.clear()  # nothing stands there
    wide, narrow = "x" * 54 + ", 7 s", "x" * 19 + ", 7 s"
    assert seen.getvalue() == f"\r{wide}\x1b[2A\r\x1b[J{narrow}\r\x1b[J\r"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_the_width_is_that_of_stderr_even_if_stdout_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb", 0) as screen:
        monkeypatch.setattr(sys, "stderr", terminal)
        line = progress.line_here()
        assert isinstance(line, progress.TerminalLine)
        for columns in (40, 120):
            fcntl.ioctl(terminal.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            line.draw("x" * 300, ", 7 s")
            assert len(screen.read(1000).strip(b"\r")) == columns - 1


class Kernel(ModuleType):
    """What a notebook's kernel has of IPython: one shell, and outputs that can be rewritten."""

    def __init__(self) -> None:
        super().__init__("IPython")
        self.kernel, self.execution_count = self, 1
        self.outputs: list[list[dict[str, str]]] = []  # of each, what it showed over time
        self.display = ModuleType("IPython.display")
        self.display.display = self.shown  # type: ignore[attr-defined]

    def get_ipython(self) -> Kernel:
        return self

    def shown(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        self.outputs.append([data])
        return Handle(self.outputs[-1])


class Handle:
    def __init__(self, output: list[dict[str, str]]) -> None:
        self._output = output

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self._output.append(data)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", kernel.display)
    return kernel


@pytest.mark.usefixtures("impatient")
def test_a_notebook_has_one_output_a_cell_that_is_empty_in_the_end(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    seen = stderr(monkeypatch, io.StringIO())
    line = Progress()
    for cell in (1, 2):
        kernel.execution_count = cell
        for _ in range(2):
            with line.step("evaluating a<b"):
                time.sleep(0.2)
    text = "lftj: evaluating a<b, 0 s (interrupt the kernel to stop)"
    full = {"text/plain": text, "text/html": f"<pre>{text.replace('<', '&lt;')}</pre>"}
    empty = {"text/plain": "", "text/html": ""}
    assert len(kernel.outputs) == 2
    for output in kernel.outputs:
        assert [data for i, data in enumerate(output) if data != output[i - 1]] == [full, empty, full, empty]
    assert seen.getvalue() == ""


@pytest.mark.usefixtures("impatient")
def test_quick_work_and_a_wish_leave_a_notebook_alone(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    stderr(monkeypatch, io.StringIO())
    work(0.01)
    monkeypatch.setenv("LFTJ_PROGRESS", "0")
    work(0.2)
    assert kernel.outputs == []


def test_a_shell_of_ipython_in_a_terminal_is_a_terminal(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    del kernel.kernel
    stderr(monkeypatch, Terminal())
    assert isinstance(progress.line_here(), progress.TerminalLine)
    stderr(monkeypatch, io.StringIO())
    assert progress.line_here() is None


@pytest.mark.usefixtures("impatient")
def test_lines_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, io.StringIO(), "1")
    work(0.3)
    assert set(seen.getvalue().splitlines()) == {SHOWN}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("stream", "wish"), [(io.StringIO(), ""), (Terminal(), "0")])
def test_silence(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, wish: str) -> None:
    seen = stderr(monkeypatch, stream, wish)
    work(0.2)
    assert seen.getvalue() == ""


@pytest.mark.usefixtures("impatient")
def test_the_line_goes_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, Terminal())
    line = Progress()

    def interrupted() -> None:
        with line.step("evaluating"):
            time.sleep(0.2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    blanked = "\r" + " " * len("lftj: evaluating, 0 s (Ctrl-C stops)") + "\r"
    assert seen.getvalue().endswith(blanked)
    with line.step("evaluating"):  # and the next work has its own
        time.sleep(0.2)
    assert seen.getvalue().count(blanked) == 2


@pytest.mark.parametrize("where", ["progress", "crew"])
def test_ctrl_c_while_a_thread_is_waited_for(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython's condition raises that its lock is not locked where a signal comes at the wrong moment: exit code 1."""

    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("release unlocked lock")

    if where == "progress":
        monkeypatch.setenv("LFTJ_PROGRESS", "1")
        shown = progress.Progress()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupted)
            with pytest.raises(KeyboardInterrupt), shown.step("evaluating"):
                pass
        with shown.step("evaluating"):
            pass
        return
    with monkeypatch.context() as patch:
        patch.setattr(threading.Event, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew.Shift.wait(SimpleNamespace(_news=threading.Event(), _error=None), 1.0)  # type: ignore[arg-type]
