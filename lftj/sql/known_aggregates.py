"""Aggregates that others say, written by these before a query is translated: what is grouped depends on which they are.

count_if(c)          count(*) filter (where c)
bool_or(c)           case when count(*) filter (where c) > 0 then true when count(c) > 0 then false end
bool_and(c)          case when count(*) filter (where not c) > 0 then false when count(c) > 0 then true end
"""

from __future__ import annotations

from sqlglot import exp

from lftj.sql.aggregate_heads import check_alone
from lftj.sql.places import SqlText, in_place_of, standing_for
from lftj.sql.stars import output_name
from lftj.sql.written_windows import over

AGGREGATES = (exp.CountIf, exp.LogicalOr, exp.LogicalAnd)


def with_known_aggregates(query: exp.Expr, text: SqlText) -> exp.Expr:
    """The query with aggregates that others say written by these; columns keep their names."""
    if query.find(*AGGREGATES) is None:
        return query
    made = query.copy()
    while (node := made.find(*AGGREGATES)) is not None:  # what one takes is in what it is written by: there it is next
        if isinstance(node.this, exp.Distinct):  # which changes nothing but counts
            if isinstance(node, exp.CountIf):
                raise text.unsupported("`distinct` in `count_if`", node, "use `count(distinct ...) filter (where ...)`")
            node.set("this", node.this.expressions[0])
        filtered = node.parent if isinstance(node.parent, exp.Filter) else None
        written = node if filtered is None else filtered
        shown = _as_written(node, filtered)
        window = written.parent if isinstance(written.parent, exp.Window) else None
        whole = written if window is None else window
        if window is None:
            check_alone(node.this, text)
        if whole.arg_key == "expressions" and isinstance(whole.parent, exp.Select):
            name = output_name(shown if window is None else over(window, shown))
            whole.replace(in_place_of(whole, exp.alias_(whole.copy(), name, quoted=True)))
        else:
            whole.replace(_counted(node, shown, filtered, window))
    return made


def _as_written(node: exp.Expr, filtered: exp.Expr | None) -> exp.Expr:
    """What messages and columns call an aggregate: the parser's tree has a cast in it that nobody wrote."""
    shown: exp.Expr = exp.Anonymous(this=node.sql("duckdb").partition("(")[0].lower(), expressions=[node.this.copy()])
    shown.meta.update(node.meta)
    if filtered is not None:
        shown = in_place_of(filtered, exp.Filter(this=shown, expression=filtered.expression.copy()))
    return shown


def _counted(node: exp.Expr, shown: exp.Expr, filtered: exp.Expr | None, window: exp.Window | None) -> exp.Expr:
    """An aggregate of conditions by counts, each of which stands for it in messages; over its window, if it has one."""
    condition, among = node.this, [] if filtered is None else [filtered.expression.this]

    def count(*conditions: exp.Expr) -> exp.Expr:
        where = exp.Where(this=exp.and_(*(exp.paren(part.copy()) for part in (*conditions, *among))))
        made = standing_for(shown, exp.Filter(this=exp.Count(this=exp.Star()), expression=where))
        return made if window is None else over(window, made)

    if isinstance(node, exp.CountIf):
        return count(condition)
    decides = isinstance(node, exp.LogicalOr)
    deciding = condition if decides else exp.not_(exp.paren(condition.copy()))
    known = exp.paren(condition.copy()).is_(exp.null()).not_()
    values = ((deciding, decides), (known, not decides))
    ifs = [exp.If(this=_some(count(where)), true=exp.Boolean(this=value)) for where, value in values]
    return standing_for(shown, exp.Case(ifs=ifs))


def _some(count: exp.Expr) -> exp.Expr:
    return exp.GT(this=count, expression=exp.Literal.number(0))
