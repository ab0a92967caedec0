"""Groups: a select with `group by` or aggregates, as a query over the heads of its aggregates.

    select k, sum(x), count(*) from t where x > 0 group by k having count(*) > 1

    @v.sum1[k]   = sum x : { t(k, x), x > 0 }.
    @v.count2[k] = count : { t(k, x), x > 0 }.
    v(k, s, n)  :- @v.sum1(k, s), @v.count2(k, n), n > 1, or_null(k).

Each aggregate is a head of its own over the same body (`aggregate_heads.py`), keyed by the groups; null is a group
like any other. What stands behind `having`, and what is given out, sees the groups and aggregates instead of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import NUMBER
from lftj.sql.aggregate_heads import AggregateHeads, KeyedBranch, is_aggregate
from lftj.sql.branches import RowAtom, may_be_null
from lftj.sql.computed_columns import with_few_ways
from lftj.sql.heads import or_null
from lftj.sql.ordering import position_of
from lftj.sql.places import in_place_of
from lftj.sql.query_scope import QueryScope, case_of, null_of
from lftj.sql.scope import Case, Conjunction
from lftj.sql.sql_expressions import conjuncts, holds, value
from lftj.sql.view import OutputColumn, Rows

Columns = Sequence[tuple[str, exp.Expr, list[Case] | None]]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One expression of `group by`. `variable`: what stands for it over the groups · `type`: "" of null without one."""

    node: exp.Expr
    cases: list[Case]
    variable: ast.Variable
    type: str


def is_grouped(select: exp.Select) -> bool:
    """Whether a select has a row for each group, rather than for each row that it reads."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    parts = [*select.expressions, select.args.get("order")]
    return any(is_aggregate(node) for part in parts if part is not None for node in own_nodes(part))


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression that belong to its query, not to one within."""
    return node.walk(prune=lambda part: part is not node and isinstance(part, exp.Query))


def stands_for_rows(node: exp.Expr) -> bool:
    """Whether a node is a query whose rows are asked for, as by `exists` and `in`, and not one value."""
    if not isinstance(node, exp.Query):
        return False
    return not isinstance(node, exp.Subquery) or node.arg_key == "query" or isinstance(node.parent, exp.Any | exp.All)


class GroupScope(QueryScope):
    """What expressions over groups see: the groups and the aggregates, instead of the rows of `from`."""

    def __init__(self, rows: QueryScope) -> None:
        super().__init__(rows.queries, rows.around)
        self.rows = rows
        self.keys: list[GroupKey] = []
        self.sources = rows.sources
        self.parameters = rows.parameters
        self.aliases = rows.aliases

    def has(self, node: exp.Column) -> bool:
        """Whether a table has a column, grouped or not."""
        return node.name in self.placeholders or self.rows.has(node)

    def own(self, node: exp.Column) -> list[Case] | None:
        """The group that a column is, or a placeholder."""
        if node.name in self.placeholders:
            return self.placeholders[node.name]
        cases = self.rows.own(node)
        if cases is None:
            return None
        for key in self.keys:
            if key.cases == cases:
                return _as_case(self, key)
        raise self.source.error(
            f"`{node.sql('duckdb')}` is neither grouped nor aggregated",
            node,
            why="a group has several rows, each with its own value of the column",
            remedy=f"add it to `group by`, or take an aggregate, as `max({node.name})`",
        )


def _as_case(scope: QueryScope, key: GroupKey) -> list[Case]:
    column = OutputColumn(key.variable.name, key.type, scope.heads.nullable[key.variable.name], untyped=not key.type)
    return [case_of(key.variable, column)]


class Grouping:
    """The groups of a select, and the scope that sees them."""

    def __init__(self, rows: QueryScope, select: exp.Select, columns: Columns, *, scalar: bool = False) -> None:
        self.rows = rows
        self.heads = rows.heads
        self.scope = GroupScope(rows)
        self.aggregates = AggregateHeads(self)
        self._replaced: dict[str, exp.Column] = {}
        self.having = select.args.get("having")
        order = select.args.get("order")
        every = [node for _, node, _ in columns] + [part for part in (self.having, order) if part is not None]
        found = [(node, value(node, rows)) for node in self._grouped_by(select, columns)]
        for node in every:
            for part in own_nodes(node):
                if is_aggregate(part) and not is_aggregate(part.parent or node):
                    self.aggregates.read(part)
        # What the aggregates and the groups name of the query around; what is over the groups may name more.
        self.parameters = tuple(rows.parameters.values())
        self.single = select.args.get("group") is None
        self.always = self.single and not self.parameters
        self.by_domain = self.single and bool(self.parameters) and not scalar
        # Of a value with one aggregate, what it is where nothing contributes is what it is of no rows.
        self.partial = scalar and self.single and len(self.aggregates.written) == 1 and self.having is None
        beside = [*self.aggregates.parts(), *(p.variable for p in self.parameters)]
        self._keys = with_few_ways(rows, [cases for _, cases in found], beside)
        choices = self.choices()
        for at, (node, cases) in enumerate(found):
            nullable = any(may_be_null(choice.keys[at], choice.branch, self.heads.nullable) for choice in choices)
            variable = self.heads.variable(node.alias_or_name or "key", nullable)
            type_ = next((case.type for case in cases if case.type), "")
            self.scope.keys.append(GroupKey(node, cases, variable, type_))
        self.variables = (*(p.variable for p in self.parameters), *(key.variable for key in self.scope.keys))
        types = (*(p.type for p in self.parameters), *(key.type for key in self.scope.keys))
        self.columns = tuple(
            OutputColumn(v.name, t or NUMBER, self.heads.nullable[v.name], untyped=not t)
            for v, t in zip(self.variables, types, strict=True)
        )
        for node in every:
            self.replaced(node)
        if not self.scope.body.atoms and not self.always:
            self._add_groups(choices)
        if self.having is not None:
            for part in conjuncts(self.having.this):
                self.scope.body.conditions.append(holds(self.replaced(part), self.scope))

    def group(self, key: Sequence[ast.Term]) -> list[ast.Literal]:
        """The literals that say that there is a group."""
        if self.always:
            return []
        if self.by_domain:
            assert self.rows.around is not None
            return [ast.Atom(self.rows.around.domain(self.parameters), tuple(key))]
        name = self.aggregates.rows_of_groups() or self.heads.sure(self.heads.name("groups"), self.columns, copies=True)
        return [ast.Atom(name, (*key, ast.Wildcard()))]

    def choices(self, *more: Sequence[Conjunction], of: Sequence[ast.Term] = ()) -> list[KeyedBranch]:
        """The rows by their groups: branches of the body with more conditions, and the terms of the key in each.

        `of`: what is computed in them.
        """
        own = [p.variable for p in self.parameters]
        found = []
        for branch, chosen in self.rows.body.choices(self.heads.nullable, self._keys, *more):
            outside = tuple(branch.term(variable) for variable in own)
            terms = tuple(null_of(case) if case.term is None else branch.term(case.term) for case in chosen)
            asked = (*outside, *terms, *map(branch.term, of))
            found.append(KeyedBranch(self.rows.closed(branch, asked), outside, terms))
        return found

    def _grouped_by(self, select: exp.Select, columns: Columns) -> list[exp.Expr]:
        """The expressions of `group by`: written there, or named by a position or an alias."""
        group = select.args.get("group")
        if group is None:
            return []
        source = self.rows.source
        for name in ("grouping_sets", "cube", "rollup", "totals"):
            if group.args.get(name):
                raise source.unsupported(f"`{name.replace('_', ' ')}`", group, "write a `union all` of groupings")
        if group.args.get("all"):
            return [node for _, node, _ in columns if not any(map(is_aggregate, own_nodes(node)))]
        found = []
        for node in group.expressions:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise source.unsupported(f"`{node.key}`", node, "write a `union all` of groupings")
            at = position_of(node, len(columns), source)
            if at is not None:
                node = columns[at][1]
            elif isinstance(node, exp.Column) and not node.table and self.rows.own(node) is None:
                node = next((part for name, part, _ in columns if name.casefold() == node.name.casefold()), node)
            if isinstance(node, exp.Paren):
                node = node.unnest()
            found += node.expressions if isinstance(node, exp.Tuple) else [node]
        return found

    def _add_groups(self, choices: Sequence[KeyedBranch]) -> None:
        """Add the head with the groups, where no aggregate has them."""
        name = self.heads.name("groups")
        if self.by_domain:
            self.heads.rule(name, self.variables, self.group(self.variables))
        else:
            for choice in choices:
                self.heads.rule(name, choice.terms, choice.branch.body)
        self.add(Rows.of(self.heads.sure(name, self.columns), self.columns, bag=False), self.variables)

    def add(self, rows: Rows, variables: Sequence[ast.Variable]) -> None:
        """Add a head that is keyed by the groups to what is over them."""
        body = self.scope.body
        body.atoms.append(RowAtom(rows, tuple(variables), leaves_none_out=bool(body.atoms)))
        if not body.conditions:
            body.conditions.append([tuple(or_null(self.heads, self.variables))])

    def _alike(self, one: exp.Expr, two: exp.Expr) -> bool:
        """Whether two expressions are one but for how they name columns: `a + 1` is `T.A + 1`."""
        waiting: list[tuple[Any, Any]] = [(one, two)]
        while waiting:
            left, right = waiting.pop()
            if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
                waiting += zip(left, right, strict=True)
            elif not isinstance(left, exp.Expr) or type(left) is not type(right) or isinstance(left, exp.Query):
                if left != right and (left or right):
                    return False
            elif isinstance(left, exp.Column):
                known = self.rows.own(left)
                if left != right and (known is None or known != self.rows.own(cast(exp.Column, right))):
                    return False
            else:
                waiting += ((left.args.get(name), right.args.get(name)) for name in {**left.args, **right.args})
        return True

    def replaced(self, node: exp.Expr) -> exp.Expr:
        """An expression with placeholders for its aggregates and for what `group by` has."""

        def place(part: exp.Expr) -> exp.Expr | None:
            for key in self.scope.keys:
                if not isinstance(part, exp.Column) and (part == key.node or self._alike(part, key.node)):
                    return self.scope.placeholder(_as_case(self.scope, key), part)
            if is_aggregate(part):
                text = part.sql("duckdb")
                if text not in self._replaced:
                    self._replaced[text] = self.scope.placeholder([self.aggregates.add(part)], part)
                return in_place_of(part, self._replaced[text].copy())
            return None

        found = place(node)
        if found is not None:
            return found
        made = node.copy()
        waiting = [made]
        while waiting:
            part = waiting.pop()
            for child in list(part.iter_expressions()):
                found = None if stands_for_rows(child) else place(child)
                if found is not None:
                    child.replace(found)
                elif not isinstance(child, exp.Query):
                    waiting.append(child)
        return made
