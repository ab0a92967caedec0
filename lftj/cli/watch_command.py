"""`lftj watch PROGRAM -F DIR`: a program that follows its files, and prints what changes as they do.

The files are looked at every so often, by their times and sizes. A fact file that changed is read again, and the
difference to what it held is committed; a program that changed is evaluated anew, and the difference to its old answers
printed. Deltas have the form of `lftj run --updates`: a line for each row, erased ones first, and a blank line behind
each commit. The first one says all that is derived.

A file is read once it has rested between two looks. What cannot be read or does not check is reported on stderr, and
the last good state stays until the file changes again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from lftj.cli.outcome import Code, UsageError, rendered, say
from lftj.cli.program_file import STDIN, checked
from lftj.cli.settings import Settings, check_folders, database, seconds_of
from lftj.cli.updates import delta_text, shown_relations
from lftj.errors import Error, ProgramError
from lftj.language import ast
from lftj.values.faults import counted

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.language.clause import CheckedProgram, Directive
    from lftj.results.relation import Relation
    from lftj.transaction import Transaction

# Looks after which a file is read even if it never rests: one that is appended to all the time.
RESTLESS = 10

Signature = tuple[tuple[str, int, int, int], ...]


@dataclass
class _Running:
    """A program with its answers. `facts`: what the input files of each relation held when they were read last."""

    program: CheckedProgram
    db: Database
    facts: dict[str, Relation]


def watch(settings: Settings, interval: str, *, initial: bool) -> int:
    """Follow the files until it is interrupted. With `initial` all that is derived comes first."""
    pause = seconds_of("--interval", interval, what="the seconds between two checks of the files", such_as="0.5")
    _Watch(settings, pause).forever(initial=initial)
    return Code.DONE


class _Watch:
    """The files of a program, how they looked, and the last good state."""

    def __init__(self, settings: Settings, interval: float) -> None:
        if settings.program == STDIN:
            raise UsageError(
                "stdin cannot be watched", why="it can be read only once", remedy="give the program as a file"
            )
        self.settings, self.interval = settings, interval
        self.running: _Running | None = None
        self.inputs: dict[str, Directive] = {}  # the fact files of the program, once it checks
        self.seen: dict[str, Signature] = {}  # how the files looked before they were read

    def forever(self, *, initial: bool) -> None:
        """Read, and follow what changes."""
        unread = self._follow({self.settings.program}, initial=initial)
        say(f"lftj: watching {counted(1 + len(self.inputs), 'file')}; Ctrl-C ends it")
        while True:
            # What could not be read is tried again with what changes next.
            unread = self._follow(unread | self._changed(), initial=True)

    def _changed(self) -> set[str]:
        """Wait until files have changed and rest."""
        before = self.seen
        looks = 0
        while True:
            time.sleep(self.interval)
            now = {path: _signature(path) for path in (self.settings.program, *self.inputs)}
            changed = {path for path in now if now[path] != self.seen.get(path)}
            looks = looks + 1 if changed else 0
            if changed and (now == before or looks > RESTLESS):
                self.seen = now
                return changed
            before = now

    def _follow(self, changed: set[str], *, initial: bool) -> set[str]:
        """Bring the state up to date, and print what that changes; returns the files that could not be used."""
        start = time.perf_counter()
        try:
            text = self._program() if self.settings.program in changed else self._facts(changed)
        except (ProgramError, Error) as error:
            if isinstance(error, UsageError) and self.running is None:
                raise
            say(rendered(error))
            say(f"lftj: {'the last good state stays' if self.running else 'waiting for a change'}")
            return changed
        if initial and text is not None:
            from lftj.io.directive_files import to_stdout

            to_stdout(text.encode())
        names = ", ".join(sorted(Path(path).name for path in changed))
        say(f"lftj: read {names} in {time.perf_counter() - start:.3f} s")
        return set()

    # A program

    def _program(self) -> str | None:
        """Evaluate the program anew, and tell how its answers differ from those before."""
        self.seen[self.settings.program] = _signature(self.settings.program)
        program = checked(self.settings.program)
        check_folders(self.settings, STDIN, program.directives)
        for directive in program.directives:
            if directive.kind == "input" and directive.io == "stdin":
                raise UsageError(
                    f"stdin cannot be watched, and `{directive.relation}` is read from it",
                    where=str(directive.span),
                    why="it can be read only once",
                    remedy="name a file in the directive",
                )
        self.inputs = dict(self._files(program))
        self.seen |= {path: _signature(path) for path in self.inputs}
        facts = self._read(program, [directive.relation for directive in self.inputs.values()])
        db = database(self.settings, program)
        with db.transaction(timeout=self.settings.timeout) as tx:  # constraints hold once all files are there
            for name, rows in facts.items():
                if rows._schema.bag:
                    _count(tx, name, rows)
                else:
                    tx.insert(name, rows.arrow())
        db.evaluate(timeout=self.settings.timeout)
        before, self.running = self.running, _Running(program, db, facts)
        lines = list(_differences(before.db if before else None, db))
        return "\n".join([*lines, "", ""]) if lines else None

    def _read(self, program: CheckedProgram, relations: Iterable[str]) -> dict[str, Relation]:
        """What the input files and the text of the program hold of some relations, apart from any rules."""
        from lftj.database import Database
        from lftj.io.directive_files import read_inputs

        wanted = set(relations)
        items = [item for item in program.program.items if _is_fact_of(item, wanted)]
        scratch = Database(ast.Program(tuple(items), program.program.source))
        read_inputs(scratch, self.settings.facts)
        return {name: scratch[name] for name in wanted}

    # Facts

    def _files(self, program: CheckedProgram) -> Iterator[tuple[str, Directive]]:
        """The files that a program reads, with the directive of each."""
        from lftj.io.directive_files import input_path

        for directive in program.directives:
            if directive.kind == "input" and (path := input_path(directive, self.settings.facts)) is not None:
                yield str(path), directive

    def _facts(self, changed: set[str]) -> str | None:
        """Commit what the changed fact files hold now, and tell what that changes."""
        running = self.running
        assert running is not None, "files other than the program are known of a program only"
        names = {directive.relation for path, directive in self.inputs.items() if path in changed}
        facts = self._read(running.program, names)
        with running.db.transaction(timeout=self.settings.timeout) as tx:
            for name, rows in facts.items():
                if rows._schema.bag:
                    _count(tx, name, running.facts[name], gone=True)
                    _count(tx, name, rows)
                    continue
                tx.erase(name, running.facts[name].arrow())
                tx.insert(name, rows.arrow())
        running.facts |= facts
        text, erased, inserted = delta_text(tx, shown_relations(running.db))
        return text if erased or inserted else None


def _count(tx: Transaction, name: str, rows: Relation, *, gone: bool = False) -> None:
    """Let a bag have as many copies of some rows as they say, or none of them: facts of the text are among them."""
    table = rows.arrow()
    if gone:
        import pyarrow as pa

        table = table.set_column(len(table.schema) - 1, table.schema[-1], pa.array([0] * len(table), pa.int64()))
    tx.upsert(name, table)


def _is_fact_of(item: ast.Item, relations: set[str]) -> bool:
    """Whether an item declares, reads or states rows of one of the relations."""
    match item:
        case ast.TypeDeclaration():
            return True
        case ast.Declaration(name):
            return name in relations
        case ast.Directive(kind, relation):
            return kind == "input" and relation in relations
        case ast.Rule(heads, body):
            return not body and all(head.name in relations for head in heads)
    return False


def _signature(path: str) -> Signature:
    """How the files look that a path or glob names: times, sizes and numbers; empty if there are none."""
    found = []
    for name in sorted(glob(path)) or [path]:
        try:
            state = Path(name).stat()
        except OSError:
            continue
        found.append((name, state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)


def _differences(before: Database | None, after: Database) -> Iterator[str]:
    """The lines of what the outputs of one database have and those of another have not.

    Rows of other types are other rows: 1 and 1.0 are equal in Python, and not in a line.
    """
    from lftj.io.change_file import ERASE, INSERT, change_line

    old = {name: before[name] for name in shown_relations(before)} if before is not None else {}
    new = {name: after[name] for name in shown_relations(after)}
    for name in dict.fromkeys([*old, *new]):
        rows_before, rows_after = list(old.get(name, ())), list(new.get(name, ()))
        alike = name in old and name in new and old[name]._schema.types == new[name]._schema.types
        stay = set(rows_before) & set(rows_after) if alike else set()
        yield from (change_line(ERASE, old[name]._schema, row) for row in rows_before if row not in stay)
        yield from (change_line(INSERT, new[name]._schema, row) for row in rows_after if row not in stay)
