"""Statements: a text of SQL, parsed by sqlglot in DuckDB's dialect.

    select a from t where b = $low;  insert into t values ($low, 'x')     two statements, a parameter `low`

Values are put in the place of parameters, or these are left open (parameters.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lftj.sql.dialect import LftjSql
from lftj.sql.incomplete import check_complete
from lftj.sql.nesting import too_deep
from lftj.sql.parameters import check_names, left_open, literal, name_of, named_parameters
from lftj.sql.places import SqlText
from lftj.sql.syntax_errors import REMEDY, about_transactions, broken, misspelt, out_of_place, syntax_error


def parsed(source: SqlText, parameters: Mapping[str, Any], *, leave_open: bool = False) -> list[exp.Expression]:
    """The statements of a text, in order. `ProgramError` for what is no SQL, `ArgumentError` for parameters.

    The place of a statement, where no part of it says more, is all of it. `leave_open`: parameters have the types of
    these values, and not the values.
    """
    found: list[exp.Expression] = []
    try:
        with _quietly():
            dialect = LftjSql()
            for tokens in _statements(dialect.tokenize(source.text)):
                tree = _tree(dialect, source, tokens)
                if tree is not None:
                    tree.meta.update({"start": tokens[0].start, "end": tokens[-1].end})
                    found.append(tree)
    except SqlglotError as error:
        raise broken(source, error) from None
    if not found:
        raise source.error("there is no statement", None, why="the text is empty, or a comment", remedy=REMEDY)
    for tree in found:
        for node in tree.walk():
            node.comments = None  # errors would show them
        check_complete(tree, source)
    check_names(source, found, parameters)
    for node in named_parameters(found):
        name = name_of(node)
        value = parameters[name]
        node.replace(left_open(name, value) if leave_open else literal(name, value, source, node))
    return found


def _tree(dialect: LftjSql, source: SqlText, tokens: list[Token]) -> exp.Expression | None:
    """The tree of a statement; of one that the parser does not know, a command, where no misspelt word explains it."""

    def parses(text: str) -> bool:
        try:
            made = dialect.parser().parse(dialect.tokenize(text), text)
        except (SqlglotError, RecursionError):
            return False
        return len(made) == 1 and isinstance(made[0], exp.Expression) and not _unknown(made[0])

    wrong = about_transactions(source, tokens) or out_of_place(source, tokens)
    if wrong is not None:
        raise wrong
    try:
        trees = dialect.parser().parse(tokens, source.text)
        if not trees:  # of `else`, as if there were no statement
            first = tokens[0]
            unread = "Invalid expression / Unexpected token"
            raise ParseError.new(unread, line=first.line, col=first.col, highlight=first.text)
        tree = trees[0]
    except ParseError as error:
        raise syntax_error(source, error, tokens, parses) from None
    except RecursionError:
        raise too_deep(source, tokens) from None
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
