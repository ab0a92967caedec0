"""Nothing of Python's is left with Arrow's threads when a text has been read.

Catches: a process that ends right after it has read a file, with "terminate called without an active exception" and
exit code 134 (once in some hundred, on a busy machine).
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import lftj
from lftj.io import read_ahead
from lftj.io.read_ahead import LetGo


class Held:
    pass


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """What Arrow reads texts from, each of which a thread holds for 0.2 seconds."""
    given = list[weakref.ref[Any]]()

    open_csv: Callable[..., Any] = pyarrow.csv.open_csv

    def watched(source: Any, *options: Any) -> Any:
        held, has_begun = [source], threading.Event()

        def hold() -> None:
            has_begun.set()
            time.sleep(0.2)
            held.clear()

        given.append(weakref.ref(source))
        threading.Thread(target=hold).start()
        has_begun.wait()
        return open_csv(source, *options)

    monkeypatch.setattr(pyarrow.csv, "open_csv", watched)
    return given


def test_it_waits_for_the_last_who_holds_it() -> None:
    held, may_go = [Held()], threading.Event()
    let_go = LetGo(held[0])
    thread = threading.Thread(target=lambda: (may_go.wait(), held.clear()))
    thread.start()
    may_go.set()
    assert let_go.wait()
    assert held == []
    thread.join()


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "PATIENCE", 0.01)
    held = Held()
    assert not LetGo(held).wait()


@pytest.mark.parametrize("text", ["1,a\n2,b\n", "1,a\nb,2\n"], ids=["well", "wrong"])
def test_a_load_ends_when_nobody_reads(text: str, tmp_path: Path, sources: list[weakref.ref[Any]]) -> None:
    (tmp_path / "e.csv").write_text(text)
    db = lftj.Database(".decl e(x:number, n:symbol)")
    with contextlib.nullcontext() if text.endswith("b\n") else pytest.raises(lftj.DataError):
        db.load("e", tmp_path / "e.csv")
    assert [source() for source in sources] == [None]


@pytest.mark.parametrize("content", [b"", b"ab"])
def test_content_is_copied(content: bytes) -> None:
    source = read_ahead.in_memory(content)
    held = source.read_buffer()
    assert held.to_pybytes() == content
    assert held.address != pa.py_buffer(content).address


def test_blocks_are_those_of_the_stream_and_memory_of_arrow() -> None:
    given = [b"abc", b"d", b"ef"]

    class Stream(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            assert size == 4
            return given.pop(0) if given else b""

    source = read_ahead.in_blocks(Stream())
    blocks = [source.read_buffer(4) for _ in range(4)]
    assert [block.to_pybytes() for block in blocks] == [b"abc", b"d", b"ef", b""]
    # Bytes of Python's are not to be written to.
    assert all(block.is_mutable for block in blocks)
