"""Expressions: their cases, by the form of the node.

    x + 1                                (!is_null(x)) -> x + 1 · (is_null(x)) -> null
    case when a > 0 then b else 0 end    (a > 0) -> b · (a <= 0) -> 0 · (is_null(a)) -> 0
    coalesce(x, y)                       (!is_null(x)) -> x · (is_null(x)) -> y

Numbers have the types that DuckDB gives them: `+`, `-` and `*` of decimals are exact, `/` is a double, `//` of whole
numbers is truncated. A decimal has up to 18 digits: a product that would have more behind the point is refused here,
and a value that has more is an error when it is computed. A division by zero is an error too, of doubles as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import BOOL, DECIMAL, DURATION, FLOAT, NUMBER, SYMBOL, UNSIGNED, decimal_of, scale_of
from lftj.sql.applied import name_of
from lftj.sql.cases import (
    FALSE,
    FEW,
    TRUE,
    Known,
    Translator,
    computed,
    joined,
    limited,
    null_case,
    of_few_cases,
    plain,
    products,
    split,
)
from lftj.sql.constants import number_constant
from lftj.sql.conversions import (
    NUMBERS,
    InTypeOf,
    as_unsigned,
    call,
    cast_type,
    common,
    compared,
    exact_type,
    from_zero,
    has_cast,
    shown,
    with_room,
)
from lftj.sql.ddl import most_of, type_name
from lftj.sql.first_hits import FirstHits
from lftj.sql.places import as_duckdb
from lftj.sql.predicates import compare, is_predicate
from lftj.sql.scope import Case, Conjunction
from lftj.sql.sql_functions import FUNCTIONS, anonymous, clock
from lftj.sql.sql_intervals import interval_value, of_times, with_interval
from lftj.sql.try_cast import try_cast
from lftj.sql.whole_numbers import OPERATIONS, negated
from lftj.values.decimal_type import DIGITS
from lftj.values.type_table import family_of

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}
# Of more values that may be null the extreme is that of the first ones, which a head has, and the others.
AT_ONCE = 5
_CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime)


def value(of: Translator, node: exp.Expr) -> list[Case]:
    """The cases of an expression; they exclude one another."""
    node = plain(node)
    if isinstance(node, exp.Column):
        return of.scope.cases(node)
    for kind, translated in _EXPRESSIONS.items():
        if isinstance(node, kind):
            return translated(of, node)
    if is_predicate(node):
        return _predicate(of, node)
    if isinstance(node, tuple(_OPERATORS)):
        return _operator(of, node)
    if type(node) in FUNCTIONS:
        return FUNCTIONS[type(node)](of, node)
    if isinstance(node, exp.Anonymous):
        return anonymous(of, node)
    raise _unsupported(of, node)


def _unsupported(of: Translator, node: exp.Expr) -> Exception:
    source = of.scope.source
    if isinstance(node, _CLOCKS):
        return clock(of, node)
    if isinstance(node, exp.AggFunc | exp.Filter):
        return source.error(
            f"`{source.call(node)}` is an aggregate, and stands where each row has a value",
            node,
            why="aggregates are computed of groups, after `where`",
            remedy="put the condition into `having`, or compute it in a subquery",
        )
    if isinstance(node, exp.Func):
        return source.unsupported(f"the function `{name_of(node, source)}`", node, "rewrite it with others")
    if isinstance(node, exp.Window):
        remedy = "give it out in a subquery of `from`"
        return source.unsupported("a window function in this place", node, remedy)
    if isinstance(node, exp.Tuple):
        remedy = "compare it with another row, as in `(a, b) < (1, 2)`, or give its values one by one"
        return source.unsupported(f"the row `{as_duckdb(node)}` as a value", node, remedy)
    return source.unsupported(f"`{as_duckdb(node)}`", node)


def _scalar_subquery(of: Translator, node: exp.Expr) -> list[Case]:
    assert isinstance(node, exp.Subquery)
    return of.scope.scalar_subquery(node)


# Constants


def _literal(of: Translator, node: exp.Expr) -> list[Case]:
    if node.args["is_string"]:
        return [_constant(ast.Constant(str(node.this), SYMBOL))]
    return [_constant(number_constant(str(node.this), node, of.scope.source))]


def _parameter(of: Translator, node: exp.Expr) -> list[Case]:
    """A parameter that is left open."""
    kind = str(node.args["kind"])
    if not kind:
        raise of.scope.source.unsupported("a parameter of this kind", node)
    return [Case((), ast.Parameter(str(node.this)), kind, nullable=False)]


def _constant(term: ast.Constant) -> Case:
    return Case((), term, term.kind, nullable=False)


# Predicates as values, and branches


def _predicate(of: Translator, node: exp.Expr) -> list[Case]:
    found = [Case(literals, TRUE, BOOL, nullable=False) for literals in of.truth(node, True)]
    found += [Case(literals, FALSE, BOOL, nullable=False) for literals in of.truth(node, False)]
    return found + [null_case(literals, BOOL) for literals in of.truth(node, None)]


def _case(of: Translator, node: exp.Expr) -> list[Case]:
    conditions, results = [], []
    for branch in node.args["ifs"]:
        of_value = branch.this if node.this is None else exp.EQ(this=node.this, expression=branch.this)
        conditions.append(of_value)
        results.append(branch.args["true"])
    return _branches(of, node, conditions, results, node.args.get("default"))


def _if(of: Translator, node: exp.Expr) -> list[Case]:
    return _branches(of, node, [node.this], [node.args["true"]], node.args.get("false"))


def _branches(
    of: Translator,
    node: exp.Expr,
    conditions: Sequence[exp.Expr],
    results: Sequence[exp.Expr],
    default: exp.Expr | None,
) -> list[Case]:
    """The value of the first result whose condition is true, or the default."""
    each, none = FirstHits(of, conditions, wanted=True).each()
    chosen = [*each, none]
    values = [of.value(result) for result in results]
    values.append([null_case(())] if default is None else of.value(default))
    return unified(of, node, list(zip(chosen, values, strict=True)))


def unified(
    of: Translator, node: exp.Expr, branches: Sequence[tuple[Sequence[Conjunction], Sequence[Case]]]
) -> list[Case]:
    """Cases of one type: under each conjunction of a branch the cases of its value."""
    reached = []
    for conjunctions, cases in branches:
        for literals, case in product(conjunctions, cases):
            both = joined(literals, case.literals)
            if both is not None:
                reached.append(Case(both, case.term, case.type, case.nullable))
    values = [case for _, cases in branches for case in cases]
    type = common([(case.term, case.type) for case in values], node, of.scope.source)
    known = [Known((), case.term, case.type) for case in values if isinstance(case.term, ast.Constant)]
    constants = [of.cast(constant, type, node) for constant in known]

    def as_one(value: Known) -> ast.Term:
        return with_room([of.cast(value, type, node), *constants], [value.type, *(type for _ in constants)])[0]

    found = []
    for case in reached:
        if case.term is None or not case.nullable or case.type == type:
            term = None if case.term is None else as_one(Known((), case.term, case.type))
            found.append(Case(case.literals, term, type, case.nullable))
        else:
            found += computed([[case]], lambda v: (as_one(v[0]), type))
    return found


def _coalesce(of: Translator, node: exp.Expr) -> list[Case]:
    values = [of.value(part) for part in (node.this, *node.expressions)]
    branches: list[tuple[Sequence[Conjunction], Sequence[Case]]] = []
    before: list[Conjunction] = [()]
    for at, cases in enumerate(values):
        parts = [part for case in cases for part in (split(case) if at + 1 < len(values) else [case])]
        last = at + 1 == len(values)
        branches.append((before, [part for part in parts if last or part.term is not None]))
        before = products([before, [part.literals for part in parts if part.term is None]])
    types = [(case.term, case.type) for cases in values for case in cases]
    return unified(of, node, [*branches, ([], [Case((), term, type, nullable=True) for term, type in types])])


def _nullif(of: Translator, node: exp.Expr) -> list[Case]:
    """The first value where it is not the second. Each is translated once, as others may be nested in it."""
    first, second = of.value(node.this), of.value(node.expression)
    type = next((case.type for case in first if case.type), "")
    found: list[Case] = []
    for case in (part for one in first for part in split(one)):
        if case.term is None:
            found.append(null_case(case.literals, type))
            continue
        both = [[case], second]
        equal = compare(of, both, lambda v: compared("=", v[0], v[1], node, of.scope.source), True)
        other = compare(of, both, lambda v: compared("!=", v[0], v[1], node, of.scope.source), False)
        other += compare(of, both, lambda v: True, None)
        found += [null_case(literals, type) for literals in equal]
        found += [Case(literals, case.term, type, nullable=False) for literals in other]
    limited([case.literals for case in found], node, of.scope)
    return found


def _extreme(of: Translator, node: exp.Expr) -> list[Case]:
    """`greatest` and `least`, which leave null out."""
    values = [of.value(part) for part in (node.this, *node.expressions)]
    type = common([(case.term, case.type) for cases in values for case in cases], node, of.scope.source)
    while len(values) > AT_ONCE:
        first = of.scope.computed_apart([_extreme_of(of, node, type, values[:AT_ONCE])])
        values = [*first, *values[AT_ONCE:]]
    return _extreme_of(of, node, type, values)


def _extreme_of(of: Translator, node: exp.Expr, type: str, values: Sequence[Sequence[Case]]) -> list[Case]:
    functor = "max" if isinstance(node, exp.Greatest) else "min"
    ways: list[tuple[Conjunction, tuple[Known, ...]]] = [((), ())]
    for cases in values:
        longer = []
        for (literals, chosen), case in product(ways, [part for one in cases for part in split(one)]):
            both = joined(literals, case.literals)
            if both is not None:
                more = () if case.term is None else (Known(both, case.term, case.type),)
                longer.append((both, (*chosen, *more)))
        ways = longer
    found = []
    for literals, chosen in ways:
        terms = with_room([of.cast(known, type, node) for known in chosen], [known.type for known in chosen])
        term = call(functor, type, *terms) if terms else None
        found.append(Case(literals, term, type, nullable=term is None))
    return found


# Casts


def _cast(of: Translator, node: exp.Expr) -> list[Case]:
    wanted = type_name(node.args["to"], of.scope.source)
    if isinstance(node, exp.TryCast) and not (wanted == BOOL and _of_numbers(of.value(node.this))):
        return try_cast(of, node)
    return _as(of, node, wanted, most_of(node.args["to"]))


def _of_numbers(cases: Sequence[Case]) -> bool:
    return all(family_of(case.type) in NUMBERS for case in cases if case.type)


def _in_type_of(of: Translator, node: exp.Expr) -> list[Case]:
    type = next((case.type for case in of.value(node.expression) if case.type), "")
    return _as(of, node, type) if type else of.value(node.this)


def _as(of: Translator, node: exp.Expr, wanted: str, most: int | None = None) -> list[Case]:
    """What a cast has, to a type whose largest value may be told."""
    if wanted == BOOL and _of_numbers(of.value(node.this)):
        return _predicate(of, exp.NEQ(this=node.this, expression=exp.Literal.number(0)))

    def made(values: Sequence[Known]) -> tuple[ast.Term, str]:
        (value,) = values
        term = of.cast(value, wanted, node)
        if most is not None:
            term = as_unsigned(term, most, node, of.scope.source)
        return term, cast_type(value, wanted)

    cases = computed([of.value(node.this)], made)
    type = next((case.type for case in cases if case.type), wanted)
    return [replace(case, type=type) for case in cases]


# Operators


def _operator(of: Translator, node: exp.Expr) -> list[Case]:
    waiting = []  # a long sum is deep on its left, where there is no recursion
    found = _of_interval(of, node)
    while found is None:
        waiting.append(node)
        node = plain(node.this)
        found = _of_interval(of, node) if isinstance(node, tuple(_OPERATORS)) else of.value(node)
    waiting.reverse()
    values = [found, *(of.value(part.expression) for part in waiting)]
    return _applied(of, waiting, values)


def _of_interval(of: Translator, node: exp.Expr) -> list[Case] | None:
    """The value of an operator over a time and an interval; None of any other."""
    return with_interval(of, node) if isinstance(node, exp.Add | exp.Sub) else None


def _applied(of: Translator, nodes: Sequence[exp.Expr], values: list[list[Case]], *, apart: bool = False) -> list[Case]:
    """The value of operators, each over what those before it give and the next value.

    `apart`: heads have the values already, of those that had too many cases together.
    """
    found = values[0]
    for node, right in zip(nodes, values[1:], strict=True):
        if len(found) * len(right) > FEW:
            if not apart:
                return _applied(of, nodes, of.scope.computed_apart(values), apart=True)
            found = of_few_cases(of, found)
        found = computed([found, right], partial(_of_two, of, node))
    return found


def _of_two(of: Translator, node: exp.Expr, values: Sequence[Known]) -> tuple[ast.Term, str]:
    left, right = values
    return arithmetic(of, _OPERATORS[type(node)], left, right, node)


def arithmetic(of: Translator, op: str, left: Known, right: Known, node: exp.Expr) -> tuple[ast.Term, str]:
    """The term of an operator over two values that are not null, and its type."""
    times = of_times(of, op, left, right)
    if times is not None:
        return times
    left, right = _as_number(of, left, right, node), _as_number(of, right, left, node)
    families = {family_of(left.type), family_of(right.type)}
    if not families <= set(NUMBERS):
        raise _no_operator(of, op, left, right, node)
    if op == "/" or FLOAT in families:
        if op in ("//", "%"):
            raise _no_operator(of, op, left, right, node)
        return call(op, FLOAT, of.cast(left, FLOAT, node), of.cast(right, FLOAT, node)), FLOAT
    if families == {NUMBER} and op in OPERATIONS:
        return OPERATIONS[op](left.term, right.term), NUMBER
    if families == {UNSIGNED} and op in ("+", "-", "*"):
        raise of.scope.source.unsupported(f"`{op}` of ubigint", node, "cast both sides to bigint, or to double")
    if families in ({NUMBER}, {UNSIGNED}):
        return call("/" if op == "//" else op, left.type, left.term, right.term), left.type
    if UNSIGNED in families or op == "//":
        raise _no_operator(of, op, left, right, node)
    scales = scale_of(left.type), scale_of(right.type)
    if op == "*":
        if sum(scales) > DIGITS:
            raise of.scope.source.error(
                f"`{as_duckdb(node)}` has {sum(scales)} digits behind the point",
                node,
                why=f"a decimal has up to {DIGITS} digits, and none is rounded away",
                remedy="round a factor first, as in `round(x, 2)`, or cast it to double",
            )
        return call("*", decimal_of(sum(scales)), left.term, right.term), decimal_of(sum(scales))
    type = decimal_of(max(scales))
    terms = [of.cast(left, type, node), of.cast(right, type, node)]
    return call(op, type, *with_room(terms, [left.type, right.type])), type


def _as_number(of: Translator, side: Known, other: Known, node: exp.Expr) -> Known:
    """A text that is written out as a value of the type on the other side, of a decimal with all digits of its own.

    So is a whole number beside an unsigned one.
    """
    if side.type == NUMBER and other.type == UNSIGNED and from_zero(side.term):
        return Known(side.literals, of.cast(side, UNSIGNED, node), UNSIGNED)
    if side.type != SYMBOL or not isinstance(side.term, ast.Constant) or family_of(other.type) not in NUMBERS:
        return side
    type = other.type
    if family_of(type) == DECIMAL:
        type = exact_type(str(side.term.value), type, node, of.scope.source)
    return Known(side.literals, of.cast(side, type, node), cast_type(side, type))


def _no_operator(of: Translator, op: str, left: Known, right: Known, node: exp.Expr) -> Exception:
    remedy = "cast one of them to another type"
    if not (has_cast(left.type, right.type) or has_cast(right.type, left.type)):
        remedy = "compute with numbers, or with times and intervals, as in `t + interval (n) day`"
    return of.scope.source.unsupported(f"`{op}` of {shown(left.type)} and {shown(right.type)}", node, remedy)


def _negative(of: Translator, node: exp.Expr) -> list[Case]:
    def result(values: Sequence[Known]) -> tuple[ast.Term, str]:
        (known,) = values
        if known.type == UNSIGNED and isinstance(known.term, ast.Constant):
            raise of.scope.source.error(
                f"`-{known.term.value}` does not fit into 64 bits",
                node,
                why="a number is from -(2^63 - 1) to 2^63 - 1",
                remedy="write it as a double, with `e0` behind it",
            )
        if family_of(known.type) not in (NUMBER, DECIMAL, FLOAT, DURATION):
            raise of.scope.source.unsupported(f"`-` of {shown(known.type)}", node, "cast it to bigint")
        if known.type == NUMBER:
            return negated(known.term), NUMBER
        type = decimal_of(scale_of(known.type)) if family_of(known.type) == DECIMAL else known.type
        return call("neg", type, known.term), type

    return computed([of.value(node.this)], result)


_Translated = Callable[[Translator, exp.Expr], list[Case]]
_EXPRESSIONS: dict[type[exp.Expr], _Translated] = {
    exp.Literal: _literal,
    exp.Placeholder: _parameter,
    exp.Boolean: lambda of, node: [_constant(TRUE if node.this else FALSE)],
    exp.Null: lambda of, node: [null_case(())],
    exp.Subquery: _scalar_subquery,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Cast: _cast,
    InTypeOf: _in_type_of,
    exp.Neg: _negative,
    exp.Interval: interval_value,
}
