"""What a shell offers at TAB beyond commands and options: relations of the program, and words that an option takes.

The scripts for bash, zsh and fish are typer's (`--show-completion`); they call lftj with the words of the line. Where
nothing is offered they complete files. A program that cannot be read offers nothing: no message may come into a line
that is being typed.
"""

from __future__ import annotations

import os

import typer

from lftj.errors import Error
from lftj.language import ast
from lftj.language.options import VALUES


def relations(context: typer.Context, incomplete: str) -> list[str]:
    """The relations of the program that stands in the line."""
    return sorted(name for name in {*_declared(context), *_derived(context)} if name.startswith(incomplete))


def key_order_heads(context: typer.Context, incomplete: str) -> list[str]:
    """`HEAD=` for the heads of the program."""
    return [word for word in (f"{head}=" for head in _derived(context)) if word.startswith(incomplete)]


def maintained_heads(context: typer.Context, incomplete: str) -> list[str]:
    """`HEAD=strategy` for the heads of the program."""
    return _options("maintain", context, incomplete)


def traced_heads(context: typer.Context, incomplete: str) -> list[str]:
    """`HEAD=granularity` for the heads of the program."""
    return _options("granularity", context, incomplete)


def _options(option: str, context: typer.Context, incomplete: str) -> list[str]:
    words = (f"{head}={value}" for head in _derived(context) for value in VALUES[option])
    return [word for word in words if word.startswith(incomplete)]


def bad_row_ways(incomplete: str) -> list[str]:
    """The values of --on-error."""
    return [word for word in ("raise", "quarantine") if word.startswith(incomplete)]


def forms(incomplete: str) -> list[str]:
    """The values of --format."""
    return [word for word in ("table", "csv", "json", "arrow") if word.startswith(incomplete)]


def _items(context: typer.Context) -> tuple[ast.Item, ...]:
    """The items of the program, as far as it parses."""
    from lftj.cli.program_file import STDIN, read_program
    from lftj.language.parse import parse_pieces

    named = context.params.get("program") or _program_in_line()
    if not named or named == STDIN:
        return ()
    try:
        program, _, _ = parse_pieces(*read_program(named))
    except Error:
        return ()
    return program.items


def _program_in_line() -> str:
    """A program that stands in the line: of a line that ends with an option, typer has parsed no arguments."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return next((word for word in line.split() if word.endswith(".dl") and os.path.isfile(word)), "")


def _declared(context: typer.Context) -> list[str]:
    return [item.name for item in _items(context) if isinstance(item, ast.Declaration)]


def _derived(context: typer.Context) -> list[str]:
    """The heads of rules, in source order."""
    rules = (item for item in _items(context) if isinstance(item, ast.Rule) and item.body)
    return list(dict.fromkeys(head.name for rule in rules for head in rule.heads))
