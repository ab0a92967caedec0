"""`limit` within a view or a subquery: a head with the first rows of the query, which is kept up to date as any other.

    select a from t order by b desc limit 3

    select a from (select a, b as "by 1" from t order by "by 1" desc limit 3)
        .decl @v.first1(a, "by 1", copies) bag, first 3 0 1-l
        @v.first1(a, b, n) :- @v.rows2(a, b, n).

In a subquery that names columns of the query around, its first rows are those of each value of these: they are
numbered (`windowed_select.py`), and those with the first numbers taken.

What rows are ordered by is a column of that head, so that a query gives it out first if it does not. Rows that are
alike in it are in the order of all columns (`lftj/language/first_rows.py`).
"""

from __future__ import annotations

from sqlglot import exp

from lftj.language import ast
from lftj.language.first_rows import FirstRows
from lftj.language.names import BAG, COPIES
from lftj.language.types import NUMBER
from lftj.language.window_functions import WindowFunction, WindowFunctions
from lftj.sql.heads import QueryHeads
from lftj.sql.ordering import Ordering
from lftj.sql.places import SqlText
from lftj.sql.query_scope import Derived, QueryScope
from lftj.sql.select_block import Output, SelectBlock, rows_of
from lftj.sql.stars import output_name, star_of
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.windowed_select import window_head


def limited(query: exp.Expr) -> bool:
    """Whether a query asks for some of its rows only."""
    return any(query.args.get(part) is not None for part in ("limit", "offset"))


def first_rows(heads: QueryHeads, rows: Rows, order: Ordering) -> Rows:
    """The head with the first of some rows."""
    assert order.limit is not None, "an offset without a limit is refused"
    name = heads.name("first")
    first = FirstRows(order.limit, order.offset, tuple(order.columns)).text
    attributes = [ast.Attribute(f"c{at}", column.declared) for at, column in enumerate(rows.columns)]
    variables = [heads.variable(column.name, column.nullable) for column in rows.columns]
    if rows.bag:
        attributes.append(ast.Attribute(COPIES, NUMBER))
        variables.append(heads.variable(COPIES, False))
    qualifiers = (BAG, first) if rows.bag else (first,)
    heads.items.append(ast.Declaration(name, tuple(attributes), qualifiers, functional=rows.bag))
    heads.rule(name, variables, [ast.Atom(rows.name, tuple(variables))], functional=rows.bag)
    return Rows(name, rows.columns, rows.bag, rows.keys)


def first_of_each(scope: QueryScope, found: Derived, order: Ordering) -> Derived:
    """The head with the first rows for each value of the parameters of a query. `scope`: sees the query around."""
    assert order.limit is not None, "an offset without a limit is refused"
    outside = len(found.parameters)
    by = tuple(item._replace(column=outside + item.column) for item in order.columns)
    numbered = WindowFunctions(tuple(range(outside)), by, (WindowFunction("row_number"),))
    number = OutputColumn("row_number", NUMBER, nullable=False)
    rows = window_head(scope.heads, found.rows, numbered, [number])
    source = scope.add(Derived(rows, found.parameters), "")
    *outputs, (_, (case,)) = source.columns.items()
    assert case.term is not None
    ends = [ast.Constant(end, NUMBER) for end in (order.offset, order.offset + order.limit)]
    between = (ast.Comparison(">", case.term, ends[0]), ast.Comparison("<=", case.term, ends[1]))
    scope.body.conditions.append([between])
    block = SelectBlock(scope, [Output(name, cases, exp.column(name)) for name, cases in outputs])
    return rows_of(scope.queries, [block], word="first")


def with_given_order(query: exp.Expr, source: SqlText) -> exp.Expr:
    """The query, around itself with all columns that it is ordered by if it does not give all of them out."""
    order = query.args.get("order")
    if not isinstance(query, exp.Select) or order is None:
        return query
    names = [output_name(part) for part in query.expressions]
    stars = [star for star in map(star_of, query.expressions) if star is not None]
    every = stars and not query.args.get("joins") and not any(map(_changes_columns, stars))
    inner, hidden = query.copy(), list[exp.Expr]()
    for node in inner.args["order"].expressions:
        item = node.this
        if every and isinstance(item, exp.Column) and item.name.casefold() not in map(str.casefold, names):
            item.set("table", None)  # `select *` from one table gives all its columns out
        if _given_out(item, query, names):
            continue
        same = next((at for at, part in enumerate(query.expressions) if part.unalias() == item), None)
        if same is not None:
            node.set("this", exp.Literal.number(same + 1))
            continue
        if query.args.get("distinct") is not None or any(part.is_star for part in query.expressions):
            raise source.unsupported(
                "`order by` what the query does not give out",
                item,
                "give it out, or order by a column that it gives out",
            )
        hidden.append(exp.alias_(item.copy(), f"by {len(hidden) + 1}", quoted=True))
        node.set("this", exp.Literal.number(len(names) + len(hidden)))
    inner.set("expressions", [*inner.expressions, *hidden])
    if not hidden:
        return inner
    called = [exp.to_identifier(f"c{at}", quoted=True) for at in range(len(names) + len(hidden))]
    shown = [
        exp.alias_(exp.column(part.copy(), "limited"), name, quoted=True)
        for part, name in zip(called, names, strict=False)
    ]
    alias = exp.TableAlias(this=exp.to_identifier("limited"), columns=called)
    return exp.Select(expressions=shown, from_=exp.From(this=exp.Subquery(this=inner, alias=alias)))


def _changes_columns(star: exp.Star) -> bool:
    """Whether a name that `*` gives out may stand for another value than in the table."""
    return bool(star.args.get("replace") or star.args.get("rename"))


def _given_out(item: exp.Expr, query: exp.Select, names: list[str]) -> bool:
    """Whether what a query is ordered by is a column that it gives out, by name or position, or all of them."""
    if isinstance(item, exp.Literal) or (isinstance(item, exp.Var) and item.name.upper() == "ALL"):
        return True
    if not isinstance(item, exp.Column) or item.table:
        return False
    known = [name.casefold() for name in names]
    return item.name.casefold() in known or any(part.is_star for part in query.expressions)
