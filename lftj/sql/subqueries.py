"""Subqueries in expressions, as atoms over their heads.

    exists (select ...)          @v.rows1(p)                      not exists: !@v.rows1(p)
    x in (select y ...)          @v.rows1(p, x)                   not in: !@v.rows1(p, x), and no null is there,
                                                                  or x is null and there is no row
    x < all (select y ...)       @v.min1(p, m), x < m             or there is no row
    (select max(y) ...)          @v.rows1(p, m)                   else null, or what the expression is of no rows

p are the values of the query around that the subquery names (`query_scope.py`). null equals nothing there either, but
for a parameter that no equality binds, whose values are those of the rows around, null among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from sqlglot import exp

from lftj.language import ast
from lftj.language.visitors import lets_null_match, nodes
from lftj.sql.aggregate_heads import is_aggregate
from lftj.sql.branches import Branch, RowAtom, renamed
from lftj.sql.cases import Known, is_null, not_null, null_case, products
from lftj.sql.conversions import alike, common
from lftj.sql.grouping import is_grouped, own_nodes
from lftj.sql.limits import limited
from lftj.sql.ordering import ordering_of
from lftj.sql.places import in_place_of
from lftj.sql.query_scope import Derived, QueryScope, case_of
from lftj.sql.scope import Case, Conjunction
from lftj.sql.semi_joins import negative, positive
from lftj.sql.sql_expressions import Expressions, holds, value
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.windowed_select import has_windows

_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


# exists, in, any, all


def predicate(scope: QueryScope, node: exp.Expr, truth: bool) -> list[Conjunction]:
    """Where a predicate over a subquery is true or, if not `truth`, false."""
    if isinstance(node, exp.Exists):
        derived = _derived(scope, node.this, exists=True)
        return positive(scope, derived, _some(derived)) if truth else negative(scope, derived)
    if isinstance(node, exp.In):
        return _in(scope, node.this, node.args["query"], truth)
    left, right, op = node.this, node.expression, type(node)
    if isinstance(left, exp.Any | exp.All):
        left, right, op = right, left, _MIRRORED[op]
    query, every = right.this, isinstance(right, exp.All)
    if not truth:
        op, every = _NEGATED[op], not every
    if op is exp.EQ and not every:
        return _in(scope, left, query, True)
    if op is exp.NEQ and every:
        return _in(scope, left, query, False)
    return _all(scope, left, op, query) if every else _any(scope, left, op, query)


def by_case(scope: QueryScope, node: exp.Expr) -> list[tuple[Conjunction, exp.Expr]]:
    """A predicate over a subquery for each case of the value that it compares, and where that is the value."""
    name = "expression" if isinstance(node.this, exp.Any | exp.All) else "this"
    left = node.args[name]
    cases = [] if isinstance(left, exp.Tuple) else value(left, scope)
    if len(cases) < 2:
        return [((), node)]
    found = []
    for case in cases:
        part = in_place_of(node, node.copy())
        part.set(name, scope.placeholder([replace(case, literals=())], left))
        found.append((case.literals, part))
    return found


def _some(derived: Derived) -> list[ast.Term]:
    return [ast.Wildcard()] * (len(derived.columns) + derived.rows.bag)


def _derived(scope: QueryScope, query: exp.Expr, *, exists: bool = False) -> Derived:
    """The distinct rows of a subquery; made once for equal texts."""
    key = f"{'exists' if exists else 'rows'} {query.sql('duckdb')}"
    if key not in scope.subqueries:
        scope.subqueries[key] = (
            scope.queries.some(query, scope) if exists else scope.queries.rows_of(query, scope, distinct=True)
        )
    found: Derived = scope.subqueries[key]
    return found


def _values(scope: QueryScope, derived: Derived) -> list[ast.Variable]:
    return [scope.heads.variable(column.name, column.nullable) for column in derived.columns]


def _equal(scope: QueryScope, left: exp.Expr, derived: Derived, found: list[ast.Variable]) -> exp.Expr:
    """The predicate that the values on the left are those of a row."""
    parts = left.expressions if isinstance(left, exp.Tuple) else [left]
    if len(parts) != len(derived.columns):
        raise scope.source.error(
            f"{len(parts)} values against a subquery with {len(derived.columns)} columns",
            left,
            why="a value of each column is compared",
            remedy="let the subquery give out as many columns as stand on the left",
        )
    equal: exp.Expr | None = None
    for part, variable, column in zip(parts, found, derived.columns, strict=True):
        place = scope.placeholder([case_of(variable, column)], exp.column(column.name))
        one = in_place_of(left.parent or left, exp.EQ(this=part.copy(), expression=place))
        equal = one if equal is None else exp.And(this=equal, expression=one)
    assert equal is not None
    return equal


def _in(scope: QueryScope, left: exp.Expr, query: exp.Expr, truth: bool) -> list[Conjunction]:
    """`x in (select y ...)`, or `x not in ...` if not `truth`."""
    derived = _of_type(scope, left, query, _derived(scope, query))
    key = f"in {left.sql('duckdb')} {query.sql('duckdb')}"
    if key not in scope.subqueries:
        found = _values(scope, derived)
        scope.subqueries[key] = found, holds(_equal(scope, left, derived, found), scope)
    found, equal = scope.subqueries[key]
    atoms = positive(scope, derived, found)
    if truth:
        return products([equal, atoms])
    nullable = any(column.nullable for column in derived.columns)
    parts = left.expressions if isinstance(left, exp.Tuple) else [left]
    cases = [value(part, scope) for part in parts]
    if len(parts) > 1 and (nullable or any(case.nullable for part in cases for case in part)):
        raise _of_several_columns(scope, left)
    no_null = [negative(scope, _nulls(scope, derived, query), ())] if nullable else []
    result = []
    for chosen in product(*([case for case in of_part if case.term is not None] for of_part in cases)):
        # What is not there is the value of these cases; those of others need have none in this row.
        places = [
            scope.placeholder([replace(case, literals=())], part) for case, part in zip(chosen, parts, strict=True)
        ]
        lacking: dict[ast.Literal, None] = {}
        for conjunction in products(
            [holds(_equal(scope, exp.Tuple(expressions=places), derived, found), scope), atoms]
        ):
            within = [part for part in conjunction if _names(part, found)]
            marks = filter(lets_null_match, conjunction)
            lacking |= dict.fromkeys([*marks, ast.Negation(_shortened(within, found))])
        known = tuple(part for case in chosen for part in (*case.literals, *_known(case)))
        result += products([[known], [tuple(lacking)], *no_null])
    if len(parts) > 1:
        return result
    nulls = [
        (*case.literals, *([is_null(case.term)] if case.term is not None else [])) for case in cases[0] if case.nullable
    ]
    return result + products([nulls, negative(scope, derived)]) if nulls else result


def _of_several_columns(scope: QueryScope, left: exp.Expr) -> Exception:
    """The error to raise where it matters that `in` of several columns is unknown for null in one of them."""
    node = left.parent
    negated = isinstance(node, exp.NEQ) or (isinstance(node, exp.In) and isinstance(node.parent, exp.Not))
    words = ("not in", "in") if isinstance(node, exp.In) else ("<> all", "= any")
    what = f"`{words[not negated]}` of several columns that may be null"
    return scope.source.unsupported(
        what if negated else f"{what}, where it is not true", left, f"use `{'not ' * negated}exists`"
    )


def _of_type(scope: QueryScope, left: exp.Expr, query: exp.Expr, derived: Derived) -> Derived:
    """The head of a subquery, with values of the type in which they meet the one on the left."""
    if isinstance(left, exp.Tuple) or len(derived.columns) != 1:
        return derived
    *before, last = columns = [scope.heads.variable(c.name, c.nullable) for c in derived.rows.columns]
    given, own = derived.rows.columns[-1], [(case.term, case.type) for case in value(left, scope)]
    wanted = common([*own, (last, "" if given.untyped else given.type)], left, scope.source) or given.type
    if alike(given.type, wanted):
        return derived if not given.untyped else _with_last(derived, replace(given, untyped=False))
    key = f"{wanted} {query.sql('duckdb')}"
    if key not in scope.subqueries:
        name, atom = scope.heads.name("cast"), ast.Atom(derived.rows.name, tuple(columns))
        if not given.untyped:
            made = Expressions(scope).cast(Known((), last, given.type), wanted, left)
            scope.heads.rule(name, [*before, made], [atom])
        if given.nullable:
            scope.heads.rule(name, [*before, ast.Constant(None, wanted)], [atom, is_null(last)])
        column = OutputColumn(given.name, wanted, given.nullable)
        scope.subqueries[key] = _with_last(derived, column, name)
    found: Derived = scope.subqueries[key]
    return found


def _typed(scope: QueryScope, left: exp.Expr, query: exp.Expr) -> Derived:
    """The distinct rows of a subquery, of the type of the left side where they are null and tell none."""
    derived = _derived(scope, query)
    return _of_type(scope, left, query, derived) if derived.columns[-1].untyped else derived


def _with_last(derived: Derived, column: OutputColumn, name: str = "") -> Derived:
    """The distinct rows of a subquery with another last column, in the head `name` if it is another."""
    columns = (*derived.rows.columns[:-1], column)
    return Derived(Rows.of(name or derived.rows.name, columns, bag=False), derived.parameters)


def _names(literal: ast.Literal, found: Sequence[ast.Variable]) -> bool:
    """Whether a literal names one of the variables."""
    return any(node in found for node in nodes((literal,)) if isinstance(node, ast.Variable))


def _shortened(within: Sequence[ast.Literal], found: Sequence[ast.Variable]) -> ast.Literal:
    """The conjunction to negate: one atom, where equalities say what its values are."""
    names: dict[str, ast.Term] = {}
    rest: list[ast.Literal] = []
    for literal in within:
        place = None
        if isinstance(literal, ast.Comparison) and literal.op == "=":
            sides = ((literal.left, literal.right), (literal.right, literal.left))
            place = next((s for s in sides if s[0] in found and s[0].name not in names), None)  # type: ignore[union-attr]
        if place is not None and isinstance(place[0], ast.Variable):
            names[place[0].name] = place[1]
        elif literal not in [not_null(variable) for variable in found]:
            rest.append(literal)
    made = tuple(renamed(literal, names) for literal in rest)
    return made[0] if len(made) == 1 else ast.Disjunction((made,))


def _known(case: Case) -> list[ast.Literal]:
    return [not_null(case.term)] if case.nullable and case.term is not None else []


def _nulls(scope: QueryScope, derived: Derived, query: exp.Expr) -> Derived:
    """The head that says for which parameters a subquery of one column gives null."""
    key = f"null {query.sql('duckdb')}"
    if key not in scope.subqueries:
        columns = [scope.heads.variable(c.name, c.nullable) for c in derived.rows.columns]
        name = scope.heads.name("null")
        atom = ast.Atom(derived.rows.name, tuple(columns))
        scope.heads.rule(name, columns[:-1], [atom, is_null(columns[-1])])
        scope.subqueries[key] = Derived(Rows.of(name, derived.rows.columns[:-1], bag=False), derived.parameters)
    found: Derived = scope.subqueries[key]
    return found


def _extreme(scope: QueryScope, derived: Derived, query: exp.Expr, op: str) -> Derived:
    """The head with the least or the greatest value of a subquery for its parameters."""
    key = f"{op} {derived.columns[-1].type} {query.sql('duckdb')}"
    if key not in scope.subqueries:
        columns = [scope.heads.variable(c.name, c.nullable) for c in derived.rows.columns]
        branch = Branch((RowAtom(derived.rows, tuple(columns)),), (), {})
        last = derived.rows.columns[-1]
        made = (*derived.rows.columns[:-1], OutputColumn(op, last.type, False))
        if len(made) == 1:
            name = scope.heads.name(op)
            inner = scope.heads.folded(op, columns[-1], (), branch)
            scope.heads.rule(name, columns[-1:], [ast.Atom(inner, tuple(columns[-1:]))])
        else:
            name = scope.heads.folded(op, columns[-1], columns[:-1], branch)
        scope.subqueries[key] = Derived(Rows.of(name, made, bag=False), derived.parameters)
    found: Derived = scope.subqueries[key]
    return found


def _compared(
    scope: QueryScope, left: exp.Expr, op: type[exp.Expr], derived: Derived, query: exp.Expr, ext: str
) -> list[Conjunction]:
    extreme = _extreme(scope, derived, query, ext)
    key = f"value {ext} {extreme.columns[-1].type} {query.sql('duckdb')}"
    if key not in scope.subqueries:
        scope.subqueries[key] = _values(scope, extreme)[-1]
    found: ast.Variable = scope.subqueries[key]
    column = extreme.columns[-1]
    place = scope.placeholder([Case((), found, column.type, False)], exp.column(derived.columns[-1].name))
    compared = in_place_of(left.parent or left, op(this=left.copy(), expression=place))
    return products([positive(scope, extreme, [found]), holds(compared, scope)])


def _any(scope: QueryScope, left: exp.Expr, op: type[exp.Expr], query: exp.Expr) -> list[Conjunction]:
    """`x < any (select y ...)`: less than the greatest; `x <> any`: unlike the least, or else the greatest."""
    derived = _typed(scope, left, query)
    if op is exp.NEQ:
        low = _compared(scope, left, exp.NEQ, derived, query, "min")
        equal = _compared(scope, left, exp.EQ, derived, query, "min")
        return [*low, *products([equal, _compared(scope, left, exp.NEQ, derived, query, "max")])]
    return _compared(scope, left, op, derived, query, "max" if op in (exp.LT, exp.LTE) else "min")


def _all(scope: QueryScope, left: exp.Expr, op: type[exp.Expr], query: exp.Expr) -> list[Conjunction]:
    """`x < all (select y ...)`: less than the least, and no null is there; or there is no row."""
    derived = _typed(scope, left, query)
    if op is exp.EQ:
        found = products(
            [_compared(scope, left, op, derived, query, "min"), _compared(scope, left, op, derived, query, "max")]
        )
    else:
        found = _compared(scope, left, op, derived, query, "min" if op in (exp.LT, exp.LTE) else "max")
    if derived.columns[-1].nullable:
        found = products([found, negative(scope, _nulls(scope, derived, query), ())])
    return [*negative(scope, derived), *found]


# Scalar subqueries


def scalar(scope: QueryScope, node: exp.Expr) -> list[Case]:
    """The value of `(select ...)` as an expression: null where there is no row."""
    query = node.this if isinstance(node, exp.Subquery) else node
    key = f"scalar {query.sql('duckdb')}"
    if key not in scope.subqueries:
        scope.subqueries[key] = _scalar(scope, query)
    found: list[Case] = scope.subqueries[key]
    return found


def _without_having(query: exp.Expr) -> exp.Expr:
    """A query of one group and one value, whose `having` says where there is none: as `case when ... then ... end`."""
    if not isinstance(query, exp.Select) or limited(query) or query.args.get("group") is not None:
        return query
    having = query.args.get("having")
    if having is None or len(query.expressions) != 1:
        return query
    made = query.copy()
    value = exp.Case(ifs=[exp.If(this=having.this.copy(), true=made.expressions[0].unalias())])
    made.set("expressions", [value])
    made.set("having", None)
    return made if is_grouped(made) else query  # of constants there would be a value for each row


def _scalar(scope: QueryScope, query: exp.Expr) -> list[Case]:
    query = _without_having(scope.queries.plain(query, scope))
    derived, every = scope.queries.scalar(query, scope)
    if len(derived.columns) != 1:
        raise scope.source.error(
            f"a subquery with {len(derived.columns)} columns as a value",
            query,
            why="an expression has one value",
            remedy="let the subquery give out one column",
        )
    (column,) = derived.columns
    variable = scope.heads.variable(column.name, column.nullable)
    cases = [case_of(variable, column, c) for c in positive(scope, derived, [variable])]
    if every:
        return cases
    type_ = "" if column.untyped else column.type
    nothing = [null_case((), type_)]
    grouped = isinstance(query, exp.Select) and is_grouped(query) and not has_windows(query)
    if grouped and query.args.get("group") is None:
        if derived.parameters and query.args.get("having") is not None:
            what = "`having` without `group by` in such a subquery"
            raise scope.source.unsupported(what, query.args["having"], "write `case when ... then ... end`")
        order = ordering_of(query, scope.source)
        if query.args.get("having") is None and order.limit != 0 and not order.offset:
            nothing = value(_of_no_rows(query.expressions[0]), scope)
    for conjunction in negative(scope, derived):
        cases += [
            Case((*conjunction, *case.literals), case.term, case.type or type_, case.nullable) for case in nothing
        ]
    return cases


def _of_no_rows(node: exp.Expr) -> exp.Expr:
    """An expression over aggregates, of no rows."""
    whole = exp.Paren(this=node.unalias().copy())
    for part in list(own_nodes(whole)):  # those of a query within are of other rows
        if is_aggregate(part):
            counts = part.find(exp.AggFunc)
            part.replace(exp.Literal.number(0) if isinstance(counts, exp.Count) else exp.Null())
    return whole
