"""Databases in files (`lftj.durable`): `lftj check`, `backup`, `compact` and `log` of them, and how they are asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lftj.cli.outcome import Code, UsageError, say
from lftj.values.faults import counted

if TYPE_CHECKING:
    from lftj.cli.settings import Settings
    from lftj.database import Database
    from lftj.durable.checking import Damage


def is_database(path: str) -> bool:
    """Whether an argument is a database in a file, by its first bytes or its name."""
    from lftj.durable.magic import is_file

    return path != "-" and (path.endswith(".lftj") or is_file(path))


def opened(settings: Settings) -> Database:
    """The database in the file that stands in the place of a program: as it is now, whoever writes to it."""
    from lftj.database import Database

    path = settings.program
    if settings.facts != ".":
        raise UsageError(
            f"-F {settings.facts}: {path} is a database, and reads no fact files",
            why="its facts are in the file",
            remedy="leave -F out",
        )
    for option, given in (
        ("key-order", settings.key_orders),
        ("maintain", settings.maintain),
        ("granularity", settings.granularity),
    ):
        if given:
            raise UsageError(
                f"--{option} comes too late for {path}",
                why="the file has its rules, with the plans and strategies that they were made with",
                remedy=f"leave --{option} out",
            )
    return Database(path=path, read_only=True, memory_limit=settings.memory_limit, threads=settings.threads)


def database_files(paths: Sequence[str]) -> bool:
    """Whether all paths are databases in files; an error if only some are."""
    found = [path for path in paths if is_database(path)]
    if found and len(found) < len(paths):
        raise UsageError(
            f"{found[0]} is a database, and other files are programs",
            why="a program is checked for mistakes, a database for damage",
            remedy="check them by two calls",
        )
    return bool(found)


def check_files(paths: Sequence[str], *, as_json: bool, evaluate: bool) -> int:
    """Print what is wrong with databases in files; 3 if anything is."""
    from lftj.durable import checking

    findings = [(path, found) for path in paths for found in checking.check(path)]
    if evaluate and not findings:
        findings = [(path, found) for path in paths for found in _evaluated(path)]
    if as_json:
        print(json.dumps([{"file": path, **found._asdict()} for path, found in findings], indent=2))
    else:
        for path, found in findings:
            print(f"{path}: {'error' if found.lost else 'warning'}: {found.what}\n  do: {found.remedy}")
        number = counted(len(findings), "finding") if findings else "no findings"
        say(f"lftj: {counted(len(paths), 'database')} checked, {number}")
    return Code.DATA if findings else Code.DONE


def _evaluated(path: str) -> list[Damage]:
    """The derived relations of a database that are not what its rules derive."""
    from lftj.database import Database
    from lftj.durable import checking

    with Database(path=path, read_only=True) as kept, Database(path=path, read_only=True) as anew:
        return checking.check(path, opened=(kept, anew))


def back_up(path: str, to: str) -> int:
    """Copy a database in a file."""
    from lftj.durable import care

    size = care.backup(path, to)
    say(f"lftj: {to} is a copy, {size / 1e6:,.1f} MB")
    return Code.DONE


def compact_file(path: str) -> int:
    """Give back the space that a file does not need any more."""
    from lftj.database import Database
    from lftj.durable import care

    care.look(path).close()  # a file that is not there is not made
    with Database(path=path) as database:
        before, after = care.compact(database)
    say(f"lftj: {path} took {before / 1e6:,.1f} MB, and now takes {after / 1e6:,.1f} MB")
    return Code.DONE


def show_log(path: str, since: str, *, as_json: bool) -> int:
    """Print the entries of the log of a database in a file."""
    from lftj.durable import care

    if not since.isascii() or not since.isdigit():
        raise UsageError(
            f"--since {since} is not the number of an entry",
            why="entries are numbered from 1 on",
            remedy="give the number of the last entry that you have seen, such as 7",
        )
    row = None
    for row in care.log(path, int(since)):
        when = row.time.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        if as_json:
            print(json.dumps({"seq": row.seq, "time": row.time.isoformat(), "what": row.what, "bytes": row.size}))
        else:
            print(f"{row.seq:>8}  {when}  {row.what}")
    if row is None:
        say(
            f"lftj: no entries after {since}; a checkpoint drops those before it, "
            "unless the database was opened with retain="
        )
    return Code.DONE
