"""`lftj run`: read a program and its facts, evaluate, write. Also what `explain` shares with it: a loaded database."""

from __future__ import annotations

import csv
import io
import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lftj import arguments
from lftj.cli.outcome import Code, UsageError, say, worded
from lftj.cli.program_file import STDIN, checked, is_sql
from lftj.cli.updates import apply_updates, check_updates, opened
from lftj.errors import DataError, UnknownRelationError
from lftj.language.options import VALUES, WHY, listed

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.io.rejects import Rejects
    from lftj.language.clause import CheckedProgram, Directive

# Of a limit: an empty program with a few relations takes some 20,000 bytes of pages, and a page of rows thousands more.
LEAST_BYTES = 64_000
_REJECT_FIELDS = ("source", "line", "column", "text", "reason")


@dataclass(frozen=True)
class Settings:
    """What `run` and `explain` take alike, converted and checked as far as the command line alone allows."""

    program: str
    facts: str
    timeout: float | None
    memory_limit: int | None
    key_orders: dict[str, tuple[str, ...]]
    maintain: dict[str, str]
    granularity: dict[str, str]
    no_warn: bool
    threads: int = 1
    database: str | None = None

    @classmethod
    def of(
        cls,
        program: str,
        facts: str,
        timeout: str | None,
        memory_limit: str | None,
        key_orders: Sequence[str] | None,
        maintain: Sequence[str] | None,
        granularity: Sequence[str] | None,
        no_warn: bool,
        jobs: str = "1",
    ) -> Settings:
        """From the texts of the command line."""
        return cls(
            program,
            facts,
            None if timeout is None else _seconds(timeout),
            None if memory_limit is None else _bytes(memory_limit),
            dict(_key_order(text) for text in key_orders or ()),
            dict(_option("maintain", text) for text in maintain or ()),
            dict(_option("granularity", text) for text in granularity or ()),
            no_warn,
            _threads(jobs),
        )


def _threads(text: str) -> int:
    if text == "auto":
        return os.cpu_count() or 1
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"--threads {text} is no number of threads",
            why="it is how many threads may work at a time",
            remedy="give 1 or more, or auto: one per core",
        )
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(
            f"--timeout {text} is no time",
            why="it is a number of seconds, more than 0",
            remedy="give seconds, such as 60 or 0.5",
        )
    return seconds


def _bytes(text: str) -> int:
    found = arguments.bytes_of(text)
    if found is None:
        raise UsageError(
            f"--memory-limit {text} is no size",
            why="it is a number of bytes, 1 or more, or such a number in words",
            remedy=f"give {arguments.SIZES}",
        )
    if found < LEAST_BYTES:
        raise UsageError(
            f"--memory-limit {text} is too little for any program",
            why="relations are stored in pages, and a few relations without rows take tens of thousands of bytes",
            remedy="give 64KB or more",
        )
    return found


def _key_order(text: str) -> tuple[str, tuple[str, ...]]:
    head, equals, order = text.partition("=")
    variables = tuple(name.strip() for name in order.split(","))
    if not equals or not head.strip() or not all(variables):
        raise UsageError(
            f"--key-order {text} is no key order",
            why="it is the order in which the rules of a head bind their variables",
            remedy="name a head and its rule's variables, as in tri=x,y,z",
        )
    return head.strip(), variables


def _option(option: str, text: str) -> tuple[str, str]:
    head, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not head or value not in VALUES[option]:
        values = listed((f"tri={value}" for value in VALUES[option]), "")
        raise UsageError(
            f"--{option} {text} is unknown", why=WHY[option], remedy=f"name a head and what it is to do, as in {values}"
        )
    return head, value


# --- run --------------------------------------------------------------------------------------------------------------


def run_program(settings: Settings, output: str, on_error: str, stats: bool, updates: str | None = None) -> int:
    """Evaluate a program as the command line says, and follow the changes in `updates`."""
    if on_error not in ("raise", "quarantine"):
        raise UsageError(
            f"--on-error {on_error} is unknown",
            why="files with bad rows are refused, or their bad rows are kept apart",
            remedy="give --on-error raise or --on-error quarantine",
        )
    if is_sql(settings.program):
        from lftj.cli.sql_report import run_report

        return run_report(settings, output, on_error, stats, updates)
    program = checked(settings.program)
    check_folders(settings, output, program.directives)
    if updates is None:
        return _evaluated(settings, program, output, on_error, stats, None)
    check_updates(updates, settings.program, program.directives)
    with opened(updates) as stream:
        source = "<stdin>" if updates == STDIN else updates
        return _evaluated(settings, program, output, on_error, stats, (stream, source))


def _evaluated(
    settings: Settings,
    program: CheckedProgram,
    output: str,
    on_error: str,
    stats: bool,
    updates: tuple[BinaryIO, str] | None,
) -> int:
    from lftj.io.directive_files import read_inputs, write_outputs

    clock = time.perf_counter
    db = database(settings, program)
    start = clock()
    rejects = read_inputs(db, settings.facts, on_error=on_error)
    loaded = clock()
    if on_error == "quarantine":
        inputs = [d.relation for d in db.directives if d.kind == "input"]
        tell_rejects(rejects, inputs, None if output == STDIN else Path(output))
    wanted = dict.fromkeys(d.relation for d in program.directives if d.kind != "input")
    if wanted or updates is not None:  # updates are told of all heads if there is no `.output`
        db.evaluate(*(wanted if updates is None else ()), timeout=settings.timeout)
    else:
        say("lftj: the program has no `.output` and no `.printsize`, so nothing was evaluated")
    evaluated = clock()
    if updates is not None:
        apply_updates(db, *updates, settings.timeout, stats=stats)
    updated = clock()
    write_outputs(db, output)
    if stats:
        phases = {"loaded": loaded - start, "evaluated": evaluated - loaded}
        if updates is not None:
            phases["updated"] = updated - evaluated
        phases["written"] = clock() - updated
        say("\n".join([str(db.explain()), ", ".join(f"{phase} in {t:.3f} s" for phase, t in phases.items())]))
    db.close()
    return Code.DONE


def database(settings: Settings, program: CheckedProgram) -> Database:
    """A database with the program's rules and no facts but those of its text; warnings are told."""
    if not settings.no_warn:
        for warning in program.warnings:
            say(worded(warning.render()))
    from lftj.database import Database

    db = Database(memory_limit=settings.memory_limit, threads=settings.threads, path=settings.database)
    if db._has_program(program.program):
        return db
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they have just been told
        try:
            db.rules(
                program.program,
                key_orders=settings.key_orders,
                maintain=settings.maintain,
                granularity=settings.granularity,
            )
        except (DataError, UnknownRelationError) as error:
            option = next((o for o in VALUES if f"`{o}` is given" in error.what), "key-order")
            if not (settings.key_orders or settings.maintain or settings.granularity):
                raise
            what = error.what.replace(f"`{option}`", "it")
            raise UsageError(f"--{option}: {what}", where=error.where, why=error.why, remedy=error.remedy) from None
    return db


def check_folders(settings: Settings, output: str, directives: Sequence[Directive]) -> None:
    """Refuse folders that cannot work before any time is spent. `output` is `STDIN` if no files are written."""
    inputs = [d for d in directives if d.kind == "input"]
    if settings.program == STDIN and (stdin := [d for d in inputs if d.io == "stdin"]):
        raise UsageError(
            f"stdin cannot hold both the program and the facts of `{stdin[0].relation}`",
            where=str(stdin[0].span),
            why="stdin can be read once, and the program takes all of it",
            remedy="give the program as a file",
        )
    if not os.path.isdir(settings.facts):
        raise UsageError(
            f"-F {settings.facts}: there is no such folder",
            why="the facts of the program are read from it",
            remedy="name the folder of the .input files",
        )
    folder = Path(output)
    if output != STDIN and folder.exists() and not folder.is_dir():
        raise UsageError(
            f"-D {output}: this is not a folder",
            why="every relation is written to a file of its own in it",
            remedy="name a folder, or - for stdout",
        )
    if output != STDIN and not folder.absolute().parent.is_dir():
        raise UsageError(
            f"-D {output}: there is no folder {str(folder.parent)!r} to make it in",
            why="one folder is made, not those above it",
            remedy="name a folder that exists, one that can be made, or - for stdout",
        )


def tell_rejects(rejects: dict[str, Rejects], inputs: Sequence[str], folder: Path | None) -> None:
    """Tell the bad rows of each of `inputs`: in `<relation>.rejects`, or on stderr if there is no folder for it.

    A file of that name from an earlier run goes.
    """
    for name in dict.fromkeys(inputs):
        path = None if folder is None else folder / f"{name}.rejects"
        if name not in rejects:
            if path is not None:
                path.unlink(missing_ok=True)
            continue
        count, table = len(rejects[name]), _as_table(rejects[name])
        left_out = f"lftj: {count:,} bad {'row' if count == 1 else 'rows'} of `{name}` left out"
        if path is None:
            say(f"{left_out}:\n{table.rstrip()}")
            continue
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        beside.write_text(table, encoding="utf-8", errors="backslashreplace")
        os.replace(beside, path)
        say(f"{left_out}; see {path}")


def _as_table(rejects: Rejects) -> str:
    text = io.StringIO()
    table = csv.writer(text, "excel-tab", lineterminator="\n")
    table.writerow(_REJECT_FIELDS)
    table.writerows([getattr(reject, field) for field in _REJECT_FIELDS] for reject in rejects)
    return text.getvalue()
