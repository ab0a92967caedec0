"""The program a command works on: read from its file (or stdin), parsed, checked, before anything heavy is imported."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import BinaryIO

from lftj.cli.outcome import UsageError
from lftj.durable.magic import MAGIC
from lftj.errors import Diagnostic, ProgramError, Span
from lftj.io.lines import HEAD_BYTES, is_utf16
from lftj.language import ast
from lftj.language.checker import check
from lftj.language.clause import CheckedProgram
from lftj.language.parse import parse

STDIN = "-"


def is_sql(program: str) -> bool:
    """Whether a program is one of SQL, by its name."""
    return program.lower().endswith(".sql")


def stdin() -> BinaryIO:
    """What the process is given to read."""
    if sys.stdin is None:
        raise UsageError(
            "stdin is closed",
            why=f"{STDIN} reads what the command is given there",
            remedy=f"send something to it, or name a file instead of {STDIN}",
        )
    return sys.stdin.buffer


def read_program(named: str) -> tuple[str, str]:
    """The text of a program and the name that messages give it."""
    if named == STDIN:
        return _decoded(stdin().read(), "<stdin>"), "<stdin>"
    if not named:
        raise UsageError(
            "the program has no name",
            why="the empty text names no file",
            remedy=f"name a program file, or {STDIN} for stdin",
        )
    path = Path(named)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            "no such program file", where=named, why=f"the working directory is {Path.cwd()}", remedy=_nearest(path)
        ) from None
    except IsADirectoryError:
        raise UsageError(
            "this is a folder, not a program", where=named, why="a program is one file of rules", remedy=_example(path)
        ) from None
    except PermissionError:
        raise UsageError(
            "no permission to read the program",
            where=named,
            why="the operating system does not let this user open it",
            remedy="change its permissions",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise UsageError("the program cannot be read", where=named, why=why, remedy="check the name") from None
    if content.startswith(MAGIC):
        raise UsageError(
            "this is a database, not a program",
            where=named,
            why="a program is a text of rules or of SQL",
            remedy=f"name the program; a database is asked by `lftj query QUERY {named}`, and written to by "
            "`lftj run PROGRAM --database FILE`",
        )
    return _decoded(content, named), named


def checked(named: str) -> CheckedProgram:
    """The program, parsed and checked; ProgramError with every finding if it is wrong."""
    return check(parsed(named))


def parsed(named: str) -> ast.Program:
    """The program, parsed."""
    if is_sql(named):
        raise UsageError(
            "this is a program of SQL",
            where=named,
            why="the command is for programs of rules",
            remedy="use `lftj run`, `lftj check`, `lftj explain` or `lftj query`, which take both",
        )
    return parse(*read_program(named))


def _decoded(content: bytes, name: str) -> str:
    utf16 = is_utf16(content[:HEAD_BYTES])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start
    else:
        if not utf16:
            return text
        start = content.index(b"\0")
    before = content[:start]
    line = before.count(b"\n") + 1
    column = len(before.rpartition(b"\n")[2].decode("utf-8-sig", "replace")) + 1
    span = Span(name, line, column, line, column + 1)
    why = f"the byte 0x{content[start]:02x} cannot stand here"
    remedy = f"save the file as UTF-8{'; it looks like UTF-16' if utf16 else ''}"
    raise ProgramError([Diagnostic("the program is not UTF-8 text", span, why=why, remedy=remedy)])


def _nearest(path: Path) -> str:
    if path.is_symlink():
        return f"mend the link: it leads to {str(path.readlink())!r}"
    if not path.parent.is_dir():
        return f"check the folder: {str(path.parent)!r} does not exist"
    try:
        there = sorted(other.name for other in path.parent.iterdir())
    except OSError:  # a folder that may be passed through, and not listed
        there = []
    near = difflib.get_close_matches(path.name, there, 1)
    return f"did you mean `{path.parent / near[0]}`?" if near else "check the name"


def _example(folder: Path) -> str:
    programs = sorted(folder.glob("*.dl"))
    return f"name a program in it, such as `{programs[0]}`" if programs else "name a program file"
