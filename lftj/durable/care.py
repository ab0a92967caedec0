"""Care for a file: a copy of it, and what it holds without what nobody asks for any more.

    backup     a consistent copy, while others read and write
    compact    without segments that nothing names, and without the space that they left
    log        the entries, in words

Nothing of a file is executed. Whether one is intact says checking.py.
"""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lftj.arguments import file_name
from lftj.durable import meta
from lftj.durable.container import READ, RECORD_END, Container, stat_of
from lftj.durable.entry import LogEntry
from lftj.durable.hashes import intact
from lftj.durable.kept_ast import restored
from lftj.durable.log_mark import Mark
from lftj.durable.segments import PageList
from lftj.errors import DatabaseFileError
from lftj.language import ast

# Names of relations that are told of one change of rules.
NAMES = 8

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile


class LogRow(NamedTuple):
    """An entry of the log: its number, its time, and in words what it did; bytes that it takes."""

    seq: int
    time: dt.datetime
    what: str
    size: int


def look(path: str | os.PathLike[str]) -> Container:
    """A file that is there, for reading, whatever the shape of its pages. `DatabaseFileError` if it is none of ours."""
    return Container(path, read_only=True, sync="full", page_rows=None)


def backup(path: str | os.PathLike[str], to: str | os.PathLike[str]) -> int:
    """Copy a file as it is at one moment; returns the bytes of the copy. What is there already is not overwritten."""
    target = Path(file_name(to))
    if stat_of(target) is not None:
        raise DatabaseFileError(
            f"{target} is there already", why="a backup overwrites nothing", remedy="name a file that is not there"
        )
    for end in ("-wal", "-shm", "-journal"):
        left = target.with_name(target.name + end)
        if stat_of(left) is not None:
            raise DatabaseFileError(
                f"{left} is there, and {target} is not",
                why="a process that wrote to a file of this name left it, and SQLite would take it for the copy's",
                remedy="name another file; or remove it, if nobody puts the file back that it was beside",
            )
    if not target.absolute().parent.is_dir():
        raise DatabaseFileError(
            f"cannot copy {os.fspath(path)} to {target}",
            why=f"there is no folder {str(target.parent)!r} to make it in",
            remedy="make the folder, or name a file in one that is there",
        )
    container = look(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with container.failing("copy"):
            copy = sqlite3.connect(beside)
            try:
                container.connection.backup(copy)
                copy.execute(RECORD_END)
                if copy.execute("pragma user_version").fetchone()[0] != READ[0]:  # files of that version have no mark
                    meta.put(copy, "log", str(Mark.of_copy()))
                copy.commit()
                copy.execute("pragma journal_mode = delete")
            finally:
                copy.close()
        os.replace(beside, target)
    except DatabaseFileError:  # an OSError too
        raise
    except OSError as error:
        raise DatabaseFileError(
            f"cannot copy {container.path} to {target}",
            why=f"the system says: {error.strerror}",
            remedy="make room there, or name another file; the copy was not made",
        ) from None
    finally:
        beside.unlink(missing_ok=True)
        container.close()
    return target.stat().st_size


def compact(database: InFile) -> tuple[int, int]:
    """Give back the space of a database's file that nothing takes any more; (bytes before, bytes after)."""
    container = database._in_file("compact").container
    before = container.place.stat().st_size
    database.checkpoint()
    with container.failing("compact"), container.lock:
        container.connection.execute("vacuum")
        container.take_over()
    return before, container.place.stat().st_size


def log(path: str | os.PathLike[str], since: int = 0) -> Iterator[LogRow]:
    """The entries of the log after number `since`."""
    container = look(path)
    try:
        sql = "select seq, time, entry, hash from log where seq > ? order by seq"
        with container.failing("read"):
            for seq, time, body, hash in container.connection.execute(sql, (since,)):
                entry = LogEntry.decoded(intact(body, hash, "log", seq, time))
                yield LogRow(seq, dt.datetime.fromtimestamp(time, dt.UTC), _in_words(entry), len(body))
    finally:
        container.close()


def _program_in_words(items: Sequence[ast.Item]) -> list[str]:
    """What a program that is added has: the relations that it declares, and those that it has rules of."""
    declared = [item.name for item in items if isinstance(item, ast.Declaration)]
    rules = [item for item in items if isinstance(item, ast.Rule) and not _is_fact(item)]
    parts = [("declares", declared), ("rules of", [head.name for rule in rules for head in rule.heads])]
    return [f"{what} {_listed(names)}" for what, names in parts if names] or ["facts of a program"]


def _is_fact(rule: ast.Rule) -> bool:
    values = [value for head in rule.heads for value in head.args]
    return not rule.body and all(isinstance(value, ast.Constant) for value in values)


def _listed(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - NAMES
    return " ".join(distinct[:NAMES]) + (f" and {more} more" if more > 0 else "")


def _in_words(entry: LogEntry) -> str:
    parts = []
    for step in entry.steps:
        if "rules" in step:
            parts += _program_in_words(restored(step["rules"]))
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
