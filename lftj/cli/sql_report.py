"""Programs of SQL on the command line: `lftj run report.sql`, and what other commands do with a file of that name.

The statements are carried out one after the other. A table is filled from its file, if there is one, as soon as it is
created: `orders` from `orders.csv`, `.tsv`, `.facts`, `.parquet` or whatever else `db.load` reads, so that statements
behind it see the rows. At the end every view is written to a file of its own, with a header, and what `select`
statements ask is answered on stdout.
"""

from __future__ import annotations

import re
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lftj.arguments import utf8
from lftj.cli.outcome import Code, UsageError, say
from lftj.cli.print_answers import print_table
from lftj.cli.program_file import STDIN, read_program
from lftj.cli.settings import Settings, check_folders
from lftj.cli.strategy_notes import note_strategies
from lftj.cli.tell_rejects import tell_rejects
from lftj.cli.updates import apply_updates, check_updates, opened
from lftj.errors import ConstraintError, DataError, DataWarning, Diagnostic, ProgramError
from lftj.language.clause import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from sqlglot import exp

    from lftj.database import Database
    from lftj.io.rejects import Rejects
    from lftj.language.clause import Clause
    from lftj.program.rule_options import RuleOptions
    from lftj.sql.places import SqlText
    from lftj.sql.results import SqlResult
    from lftj.values.schema import Schema

    Program = tuple[SqlText, list[exp.Expression], RuleOptions]
    Query = Callable[[], SqlResult]

# What remedies say of options, which no file of a table can be given -> what to do with the file or the table instead.
_FILE_WORDS = {
    r"if it is a row, say header=False; else say which column is which, as in columns=\{.*\}": (
        "if it is a row, write a line with the names of all columns above it; else give it these names"
    ),
    "if line 1 is a header, say header=True": "if line 1 is a header, give it the names of the table's columns",
    r"(pick the columns|say which is which): columns=\{.*\}": "name the columns in the file as the table does",
    "give the right delimiter= or declare fewer columns": (
        "put commas between the fields of a .csv file, and tabs elsewhere; or create the table with fewer columns"
    ),
    "read with quoting=False": "write a .tsv file, in which quotes are data",
    'pick the columns with columns=, or refuse such sources with extra="error"': (
        "create the table with these columns, or leave them out of the file"
    ),
}


def run_report(settings: Settings, output: str, on_error: str, stats: bool, updates: str | None) -> int:
    """Carry out a program of SQL, write its views and print the answers of its queries."""
    check_folders(settings, output, ())
    if updates is None:
        return _reported(settings, output, on_error, stats, None)
    check_updates(updates, settings.program, ())
    with opened(updates) as stream:
        return _reported(settings, output, on_error, stats, (stream, "<stdin>" if updates == STDIN else updates))


def _reported(settings: Settings, output: str, on_error: str, stats: bool, updates: tuple[BinaryIO, str] | None) -> int:
    from lftj.io.directive_files import made_folder

    started = time.perf_counter()
    db, program = _begun(settings)

    def report() -> None:
        _write_views(db, output, settings.timeout)
        for query in queries:
            print_table(query())

    with db._restoring():  # of a program that fails, its database has nothing, so that it can be run again
        queries = _carried_out(db, program, settings, on_error, None if output == STDIN else Path(output))
        db.evaluate(timeout=settings.timeout)
        note_strategies(db, settings)
        if updates is None:
            report()
        elif output != STDIN:
            made_folder(output)  # what updates commit stands, even if it cannot be written afterwards
    if updates is not None:
        apply_updates(db, *updates, settings.timeout, stats=stats)
        report()
    if not queries and not _views(db):
        say("lftj: the program has no view and no query, so nothing was evaluated")
    if stats:
        say(f"{db.explain()}\n{time.perf_counter() - started:.3f} s in all")
    db.close()
    return Code.DONE


def loaded(settings: Settings) -> Database:
    """A database with what the statements of a program define and change, and the files of tables."""
    db, program = _begun(settings)
    _carried_out(db, program, settings)
    return db


def _begun(settings: Settings) -> tuple[Database, Program]:
    """An empty database for a program, and the program, parsed, with what the command line says of its views."""
    from lftj.database import Database
    from lftj.sql.running import statements_of
    from lftj.sql.session import options_for

    source, statements = statements_of(*read_program(settings.program))
    options = options_for(settings.key_orders, settings.maintain, settings.granularity, statements)
    db = Database(memory_limit=settings.memory_limit, threads=settings.threads, path=settings.database)
    if db.seq:
        db.close()
        raise UsageError(
            f"--database {settings.database}: it is not empty",
            why="a program of SQL is carried out from its first statement on, and creates its tables",
            remedy="name a file that is not there; one that is there is read and changed from Python",
        )
    return db, (source, statements, options)


def _carried_out(
    db: Database, program: Program, settings: Settings, on_error: str = "raise", rejects_folder: Path | None = None
) -> list[Query]:
    """Carry out the statements of a program, and load the files of its tables; its queries."""
    from lftj.sql.one_off import asked
    from lftj.sql.question import Question
    from lftj.sql.session import carry_out, is_query

    source, statements, options = program
    queries: list[Query] = []
    rejects: dict[str, Rejects] = {}
    with db._restoring():  # constraints are about all tables
        for statement in statements:
            if is_query(statement):
                queries.append(partial(asked, db, Question(statement, source), settings.timeout))
                continue
            before = set(db)
            with db.transaction(timeout=settings.timeout) as tx:
                carry_out(tx, statement, source, options)
            for name in [name for name in db if name not in before and not db._strata.of(name)]:
                path = _file_of(name, settings.facts)
                if path is not None:
                    with _in_words_of_files():
                        bad = db.load(name, path, on_error=on_error)
                    if bad:
                        rejects[name] = bad
    if on_error == "quarantine":
        tell_rejects(rejects, [name for name in db if not db._strata.of(name)], rejects_folder)
    return queries


@contextmanager
def _in_words_of_files() -> Iterator[None]:
    """Turn remedies that name options of `db.load` into what can be done about the file of a table."""

    def worded(text: str) -> str:
        for option, words in _FILE_WORDS.items():
            text = re.sub(option, words, text)
        return text

    try:
        with warnings.catch_warnings(record=True) as told:
            yield
    except DataError as error:
        error.remedy = worded(error.remedy)
        raise
    for warning in told:
        warnings.warn(worded(str(warning.message)), DataWarning, stacklevel=2)


def view_rules(program: str) -> tuple[tuple[Clause, ...], dict[str, Schema]]:
    """The rules that the views of a program become, and the schemas of relations; no file is read but its own."""
    from sqlglot import exp

    from lftj.database import Database
    from lftj.sql.running import statements_of
    from lftj.sql.session import carry_out

    source, statements = statements_of(*read_program(program))
    db = Database()
    with db.transaction() as tx:
        for statement in statements:
            if isinstance(statement, exp.Create | exp.Drop):
                carry_out(tx, statement, source)
    state = db._state
    return state.strata.clauses, {name: relation.schema for name, relation in state.relations.items()}


def _file_of(table: str, facts: str) -> Path | None:
    """The file that a table is filled from; None if there is none."""
    from lftj.io.formats import format_of

    folder = Path(facts)
    if not folder.is_dir():
        return None
    found = sorted(
        path
        for path in folder.iterdir()
        if utf8(path.name).partition(".")[0] == table and path.is_file() and format_of(path).format is not None
    )
    if len(found) > 1:
        raise UsageError(
            f"several files for the table `{table}`: {', '.join(path.name for path in found)}",
            where=facts,
            why="a table is filled from the one file that has its name",
            remedy="leave one of them in the folder, or keep the others elsewhere",
        )
    return found[0] if found else None


def _views(db: Database) -> list[str]:
    return [head for head in db._strata.order if not head.startswith(INTERNAL)]


def _write_views(db: Database, output: str, timeout: float | None) -> None:
    """Write every view, evaluated before the first file is touched."""
    from lftj.io.directive_files import made_folder, print_rows
    from lftj.sql.results import rows_of

    views = _views(db)
    for name in views if output != STDIN else ():
        if Path(f"{name}.csv").name != f"{name}.csv":
            raise UsageError(
                f"the view `{name}` cannot be written to {output}",
                why="each view is a file of its name there, and this name leads to another folder",
                remedy="create it under another name, or print the views by -D -",
            )
    db.evaluate(timeout=timeout)
    answers = {name: rows_of(db[name]) for name in views}
    folder = None if output == STDIN else made_folder(output)
    for name, rows in answers.items():
        with _with_a_remedy():
            if folder is None:
                print_rows(rows, "\t")
            else:
                rows.to_csv(folder / f"{name}.csv")


@contextmanager
def _with_a_remedy() -> Iterator[None]:
    """Say of values that the form of reports cannot tell what to do about them: it has no other form."""
    from lftj.io.write_text import UnwritableTextError

    try:
        yield
    except UnwritableTextError as error:
        remedy = "ask by `lftj query 'select ...' PROGRAM --format json`, or give another value in the view"
        raise UnwritableTextError(error.what, where=error.where, why=error.why, remedy=remedy) from None


def check_report(program: str) -> list[Diagnostic]:
    """Every finding about a program of SQL; no file is read but its own.

    What a wrong statement would have defined is not reported as missing a second time.
    """
    from lftj.database import Database
    from lftj.sql.one_off import asked
    from lftj.sql.question import Question
    from lftj.sql.running import statements_of
    from lftj.sql.session import carry_out, defined, is_query

    try:
        source, statements = statements_of(*read_program(program))
    except ProgramError as error:
        return list(error.diagnostics)
    db, found = Database(), []
    undefined: set[str] = set()
    for statement in statements:
        try:
            if is_query(statement):
                asked(db, Question(statement, source), None)
            else:
                with db.transaction() as tx:
                    carry_out(tx, statement, source)
        except ConstraintError:
            continue  # what the rows refer to may be in files
        except ProgramError as error:
            undefined |= defined(statement)
            found += [d for d in error.diagnostics if not any(f"no table `{name}`" in d.what for name in undefined)]
    return found
