"""`lftj run`: read a program and its facts, evaluate, write."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lftj.cli.outcome import Code, UsageError, say
from lftj.cli.program_file import STDIN, checked, is_sql
from lftj.cli.settings import Settings, check_folders, database
from lftj.cli.strategy_notes import note_strategies
from lftj.cli.tell_rejects import tell_rejects
from lftj.cli.updates import apply_updates, check_updates, opened
from lftj.errors import CountRangeError

if TYPE_CHECKING:
    from lftj.language.clause import CheckedProgram


def run_program(settings: Settings, output: str, on_error: str, stats: bool, updates: str | None = None) -> int:
    """Evaluate a program as the command line says, and follow the changes in `updates`."""
    if on_error not in ("raise", "quarantine"):
        raise UsageError(
            f"--on-error {on_error} is unknown",
            why="files with bad rows are refused, or their bad rows are kept apart",
            remedy="give --on-error raise or --on-error quarantine",
        )
    if is_sql(settings.program):
        from lftj.cli.sql_report import run_report

        return run_report(settings, output, on_error, stats, updates)
    program = checked(settings.program)
    check_folders(settings, output, program.directives)
    if updates is None:
        return _evaluated(settings, program, output, on_error, stats, None)
    check_updates(updates, settings.program, program.directives)
    with opened(updates) as stream:
        source = "<stdin>" if updates == STDIN else updates
        return _evaluated(settings, program, output, on_error, stats, (stream, source))


def _evaluated(
    settings: Settings,
    program: CheckedProgram,
    output: str,
    on_error: str,
    stats: bool,
    updates: tuple[BinaryIO, str] | None,
) -> int:
    from lftj.io.directive_files import made_folder, read_inputs, write_outputs

    clock = time.perf_counter
    db = database(settings, program)
    start = clock()
    # What a rule has no value for in the database may be mended by the updates.
    before = {} if updates is None or settings.database is None else db._refresh_others(settings.timeout)
    with db._restoring():  # a run that fails leaves its database as it was: the next one reads the same files
        rejects = read_inputs(db, settings.facts, on_error=on_error)
        loaded = clock()
        if on_error == "quarantine":
            inputs = [d.relation for d in db.directives if d.kind == "input"]
            tell_rejects(rejects, inputs, None if output == STDIN else Path(output))
        wanted = dict.fromkeys(d.relation for d in program.directives if d.kind != "input")
        if updates is not None:  # without `.output`, they print the changes of all heads
            for head, error in db._refresh_others(settings.timeout).items():
                if head not in before and not isinstance(error, CountRangeError):
                    raise error
        elif wanted:
            db.evaluate(*wanted, timeout=settings.timeout)
        else:
            say("lftj: the program has no `.output` and no `.printsize`, so nothing was evaluated")
        note_strategies(db, settings)
        evaluated = updated = clock()
        if updates is None:
            write_outputs(db, output)
        elif output != STDIN:
            made_folder(output)  # what updates commit stands, even if it cannot be written afterwards
    if updates is not None:
        apply_updates(db, *updates, settings.timeout, stats=stats)
        updated = clock()
        write_outputs(db, output)
    if stats:
        phases = {"loaded": loaded - start, "evaluated": evaluated - loaded}
        if updates is not None:
            phases["updated"] = updated - evaluated
        phases["written"] = clock() - updated
        say("\n".join([str(db.explain()), ", ".join(f"{phase} in {t:.3f} s" for phase, t in phases.items())]))
    db.close()
    return Code.DONE
