"""What is refused of a database in a file, in words that say what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.durable import care
from lftj.errors import ArgumentError, DatabaseFileError, MemoryLimitError
from tests.cli.conftest import Shell, shell
from tests.durable.shop import opened

__all__ = ["shell"]


@pytest.mark.parametrize("path", ["x" * 300, "a\0b", "a\ud800b"])
@pytest.mark.parametrize("read_only", [False, True])
def test_paths_that_no_file_has(path: str, read_only: bool) -> None:
    with pytest.raises(DatabaseFileError, match="cannot open"):
        lftj.Database(path=path, read_only=read_only)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Catches: a lock file that is named instead, and a remedy that cannot help: to open it with read_only=True."""
    (tmp_path / "file").touch()
    (tmp_path / "link.lftj").symlink_to(tmp_path / "none" / "x.lftj")
    for name in ("none/x.lftj", "link.lftj"):
        with pytest.raises(DatabaseFileError) as caught:
            lftj.Database(path=tmp_path / name)
        assert str(caught.value) == (
            f"cannot make {tmp_path / name}\n"
            f"  why: there is no folder {tmp_path / 'none'}\n"
            "  do: make it first, or check the path"
        )
    with pytest.raises(DatabaseFileError, match=r"file is not a folder\n  do: check the path$"):
        lftj.Database(path=tmp_path / "file" / "x.lftj")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link.lftj"]


@pytest.mark.parametrize("given", [{"read_only": True}, {"retain": None}, {"retain": 0}])
def test_what_is_about_a_file_needs_one(given: dict[str, Any]) -> None:
    """`retain` was passed over."""
    (name,) = given
    with pytest.raises(ArgumentError, match=f"`{name}` cannot be(.|\n)*without a path there is none"):
        lftj.Database(**given)


def test_a_reader_makes_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path), opened(path, read_only=True) as reader:
        with pytest.raises(DatabaseFileError, match="was opened read-only") as caught:
            reader.checkpoint()
        assert caught.value.remedy == "call it where the file is open without read_only=True; `refresh` needs none"


@pytest.mark.parametrize("retain", [-1, True, 1.5, "all"])
def test_what_retain_may_be(tmp_path: Path, retain: Any) -> None:
    with pytest.raises(ArgumentError, match="0 or more; None keeps all"):
        lftj.Database(path=tmp_path / "shop.lftj", retain=retain)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda db: db.at(-1), "`when` cannot be -1"),
        (lambda db: db.at("1"), r"as in db\.at\(7\), or a time as a datetime"),
        (lambda db: list(db.changes("edge", since="1")), "`since` cannot be '1'"),
        (lambda db: db.changes("edge", since=0, limit=1), "`limit` cannot be 1"),
    ],
)
def test_moments_that_are_none(tmp_path: Path, ask: Callable[[lftj.Database], object], words: str) -> None:
    with opened(tmp_path / "shop.lftj", retain=None) as db, pytest.raises(ArgumentError, match=words):
        ask(db)


def test_a_copy_is_made_in_a_folder_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path):
        for to, words in (("none/copy.lftj", "there is no folder '.*none'"), ("x" * 300, "File name too long")):
            with pytest.raises(DatabaseFileError, match=words):
                care.backup(path, tmp_path / to)


def test_the_help_lists_every_strategy(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = shell("run", "--help").out
    assert "--maintain HEAD=auto|trace|delta|triggers|recompute" in told
    assert "--granularity HEAD=auto|node|interval" in told


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_memory_does_not_suffice_for(tmp_path: Path, read_only: bool) -> None:
    """It ended in what the pages say, which is no error of lftj's."""
    path = tmp_path / "n.lftj"
    with lftj.Database(".decl n(a:number, b:number)", path=path) as db:
        db.load("n", [(i, -i) for i in range(3_000)])
    with pytest.raises(MemoryLimitError):
        lftj.Database(path=path, memory_limit="50kB", read_only=read_only)
    with lftj.Database(path=path, memory_limit="10MB") as db:
        assert len(db["n"]) == 3_000
        db._arena.limit = db._arena.used
        with pytest.raises(MemoryLimitError):
            db.rules(".decl m(a:number)  m(1). m(2).")
        assert "m" not in db
        db._arena.limit = 1 << 30
        db.rules(".decl m(a:number)  m(1). m(2).")
    with lftj.Database(path=path) as db:
        assert sorted(db["m"]) == [(1,), (2,)]
