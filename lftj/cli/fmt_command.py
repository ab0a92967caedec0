"""`lftj fmt FILE...`: programs in the standard form of `lftj.language.formatting`, rewritten in place.

`-` formats stdin to stdout. A file that does not parse is reported and left as it is, and the others are formatted all
the same. A file is written beside its place and moved there, and only if something changes.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from lftj.cli.outcome import Code, UsageError, rendered, say
from lftj.cli.program_file import STDIN, is_sql, read_program
from lftj.errors import DataError, ProgramError
from lftj.language.formatting import formatted
from lftj.values.faults import counted


def format_programs(programs: Sequence[str], *, check: bool, diff: bool) -> int:
    """Format programs. With `check` or `diff` nothing is written: 1 if a file is not in its standard form.

    1 too if one does not parse, 2 if one could not be read, 3 if one could not be written.
    """
    if STDIN in programs and len(programs) > 1:
        raise UsageError(
            "stdin and files cannot be formatted at once",
            why="what stdin holds goes to stdout, and files are rewritten",
            remedy=f"give files, or {STDIN} alone",
        )
    codes = [_formatted(program, check=check, diff=diff) for program in dict.fromkeys(programs)]
    if not diff and programs != [STDIN]:
        changed = sum(changes for _, changes in codes)
        others = sum(code == Code.DONE and not changes for code, changes in codes)
        verb = "would be reformatted" if check else "reformatted"
        say(f"lftj: {counted(changed, 'file')} {verb}, {counted(others, 'file')} left unchanged")
    if check or diff:
        codes += [(Code.PROGRAM, False)] * any(changes for _, changes in codes)
    return max(code for code, _ in codes)


def _formatted(program: str, *, check: bool, diff: bool) -> tuple[Code, bool]:
    """Format one program: its exit code, and whether it changes."""
    try:
        if is_sql(program):
            raise UsageError(
                "this is a program of SQL",
                where=program,
                why="`lftj fmt` formats programs of rules",
                remedy="leave it out; `lftj run` and `lftj check` take SQL",
            )
        text, source = read_program(program)
        made = formatted(text, source)
    except (ProgramError, UsageError) as error:
        say(rendered(error))
        return Code.USAGE if isinstance(error, UsageError) else Code.PROGRAM, False
    changes = made != text
    if diff:
        sys.stdout.writelines(_diff(text, made, source))
    elif program == STDIN and not check:
        sys.stdout.buffer.write(made.encode())
    elif changes and check:
        say(f"{program}: not in standard form")
    elif changes:
        try:
            _write(Path(program), made)
        except DataError as error:  # the others are formatted all the same
            say(rendered(error))
            return Code.DATA, False
    return Code.DONE, changes


def _diff(text: str, made: str, source: str) -> list[str]:
    """The changes as a unified diff. Lines end at line feeds only, as for `patch`: a comment may hold a form feed."""
    lines = difflib.unified_diff(list(StringIO(text)), list(StringIO(made)), source, f"{source} (formatted)")
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _write(path: Path, text: str) -> None:
    """Put a text in the place of a file, keeping its permissions; a link stays one, to the rewritten file."""
    path = path.resolve()
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(text.encode())
        shutil.copymode(path, beside)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        why = error.strerror or str(error)
        raise DataError("the program cannot be written", where=str(path), why=why, remedy="check permissions") from None
