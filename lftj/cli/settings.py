"""What all commands that read a program take, its database, and the folders that it reads and writes."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lftj import arguments
from lftj.cli.outcome import UsageError, say, worded
from lftj.cli.program_file import STDIN
from lftj.errors import DataError, UnknownRelationError
from lftj.language.options import VALUES, WHY, listed

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.language.clause import CheckedProgram, Directive

Value = TypeVar("Value")

# Of a limit: an empty program with a few relations takes some 20,000 bytes of pages, and a page of rows thousands more.
LEAST_BYTES = 64_000


@dataclass(frozen=True)
class Settings:
    """What all of these commands take, converted and checked as far as the command line alone allows."""

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
            None
            if timeout is None
            else seconds_of("--timeout", timeout, what="a number of seconds", such_as="60 or 0.5"),
            None if memory_limit is None else _bytes(memory_limit),
            by_name("--key-order", map(_key_order, key_orders or ())),
            by_name("--maintain", (_option("maintain", text) for text in maintain or ())),
            by_name("--granularity", (_option("granularity", text) for text in granularity or ())),
            no_warn,
            _threads(jobs),
        )


def by_name(
    option: str, given: Iterable[tuple[str, Value]], *, remedy: str = "leave one of them out"
) -> dict[str, Value]:
    """What an option that may be repeated says, by the name that each begins with; `UsageError` if one comes twice."""
    found: dict[str, Value] = {}
    for name, value in given:
        if name in found:
            raise UsageError(
                f"{option} {name}=... is given twice",
                why="it may be repeated for other names; of two that say different things one would be lost",
                remedy=remedy,
            )
        found[name] = value
    return found


def _threads(text: str) -> int:
    there = arguments.cores()
    if text == "auto":
        return there
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"--threads {text} is not a number of threads",
            why="it is how many threads may work at a time",
            remedy="give 1 or more, or auto: one per core",
        )
    if int(text) > there:
        say(f"lftj: --threads {text}: {there} are used, one for each core that this process may use")
    return min(int(text), there)


def seconds_of(option: str, text: str, *, what: str, such_as: str) -> float:
    """A time on the command line, more than 0; `what` it is, for the error."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(
            f"{option} {text} is not a time",
            why=f"it is {what}, more than 0",
            remedy=f"give seconds, such as {such_as}",
        )
    return seconds


def _bytes(text: str) -> int:
    found = arguments.bytes_of(text)
    if found is None:
        raise UsageError(
            f"--memory-limit {text} is not a size",
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
    head, equals, order = arguments.utf8(text).partition("=")
    variables = tuple(name.strip() for name in order.split(","))
    if not equals or not head.strip() or not all(variables):
        raise UsageError(
            f"--key-order {text} is not a key order",
            why="it is the order in which the rules of a head bind their variables",
            remedy="name a head and its rule's variables, as in tri=x,y,z",
        )
    return head.strip(), variables


def _option(option: str, text: str) -> tuple[str, str]:
    head, equals, value = (part.strip() for part in arguments.utf8(text).partition("="))
    if not equals or not head or value not in VALUES[option]:
        values = listed((f"tri={value}" for value in VALUES[option]), "")
        raise UsageError(
            f"--{option} {text} is unknown", why=WHY[option], remedy=f"name a head and what it is to do, as in {values}"
        )
    return head, value


def database(settings: Settings, program: CheckedProgram) -> Database:
    """A database with the program's rules and no facts but those of its text; warnings are printed."""
    if not settings.no_warn:
        for warning in program.warnings:
            say(worded(warning.render()))
    from lftj.database import Database

    db = Database(memory_limit=settings.memory_limit, threads=settings.threads, path=settings.database)
    if not db._has_program(program.program):
        _add_rules(db, settings, program)
        return db
    if settings.key_orders or settings.maintain or settings.granularity:
        option = next((option for option in VALUES if getattr(settings, option)), "key-order")
        db.close()
        _add_rules(Database(), settings, program)  # what is wrong with them in themselves comes first
        raise UsageError(
            f"--{option} comes too late for {settings.database}",
            why="the file has the program already, with the plans and strategies that it was made with",
            remedy=f"leave --{option} out, or give --database a new file",
        )
    db._place(program.directives)
    return db


def _add_rules(db: Database, settings: Settings, program: CheckedProgram) -> None:
    """Add the rules of a program, with what the options say of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they have just been printed
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


def check_folders(settings: Settings, output: str, directives: Sequence[Directive]) -> None:
    """Refuse folders that cannot work before any time is spent. `output` is `STDIN` if no files are written."""
    inputs = [d for d in directives if d.kind == "input"]
    if settings.program == STDIN and (stdin := [d for d in inputs if d.io == "stdin"]):
        raise UsageError(
            f"stdin cannot hold both the program and the facts of `{stdin[0].relation}`",
            where=str(stdin[0].span),
            why="stdin can be read only once, and the program takes all of it",
            remedy="give the program as a file",
        )
    if not os.path.isdir(settings.facts):
        there = os.path.exists(settings.facts)
        raise UsageError(
            f"-F {settings.facts}: {'this is not a folder' if there else 'there is no such folder'}",
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
    from lftj.io.directive_files import check_outputs

    check_outputs(directives, output)
