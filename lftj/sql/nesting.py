"""Statements that are nested too deeply: the place that makes them so.

    select abs(abs(... abs(a)))             the innermost parenthesis, and how many are around it
    select case when ... then case when     the innermost `case`
    select a + a + ... + a                  where the sum begins, and how many steps it has
    select ... union all select ...         the first `union`

Each level of a nest takes about as much room on the stack as several steps of a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lftj.errors import ProgramError
from lftj.language.diagnostics import TooDeepError
from lftj.language.normal_form import LIMIT, TOO_MANY
from lftj.sql.dialect import CLOSES, OPENS, LftjSql
from lftj.sql.places import SqlText
from lftj.sql.syntax_errors import refused, span_of

# Nothing is nested too deeply by fewer levels than these.
_FEW = 20
# The steps of a chain that take as much room as a level.
_STEPS = 5
# What ends an expression: the next one begins behind it.
_BETWEEN = {TokenType.COMMA, TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING}
_BETWEEN |= {TokenType.ORDER_BY, TokenType.QUALIFY, TokenType.ON, TokenType.SET, TokenType.VALUES, TokenType.RETURNING}
_BETWEEN |= {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_BETWEEN |= {TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.AND, TokenType.OR}
_OPERATORS = {TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DIV, TokenType.MOD}
_OPERATORS |= {TokenType.DPIPE, TokenType.DCOLON, TokenType.NOT}
_QUERIES = {TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT}


@dataclass(slots=True)
class _Level:
    """What is within one parenthesis, or `case`: the chains that have begun, by their kind."""

    begin: int
    steps: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def step(self, kind: str, at: int) -> int:
        """How many steps a chain has with the token `at`; it begins there, but for expressions."""
        self.first.setdefault(kind, self.begin if kind == "operators" else at)
        self.steps[kind] = self.steps.get(kind, 0) + 1
        return self.steps[kind]

    def next_expression(self, at: int) -> None:
        """Another expression begins at the token `at`."""
        self.begin = at
        self.steps.pop("operators", None)
        self.first.pop("operators", None)


def too_deep(source: SqlText, tokens: Sequence[Token]) -> ProgramError:
    """The error to raise about a statement that is nested too deeply, of these tokens."""
    place, why = _deepest(tokens)
    return refused(
        "the statement is nested too deeply",
        span_of(source, tokens[place]),
        f"{why}each level takes room on the stack",
        "write a part of it as a view, or as a query of `with`, and name that",
    )


@contextmanager
def placed(source: SqlText, node: exp.Expr) -> Iterator[None]:
    """Name the place in a statement, or in a query, that is too deep to be translated, or whose rules are.

    And the statement or query that a rule has too many alternatives of.
    """
    try:
        yield
    except (RecursionError, TooDeepError):
        raise too_deep(source, _tokens_of(source, node)) from None
    except ProgramError as error:
        if error.what != TOO_MANY:
            raise
        raise source.error(
            f"a condition splits into more than {LIMIT:,} alternatives",
            node,
            why="of values of many cases, each way in which it is neither true nor false is one",
            remedy="compute such values as columns of a view, and ask that",
        ) from None


def _tokens_of(source: SqlText, node: exp.Expr) -> list[Token]:
    places = [part.meta for part in node.walk() if "start" in part.meta]
    start = min((meta["start"] for meta in places), default=0)
    end = max((meta["end"] for meta in places), default=len(source.text))
    return [token for token in LftjSql().tokenize(source.text) if start <= token.start <= end]


def _deepest(tokens: Sequence[Token]) -> tuple[int, str]:
    """The token that most levels are around, or where most steps begin, and how many these are."""
    most, found = _FEW * _STEPS, (0, "")
    levels = [_Level(0)]
    cases = 0
    for at, token in enumerate(tokens):
        kind = token.token_type
        if kind in OPENS or kind == TokenType.CASE:
            around = len(levels) - 1
            if around * _STEPS > most:
                most = around * _STEPS
                found = at, f"there are {around} parentheses{' and `case`' if cases else ''} around this one, and "
            levels.append(_Level(at + 1))
            cases += kind == TokenType.CASE
        elif (kind in CLOSES or kind == TokenType.END) and len(levels) > 1:
            levels.pop()
            cases -= kind == TokenType.END
        elif kind in _BETWEEN:
            levels[-1].next_expression(at + 1)
        chain = "operators" if kind in _OPERATORS else "queries" if kind in _QUERIES else ""
        chain = "joins" if kind == TokenType.JOIN else chain
        if chain and (steps := levels[-1].step(chain, at)) > most:
            most = steps
            shown = token.text.lower()
            found = levels[-1].first[chain], f"{steps} steps like `{shown}` follow one another from here on, and "
    return found
