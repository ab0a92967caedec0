"""The rules that a query becomes, one after the other, and the names of their heads and variables.

The parts of the query `v` are heads of its own, `@v.sum1`, `@v.match2`: internal relations, which no statement names
and which go when nothing reads them any more. What the engine takes apart itself has names such as `@v.1`, without a
word, so that the two never meet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, word_of
from lftj.language.clause import INTERNAL
from lftj.language.functors import OR_NULL, RESERVED_VARIABLES
from lftj.language.names import COPIES
from lftj.language.types import NUMBER
from lftj.language.visitors import nodes
from lftj.sql.branches import Branch
from lftj.sql.view import OutputColumn
from lftj.sql.whole_numbers import product_of

_WORDS = frozenset(RESERVED_VARIABLES) | frozenset(AGGREGATES)


class QueryHeads:
    """The rules made so far. `view`: the name of the query's head · `nullable`: which variables may be null.

    `recursive`: heads of which rules are still to come, which read them.
    """

    def __init__(self, view: str) -> None:
        self.view = view
        self.items: list[ast.Item] = []
        self.nullable: dict[str, bool] = {}
        self.recursive: set[str] = set()
        self._constants: dict[tuple[ast.Constant, ...], str] = {}
        self._made: dict[object, str] = {}
        self._heads = 0

    # Names

    def name(self, word: str) -> str:
        """A name for a head that is a part of the query; `word` says what it holds."""
        self._heads += 1
        return f"{INTERNAL}{self.view.lstrip(INTERNAL)}.{word_of(word)}{self._heads}"

    def variable(self, name: str, nullable: bool) -> ast.Variable:
        """A variable that no other rule has, called after a column."""
        plain = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_")
        plain = f"x{plain}" if not plain or plain[0].isdigit() else plain
        made, number = plain, 1
        while made in self.nullable or made in _WORDS:
            number += 1
            made = f"{plain}_{number}"
        self.nullable[made] = nullable
        return ast.Variable(made)

    def variable_for(self, term: ast.Term) -> ast.Variable:
        """A variable for the value of a term."""
        return self.variable(term.name if isinstance(term, ast.Functor) else "x", False)

    # Rules

    def rule(
        self, name: str, args: Sequence[ast.Term], body: Iterable[ast.Literal], *, functional: bool = False
    ) -> None:
        """Add a rule; with `functional` the last argument is the value of the others."""
        head = ast.Assignment(name, tuple(args[:-1]), args[-1]) if functional else ast.Atom(name, tuple(args))
        self.items.append(_with_wildcards(ast.Rule((head,), tuple(body))))

    def derived(self, word: str, args: Sequence[ast.Term], branches: Iterable[Branch]) -> str:
        """The name of a head that has a row for each binding of the branches."""
        name = self.name(word)
        for branch in branches:
            self.rule(name, [branch.term(arg) for arg in args], branch.body)
        return name

    def constants(self, values: Sequence[ast.Constant]) -> str:
        """The name of a relation of one column whose rows are these values."""
        key = tuple(sorted(set(values), key=lambda value: (value.kind, str(value.value))))
        if key not in self._constants:
            self._constants[key] = self.facts("one_of", [(value,) for value in key])
        return self._constants[key]

    def facts(self, word: str, rows: Iterable[Sequence[ast.Term]]) -> str:
        """The name of a relation whose rows are given."""
        name = self.name(word)
        for row in rows:
            self.rule(name, row, ())
        return name

    def aggregate(
        self, name: str, op: str, operand: ast.Term | None, keys: Sequence[ast.Term], body: Iterable[ast.Literal]
    ) -> None:
        """Add the rule of a head that has, for each key, what an aggregate makes of the bindings of a body."""
        head = ast.Assignment(name, tuple(keys), ast.Aggregate(op, operand, tuple(body)))
        self.items.append(_with_wildcards(ast.Rule((head,), ())))

    def folded(self, op: str, operand: ast.Term | None, keys: Sequence[ast.Term], branch: Branch) -> str:
        """The name of a head with the columns of `keys`, and what the aggregate makes of the bindings of each.

        `keys` and `operand` are terms of the branch. Equal aggregates are one head.
        """
        body = list(branch.body)
        grouped: list[ast.Variable] = []
        places: list[ast.Term] = []
        for key in keys:
            place = key
            if not isinstance(key, ast.Variable | ast.Constant):
                place = self.variable_for(key)
                body.append(ast.Comparison("=", place, key))
            if isinstance(place, ast.Variable) and place not in grouped:
                grouped.append(place)
            places.append(place)
        same = (op, operand, tuple(keys), tuple(branch.body))
        if same in self._made:
            return self._made[same]
        name = self._made[same] = self.name(op)
        inner = name if tuple(places) == tuple(grouped) else self.name(op)
        self.aggregate(inner, op, operand, grouped, body)
        if inner != name:
            result = self.variable(word_of(op), False)
            atoms: list[ast.Literal] = [ast.Atom(inner, (*grouped, result)), *or_null(self, grouped)]
            if places and not grouped and op in ("sum", "count"):  # the engine's sum of nothing is 0, SQL has no group
                number = self.variable("count", False)
                atoms += [
                    ast.Atom(self.folded("count", None, (), branch), (number,)),
                    ast.Comparison(">", number, ast.Constant(0, NUMBER)),
                ]
            self.rule(name, [*places, result], atoms)
        return name

    def counted(self, keys: Sequence[ast.Term], branch: Branch) -> str:
        """The name of a head with the columns of `keys`, and how many rows of the branch have each, copies counted."""
        if branch.copies:
            return self.folded("sum", product_of(branch.copies), keys, branch)
        return self.folded("count", None, keys, branch)

    def sure(self, name: str, columns: Sequence[OutputColumn], *, copies: bool = False) -> str:
        """The head, declared if no rule derives it: it has no rows then. `copies`: it has one more column."""
        derived = (head.name for item in self.items if isinstance(item, ast.Rule) for head in item.heads)
        if name != self.view and name not in derived:
            attributes = [ast.Attribute(f"c{at}", column.declared) for at, column in enumerate(columns)]
            attributes += [ast.Attribute(COPIES, NUMBER)] if copies else []
            self.items.append(ast.Declaration(name, tuple(attributes), functional=copies))
        return name

    def added_up(self, parts: Sequence[str], keys: int, columns: Sequence[OutputColumn], op: str = "sum") -> str:
        """The name of a head that adds up, or compares, what several aggregates say of one key; "" of none.

        The first `keys` of `columns` are the key of each part, which has one column more.
        """
        if len(parts) < 2:
            return parts[0] if parts else ""
        name = self.name("parts")
        for at, part in enumerate(parts):
            key = [self.variable(column.name, column.nullable) for column in columns[:keys]]
            result = self.variable(op, False)
            self.rule(name, [*key, ast.Constant(at, NUMBER), result], [ast.Atom(part, (*key, result))])
        key = [self.variable(column.name, column.nullable) for column in columns[:keys]]
        number, result = self.variable("part", False), self.variable(op, False)
        total = self.name(op)
        self.aggregate(total, op, result, key, [ast.Atom(name, (*key, number, result))])
        return total


def or_null(heads: QueryHeads, terms: Iterable[ast.Term]) -> list[ast.Literal]:
    """The literals that let null match null, for those of the terms that are variables and may be null."""
    names = dict.fromkeys(term for term in terms if isinstance(term, ast.Variable) and heads.nullable.get(term.name))
    return [ast.Comparison(OR_NULL, variable, variable) for variable in names]


def _with_wildcards(rule: ast.Rule) -> ast.Rule:
    """The rule with a wildcard for each variable that stands in it once, in an atom."""
    seen = Counter(node.name for node in nodes((*rule.heads, *rule.body)) if isinstance(node, ast.Variable))

    def literal(node: ast.Literal) -> ast.Literal:
        match node:
            case ast.Atom():
                return replace(node, args=tuple(argument(arg) for arg in node.args))
            case ast.Negation():
                return replace(node, literal=literal(node.literal))
            case ast.Disjunction():
                return replace(node, alternatives=tuple(tuple(map(literal, part)) for part in node.alternatives))
        return node

    def argument(arg: ast.Term) -> ast.Term:
        return ast.Wildcard() if isinstance(arg, ast.Variable) and seen[arg.name] == 1 else arg

    def head(node: ast.Head) -> ast.Head:
        if isinstance(node, ast.Assignment) and isinstance(node.value, ast.Aggregate):
            return replace(node, value=replace(node.value, body=tuple(map(literal, node.value.body))))
        return node

    return replace(rule, heads=tuple(map(head, rule.heads)), body=tuple(map(literal, rule.body)))
