"""`lftj stream CIRCUIT.py --input NAME=FILE`: a circuit over files, and what each step gave as lines of JSON.

The Python file makes a `lftj.streams.Circuit` and calls it `circuit`. Every line of the output is a row of an output:
its columns, `_weight`, and `_output`, the name; underscores keep these two apart from columns. Values are those of
files of JSON (lftj/io/json_text.py).
"""

from __future__ import annotations

import json
import linecache
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lftj.cli.outcome import Code, UsageError, say
from lftj.cli.settings import by_name
from lftj.errors import Diagnostic, Error, ProgramError, Span, frames_of_users
from lftj.io.json_text import json_values
from lftj.results.tabular import apart
from lftj.streams.circuit import Circuit
from lftj.streams.weighted import WEIGHT, WeightedRows
from lftj.values.faults import counted
from lftj.values.type_table import type_of


def run_circuit(program: str, inputs: Sequence[str], rows: str, follow: bool, stats: bool) -> int:
    """Step the circuit of a Python file over its inputs, and print what it gives."""
    circuit = _circuit(program)
    sources = by_name("--input", map(_input, inputs), remedy="put the rows into one file: one after the other")
    if not rows.isdecimal() or int(rows) < 1:
        raise UsageError(
            f"--rows {rows} is not a number of rows", why="it says how many rows make a step", remedy="give 1 or more"
        )
    if circuit.inputs and not sources:
        *others, last = circuit.inputs
        raise UsageError(
            f"no input is given; {'its inputs are' if others else 'its input is'} "
            + (f"{', '.join(others)} and {last}" if others else last),
            where=program,
            why="the circuit steps over the rows of its inputs",
            remedy=f"give {' '.join(f'--input {name}=FILE' for name in circuit.inputs)}",
        )
    steps = 0
    try:
        for deltas in circuit.run(sources, rows=int(rows), follow=follow):
            steps += 1
            for name, delta in deltas.items():
                _print(name, delta)
            sys.stdout.flush()
    finally:
        for column, count in circuit.late.items():
            if count:
                say(f"lftj: {counted(count, 'row')} came below the watermark of `{column}` and changed nothing")
        if stats:
            say(f"{steps:,} steps\n{circuit.explain()}")
    return Code.DONE


def _circuit(program: str) -> Circuit:
    """The circuit that a Python file makes."""
    if not Path(program).is_file():
        is_folder = Path(program).is_dir()
        raise UsageError(
            f"{program} is a folder" if is_folder else f"there is no file {program}",
            why="a circuit is made by one file of Python" if is_folder else "it makes the circuit",
            remedy="give a file in it" if is_folder else "check the path",
        )
    folder = os.path.dirname(os.path.abspath(program))
    sys.path.insert(0, folder)
    try:
        made = runpy.run_path(program, run_name="__lftj__").get("circuit")
    except SyntaxError as error:
        raise ProgramError([_syntax_error(error, program)]) from None
    except ImportError as error:
        raise _missing(error, program) from None
    except (Error, MemoryError, BrokenPipeError):  # which have messages of their own
        raise
    except Exception as error:
        raise ProgramError([_raised(error, program, folder)]) from None
    finally:
        sys.path.remove(folder)
    if not isinstance(made, Circuit):
        raise UsageError(
            f"{program} makes no circuit",
            why="a circuit is looked for under the name `circuit`",
            remedy="write `circuit = streams.Circuit()` at the top level of the file",
        )
    return made if made.of_changes else made.incremental()


def _syntax_error(error: SyntaxError, program: str) -> Diagnostic:
    """What is wrong with the text of the file, or of one that it imports."""
    line, column = error.lineno or 0, error.offset or 0
    end = max(error.end_offset or 0, column + 1)
    text = (error.text or "").rstrip("\n")
    span = Span(error.filename or program, line, column, error.end_lineno or line, end, text)
    return Diagnostic(
        f"this is not Python: {error.msg}",
        span,
        why="a circuit is made by a Python file",
        remedy="correct it; a program of rules or of SQL is run by `lftj run`",
    )


def _raised(error: Exception, program: str, folder: str) -> Diagnostic:
    """What the code of the file raised, or that of one beside it: where, and from where that was called."""
    spans = [
        _span(frame)
        for frame in traceback.extract_tb(frames_of_users(error.__traceback__))
        if frame.filename == program or _is_beside(Path(frame.filename), folder)
    ]
    # A recursion is at the same places again and again.
    span, *callers = dict.fromkeys(reversed(spans)) or [Span(program)]
    return Diagnostic(
        "".join(traceback.format_exception_only(error)).strip(),
        span,
        why="a circuit is made by running a Python file",
        remedy=f"correct it; `{Path(sys.executable).name} {program}` prints the whole traceback",
        related=tuple(("called from", caller) for caller in callers),
    )


def _is_beside(path: Path, folder: str) -> bool:
    """Whether a file is one of the user in a folder, where the packages of an environment may be, too."""
    return path.is_relative_to(folder) and "site-packages" not in path.parts


def _span(frame: traceback.FrameSummary) -> Span:
    """Where a frame is. Python counts columns in bytes, from 0."""
    text = linecache.getline(frame.filename, frame.lineno or 0).rstrip("\n")
    column, end = (
        0 if at is None else len(text.encode()[:at].decode(errors="replace")) + 1
        for at in (frame.colno, frame.end_colno)
    )
    return Span(frame.filename, frame.lineno or 0, column, frame.end_lineno or 0, end, text)


def _missing(error: ImportError, program: str) -> UsageError:
    """The error for an import of the file, or of one that it imports, that fails."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == program]
    return UsageError(
        f"an import fails: {error}",
        where=f"{program}:{lines[-1]}" if lines else program,
        why=f"the Python that runs it is {sys.executable}, and modules beside the file are found too",
        remedy="install what is missing there, or check the name",
    )


def _input(given: str) -> tuple[str, str]:
    name, equals, path = given.partition("=")
    if not name or not equals or not path:
        raise UsageError(
            f"--input {given} names no file for an input",
            why="it says what an input of the circuit is read from",
            remedy="write --input NAME=FILE",
        )
    return name, path


def _print(name: str, delta: WeightedRows) -> None:
    columns = list(delta.columns)
    types = list(map(type_of, delta.columns.values()))
    output_key, weight_key = apart("_output", columns), apart(WEIGHT, columns)
    for row, weight in delta:
        values = dict(zip(columns, json_values(row, types), strict=True))
        line: dict[str, Any] = {output_key: name, weight_key: weight, **values}
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
