"""`string_agg`: the texts of a group in one, in an order that says the same whatever came first.

    string_agg(x, ', ' order by y desc)
        @v.texts1(k, 0, bnot y, x, id.., cat(", ", x)) :- t(k, x, y, id..).    the parts, each behind a separator
        @v.cat2[k] = cat p : { @v.texts1(k, _, _, _, _.., p) }                 in the order of the columns before them
        @v.joined3(k, substr(p, 2, -1)) :- @v.cat2(k, p).

Without an order, and among rows that are alike in it, the order is that of the texts. A row whose text is null is left
out. Null in what is ordered by has a column before it, 0 or 1, which sorts it to the end that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import BOOL, DATE, NUMBER, SYMBOL, TIMESTAMP, UNSIGNED
from lftj.sql.branches import Branch
from lftj.sql.cases import not_null, split
from lftj.sql.places import SqlText, in_place_of
from lftj.sql.scope import Case, Conjunction
from lftj.sql.syntax_errors import too_many_arguments
from lftj.sql.whole_numbers import product_of

if TYPE_CHECKING:
    from lftj.sql.grouping import Grouping


@dataclass(frozen=True, slots=True)
class TextOrder:
    """A value that the texts are ordered by, downwards or not, and whether null is first."""

    cases: list[Case]
    down: bool
    nulls_first: bool


def written_order(node: exp.Expr, distinct: bool, source: SqlText) -> tuple[str, list[exp.Ordered]]:
    """The separator of a `string_agg`, and what it is ordered by. Raises `ProgramError` for what is not supported."""
    separator = node.args.get("separator")
    if separator is not None and not (isinstance(separator, exp.Literal) and separator.is_string):
        name = f"`{source.call(node)}` with a separator that is no text"
        raise source.unsupported(name, node, "write the separator out, as in `string_agg(x, ', ')`")
    inner = node.this
    order = inner.expressions if isinstance(inner, exp.Order) else []
    given = node.meta.get("arguments", 0) - max(len(order) - 1, 0)  # commas of the order are within the parentheses
    if given > 2:
        raise source.error(node=node, **too_many_arguments(source.word(node), 2, given))
    if distinct and any(by.this != inner.this.expressions[0] for by in order):
        remedy = "order by the value itself, or leave the order out: it is that of the texts"
        raise source.unsupported(f"`{source.call(node)}` with `distinct` and another order", node, remedy)
    return "," if separator is None else str(separator.this), order


def as_text(node: exp.Expr) -> exp.Expr:
    """A value as a text."""
    return in_place_of(node, exp.Cast(this=node.copy(), to=exp.DataType.build("text")))


def check_downwards(order: TextOrder, node: exp.Expr, source: SqlText) -> None:
    """Refuse an order that goes down in texts."""
    if order.down and any(case.type == SYMBOL for case in order.cases):
        raise source.unsupported("texts in descending order within an aggregate", node, "order them upwards")


def joined_texts(
    grouping: Grouping,
    cases: Sequence[Case],
    conditions: Sequence[Conjunction],
    orders: Sequence[TextOrder],
    separator: str,
    *,
    distinct: bool,
) -> str:
    """The name of a head with the columns of the groups and the joined texts of each; "" if there never is one.

    `cases`: of the text · `conditions`: alternatives of the `filter`, of which one holds · `distinct`: each different
    text comes once; else each row's does, as often as there are copies of it.
    """
    heads = grouping.heads
    parts = heads.name("texts")
    columns = dict.fromkeys(variable for row in grouping.rows.body.atoms for variable in row.variables)
    width = 0
    for case, *chosen in product(cases, *([part for one in by.cases for part in split(one)] for by in orders)):
        if case.term is None:
            continue
        terms = [one.term for one in (case, *chosen) if one.term is not None]
        for choice in grouping.choices(conditions, *([one.literals] for one in (case, *chosen)), of=terms):
            branch = choice.branch
            text = branch.term(case.term)
            branch = branch.with_literals(not_null(text)) if case.nullable else branch
            before: list[ast.Term] = []
            for one, by in zip(chosen, orders, strict=True):
                before.append(ast.Constant(int((one.term is None) != by.nulls_first), NUMBER))
                before.append(_key(one, by, branch))
            apart = [] if distinct else [branch.term(column) for column in columns]
            part: ast.Term = ast.Functor("cat", (ast.Constant(separator, SYMBOL), text))
            if branch.copies and not distinct:
                part = ast.Functor("repeat", (part, product_of(branch.copies)))
            args = [*choice.terms, *before, text, *apart, part]
            width = len(args)
            heads.rule(parts, args, branch.body)
    if not width:
        return ""
    key = [heads.variable(column.name, column.nullable) for column in grouping.columns]
    rest = [heads.variable("x", False) for _ in range(width - len(key))]
    folded = heads.name("cat")
    heads.aggregate(folded, "cat", rest[-1], key, [ast.Atom(parts, (*key, *rest))])
    name, joined = heads.name("joined"), heads.variable("text", False)
    shown = ast.Functor("substr", (joined, ast.Constant(len(separator), NUMBER), ast.Constant(-1, NUMBER)))
    heads.rule(name, [*key, shown], [ast.Atom(folded, (*key, joined))])
    return name


def _key(case: Case, order: TextOrder, branch: Branch) -> ast.Term:
    """What has the order of a value, or the opposite one."""
    as_number = order.down and case.type in (DATE, TIMESTAMP, BOOL)
    if case.term is None:
        return ast.Constant(None, NUMBER if as_number else case.type)
    term = branch.term(case.term)
    if not order.down:
        return term
    if as_number:
        term = ast.Functor("to_number", (term,))
    return ast.Functor("bnot" if as_number or case.type in (NUMBER, UNSIGNED) else "neg", (term,))
