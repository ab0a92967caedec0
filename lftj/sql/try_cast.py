"""`try_cast(x as type)`, `try_strptime(s, format)`: null where a value has none in the type, or in the format.

    try_cast(s as date)          (reads_as("date", s)) -> to_date(s) · (!reads_as("date", s)) -> null
    try_cast(n as tinyint)       (n >= -128, n <= 127) -> n · (n < -128) -> null · (n >= -128, n > 127) -> null
    try_strptime(s, '%d.%m.')    (reads_as("%d.%m.", s)) -> strptime(s, "%d.%m.") · (!reads_as("%d.%m.", s)) -> null

A text is asked whether the functor of the cast reads it, a number whether it is in the range of the type as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot import exp

from lftj.errors import ProgramError
from lftj.language import ast
from lftj.language.functors import NEGATED, READS_AS
from lftj.language.text_functors import reads_as
from lftj.language.types import BOOL, DURATION, FLOAT, NUMBER, RANGES, SYMBOL, TIMESTAMP, UNSIGNED, scale_of
from lftj.sql.applied import SqlFunction, applied
from lftj.sql.cases import Known, Translator, joined, limited, null_case, written_once
from lftj.sql.constants import constant
from lftj.sql.conversions import call, cast_type, compared
from lftj.sql.ddl import range_of, type_name
from lftj.sql.scope import Case, Conjunction
from lftj.sql.time_functions import format_read
from lftj.sql.whole_numbers import number
from lftj.values.decimal_type import Decimals
from lftj.values.type_table import family_of, type_of

# What holds of values that have a value in another type; or a bool, of all of them.
Test = ast.Literal | bool


def try_cast(of: Translator, node: exp.TryCast) -> list[Case]:
    """The cases of a value as one of another type, or null."""
    wanted = type_name(node.args["to"], of.scope.source)
    found: list[Case] = []
    for case in written_once(of, of.value(node.this)):
        if case.term is None:
            found.append(null_case(case.literals, wanted))
        else:
            known = Known(case.literals, case.term, case.type)
            made = partial(_as_type, of, known, wanted, node)
            found += _tried(known.literals, _tests(of, node, known, wanted), wanted, made)
    limited([case.literals for case in found], node, of.scope)
    type = next((case.type for case in found if case.term is not None), wanted)
    return [replace(case, type=type) for case in found]


def try_strptime(of: Translator, node: exp.Expr) -> list[Case]:
    """The cases of a text as the timestamp that it writes in a format, or null."""
    text, format = node.expressions
    written = format_read(of, format)
    if written is None:
        return [null_case((), TIMESTAMP)]
    found: list[Case] = []
    texts = SqlFunction(((SYMBOL,),), lambda of, node, values: (values[0].term, SYMBOL))
    for case in written_once(of, applied(of, node, texts, [text])):
        if case.term is None:
            found.append(null_case(case.literals, TIMESTAMP))
            continue
        test: Test = ast.Comparison(READS_AS, written, case.term)
        if isinstance(case.term, ast.Constant):
            test = bool(reads_as(str(written.value), str(case.term.value)))
        found += _tried(case.literals, [test], TIMESTAMP, partial(_as_time, case.term, written))
    limited([case.literals for case in found], node, of.scope)
    return found


def _as_time(text: ast.Term, format: ast.Constant) -> tuple[ast.Term, str]:
    return call("strptime", TIMESTAMP, text, format), TIMESTAMP


def _as_type(of: Translator, value: Known, wanted: str, node: exp.Expr) -> tuple[ast.Term, str]:
    return of.cast(value, wanted, node), cast_type(value, wanted)


def _tried(
    literals: Conjunction, tests: Iterable[Test], wanted: str, made: Callable[[], tuple[ast.Term, str]]
) -> Iterator[Case]:
    """The cases of a value that is not null: what is `made` of it where it passes all tests, and where it fails one."""
    passed = literals
    for test in tests:
        if test is True:
            continue
        failed = passed if test is False else joined(passed, (_opposite(test),))
        if failed is not None:
            yield null_case(failed, wanted)
        further = None if test is False else joined(passed, (test,))
        if further is None:
            return
        passed = further
    yield Case(passed, *made(), nullable=False)


def _opposite(test: ast.Literal) -> ast.Literal:
    if not isinstance(test, ast.Comparison) or test.op == READS_AS:
        return ast.Negation(test)
    return ast.Comparison(NEGATED[test.op], test.left, test.right)


def _tests(of: Translator, node: exp.TryCast, value: Known, wanted: str) -> Iterator[Test]:
    """What a value has to pass, in this order: each is asked of what passes those before it."""
    limits, made = range_of(node.args["to"]), type_of(wanted)
    text, whole = value.type == SYMBOL != wanted, wanted in RANGES
    if text and wanted == DURATION:
        raise of.scope.source.unsupported(
            "`try_cast` of texts to interval", node, "write `cast`, and leave out what is none by `where`"
        )

    def bounded(op: str, side: Known, bound: Any, type: str) -> Test:
        return compared(op, side, Known((), constant(bound, type), type), node, of.scope.source)

    if text and isinstance(value.term, ast.Constant):
        term = _written(of, node, value, wanted)
        if term is None:
            yield False
            return
        value, text = Known((), term, wanted), False
    elif text:
        yield _reads(of.cast(value, wanted, node), value.term, wanted)
    elif value.type == FLOAT and whole:
        low, high = limits or RANGES[wanted]
        yield bounded(">=", value, float(low - 1), FLOAT)
        yield bounded("<", value, float(high + 1), FLOAT)
    elif value.type == UNSIGNED and wanted == NUMBER:
        yield bounded("<=", value, RANGES[NUMBER][1], UNSIGNED)
    if wanted == UNSIGNED != value.type and not text:
        yield bounded(">=", Known((), of.cast(value, NUMBER, node), NUMBER), 0, NUMBER)
    if limits is not None:
        whole_number = Known((), of.cast(value, NUMBER, node), NUMBER)
        yield bounded(">=", whole_number, limits[0], NUMBER)
        yield bounded("<=", whole_number, limits[1], NUMBER)
    if isinstance(made, Decimals) and not text:
        rounded = _rounded(of, node, value, wanted)
        most = 10 ** (made.precision - made.scale)
        for op, bound in ((">", -most), ("<", most)):
            of_float = rounded.type == FLOAT
            yield bounded(op, rounded, float(bound) if of_float else bound, FLOAT if of_float else NUMBER)


def _written(of: Translator, node: exp.TryCast, text: Known, wanted: str) -> ast.Term | None:
    """What a text that is written out is in a type; None if it is nothing there."""
    try:
        return of.cast(text, wanted, node)
    except ProgramError:
        return None


def _reads(cast: ast.Term, text: ast.Term, wanted: str) -> ast.Literal:
    """That the functor of a cast has a value for what it takes: the text, or what `trim` makes of it."""
    read = cast
    while isinstance(read, ast.Functor) and read.name != "trim" and read != text:
        read = read.args[0]
    type = TIMESTAMP if family_of(wanted) == TIMESTAMP else wanted
    return ast.Comparison(READS_AS, ast.Constant(type, SYMBOL), read)


def _rounded(of: Translator, node: exp.TryCast, value: Known, wanted: str) -> Known:
    """A number with as many digits behind the point as a decimal type has, or fewer."""
    if value.type == FLOAT:
        return Known((), call("round", FLOAT, value.term, number(scale_of(wanted))), FLOAT)
    if value.type == BOOL:
        return Known((), of.cast(value, NUMBER, node), NUMBER)
    if scale_of(value.type) <= scale_of(wanted):
        return value  # with more digits there might be too many
    return Known((), of.cast(value, wanted, node), cast_type(value, wanted))
