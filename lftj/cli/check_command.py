"""`lftj check`: every finding about programs, for people (stdout, with carets) or for programs (`--json`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from lftj.cli.outcome import Code, UsageError, painted, rendered, say, worded
from lftj.cli.program_file import checked, is_sql
from lftj.cli.sql_report import check_report
from lftj.errors import Diagnostic, ProgramError, Span
from lftj.values.faults import counted


def check_all(paths: Sequence[str], *, as_json: bool, evaluate: bool = False) -> int:
    """Check programs for mistakes, or databases in files for damage."""
    from lftj.cli.file_commands import check_files, database_files

    if database_files(paths):
        return check_files(paths, as_json=as_json, evaluate=evaluate)
    if evaluate:
        raise UsageError(
            "--evaluate is for databases in files",
            why="a program is checked without reading data, so that there is nothing derived to compare",
            remedy="leave it out, or name databases",
        )
    return check_programs(paths, as_json=as_json)


def check_programs(programs: Sequence[str], *, as_json: bool) -> int:
    """Print the findings of all programs. 1 if one of them is an error, 2 if a program could not be read."""
    found: list[Diagnostic] = []
    unread = 0
    for program in programs:
        try:
            found += check_report(program) if is_sql(program) else checked(program).warnings
        except ProgramError as error:
            found += error.diagnostics
        except UsageError as error:  # the others are checked all the same
            say(rendered(error))
            unread += 1
    if as_json:
        import json

        print(json.dumps([as_dict(diagnostic) for diagnostic in found], indent=2))
    elif found:
        print(painted(worded("\n\n".join(diagnostic.render() for diagnostic in found)), sys.stdout))
    errors = sum(diagnostic.severity == "error" for diagnostic in found)
    if not as_json:
        read = counted(len(programs) - unread, "program")
        said = [counted(n, word) for n, word in ((errors, "error"), (len(found) - errors, "warning")) if n]
        say(f"lftj: {read} checked, {', '.join(said) or 'no findings'}")
    return Code.USAGE if unread else Code.PROGRAM if errors else Code.DONE


def as_dict(diagnostic: Diagnostic) -> dict[str, Any]:
    """A finding as JSON has it."""
    return {
        "severity": diagnostic.severity,
        "what": worded(diagnostic.what),
        "why": worded(diagnostic.why),
        "remedy": worded(diagnostic.remedy),
        "predicate": diagnostic.predicate,
        **_place(diagnostic.span),
        "related": [{"what": word, **_place(span)} for word, span in diagnostic.related],
    }


def _place(span: Span) -> dict[str, Any]:
    return {
        "file": span.source,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "source_line": span.line_text,
    }
