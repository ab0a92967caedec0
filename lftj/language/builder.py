"""The builder: programs written as Python expressions, giving the same AST as the text.

    p = lftj.Program()
    edge = p.input("edge", src=int, dst=int)
    tri, = p.relations("tri")
    x, y, z = lftj.variables("x y z")
    p.rule(tri(x, y, z), edge(x, y), edge(y, z), edge(x, z), x < y)

Terms are `Term` objects: Python's operators on them build terms (`x + 1`) and comparisons (`x < y`), they compute
nothing. Atoms and comparisons are `Condition` objects: `~c` negates, `c | d` is a disjunction, `c & d` a conjunction
inside one.

    Python             rule text            Python             rule text
    x + y  x - y       x + y  x - y         x == y  x != y     x = y  x != y
    x * y  x / y       x * y  x / y         x < y  x <= y      x < y  x <= y
    x // y             x / y                ...                _
    x % y  x ** y      x % y  x ^ y         ~edge(x, y)        !edge(x, y)
    x & y  x | y       x band y  x bor y    c | d              c ; d
    x ^ y  ~x          x bxor y  bnot x     any_of(c, (d, e))  (c ; d, e)
    x << y  x >> y     x bshl y  x bshr y   fn.cat(x, y)       cat(x, y)
    price[x]           price[x]             agg.count(a(x))    count : { a(x) }
    price[x] == y      price[x] = y         agg.sum(y, a(y))   sum y : { a(y) }

The operators mean what they mean in rule text, not in Python: `//` and `%` on integers truncate towards zero.

Because `==` builds a comparison, a term has no truth value and is hashed by identity: `x in [y]`, `if x == y`, `1 < x
< 3` and `a and b` raise `BuilderError`, which names the line of the user's file. So does every other misuse that can
be seen when it is written; what takes the whole program to see (types, groundness) is the checker's, with the same
line numbers.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import replace

from lftj.errors import Span
from lftj.language import ast as tree
from lftj.language.diagnostics import given
from lftj.language.options import AUTO, VALUES, WHY, listed
from lftj.language.terms import Condition, Relation, Term, check_name, conditions, fail, here
from lftj.language.text import item_text, to_text
from lftj.language.types import BASE_TYPES, of_class
from lftj.values.type_table import with_null

_TYPE_NAME = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*(\([^()]*\)\??)?")


class Program:
    """A program under construction. Its items keep the order of the calls; `ast()` is what they have made so far."""

    def __init__(self) -> None:
        self._items: list[tree.Item] = []
        self._source = here().source

    # Relations

    def relation(self, name: str, /, **columns: object) -> Declared:
        """Declare a relation: `p.relation("edge", src=int, dst=int)`.

        With `to`, a functional predicate: `p.relation("price", item=str).to(cost=float)`.

        A type is the class of its values (int, float, str, bool, datetime.date, datetime.datetime, datetime.timedelta,
        Decimal, UUID, bytes; `int | None` admits null), the name of a type ("unsigned", "decimal(10,2)"), or a type
        named by `p.type`.
        """
        span = here()
        check_name(name, "relation")
        attributes = _attributes(columns, span)
        self._items.append(tree.Declaration(name, attributes, (), span))
        return Declared(self, len(self._items) - 1, name, len(attributes))

    def input(self, name: str, options: Mapping[str, object] | None = None, /, **columns: object) -> Declared:
        """Declare a relation that is loaded: `.decl` and `.input`.

        `options` are those of `.input`, such as {"filename": "e.csv"}; columns are given as to `relation`.
        """
        written = _options({} if options is None else options)
        relation = self.relation(name, **columns)
        self._items.append(tree.Directive("input", name, written, here()))
        return relation

    def relations(self, *names: object) -> tuple[Relation, ...]:
        """Relations whose columns follow from their rules: `tri, path = p.relations("tri", "path")`."""
        words: list[object] = []
        for name in names:
            words += name.replace(",", " ").split() if isinstance(name, str) else [name]
        return tuple(Relation(check_name(word, "relation"), None) for word in words)

    def type(self, name: str, base: object, *, subtype: bool = False) -> str:
        """Name a type: an alias of `base`, or a subtype of it. Returns the name, for use in declarations."""
        check_name(name, "type", BASE_TYPES)
        self._items.append(tree.TypeDeclaration(name, _type_name(base, name), subtype, here()))
        return name

    # Rules

    def rule(self, head: object, *body: object, maintain: str = AUTO, granularity: str = AUTO) -> None:
        """Add a rule: the head, an atom or a tuple of atoms, holds wherever all conditions of the body hold.

        `price[x] == y` as a head is a row of a functional predicate. It needs no body if its value is an aggregate,
        whose groups are the keys: `p.rule(degree[x] == agg.count(edge(x, ...)))`.

        `maintain` ("trace", "delta", "triggers", "recompute") and `granularity` ("node", "interval") are those of
        `Database.rules`, for this rule. They are not part of the program's text: `to_text` leaves them out, and
        `rules` takes them by head.
        """
        span = here()
        given = {"maintain": maintain, "granularity": granularity}
        for option, value in given.items():
            if value not in VALUES[option]:
                fail(f"{option}={value!r} is unknown", why=WHY[option], remedy=f"give {listed(VALUES[option])}")
        heads = _heads(head if isinstance(head, tuple | list) else (head,))
        literals = conditions(body)
        if not literals and not all(isinstance(made, tree.Assignment) for made in heads):
            fail(
                "a rule without a body",
                why="a rule derives rows from what its body binds",
                remedy="give it conditions, or state a fact with `fact`",
            )
        options = tuple((option, value) for option, value in given.items() if value != AUTO)
        self._items.append(tree.Rule(heads, literals, span, options))

    def fact(self, *atoms: object) -> None:
        """Add facts: `p.fact(edge(1, 2), edge(2, 3))`."""
        span = here()
        for atom in _heads(atoms):
            self._items.append(tree.Rule((atom,), (), span))

    # Directives

    def output(self, name: str | Relation, /, **options: object) -> None:
        """Ask for a relation to be written: `.output`. Options are those of the directive, such as `headers=True`."""
        self._directive("output", name, options)

    def printsize(self, name: str | Relation, /) -> None:
        """Ask for the number of rows of a relation: `.printsize`."""
        self._directive("printsize", name, {})

    def _directive(self, kind: str, name: str | Relation, options: Mapping[str, object]) -> None:
        word = name.name if isinstance(name, Relation) else check_name(name, "relation")
        self._items.append(tree.Directive(kind, word, _options(options), here()))

    # The result

    def ast(self) -> tree.Program:
        """The program so far, as the same AST that its text parses to."""
        return tree.Program(tuple(self._items), self._source)

    def to_text(self) -> str:
        """The program so far as rule text, without options of rules; `parse(p.to_text()) == p.ast()`."""
        return to_text(self.ast())

    def __repr__(self) -> str:
        return f"<Program of {len(self._items)} items>\n" + "\n".join(item_text(item) for item in self._items[:20])


class Declared(Relation):
    """A declared relation of a program under construction."""

    __slots__ = ("_at", "_program")

    def __init__(self, program: Program, at: int, name: str, arity: int) -> None:
        super().__init__(name, arity, functional=False)
        self._program = program
        self._at = at

    def to(self, **value: object) -> Declared:
        """Make it a functional predicate: the columns declared so far are its keys, and this one is their value."""
        if self.functional:
            fail(
                f"`{self.name}` has its value already",
                why="a functional predicate has one value per key",
                remedy="declare keys by columns, and one value by `to`",
            )
        if len(value) != 1:
            fail(
                f"`to` takes one column, and {given(len(value))}",
                why="a functional predicate has one value per key",
                remedy='name the value and its type, as in `p.relation("price", item=str).to(cost=float)`',
            )
        items = self._program._items
        declared = items[self._at]
        assert isinstance(declared, tree.Declaration), f"item {self._at} declares `{self.name}`"
        attributes = (*declared.attributes, *_attributes(value, here()))
        items[self._at] = replace(declared, attributes=attributes, functional=True)
        self.arity, self.functional = len(attributes), True
        return self


def _attributes(columns: Mapping[str, object], span: Span) -> tuple[tree.Attribute, ...]:
    return tuple(
        tree.Attribute(check_name(column, "column", ()), _type_name(type_, column), span)
        for column, type_ in columns.items()
    )


def _heads(values: Iterable[object]) -> tuple[tree.Head, ...]:
    heads: list[tree.Head] = []
    for value in values:
        literals = value.literals if isinstance(value, Condition) else ()
        compare = literals[0] if len(literals) == 1 else None
        if isinstance(compare, tree.Comparison) and compare.op == "=" and isinstance(compare.left, tree.Lookup):
            lookup = compare.left
            heads.append(tree.Assignment(lookup.name, lookup.keys, compare.right, compare.span))
            continue
        if len(literals) != 1 or not isinstance(literals[0], tree.Atom):
            shown = repr(value) if isinstance(value, Condition | Term) else type(value).__name__
            fail(
                f"a head must be an atom such as `tri(x, y, z)`, not `{shown}`",
                why="a rule derives rows of the relation that its head names",
                remedy="call a relation with terms",
            )
        heads.append(literals[0])
    if not heads:
        fail(
            "a rule without a head",
            why="a rule says what holds wherever its body does",
            remedy="give an atom, or a tuple of atoms",
        )
    return tuple(heads)


def _type_name(type_: object, column: str) -> str:
    parts = typing.get_args(type_) if typing.get_origin(type_) in (types.UnionType, typing.Union) else ()
    if len(parts) == 2 and type(None) in parts:
        (value,) = (part for part in parts if part is not type(None))
        return with_null(_type_name(value, column))
    if isinstance(type_, type) and (name := of_class(type_)):
        return name
    if isinstance(type_, str) and _TYPE_NAME.fullmatch(type_):
        return "".join(type_.split())
    shown = type_.__name__ if isinstance(type_, type) else repr(type_)
    fail(
        f"{shown} is not a type for `{column}`",
        why="a column holds values of one type",
        remedy="types are int, float, str, bool, datetime.date and other classes of values (`int | None` with null), "
        'or a name such as "unsigned", "decimal(10,2)" or that of a declared type',
    )


def _options(options: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    if not isinstance(options, Mapping):
        fail(
            f"the options of a directive cannot be {options!r}",
            why="each has a name and a value",
            remedy='give a dict, as in `p.input("edge", {"filename": "e.csv"}, src=int, dst=int)`',
        )
    return tuple(
        (check_name(key, "option", ()), str(value).lower() if isinstance(value, bool) else str(value))
        for key, value in options.items()
    )
