"""What functions of SQL are made of: the types of their arguments, checked, and the term that they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import NUMBER, SYMBOL
from lftj.sql.cases import Known, Translator, computed, values_of, written_once
from lftj.sql.conversions import has_cast, shown
from lftj.sql.places import SqlText, as_duckdb
from lftj.sql.scope import Case
from lftj.values.type_table import family_of

Result = tuple[ast.Term, str]


class SqlFunction(NamedTuple):
    """One function. `takes`: the families of types of each argument · `of`: its term and type, of known arguments.

    `repeats`: the term names an argument more than once.
    """

    takes: tuple[tuple[str, ...], ...]
    of: Callable[[Translator, exp.Expr, Sequence[Known]], Result]
    repeats: bool = False


def applied(of: Translator, node: exp.Expr, function: SqlFunction, arguments: Sequence[exp.Expr]) -> list[Case]:
    """The cases of a function of arguments."""

    def result(values: Sequence[Known]) -> Result:
        given = [
            _checked(of, node, argument, value, takes)
            for argument, value, takes in zip(arguments, values, function.takes, strict=False)
        ]
        return function.of(of, node, given)

    cases = values_of(of, arguments)
    return computed([written_once(of, one) for one in cases] if function.repeats else cases, result)


def _checked(of: Translator, node: exp.Expr, argument: exp.Expr, value: Known, takes: tuple[str, ...]) -> Known:
    if family_of(value.type) in takes:
        return value
    if isinstance(value.term, ast.Constant) and value.type == SYMBOL:  # a text that is written out
        return Known(value.literals, of.cast(value, takes[0], argument), takes[0])
    source = of.scope.source
    raise source.error(
        f"`{as_duckdb(argument)}` is {shown(value.type)}, and `{name_of(node, source)}` takes {_either(takes)}",
        argument,
        why="values of different types are converted by a cast only",
        remedy=f"cast it, as in `cast({as_duckdb(argument)} as {shown(takes[0])})`"
        if has_cast(value.type, takes[0])
        else f"compute it of {_either(takes)}, since nothing casts {shown(value.type)} to these",
    )


def name_of(node: exp.Expr, source: SqlText) -> str:
    """What a function is called in messages: the user's word, as the parser has one for several."""
    if type(node) in _SIGNS:
        return _SIGNS[type(node)]
    if "start" in node.meta:
        return source.word(node)
    return "position" if isinstance(node, exp.StrPosition) else node.sql_name().lower()  # type: ignore[attr-defined]


_SIGNS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "xor",
    exp.BitwiseNot: "~",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}


def _either(takes: Sequence[str]) -> str:
    names = [shown(name) for name in takes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def written_number(of: Translator, argument: exp.Expr) -> int | None:
    """The whole number that an argument writes out; None if it writes none."""
    cases = of.value(argument)
    known = len(cases) == 1 and isinstance(cases[0].term, ast.Constant) and cases[0].type == NUMBER
    return int(cases[0].term.value) if known else None  # type: ignore[union-attr]


def whole_constant(of: Translator, node: exp.Expr, argument: exp.Expr, what: str) -> int:
    """The whole number that an argument is to write out."""
    found = written_number(of, argument)
    if found is not None:
        return found
    raise of.scope.source.unsupported(f"{what} that is no constant", node, "write the number out")
