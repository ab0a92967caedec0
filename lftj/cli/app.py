"""Arguments: from the command line to a job, by typer. What each command does stands in a file of its own.

Values are taken as text and converted by the commands, so that a wrong one is refused in lftj's words whatever
typer's version. typer formats help as plain text: it is read in pipes and narrow terminals too.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from lftj.cli import INTERRUPTED
from lftj.cli.app_options import (
    Checked,
    DatabasePath,
    Facts,
    Granularity,
    Jobs,
    Json,
    KeyOrders,
    Maintain,
    Memory,
    Program,
    Programs,
    Quiet,
    Timeout,
    Watched,
)
from lftj.cli.completion import bad_row_ways, forms, relations
from lftj.cli.outcome import Code, UsageError, say
from lftj.cli.souffle import refusal

Job = Callable[[], int]

app = typer.Typer(
    name="lftj",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> Job:
    """Datalog rules and SQL over files, evaluated by leapfrog triejoin.

    Try `lftj demo`, or `lftj run PROGRAM -F facts -D out`. stdout is data; the rest goes to stderr. Exit codes: 0 done,
    1 the program is wrong, 2 the command line is, 3 the data is, 124 a limit ran out, 130 interrupted.
    """
    if version:
        raise typer.Exit(_print_version())
    if context.invoked_subcommand is None:
        return partial(_without_command, context.get_help())
    return lambda: Code.DONE


@app.command(short_help="Evaluate a program: .input files in, .output files out.")
def run(
    program: Program,
    facts: Facts = ".",
    output: Annotated[
        str, typer.Option("-D", "--output-dir", metavar="DIR", help="Folder of the files that .output names, or -.")
    ] = ".",
    timeout: Timeout = None,
    memory_limit: Memory = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error",
            metavar="raise|quarantine",
            autocompletion=bad_row_ways,
            help="Bad rows: refuse all, or keep them in RELATION.rejects (with -D -: stderr).",
        ),
    ] = "raise",
    key_order: KeyOrders = None,
    maintain: Maintain = None,
    granularity: Granularity = None,
    updates: Annotated[
        str | None,
        typer.Option(
            "--updates",
            metavar="FILE",
            help="Then apply the changes in FILE (- is stdin), and print what each commit changed.",
            show_default=False,
        ),
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Say how rules were evaluated, and how long.")] = False,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="FILE",
            help="Keep everything in this database; it is made if it is not there.",
            show_default=False,
        ),
    ] = None,
    no_warn: Quiet = False,
    jobs: Jobs = "1",
) -> Job:
    """Evaluate a program: read its .input files, write its .output files.

    Flags and files are Souffle's; an option of Souffle that lftj does not have is refused by name. A program in a .sql
    file is one of SQL: its tables are read from the files in -F that have their names, its views are written to -D,
    and what its queries answer is printed.

    A file of --updates has a change per line, `+edge 1 2` or `-edge 3 4`; `=price anvil 3` gives a key of a functional
    predicate another value. A blank line, and the end of the file, commits; what that changed in the .output relations
    goes to stdout in the same form, ended by a blank line.
    """
    from lftj.cli.run_command import run_program
    from lftj.cli.settings import Settings

    settings = Settings.of(program, facts, timeout, memory_limit, key_order, maintain, granularity, no_warn, jobs)
    return partial(run_program, replace(settings, database=database), output, on_error, stats, updates)


@app.command(short_help="Ask a program, or a database in a file, questions.")
def query(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY", help="Queries, and last what they ask: a program or a database.", show_default=False
        ),
    ],
    facts: Facts = ".",
    form: Annotated[
        str,
        typer.Option("--format", metavar="table|csv|json|arrow", help="How answers are printed.", autocompletion=forms),
    ] = "table",
    parameters: Annotated[
        list[str] | None,
        typer.Option("-p", "--param", metavar="NAME=VALUE", help="The value of $NAME in the queries. May be repeated."),
    ] = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    no_warn: Quiet = False,
    jobs: Jobs = "1",
) -> Job:
    """Ask a program questions, as in `lftj query 'tri(1, y, z), y < z' tri.dl -F facts`.

    A query is the body of a rule, with a column for each named variable in its answer; or a `select` of SQL (needs
    lftj[sql]). Only the relations that queries of rules need are read and evaluated. What is asked is a program of
    rules, one of SQL, or a database in a file, which is opened to be read while others may write to it.
    """
    from lftj.cli.query_command import answer
    from lftj.cli.settings import Settings

    settings = Settings.of("", facts, timeout, memory_limit, None, None, None, no_warn, jobs)
    return partial(answer, settings, given, form, parameters or [])


@app.command(short_help="Follow the files of a program, and print what changes.")
def watch(
    program: Watched,
    facts: Facts = ".",
    interval: Annotated[
        str, typer.Option("--interval", metavar="SECONDS", help="Time between two checks of the files.")
    ] = "0.5",
    initial: Annotated[bool, typer.Option("--initial/--no-initial", help="Print all derived rows first.")] = True,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    no_warn: Quiet = False,
    jobs: Jobs = "1",
) -> Job:
    """Evaluate a program, and again whenever it or one of its fact files changes, until Ctrl-C.

    Each change prints what it did to the .output relations, as `lftj run --updates` does: `+tri 1 2 3`, `-tri 3 4 5`,
    and a blank line. Errors in a file are reported, and the last good state stays.
    """
    from lftj.cli.settings import Settings
    from lftj.cli.watch_command import watch

    settings = Settings.of(program, facts, timeout, memory_limit, None, None, None, no_warn, jobs)
    return partial(watch, settings, interval, initial=initial)


@app.command(short_help="Run a circuit over files, and print its changes.")
def stream(
    program: Annotated[
        str, typer.Argument(metavar="CIRCUIT.py", help="A Python file that makes `circuit`.", show_default=False)
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE",
            help="File of an input: .ndjson, .jsonl, .csv, .tsv, .parquet or .arrow. May be repeated.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[str, typer.Option("--rows", metavar="N", help="Rows of each input in a step.")] = "10000",
    follow: Annotated[bool, typer.Option("--follow", help="Wait for rows that are appended to text files.")] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Then print the circuit with its last step, on stderr.")
    ] = False,
) -> Job:
    """Run a circuit over files: each step prints what changed in the outputs, as a line of JSON for each row."""
    from lftj.cli.stream_command import run_circuit

    return partial(run_circuit, program, inputs or [], rows, follow, stats)


@app.command(short_help="Compile all kernels, so that no later run waits for them.")
def warmup(
    updates: Annotated[bool, typer.Option("--updates", help="Only the kernels that follow changes.")] = False,
) -> Job:
    """Compile every kernel that a program may need, and keep the machine code: once on a machine or in an image."""
    from lftj.cli.warmup import compile_all, compile_updates

    return compile_updates if updates else compile_all


@app.command(short_help="Find all mistakes in programs, or damage in databases.")
def check(
    programs: Checked,
    json: Json = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="For databases: compare what is derived with an evaluation.")
    ] = False,
) -> Job:
    """Check programs of rules or of SQL without reading any data: all findings, each with its place.

    Databases in files are checked for damage.
    """
    from lftj.cli.check_command import check_all

    return partial(check_all, programs, as_json=json, evaluate=evaluate)


@app.command(short_help="Copy a database in a file, while it is in use.")
def backup(path: DatabasePath, to: Annotated[str, typer.Argument(metavar="COPY", show_default=False)]) -> Job:
    """Copy a database in a file as it is at one moment; others may read and write it meanwhile."""
    from lftj.cli.file_commands import back_up

    return partial(back_up, path, to)


@app.command(short_help="Give back the space that a database in a file does not need any more.")
def compact(path: DatabasePath) -> Job:
    """Write a checkpoint, drop what is not needed any more, and give back the space."""
    from lftj.cli.file_commands import compact_file

    return partial(compact_file, path)


@app.command(short_help="Show what was committed to a database in a file.")
def log(
    path: DatabasePath,
    since: Annotated[str, typer.Option("--since", metavar="N", help="Entries after this one.")] = "0",
    json: Json = False,
) -> Job:
    """Show the entries of the log: number, time, and how many rows of each relation came (+) and went (-)."""
    from lftj.cli.file_commands import show_log

    return partial(show_log, path, since, as_json=json)


@app.command(short_help="Format programs; comments stay.")
def fmt(
    programs: Programs,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; 1 if a file is not in standard form.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print what would change, and write nothing.")] = False,
) -> Job:
    """Rewrite programs of rules in the standard form. Meaning and comments stay; - formats stdin to stdout."""
    from lftj.cli.fmt_command import format_programs

    return partial(format_programs, programs, check=check, diff=diff)


@app.command(short_help="Show how sums and counts are kept by triggers.")
def triggers(
    program: Annotated[
        str, typer.Argument(metavar="FILE", help="Rules (.dl), SQL (.sql), the calculus (.calc), or M3F (.m3f).")
    ],
    form: Annotated[str, typer.Option("--format", metavar="m3f|dot|svg", help="How it is printed.")] = "m3f",
    naive: Annotated[bool, typer.Option("--naive", help="A view for every delta (viewlet transform).")] = False,
) -> Job:
    """Print how the maps that keep sums, counts and means change with a row that comes or goes: M3F, or a picture."""
    from lftj.cli.triggers_command import print_triggers

    return partial(print_triggers, program, form=form, naive=naive)


@app.command(short_help="Start the language server, for editors.")
def lsp(
    facts: Annotated[
        str | None,
        typer.Option("-F", "--fact-dir", metavar="DIR", help="Folder of the input files, for their sizes."),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Use stdin and stdout. It always does; editors say so.", show_default=False)
    ] = True,
) -> Job:
    """Answer an editor on stdin and stdout: findings, types, definitions, renaming, completion, formatting.

    The folder of the facts is relative to that of the program; without one, it is looked for there and in `facts`.
    """
    from lftj.cli.lsp_command import serve_editor

    return partial(serve_editor, facts)


@app.command(short_help="Show how a program is, or was, evaluated.")
def explain(
    program: Program,
    relation: Annotated[
        str | None,
        typer.Argument(
            metavar="RELATION",
            help="Only what this relation needs.",
            show_default=False,
            autocompletion=relations,
        ),
    ] = None,
    facts: Facts = ".",
    evaluate: Annotated[bool, typer.Option("--run", help="Evaluate too, for actual figures beside estimates.")] = False,
    json: Json = False,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    key_order: KeyOrders = None,
    maintain: Maintain = None,
    granularity: Granularity = None,
    no_warn: Quiet = False,
) -> Job:
    """Show how rules, or views of SQL, are evaluated: key orders, what each atom reads, estimates.

    Estimates come from the facts in -F, where a relation whose file is not there is taken as empty; of a database, they
    come from what it holds. PROGRAM is a program of rules, one of SQL, or a database in a file.
    """
    from lftj.cli.explain import explain_program
    from lftj.cli.settings import Settings

    settings = Settings.of(program, facts, timeout, memory_limit, key_order, maintain, granularity, no_warn)
    return partial(explain_program, settings, relation, evaluate=evaluate, as_json=json)


@app.command(short_help="List the functors of the language, with examples.")
def functors(json: Json = False) -> Job:
    """List the operators, functors and tests of the language: types, what each gives, and an example that holds."""
    from lftj.cli.functors_command import show_functors

    return partial(show_functors, as_json=json)


@app.command(short_help="Examine the installation, and say what to do.")
def doctor(json: Json = False) -> Job:
    """Show versions, the cache, the machine, Java and extras, and what to do about each.

    The exit code is 1 if one is broken.
    """
    from lftj.cli.doctor_command import examine

    return partial(examine, as_json=json)


@app.command(short_help="Triangles, cliques and paths in two real graphs.")
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what takes long.")] = False,
) -> Job:
    """Triangles, cliques and paths in two real graphs that ship with lftj."""
    from lftj.demo import show

    return partial(show, quick=quick)


@app.command(
    hidden=True,
    short_help="Run the benchmark of a checkout of the project.",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
def bench(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Those of bench.run.")] = None,
) -> Job:
    """Run the benchmark of a checkout of the project; the arguments are its own.

    It prints what it measures, and records nothing without --record.
    """
    from lftj.cli.bench import run_bench

    return partial(run_bench, arguments or [])


def parse(arguments: Sequence[str] | None) -> Job | int:
    """The job that the arguments ask for; an exit code if typer did all there was to do (help, version)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        found: Any = app(args=given, prog_name="lftj", standalone_mode=False)
    except SystemExit as done:  # of what typer does by itself: completion
        return int(done.code or 0)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise _usage(error, given) from None
    if found == INTERRUPTED:  # typer takes Ctrl-C as an exit
        raise KeyboardInterrupt
    return found if callable(found) or isinstance(found, int) else Code.DONE


def _usage(error: Any, given: list[str]) -> UsageError:
    """What typer refuses, in lftj's words. Its error classes moved between versions; their names did not."""
    commands = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
    command = error.ctx.command_path if error.ctx is not None else "lftj"
    if error.ctx is None and given[0] in commands:  # an option without its value
        command = f"lftj {given[0]}"
    remedy = f"see `{command} --help`"
    if type(error).__name__ == "NoSuchOption":
        known = refusal(error.option_name)
        if known is not None:
            return UsageError(f"Souffle's option {error.option_name} is not supported", why=known[0], remedy=known[1])
        near = error.possibilities or []
        return UsageError(
            f"no such option: {error.option_name}",
            why=f"`{command}` has no option of that name",
            remedy=f"did you mean {near[0]}?" if near else remedy,
        )
    what = str(error.format_message()).rstrip(".").replace("argument(s)", "argument")
    if missing := re.match(r"No such command '(.*?)'", what):
        named, what = missing[1], missing[0]
        near = difflib.get_close_matches(named, commands, 1)
        remedy = f"did you mean `lftj {near[0]}`?" if near else remedy
        if named.endswith(".dl"):
            remedy = f"to evaluate a program, `lftj run {named}`"
    return UsageError(
        what[:1].lower() + what[1:], why=f"these are not the arguments that `{command}` takes", remedy=remedy
    )


def _print_version() -> int:
    from lftj import __version__

    print(f"lftj {__version__}")
    return Code.DONE


def _without_command(help_text: str) -> int:
    say(help_text)
    return Code.USAGE
