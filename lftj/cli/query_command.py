"""`lftj query QUERY... PROGRAM`: questions to a program and its facts, or to a database in a file; answers on stdout.

Only what the queries need is read and evaluated. Of a database that is the state at the moment when it is opened,
whatever is written to it meanwhile. A query is of rules, with a column per named variable as `Database.query` has, or
of SQL. The answers are printed one after the other, in one of the forms below; a blank line separates those of `table`
and `csv`.

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
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lftj.arguments import utf8
from lftj.cli.file_commands import is_database, opened
from lftj.cli.outcome import Code, UsageError
from lftj.cli.print_answers import ARROW, FORMS
from lftj.cli.program_file import STDIN, checked, is_sql
from lftj.cli.settings import Settings, by_name, check_folders, database
from lftj.errors import ArgumentError, ProgramError
from lftj.language.diagnostics import did_you_mean
from lftj.language.parse import parse_query

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.language.clause import CheckedProgram
    from lftj.results.query import Query
    from lftj.sql.results import SqlResult

# No query of rules begins so: not even with two words. Comments and parentheses may stand before a statement.
_BEFORE = r"(?:[\s(]|--[^\n]*\n|/\*[\s\S]*?\*/)*"
_CHANGE = re.compile(rf"{_BEFORE}(insert|update|delete|create|drop|alter|merge|truncate)\s+\w", re.IGNORECASE)
_SQL = re.compile(rf"{_BEFORE}((select|with|values)\s|(from|table)\s+[\w\"])|{_CHANGE.pattern}", re.IGNORECASE)
_ORDER = "queries come first, and the program or database is the last argument"
_PARAMETER = re.compile(r"\$(\w+)")


def answer(settings: Settings, given: Sequence[str], form: str, parameters: Sequence[str]) -> int:
    """Print the answers of all queries but the last of `given`, which is the program, or a database in a file.

    `parameters`: `name=value` for those of the queries.
    """
    _check(given, form)
    values = by_name("-p", map(_parameter, parameters))
    *texts, named = *map(utf8, given[:-1]), given[-1]
    settings = replace(settings, program=named)
    of_sql = [text for text in texts if is_sql(named) or _SQL.match(text)]
    of_rules = [text for text in texts if text not in of_sql]
    if not of_rules:
        _refuse_unused(values, _named_in(of_sql))  # before any time is spent
    program = None if is_sql(named) or is_database(named) else checked(named)
    with _asked(settings, program) as db:
        queries = {text: _query(db, text, values, settings.timeout) for text in of_rules}
        in_rules = [name for query in queries.values() for name in query._compiled.parameters]
        _refuse_unused(values, [*_named_in(of_sql), *in_rules])
        if program is not None:
            from lftj.io.directive_files import read_inputs

            needed = set(db) if of_sql else _needed(queries.values(), program)
            read_inputs(db, settings.facts, skip=[d for d in db.directives if d.relation not in needed])
        # All of them first: of queries of which one is refused nothing is printed.
        answers = [
            queries[text].relation() if text in queries else _answer_of_sql(db, settings, text, values)
            for text in texts
        ]
        for number, rows in enumerate(answers):
            if number and form in ("table", "csv"):
                print()
            FORMS[form](rows)
    return Code.DONE


def _asked(settings: Settings, program: CheckedProgram | None) -> Database:
    """What is asked: a database in a file, or one with a program; of one of rules (`program`), without its facts."""
    if program is not None:
        check_folders(settings, STDIN, program.directives)
        return database(settings, program)
    if is_sql(settings.program):
        from lftj.cli.sql_report import loaded

        check_folders(settings, STDIN, ())
        return loaded(settings)
    return opened(settings)


def _answer_of_sql(db: Database, settings: Settings, text: str, values: dict[str, str]) -> SqlResult:
    """The answer of a query of SQL; values of parameters are texts there."""
    from lftj.results.transaction_delta import Deltas
    from lftj.sql.running import NAME, statements_of

    if _CHANGE.match(text):
        raise _changes(text, settings)
    given = {name: values[name] for name in _named_in([text]) if name in values}
    try:
        _, statements = statements_of(text, NAME, given)
        if len(statements) > 1:
            raise UsageError(
                f"`{text}` holds {len(statements)} statements",
                why="a query has one answer, and the others would be lost",
                remedy="give each as a query of its own, as in `lftj query 'select ...' 'select ...' PROGRAM`",
            )
        rows = db.sql(text, timeout=settings.timeout, **given)  # type: ignore[arg-type]
    except ArgumentError:
        for name in _named_in([text]):
            if name not in values:
                raise _without_value(name, text) from None
        raise
    except ProgramError:
        if not _is_of_rules(text):
            raise
        raise UsageError(
            f"`{text}` asks as a rule does, and {settings.program} is a program of SQL",
            why="a program of SQL is asked in SQL",
            remedy="ask with `select`, as in `lftj query 'select * from total' report.sql`",
        ) from None
    if isinstance(rows, Deltas):  # `with ... insert`
        raise _changes(text, settings)
    return rows


def _changes(text: str, settings: Settings) -> UsageError:
    """The error for a statement that is no query."""
    if is_database(settings.program):
        return UsageError(
            f"`{text}` changes the database",
            why="`lftj query` answers questions, and opens a database to read it",
            remedy="ask with `select`; `lftj run PROGRAM --database FILE --updates CHANGES` changes rows",
        )
    return UsageError(
        f"`{text}` changes the program",
        why="`lftj query` answers questions, and what it is given is forgotten afterwards",
        remedy="write it into the program, or ask with `select`",
    )


def _named_in(texts: Sequence[str]) -> list[str]:
    """The parameters that texts of SQL name."""
    return [name for text in texts for name in _PARAMETER.findall(text)]


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
            why="`lftj query` asks a program questions, or a database in a file",
            remedy="give the queries and then what they ask, as in `lftj query 'tri(1, y, z)' tri.dl -F facts`",
        )
    _check_places(given)
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


def _check_places(given: Sequence[str]) -> None:
    """Refuse files among the queries, and a query in the place of the program."""
    *before, last = given
    files = [text for text in before if os.path.isfile(text) and not _is_query(text)]
    there = last == STDIN or os.path.exists(last)
    asks = not there and _is_query(last)
    queries = [text for text in before if text not in files] + [last] * asks
    if not files:
        if asks:
            raise UsageError(
                f"no program is given: the last argument is the query `{last}`",
                why=_ORDER,
                remedy=f"name it after the queries, as in {_command(queries, 'tri.dl')}",
            )
        return
    if os.path.isdir(last):
        raise UsageError(
            f"the program does not come last: {last} is a folder, and {files[0]} is a file",
            why=f"{_ORDER}; the folder of the facts is an option",
            remedy=f"give the folder to -F, as in {_command(queries, files[0], '-F', last)}",
        )
    if len(programs := [*files, *[last] * there]) > 1:
        raise UsageError(
            f"{', '.join(programs[:-1])} and {programs[-1]} cannot be asked at once",
            why=f"{_ORDER}, one; its fact files are found in the folder of -F",
            remedy=f"give one of them, as in {_command(queries, files[0])}",
        )
    raise UsageError(
        f"the program does not come last: {last} is not a file, and {files[0]} is one",
        why=_ORDER,
        remedy=f"put the program after the queries, as in {_command(queries, files[0])}",
    )


def _is_query(text: str) -> bool:
    """Whether a text can be read as a query, of rules or of SQL."""
    return bool(_SQL.match(text)) or _is_of_rules(text)


def _command(queries: Sequence[str], *others: str) -> str:
    """The command that asks queries, as a shell takes it."""
    return f"`lftj query {shlex.join([*(queries or ['tri(1, y, z)']), *others])}`"


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = utf8(text).partition("=")
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
    from lftj.values.type_table import from_stored, type_of

    given: dict[str, object] = {}
    for name, parameter in db._compiled(text, None).parameters.items():
        if name not in values:
            raise _without_value(name, text)
        value = text_value(values[name].encode(errors="surrogateescape"), parameter.type)
        if isinstance(value, Fault):
            raise UsageError(
                f"-p {name}={values[name]}: the value {value.reason}",
                why=f"`${name}` is of type {parameter.type} in `{text}`; {value.why}",
                # Not what is to be done about one in a file, such as to declare its column otherwise.
                remedy=f"give {type_of(parameter.type).article}, as in -p {name}=...",
            )
        given[name] = from_stored(value, parameter.type)
    return db.query(text, timeout=timeout, **given)  # type: ignore[arg-type]


def _without_value(name: str, text: str) -> UsageError:
    """The error for a parameter of a query that is given no value."""
    return UsageError(
        f"the query `{text}` needs a value for `${name}`",
        why="what begins with `$` is a parameter",
        remedy=f"give -p {name}=value",
    )


def _refuse_unused(values: dict[str, str], named: Sequence[str]) -> None:
    """Refuse values of parameters that no query names; `named`: those that are."""
    for name in values:
        if name not in named:
            raise UsageError(
                f"-p {name}: no query has a parameter `${name}`",
                why="a parameter is written with `$` in a query, within quotes that keep it from the shell",
                remedy=did_you_mean(name, named, f"write `${name}` in a query, or leave -p {name} out"),
            )


def _needed(queries: Iterable[Query], program: CheckedProgram) -> set[str]:
    """The relations that the queries read, and all that these are derived from."""
    needed: set[str] = set()
    waiting = [name for query in queries for name in query._compiled.reads]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [read for clause in program.clauses if clause.head == name for read in clause.reads]
    return needed
