"""Fixtures for the readers: a schema, a symbol table, and reading a source into rows of values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lftj.io.read_options import ReadOptions
from lftj.io.sources import read
from lftj.io.staging import Loaded
from lftj.values.gate import to_rows
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable


def schema(declared: str, name: str = "edge") -> Schema:
    """`schema("src:number dst:number")`."""
    return Schema(name, tuple(Column(*column.split(":")) for column in declared.split()))


class Reader:
    """Reads into one table and gives Python rows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.symbols = folder, SymbolTable()

    def file(self, name: str, content: bytes | str) -> str:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    def load(self, source: Any, declared: str, **options: Any) -> Loaded:
        loaded = read(source, schema(declared), self.symbols, ReadOptions(**options))
        for column in loaded.columns:
            assert column.dtype == "int64"
            assert column.flags.c_contiguous
            assert column.flags.writeable
            assert len(column) == loaded.rows
        return loaded

    def rows(self, source: Any, declared: str, **options: Any) -> list[tuple[Any, ...]]:
        loaded = self.load(source, declared, **options)
        return list(to_rows(schema(declared), loaded.columns, self.symbols, rows=loaded.rows))

    def refusal(self, source: Any, declared: str, **options: Any) -> str:
        """The message of the error that reading must raise; nothing may be interned by it."""
        before = len(self.symbols)
        with pytest.raises(options.pop("error", ValueError)) as caught:
            read(source, schema(declared), self.symbols, ReadOptions(**options))
        assert len(self.symbols) == before
        return str(caught.value)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    return Reader(tmp_path)


@pytest.fixture
def both_ways(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[Any]]:
    """Runs a reading as it comes, then with the fast reader switched off."""

    def run(reading: Callable[[], Any]) -> list[Any]:
        fast = reading()
        with monkeypatch.context() as patched:
            patched.setattr("lftj.io.read_text._read_fast", lambda *_: None)
            return [fast, reading()]

    return run
