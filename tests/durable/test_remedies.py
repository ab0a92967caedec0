"""What is refused of a database in a file, in words that say what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lftj
from lftj.durable import care
from lftj.errors import DatabaseFileError
from tests.durable.shop import opened


@pytest.mark.parametrize("path", ["x" * 300, "a\0b", "a\ud800b"])
@pytest.mark.parametrize("read_only", [False, True])
def test_paths_that_no_file_has(path: str, read_only: bool) -> None:
    with pytest.raises(DatabaseFileError, match="cannot open"):
        lftj.Database(path=path, read_only=read_only)


def test_a_copy_is_made_in_a_folder_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "shop.lftj"
    with opened(path):
        for to, words in (("none/copy.lftj", "there is no folder '.*none'"), ("x" * 300, "File name too long")):
            with pytest.raises(DatabaseFileError, match=words):
                care.backup(path, tmp_path / to)
