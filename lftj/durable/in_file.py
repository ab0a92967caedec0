"""What a database offers beside its relations and rules: its file, its history, and copies to try things in.

`Database` is made of this and of `Answers`. A database in memory has branches and differences, and nothing else of it;
`sqlite3` is imported where a path is given.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, overload

import numpy as np

from lftj import arguments
from lftj.errors import DatabaseFileError, DataError, TransactionError
from lftj.language.clause import INTERNAL
from lftj.maintain.refused_calls import inside_call
from lftj.results.watching import Watched

if TYPE_CHECKING:
    import weakref

    from lftj.durable.database_file import DatabaseFile
    from lftj.durable.history import Changed
    from lftj.language.clause import Directive
    from lftj.maintain.commit import Commit
    from lftj.maintain.step import KeptHeads
    from lftj.program.rule_options import RuleOptions
    from lftj.program.state import State
    from lftj.program.strata import Strata
    from lftj.results.commit_feed import CommitFeed
    from lftj.results.transaction_delta import Deltas
    from lftj.store.change import Change
    from lftj.values.symbols import SymbolTable
    from scantree.memory import Arena
    from scantree.version import Version


class Publishing:
    """The block of `InFile._publishing`: no generator, which takes a good part of what a small commit waits for."""

    __slots__ = ("_database", "_seq", "_state", "_steps")

    def __init__(self, database: InFile) -> None:
        self._database, self._state, file = database, database._evaluator.state, database._file
        if file is not None:
            self._seq, self._steps = file.seq, len(file.steps)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        file = self._database._file
        if kind is not None and file is not None and self._database._evaluator.state is self._state:
            file.take_back(self._seq, self._steps)


class InFile(Watched):
    """The parts of `Database` that are about its file."""

    _file: DatabaseFile | None = None
    _kept: KeptHeads
    _arena: Arena
    _symbols: SymbolTable
    # The transaction whose block is open; set and read by the thread that holds the lock.
    _opened: weakref.ref[Any] | None = None
    # By which it holds the lock.
    _holding: Generator[None] | None = None

    @property
    def _open(self) -> Any:
        """The transaction whose block is open, if there is one."""
        return None if self._opened is None else self._opened()

    @property
    def path(self) -> str | None:
        """The path of the database's file; None of one in memory."""
        return None if self._file is None else os.fspath(self._file.container.path)

    @property
    def seq(self) -> int:
        """The number of the last entry of the file's log: of transactions, loads and changes of rules; 0 in memory."""
        return 0 if self._file is None else self._file.seq

    def _open_file(self, path: Any, read_only: bool, sync: str, retain: int | Literal["kept"] | None) -> None:
        """Open the file of an empty database."""
        from lftj.durable.opening import opened

        kinds: Any = (str, os.PathLike)
        arguments.instance("path", path, kinds, "a database is kept in one file", 'give its path, as in "shop.lftj"')
        self._file = opened(self, path, read_only=read_only, sync=sync, retain=_retained(retain))

    def _check_in_memory(self, read_only: bool, retain: object) -> None:
        """`ArgumentError` for what is asked of the file of a database in memory."""
        for name, value, left_out in (("read_only", read_only, False), ("retain", retain, "kept")):
            if value != left_out:
                raise arguments.refused(
                    name,
                    value,
                    "it is about the file of a database, and without a path there is none",
                    f'give the path, as in lftj.Database(path="shop.lftj", {name}={value!r}), or leave it out',
                )

    def _in_file(self, what: str) -> DatabaseFile:
        if self._file is None:
            raise DatabaseFileError(
                f"`{what}` of a database in memory",
                why="it has no file, and so no log",
                remedy='give it one, as in lftj.Database(path="shop.lftj")',
            )
        return self._file

    def checkpoint(self, *, traces: bool | None = None) -> None:
        """Write all relations to the file as they are, so that opening it need not go through the log.

        `traces`: whether to write what strategies keep, too: key orders that are built, numbers of derivations and sums
        of aggregates (strategy "delta"), maps of triggers, and traces. They are then read when the file is opened, so
        that the first change need not make them; the file grows by about a relation for each. None: as in the last
        checkpoint, and at first without them. Traces of rules that compute texts are always made by the first change.

        Only pages that changed since the last checkpoint are written. Checkpoints are also made in the background now
        and then, and when the database is closed. Derived relations are part of one if they are up to date.
        """
        file = self._in_file("checkpoint")
        if file.read_only:
            raise DatabaseFileError(
                f"`checkpoint` of {file.container.path}, which was opened read-only",
                why="a checkpoint is written to the file, and its writer makes one when the log has grown",
                remedy="call it where the file is open without read_only=True; `refresh` needs none",
            )
        self._not_in_a_transaction("checkpoint")
        file.checkpoint(self, traces)

    def refresh(self) -> Deltas:
        """Take up what the writer of a database that was opened read-only has committed since; returns what changed.

        Derived relations follow the net change, and callbacks and feeds (`on_commit`, `changes`) are told of it. If a
        relation is new, or was replaced by one with other columns, all its rows count as inserted, as in the `tx.delta`
        of the writer.
        """
        from lftj.durable.refreshing import refreshed

        return refreshed(self, self._in_file("refresh"))

    def branch(self) -> Self:
        """A writable copy in memory, to try things in: it shares all pages with this one, and costs almost nothing.

        Neither sees the changes of the other. No row or rule of the copy is in a file. Its new texts are, once the
        original is written to, since both number their texts in one table.
        """
        from lftj.durable.history import branch_of

        return branch_of(self)

    def diff(self, other: Self) -> Deltas:
        """How the relations of this database differ from those of `other`; one must be a branch of the other.

        Rows that only this one has are inserted, and rows that only `other` has are erased. Relations that one of them
        lacks are left out. Raises `DataError` if a relation has other columns in `other`.
        """
        from lftj.durable.history import difference

        arguments.instance(
            "other", other, InFile, "a database is compared with its branch", "give that, as in `db.branch().diff(db)`"
        )
        return difference(self, other)

    def close(self) -> None:
        """Write what waits and a last checkpoint, and close the file; feeds of commits (`changes`) end.

        A database in memory only ends its feeds, and can still be used.
        """
        if self._file is not None:
            self._not_in_a_transaction("close")
        for feed in self._all_feeds():
            feed.close()
        if self._file is not None:
            self._file.close(self)

    def _let_go(self) -> None:
        """Let go of the file as if it had not been opened: there is no checkpoint, which may drop entries."""
        file, self._file = self._file, None
        if file is not None:
            file._finalizer()
        self.close()

    def _not_in_a_transaction(self, what: str) -> None:
        with self._lock:
            if self._open is not None and self._open._passing is None:
                raise TransactionError(
                    f"`{what}` inside a transaction",
                    why="the transaction may still be discarded, and its thread keeps all others from writing",
                    remedy="call it after the block",
                )
            if inside := self._call_at_work():
                raise inside_call(f"`{what}`", inside)

    @overload
    def changes(self, *names: str, limit: int | None = None) -> CommitFeed: ...
    @overload
    def changes(self, *names: str, since: int) -> Iterator[Changed]: ...
    def changes(self, *names: str, limit: int | None = None, since: int | None = None) -> Any:
        """The deltas of every commit from now on, as an iterator that waits for them, and an asynchronous one.

        `names`: the relations to follow (default: all). Each item is the `tx.delta` of a commit. The feed ends when it
        or the database is closed, from any thread, when nobody holds the database any more, or with the block of
        `with db.changes() as feed`. `limit`: how many commits may wait to be read before `TransactionError` says that
        some were not kept; without it, any number. Loads are not commits. See `lftj.results.commit_feed`.

        `since`, for one relation of a database in a file, gives the past instead: what each entry of the log after that
        number changed in the relation, as (seq, time, delta), as far back as `retain=` keeps the entries.
        """
        if since is None:
            if self._file is not None:
                self._file.container.connection  # noqa: B018  (no commit comes once the file is closed)
            return super().changes(*names, limit=limit)
        from lftj.durable.history import changes_since

        if limit is not None:
            raise arguments.refused(
                "limit",
                limit,
                "with `since=` no commit waits to be read: entries are read from the log one after the other",
                "leave it out, and stop reading after as many as you want",
            )
        file = self._in_file("changes(since=)")
        if len(names) != 1:
            raise DataError(
                f"`changes(since=)` of {len(names)} relations",
                why="it goes through the log of one",
                remedy='name one, as in db.changes("tri", since=7)',
            )
        self._stored(names[0])
        return changes_since(self, file, names[0], since)

    # -- what is written ----------------------------------------------------------------------------------------------

    def _write_commit(self, commit: Commit, steps: Sequence[dict[str, Any]]) -> None:
        """Write a commit that is about to be published, and publish it; it is in the file if it was."""
        file, changes = self._file, commit.fact_changes
        if file is None or not (changes or steps):
            commit.publish()
            return
        deltas, dropped = (_derived(commit), self._dropped_facts(steps)) if file.keeps_history else ({}, {})
        if [name for name, change in changes.items() if not len(change.kinds)]:
            changes = {name: change for name, change in changes.items() if len(change.kinds)}
        with self._publishing():
            file.append_commit(changes, steps, dropped, deltas)
            commit.publish()
        if file.due():
            file.checkpoint_beside(self)

    def _publishing(self) -> Publishing:
        """A block that writes what it then publishes: if it fails, or is interrupted, before that, nothing is written.

        What is published is another state.
        """
        return Publishing(self)

    def _dropped_facts(self, steps: Sequence[dict[str, Any]]) -> dict[str, Change]:
        """The facts of relations that are dropped, all of them: without these nobody could say what they were."""
        from lftj.store.change import Change

        there = self._evaluator.state.relations
        names = [step["drop"] for step in steps if step.get("drop") in there]
        facts = {name: there[name].facts for name in names}
        return {name: Change.between(held, held.store.empty()) for name, held in facts.items()}

    def _unknown(self, names: Iterable[str], strata: Strata) -> dict[str, None]:
        """The derived relations that change with `names`, nobody knows yet how: where history is kept, that is said."""
        if self._file is None or not self._file.keeps_history:
            return {}
        return dict.fromkeys(name for name in strata.above(names) if not name.startswith(INTERNAL))

    def _write_rules(self, program: Any, options: RuleOptions, state: State, heads: Collection[str]) -> None:
        """Write rules that are about to be added, whose heads are `heads`, and the facts that come with them."""
        if self._file is None:
            return
        from lftj.durable.entry import LogEntry
        from lftj.store.change import INSERTED, Change

        steps: list[dict[str, Any]] = []
        self._note_rules(steps, program, options)
        before = self._evaluator.state.relations
        facts = {}
        for name, relation in state.relations.items():
            if name not in before:
                rows = relation.facts.columns()
                facts[name] = Change(rows, np.full(rows.shape[1], INSERTED, np.int8))
            elif before[name].facts is not relation.facts:
                facts[name] = Change.between(before[name].facts, relation.facts)
        facts = {name: change for name, change in facts.items() if len(change.kinds)}
        # Of new heads those that may have rows: over relations that have some, or by a rule that reads none.
        held = [name for name, relation in state.relations.items() if len(relation.facts)]
        from_none = [head for head in heads if not all(clause.atoms for clause in state.strata.of(head))]
        filled = state.strata.above((*held, *from_none))
        concerned = self._unknown((*heads, *facts), state.strata)
        unknown = {name: None for name in concerned if name in before or name in filled}
        self._file.append(LogEntry(facts, {}, tuple(steps)), unknown)

    def _note_rules(self, steps: list[dict[str, Any]], program: Any, options: RuleOptions) -> None:
        """Note the step that adds a program, if there is a file to keep it in."""
        if self._file is not None:
            from lftj.durable.program_log import rules_step

            steps.append(rules_step(program, options))

    def _write_paths(self, relation: str, into: str) -> None:
        """Write that path counts are about to be begun."""
        if self._file is not None:
            from lftj.durable.entry import LogEntry

            step = {"paths": [relation, into]}
            unknown = self._unknown((into,), self._state.strata) if len(self._state.relations[relation]) else {}
            self._file.append(LogEntry(steps=(step,)), unknown)

    def _write_load(self, name: str, before: Version, facts: Version) -> None:
        """Write a load that is about to be published."""
        if self._file is not None and before is not facts:
            self._file.loaded(name, before, facts, self._unknown((name,), self._state.strata))

    def _written_together(self) -> AbstractContextManager[None]:
        """What is written in the block holds together, or none of it."""
        return nullcontext() if self._file is None else self._file.group()

    def _refuse_file(self, what: str, why: str) -> None:
        if self._file is not None:
            raise DatabaseFileError(
                f"{what} in a database that has a file",
                why=why,
                remedy="do it in a branch, `db.branch()`, or in a database in memory",
            )

    def _place(self, directives: Iterable[Directive]) -> None:
        """Give the directives of the file, which keeps no places, those of equal ones in the text of the program."""
        placed = {directive: directive for directive in directives}
        with self._lock:
            state = self._evaluator.state
            self._evaluator.state = state._replace(directives=tuple(placed.get(d, d) for d in state.directives))

    def _has_program(self, program: Any, maintain: Mapping[str, str] | None = None) -> bool:
        """Whether the file was opened with this program before. `DatabaseFileError` if it has other rules.

        Also if it keeps their heads in other ways than `maintain` asks for.
        """
        if self._file is None or not self._file.steps:
            return False
        from lftj.durable.program_log import rules_step
        from lftj.program.rule_options import RuleOptions

        rules, path = rules_step(program, RuleOptions({}, {}, {}))["rules"], self._file.container.path
        same = [step for step in self._file.steps if step.get("rules") == rules]
        if not same:
            self._let_go()
            raise DatabaseFileError(
                f"{path} has a program already, and another one is given",
                why="a program that is opened with its file again must be the one that the file was made with",
                remedy="open the file without a program; `db.rules` and `tx.remove_rules` change the rules in it",
            )
        if maintain and not any(step.get("options", {}).get("maintain") == maintain for step in same):
            self._let_go()
            raise DatabaseFileError(
                f"{path} has this program already, and keeps its heads in other ways than `maintain` says",
                why="how the heads of a program are kept is in the file with it",
                remedy="open the file without `maintain`; `tx.remove_rules` and `tx.rules` replace the rules of a head",
            )
        return True


def _retained(retain: object) -> int | Literal["kept"] | None:
    """What `retain=` gives: how many entries of the log are kept beyond the last checkpoint."""
    if retain is None:
        return None
    if isinstance(retain, str) and retain == "kept":
        return "kept"
    if isinstance(retain, bool) or not isinstance(retain, SupportsIndex) or retain.__index__() < 0:
        raise arguments.refused(
            "retain",
            retain,
            "it is a number of entries of the log that are kept beyond the last checkpoint, 0 or more; None keeps all",
            "give `retain=1000` or `retain=None`, or leave it out to keep as many as the file was last opened with",
        )
    return retain.__index__()


def _derived(commit: Commit) -> Mapping[str, Change | None]:
    """The changes of derived relations that users name; None of one that had no rules, or no value, before."""
    heads, before = commit.state.strata.by_head, commit.base
    known: dict[str, Change | None] = {**dict.fromkeys(commit.unknown), **commit.changes}
    changes = {name: change for name, change in known.items() if name in heads and not name.startswith(INTERNAL)}
    if commit.state.strata is not before.strata:
        derived_now = heads.keys() - before.strata.by_head.keys()
        changes |= {name: None for name in derived_now & before.relations.keys() if not name.startswith(INTERNAL)}
    return changes
