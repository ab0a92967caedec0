"""The command line: `lftj COMMAND ...`, or `python -m lftj COMMAND ...`.

    lftj run PROGRAM [-F DIR] [-D DIR|-]   evaluate; facts from -F, results to -D, as Souffle does; `-` reads stdin
        --timeout S                        give up after S seconds of evaluation
        --memory-limit SIZE                give up beyond SIZE of stored pages: 500MB, 2GiB
        --on-error raise|quarantine        bad rows: refuse the file, or keep them apart in RELATION.rejects
                                           (on stderr with `-D -`)
        --key-order HEAD=X,Y,Z             force the order in which the rules of HEAD bind their variables
        --maintain HEAD=auto|trace|delta|triggers|recompute    how HEAD follows changes (auto: what is estimated to be
                                           quicker)
        --granularity HEAD=auto|node|interval    what its trace keeps, where there is a choice
        --updates FILE|-                   then apply the changes in FILE, and print what each commit changed
        --database FILE                    keep everything in a database, which is made if it is not there
        --stats                            how each rule was evaluated, and how long it took, on stderr
        -w, --no-warn                      no warnings about the program
        -j, --jobs, --threads N            threads to use, up to one per core (auto: that many)
    lftj query QUERY... PROGRAM [-F DIR]   the answers of queries; -p NAME=VALUE, --format table|csv|json|arrow, limits
    lftj query QUERY... DATABASE           the same of a database in a file; so does `explain`
    lftj watch PROGRAM [-F DIR]            follow the program and its files, and print what changes
    lftj stream CIRCUIT.py --input NAME=FILE   a circuit of lftj.streams over files; each step prints what changed
        --rows N  --follow  --stats        rows a step; wait for more; the circuit with its last step, on stderr
    lftj check PROGRAM... [--json]         every finding with its place, at once; no data is read
    lftj check DATABASE... [--evaluate]    what is damaged in a database in a file; what is derived against evaluation
    lftj backup DATABASE COPY              a copy, while others read and write; `compact DATABASE` gives space back
    lftj log DATABASE [--since N] [--json] what was committed to it
    lftj fmt PROGRAM... [--check] [--diff] programs in their standard form, rewritten in place; `-` is stdin to stdout
    lftj lsp                               the language server, for editors (needs lftj[lsp])
    lftj explain PROGRAM [RELATION]        key orders and estimates; [-F DIR] [--run] [--json] and limits as in `run`
    lftj triggers FILE [--naive]           how sums and counts of rules, or of the calculus, are kept by triggers
    lftj functors [--json]                 operators, functors and tests of the language, each with an example
    lftj doctor [--json]                   versions, cache, machine, Java, extras, and what to do about what is missing
    lftj demo [--quick]                    two real graphs: triangles, cliques, paths, and a live stream
    lftj bench ...                         the benchmark of a checkout (not in --help); records nothing without --record
    lftj --version, lftj --help, lftj --show-completion, lftj --install-completion

Other options of Souffle are refused by name. stdout is data only; messages, warnings and progress go to stderr.

    exit code   means
    0           done; `check`: no errors (warnings do not count); `fmt --check`: nothing to format
    1           the program is wrong: it does not check, or a rule has no value (division by zero)
    2           the command line is wrong: unknown option, no such program file
    3           data is wrong: a missing or unreadable file, a bad row or change, an output that cannot be written
    124         a limit ran out: --timeout, --memory-limit, or the machine's memory
    130         interrupted (Ctrl-C)
    141         whoever read stdout stopped reading (as in `lftj run ... | head`)

In every case but 0 the outputs are those of before, or whole files of this run; none is half written. What commits of
`--updates` printed stands.

The life of a call: `app` parses the arguments (typer) into a *job* and does nothing else; `main` runs the job and turns
what it raises into a message and an exit code (`outcome`), Ctrl-C while modules are imported too. Each job lives in a
file of its own and imports what it needs when it runs: `lftj check` never sees numba. Nor does it see typer if its
arguments are plain, since editors run it at every save, and typer takes longer to import than a program to check.
"""

from __future__ import annotations

import os
import sys

# Ctrl-C cannot be caught before `main` runs, so nothing is imported here but what Python imports by itself.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (`arguments`: those of the process); returns the exit code."""
    try:
        return _outcome(arguments)
    except KeyboardInterrupt as stop:
        return _interrupted(stop)
    except RuntimeError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return _interrupted(error)  # Python 3.11 wraps what comes while a class is made, as imports do


def _outcome(arguments: Sequence[str] | None) -> int:
    """Run one command, and say what it raises."""
    from lftj.cli.outcome import outcome_of

    given = sys.argv[1:] if arguments is None else arguments

    def command() -> int:
        if check := _plain_check(given):
            return check()
        from lftj.cli.app import parse

        job = parse(arguments)
        return job() if callable(job) else job

    return outcome_of(command, quarantine=list(given[:1]) == ["run"])


def _interrupted(stop: BaseException) -> int:
    """Say that the command was interrupted; without `outcome`, whose import may be what was."""
    if sys.stderr is not None:
        sys.stderr.write(" at ".join(["lftj: interrupted", *getattr(stop, "__notes__", ())[:1]]) + "\n")
        sys.stderr.flush()
    # After a KeyboardInterrupt in an `exec`, as dataclasses use, Python would end by the signal; another undoes it.
    exec("")
    return INTERRUPTED


def _plain_check(arguments: Sequence[str]) -> Callable[[], int] | None:
    """The job of `check PROGRAM... [--json]`; None if the arguments are any others, which are typer's."""
    programs = [argument for argument in arguments[1:] if argument != "--json"]
    plain = all(program == "-" or program[:1] not in ("", "-") for program in programs)
    # typer expands `*.dl` on Windows
    if list(arguments[:1]) != ["check"] or not programs or not plain or os.name == "nt":
        return None
    from functools import partial

    from lftj.cli.check_command import check_all

    return partial(check_all, programs, as_json=len(programs) < len(arguments) - 1, evaluate=False)
