"""The progress line: silent at first, moving while the work does, gone when it ends."""

from __future__ import annotations

import io
import sys
import time

import pytest

from lftj import progress
from lftj.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_LIVE_EVERY", 0.01)
    monkeypatch.setattr(progress, "_PLAIN_EVERY", 0.01)


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


@pytest.mark.usefixtures("impatient")
def test_a_terminal_gets_one_line_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, Terminal())
    work(0.3)
    draws = seen.getvalue().split("\r")
    assert draws[1] == f"{'lftj: evaluating tri, 1,234 rows, 0 s (Ctrl-C stops)':<79}"
    assert draws[-2:] == [" " * 79, ""]
    assert "\n" not in seen.getvalue()


@pytest.mark.usefixtures("impatient")
def test_lines_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = stderr(monkeypatch, io.StringIO(), "1")
    work(0.3)
    assert set(seen.getvalue().splitlines()) == {"lftj: evaluating tri, 1,234 rows, 0 s (Ctrl-C stops)"}


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
    assert seen.getvalue().endswith("\r" + " " * 79 + "\r")
    with line.step("evaluating"):  # and the next work has its own
        time.sleep(0.2)
    assert seen.getvalue().count("\r" + " " * 79 + "\r") == 2
