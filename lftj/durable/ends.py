"""The last row of each table, as the table `ends` has it: rows that are lost there would be missed by nobody else.

Rows before the last one are missed by what comes after them: entries are numbered without gaps, texts too, segments are
named by checkpoints and entries, and the changes of a derived relation name the ones before (`last`).

Entries that are in SQLite's write-ahead log only may not be recorded yet (container.py): that has checksums.
"""

from __future__ import annotations

from lftj.durable import meta
from lftj.durable.container import Container
from lftj.durable.hashes import damaged

CHECKPOINTS, LOG, SYMBOLS, DROPPED = "checkpoints", "log", "symbols", "dropped"
_LAST_ROW = {
    LOG: "select hash from log where seq = ?",
    SYMBOLS: "select hash from symbols where first + count = ? order by first desc limit 1",
    CHECKPOINTS: "select hash from checkpoints where seq = ?",
}


def of_deltas(relation: str) -> str:
    """What the changes of a relation are called in `ends`."""
    return f"deltas {relation}"


def last_of(container: Container, name: str) -> int:
    """The last number that was written to a table; 0 if none was."""
    found = container.connection.execute("select last from ends where name = ?", (name,)).fetchone()
    if found is not None and type(found[0]) is not int:
        raise damaged(f"ends {name}")
    return 0 if found is None else int(found[0])


def check(container: Container, name: str, there: int) -> None:
    """`DatabaseFileError` if number `there`, the last that was found in a table, is not the last that was written.

    An entry of the log may have been dropped by a checkpoint: then there is no row. Those after it may not be recorded.
    """
    found = container.connection.execute("select last, hash from ends where name = ?", (name,)).fetchone()
    if found is None:
        raise damaged(f"ends {name} is missing")
    last, hash = found
    if last > there or (last < there and name != LOG):
        raise damaged(f"{name} ends with {there}, and the last that was written is {last}")
    row = container.connection.execute(_LAST_ROW[name], (last,)).fetchone()
    if row is None and (name != LOG and last):
        raise damaged(f"{name} {last} is missing")
    if row is not None and row[0] != hash:
        raise damaged(f"{name} {last} is not what was written last")


def drop(container: Container, seq: int) -> None:
    """Drop the entries as far as `seq` from the log, and what they changed; the time of the last one is kept."""
    run = container.connection.execute
    last = run("select time from log where seq = ?", (seq,)).fetchone()
    if last is not None:
        container.set_meta(DROPPED, f"{seq} {last[0]!r}")
    run("delete from log where seq <= ?", (seq,))
    run("delete from deltas where seq <= ?", (seq,))
    run("delete from ends where name like 'deltas %' and last <= ?", (seq,))
    run("update ends set last = max(last, ?) where name = 'dropped'", (seq,))


def dropped_at(container: Container) -> tuple[int, float] | None:
    """The number of the last entry that was dropped, and a time at which it was there already; None if none is known.

    That of the entry itself; in a file that was made before that was kept, the time of the last checkpoint.
    """
    run = container.connection.execute
    if meta.has(container.connection, DROPPED):
        seq, time = container.meta(DROPPED).split(" ")
        return int(seq), float(time)
    found: tuple[int, float] | None = run("select seq, time from checkpoints order by seq desc limit 1").fetchone()
    return found


def taken_back(container: Container, seq: int) -> None:
    """Entry `seq` is the last one again, and what texts and changes of derived relations are there are all.

    With sync="off" that entry may still wait in memory: then the log ends before it, as `ends` has it.
    """
    run = container.connection.execute
    run(
        """update ends set last = ?1, hash = coalesce((select hash from log where seq = ?1), x'')
           where name = 'log' and last > ?1""",
        (seq,),
    )
    for (name,) in run("select name from ends where name like 'deltas %' and last > ?", (seq,)).fetchall():
        row = run(
            "select seq, hash from deltas where relation = ? order by seq desc limit 1", (name.removeprefix("deltas "),)
        ).fetchone()
        if row is None:
            run("delete from ends where name = ?", (name,))
        else:
            run("update ends set last = ?, hash = ? where name = ?", (*row, name))
