"""Terms and aggregates of a program as SQL for DuckDB, with the same value for every input.

A term without a value (a division by zero, a NaN, an extreme of nothing) is NULL, which no comparison holds for.
Numbers are computed as HUGEINT and reduced to 64 bits. Sums of floats are added up as integers, multiples of 2^-60, and
rounded once; where values are too large or too small for that, DuckDB raises an error whose text has `FAR`.

    number BIGINT · unsigned UBIGINT · float DOUBLE · symbol VARCHAR
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tests.plain.arithmetic import reduced
from tests.plain.syntax import Apply, Const, Scalar, nested_in
from tests.plain.terms import kind_of


class Untranslated(Exception):
    """Something that this translation has no SQL for; the text says what, in the plural."""


@dataclass(frozen=True)
class Sql:
    """An expression in SQL and the type of its value in the program."""

    text: str
    kind: str


TYPES = {"number": "BIGINT", "unsigned": "UBIGINT", "float": "DOUBLE", "symbol": "VARCHAR"}
FAR = "floats too far apart"

MACROS = f"""
CREATE OR REPLACE TEMP MACRO as_number(x) AS
    (((x + {2**63}) % {2**64} + {2**64}) % {2**64} - {2**63})::BIGINT;
CREATE OR REPLACE TEMP MACRO as_unsigned(x) AS ((x % {2**64} + {2**64}) % {2**64})::UBIGINT;
CREATE OR REPLACE TEMP MACRO times_unsigned(x, y) AS (x::UHUGEINT * y::UHUGEINT % {2**64}::UHUGEINT)::UBIGINT;
CREATE OR REPLACE TEMP MACRO power_of_two(x) AS (1::HUGEINT << (x)::INTEGER);
CREATE OR REPLACE TEMP MACRO part(t, i, n) AS
    CASE WHEN i < 0 THEN '' WHEN n < 0 THEN substring(t, i + 1) ELSE substring(t, i + 1, n) END;
CREATE OR REPLACE TEMP MACRO odd_if_inexact(x, y) AS ((x // y) | (x % y <> 0)::HUGEINT)::UBIGINT::DOUBLE;
CREATE OR REPLACE TEMP MACRO rounded_at(x, y, k) AS
    odd_if_inexact(x * power_of_two(greatest(k, 0)), y * power_of_two(greatest(-k, 0))) * pow(2.0::DOUBLE, -k);
-- x / y rounded once: the quotient of 57 bits or more, its last one telling of a rest, then the cast to DOUBLE.
CREATE OR REPLACE TEMP MACRO rounded(x, y) AS
    sign(x) * rounded_at(abs(x), y, 58 - length(bin(abs(x))) + length(bin(y)));
CREATE OR REPLACE TEMP MACRO is_far(x) AS
    (abs(x) >= {2.0**50} OR trunc(x * {2.0**60}::DOUBLE) <> x * {2.0**60}::DOUBLE);
CREATE OR REPLACE TEMP MACRO scaled(x) AS (CASE WHEN is_far(x) THEN 0 ELSE x * {2.0**60}::DOUBLE END)::HUGEINT;
CREATE OR REPLACE TEMP MACRO near(far, x) AS CASE WHEN far THEN error('{FAR}' || far::VARCHAR)::DOUBLE ELSE x END;
"""


def constant(value: Scalar) -> Sql:
    """A value as SQL; numbers beyond 64 bits are reduced, as `-9223372036854775808` needs it."""
    kind = kind_of(value)
    if kind in ("number", "unsigned"):
        value = reduced(int(value), signed=kind == "number")
    return Sql(literal(value, kind), kind)


def literal(value: Scalar, kind: str) -> str:
    """A value of a column of type `kind`."""
    text = repr(float(value)) if kind == "float" else str(value)
    quoted = text.replace("'", "''")
    return f"'{quoted}'::{TYPES[kind]}"


def cast(sql: Sql, kind: str) -> Sql:
    """A value as one of type `kind`, which it is but for literals such as `2` that meet another type."""
    if sql.kind == kind:
        return sql
    if sql.kind == "number" and kind == "float":
        return Sql(f"({sql.text})::DOUBLE", kind)
    if {sql.kind, kind} == {"number", "unsigned"}:
        return Sql(f"as_{kind}({sql.text}::HUGEINT)", kind)
    raise Untranslated(f"values of type {sql.kind} as {kind}")


# Functors ---------------------------------------------------------------------------------------------------------

_CONVERSIONS = {"itof": "float", "utof": "float", "itou": "unsigned", "utoi": "number"}
_CONVERSIONS |= {"to_number": "number", "to_unsigned": "unsigned", "to_float": "float"}
# Of numbers as HUGEINT; reduced afterwards. `&` with 63 is the remainder by 64 of negative shifts too.
_HUGE: dict[str, Callable[[str, str], str]] = {
    "+": lambda a, b: f"({a} + {b})",
    "-": lambda a, b: f"({a} - {b})",
    "*": lambda a, b: f"({a} * {b})",
    "/": lambda a, b: f"({a} // nullif({b}, 0))",
    "%": lambda a, b: f"({a} % nullif({b}, 0))",
    "neg": lambda a, _: f"(-({a}))",
    "bshl": lambda a, b: f"({a} * power_of_two({b} & 63))",
    "bshru": lambda a, b: f"(as_unsigned({a})::HUGEINT // power_of_two({b} & 63))",
}
# Of 64-bit integers, with a result that is one.
_WORDS: dict[str, Callable[[str, str], str]] = {
    "band": lambda a, b: f"({a} & {b})",
    "bor": lambda a, b: f"({a} | {b})",
    "bxor": lambda a, b: f"xor({a}, {b})",
    "bnot": lambda a, _: f"(~({a}))",
    "bshr": lambda a, b: f"({a} >> ({b} & 63))",
    "land": lambda a, b: f"((({a}) <> 0)::TINYINT & (({b}) <> 0)::TINYINT)",
    "lor": lambda a, b: f"((({a}) <> 0)::TINYINT | (({b}) <> 0)::TINYINT)",
    "lxor": lambda a, b: f"((({a}) <> 0)::TINYINT <> (({b}) <> 0)::TINYINT)",
    "lnot": lambda a, _: f"(({a}) = 0)",
}
_FLOATS: dict[str, Callable[[str, str], str]] = {
    "+": lambda a, b: f"({a} + {b})",
    "-": lambda a, b: f"({a} - {b})",
    "*": lambda a, b: f"({a} * {b})",
    "/": lambda a, b: f"({a} / nullif({b}, 0))",
    "neg": lambda a, _: f"(-({a}))",
}


def applied(term: Apply, args: list[Sql]) -> Sql:
    """A functor of translated arguments."""
    op = term.op
    texts = [arg.text for arg in args]
    if op == "cat":
        return Sql(f"({' || '.join(texts)})", "symbol")
    if op == "substr":
        return Sql(f"part({', '.join(texts)})", "symbol")
    if op == "strlen":
        return Sql(f"length({texts[0]})::BIGINT", "number")
    if op == "to_string" and args[0].kind in ("number", "unsigned"):
        return Sql(f"({texts[0]})::VARCHAR", "symbol")
    if op in _CONVERSIONS and args[0].kind in ("number", "unsigned"):
        target = _CONVERSIONS[op]
        return Sql(f"({texts[0]})::DOUBLE", target) if target == "float" else cast(args[0], target)
    kinds = {arg.kind for arg in args} - {"number"}
    if len(kinds) == 1:
        args = [cast(arg, *kinds) for arg in args]
    kind, texts = args[0].kind, [arg.text for arg in args]
    a, b = texts[0], texts[-1]
    if op in ("min", "max"):
        if nested_in(term):
            raise Untranslated("aggregates within a functor that leaves out NULL")
        return Sql(f"{'least' if op == 'min' else 'greatest'}({', '.join(texts)})", kind)
    if kind == "float" and op in _FLOATS:
        return Sql(f"nullif({_FLOATS[op](a, b)}, 'nan'::DOUBLE)", kind)
    if kind in ("number", "unsigned"):
        return _on_integers(term, kind, a, b)
    raise Untranslated(f"functors {op} of {kind}")


def _on_integers(term: Apply, kind: str, a: str, b: str) -> Sql:
    op = term.op
    if op == "^":
        return Sql(_power(kind, a, b, _bits(term)), kind)
    if op == "*" and kind == "unsigned":  # the product needs all 128 bits
        return Sql(f"times_unsigned({a}, {b})", kind)
    if op in _HUGE:
        return Sql(f"as_{kind}({_HUGE[op](f'({a})::HUGEINT', f'({b})::HUGEINT')})", kind)
    if op in _WORDS:
        return Sql(f"({_WORDS[op](a, b)})::{TYPES[kind]}", kind)
    raise Untranslated(f"functors {op} of {kind}")


def _bits(power: Apply) -> int:
    """How many bits an exponent has that is written `x band 7`."""
    exponent = power.args[1]
    if isinstance(exponent, Apply) and exponent.op == "band" and isinstance(exponent.args[1], Const):
        mask = exponent.args[1].value
        if isinstance(mask, int) and 0 <= mask < 8:
            return mask.bit_length()
    raise Untranslated("powers without a bound of the exponent")


def _power(kind: str, base: str, exponent: str, bits: int) -> str:
    """By squares: the product of those that the bits of the exponent choose."""
    result, square = constant(1).text, base
    for bit in range(bits):
        chosen = f"CASE WHEN ({exponent}) & {1 << bit} <> 0 THEN {square} ELSE 1 END"
        result = _times(kind, result, chosen)
        square = _times(kind, square, square)
    return result


def _times(kind: str, a: str, b: str) -> str:
    if kind == "unsigned":
        return f"times_unsigned({a}, {b})"
    return f"as_number(({a})::HUGEINT * ({b})::HUGEINT)"


# Aggregates -------------------------------------------------------------------------------------------------------


def folded(op: str, kind: str) -> Sql:
    """Aggregate `op` over column `v`, of type `kind`, of one row per binding."""
    if op == "count":
        return Sql("count(*)", "number")
    if op in ("min", "max"):
        return Sql(f"{op}(v)", kind)
    if op == "sum" and kind in ("number", "unsigned"):  # NULL where its type does not hold it
        return Sql(f"TRY_CAST(coalesce(sum(v::HUGEINT), 0) AS {TYPES[kind]})", kind)
    if op == "sum" and kind == "float":
        return Sql(f"coalesce({_near(f'rounded(sum(scaled(v)), {2**60}::HUGEINT)')}, 0.0)", kind)
    if op == "mean" and kind in ("number", "unsigned"):
        return Sql("rounded(sum(v::HUGEINT), count(*)::HUGEINT)", "float")
    if op == "mean" and kind == "float":
        return Sql(_near(f"rounded(sum(scaled(v)), count(*) * {2**60}::HUGEINT)"), "float")
    if op == "var_pop" and kind in ("number", "unsigned"):
        far = f"abs(v::HUGEINT) > {2**40}"
        n, value = "count(*)::HUGEINT", f"(CASE WHEN {far} THEN 0 ELSE v END)::HUGEINT"
        text = f"rounded({n} * sum({value} * {value}) - sum({value}) * sum({value}), {n} * {n})"
        return Sql(f"near(bool_or({far}), {text})", "float")
    word, _, part = op.removesuffix(")").partition("(")
    if word == "quantile_disc":
        return Sql(f"quantile_disc(v, {part})", kind)
    if word == "quantile_cont" and kind in ("number", "unsigned"):
        ordered, steps = "list(v ORDER BY v)", f"((count(*) - 1) * {Fraction(part).numerator})"
        b = Fraction(part).denominator
        lower, upper = (f"({ordered})[{steps} // {b} + {i}]::HUGEINT" for i in (1, 2))
        way = f"({steps} % {b})"
        return Sql(f"rounded({lower} * ({b} - {way}) + coalesce({upper}, 0) * {way}, {b}::HUGEINT)", "float")
    raise Untranslated(f"aggregates {op} of {kind}")


def _near(text: str) -> str:
    return f"near(bool_or(is_far(v)), {text})"
