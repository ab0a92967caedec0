"""The one family of errors that lftj raises on purpose.

An error is born where the cause is known, carries what a program needs to react (`what`, `where`, `why`, `remedy`)
and is printed as

    prog.dl:4:9: error: variable `z` occurs in the head but in no atom of the body
        p(x, z) :- e(x, y).
             ^
      why: a rule can only derive values that its body binds
      do: bind `z` in an atom of the body, or drop it from the head

A `Diagnostic` is one such finding; `ProgramError` carries all findings of a program at once. Every class also derives
from the built-in exception a caller would expect (`ValueError`, `KeyError`, `TimeoutError`, ...), so code that knows
nothing of lftj can catch it.
"""

from __future__ import annotations

import contextlib
import copyreg
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_OURS = tuple(str(_ROOT / package) + os.sep for package in ("lftj", "scantree", "sensitivity", "spark_bridge"))
# Characters of a source line in a message.
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a program text or in a Python file.

    Lines and columns count from 1; `end_column` is one past the last character.

    `source` is the file name ("<rules>" for a string). `line_text` is the source line the caret is drawn under ("" if
    not known).
    """

    source: str = "<rules>"
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    line_text: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.column:
            return f"{self.source}:{self.line}:{self.column}"
        return f"{self.source}:{self.line}" if self.line else self.source

    def caret(self) -> str:
        """The source line, or the part around the place if it is long, with a caret run below; empty if not known."""
        if not self.line_text:
            return ""
        shown = self.line_text.removesuffix("\r").expandtabs(1)
        if not self.column:
            return f"    {_in_place(_cut(shown.strip(), 0)[0])}"
        width = self.end_column - self.column if self.end_line == self.line else len(shown) - self.column + 1
        part, at = _cut(shown, self.column - 1)
        return f"    {_in_place(part)}\n    {' ' * at}{'^' * max(1, min(width, len(part) - at))}"


def _cut(line: str, at: int) -> tuple[str, int]:
    """(at most `_SHOWN` characters of a line around its character `at`, where that is in them)."""
    if len(line) <= _SHOWN:
        return line, at
    first = max(0, min(at - _SHOWN // 2, len(line) - _SHOWN))
    before, after = "…" if first else "", "…" if first + _SHOWN < len(line) else ""
    return before + line[first : first + _SHOWN] + after, at - first + len(before)


def _in_place(line: str) -> str:
    """A line in which what does not print, or what a terminal obeys, is a sign of the same width."""
    from lftj.html import printable

    return "".join(char if len(printable(char)) == 1 else "\N{REPLACEMENT CHARACTER}" for char in line)


def spelled(message: str) -> str:
    """A message in which such characters are spelled: it may quote a file that holds anything."""
    from lftj.html import printable

    return "\n".join(map(printable, in_utf8(message).split("\n")))


def in_utf8(message: str) -> str:
    """A message whose names of files are UTF-8 where they can be, whatever the locale takes them for."""
    with contextlib.suppress(UnicodeEncodeError):  # half a character, which is of no name
        return message.encode(errors="surrogateescape").decode(errors="surrogateescape")
    return message


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a program: what is wrong, where, why it matters, what to do.

    `related` names other places that take part (the first declaration, the other type of a conflict), each with a
    word of explanation.
    """

    what: str
    span: Span
    why: str
    remedy: str
    severity: str = "error"
    predicate: str = ""
    related: tuple[tuple[str, Span], ...] = ()

    def render(self) -> str:
        """The finding as the text a user reads, without a trailing newline."""
        lines = [f"{self.span}: {self.severity}: {self.what}"]
        if caret := self.span.caret():
            lines.append(caret)
        for word, span in self.related:
            lines.append(f"  {word}: {span}")
            if caret := span.caret():
                lines.append(caret)
        lines += [f"  why: {self.why}", f"  do: {self.remedy}"]
        return spelled("\n".join(lines))


class Error(Exception):
    """Base of every error lftj raises on purpose. Fields: `what`, `where`, `why`, `remedy`.

    `details`: lines that belong to `what`, shown below it.
    """

    details: tuple[str, ...] = ()

    def __init__(self, what: str, *, why: str, remedy: str, where: str = "") -> None:
        self.what, self.where, self.why, self.remedy = what, where, why, remedy
        super().__init__(self.render())

    def __reduce__(self) -> tuple[Any, ...]:
        # As it is, without `__init__`, whose arguments differ from class to class: a pickled error is the same error.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        from lftj import html

        return html.shown(html.error(f"{type(self).__name__}: {self.render()}"))

    def _render_traceback_(self) -> list[str]:
        """The traceback in IPython and in notebooks, in the mode that is set there, without the frames of lftj."""
        import traceback

        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        trace = frames_of_users(self.__traceback__)
        if shell is None:
            return traceback.format_exception(type(self), self, trace)
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, trace, tb_offset=0)
        return lines

    def placed(self, where: str) -> None:
        """Say where it was: for whoever knows the place and did not make the error."""
        self.where = where
        self.args = (self.render(),)

    def render(self) -> str:
        """The message as the text a user reads."""
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        lines += [f"  {line}" for line in self.details]
        lines += [f"  why: {self.why}", f"  do: {self.remedy}"]
        return spelled("\n".join(lines))


def frames_of_users(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of lftj and of what it stands between: IPython above, context managers within."""
    frames = []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_OURS) and name != contextlib.__file__ and "IPython" not in Path(name).parts:
            frames.append(trace)
        trace = trace.tb_next
    kept = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


class ProgramError(Error, ValueError):
    """A program (or query) was refused before any data was touched.

    `diagnostics` holds every finding, in source order.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        first = self.diagnostics[0]
        super().__init__(first.what, where=str(first.span), why=first.why, remedy=first.remedy)

    def render(self) -> str:
        """All findings, a blank line between two."""
        return "\n\n".join(d.render() for d in self.diagnostics)


class DataError(Error, ValueError):
    """Input data was refused; nothing of it was loaded."""


class ArgumentError(DataError, TypeError):
    """An argument is of another kind than the call takes, or outside of what it may be. Nothing was changed."""

    __str__ = Error.__str__


class UnknownColumnError(DataError, KeyError):
    """A column was asked for that the relation does not have."""

    __str__ = Error.__str__


class UnknownInputError(DataError, KeyError):
    """Rows were given for an input that the circuit does not have."""

    __str__ = Error.__str__


class DataWarning(UserWarning):
    """Data was taken, and not all of it as its giver may think: columns passed over, rows that rules derive again."""


class UnknownRelationError(Error, KeyError):
    """A relation was asked for that neither the rules nor any load declared."""

    __str__ = Error.__str__


class EvaluationError(Error, ArithmeticError):
    """A rule could not be computed (division by zero, a value out of range). Nothing was changed."""


class CycleError(EvaluationError):
    """A value would come from itself: a count of paths along a cycle, or a recursive aggregate. Nothing was changed.

    `cycle`: the nodes around it, from one to itself; of a recursion, their keys.
    """

    def __init__(self, what: str, *, cycle: tuple[object, ...], where: str = "", why: str, remedy: str) -> None:
        self.cycle = cycle
        super().__init__(what, where=where, why=why, remedy=remedy)


class CountRangeError(EvaluationError):
    """A count of paths is beyond what a column of type number holds; the `PathCounts` has it, exactly."""


class KeyConflictError(DataError, EvaluationError):
    """A functional predicate was to have two values under one key, or a table two rows. Nothing was changed.

    `relation`: its name. `rows`: two rows with one key (all columns but the last, or the primary key); `derivations`:
    what says each of them.
    """

    def __init__(
        self,
        what: str,
        *,
        relation: str,
        rows: tuple[tuple[object, ...], tuple[object, ...]],
        derivations: tuple[str, str],
        why: str,
        remedy: str,
        details: tuple[str, ...] = (),
        where: str = "",
    ) -> None:
        self.relation, self.rows, self.derivations, self.details = relation, rows, derivations, details
        super().__init__(what, where=where, why=why, remedy=remedy)


class ConstraintError(DataError, EvaluationError):
    """A constraint was to be broken: a relation that must be empty was to have a row. Nothing was changed.

    `relation`: its name. `constraint`: what it must be empty for, in words. `row`: a row that it would have.
    """

    def __init__(
        self,
        what: str,
        *,
        relation: str,
        constraint: str,
        row: tuple[object, ...],
        why: str,
        remedy: str,
        details: tuple[str, ...] = (),
    ) -> None:
        self.relation, self.constraint, self.row, self.details = relation, constraint, row, details
        super().__init__(what, why=why, remedy=remedy)


class MissingKeyError(Error, KeyError):
    """A functional predicate was asked for the value of a key that it has none for."""

    __str__ = Error.__str__


class TimeoutExpired(Error, TimeoutError):
    """`timeout=` ran out. Nothing was changed."""


class MemoryLimitError(Error, MemoryError):
    """The memory limit, or the machine's memory, ran out. Nothing was changed."""


class DatabaseFileError(Error, OSError):
    """A database's file cannot be opened, read or written, or is damaged. Nothing was changed."""

    __str__ = Error.__str__


class TransactionError(Error, RuntimeError):
    """A transaction was used before its block began or after it ended, or within another."""


class ForkError(Error, RuntimeError):
    """A process was forked while another thread was at work, and wants what that thread had. Nothing was changed."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} cannot be used in this process: it was forked while another thread was at work there",
            why="the child has none of its parent's other threads, and what that one had begun is half done here",
            remedy="fork before, or while no other thread is at work with lftj, or start processes by spawning them,"
            ' as in `multiprocessing.get_context("spawn")`',
        )


class MissingPackageError(Error, ImportError):
    """A part of lftj needs a package that is not installed."""


class BuilderError(Error, TypeError):
    """The builder was used in a way that makes no rule. `where` is the line of the user's file."""
