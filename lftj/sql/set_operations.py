"""`union`, `intersect` and `except`: over the rows of both sides, as sets or, with `all`, as bags.

    union          one head with the rules of both sides
    union all      the copies of both sides added up
    intersect      a row that both have                      all: as often as the side that has it less often
    except         a row that the right side does not have   all: as often as the left has it more often

Null is one value here, as in `group by`. Columns meet in a common type: whole numbers with decimals as decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import NUMBER
from lftj.sql.branches import RowAtom
from lftj.sql.cases import computed
from lftj.sql.conversions import common
from lftj.sql.expressions import Expressions
from lftj.sql.heads import or_null
from lftj.sql.query_scope import Beside, Derived, Outside, QueryScope
from lftj.sql.select import Block, Output, rows_of
from lftj.sql.view import Rows

if TYPE_CHECKING:
    from lftj.sql.queries import Queries


def set_operation(queries: Queries, node: exp.SetOperation, around: Outside | None, distinct: bool) -> Derived:
    """The rows of a set operation; `distinct`: how often a row is there does not matter."""
    if node.args.get("by_name"):
        raise queries.text.unsupported("`by name`", node, "name the columns in the same order")
    each_once = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        blocks = [block for part in (node.left, node.right) for block in _operands(queries, part, around, each_once)]
        return rows_of(queries, [*_unified(queries, blocks, node)], distinct=distinct or each_once, word="union")
    sides = [_side(queries, part, around) for part in (node.left, node.right)]
    one, two = (
        rows_of(queries, [block], distinct=each_once or (distinct and isinstance(node, exp.Intersect)), word="side")
        for block in _unified(queries, sides, node)
    )
    scope = QueryScope(queries, around)
    left, right = (scope.add(Derived(side.rows, side.parameters), "") for side in (one, two))
    del left, right
    return _combined(scope, node, Beside(scope), one, two)


def _operands(queries: Queries, node: exp.Expr, around: Outside | None, each_once: bool) -> list[Block]:
    """The blocks of a union; of a union of unions of the same kind all of them."""
    inner = node.unnest() if isinstance(node, exp.Subquery) else node
    same = isinstance(inner, exp.Union) and bool(inner.args.get("distinct")) == each_once
    if same and not any(inner.args.get(name) for name in ("with_", "limit", "offset", "by_name")):
        return [block for part in (inner.left, inner.right) for block in _operands(queries, part, around, each_once)]
    return [_side(queries, node, around)]


def _side(queries: Queries, node: exp.Expr, around: Outside | None) -> Block:
    """An operand as a block."""
    block = queries.block(node, around)
    if block is not None and (block.grouping is not None or not block.distinct):
        return block
    scope = QueryScope(queries, around)
    derived = queries.rows_of(node, Beside(scope)) if block is None else queries.rows_of_block(block)
    source = scope.add(derived, "")
    return Block(scope, [Output(name, cases, node) for name, cases in source.columns.items()])


def _unified(queries: Queries, blocks: list[Block], node: exp.Expr) -> list[Block]:
    """The blocks with columns of the same types."""
    widths = {len(block.outputs) for block in blocks}
    if len(widths) > 1:
        raise queries.text.error(
            f"a set operation over {' and '.join(map(str, sorted(widths)))} columns",
            node,
            why="both sides have equally many columns",
            remedy="let both sides give out the same columns",
        )
    for outputs in zip(*(block.outputs for block in blocks), strict=True):
        terms = [(case.term, case.type) for output in outputs for case in output.cases]
        wanted = common(terms, node, queries.text)
        for output, block in zip(outputs, blocks, strict=True):
            of = Expressions(block.scope)
            if any(case.type != wanted for case in output.cases if case.term is not None):
                output.cases = computed(
                    [output.cases], lambda known, of=of, wanted=wanted: (of.cast(known[0], wanted, node), wanted)
                )
    return blocks


def _combined(scope: QueryScope, node: exp.SetOperation, _: Beside, one: Derived, two: Derived) -> Derived:
    """The head of `intersect` and `except`."""
    heads, every = scope.heads, not node.args.get("distinct")
    name = heads.name("intersect" if isinstance(node, exp.Intersect) else "except")
    made = [heads.variable(column.name, True) for column in one.columns]
    nullable = [a.nullable or b.nullable for a, b in zip(one.columns, two.columns, strict=True)]
    for variable, may in zip(made, nullable, strict=True):
        heads.nullable[variable.name] = may
    scope.body.atoms.clear()
    args = [
        [*(scope.parameter(list(p.outside), p.variable.name)[0].term for p in side.parameters)] for side in (one, two)
    ]
    parameters = tuple(scope.parameters.values())
    key = [*(p.variable for p in parameters), *made]
    left, right = (
        ast.Atom(side.rows.name, (*(a for a in own if a is not None), *made))
        for side, own in zip((one, two), args, strict=True)
    )
    columns = (*_columns(scope), *one.columns)

    def rule(copies: ast.Term | None, *body: ast.Literal) -> None:
        from lftj.sql.branches import Branch

        branch = scope.closed(Branch((), body, {}), key)
        terms = [*key, *([copies] if copies is not None else [])]
        heads.rule(name, terms, (*branch.body, *or_null(heads, key)), functional=copies is not None)

    if not every:
        if isinstance(node, exp.Intersect):
            rule(None, left, right)
        else:
            rule(None, left, ast.Negation(right))
        return Derived(Rows.of(name, columns, bag=False), parameters)
    n, m = heads.variable("copies", False), heads.variable("copies", False)
    bags = [
        (ast.Atom(a.name, (*a.args, x)), x) if side.rows.bag else (a, ast.Constant(1, NUMBER))
        for a, x, side in ((left, n, one), (right, m, two))
    ]
    (left, n_term), (right, m_term) = bags
    if isinstance(node, exp.Intersect):
        rule(ast.Functor("min", (n_term, m_term)), left, right)
    else:
        lacking = ast.Atom(right.name, (*right.args[:-1], ast.Wildcard())) if two.rows.bag else right
        rule(n_term, left, ast.Negation(lacking))
        if one.rows.bag:
            rule(ast.Functor("-", (n_term, m_term)), left, right, ast.Comparison(">", n_term, m_term))
    return Derived(Rows.of(name, columns, bag=True), parameters)


def _columns(scope: QueryScope) -> list:  # type: ignore[type-arg]
    from lftj.sql.view import OutputColumn

    return [OutputColumn(p.variable.name, p.type, p.nullable) for p in scope.parameters.values()]


__all__ = ["RowAtom", "set_operation"]
