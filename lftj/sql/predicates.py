"""Predicates: where they are true, false or unknown, as conjunctions that exclude one another.

    a = 1                     true: a = 1                      false: a != 1          unknown: is_null(a)
    p and q                   true: p, q                       false: !p, or p or unknown, and !q
    a in (1, 2)               true: @values.1(a)               false: !@values.1(a), !is_null(a)

`not` swaps true and false. In `p or q` the rows of q are those where p is not true, unless the literals of the two
exclude one another anyway; so that no row counts twice, where a disjunction stands above rows that count. What all
operands of an `or` have in common is taken out first, and the constants that they compare one value with are a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product

from sqlglot import exp

from lftj.language import ast
from lftj.language.functors import MATCH, NEGATED
from lftj.language.types import BOOL, NUMBER, SYMBOL
from lftj.language.visitors import lets_null_match
from lftj.sql.cases import (
    Known,
    Translator,
    Truth,
    computed_with,
    joined,
    limited,
    not_null,
    plain,
    products,
    split,
)
from lftj.sql.conversions import NUMBERS, call, common, compared, shown
from lftj.sql.first_hits import FirstHits
from lftj.sql.listed_values import gathered, operands_of
from lftj.sql.patterns import check_pattern
from lftj.sql.places import as_duckdb, in_place_of
from lftj.sql.scope import Case, Conjunction
from lftj.values.type_table import family_of

COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
# What a comparison with each value says of those where the value is null.
Made = ast.Literal | bool


def truth(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """Where a predicate is true, false or (None) unknown; the alternatives exclude one another."""
    node = plain(node)
    if isinstance(node, exp.Boolean):
        return [()] if wanted is bool(node.this) else []
    if isinstance(node, exp.Null):
        return [()] if wanted is None else []
    if isinstance(node, exp.Not):
        return of.truth(node.this, None if wanted is None else not wanted)
    if over_query(node):
        return _subquery(of, node, wanted)
    for kinds, translated in _PREDICATES:
        if isinstance(node, kinds):
            return limited(translated(of, node, wanted), node, of.scope)
    return _of_value(of, node, wanted)


def is_predicate(node: exp.Expr) -> bool:
    """Whether an expression is true, false or unknown by its form."""
    return over_query(node) or isinstance(node, (exp.Not, *(kind for kinds, _ in _PREDICATES for kind in kinds)))


def over_query(node: exp.Expr) -> bool:
    """Whether a predicate is one over a subquery."""
    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        return True
    if not isinstance(node, tuple(COMPARED)):
        return False
    return any(isinstance(side, exp.All | exp.Any) and side.find(exp.Query) for side in (node.this, node.expression))


def _subquery(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    assert isinstance(node, exp.Expression)
    if wanted is not None:
        return of.scope.subquery(node, wanted)
    if isinstance(node, exp.Exists):
        return []
    found: list[Conjunction] = []
    for literals, part in of.scope.by_case(node):
        neither = [_neither(of.scope.subquery(part, wanted)) for wanted in (True, False)]
        found += products([[literals], *neither])
    return found


def _neither(alternatives: Sequence[Conjunction]) -> list[Conjunction]:
    """Where none of the conjunctions holds; what matches null within does so outside of the negation, too."""
    if any(all(map(lets_null_match, conjunction)) for conjunction in alternatives):
        return []  # one without a condition always holds
    matching = [literal for conjunction in alternatives for literal in conjunction if lets_null_match(literal)]
    return [(*dict.fromkeys(matching), *(ast.Negation(_as_literal(conjunction)) for conjunction in alternatives))]


def _as_literal(conjunction: Conjunction) -> ast.Literal:
    return conjunction[0] if len(conjunction) == 1 else ast.Disjunction((conjunction,))


# Connectives


def _connective(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    conjunctive = isinstance(node, exp.And)
    if not conjunctive:
        node = _with_common_part(node)
        if not isinstance(node, exp.Or):
            return of.truth(node, wanted)
    return _of_operands(of, gathered(node), wanted, conjunctive=conjunctive)


def _of_operands(of: Translator, parts: Sequence[exp.Expr], wanted: Truth, *, conjunctive: bool) -> list[Conjunction]:
    """Where predicates that `and`, or `or`, joins are so."""
    operands = sorted(parts, key=_late)
    if len(operands) == 1:
        return of.truth(operands[0], wanted)
    if wanted is conjunctive:
        return products([of.truth(part, wanted) for part in operands])
    if wanted is None:
        return _unknown(of, operands, conjunctive)
    return FirstHits(of, operands, wanted).any()


def _late(part: exp.Expr) -> tuple[bool, bool]:
    """What puts an operand behind others: subqueries, and last of them what cannot be negated (`subqueries._in`)."""
    rows = (isinstance(one.this, exp.Tuple) and one.args.get("query") is not None for one in part.find_all(exp.In))
    return part.find(exp.Query) is not None, any(rows)


def _unknown(of: Translator, operands: Sequence[exp.Expr], neutral: bool) -> list[Conjunction]:
    """Where an operand is unknown, and all others are so or `neutral`."""
    found: list[Conjunction] = []
    before: list[Conjunction] = [()]
    for at, part in enumerate(operands):
        after = [of.truth(other, neutral) + of.truth(other, None) for other in operands[at + 1 :]]
        found += products([before, of.truth(part, None), *after])
        before = products([before, of.truth(part, neutral)])
    return found


def _with_common_part(node: exp.Expr) -> exp.Expr:
    """`(k and a) or (k and b)` as `k and (a or b)`: what joins two tables stays one condition."""
    operands = [operands_of(part, exp.And) for part in node.flatten()]
    shared = [part for part in operands[0] if all(part in others for others in operands[1:])]
    if not shared:
        return node
    rest = [[part for part in operand if part not in shared] for operand in operands]
    if all(rest):
        shared.append(exp.Paren(this=exp.or_(*(exp.and_(*parts, copy=True) for parts in rest), copy=True)))
    return exp.and_(*shared, copy=True)


# Comparisons of values


def compare(
    of: Translator, values: Sequence[Sequence[Case]], made: Callable[[Sequence[Known]], Made], wanted: Truth
) -> list[Conjunction]:
    """Where a test of values is true, false or unknown: it is unknown where a value is null.

    `made`: what has to hold for it to be as `wanted`, of values that are not null.
    """
    found: list[Conjunction] = []
    ways: list[tuple[Conjunction, tuple[Case, ...]]] = [((), ())]
    for cases in values:
        longer = []
        for (literals, chosen), case in product(ways, [part for one in cases for part in split(one)]):
            both = joined(literals, case.literals)
            if both is None:
                continue
            if case.term is not None:
                longer.append((both, (*chosen, case)))
            elif wanted is None:
                found.append(both)
        ways = longer
    for literals, chosen in ways if wanted is not None else ():
        result = made([Known(literals, case.term, case.type) for case in chosen if case.term is not None])
        if result is True:
            found.append(literals)
        elif result is not False:
            both = joined(literals, (result,))
            if both is not None:
                found.append(_without_tests_for_null(both, result))
    return found


def _without_tests_for_null(literals: Conjunction, strict: ast.Literal) -> Conjunction:
    """The literals but those that a variable is not null which `strict` computes with."""
    known = {not_null(ast.Variable(name)) for name in computed_with(strict)}
    return tuple(literal for literal in literals if literal not in known)


def _comparison(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    op = COMPARED[type(node)]
    left, right = plain(node.this), plain(node.expression)
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        return of.truth(_of_rows(of, node, left, right), wanted)
    op = op if wanted or wanted is None else NEGATED[op]
    return compare(
        of, [of.value(left), of.value(right)], lambda v: compared(op, v[0], v[1], node, of.scope.source), wanted
    )


# What says of values of two rows that they differ, and that the rows are in order.
_FIRST: dict[type[exp.Expr], type[exp.Expr]] = {exp.LTE: exp.LT, exp.GTE: exp.GT}
_ALIKE: dict[type[exp.Expr], type[exp.Expr]] = {exp.NEQ: exp.EQ, exp.NullSafeNEQ: exp.NullSafeEQ}


def _of_rows(of: Translator, node: exp.Expr, left: exp.Tuple, right: exp.Tuple) -> exp.Expr:
    """What a comparison of rows says of their values: `(a, b) < (x, y)` is `a < x or (a = x and b < y)`."""
    ones, others = left.expressions, right.expressions
    if len(ones) != len(others):
        raise of.scope.source.error(
            f"`{as_duckdb(node)}` compares {len(ones)} values with {len(others)}",
            node,
            why="rows are compared value by value",
            remedy="give as many on both sides",
        )

    def each(kind: type[exp.Expr]) -> list[exp.Expr]:
        return [kind(this=a.copy(), expression=b.copy()) for a, b in zip(ones, others, strict=True)]

    if isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ):
        alike = exp.and_(*each(_ALIKE.get(type(node), type(node))), copy=False)
        return exp.Not(this=exp.Paren(this=alike)) if type(node) in _ALIKE else alike
    first, equal, made = each(_FIRST.get(type(node), type(node))), each(exp.EQ), each(type(node))[-1]
    for at in reversed(range(len(first) - 1)):
        made = exp.or_(first[at], exp.and_(equal[at], made, copy=False), copy=False)
    return made


def _between(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    if node.args.get("symmetric"):
        raise of.scope.source.unsupported("`between symmetric`", node, "give the lower bound first")
    low = exp.GTE(this=node.this, expression=node.args["low"])
    return of.truth(exp.and_(low, exp.LTE(this=node.this, expression=node.args["high"])), wanted)


def _null_safe(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """`is [not] distinct from`, which is never unknown."""
    if wanted is None:
        return []
    one, two = plain(node.this), plain(node.expression)
    if isinstance(one, exp.Tuple) and isinstance(two, exp.Tuple):
        return of.truth(_of_rows(of, node, one, two), wanted)
    alike = wanted is isinstance(node, exp.NullSafeEQ)
    left, right = of.value(one), of.value(two)
    op = "=" if alike else "!="
    found = compare(of, [left, right], lambda v: compared(op, v[0], v[1], node, of.scope.source), True)
    null = [[_literals(cases, null=at) for at in (True, False)] for cases in (left, right)]
    if alike:
        return found + products([null[0][0], null[1][0]])
    return found + products([null[0][0], null[1][1]]) + products([null[0][1], null[1][0]])


def _literals(cases: Sequence[Case], *, null: bool) -> list[Conjunction]:
    """Where a value is null, or is not."""
    return [part.literals for case in cases for part in split(case) if (part.term is None) == null]


def _is(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """`is null`, `is true`, `is false`, which are never unknown."""
    if wanted is None:
        return []
    asked = plain(node.expression)
    if isinstance(asked, exp.Not):
        return _is(of, exp.Is(this=node.this, expression=asked.this), not wanted)
    if isinstance(asked, exp.Null):
        if is_predicate(plain(node.this)):
            one = of.truth(node.this, None)
            return one if wanted else of.truth(node.this, True) + of.truth(node.this, False)
        return _literals(of.value(node.this), null=wanted)
    if not isinstance(asked, exp.Boolean):
        raise of.scope.source.unsupported(f"`is {asked.sql('duckdb').lower()}`", node, "ask for null, true or false")
    hit = bool(asked.this)
    if wanted:
        return of.truth(node.this, hit)
    return of.truth(node.this, not hit) + of.truth(node.this, None)


# Lists


def _in(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    if node.args.get("unnest") or node.args.get("field"):
        raise of.scope.source.unsupported(f"`{as_duckdb(node)}`", node, "list the values, or give a query")
    left, items = plain(node.this), [plain(item) for item in node.expressions]
    each = [[] if isinstance(left, exp.Tuple) else of.value(item) for item in items]
    listed = [item for item, cases in zip(items, each, strict=True) if len(cases) == 1 and _is_constant(cases[0])]
    if len(listed) < len(items):
        parts: list[exp.Expr] = [exp.EQ(this=left.copy(), expression=i.copy()) for i in items if i not in listed]
        if listed:
            parts.insert(0, exp.In(this=left.copy(), expressions=[item.copy() for item in listed]))
        return _of_operands(of, [in_place_of(node, part) for part in parts], wanted, conjunctive=False)
    constants = [case for (case,) in each]
    values = of.value(left)
    has_null = any(case.term is None for case in constants)
    known = [Known((), case.term, case.type) for case in constants if case.term is not None]
    if wanted is None:
        unknown = compare(of, [values], lambda v: True, None)
        if has_null:  # and where the value is none of the others
            unknown += compare(of, [values], lambda v: _member(of, v[0], known, node, True), True)
        return unknown
    if has_null and not wanted:
        return []
    return compare(of, [values], lambda v: _member(of, v[0], known, node, not wanted), True)


def _is_constant(case: Case) -> bool:
    return not case.literals and (case.term is None or isinstance(case.term, ast.Constant))


def _member(of: Translator, value: Known, items: Sequence[Known], node: exp.Expr, negated: bool) -> Made:
    """The literal that a value is among constants, or is not; a bool where that is known."""
    equal: list[ast.Constant] = []
    for item in items:
        found = compared("=", value, item, node, of.scope.source)
        if found is True:
            return not negated
        if isinstance(found, ast.Comparison):
            if found.left != value.term or not isinstance(found.right, ast.Constant):
                return _unlike(of, value, items, node, negated)
            equal.append(found.right)
    return _listed(of, value.term, list(dict.fromkeys(equal)), value.type, negated)


def _listed(of: Translator, term: ast.Term, equal: list[ast.Constant], type: str, negated: bool) -> Made:
    if len(equal) < 2:
        return ast.Comparison("!=" if negated else "=", term, equal[0]) if equal else negated
    atom = ast.Atom(of.scope.constants(equal, type), (term,))
    return ast.Negation(atom) if negated else atom


def _unlike(of: Translator, value: Known, items: Sequence[Known], node: exp.Expr, negated: bool) -> Made:
    """The same for a value and constants that meet in another type."""
    type = common([(side.term, side.type) for side in (value, *items)], node, of.scope.source)
    terms = [of.cast(side, type, node) for side in (value, *items)]
    equal = [term for term in terms[1:] if isinstance(term, ast.Constant)]
    assert len(equal) == len(items), "a cast of a constant is a constant"
    return _listed(of, terms[0], list(dict.fromkeys(equal)), type, negated)


# Texts


def _like(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """`like`, `ilike` and their escapes. A pattern is a constant; the test of prefixes and parts is the plain one."""
    behind = None
    if isinstance(node, exp.Escape):
        behind, node = plain(node.expression), node.this
    negated = bool(node.args.get("negate"))
    pattern = plain(node.expression)
    if isinstance(pattern, exp.Null) or isinstance(behind, exp.Null):
        return [()] if wanted is None else []
    for part in (pattern, behind):
        if part is not None and not (isinstance(part, exp.Literal) and part.is_string):
            raise of.scope.source.unsupported(
                "a pattern that is no constant text", node, "write the pattern out, or use `contains` or `starts_with`"
            )
    folds, escape = isinstance(node, exp.ILike), _escape(of, pattern.name, behind)
    parts = pieces(pattern.name.lower(), escape.lower()) if folds else pieces(pattern.name, escape)

    def made(values: Sequence[Known]) -> Made:
        (value,) = _texts(of, values, node)
        term = call("lower", SYMBOL, value) if folds else value
        return _matches(term, parts, (wanted is not negated))

    return compare(of, [of.value(node.this)], made, wanted)


def _escape(of: Translator, pattern: str, node: exp.Expr | None) -> str:
    """The character that takes from the one behind it its meaning in a pattern."""
    escape = "" if node is None else node.name
    plainly = re.escape(escape)
    if not escape or (len(escape) == 1 and re.fullmatch(f"(?s:{plainly}.|(?!{plainly}).)*", pattern)):
        return escape
    raise of.scope.source.error(
        f"`escape '{escape}'`" if len(escape) > 1 else f"the pattern `{pattern}` ends with its escape `{escape}`",
        node,
        why="one character escapes the one behind it",
        remedy="write one character, which stands before another; it stands for itself where it is written twice",
    )


def pieces(pattern: str, escape: str = "") -> list[str]:
    """A pattern of `like` as texts between `%`, in which the character 0 stands for `_`."""
    found, at = [""], 0
    while at < len(pattern):
        letter = pattern[at]
        if escape and letter == escape and at + 1 < len(pattern):
            at += 1
            found[-1] += pattern[at]
        elif letter == "%":
            found.append("")
        else:
            found[-1] += "\0" if letter == "_" else letter
        at += 1
    return found


def _matches(term: ast.Term, pattern: list[str], holds: bool) -> Made:
    """The literal that a text has the form of a pattern, or has not."""
    equal = "=" if holds else "!="
    parts = [part for part in pattern if part]
    if not any("\0" in part for part in pattern):
        if len(pattern) == 1:
            return _test(equal, term, ast.Constant(pattern[0], SYMBOL))
        if not parts:
            return holds
        if len(parts) == 1 and pattern[0]:  # `abc%`
            start = call("substr", SYMBOL, term, ast.Constant(0, NUMBER), ast.Constant(len(pattern[0]), NUMBER))
            return _test(equal, start, ast.Constant(pattern[0], SYMBOL))
        if len(parts) == 1 and not pattern[-1]:  # `%abc%`
            return _signed(ast.Comparison("contains", ast.Constant(parts[0], SYMBOL), term), holds)
    expression = ".*".join(re.escape(part).replace("\0", ".") for part in pattern)
    expression = re.sub(r"(\.\*)+", ".*", expression)
    return _signed(ast.Comparison(MATCH, ast.Constant(f"(?s:{expression})", SYMBOL), term), holds)


def _test(op: str, left: ast.Term, right: ast.Constant) -> Made:
    if isinstance(left, ast.Constant):
        return bool(left.value == right.value) == (op == "=")
    return ast.Comparison(op, left, right)


def _signed(literal: ast.Literal, holds: bool) -> ast.Literal:
    return literal if holds else ast.Negation(literal)


def _text_test(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """`contains(x, y)`, `starts_with(x, y)`, `ends_with(x, y)`."""

    def made(values: Sequence[Known]) -> Made:
        text, part = _texts(of, values, node)
        if isinstance(node, exp.Contains):
            return _signed(ast.Comparison("contains", part, text), bool(wanted))
        if isinstance(node, exp.StartsWith):
            start = call("substr", SYMBOL, text, ast.Constant(0, NUMBER), call("strlen", NUMBER, part))
            return ast.Comparison("=" if wanted else "!=", start, part)
        if isinstance(part, ast.Constant):
            return _matches(text, ["", str(part.value)], bool(wanted))
        # What is left before the end, and the end, are the text; before one that is too long all of the text is left.
        before = call("-", NUMBER, call("strlen", NUMBER, text), call("strlen", NUMBER, part))
        whole = call("cat", SYMBOL, call("substr", SYMBOL, text, ast.Constant(0, NUMBER), before), part)
        return ast.Comparison("=" if wanted else "!=", whole, text)

    return compare(of, [of.value(node.this), of.value(node.expression)], made, wanted)


def _pattern(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """`regexp_matches(x, p)`, `regexp_full_match(x, p)` and `similar to`: patterns are those of `match`."""
    if node.args.get("flag") is not None or node.args.get("options") is not None:
        raise of.scope.source.unsupported("options of a pattern", node, "write them into it, as in '(?i)abc'")
    in_part = isinstance(node, exp.RegexpLike)

    def made(values: Sequence[Known]) -> Made:
        text, pattern = _texts(of, values, node)
        if isinstance(pattern, ast.Constant):
            check_pattern(pattern, node.expression, of.scope.source)
            expression = somewhere(str(pattern.value)) if in_part else str(pattern.value)
            return _signed(ast.Comparison(MATCH, ast.Constant(expression, SYMBOL), text), bool(wanted))
        if in_part:
            around = (ast.Constant(part, SYMBOL) for part in somewhere("\0").split("\0"))
            pattern = call("cat", SYMBOL, next(around), pattern, next(around))
        return _signed(ast.Comparison(MATCH, pattern, text), bool(wanted))

    return compare(of, [of.value(node.this), of.value(node.expression)], made, wanted)


def somewhere(pattern: str) -> str:
    """The pattern of all texts in which `pattern` matches a part."""
    options = re.match(r"\(\?[a-z]+\)", pattern)
    begin = options.end() if options else 0
    return f"{pattern[:begin]}(?s:.*?)(?:{pattern[begin:]})(?s:.*)"


def _texts(of: Translator, values: Sequence[Known], node: exp.Expr) -> list[ast.Term]:
    for value in values:
        if value.type != SYMBOL:
            raise of.scope.source.error(
                f"`{as_duckdb(node)}` takes texts, and a value is {shown(value.type)}",
                node,
                why="patterns are about texts",
                remedy="cast the value to text",
            )
    return [value.term for value in values]


# Values that are true or false


def _of_value(of: Translator, node: exp.Expr, wanted: Truth) -> list[Conjunction]:
    """Where an expression of type bool is so: a column, a `case`, a `coalesce`."""

    def made(values: Sequence[Known]) -> Made:
        (value,) = values
        if value.type != BOOL:
            raise of.scope.source.error(
                f"`{as_duckdb(node)}` is {shown(value.type)}, and a condition is true or false",
                node,
                why="numbers and texts are no conditions",
                remedy=f"compare it, as in `x {'<> 0' if family_of(value.type) in NUMBERS else 'is not null'}`",
            )
        if isinstance(value.term, ast.Constant):
            return value.term.value is wanted
        return ast.Comparison("=", value.term, ast.Constant(wanted, BOOL))

    return compare(of, [of.value(node)], made, wanted)


Translated = Callable[[Translator, exp.Expr, Truth], list[Conjunction]]
_PREDICATES: tuple[tuple[tuple[type[exp.Expr], ...], Translated], ...] = (
    ((exp.And, exp.Or), _connective),
    (tuple(COMPARED), _comparison),
    ((exp.NullSafeEQ, exp.NullSafeNEQ), _null_safe),
    ((exp.Between,), _between),
    ((exp.Is,), _is),
    ((exp.In,), _in),
    ((exp.Like, exp.ILike, exp.Escape), _like),
    ((exp.Contains, exp.StartsWith, exp.EndsWith), _text_test),
    ((exp.RegexpLike, exp.RegexpFullMatch, exp.SimilarTo), _pattern),
)
