"""What was: the changes of a relation since an entry of the log, the database as it was then, and copies to try things.

    db.changes("tri", since=7)     (seq, time, delta) of every entry after 7 that changed the relation, exact
    db.at(7), db.at(datetime)      a snapshot of the database as it was after that entry
    db.branch()                    a writable copy in memory, which shares all pages with the original
    branch.diff(db)                how the relations of the one differ from those of the other

Changes of derived relations are kept beside the log (`retain=`), so that asking costs no more than the rows that come
back. A database as it was is a branch from which the entries since are taken back: facts share pages with the present
ones, and what is derived follows the net change as in any transaction.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lftj import arguments
from lftj.durable import ends
from lftj.durable.database_file import DatabaseFile
from lftj.durable.entry import LogEntry, Step, decoded, inverse, netted
from lftj.durable.hashes import damaged, intact
from lftj.durable.log_writing import NOT_KEPT
from lftj.durable.opening import AT_A_TIME, Row, changed_facts, committed, rows_after
from lftj.durable.program_log import after
from lftj.errors import DatabaseFileError, DataError, EvaluationError
from lftj.language.clause import INTERNAL
from lftj.program.state import State
from lftj.results.transaction_delta import Delta, Deltas
from lftj.store.change import Change

if TYPE_CHECKING:
    from lftj.durable.in_file import InFile


Held = TypeVar("Held", bound="InFile")


class Changed(NamedTuple):
    """What entry `seq`, which was written at `time`, changed in a relation."""

    seq: int
    time: dt.datetime
    delta: Delta


def changes_since(database: InFile, file: DatabaseFile, name: str, since: int) -> Iterator[Changed]:
    """What each entry after number `since` changed in a relation, in order; entries that did not are left out."""
    with file.container.failing("read"):
        file.flush()
        _check_entry(file, "since", since, "since=7")
    relation, symbols, upto = database._state.relations[name], database._symbols, file.seq
    derived = name in database._state.strata.by_head
    _refuse_across(file, name, since, upto, ("drop",) if derived else ("drop", "remove"))
    if derived:
        with file.container.failing("read"):
            begun = file.container.meta("history")
        if begun is None:
            raise DataError(
                f"the changes of `{name}` were not kept",
                why="it is derived, and the file keeps changes of derived relations only where history is asked for",
                remedy="open the database with `retain=`, the number of entries to keep, or None for all",
            )
        if since < begun:
            raise DataError(
                f"the changes of `{name}` before entry {begun + 1} were not kept",
                why="the file was written to without `retain=` until then",
                remedy=f"ask for the changes since {begun}; `db.at` gives `{name}` as it was before",
            )
        before = since
        for seq, time, last, body, hash in _deltas(file, name, since):
            kept = intact(body, hash, "deltas", name, seq, last, time)
            if last > since if before == since else last != before:
                raise _missing(file, before, damaged(f"deltas {name} {last} is missing"))
            if seq > upto:
                return
            before = seq
            if kept == NOT_KEPT:
                how = "by a load, or its rules, or while it had no value"
                raise _loaded(name, seq, f"entry {seq} changed what `{name}` is derived from {how}")
            yield Changed(seq, _moment(time), Delta(relation.schema, decoded(kept), symbols))
        with file.container.failing("read"):
            if before < (last := ends.last_of(file.container, ends.of_deltas(name))) <= upto:
                raise _missing(file, before, damaged(f"deltas {name} {last} is missing"))
        return
    for row in _entries(file, since, upto):
        if name in row.entry.pages:
            raise _loaded(name, row.seq, f"entry {row.seq} loaded `{name}` as a whole")
        if name in row.entry.changes:
            yield Changed(row.seq, _moment(row.time), Delta(relation.schema, row.entry.changes[name], symbols))


def _entries(file: DatabaseFile, since: int, upto: int) -> Iterator[Row]:
    """The entries after `since`, as far as `upto`. `DataError` if a checkpoint drops them while they are read."""
    at = since
    try:
        for row in rows_after(file.container, since, upto):
            at = row.seq
            yield row
    except DatabaseFileError as error:
        raise _missing(file, at, error) from None


def _missing(file: DatabaseFile, seq: int, error: DatabaseFileError) -> Exception:
    """The error where what came after entry `seq` is not there: `error`, unless a checkpoint has dropped it."""
    with file.container.lock, file.container.failing("read"):
        last = ends.last_of(file.container, ends.DROPPED)
    return error if last <= seq else _not_kept(f"what came after entry {seq}", last + 1)


def _not_kept(what: str, oldest: int) -> DataError:
    return DataError(
        f"{what} is not kept any more",
        why=f"the oldest entry that is kept is {oldest}",
        remedy="open the database with a larger `retain=`, or retain=None to keep all, from now on",
    )


def _deltas(file: DatabaseFile, name: str, since: int) -> Iterator[tuple[int, float, int, bytes, bytes]]:
    """The changes of a derived relation that are kept, read some at a time."""
    sql = """select d.seq, l.time, d.last, d.delta, d.hash from deltas d join log l on l.seq = d.seq
             where d.relation = ? and d.seq > ? order by d.seq limit ?"""
    while True:
        with file.container.lock, file.container.failing("read"):
            rows = file.container.connection.execute(sql, (name, since, AT_A_TIME)).fetchall()
        yield from rows
        if len(rows) < AT_A_TIME:
            return
        since = rows[-1][0]


def _refuse_across(file: DatabaseFile, name: str, since: int, upto: int, kinds: Sequence[str]) -> None:
    """`DataError` if an entry after `since` has such a step of the relation: before, it was another, or was derived."""

    def found(steps: Sequence[Step]) -> list[Step]:
        return [step for step in steps if any(step.get(kind) == name for kind in kinds)]

    if not found(file.steps):
        return  # as a rule, and then the log need not be read
    sql = """select seq, time, entry, hash from log
             where seq > ? and seq <= ? and instr(entry, cast('"steps"' as blob)) > 0 order by seq desc"""
    with file.container.lock, file.container.failing("read"):
        rows = file.container.connection.execute(sql, (since, upto)).fetchall()
    for seq, time, body, hash in rows:
        for step in found(LogEntry.decoded(intact(body, hash, "log", seq, time)).steps):
            what = f"dropped what was `{name}` before" if "drop" in step else f"removed the rules of `{name}`"
            raise _loaded(name, seq, f"entry {seq} {what}")


def _loaded(name: str, seq: int, what: str) -> DataError:
    return DataError(
        what,
        why="only what transactions change is kept row by row",
        remedy=f"ask for the changes since {seq}; `db.at` gives `{name}` as it was before and after",
    )


def _check_entry(file: DatabaseFile, argument: str, seq: object, example: str) -> None:
    """`DataError` if an argument is no number of an entry, or what came after that entry is not kept."""
    if type(seq) is not int or seq < 0:
        raise arguments.refused(
            argument,
            seq,
            "it is the number of an entry: transactions, loads and rules are numbered from 1 on",
            f"give the number that `db.seq` had, as in {example}",
        )
    if seq > file.seq:
        if file.read_only and seq <= _last(file):
            raise DataError(
                f"entry {seq} is in the file, and this reader is at entry {file.seq}",
                why="a reader is as its writer was when it was opened, or last refreshed",
                remedy="call `refresh` first, which takes up what was committed since",
            )
        raise DataError(
            f"there is no entry {seq} yet", why=f"the last one is {file.seq}", remedy="give one that was written"
        )
    oldest = file.container.connection.execute("select min(seq) from log").fetchone()[0]
    if seq < file.seq and (oldest is None or oldest > seq + 1):
        raise _not_kept(f"what came after entry {seq}", file.seq + 1 if oldest is None else oldest)


def _last(file: DatabaseFile) -> int:
    """The number of the last entry of the file, which a reader may not have taken up."""
    last = file.container.connection.execute("select max(seq) from log").fetchone()[0]
    return max(last or 0, ends.last_of(file.container, ends.DROPPED))


def _moment(time: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(time, dt.UTC)


def as_of(database: InFile, file: DatabaseFile, when: int | dt.datetime) -> InFile:
    """A copy in memory of the database as it was after entry `when`, or at that time."""
    with database._lock, file.container.failing("read"), file.container.lock:
        file.flush()
        seq = _number_at(file, when)
        _check_entry(file, "when", seq, "db.at(7), or a time as a datetime")
        made: InFile = branch_of(database)
        upto, steps = file.seq, list(file.steps)
    taken: dict[str, list[Change]] = {}
    emptied: set[str] = set()  # what was empty, or not there, at some time since: that is where to go back from
    undone, lost = 0, dict[str, int]()
    for row in _entries(file, seq, upto):
        undone += len(row.entry.steps)
        for name in [step["drop"] for step in row.entry.steps if "drop" in step]:
            if name not in emptied and name in row.entry.dropped:
                taken.setdefault(name, []).append(inverse(row.entry.dropped[name]))
            elif name not in emptied:
                lost[name] = row.seq
            emptied.add(name)
        for name, change in row.entry.changes.items():
            if name not in emptied:
                taken.setdefault(name, []).append(inverse(change))
        emptied |= row.entry.pages.keys()
    net = {name: change for name, changes in taken.items() if len((change := netted(changes)).kinds)}
    if not undone and not emptied:
        try:
            if net:
                committed(made, net)
            return made
        except EvaluationError:  # a head had no value then, and the others are to be read
            pass
    _rebuild(made, steps[: len(steps) - undone], net, emptied)
    for name in lost.keys() & made._state.relations.keys():
        raise _loaded(name, lost[name], f"entry {lost[name]} dropped `{name}`, and what it held was not kept")
    return made


def _number_at(file: DatabaseFile, when: int | dt.datetime) -> int:
    if not isinstance(when, dt.datetime):
        return when
    try:
        moment = when.timestamp()
    except (ValueError, OverflowError):  # of a local time that has none in UTC: in year 1, or 9999
        moment = math.copysign(math.inf, when.year - 5000)
    sql = "select max(seq) from log where time <= ?"
    found = file.container.connection.execute(sql, (moment,)).fetchone()[0]
    if found is None:
        oldest = file.container.connection.execute("select min(seq) from log").fetchone()[0]
        before = _last(file) if oldest is None else int(oldest) - 1
        dropped = ends.dropped_at(file.container)
        if before and (dropped is None or dropped[1] > moment):
            raise _not_kept(f"what was at {when}", before + 1)
        return before
    sql = "select time, entry, hash from log where seq = ?"
    time, body, hash = file.container.connection.execute(sql, (found,)).fetchone()
    intact(body, hash, "log", found, time)
    return int(found)


def _rebuild(made: InFile, steps: Sequence[Step], net: Mapping[str, Change], emptied: set[str]) -> None:
    """Make a branch have the program of these steps, and the facts of then; heads are evaluated when they are read."""
    now = made._state
    state = State()
    for step in steps:
        state = after(state, step, made._new, made._symbols)
    for name, relation in state.relations.items():
        held = relation if name in emptied else now.relations.get(name)
        if held is None or name.startswith(INTERNAL):
            continue
        facts = changed_facts(held.facts, net[name]) if name in net else held.facts
        content = relation.content if name in state.strata.by_head else facts
        state.relations[name] = (
            held.successor(content, facts) if content is facts else relation.successor(content, facts)
        )
    made._evaluator.state = state.made_stale(state.relations)


def branch_of(database: Held) -> Held:
    """A writable copy of a database, in memory, that shares all pages and texts with it."""
    made = type(database)()
    with database._lock:
        made._arena, made._symbols = database._arena, database._symbols
        relations = {name: relation.frozen() for name, relation in database._state.relations.items()}
        made._evaluator = database._evaluator.over(database._state._replace(relations=relations), apart=True)
        made._evaluator.rounds = database._evaluator.rounds.apart()
        made._evaluator.circuits = {op: attached.apart() for op, attached in database._evaluator.circuits.items()}
    return made


def difference(database: InFile, other: InFile) -> Deltas:
    """What `database` has and `other` has not is inserted, the reverse is erased; of relations that both have."""
    if database._arena is not other._arena:
        raise DataError(
            "the two databases share no pages",
            why="differences are taken between a database and its branches",
            remedy="compare a branch with the database that it was made of, `branch.diff(db)`",
        )
    if database._symbols is not other._symbols:
        raise DataError(
            "the two databases number their texts in different ways",
            why="`refresh` has taken up texts in one of them since the branch was made",
            remedy="make the branch again",
        )
    for one in (database, other):
        with one._lock:
            one._refresh_all(None)
    mine, theirs = database._state.relations, other._state.relations
    changes = {}
    for name, relation in mine.items():
        if name not in theirs:
            continue
        schema = theirs[name].schema
        if relation.schema.columns == schema.columns:
            change = Change.between(theirs[name].content, relation.content)
            if len(change.kinds):
                changes[name] = change
        elif not name.startswith(INTERNAL):
            raise DataError(
                f"`{name}` has other columns in the one database than in the other",
                why=f"it is {relation.schema} and {schema}, and a difference is of rows with the same columns",
                remedy=f"read `{name}` in both; a branch that is made now has the columns of now",
            )
    return Deltas(changes, {}, database._evaluator, {name: mine[name].schema for name in changes})
