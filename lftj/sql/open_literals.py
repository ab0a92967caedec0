"""Statements that differ in their literals alone: what they have in common, and the literals that may be left open.

    delete from t where k = 5             delete from t where k = <whole number>           5
    insert into t values (-1, 'it''s')    insert into t values (<negative one>, <text>)    -1, "it's"

A *shape* is a text with a mark for the kind in the place of each literal. All texts of a shape have the same tokens but
for these, and the same tree; so what is left open in one may be left open in all of them (kept_statements.py). That is
a value of `insert ... values`, one that `update` sets, and one with which the `and` of `where` compares a column.
Others stay what they are: a type, a name or a plan may depend on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from sqlglot import exp

from lftj.language.types import NUMBER, SYMBOL
from lftj.sql.cases import plain
from lftj.sql.parameters import CLOSED, Given
from lftj.sql.predicates import COMPARED

# A number of few digits, with a sign that is no operator, or a text. Of `0x1f`, `1e3` and `t1` nothing is.
_LITERAL = re.compile(
    r"(?:(?<=[(,=<>])-|(?<=[(,=<>] )-)?(?<![\w.$])(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?![\w.])"
    r"|(?<!\w)'(?:[^']|'')*'(?!')"
)
# Comments, names in quotes, texts of other kinds, and marks: such a text is known by itself.
_OTHER = re.compile('["`\\\\#{\x00-\x04]|--|/\\*|\\$\\$')
_WHOLE, _NEGATIVE, _POINT, _NEGATIVE_POINT, _TEXT = "\x00\x01\x02\x03\x04"


def shape_of(text: str) -> tuple[str, tuple[str, ...]]:
    """The shape of a text, and its literals as they are written; the text and none if it is known by itself."""
    if _OTHER.search(text):
        return text, ()
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        written = match[0]
        found.append(written)
        if written[0] == "'":
            return _TEXT
        if "." in written:
            return _NEGATIVE_POINT if written[0] == "-" else _POINT
        return _NEGATIVE if written[0] == "-" else _WHOLE

    shape = _LITERAL.sub(mark, text)
    return (text, ()) if "'" in shape else (shape, tuple(found))


def open_places(statement: exp.Expr, text: str) -> tuple[int, ...]:
    """Which of the literals of a text, which has this one statement, may be left open."""
    return tuple(_nodes(statement, text))


def leave_open(statement: exp.Expr, text: str, places: Sequence[int]) -> None:
    """Put parameters, called by these numbers, in the place of the literals at `places`."""
    nodes = _nodes(statement, text)
    for place in places:
        node = nodes[place]
        kind = CLOSED if _has_point(node) else SYMBOL if isinstance(node, exp.Literal) and node.is_string else NUMBER
        node.replace(exp.Placeholder(this=str(place), kind=kind))


def with_literals(given: Given, literals: Sequence[str], places: Sequence[int]) -> Given:
    """The values of parameters and of open literals; no parameter of a text has a number as its name."""
    return {**given, **{str(place): _value(literals[place]) for place in places}}


def _value(literal: str) -> str | int | Decimal:
    if literal[0] == "'":
        return literal[1:-1].replace("''", "'")
    return Decimal(literal) if "." in literal else int(literal)


def _nodes(statement: exp.Expr, text: str) -> dict[int, exp.Expr]:
    """The nodes of the literals that may be left open, by their numbers."""
    numbers = {match.start(): number for number, match in enumerate(_LITERAL.finditer(text))}
    found: dict[int, exp.Expr] = {}
    for node in _candidates(statement):
        negative = isinstance(node, exp.Neg)
        literal = node.this if negative else node
        if isinstance(literal, exp.Literal) and "start" in literal.meta:
            number = numbers.get(literal.meta["start"] - negative)
            if number is not None:
                found[number] = node
    return dict(sorted(found.items()))


def _candidates(statement: exp.Expr) -> Iterator[exp.Expr]:
    """The places of values that may be left open."""
    rows = statement.args.get("expression") if isinstance(statement, exp.Insert) else None
    if isinstance(rows, exp.Values):
        for row in rows.expressions:
            yield from row.expressions if isinstance(row, exp.Tuple) else [row.this]
    if isinstance(statement, exp.Update):
        yield from (item.expression for item in statement.expressions if not _has_point(item.expression))
    where = statement.args.get("where")
    waiting = [] if where is None else [where.this]
    while waiting:
        node = plain(waiting.pop())
        if isinstance(node, exp.And):
            waiting += [node.this, node.expression]
        elif isinstance(node, tuple(COMPARED)):
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                if isinstance(one, exp.Column) and not _has_point(other):
                    yield other


def _has_point(node: exp.Expr | None) -> bool:
    """Whether a literal is a decimal, whose type depends on its digits."""
    literal = node.this if isinstance(node, exp.Neg) else node
    return isinstance(literal, exp.Literal) and not literal.is_int and not literal.is_string
