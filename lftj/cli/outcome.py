"""Outcomes: what a command raises becomes a message on stderr and an exit code; the table is in `lftj.cli`.

Errors of lftj are printed as compilers do, `place: error: what`, with `why` and `do` lines; what they say of the
library's calls and arguments becomes commands and options here. Anything else that is raised is a defect of lftj and
keeps its traceback.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from enum import IntEnum
from typing import BinaryIO, TextIO

from lftj.errors import (
    DatabaseFileError,
    DataError,
    DataWarning,
    Error,
    MemoryLimitError,
    TimeoutExpired,
    UnknownInputError,
    UnknownRelationError,
    in_utf8,
    spelled,
)
from lftj.progress import wants_colour

# What a message says to users of the library -> what it says to users of the command line.
_WORDS = {
    "`timeout=`": "--timeout",
    "`memory_limit=`": "--memory-limit",
    'on_error="quarantine"': "--on-error quarantine",
    "`explain()`": "`lftj explain`",
    "`list(db)`": "`lftj explain PROGRAM`",
    "`lftj.fn`": "`lftj functors`",
    "`tx.upsert`": "`=` before a change of --updates",
    "give it to `db.sql`": "put it into a file whose name ends in .sql",
    'read db["answer"]': "`.output answer`",
    "change the rows by `db.load` or in a transaction": "change the rows with --updates",
    "the folder that the facts are read from": "the folder of the facts, which -F names",
    'ask `db.query("tri(1, y, z)")`': "ask `lftj query 'tri(1, y, z)' PROGRAM`",
    'columns=, or refuse such sources with extra="error"': "columns= in the `.input` directive",
    'give a file, as in path="shop.lftj"': "give a file, such as shop.lftj",
    "open the file without a program; `db.rules` and `tx.remove_rules` change the rules in it": (
        "give the program that it was made with, or --database a new file; Python changes the rules in a file"
    ),
    "read_only=True opens a file that is there": "the command reads a file that is there",
    "check the path, or open it once without read_only": "check the path; `lftj run PROGRAM --database FILE` makes one",
    "open it without read_only=True; or change a copy in memory, `db.branch()`": (
        "ask with `select`; `lftj run PROGRAM --database FILE --updates CHANGES` changes rows"
    ),
    "use `tx.erase` and `tx.insert`": "use `-` and `+` changes of --updates",
}
# Errors of the operating system that no command expects -> why, and what to do.
_FULL = "the disk behind stdout, or behind a file that is written, is full", "make room there, or write elsewhere"
_DENIED = "the operating system does not let this user do it", "change the permissions of the file and of its folder"
_ANOTHER = "the operating system says so", "check the files and folders of the command, and what stdout leads to"
_OF_THE_SYSTEM = {errno.ENOSPC: _FULL, errno.EACCES: _DENIED, errno.EPERM: _DENIED}
# Only `lftj run` can be told to.
_QUARANTINE = ", or keep the good rows with --on-error quarantine"
_QUERY = re.compile(r'`db\.query\("(p\(\$([^,]+), x\))", [^=]+=\.\.\.\)`')  # with the name of a parameter
_SPOKEN = re.compile("|".join(map(re.escape, _WORDS)))
_MARKED = re.compile(r"^(\S.*?: )?(error|warning)(?=: )", re.MULTILINE)
_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}


class Code(IntEnum):
    """Exit codes."""

    DONE = 0
    PROGRAM = 1
    USAGE = 2
    DATA = 3
    LIMIT = 124
    READER_GONE = 141


class UsageError(Error):
    """The command line asks for something that cannot be done."""


class _Closed(io.TextIOBase):
    """Stands in for a stdout that is closed, which Python has none for: what is written there is an error.

    So no command has to look, and one that writes nothing runs as ever.
    """

    def write(self, text: str) -> int:
        raise self._error()

    @property
    def buffer(self) -> BinaryIO:
        """The stream of bytes behind it."""
        raise self._error()

    def _error(self) -> DataError:
        return DataError(
            "stdout is closed",
            why="what is to be written there has nowhere to go",
            remedy="write to a file, or leave stdout open",
        )


def outcome_of(command: Callable[[], int], *, quarantine: bool) -> int:
    """Run `command`, print what it raises, return the exit code; `quarantine`: whether it has `--on-error`."""
    if sys.stdout is None:
        with redirect_stdout(_Closed()):
            return outcome_of(command, quarantine=quarantine)
    if isinstance(sys.stdout, io.TextIOWrapper):  # data is UTF-8, in and out; a file's name may be any bytes
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if isinstance(sys.stderr, io.TextIOWrapper) and codecs.lookup(sys.stderr.encoding).name == "ascii":
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")  # whose characters are the same up to there
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DataWarning)
            warnings.showwarning = lambda message, *_: say(worded(f"lftj: warning: {message}"))
            code = command()
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return Code.READER_GONE
    except Error as error:
        say(rendered(error, quarantine=quarantine))
        return _code(error)
    except MemoryError:
        say("lftj: error: the machine's memory ran out\n  do: load less, or stop earlier with --memory-limit")
        return Code.LIMIT
    except OSError as error:
        why, remedy = _OF_THE_SYSTEM.get(error.errno or 0, _ANOTHER)
        named = f": {error.filename}" if error.filename else ""
        say(spelled(f"lftj: error: {error.strerror or error}{named}\n  why: {why}\n  do: {remedy}"))
        return Code.DATA
    return code


def _code(error: Error) -> Code:
    if isinstance(error, UsageError | UnknownInputError | UnknownRelationError):
        return Code.USAGE
    if isinstance(error, TimeoutExpired | MemoryLimitError):
        return Code.LIMIT
    if isinstance(error, DataError | DatabaseFileError):
        return Code.DATA
    return Code.PROGRAM


def rendered(error: Error, *, quarantine: bool = False) -> str:
    """The message of an error, in the words of the command line; `quarantine`: whether the command has `--on-error`."""
    text = error.render()
    if type(error).render is Error.render:  # others show the place, the mark and the source line themselves
        where = spelled(error.where)
        text = f"{where or 'lftj'}: error: {text.removeprefix(f'{where}: ')}"
    return worded(text) if quarantine else worded(text).replace(_QUARANTINE, "")


def worded(text: str) -> str:
    """A message in the words of the command line."""
    text = _QUERY.sub(r"`lftj query '\1' PROGRAM -p \2=...`", text)
    return _SPOKEN.sub(lambda found: _WORDS[found[0]], text)


def say(text: str) -> None:
    """A message, on stderr."""
    if sys.stderr is not None:
        sys.stderr.write(painted(in_utf8(text), sys.stderr) + "\n")
        sys.stderr.flush()


def painted(text: str, stream: TextIO) -> str:
    """`text` with its "error" and "warning" marks in colour, if `stream` is a terminal that wants them."""
    if not wants_colour(stream):
        return text
    return _MARKED.sub(lambda found: f"{found[1] or ''}{_COLOURS[found[2]]}{found[2]}\x1b[0m", text)


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a stdout without a descriptor, as tests have
        return
