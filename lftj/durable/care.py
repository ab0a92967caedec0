"""Care for a file: whether it is intact, a copy of it, and what it holds without what nobody asks for any more.

    check      SQLite's own check, every hash, every list of pages; and, if asked, derived relations against evaluation
    backup     a consistent copy, while others read and write
    compact    without segments that nothing names, and without the space that they left
    log        the entries, as data

Nothing of a file is executed. Each finding says what is damaged, and what becomes of it: a derived relation is
evaluated again when the file is opened, facts come from the log if that goes back to the beginning, and otherwise from
a backup only.
"""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.durable.checkpoint import SavedCheckpoint
from lftj.durable.container import Container, hash_of
from lftj.durable.entry import LogEntry
from lftj.durable.opening import entries_kept
from lftj.durable.segments import PageList
from lftj.errors import DatabaseFileError
from lftj.language.clause import INTERNAL

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile


class Damage(NamedTuple):
    """`what` is wrong with a file, and what to do: `remedy`. `lost`: whether an answer is lost by it."""

    what: str
    remedy: str
    lost: bool


class LogRow(NamedTuple):
    """An entry of the log: its number, its time, and in words what it did; bytes that it takes."""

    seq: int
    time: dt.datetime
    what: str
    size: int


def look(path: str | os.PathLike[str]) -> Container:
    """A file that is there, for reading, whatever the shape of its pages. `DatabaseFileError` if it is none of ours."""
    return Container(path, read_only=True, sync="full", page_rows=None)


def check(path: str | os.PathLike[str], *, opened: tuple[InFile, InFile] | None = None) -> list[Damage]:
    """Everything that is wrong with a file.

    `opened`: the file opened twice, read-only, to see whether derived relations are what their rules derive.
    """
    found: list[Damage] = []
    container = look(path)
    try:
        for (text,) in container.connection.execute("pragma integrity_check"):
            if text != "ok":
                found.append(Damage(f"SQLite says: {text}", "go back to a backup", lost=True))
        rebuilt = entries_kept(container) is not None
        bad = set(_damaged_rows(container))
        found += [_finding(table, key, rebuilt) for table, key in bad if table != "segments"]
        if not any(table == "checkpoints" for table, _ in bad):
            found += list(_damaged_pages(container, {key for table, key in bad if table == "segments"}, rebuilt))
    except sqlite3.Error as error:
        found.append(Damage(f"SQLite says: {error}", "go back to a backup", lost=True))
    finally:
        container.close()
    if opened is not None and not found:
        found += list(_wrong_answers(*opened))
    return found


def _finding(table: str, key: Any, rebuilt: bool) -> Damage:
    if table == "checkpoints" and rebuilt:
        return Damage(f"checkpoint {key} is damaged", "open the file: all is read from the log", lost=False)
    return Damage(f"{table} {key} is damaged", "go back to a backup", lost=True)


def _damaged_rows(container: Container) -> Iterator[tuple[str, Any]]:
    """(table, key) of every row whose hash is not that of what it holds."""
    run = container.connection.execute
    for seq, time, body, hash in run("select seq, time, entry, hash from log"):
        if hash_of(body, seq, time) != hash:
            yield "log", seq
    bodies = (("symbols", "first", "texts"), ("segments", "id", "body"), ("checkpoints", "seq", "body"))
    for table, key, held in bodies:
        for value, body, hash in run(f"select {key}, {held}, hash from {table}"):
            if hash_of(body, value) != hash:
                yield table, value
    for name, seq, body, hash in run("select relation, seq, delta, hash from deltas"):
        if hash_of(body, name, seq) != hash:
            yield "deltas", f"{name} {seq}"


def _damaged_pages(container: Container, bad: set[int], rebuilt: bool) -> Iterator[Damage]:
    """The relations whose pages are in damaged or missing segments."""
    there = {id for (id,) in container.connection.execute("select id from segments")}
    last = SavedCheckpoint.last(container)
    if last is None:
        return
    roles: dict[int, list[tuple[str, str]]] = {}
    for name, kept in last.header["relations"].items():
        for role, number in kept.items():
            roles.setdefault(number, []).append((role, name))
    for number, listed in enumerate(last.lists):
        named = listed.segments()
        for id in sorted((named & bad) | (named - there)):
            uses = roles.get(number, [])
            facts = [name for role, name in uses if role == "facts"]
            what = f"segment {id} is {'damaged' if id in there else 'missing'}"
            if not facts:
                names = ", ".join(f"`{name}`" for _, name in uses)
                yield Damage(f"{what}: {names}", "open the file: it is evaluated again", lost=False)
            elif rebuilt:
                yield Damage(f"{what}: `{facts[0]}`", "open the file: all is read from the log", lost=False)
            else:
                yield Damage(f"{what}: facts of `{facts[0]}`", "go back to a backup", lost=True)


def _wrong_answers(kept: InFile, anew: InFile) -> Iterator[Damage]:
    """The derived relations that are not what their rules derive from the facts."""
    anew._evaluator.state = anew._state.made_stale(anew._state.relations)
    for name in kept._state.strata.order:
        if name in kept._state.stale or name.startswith(INTERNAL):
            continue
        one, other = kept._current(name).content, anew._current(name).content
        if len(one) != len(other) or (one.columns() != other.columns()).any():
            yield Damage(f"`{name}` is not what its rules derive", "report it to us, with the file", lost=False)


def backup(path: str | os.PathLike[str], to: str | os.PathLike[str]) -> int:
    """Copy a file as it is at one moment; returns the bytes of the copy. What is there already is not overwritten."""
    target = Path(to)
    if target.exists():
        raise DatabaseFileError(
            f"{target} is there already", why="a backup overwrites nothing", remedy="name a file that is not there"
        )
    container = look(path)
    try:
        beside = target.with_name(f".{target.name}.{os.getpid()}.part")
        with container.failing("copy"):
            copy = sqlite3.connect(beside)
            try:
                container.connection.backup(copy)
                copy.execute("delete from meta where key = 'writer'")
                copy.commit()
                copy.execute("pragma journal_mode = delete")
            finally:
                copy.close()
        os.replace(beside, target)
    finally:
        container.close()
    return target.stat().st_size


def compact(database: InFile) -> tuple[int, int]:
    """Give back the space of a database's file that nothing takes any more; (bytes before, bytes after)."""
    container = database._in_file("compact").container
    before = container.path.stat().st_size
    database.checkpoint()
    with container.failing("compact"), container.lock:
        container.connection.execute("vacuum")
        container.connection.execute("pragma wal_checkpoint(truncate)")
    return before, container.path.stat().st_size


def log(path: str | os.PathLike[str], since: int = 0) -> Iterator[LogRow]:
    """The entries of the log after number `since`."""
    container = look(path)
    try:
        sql = "select seq, time, entry from log where seq > ? order by seq"
        for seq, time, body in container.connection.execute(sql, (since,)):
            yield LogRow(seq, dt.datetime.fromtimestamp(time, dt.UTC), _in_words(LogEntry.decoded(body)), len(body))
    finally:
        container.close()


def _in_words(entry: LogEntry) -> str:
    parts = []
    for step in entry.steps:
        if "rules" in step:
            count = len(step["rules"])
            parts.append(f"{count} item{'' if count == 1 else 's'} of a program")
        elif "drop" in step:
            parts.append(f"without {step['drop']}")
        elif "remove" in step:
            parts.append(f"without the rules of {step['remove']}")
        elif "paths" in step:
            parts.append(f"paths of {step['paths'][0]} counted")
    for name, change in entry.changes.items():
        come = int((change.kinds > 0).sum())
        gone = len(change.kinds) - come
        parts.append(f"{name} {' '.join([f'+{come:,}'] * bool(come) + [f'-{gone:,}'] * bool(gone))}")
    for name, listed in entry.pages.items():
        parts.append(f"{name} +{int(PageList.decoded(listed).rows.sum()):,}")
    return ", ".join(parts)
