"""Whether a file is intact: SQLite's own check, every hash, what is missing; and, if asked, answers.

Each finding says what is damaged, and what becomes of it: a derived relation is evaluated again when the file is
opened, facts come from the log if that goes back to the beginning, and otherwise from a backup only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.durable import ends, meta
from lftj.durable.checkpoint import SavedCheckpoint
from lftj.durable.container import Container
from lftj.durable.entry import LogEntry
from lftj.durable.hashes import CHECK, hash_of
from lftj.durable.opening import entries_kept
from lftj.durable.segments import PageList
from lftj.errors import DatabaseFileError
from lftj.language.clause import INTERNAL

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile

BACKUP = "go back to a backup"


class Damage(NamedTuple):
    """`what` is wrong with a file, and what to do: `remedy`. `lost`: whether an answer is lost by it."""

    what: str
    remedy: str
    lost: bool


def check(path: str | os.PathLike[str], *, opened: tuple[InFile, InFile] | None = None) -> list[Damage]:
    """Everything that is wrong with a file.

    `opened`: the file opened twice, read-only, to see whether derived relations are what their rules derive.
    `DatabaseFileError` if it cannot be read at all.
    """
    try:
        container = Container(path, read_only=True, sync="full", page_rows=None)
        try:
            with container.failing("read"):
                found = container.at_one_moment(lambda: list(_damage(container)))
        finally:
            container.close()
    except DatabaseFileError as error:
        if not error.remedy.startswith(CHECK):
            raise
        raise DatabaseFileError(error.what, where=error.where, why=error.why, remedy=BACKUP) from None
    if opened is not None and not found:
        found += list(_wrong_answers(*opened))
    return found


def _damage(container: Container) -> Iterator[Damage]:
    """What is damaged: each part is looked at whatever is said of the others."""
    yield from _looked_at(_told_by_sqlite, container)
    bad: set[tuple[str, Any]] = set()
    yield from _looked_at(_damaged_rows, container, bad)
    yield from _looked_at(_missing_rows, container, bad)
    if not any(table in ("checkpoints", "log") for table, _ in bad):
        yield from _looked_at(_damaged_pages, container, {key for table, key in bad if table == "segments"})


def _looked_at(look: Callable[..., Iterator[Damage]], *given: Any) -> Iterator[Damage]:
    """What `look` finds, and whatever keeps it from going on."""
    try:
        yield from look(*given)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield Damage(f"SQLite says: {error}", BACKUP, lost=True)
    except DatabaseFileError as error:
        yield Damage(error.what.removeprefix("the file is damaged: "), BACKUP, lost=True)


def _told_by_sqlite(container: Container) -> Iterator[Damage]:
    for (text,) in container.connection.execute("pragma integrity_check"):
        if text != "ok":
            yield Damage(f"SQLite says: {text}", BACKUP, lost=True)


def _damaged_rows(container: Container, bad: set[tuple[str, Any]]) -> Iterator[Damage]:
    """Every row whose hash is not that of what it holds: (table, key) into `bad`."""
    for table, key in _bad_rows(container):
        bad.add((table, key))
        if table == "checkpoints" and entries_kept(container) is not None:
            yield Damage(f"{table} {key} is damaged", "open the file: all is read from the log", lost=False)
        elif table != "segments":
            yield Damage(f"{table} {key} is damaged", BACKUP, lost=True)


def _bad_rows(container: Container) -> Iterator[tuple[str, Any]]:
    run = container.connection.execute
    for seq, time, body, hash in run("select seq, time, entry, hash from log"):
        if hash_of(body, seq, time) != hash:
            yield "log", seq
    for first, count, texts, hash in run("select first, count, texts, hash from symbols"):
        if hash_of(texts, first, count) != hash:
            yield "symbols", first
    for table, key in (("segments", "id"), ("checkpoints", "seq")):
        for value, body, hash in run(f"select {key}, body, hash from {table}"):
            if hash_of(body, value) != hash:
                yield table, value
    for name, seq, last, body, hash, time in run(
        "select relation, seq, last, delta, d.hash, time from deltas d left join log using (seq)"
    ):
        if hash_of(body, name, seq, last, time) != hash:
            yield "deltas", f"{name} {seq}"


def _missing_rows(container: Container, bad: set[tuple[str, Any]]) -> Iterator[Damage]:
    """Rows that are not there any more, though nobody dropped them."""
    run = container.connection.execute
    for key in meta.KEYS:
        yield from _looked_at(_missing, container.meta, key)
    yield from _looked_at(_missing, meta.retained, container.connection)
    yield from _looked_at(_missing, meta.mark_of, container.connection)
    yield from _looked_at(_missing, ends.dropped_at, container)
    checkpoint = run("select max(seq) from checkpoints").fetchone()[0] or 0
    last, oldest = ends.last_of(container, ends.LOG), ends.last_of(container, ends.DROPPED) + 1
    seqs = [seq for (seq,) in run("select seq from log where seq >= ? order by seq", (oldest,))]
    for one, other in pairwise([oldest - 1, *seqs, max(last, checkpoint) + 1]):
        if other == one + 2:
            yield Damage(f"entry {one + 1} of the log is missing", BACKUP, lost=True)
        elif other > one + 2:
            yield Damage(f"entries {one + 1} to {other - 1} of the log are missing", BACKUP, lost=True)
    try:
        ends.check(container, ends.CHECKPOINTS, checkpoint)
    except DatabaseFileError as error:
        rebuilt = entries_kept(container) is not None
        remedy = "open the file: all is read from the log" if rebuilt else BACKUP
        yield Damage(error.what.removeprefix("the file is damaged: "), remedy, lost=not rebuilt)
    yield from _looked_at(_missing, ends.check, container, ends.LOG, max([*seqs, checkpoint]))
    texts = 0
    for first, count in run("select first, count from symbols order by first"):
        if ("symbols", first) in bad:
            continue
        if first != texts:
            yield Damage(f"symbols from {texts} on are missing", BACKUP, lost=True)
        texts = first + count
    yield from _looked_at(_missing, ends.check, container, ends.SYMBOLS, texts)
    yield from _missing_deltas(container, oldest, bad)


def _missing(look: Callable[..., object], *given: Any) -> Iterator[Damage]:
    """Nothing, or the error of `look`."""
    look(*given)
    yield from ()


def _missing_deltas(container: Container, oldest: int, bad: set[tuple[str, Any]]) -> Iterator[Damage]:
    """Changes of derived relations, from entry `oldest` on, that are not there."""
    run = container.connection.execute
    there: dict[str, int] = {}
    for name, seq, last in run("select relation, seq, last from deltas order by relation, seq"):
        if ("deltas", f"{name} {seq}") in bad:
            continue
        if last != there.get(name, last) or (name not in there and last >= oldest):
            yield Damage(f"deltas {name} {last} is missing", BACKUP, lost=True)
        there[name] = seq
    for (named,) in run("select name from ends where name like 'deltas %'").fetchall():
        last = ends.last_of(container, named)
        if last >= oldest and there.get(named.removeprefix("deltas ")) != last:
            yield Damage(f"{named} {last} is missing", BACKUP, lost=True)


def _damaged_pages(container: Container, bad: set[int]) -> Iterator[Damage]:
    """The relations whose pages are in damaged or missing segments."""
    there = {id for (id,) in container.connection.execute("select id from segments")}
    last = SavedCheckpoint.last(container)
    rebuilt = entries_kept(container) is not None
    uses: list[tuple[PageList, list[tuple[str, str]]]] = []
    if last is not None:
        roles: dict[int, list[tuple[str, str]]] = {}
        for name, kept in last.header["relations"].items():
            for role, number in kept.items():
                roles.setdefault(number, []).append((role, name))
        uses += [(listed, roles.get(number, [])) for number, listed in enumerate(last.lists)]
        for one in last.followed(container):
            uses += [(listed, [(role, one.head)]) for role, listed in one.lists.items()]
    after = 0 if last is None else last.seq
    for (entry,) in container.connection.execute("select entry from log where seq > ? order by seq", (after,)):
        pages = LogEntry.decoded(entry).pages
        uses += [(PageList.decoded(listed), [("facts", name)]) for name, listed in pages.items()]
    for listed, names in uses:
        named = listed.segments()
        for id in sorted((named & bad) | (named - there)):
            facts = [name for role, name in names if role == "facts"]
            contents = [name for role, name in names if role in ("facts", "content")]
            what = f"segment {id} is {'damaged' if id in there else 'missing'}"
            if not contents:
                order = ", ".join(f"{role} of `{name}`" for role, name in names)
                yield Damage(f"{what}: {order}", "none: it is made again when it is needed", lost=False)
            elif not facts:
                heads = ", ".join(f"`{name}`" for name in contents)
                yield Damage(f"{what}: {heads}", "open the file: it is evaluated again", lost=False)
            elif rebuilt:
                yield Damage(f"{what}: `{facts[0]}`", "open the file: all is read from the log", lost=False)
            else:
                yield Damage(f"{what}: facts of `{facts[0]}`", BACKUP, lost=True)


def _wrong_answers(kept: InFile, anew: InFile) -> Iterator[Damage]:
    """The derived relations that are not what their rules derive from the facts."""
    anew._evaluator.state = anew._state.made_stale(anew._state.relations)
    for name in kept._state.strata.order:
        if name in kept._state.stale or name.startswith(INTERNAL):
            continue
        one, other = kept._current(name).content, anew._current(name).content
        if len(one) != len(other) or (one.columns() != other.columns()).any():
            yield Damage(f"`{name}` is not what its rules derive", "report it to us, with the file", lost=False)
