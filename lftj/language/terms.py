"""Terms and conditions as Python objects: what the builder's expressions are made of.

A `Term` wraps an AST term, a `Condition` one or more literals, a `Relation` only a name; `agg` makes terms of
conditions. Python's operators wrap larger nodes and compute nothing. Each node remembers the line of the user's code
that made it. `builder.py` has the table of operators.

`==` builds a comparison, so a term is hashed by identity and has no truth value: `__bool__` of terms and conditions
raises `BuilderError` where Python would otherwise drop half a condition silently (`1 < x < 3`, `a and b`).
"""

from __future__ import annotations

import decimal
import linecache
import numbers
import operator
import sys
from collections.abc import Iterable
from os.path import dirname, sep
from typing import NoReturn, SupportsIndex

from lftj.errors import BuilderError, Span
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, FRACTION_DIGITS, with_given_fraction
from lftj.language.diagnostics import given
from lftj.language.functors import CONSTRAINTS, FUNCTORS, RESERVED, RESERVED_VARIABLES
from lftj.language.notation import NAME
from lftj.language.text import literal_source, term_source
from lftj.language.types import DECIMAL, FLOAT, NUMBER, NUMERIC, SYMBOL, of_class
from lftj.values.decimal_type import DIGITS
from lftj.values.faults import counted, with_article
from lftj.values.type_table import family_of, type_of
from lftj.values.value_type import Misfit

_OWN = dirname(dirname(__file__)) + sep


def here() -> Span:
    """The line of the user's code that is being executed: the innermost frame outside lftj."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line, frame.f_globals).rstrip("\n")
    return Span(name, line, 0, line, 0, text)


def fail(what: str, *, why: str, remedy: str) -> NoReturn:
    """Raise BuilderError at the line of the user's code."""
    raise BuilderError(what, where=str(here()), why=why, remedy=remedy)


class Term:
    """A term of a rule: a variable, a constant or a functor. Operators build larger terms and comparisons."""

    __slots__ = ("node",)

    def __init__(self, node: ast.Term) -> None:
        self.node = node

    def __repr__(self) -> str:
        return term_source(self.node)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        fail(
            f"the term `{self!r}` has no truth value",
            why="its values are known when the rule is evaluated, not when Python reads it",
            remedy="write conditions as separate arguments of `rule`",
        )

    def __iter__(self) -> NoReturn:
        fail(
            f"the term `{self!r}` cannot be iterated over",
            why="it stands for one value",
            remedy='`lftj.variables("x y")` makes several variables',
        )

    # Arithmetic

    def __add__(self, other: object) -> Term:
        return _apply("+", self, other)

    def __radd__(self, other: object) -> Term:
        return _apply("+", other, self)

    def __sub__(self, other: object) -> Term:
        return _apply("-", self, other)

    def __rsub__(self, other: object) -> Term:
        return _apply("-", other, self)

    def __mul__(self, other: object) -> Term:
        return _apply("*", self, other)

    def __rmul__(self, other: object) -> Term:
        return _apply("*", other, self)

    def __truediv__(self, other: object) -> Term:
        return _apply("/", self, other)

    def __rtruediv__(self, other: object) -> Term:
        return _apply("/", other, self)

    def __floordiv__(self, other: object) -> Term:
        return _apply("/", self, other)

    def __rfloordiv__(self, other: object) -> Term:
        return _apply("/", other, self)

    def __mod__(self, other: object) -> Term:
        return _apply("%", self, other)

    def __rmod__(self, other: object) -> Term:
        return _apply("%", other, self)

    def __pow__(self, other: object) -> Term:
        return _apply("^", self, other)

    def __rpow__(self, other: object) -> Term:
        return _apply("^", other, self)

    def __and__(self, other: object) -> Term:
        return _apply("band", self, other)

    def __rand__(self, other: object) -> Term:
        return _apply("band", other, self)

    def __or__(self, other: object) -> Term:
        return _apply("bor", self, other)

    def __ror__(self, other: object) -> Term:
        return _apply("bor", other, self)

    def __xor__(self, other: object) -> Term:
        return _apply("bxor", self, other)

    def __rxor__(self, other: object) -> Term:
        return _apply("bxor", other, self)

    def __lshift__(self, other: object) -> Term:
        return _apply("bshl", self, other)

    def __rlshift__(self, other: object) -> Term:
        return _apply("bshl", other, self)

    def __rshift__(self, other: object) -> Term:
        return _apply("bshr", self, other)

    def __rrshift__(self, other: object) -> Term:
        return _apply("bshr", other, self)

    def __neg__(self) -> Term:
        return _apply("neg", self)

    def __pos__(self) -> Term:
        return self

    def __invert__(self) -> Term:
        return _apply("bnot", self)

    # Comparisons

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return _compare("=", self, other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return _compare("!=", self, other)

    def __lt__(self, other: object) -> Condition:
        return _compare("<", self, other)

    def __le__(self, other: object) -> Condition:
        return _compare("<=", self, other)

    def __gt__(self, other: object) -> Condition:
        return _compare(">", self, other)

    def __ge__(self, other: object) -> Condition:
        return _compare(">=", self, other)


class Condition:
    """An atom, a comparison, or a combination of conditions by `~`, `|` and `&`."""

    __slots__ = ("literals",)

    def __init__(self, *literals: ast.Literal) -> None:
        self.literals = literals  # a conjunction; all but `&` make one literal

    def __repr__(self) -> str:
        return ", ".join(literal_source(literal) for literal in self.literals)

    def __bool__(self) -> bool:
        fail(
            f"the condition `{self!r}` has no truth value in Python",
            why="`and`, `or`, `not`, `if` and chains such as `1 < x < 3` ask for one",
            remedy="separate conditions by `,` in `rule`, use `|` for alternatives and `~` for negation",
        )

    def __invert__(self) -> Condition:
        span = here()
        if len(self.literals) == 1:
            return Condition(ast.Negation(self.literals[0], span))
        return Condition(ast.Negation(ast.Disjunction((self.literals,), span), span))

    def __or__(self, other: object) -> Condition:
        return any_of(self, other)

    def __ror__(self, other: object) -> Condition:
        return any_of(other, self)

    def __and__(self, other: object) -> Condition:
        return Condition(*self.literals, *conditions([other]))

    def __rand__(self, other: object) -> Condition:
        return Condition(*conditions([other]), *self.literals)


class Relation:
    """A relation of a program; calling it with terms makes an atom. `...` as an argument stands for any value.

    Of a functional predicate, `price[x]` is the value at a key.
    """

    __slots__ = ("arity", "functional", "name")

    def __init__(self, name: str, arity: int | None, *, functional: bool | None = None) -> None:
        self.name = name
        self.arity = arity
        self.functional = functional  # None: as its rules say

    def __call__(self, *args: object) -> Condition:
        """The atom of this relation over `args`; None is null, which a head or a fact may have."""
        if self.arity is not None and len(args) != self.arity:
            fail(
                f"`{self.name}` has {counted(self.arity, 'column')}, and {given(len(args))}",
                why="an atom is about whole rows",
                remedy="give every column one argument; `...` stands for any value",
            )
        span = here()
        terms = (ast.Constant(None, "", span) if arg is None else _term(arg, self.name) for arg in args)
        return Condition(ast.Atom(self.name, tuple(terms), span))

    def __getitem__(self, keys: object) -> Term:
        """The value of a functional predicate at a key: `price[x]`, `distance[x, y]`, `total[()]`."""
        given_keys = keys if isinstance(keys, tuple) else (keys,)
        if self.functional is False:
            fail(
                f"`{self.name}` is a relation, not a functional predicate",
                why=f"`{self.name}[...]` is the one value at a key, and a relation may have many rows",
                remedy='declare the value with `to`, as in `p.relation("price", item=str).to(cost=float)`',
            )
        if self.arity is not None and len(given_keys) != self.arity - 1:
            fail(
                f"`{self.name}` has {counted(self.arity - 1, 'key')}, and {counted(len(given_keys), 'key')} "
                f"{'is' if len(given_keys) == 1 else 'are'} given",
                why=f"`{self.name}` has one value for all its keys together",
                remedy="give every key one term",
            )
        return Term(ast.Lookup(self.name, tuple(_term(key, self.name) for key in given_keys), here()))

    def __iter__(self) -> NoReturn:
        fail(
            f"the relation `{self.name}` cannot be iterated over",
            why="it names rows that do not exist before a database evaluates the program",
            remedy="the database has its rows, not the program",
        )

    def __repr__(self) -> str:
        return f"<relation {self.name}>" if self.arity is None else f"<relation {self.name}/{self.arity}>"


def _term(value: object, where: str) -> ast.Term:
    """The AST of a Python value used as a term."""
    span = here()
    if isinstance(value, Term):
        # A variable is made once and used in many rules: its place is where it is used.
        return ast.Variable(value.node.name, span) if isinstance(value.node, ast.Variable) else value.node
    if value is ...:
        return ast.Wildcard(span)
    if isinstance(value, str):
        return ast.Constant(str(value), SYMBOL, span)
    if (typed := _typed(value, span)) is not None:
        return typed
    if isinstance(value, SupportsIndex):
        return ast.Constant(operator.index(value), NUMBER, span)
    # Every integer has an index by now, but for a timedelta64, which numpy takes for one.
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            fail(
                f"the float {number} cannot be written in a rule",
                why="rule text has no spelling for it",
                remedy="load it as data, or compare with the largest float",
            )
        return ast.Constant(number, FLOAT, span)
    if isinstance(value, Condition):
        fail(
            f"`{value!r}` is a condition, and `{where}` takes terms",
            why="a condition holds or does not, and a term is a value",
            remedy="write the condition as its own argument of `rule` and use its variables",
        )
    if isinstance(value, Relation):
        fail(
            f"`{value.name}` is a relation, and `{where}` takes terms",
            why="a relation holds rows, and a term is one value",
            remedy=f"call it with terms: `{value.name}(x, y)`",
        )
    fail(
        f"a value of type {type(value).__name__} cannot be a term of `{where}`",
        why="no column holds such values",
        remedy="terms are variables, `...`, expressions, and values of int, float, str, bool, datetime, Decimal, UUID "
        "and bytes",
    )


def _typed(value: object, span: Span) -> ast.Constant | None:
    """A constant of a type that is no number or text; None for any other value."""
    type_ = of_class(type(value))
    if not type_ or family_of(type_) in (*NUMERIC, SYMBOL):
        return None
    if isinstance(value, decimal.Decimal):
        exponent = value.as_tuple().exponent
        scale = max(0, -exponent) if isinstance(exponent, int) else 0
        digits = len(value.as_tuple().digits) + max(0, exponent if isinstance(exponent, int) else 0)
        type_ = f"{DECIMAL}({max(1, scale, digits)},{scale})"
    try:
        constant = type_of(type_).constant(value)
    except (Misfit, ValueError) as error:
        fault = error.fault if isinstance(error, Misfit) else None
        fail(
            f"{value!r} {fault.reason if fault else f'has more than {DIGITS} digits'}",
            why=fault.why if fault else f"a decimal has up to {DIGITS} digits",
            remedy=fault.remedy if fault else f"give a decimal of up to {DIGITS} digits, or a float",
        )
    return ast.Constant(constant, type_, span)


def _apply(name: str, *args: object) -> Term:
    return Term(ast.Functor(name, tuple(_term(arg, name) for arg in args), here()))


def _compare(op: str, left: object, right: object) -> Condition:
    return Condition(ast.Comparison(op, _term(left, op), _term(right, op), here()))


def conditions(values: Iterable[object]) -> tuple[ast.Literal, ...]:
    """The literals of a conjunction written as conditions, and tuples or lists of conditions."""
    literals: list[ast.Literal] = []
    for value in values:
        if isinstance(value, Condition):
            literals += value.literals
        elif isinstance(value, tuple | list):
            literals += conditions(value)
        elif isinstance(value, Relation):
            fail(
                f"`{value.name}` is a relation, not a condition",
                why="a condition says which rows of it are meant",
                remedy=f"call it with terms: `{value.name}(x, y)`",
            )
        elif isinstance(value, Term):
            fail(
                f"`{value!r}` is a term, not a condition",
                why="a term is a value, and a condition holds or does not",
                remedy="compare it with something, or use it in an atom",
            )
        elif isinstance(value, bool):
            fail(
                f"a body holds the Python value {value}",
                why="a comparison of two Python values is computed by Python before the rule sees it",
                remedy="compare terms; constants in a body are written by an equality such as `x == 1`",
            )
        else:
            fail(
                f"a value of type {type(value).__name__} is not a condition",
                why="a body is what must hold for the head to be derived",
                remedy="a body is made of atoms such as `edge(x, y)` and comparisons such as `x < y`",
            )
    return tuple(literals)


def any_of(*alternatives: object) -> Condition:
    """A disjunction: each alternative is a condition, or a tuple of conditions that must hold together."""
    if len(alternatives) == 1 and isinstance(alternatives[0], list) and len(alternatives[0]) > 1:
        # As Python's `any` takes them; read as one alternative, all of them would have to hold.
        fail(
            "`any_of` with one list of conditions",
            why="each argument is an alternative, and the conditions of one must hold together",
            remedy="give each as an argument of its own, as in `any_of(*conditions)`",
        )
    read: list[tuple[ast.Literal, ...]] = []
    for alternative in alternatives:
        conjunction = conditions([alternative])
        if len(conjunction) == 1 and isinstance(conjunction[0], ast.Disjunction):
            read += conjunction[0].alternatives  # a | b | c is one disjunction of three
        elif conjunction:
            read.append(conjunction)
        else:
            fail(
                "an alternative without conditions",
                why="it would always hold",
                remedy="give every alternative at least one condition",
            )
    if len(read) < 2:
        return Condition(
            *(
                read[0]
                if read
                else fail(
                    "`any_of` without alternatives",
                    why="a disjunction of nothing would never hold",
                    remedy="give it two or more conditions",
                )
            )
        )
    return Condition(ast.Disjunction(tuple(read), here()))


def variables(names: str | Iterable[str]) -> tuple[Term, ...]:
    """One variable for each name: `x, y, z = lftj.variables("x y z")`. Commas may separate the names."""
    if not isinstance(names, Iterable):
        fail(
            f"variables cannot be named by a value of type {type(names).__name__}",
            why="a variable is known by its name",
            remedy='give names, as in `x, y = variables("x y")`',
        )
    words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    if not words:
        fail(
            "`variables` without a name",
            why="it makes one variable per name",
            remedy='name them, as in `x, y = variables("x y")`',
        )
    made = []
    for word in words:
        check_name(word, "variable", RESERVED_VARIABLES)
        made.append(Term(ast.Variable(word, here())))
    return tuple(made)


def unsigned(value: object) -> Term:
    """An unsigned constant, `5u` in text. Needed only where nothing else says that unsigned is meant."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 0:
        fail(
            f"{value!r} is not an unsigned integer",
            why="an unsigned constant is a whole number of 0 or more",
            remedy="unsigned holds 0 to 18446744073709551615",
        )
    return Term(ast.Constant(operator.index(value), "unsigned", here()))


class _Functors:
    """The functors as functions: `fn.cat(x, y)`, `fn.strlen(x)`, `fn.contains(part, text)`. `dir(fn)` lists them."""

    def __getattr__(self, name: str) -> _Function:
        if name in CONSTRAINTS or (name in FUNCTORS and name.isidentifier()):
            return _Function(name)
        raise AttributeError(f"lftj has no functor {name!r}; dir(lftj.fn) lists them")

    def __dir__(self) -> list[str]:
        return sorted([*CONSTRAINTS, *(name for name in FUNCTORS if name.isidentifier())])


class _Function:
    """One functor as a function of terms."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        if self.name in CONSTRAINTS:
            return str(CONSTRAINTS[self.name])
        return f"{FUNCTORS[self.name]}: {FUNCTORS[self.name].doc}"

    def __repr__(self) -> str:
        return f"<functor {self.__doc__}>"

    def __call__(self, *args: object) -> Term | Condition:
        """The functor applied to terms; for `contains`, `match` and `is_null`, the condition."""
        test = CONSTRAINTS.get(self.name)
        good = len(args) == len(test.parameters) if test is not None else FUNCTORS[self.name].accepts(len(args))
        if not good:
            fail(
                f"`{self.name}` does not take {counted(len(args), 'argument')}",
                why="a functor has a value for the arguments it is defined for only",
                remedy=self.__doc__,
            )
        return _compare(self.name, args[0], args[-1]) if test is not None else _apply(self.name, *args)


fn = _Functors()


class _Aggregates:
    """The aggregates as functions of conditions: `agg.count(edge(x, ...))`, `agg.sum(v, sale(x, v), v > 0)`.

    `count` takes the conditions of its braces, the others the term they fold and then the conditions, quantiles their
    fraction before: `agg.quantile_disc(0.95, v, sale(x, v))`. The result is a term. `dir(agg)` lists them.
    """

    def __getattr__(self, name: str) -> _Aggregate:
        if name in AGGREGATES:
            return _Aggregate(name)
        raise AttributeError(f"lftj has no aggregate {name!r}; dir(lftj.agg) lists them")

    def __dir__(self) -> list[str]:
        return sorted(AGGREGATES)


class _Aggregate:
    """One aggregate as a function."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"{self.name}: {AGGREGATES[self.name].doc}"

    def __repr__(self) -> str:
        return f"<aggregate {self.__doc__}>"

    def __call__(self, *args: object) -> Term:
        """The aggregate over the bindings of its conditions, as a term."""
        spec = AGGREGATES[self.name]
        alone, op, example = not spec.operand, self.name, f"agg.{self.name}(v, sale(x, v))"
        if alone:
            example = f"agg.{self.name}(edge(x, ...))"
        elif spec.by_counts:
            example = f"agg.{self.name}(0.95, v, sale(x, v))"
            op = with_given_fraction(self.name, args[0] if args else None)
            if not op:
                fail(
                    f"`{self.name}` without a fraction from 0 to 1",
                    why=f"a quantile is at a fraction of the bindings, written with {FRACTION_DIGITS} digits at most",
                    remedy=f"give it first, as in `{example}`",
                )
            args = args[1:]
        body = args if alone else args[1:]
        if not conditions(body):
            fail(
                f"`{self.name}` without a condition",
                why="an aggregate folds what its conditions bind",
                remedy=f"write what it ranges over, as in `{example}`",
            )
        operand = None if alone else _term(args[0], self.name)
        return Term(ast.Aggregate(op, operand, conditions(body), here()))


agg = _Aggregates()


def has_form_of_name(name: str) -> bool:
    """Whether a text has the form of a name in rule text; it may be a reserved word."""
    return NAME.fullmatch(name) is not None


def check_name(name: object, what: str, reserved: Iterable[str] = RESERVED) -> str:
    """The name, if it can be written in rule text; BuilderError if not."""
    if not isinstance(name, str) or not has_form_of_name(name):
        fail(
            f"{name!r} cannot name {with_article(what)}",
            why="the program can be written as rule text, where a name has a form",
            remedy="a name is made of ASCII letters, digits, `_` and `?`, and starts with no digit",
        )
    if name in reserved:
        fail(
            f"`{name}` cannot name {with_article(what)}: it is a reserved word",
            why="the word has a meaning of its own in rules",
            remedy="choose another name",
        )
    return name
