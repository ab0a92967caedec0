"""Rules as SQL: the query of each, made of the plain evaluator's reading of the program's text.

A conjunction is a SELECT: an atom is an entry of FROM with an alias of its own, a test a condition, an equality that
binds a variable the expression that stands for it. A negated conjunction is a NOT EXISTS and an aggregate a subquery,
both correlated by the variables that they share with what is around them. A disjunction is multiplied out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count, product

from tests.fuzz.sql_terms import Sql, Untranslated, applied, cast, constant, folded
from tests.plain.syntax import (
    NULL_TESTS,
    Agg,
    Apply,
    Atom,
    Cmp,
    Conj,
    Const,
    Literal,
    Not,
    Or,
    Program,
    Rule,
    Term,
    Var,
    Wild,
    all_names,
    names_in,
    nested_in,
)

# Longer ones take DuckDB seconds to plan.
LONGEST = 60_000
Bound = dict[str, Sql]


def columns_of(program: Program, name: str) -> tuple[str, ...]:
    """The types of a relation's columns; one without columns has a column that is always 1."""
    if name not in program.kinds:
        raise Untranslated("relations without a declaration")
    return program.kinds[name] or ("number",)


def query_of(program: Program, rule: Rule) -> str:
    """The rows of a rule."""
    found = _Translator(program).rule(rule)
    if len(found) > LONGEST:
        raise Untranslated("rules whose SQL is too long")
    return found


@dataclass
class _Select:
    """A conjunction: `bound` its variables, those from around it too."""

    bound: Bound
    sources: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    def text(self, columns: str) -> str:
        sources = f" FROM {', '.join(self.sources)}" if self.sources else ""
        conditions = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT {columns}{sources}{conditions}"


class _Translator:
    def __init__(self, program: Program) -> None:
        self.program, self.aliases = program, count()

    def rule(self, rule: Rule) -> str:
        kinds = columns_of(self.program, rule.head.name)
        *keys, last = rule.head.args or (Const(1),)
        if isinstance(last, Agg) and not rule.body:
            return self.by_keys(keys, last, kinds)
        queries = []
        for body in alternatives(rule.body):
            found = self.select(body, {})
            cells = [cast(self.term(arg, found.bound), kind) for arg, kind in zip((*keys, last), kinds, strict=True)]
            queries.append(found.text(", ".join(f"{cell.text} AS c{i}" for i, cell in enumerate(cells))))
        return _without_null(" UNION ".join(queries), len(kinds))

    def by_keys(self, keys: list[Term], fold: Agg, kinds: tuple[str, ...]) -> str:
        """`f[keys] = aggregate : { body }`: a row per group of the keys' variables.

        Without variables the one group is there, empty or not.
        """
        names = sorted(set().union(*map(names_in, keys)))
        inner, kind = self.bindings(fold, {}, [*keys, *map(Var, names)])
        found = [f"any_value(k{i})" if names_in(key) else self.term(key, {}).text for i, key in enumerate(keys)]
        cells = ", ".join(
            f"{text} AS c{i}" for i, text in enumerate((*found, cast(folded(fold.op, kind), kinds[-1]).text))
        )
        group = f" GROUP BY {', '.join(f'k{len(keys) + i}' for i in range(len(names)))}" if names else ""
        return _without_null(f"SELECT {cells} FROM ({inner}) t{next(self.aliases)}{group}", len(kinds))

    def bindings(self, fold: Agg, around: Bound, keys: list[Term]) -> tuple[str, str]:
        """A query with a row per binding of an aggregate: its operand `v`, the keys; and the type of `v`."""
        if fold.operand is not None and nested_in(fold.operand):
            raise Untranslated("aggregates of a term with an aggregate")
        queries, kinds = [], set()
        several = alternatives(fold.body)
        named = {name for literal in fold.body for name in all_names(literal) if not name.startswith("=")}
        names = sorted(named) if len(several) > 1 else []
        for body in several:
            found = self.select(body, around)
            operand = Sql("1", "number") if fold.operand is None else self.term(fold.operand, found.bound)
            kinds.add(operand.kind)
            cells = [f"{operand.text} AS v", *(f"{self.term(k, found.bound).text} AS k{i}" for i, k in enumerate(keys))]
            # Of several, a binding that two of them have counts once.
            cells += [f"{found.bound[n].text if n in found.bound else 'NULL'} AS n{i}" for i, n in enumerate(names)]
            queries.append(found.text(", ".join(cells)))
        if len(kinds) > 1:
            raise Untranslated("alternatives of different types")
        return " UNION ".join(queries), kinds.pop()

    def select(self, body: Conj, around: Bound) -> _Select:
        """A conjunction without disjunctions."""
        found = _Select(dict(around))
        for atom in body:
            if isinstance(atom, Atom):
                self.atom(atom, found)
        rest = [literal for literal in body if not isinstance(literal, Atom)]
        while rest:
            left = [literal for literal in rest if not self.taken(literal, found)]
            if len(left) == len(rest):
                raise Untranslated("rules with a variable that nothing binds")
            rest = left
        return found

    def atom(self, atom: Atom, found: _Select) -> None:
        alias, kinds = f"t{next(self.aliases)}", columns_of(self.program, atom.name)
        found.sources.append(f"{atom.name} {alias}")
        for i, arg in enumerate(atom.args):
            column = Sql(f"{alias}.c{i}", kinds[i])
            if isinstance(arg, Var) and arg.name not in found.bound:
                found.bound[arg.name] = column
            elif not isinstance(arg, Wild):
                found.conditions.append(f"{column.text} = {self.term(arg, found.bound).text}")

    def taken(self, literal: Literal, found: _Select) -> bool:
        """Whether a test, or an equality that binds, could be added: its other variables are bound."""
        if isinstance(literal, Not):
            if not literal.outer <= found.bound.keys():
                return False
            (only, *more) = literal.body
            if isinstance(only, Cmp) and not more:  # the opposite: not of what has no value
                found.conditions.append(f"NOT ({self.test(only, found.bound)})")
                return True
            around = {name: found.bound[name] for name in literal.outer}
            found.conditions += [
                f"NOT EXISTS ({self.select(body, around).text('1')})" for body in alternatives(literal.body)
            ]
            return True
        assert isinstance(literal, Cmp)
        left, right = (is_known(term, found.bound) for term in (literal.left, literal.right))
        if left and right:
            found.conditions.append(self.test(literal, found.bound))
            return True
        var, term = (literal.left, literal.right) if right else (literal.right, literal.left)
        if not (left or right) or literal.op != "=" or not isinstance(var, Var):
            return False
        value = self.term(term, found.bound)
        found.bound[var.name] = value
        if nested_in(term):
            found.conditions.append(f"{value.text} IS NOT NULL")
        return True

    def test(self, compare: Cmp, bound: Bound) -> str:
        if compare.op in NULL_TESTS:
            raise Untranslated("tests for null")  # SQL takes what has no value for null
        left, right = self.term(compare.left, bound).text, self.term(compare.right, bound).text
        if compare.op == "contains":
            return f"contains({right}, {left})"
        if compare.op == "match":
            if not isinstance(compare.left, Const):
                raise Untranslated("patterns that are computed")
            return f"regexp_full_match({right}, {left})"
        return f"{left} {'<>' if compare.op == '!=' else compare.op} {right}"

    def term(self, term: Term, bound: Mapping[str, Sql]) -> Sql:
        if isinstance(term, Var):
            return bound[term.name]
        if isinstance(term, Const):
            return constant(term.value)
        if isinstance(term, Apply):
            return applied(term, [self.term(arg, bound) for arg in term.args])
        assert isinstance(term, Agg)
        inner, kind = self.bindings(term, {name: bound[name] for name in term.outer}, [])
        value = folded(term.op, kind)
        return Sql(f"(SELECT {value.text} FROM ({inner}) t{next(self.aliases)})", value.kind)


def is_known(term: Term, bound: Mapping[str, Sql]) -> bool:
    """Whether the variables of a term are bound."""
    if isinstance(term, Apply):
        return all(is_known(arg, bound) for arg in term.args)
    if isinstance(term, Agg):
        return term.outer <= bound.keys()
    return not isinstance(term, Var) or term.name in bound


def alternatives(body: Conj) -> list[Conj]:
    """The conjunctions without disjunctions of which one has to hold."""
    return [tuple(x for part in chosen for x in part) for chosen in product(*map(_ways, body))]


def _ways(literal: Literal) -> list[Conj]:
    if not isinstance(literal, Or):
        return [(literal,)]
    return [way for alternative in literal.alternatives for way in alternatives(alternative)]


def _without_null(query: str, columns: int) -> str:
    """The rows whose terms all have values."""
    return f"SELECT DISTINCT * FROM ({query}) q WHERE {' AND '.join(f'c{i} IS NOT NULL' for i in range(columns))}"
