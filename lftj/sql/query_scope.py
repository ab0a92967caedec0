"""What the expressions of one select can see, and the body that its rows come from.

A column that no table of `from` has is looked up in the query around. It becomes a *parameter*: a variable of the
subquery that stands for the value outside. A head of the subquery has its parameters for its first columns, so that one
relation answers for every row outside. An equality with a column inside gives a parameter its values; if there is none,
the values that occur outside do (`domain`).

    select o.id from o where exists (select * from l where l.id = o.id)    @v.rows1(id) :- l(id, _).
                                                                           v(id) :- o(id), @v.rows1(id).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlglot import exp

from lftj.language import ast
from lftj.language.clause import INTERNAL
from lftj.language.diagnostics import did_you_mean
from lftj.language.visitors import Node, nodes
from lftj.sql.branches import Branch, QueryBody, RowAtom, Way, may_be_null, variables
from lftj.sql.cases import FEW, is_null, may_have_no_value, null_case, split
from lftj.sql.catalogue import unlike
from lftj.sql.heads import or_null
from lftj.sql.places import standing_for
from lftj.sql.scope import Case, Conjunction
from lftj.sql.view import OutputColumn, Rows

if TYPE_CHECKING:
    from lftj.sql.places import SqlText
    from lftj.sql.queries import Queries


@dataclass(slots=True)
class FromTable:
    """A table of `from`: its name there, and the cases of its columns in order.

    `shared`: what those columns are by their names alone that stand for others of a join too · `hidden`: those for
    which a column of another table stands, and which `*` leaves out.
    """

    name: str
    columns: dict[str, list[Case]]
    hidden: set[str] = field(default_factory=set)
    shared: dict[str, list[Case]] = field(default_factory=dict)

    def find(self, column: str) -> str | None:
        """The name of a column as it is written, else without regard to case."""
        if column in self.columns:
            return column
        return next((name for name in self.columns if name.casefold() == column.casefold()), None)


class NamedColumn(NamedTuple):
    """A column of a table of `from`."""

    table: FromTable
    name: str

    @property
    def cases(self) -> list[Case]:
        """What it is by its name alone."""
        return self.table.shared.get(self.name, self.table.columns[self.name])


def named(tables: Iterable[FromTable], name: str) -> list[NamedColumn]:
    """The columns that a name alone may mean: if a join shares it, that of the join, whoever else has one."""
    found = [
        NamedColumn(table, own) for table in tables if (own := table.find(name)) is not None and own not in table.hidden
    ]
    return [column for column in found if column.name in column.table.shared] or found


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A value of the query around. `outside`: what it is there · `node`: the column that names it first."""

    variable: ast.Variable
    outside: tuple[Case, ...]
    type: str
    nullable: bool
    node: exp.Column | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Derived:
    """A head of a query. `rows`: its first columns are `parameters`."""

    rows: Rows
    parameters: tuple[QueryParameter, ...] = ()

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The columns that the query gives out."""
        return self.rows.columns[len(self.parameters) :]


class Outside(Protocol):
    """The query around, as a subquery sees it."""

    def found(self, node: exp.Column) -> list[Case] | None:
        """The cases of a column; None if neither this query nor one around it has it."""

    def has(self, node: exp.Column) -> bool:
        """Whether this query, or one around it, has the column."""

    def names(self, node: exp.Column) -> list[str]:
        """The names that the column may have been meant to be."""

    def domain(self, parameters: Sequence[QueryParameter], *, asked: bool = False) -> str:
        """The name of a head with the values of parameters that occur outside.

        They are those of the rows that meet its conditions so far. `asked`: those only that the query around asks for.
        """

    def apart(self, queries: Queries) -> Outside:
        """The same for another translation, which changes nothing here."""


class QueryScope:
    """What the expressions of one select can see."""

    def __init__(self, queries: Queries, around: Outside | None) -> None:
        self.queries = queries
        self.heads = queries.heads
        self.around = around
        self.sources: list[FromTable] = []
        # The first of the tables that names without a table are looked up in, before those to the left of it.
        self.first = 0
        self.body = QueryBody()
        self.parameters: dict[tuple[Case, ...], QueryParameter] = {}
        self.placeholders: dict[str, list[Case]] = {}
        self.subqueries: dict[str, Any] = {}
        self._named: dict[ast.Term, ast.Variable] = {}
        # The heads with the values of parameters that the query around asks for.
        self._asked: dict[tuple[QueryParameter, ...], str] = {}
        # The names that the select gives to expressions, which only `group by`, `order by` and `qualify` know.
        self.aliases: frozenset[str] = frozenset()

    @property
    def source(self) -> SqlText:
        """The text."""
        return self.queries.text

    def apart(self, queries: Queries) -> QueryScope:
        """The same for another translation, which changes nothing here."""
        made = copy(self)
        made.queries, made.heads, made.body = queries, queries.heads, self.body.copy()
        made.around = None if self.around is None else self.around.apart(queries)
        made.parameters, made.placeholders = dict(self.parameters), dict(self.placeholders)
        made.subqueries, made._named, made._asked = {}, dict(self._named), {}
        return made

    # Columns

    def cases(self, node: exp.Column) -> list[Case]:
        """The value of a column; an error if there is none, or several."""
        found = self.found(node)
        if found is not None:
            return found
        if node.table and not self.sees(node.table):
            raise self.source.error(
                f"unknown table `{node.table}`",
                node.args["table"],
                why="no table of `from` has this name",
                remedy=did_you_mean(
                    node.table,
                    [s.name for s in self._all_sources() if s.name],
                    "name it in `from`, or correct the name",
                ),
            )
        if not node.table and self._is_alias(node.name.casefold()):
            raise self.source.unsupported(
                f"`{node.name}`, a name that `select` gives, in another part of the query",
                node,
                "repeat the expression, or put the query into a subquery of `from` or a `with`",
            )
        names = self.names(node)
        listed = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
        otherwise = f"name one of {listed}" if names else "add a `from`"
        raise self.source.error(
            f"unknown column `{node.sql()}`",
            node,
            why="no table of `from` has it",
            remedy=did_you_mean(node.name, names, otherwise),
        )

    def _is_alias(self, name: str) -> bool:
        around = self.around
        return name in self.aliases or (isinstance(around, QueryScope) and around._is_alias(name))

    def found(self, node: exp.Column) -> list[Case] | None:
        """The value of a column of this query, or of those around it."""
        own = self.own(node)
        if own is not None:
            return own
        outside = self.around.found(node) if self.around is not None else None
        return None if outside is None else self.parameter(outside, node.name, node)

    def has(self, node: exp.Column) -> bool:
        """Whether a table of `from` has a column, here or in a query around."""
        return self.own(node) is not None or (self.around is not None and self.around.has(node))

    def own(self, node: exp.Column) -> list[Case] | None:
        """The value of a column of a table of `from`."""
        if node.name in self.placeholders:
            return self.placeholders[node.name]
        if node.table:
            having = [
                (source, name)
                for source in self.sources
                if self._is_named(source, node.table) and (name := source.find(node.name)) is not None
            ]
            return having[0][0].columns[having[0][1]] if having else None
        found = named(self.sources[self.first :], node.name) or named(self.sources[: self.first], node.name)
        if len(found) > 1:
            first, second = (column.table.name or "a subquery" for column in found[:2])
            raise self.source.error(
                f"ambiguous column `{node.sql()}`",
                node,
                why=f"`{first}` and `{second}` both have it",
                remedy=f"say which is meant, as in `{found[0].table.name or 't'}.{node.name}`",
            )
        return found[0].cases if found else None

    @contextmanager
    def joining(self, first: int) -> Iterator[None]:
        """Look names up in the tables of a join, `first` and those behind it, before those in front of a comma."""
        before, self.first = self.first, first
        try:
            yield
        finally:
            self.first = before

    @staticmethod
    def _is_named(source: FromTable, name: str) -> bool:
        return source.name.casefold() == name.casefold()

    def sees(self, table: str) -> bool:
        """Whether a table has a name, here or in a query around."""
        return any(self._is_named(source, table) for source in self._all_sources())

    def _all_sources(self) -> list[FromTable]:
        around = self.around
        return [*self.sources, *(around._all_sources() if isinstance(around, QueryScope) else ())]

    def names(self, node: exp.Column) -> list[str]:
        """The names that a column may have been meant to be."""
        own = [n for s in self.sources if not node.table or self._is_named(s, node.table) for n in s.columns]
        return own or (self.around.names(node) if self.around is not None else [])

    def parameter(self, outside: list[Case], name: str, node: exp.Column | None = None) -> list[Case]:
        """The parameter that stands for a value of the query around, as `node` names it; null for one that is null."""
        key = tuple(outside)
        made = self.parameters.get(key)
        type_ = next((case.type for case in outside if case.type), "")
        if all(case.term is None for case in outside):
            return [null_case((), type_)]
        if made is None:
            nullable = any(case.nullable for case in outside)
            variable = self.heads.variable(name, nullable)
            made = self.parameters[key] = QueryParameter(variable, key, type_, nullable, node)
        return [Case((), made.variable, made.type, made.nullable)]

    def placeholder(self, cases: list[Case], of: exp.Expr) -> exp.Column:
        """A column that stands for the value `of` an expression that is already translated."""
        name = f"{INTERNAL}{len(self.placeholders)}"
        self.placeholders[name] = cases
        return standing_for(of, exp.Column(this=exp.Identifier(this=name, quoted=True)))

    # Names and relations

    def named(self, term: ast.Term) -> ast.Variable:
        """The variable that stands for a term, the same each time."""
        if term not in self._named:
            self._named[term] = self.heads.variable_for(term)
        return self._named[term]

    def constants(self, values: Sequence[ast.Constant], type_: str) -> str:
        """The name of a relation with one column whose rows are these values."""
        return self.heads.constants(values)

    def computed_apart(self, values: list[list[Case]]) -> list[list[Case]]:
        """Values of many cases in an expression, each of one that a head has; as they are, where none can have them."""
        return self.queries.computed_apart(self, values)

    def scalar_subquery(self, node: exp.Subquery) -> list[Case]:
        """The value of `(select ...)` as an expression."""
        return self.queries.scalar_subquery(self, node)

    def subquery(self, node: exp.Expr, truth: bool) -> list[Conjunction]:
        """Where a predicate over a subquery is true or, if not `truth`, false."""
        return self.queries.predicate(self, node, truth)

    def by_case(self, node: exp.Expr) -> list[tuple[Conjunction, exp.Expr]]:
        """A predicate over a subquery for each case of the value that it compares, and where that is the value."""
        return self.queries.by_case(self, node)

    # Rules

    def closed(self, branch: Branch, terms: Iterable[ast.Term]) -> Branch:
        """The branch with a domain for the parameters that it uses, or `terms` do, and that nothing in it binds.

        Those that it binds are in the domain too, where they are one column there: a row inside then meets the rows
        outside that it can belong to, and not the values of all of them. What may have no value, as a cast of a text,
        is computed for values only that the query around asks for.
        """
        terms = list(terms)
        if any(map(_may_fail, nodes((*branch.literals, *terms)))) and self._has_domain:
            return self.asked_for([(branch, ())])[0][0]
        used = set().union(*(variables(term) for term in terms), *(_named(literal) for literal in branch.literals))
        free = {p.variable.name for p in self.parameters.values() if p.variable.name in used} - branch.bound()
        if not free:
            return branch
        assert self.around is not None
        asked = [
            p
            for p in self.parameters.values()
            if p.variable.name in free or (p.variable.name in used | branch.renamed.keys() and len(p.outside) == 1)
        ]
        return self._among(branch, self.around.domain(asked), asked)

    def _among(self, branch: Branch, domain: str, parameters: Sequence[QueryParameter]) -> Branch:
        """The branch for values of parameters that a domain has."""
        args = tuple(branch.term(p.variable) for p in parameters)
        nulls = or_null(self.heads, [arg for arg in args if may_be_null(arg, branch, self.heads.nullable)])
        return branch.with_literals(ast.Atom(domain, args), *nulls)

    def asked_for(self, made: Iterable[tuple[Branch, Way]]) -> list[tuple[Branch, Way]]:
        """The branches for the values only that the parameters have in the query around: for no others is it asked.

        As they are, while a head is not whole yet that the query around may read.
        """
        if not self._has_domain:
            return list(made)
        assert self.around is not None
        parameters = tuple(self.parameters.values())
        if parameters not in self._asked:
            self._asked[parameters] = self.around.domain(parameters, asked=True)
        name = self._asked[parameters]
        return [(self._among(branch, name, parameters), way) for branch, way in made]

    @property
    def _has_domain(self) -> bool:
        """Whether there are values of parameters that the query around asks for, and these can be known."""
        return bool(self.parameters) and not self.heads.recursive

    def domain(self, parameters: Sequence[QueryParameter], *, asked: bool = False) -> str:
        """The name of a head with the values that parameters of a subquery have in the rows of this query.

        Conditions leave rows out, but for those of several alternatives if they would make many rules. `asked`: those
        only that the query around asks for.
        """
        outside = [p.outside for p in parameters]
        body = self.body.copy()
        if body.splits(self.heads.nullable, outside, FEW):
            body.conditions = [part for part in body.conditions if len(part) == 1]
        name = self.heads.name("values")
        made = body.choices(self.heads.nullable, outside)
        for branch, chosen in self.asked_for(made) if asked else made:
            terms = [null_of(case) if case.term is None else branch.term(case.term) for case in chosen]
            self.heads.rule(name, terms, self.closed(branch, terms).body)
        return self.heads.sure(name, [OutputColumn(p.variable.name, p.type, p.nullable) for p in parameters])

    def add(self, derived: Derived, name: str, columns: Sequence[str] = ()) -> FromTable:
        """Add a relation to the body; the table that it is in `from`, under other names of its `columns`."""
        made = []
        for parameter in derived.parameters:
            case = parameter.outside[0]
            if len(parameter.outside) == 1 and isinstance(case.term, ast.Variable) and not case.literals:
                made.append(case.term)
                self.body.conditions.append([tuple(or_null(self.heads, [case.term]))])
                continue
            made.append(self.heads.variable(parameter.variable.name, parameter.nullable))
            self.body.conditions.append(
                [  # null equals nothing, so that it is said of both
                    (*c.literals, ast.Comparison("=", made[-1], c.term) if c.term is not None else is_null(made[-1]))
                    for case in parameter.outside
                    for c in split(case)
                ]
            )
        given = [self.heads.variable(column.name, column.nullable) for column in derived.columns]
        copies = self.heads.variable("copies", False) if derived.rows.bag else None
        self.body.atoms.append(RowAtom(derived.rows, (*made, *given), copies))
        source = FromTable(name, {})
        for at, (variable, column) in enumerate(zip(given, derived.columns, strict=True)):
            called = columns[at] if at < len(columns) else column.name
            source.columns[unlike(called, source.columns)] = [case_of(variable, column)]
        return source


class Beside:
    """What a subquery in `from` sees: not the tables beside it, but the query around these."""

    def __init__(self, scope: QueryScope) -> None:
        self.scope = scope

    def found(self, node: exp.Column) -> list[Case] | None:
        """The value of a column of the query around."""
        around = self.scope.around
        outside = around.found(node) if around is not None else None
        return None if outside is None else self.scope.parameter(outside, node.name, node)

    def has(self, node: exp.Column) -> bool:
        """Whether a query around has a column."""
        return self.scope.around is not None and self.scope.around.has(node)

    def names(self, node: exp.Column) -> list[str]:
        """The names that a column may have been meant to be."""
        return self.scope.around.names(node) if self.scope.around is not None else []

    def domain(self, parameters: Sequence[QueryParameter], *, asked: bool = False) -> str:
        """The values of parameters of the scope, as the query around has them."""
        own = {p.variable: p for p in self.scope.parameters.values()}
        terms = [case.term for p in parameters for case in p.outside]
        assert self.scope.around is not None
        return self.scope.around.domain([own[term] for term in terms if isinstance(term, ast.Variable)], asked=asked)

    def apart(self, queries: Queries) -> Beside:
        """The same for another translation, which changes nothing here."""
        return Beside(self.scope.apart(queries))


def aliases_of(select: exp.Select) -> frozenset[str]:
    """The names that a select gives to expressions, but for those in which the name is that of a column."""
    return frozenset(
        node.alias.casefold()
        for node in select.expressions
        if isinstance(node, exp.Alias)
        and all(column.name.casefold() != node.alias.casefold() for column in node.find_all(exp.Column))
    )


def case_of(variable: ast.Variable, column: OutputColumn, literals: Conjunction = ()) -> Case:
    """The value of a column of a head that `variable` is bound to, where `literals` hold."""
    if column.untyped:
        return null_case(literals)
    return Case(literals, variable, column.type, column.nullable)


def null_of(case: Case) -> ast.Constant:
    """Null, of the type of a case."""
    return ast.Constant(None, case.type)


def _may_fail(node: Node) -> bool:
    """Whether a term may have no value, or a test, for another reason than that a number is too large."""
    return may_have_no_value(node) and not (isinstance(node, ast.Functor) and node.name in _ARITHMETIC)


# Most subqueries compute with these, and few leave 64 bits: their heads need not follow the query around for it.
_ARITHMETIC = frozenset({"+", "-", "*", "checked_add", "checked_mul"})


def _named(literal: ast.Literal) -> set[str]:
    return {node.name for node in nodes((literal,)) if isinstance(node, ast.Variable)}
