"""`lftj check`, `log`, `backup` and `compact` of databases in files."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

import lftj
from lftj.durable import care
from tests.cli.conftest import Shell


@pytest.fixture
def shop(shell: Shell) -> Path:
    path = shell.folder / "shop.lftj"
    program = (
        ".decl edge(a:number, b:number) path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). edge(1, 2)."
    )
    with lftj.Database(program, path=path, retain=None) as db:
        with db.transaction() as tx:
            tx.insert("edge", [(2, 3), (3, 4)])
            tx.erase("edge", [(1, 2)])
        db.rules(".decl name(a:number, n:symbol) named(n) :- name(x, n), edge(x, _). all[] = count : { edge(_, _) }.")
        with db.transaction() as tx:
            tx.remove_rules("named")
        db.load("name", [(1, "ann"), (2, "bo")])
    return path


def test_the_log_in_words(shell: Shell, shop: Path) -> None:
    lines = [line[35:] for line in shell("log", "shop.lftj").out.splitlines()]
    assert lines == [
        "declares edge, rules of path, edge +1",
        "edge +2 -1",
        "declares name, rules of named all",
        "without the rules of named",
        "name +2",
    ]
    rows = [json.loads(line) for line in shell("log", "shop.lftj", "--json", "--since", "3").out.splitlines()]
    assert [row["seq"] for row in rows] == [4, 5]
    assert rows[0]["what"] == "without the rules of named"


def test_an_intact_file(shell: Shell, shop: Path) -> None:
    assert shell("check", "shop.lftj") == (0, "", "lftj: 1 database checked, no findings\n")
    assert shell("check", "--evaluate", "shop.lftj").code == 0


def test_damage_is_told(shell: Shell, shop: Path) -> None:
    with sqlite3.connect(shop) as raw:
        raw.execute("delete from log where seq = 5")
    raw.close()
    code, out, _ = shell("check", "shop.lftj")
    assert code == 3
    assert out == "shop.lftj: error: entry 5 of the log is missing\n  do: go back to a backup\n"
    with sqlite3.connect(shop) as raw:
        raw.execute("drop table deltas")
    raw.close()
    code, _, err = shell("check", "shop.lftj")
    assert code != 0
    assert "table deltas is not what lftj made" in err


def test_of_a_file_that_check_cannot_read_it_does_not_say_to_check_it(shell: Shell, shop: Path) -> None:
    shell.write({"part.lftj": shop.read_bytes()[:3000]})
    for arguments in (["part.lftj"], ["--json", "part.lftj"], ["--evaluate", "part.lftj"]):
        code, out, err = shell("check", *arguments)
        assert (code, out) == (3, "")
        assert err.endswith("  why: SQLite says: database disk image is malformed\n  do: go back to a backup\n")
    assert "  do: run `lftj check` on it, or go back to a backup\n" in shell("query", "edge(x, y)", "part.lftj").err


def test_a_backup_that_fails_leaves_nothing(shell: Shell, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            care.backup(shop, shell.folder / "copy.lftj")
    assert shell("backup", "shop.lftj", "nowhere/copy.lftj").code != 0
    assert [name for name in shell.names() if not name.endswith(("-wal", "-shm"))] == ["shop.lftj"]
    assert shell("backup", "shop.lftj", "copy.lftj").code == 0
    assert not [name for name in shell.names() if ".part" in name]
    assert shell("check", "copy.lftj").code == 0


def test_compact_keeps_everything(shell: Shell, shop: Path) -> None:
    with lftj.Database(path=shop, read_only=True) as db:
        before, then = {name: sorted(db[name]) for name in db}, sorted(db.at(1)["path"])
    assert shell("compact", "shop.lftj").code == 0
    assert shell("check", "shop.lftj").code == 0
    with lftj.Database(path=shop, read_only=True) as db:
        assert {name: sorted(db[name]) for name in db} == before
        assert sorted(db.at(1)["path"]) == then == [(1, 2)]


def test_a_file_in_use_is_named(shell: Shell, shop: Path) -> None:
    with lftj.Database(path=shop):
        code, _, err = shell("compact", "shop.lftj")
    assert code != 0
    assert "shop.lftj is in use: this process writes to it" in err
