"""Statements: a text of SQL, parsed by sqlglot in DuckDB's dialect, with the values of its parameters put in.

    select a from t where b = $low;  insert into t values ($low, 'x')     two statements, a parameter `low`

A value becomes a literal node of the tree, and never a part of the text.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lftj import arguments
from lftj.errors import ArgumentError
from lftj.sql.places import SqlText
from lftj.sql.syntax_errors import REMEDY, broken, misspelt, syntax_error
from lftj.values.codes import is_missing

DIALECT = "duckdb"


class LftjSql(DuckDB):
    """DuckDB's dialect, in which `$` begins a parameter's name and never a text (sqlglot takes `$a, $` for one)."""

    class Tokenizer(DuckDB.Tokenizer):
        """The tokens."""

        HEREDOC_STRINGS: ClassVar[list[Any]] = []
        HEREDOC_STRING_ALTERNATIVE = TokenType.PARAMETER


def parsed(source: SqlText, parameters: Mapping[str, Any]) -> list[exp.Expression]:
    """The statements of a text, in order. `ProgramError` for what is no SQL, `ArgumentError` for parameters.

    The place of a statement, where no part of it says more, is all of it.
    """
    arguments.text("text", source.text, "statements are a text", 'give SQL, as in `db.sql("select a from t")`')
    found: list[exp.Expression] = []
    try:
        with _quietly():
            dialect = LftjSql()
            for tokens in _statements(dialect.tokenize(source.text)):
                tree = _tree(dialect, source, tokens)
                if tree is not None:
                    tree.meta.update({"start": tokens[0].start, "end": tokens[-1].end})
                    found.append(tree)
    except (SqlglotError, RecursionError) as error:
        raise broken(source, error) from None
    if not found:
        raise source.error("there is no statement", None, why="the text is empty, or a comment", remedy=REMEDY)
    _check_names(source, found, parameters)
    for statement in found:
        for node in list(statement.find_all(exp.Placeholder, exp.Parameter)):
            node.replace(_literal(_name_of(node), parameters[_name_of(node)], source, node))
    return found


def _tree(dialect: LftjSql, source: SqlText, tokens: list[Token]) -> exp.Expression | None:
    """The tree of a statement; of one that the parser does not know, a command, where no misspelt word explains it."""

    def parses(text: str) -> bool:
        try:
            made = dialect.parser().parse(dialect.tokenize(text), text)
        except (SqlglotError, RecursionError):
            return False
        return len(made) == 1 and isinstance(made[0], exp.Expression) and not _unknown(made[0])

    try:
        tree = dialect.parser().parse(tokens, source.text)[0]
    except ParseError as error:
        raise syntax_error(source, error, tokens, parses) from None
    if not isinstance(tree, exp.Expression):
        return None
    if _unknown(tree):
        meant = misspelt(source, tokens, min(2, len(tokens) - 1), parses)
        if meant is not None:
            raise meant
    return tree


def _unknown(tree: exp.Expression) -> bool:
    """Whether the parser took a statement as it is, or for the MySQL that deletes from several tables."""
    return isinstance(tree, exp.Command) or bool(isinstance(tree, exp.Delete) and tree.args.get("tables"))


def _statements(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement, without the semicolons between them."""
    statement: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep sqlglot from logging what lftj tells in its own words."""
    logger = logging.getLogger("sqlglot")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


# --- parameters -------------------------------------------------------------------------------------------------------


def _name_of(node: exp.Expression) -> str:
    return str(node.name)


def _check_names(source: SqlText, statements: list[exp.Expression], given: Mapping[str, Any]) -> None:
    named: dict[str, exp.Expression] = {}
    for statement in statements:
        for node in statement.find_all(exp.Placeholder, exp.Parameter):
            if _name_of(node) in ("", "?") or _name_of(node).isdigit():
                raise source.unsupported(
                    "a parameter without a name", node, "write `$name`, and give `name=` with its value"
                )
            named.setdefault(_name_of(node), node)
    for name in named:
        if name not in given:
            raise ArgumentError(
                f"the parameter `${name}` has no value",
                where=f"in `{_short(source.text)}`",
                why="every parameter of a text is given its value by name",
                remedy=f"give `{name}=...`",
            )
    for name in given:
        if name not in named:
            from lftj.language.diagnostics import did_you_mean

            raise ArgumentError(
                f"the text has no parameter `${name}`",
                where=f"in `{_short(source.text)}`",
                why=f"it has {', '.join(f'`${other}`' for other in named)}" if named else "there is no `$` in it",
                remedy=did_you_mean(
                    name, named, f"leave `{name}=` out, or write `${name}` where its value is to stand"
                ),
            )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def _literal(name: str, value: Any, source: SqlText, node: exp.Expression) -> exp.Expression:
    """The node of a value."""
    if is_missing(value):
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if hasattr(value, "item") and callable(value.item):  # a numpy scalar
        value = value.item()
    if isinstance(value, int):
        return _signed(exp.Literal.number(abs(value)), value < 0)
    if isinstance(value, float) and value == value:
        return exp.Cast(this=exp.Literal.string(repr(value)), to=exp.DataType.build("double"))
    if isinstance(value, Decimal) and value.is_finite():
        return _signed(exp.Literal.number(f"{abs(value):f}"), value < 0)
    if isinstance(value, str):
        return exp.Literal.string(value)
    for kind, type, text in _TYPED:
        if isinstance(value, kind):
            return exp.Cast(this=exp.Literal.string(text(value)), to=exp.DataType.build(type, dialect=DIALECT))
    raise ArgumentError(
        f"`${name}` cannot be {value!r}",
        where=str(source.span(node)),
        why="a parameter is a number, a text, a bool, a date, a time, a uuid or None",
        remedy=f"give `{name}=` one of these; for a list, write a parameter for each of its values",
    )


def _signed(node: exp.Expression, negative: bool) -> exp.Expression:
    return exp.Neg(this=node) if negative else node


def _duration_text(value: dt.timedelta) -> str:
    return f"{(value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds} microseconds"


# A datetime is a date, too, and stands before it.
_TYPED: tuple[tuple[type, str, Any], ...] = (
    (dt.datetime, "timestamp", lambda value: value.isoformat(sep=" ")),
    (dt.date, "date", dt.date.isoformat),
    (dt.timedelta, "interval", _duration_text),
    (UUID, "uuid", str),
    (bytes, "blob", lambda value: "".join(f"\\x{byte:02x}" for byte in value)),
)
