"""`lftj run --updates`: a change file (`lftj.io.change_file`) is applied to the evaluated program, commit by commit.

What each commit did to the relations of `.output` goes to stdout in the form of change files, erased rows first, and a
blank line ends it; it is flushed, so a pipe may drive the file and wait for each answer. A bad line, a second value for
a key, or a rule that has no value for what it brings, ends the run: its transaction is dropped, what was committed and
printed before stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from lftj.cli.outcome import UsageError, say
from lftj.cli.program_file import STDIN, stdin
from lftj.errors import DataError, Error
from lftj.language.clause import INTERNAL

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.io.change_file import FileTransaction
    from lftj.language.clause import Directive
    from lftj.transaction import Transaction


def check_updates(updates: str, program: str, directives: Sequence[Directive]) -> None:
    """Refuse stdin for two things at once."""
    if updates != STDIN:
        return
    if program == STDIN:
        raise UsageError(
            "stdin cannot hold both the program and its updates",
            why="stdin can be read only once, and the program takes all of it",
            remedy="give one of them as a file",
        )
    for directive in directives:
        if directive.kind == "input" and directive.io == "stdin":
            raise UsageError(
                f"stdin cannot hold both the updates and the facts of `{directive.relation}`",
                where=str(directive.span),
                why="stdin can be read only once, and the updates take all of it",
                remedy="give one of them as a file",
            )


@contextmanager
def opened(updates: str) -> Iterator[BinaryIO]:
    """The change file, before any time is spent on the program."""
    if updates == STDIN:
        yield stdin()
        return
    try:
        stream = open(updates, "rb")  # noqa: SIM115  (closed below)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise DataError("the updates cannot be read", where=updates, why=why, remedy="check the name") from None
    with stream:
        yield stream


def apply_updates(db: Database, stream: BinaryIO, source: str, timeout: float | None, *, stats: bool) -> None:
    """Commit the transactions of `stream`, printing what each changed; `stats` tells each one's latency on stderr."""
    from lftj.io.change_file import transactions
    from lftj.io.directive_files import to_stdout

    shown = shown_relations(db)
    known = db._schemas()
    schemas = {name: known[name] for name in db}
    lines = iter(stream.readline, b"")  # not the stream itself: it would read ahead of a pipe
    for number, changes in enumerate(transactions(lines, schemas, source), 1):
        started = time.perf_counter()
        tx = _commit(db, changes, timeout, source)
        seconds = time.perf_counter() - started
        text, erased, inserted = delta_text(tx, shown)
        to_stdout(text.encode())
        for head in shown:
            if head in tx.delta._unknown:
                say(f"lftj: the change of `{head}` in commit {number} is not printed, since it had no value before")
        if stats:
            heads = ", ".join(f"{head} by {_ways(report)}" for head, report in tx.stats["heads"].items())
            counts = f"{changes.size:,} {'change' if changes.size == 1 else 'changes'}, +{inserted:,} -{erased:,} rows"
            say(f"commit {number}: {counts}, {seconds * 1e3:.3f} ms" + (f" ({heads})" if heads else ""))


def shown_relations(db: Database) -> list[str]:
    """The relations whose changes are printed: those of `.output`, else all that are derived."""
    derived = [head for head in db._strata.order if not head.startswith(INTERNAL)]
    return list(dict.fromkeys(d.relation for d in db.directives if d.kind == "output")) or derived


def _ways(report: dict[str, Any]) -> str:
    """How a head was derived, and the parts of its rules, each way once."""
    derived = [*report.get("parts", {}).values(), report]
    ways = dict.fromkeys(each["strategy"] for each in derived if each["strategy"] != "none")
    return " and ".join(ways)


def _commit(db: Database, changes: FileTransaction, timeout: float | None, source: str) -> Transaction:
    from lftj.io.change_file import ERASE, INSERT, UPSERT

    try:
        with db.transaction(timeout=timeout) as tx:
            calls = {INSERT: tx.insert, ERASE: tx.erase, UPSERT: tx.upsert}
            for run in changes.runs:
                calls[run.op](run.relation, run.rows)
    except Error as error:
        error.details = (*error.details, f"in the transaction that begins at {source}:{changes.first_line}")
        raise
    return tx


def delta_text(tx: Transaction, shown: list[str]) -> tuple[str, int, int]:
    """The lines of a commit, and how many rows were erased and inserted."""
    from lftj.io.change_file import ERASE, INSERT, change_line

    lines: list[str] = []
    counts = {ERASE: 0, INSERT: 0}
    for name in shown:
        if name in tx.delta:
            delta = tx.delta[name]
            for op, rows in ((ERASE, delta.erased), (INSERT, delta.inserted)):
                counts[op] += len(rows)
                lines += [change_line(op, rows._schema, row) for row in rows]
    return "\n".join([*lines, "", ""]) if lines else "\n", counts[ERASE], counts[INSERT]
