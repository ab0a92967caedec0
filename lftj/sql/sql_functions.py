"""Functions of SQL: each says which types it takes and the term it is.

A function is null where an argument is, but for those in scalars.py that look at null themselves (`coalesce`, `case`,
`nullif`, `greatest`, `least`) and `concat`, which leaves null out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lftj.language import ast
from lftj.language.diagnostics import did_you_mean
from lftj.language.types import DECIMAL, FLOAT, NUMBER, SYMBOL, decimal_of, scale_of
from lftj.sql import patterns, time_functions
from lftj.sql.applied import Result, SqlFunction, applied, name_of, whole_constant, written_number
from lftj.sql.cases import Known, Translator, computed, plain, values_of
from lftj.sql.composed import joined_with, sign
from lftj.sql.constants import constant
from lftj.sql.conversions import NUMBERS, call
from lftj.sql.places import standing_for
from lftj.sql.scope import Case
from lftj.sql.syntax_errors import too_few_arguments
from lftj.sql.try_cast import try_strptime
from lftj.sql.whole_numbers import GREATEST, cut, negated, number, shifted_left, shifted_right, with_zeros
from lftj.values.decimal_type import DIGITS
from lftj.values.faults import counted
from lftj.values.type_table import family_of

_SIGNED = (NUMBER, DECIMAL, FLOAT)


# Numbers


def _abs(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
    (value,) = values
    type = decimal_of(scale_of(value.type)) if family_of(value.type) == DECIMAL else value.type
    opposite = negated(value.term) if type == NUMBER else call("neg", type, value.term)
    return call("max", type, value.term, opposite), type


def _to_digits(of: Translator, node: exp.Expr, name: str) -> list[Case]:
    """`round(x, n)` and `trunc(x, n)`."""
    decimals = node.args.get("decimals")
    digits = 0 if decimals is None else whole_constant(of, node, decimals, "a number of digits")

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        (value,) = values
        if value.type == NUMBER and digits >= 0:
            return value.term, NUMBER
        if value.type == NUMBER:
            return (with_zeros if name == "round" else cut)(value.term, -digits), NUMBER
        most = max(-DIGITS, min(DIGITS, digits))
        type = decimal_of(min(scale_of(value.type), max(digits, 0))) if family_of(value.type) == DECIMAL else FLOAT
        return call(name, type, value.term, number(most)), type

    return applied(of, node, SqlFunction((_SIGNED,), result, repeats=digits < 0), [node.this])


def _whole(name: str) -> Callable[[Translator, exp.Expr, Sequence[Known]], Result]:
    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        (value,) = values
        if value.type == NUMBER:
            return value.term, NUMBER
        type = decimal_of(0) if family_of(value.type) == DECIMAL else FLOAT
        return call(name, type, value.term), type

    return result


def _toward_zero(of: Translator, node: exp.Expr) -> list[Case]:
    """`trunc(x)`, a number without what is behind its point, and `trunc(x, n)`, behind so many digits."""
    if node.args.get("decimals") is not None:
        return _to_digits(of, node, "trunc")

    def truncated(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        below, type = _whole("floor")(of, node, values)
        above, _ = _whole("ceil")(of, node, values)
        if type == NUMBER:
            return below, NUMBER
        return call("max", type, below, call("min", type, above, constant(0, type))), type

    return applied(of, node, SqlFunction((_SIGNED,), truncated, repeats=True), [node.this])


def _power(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
    return ast.Functor("^", tuple(of.cast(value, FLOAT, node) for value in values)), FLOAT


def _of_float(name: str) -> SqlFunction:
    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        return call(name, FLOAT, of.cast(values[0], FLOAT, node)), FLOAT

    return SqlFunction((NUMBERS,), result)


def _logarithm(of: Translator, node: exp.Expr) -> list[Case]:
    """`log(x)`, `log10(x)` and `log2(x)`; the parser puts a base in front."""
    if node.expression is None and (word := name_of(node, of.scope.source).lower()) != "log":  # the base is alone
        raise of.scope.source.error(node=node, **too_few_arguments(word, 0))
    base = node.this if node.expression is not None else None
    name = "log10" if base is None else f"log{base.name}"
    if base is not None and not (isinstance(base, exp.Literal) and name in ("log2", "log10")):
        raise of.scope.source.unsupported("a logarithm to another base than 2 or 10", node, "use `ln(x) / ln(base)`")
    return applied(of, node, _of_float(name), [node.expression if base is not None else node.this])


def _bitwise(name: str) -> Callable[[Translator, exp.Expr], list[Case]]:
    function = SqlFunction(((NUMBER,),) * 2, lambda of, node, values: (call(name, NUMBER, *map(_term, values)), NUMBER))
    return lambda of, node: applied(of, node, function, [node.this, node.expression])


def _shift(shifted: Callable[[ast.Term, ast.Term], ast.Term]) -> Callable[[Translator, exp.Expr], list[Case]]:
    function = SqlFunction(
        ((NUMBER,),) * 2, lambda of, node, values: (shifted(*map(_term, values)), NUMBER), repeats=True
    )
    return lambda of, node: applied(of, node, function, [node.this, node.expression])


def _term(value: Known) -> ast.Term:
    return value.term


# Texts


def _of_text(name: str, type: str = SYMBOL) -> SqlFunction:
    return SqlFunction(((SYMBOL,),) * 3, lambda of, node, values: (call(name, type, *(v.term for v in values)), type))


# A text, and a place or numbers of characters.
_OF_PARTS = ((SYMBOL,), (NUMBER,), (NUMBER,))


def _substring(of: Translator, node: exp.Expr) -> list[Case]:
    """Characters from a place that is counted from 1, or from the end if it is negative."""
    length = node.args.get("length")
    start = written_number(of, node.args["start"])
    count = None if length is None else written_number(of, length)
    if start is None or (length is not None and (count is None or count < 0)):
        arguments = [node.this, node.args["start"], length or exp.Literal.number(GREATEST)]
        return applied(of, node, SqlFunction(_OF_PARTS, _of_text("substring").of), arguments)

    def part(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        text = values[0].term
        if start >= 0:  # the place before the first one is there, and has no character
            cut = count if count is None or start > 0 else max(count - 1, 0)
            return call("substr", SYMBOL, text, number(max(start - 1, 0)), number(-1 if cut is None else cut)), SYMBOL
        place = call("+", NUMBER, call("strlen", NUMBER, text), number(start))
        begin = call("max", NUMBER, place, number(0))
        if count is None:
            return call("substr", SYMBOL, text, begin, number(-1)), SYMBOL
        end = call("max", NUMBER, call("+", NUMBER, place, number(count)), number(0))
        return call("substr", SYMBOL, text, begin, call("-", NUMBER, end, begin)), SYMBOL

    return applied(of, node, SqlFunction(((SYMBOL,),), part, repeats=start < 0), [node.this])


def _end(of: Translator, node: exp.Expr) -> list[Case]:
    """`left(x, n)` and `right(x, n)`."""
    count = written_number(of, node.expression)
    if count is None or count < 0:
        name = "left" if isinstance(node, exp.Left) else "right"
        return applied(of, node, SqlFunction(_OF_PARTS, _of_text(name).of), [node.this, node.expression])

    def part(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        text = values[0].term
        if isinstance(node, exp.Left):
            return call("substr", SYMBOL, text, number(0), number(count)), SYMBOL
        begin = call("max", NUMBER, call("-", NUMBER, call("strlen", NUMBER, text), number(count)), number(0))
        return call("substr", SYMBOL, text, begin, number(-1)), SYMBOL

    return applied(of, node, SqlFunction(((SYMBOL,),), part, repeats=isinstance(node, exp.Right)), [node.this])


def _repeat(of: Translator, node: exp.Expr) -> list[Case]:
    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        return call("repeat", SYMBOL, values[0].term, values[1].term), SYMBOL

    return applied(of, node, SqlFunction(((SYMBOL,), (NUMBER,)), result), [node.this, node.args["times"]])


def _joined(of: Translator, node: exp.Expr) -> list[Case]:
    """`x || y`; other types are written as texts."""

    def result(values: Sequence[Known]) -> Result:
        return call("cat", SYMBOL, *(of.cast(value, SYMBOL, node) for value in values)), SYMBOL

    return computed(values_of(of, node.flatten()), result)


def _concat(of: Translator, node: exp.Expr) -> list[Case]:
    """`concat(x, y)`, which leaves null out."""
    parts = [
        exp.Coalesce(this=exp.Cast(this=part, to=exp.DataType.build("text")), expressions=[exp.Literal.string("")])
        for part in node.expressions
    ]
    values = values_of(of, parts)
    return computed(values, lambda values: (call("cat", SYMBOL, *(v.term for v in values)), SYMBOL))


def _pad(of: Translator, node: exp.Expr) -> list[Case]:
    """`lpad(x, n, fill)` and `rpad(x, n, fill)`."""
    name, fill = "lpad" if node.args["is_left"] else "rpad", node.args.get("fill_pattern")
    if fill is None:
        raise of.scope.source.error(node=node, **too_few_arguments(name, 2))
    function = SqlFunction(((SYMBOL,), (NUMBER,), (SYMBOL,)), _of_text(name).of)
    return applied(of, node, function, [node.this, node.expression, fill])


def _trim(of: Translator, node: exp.Expr) -> list[Case]:
    """`trim(x)`, `ltrim(x)` and `rtrim(x)`, of spaces or of other characters."""
    position, characters = node.args.get("position"), node.args.get("expression")
    sides = ["rtrim"] * (position != "LEADING") + ["ltrim"] * (position != "TRAILING")
    if characters is None and len(sides) == 2:
        return applied(of, node, _of_text("trim"), [node.this])

    def trimmed(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        text, other = map(_term, values)
        for name in sides:
            text = call(name, SYMBOL, text, other)
        return text, SYMBOL

    arguments = [node.this, exp.Literal.string(" ") if characters is None else characters]
    return applied(of, node, SqlFunction(((SYMBOL,),) * 2, trimmed), arguments)


def _position(of: Translator, node: exp.Expr) -> list[Case]:
    if node.args.get("position"):
        raise of.scope.source.unsupported("a start of the search", node, "search in a `substring`")

    def place(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        found = call("strpos", NUMBER, values[0].term, values[1].term)
        return call("+", NUMBER, found, number(1)), NUMBER

    return applied(of, node, SqlFunction(((SYMBOL,), (SYMBOL,)), place), [node.this, node.args["substr"]])


def _split(of: Translator, node: exp.Expr) -> list[Case]:
    """`split_part(x, separator, n)`, from 1 on, or from -1 backwards."""
    index = whole_constant(of, node, node.args["part_index"], "the number of a part")

    def part(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        text, separator = map(_term, values)
        if not index:
            return call("substr", SYMBOL, call("cat", SYMBOL, text, separator), number(0), number(0)), SYMBOL
        return call("split", SYMBOL, text, separator, number(index - 1 if index > 0 else index)), SYMBOL

    return applied(of, node, SqlFunction(((SYMBOL,), (SYMBOL,)), part), [node.this, node.args["delimiter"]])


def _character(of: Translator, node: exp.Expr) -> list[Case]:
    """`chr(n)`."""
    code, *others = node.expressions
    if others:
        raise of.scope.source.unsupported(
            "`chr` of several codes", node, "join characters, as in `chr(72) || chr(105)`"
        )
    function = SqlFunction(((NUMBER,),), lambda of, node, v: (call("chr", SYMBOL, v[0].term), SYMBOL))
    return applied(of, node, function, [code])


def _code(of: Translator, node: exp.Expr) -> list[Case]:
    """`ascii(x)` and `unicode(x)`, the code of the first character, of '' 0 and -1."""

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        code = call("code_point", NUMBER, values[0].term)
        return call("max", NUMBER, code, number(0)) if isinstance(node, exp.Ascii) else code, NUMBER

    return applied(of, node, SqlFunction(((SYMBOL,),), result), [node.this])


def _replace(of: Translator, node: exp.Expr) -> list[Case]:
    if node.args.get("replacement") is None:  # behind a comma
        raise of.scope.source.error(node=node, **too_few_arguments("replace", 2))
    return applied(of, node, _of_text("replace"), [node.this, node.expression, node.args["replacement"]])


def _one(function: SqlFunction) -> Callable[[Translator, exp.Expr], list[Case]]:
    return lambda of, node: applied(of, node, function, [node.this])


FUNCTIONS: dict[type[exp.Expr], Callable[[Translator, exp.Expr], list[Case]]] = {
    exp.Abs: _one(SqlFunction((_SIGNED,), _abs, repeats=True)),
    exp.Round: lambda of, node: _to_digits(of, node, "round"),
    exp.Floor: _one(SqlFunction((_SIGNED,), _whole("floor"))),
    exp.Ceil: _one(SqlFunction((_SIGNED,), _whole("ceil"))),
    exp.Pow: lambda of, node: applied(of, node, SqlFunction((NUMBERS, NUMBERS), _power), [node.this, node.expression]),
    exp.Sqrt: _one(_of_float("sqrt")),
    exp.Exp: _one(_of_float("exp")),
    exp.Ln: _one(_of_float("ln")),
    exp.Cbrt: _one(_of_float("cbrt")),
    exp.Log: _logarithm,
    exp.Sign: sign,
    exp.Trunc: _toward_zero,
    exp.BitwiseLeftShift: _shift(shifted_left),
    exp.BitwiseRightShift: _shift(shifted_right),
    exp.BitwiseAnd: _bitwise("band"),
    exp.BitwiseOr: _bitwise("bor"),
    exp.BitwiseXor: _bitwise("bxor"),
    exp.BitwiseNot: _one(SqlFunction(((NUMBER,),), lambda of, node, v: (call("bnot", NUMBER, v[0].term), NUMBER))),
    exp.Lower: _one(_of_text("lower")),
    exp.Upper: _one(_of_text("upper")),
    exp.Length: _one(_of_text("strlen", NUMBER)),
    exp.Substring: _substring,
    exp.Left: _end,
    exp.Right: _end,
    exp.DPipe: _joined,
    exp.Concat: _concat,
    exp.Trim: _trim,
    exp.Pad: _pad,
    exp.StrPosition: _position,
    exp.Replace: _replace,
    exp.RegexpExtract: patterns.extracted,
    exp.RegexpReplace: patterns.replaced,
    exp.Translate: lambda of, node: applied(
        of, node, _of_text("translate"), [node.this, node.args["from_"], node.args["to"]]
    ),
    exp.Chr: _character,
    exp.Ascii: _code,
    exp.Unicode: _code,
    exp.Repeat: _repeat,
    exp.Reverse: _one(_of_text("reverse")),
    exp.SplitPart: _split,
    exp.ConcatWs: joined_with,
    **time_functions.FUNCTIONS,
}
# The names of functions, for suggestions.
NAMED = sorted(
    {kind.sql_name().lower() for kind in FUNCTIONS if issubclass(kind, exp.Func)}
    | {"date_part", "contains", "starts_with", "ends_with", "coalesce", "nullif", "greatest", "least", "date_trunc"}
    | {"make_date", "epoch", "isoyear", "yearweek", "weekday", "strftime", "strptime", "try_strptime", "ord"}
    | {"regexp_matches", "regexp_full_match"}
)


def _field_of(name: str) -> Callable[[Translator, exp.Expr], list[Case]]:
    return lambda of, node: time_functions.field(of, node, name, node.expressions[0], node)


def _named_field(of: Translator, node: exp.Expr) -> list[Case]:
    """`date_part('year', time)`."""
    named, time = node.expressions
    return time_functions.field(of, node, plain(named).name, time, named)


def _test_of(kind: type[exp.Expr]) -> Callable[[Translator, exp.Expr], list[Case]]:
    return lambda of, node: of.value(kind(this=node.expressions[0], expression=node.expressions[1]))


# Functions that sqlglot does not know by name, with the number of their arguments.
_ANONYMOUS: dict[str, tuple[int, Callable[[Translator, exp.Expr], list[Case]]]] = {
    **dict.fromkeys(("date_part", "datepart"), (2, _named_field)),
    "weekday": (1, _field_of("DOW")),
    "isoyear": (1, _field_of("ISOYEAR")),
    "yearweek": (1, _field_of("YEARWEEK")),
    "ord": (1, lambda of, node: _code(of, standing_for(node, exp.Unicode(this=node.expressions[0].copy())))),
    "try_strptime": (2, try_strptime),
    "suffix": (2, _test_of(exp.EndsWith)),
    "prefix": (2, _test_of(exp.StartsWith)),
}


def anonymous(of: Translator, node: exp.Anonymous) -> list[Case]:
    """A function that sqlglot does not know by name."""
    name, arguments = str(node.this).lower(), node.expressions
    if name in _ANONYMOUS:
        count, translated = _ANONYMOUS[name]
        if len(arguments) < count:
            raise of.scope.source.error(node=node, **too_few_arguments(name, len(arguments)))
        if len(arguments) == count:
            return translated(of, node)
        raise of.scope.source.error(
            f"`{name}` with {counted(len(arguments), 'argument')}",
            node,
            why=f"it takes {counted(count, 'argument')}",
            remedy="leave the others out",
        )
    if name in ("now", "today", "get_current_timestamp"):
        raise clock(of, node)
    raise of.scope.source.error(
        f"unknown function `{name}`",
        node,
        why="lftj computes no function of that name",
        remedy=did_you_mean(name, NAMED, "rewrite the statement without it"),
    )


def clock(of: Translator, node: exp.Expr) -> Exception:
    """The error to raise about a function that reads the clock."""
    return of.scope.source.unsupported(
        f"`{node.sql('duckdb').lower()}`",
        node,
        "views follow changes of tables, not the clock: give the time as a parameter, `$now`",
    )
