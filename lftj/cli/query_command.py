"""`lftj query QUERY... PROGRAM`: questions to a program and its facts, the answers on stdout.

Only what the queries need is read and evaluated. Each has a column per named variable, as `Database.query` has. The
answers are printed one after the other, in one of the forms below; a blank line separates those of `table` and `csv`.

    table   columns in line, for people
    csv     with a header, quoted as RFC 4180 says
    json    a line for each query: a list of objects; what JSON has no values of is text, as in the other forms
    arrow   an IPC stream, of one query

`$name` in a query is a parameter: its value, given by `-p name=value`, is read as a field of a fact file is, and is no
part of the text. A query without variables has the answer `true` or `false`; in `json` it is `[{}]` or `[]`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lftj.cli.outcome import Code, UsageError
from lftj.cli.print_answers import ARROW, FORMS
from lftj.cli.program_file import STDIN, checked, is_sql
from lftj.cli.settings import Settings, by_name, check_folders, database
from lftj.errors import ProgramError
from lftj.language.diagnostics import did_you_mean
from lftj.language.parse import parse_query

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.language.clause import CheckedProgram
    from lftj.results.query import Query

# No query of rules begins so.
_SQL = re.compile(r"\s*(select|with|values)\s", re.IGNORECASE)


def answer(settings: Settings, given: Sequence[str], form: str, parameters: Sequence[str]) -> int:
    """Print the answers of all queries but the last of `given`, which is the program.

    `parameters`: `name=value` for those of the queries.
    """
    _check(given, form)
    values = by_name("-p", map(_parameter, parameters))
    *texts, named = given
    settings = replace(settings, program=named)
    if is_sql(named) or all(map(_SQL.match, texts)):
        return _answer_sql(settings, texts, form, values)
    program = checked(named)
    check_folders(settings, STDIN, program.directives)
    db = database(settings, program)
    queries = [_query(db, text, values, settings.timeout) for text in texts]
    _refuse_unused(values, queries)
    from lftj.io.directive_files import read_inputs

    needed = _needed(queries, program)
    read_inputs(db, settings.facts, skip=[d for d in db.directives if d.relation not in needed])
    for number, query in enumerate(queries):
        if number and form in ("table", "csv"):
            print()
        FORMS[form](query.relation())
    return Code.DONE


def _answer_sql(settings: Settings, texts: Sequence[str], form: str, values: dict[str, str]) -> int:
    """Answer queries of SQL, over a program of SQL or of rules; values of parameters are texts there."""
    from lftj.cli.sql_report import loaded
    from lftj.io.directive_files import read_inputs
    from lftj.results.transaction_delta import Deltas

    directives = () if is_sql(settings.program) else checked(settings.program).directives
    check_folders(settings, STDIN, directives)
    for name in values:
        if not any(re.search(rf"\${re.escape(name)}\b", text) for text in texts):
            _refuse_unused({name: values[name]}, ())
    if is_sql(settings.program):
        db, _ = loaded(settings)
    else:
        db = database(settings, checked(settings.program))
        read_inputs(db, settings.facts)
    for number, text in enumerate(texts):
        given = {name: value for name, value in values.items() if re.search(rf"\${re.escape(name)}\b", text)}
        try:
            rows = db.sql(text, timeout=settings.timeout, **given)  # type: ignore[arg-type]
        except ProgramError:
            if not _is_of_rules(text):
                raise
            raise UsageError(
                f"`{text}` asks as a rule does, and {settings.program} is a program of SQL",
                why="a program of SQL is asked in SQL",
                remedy="ask with `select`, as in `lftj query 'select * from total' report.sql`",
            ) from None
        if isinstance(rows, Deltas):
            raise UsageError(
                f"`{text}` changes the program",
                why="`lftj query` answers questions, and what it is given is forgotten afterwards",
                remedy="write it into the program, or ask with `select`",
            )
        if number and form in ("table", "csv"):
            print()
        FORMS[form](rows)
    return Code.DONE


def _is_of_rules(text: str) -> bool:
    """Whether a text can be read as the body of a rule."""
    try:
        parse_query(text, parameters=True)
    except ProgramError:
        return False
    return True


def _check(given: Sequence[str], form: str) -> None:
    if len(given) < 2:
        raise UsageError(
            "a query and a program are needed",
            why="`lftj query` asks a program questions",
            remedy="give the queries and then the program, as in `lftj query 'tri(1, y, z)' tri.dl -F facts`",
        )
    if given[-1] != STDIN and not Path(given[-1]).exists() and Path(given[0]).is_file():
        raise UsageError(
            f"the program does not stand last: {given[-1]} is no file, and {given[0]} is one",
            why="queries come first, and the program is the last argument",
            remedy="move the program behind the queries",
        )
    if form not in FORMS:
        raise UsageError(
            f"--format {form} is unknown",
            why="it is how answers are printed",
            remedy=f"give one of {', '.join(FORMS)}",
        )
    if form == ARROW and len(given) > 2:
        raise UsageError(
            "--format arrow is for one query",
            why="an Arrow stream has the columns of one table",
            remedy="ask the queries one by one, or use --format json",
        )
    if form == ARROW and sys.stdout.isatty():
        raise UsageError(
            "--format arrow is not for terminals",
            why="an Arrow stream is binary",
            remedy="send it to a file or a pipe, as in `lftj query ... --format arrow > answer.arrows`",
        )


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name = name.strip().removeprefix("$")
    if not equals or not name:
        raise UsageError(
            f"-p {text} gives no parameter a value",
            why="a parameter `$name` of a query takes its value from the command line",
            remedy="write -p name=value",
        )
    return name, value


def _query(db: Database, text: str, values: dict[str, str], timeout: float | None) -> Query:
    """The query of a text, with the values of its parameters."""
    from lftj.io.fields import text_value
    from lftj.values.faults import Fault
    from lftj.values.type_table import from_stored

    given: dict[str, object] = {}
    for name, parameter in db._compiled(text, None).parameters.items():
        if name not in values:
            raise UsageError(
                f"the query `{text}` needs a value for `${name}`",
                why="what begins with `$` is a parameter",
                remedy=f"give -p {name}=value",
            )
        value = text_value(os.fsencode(values[name]), parameter.type)
        if isinstance(value, Fault):
            raise UsageError(
                f"-p {name}={values[name]}: the value {value.reason}",
                why=f"`${name}` is of type {parameter.type} in `{text}`; {value.why}",
                remedy=value.remedy or f"give a {parameter.type}",
            )
        given[name] = from_stored(value, parameter.type)
    return db.query(text, timeout=timeout, **given)  # type: ignore[arg-type]


def _refuse_unused(values: dict[str, str], queries: Sequence[Query]) -> None:
    named = [name for query in queries for name in query._compiled.parameters]
    for name in values:
        if name not in named:
            raise UsageError(
                f"-p {name}: no query has a parameter `${name}`",
                why="a parameter is written with `$` in a query, within quotes that keep it from the shell",
                remedy=did_you_mean(name, named, f"write `${name}` in a query, or leave -p {name} out"),
            )


def _needed(queries: Sequence[Query], program: CheckedProgram) -> set[str]:
    """The relations that the queries read, and all that these are derived from."""
    needed: set[str] = set()
    waiting = [name for query in queries for name in query._compiled.reads]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [read for clause in program.clauses if clause.head == name for read in clause.reads]
    return needed
