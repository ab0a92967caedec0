"""`lftj explain`: the plans of a program, on the facts there are, or of a database in a file."""

from __future__ import annotations

from glob import glob
from typing import TYPE_CHECKING

from lftj.arguments import utf8
from lftj.cli.file_commands import is_database, opened
from lftj.cli.outcome import Code, say
from lftj.cli.program_file import checked, is_sql
from lftj.cli.settings import Settings, database
from lftj.cli.strategy_notes import note_strategies
from lftj.language.clause import Directive

if TYPE_CHECKING:
    from lftj.database import Database


def explain_program(settings: Settings, relation: str | None, *, evaluate: bool, as_json: bool) -> int:
    """Print how `relation` (None: everything) is, or with `evaluate` was, evaluated."""
    with _explained(settings) as db:
        if relation is not None:
            relation = utf8(relation)
            db.explain(relation)  # an unknown name is refused before any file is read
        if is_database(settings.program):
            if evaluate:  # a file has what is derived, and no figures of how that went
                db._evaluator.state = db._state.made_stale(db._strata.order)
        elif not is_sql(settings.program):
            _load(db, settings)
        if evaluate:
            db.evaluate(*([relation] if relation is not None else []), timeout=settings.timeout)
        note_strategies(db, settings)
        explanation = db.explain(relation)
        print(explanation.json() if as_json else explanation)
    return Code.DONE


def _explained(settings: Settings) -> Database:
    """A database with the rules that are explained; of a program of rules, without its facts."""
    if is_database(settings.program):
        return opened(settings)
    if is_sql(settings.program):
        from lftj.cli.sql_report import loaded

        return loaded(settings)
    return database(settings, checked(settings.program))


def _load(db: Database, settings: Settings) -> None:
    """Load the inputs that are there; say which are not. stdin is left alone: nobody types facts to see a plan."""
    from lftj.io.directive_files import input_path, read_inputs

    absent: list[Directive] = []
    inputs = [directive for directive in db.directives if directive.kind == "input"]
    for directive in inputs:
        path = input_path(directive, settings.facts)
        if path is None or not (path.exists() or glob(str(path))):
            absent.append(directive)
            cause = "stdin is not read" if path is None else f"there is no {path}"
            say(f"lftj: {cause}; `{directive.relation}` is planned with the program's own facts only")
    if len(absent) < len(inputs):  # else the folder, which must be there to be read, may be missing too
        read_inputs(db, settings.facts, skip=absent)
