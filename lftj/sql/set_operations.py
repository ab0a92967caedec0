"""`union`, `intersect` and `except`: over the rows of both sides, as sets or, with `all`, as bags.

    union          one head with the rules of both sides
    union all      the copies of both sides added up
    ... by name    columns meet by their names, and one that a side does not have is null there
    intersect      a row that both have                      all: as often as the side that has it less often
    except         a row that the right side does not have   all: as often as the left has it more often

Null is one value here, as in `group by`. Columns meet in a common type: whole numbers with decimals as decimals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.null import is_code_of_null
from lftj.language.types import DECIMAL, NUMBER, SYMBOL
from lftj.sql.branches import Branch
from lftj.sql.cases import Known, computed, null_case
from lftj.sql.conversions import common, exact_type
from lftj.sql.heads import or_null
from lftj.sql.query_scope import Beside, Derived, Outside, QueryScope
from lftj.sql.select_block import Output, SelectBlock, rows_of
from lftj.sql.sql_expressions import Expressions
from lftj.sql.view import OutputColumn, Rows
from lftj.values.type_table import family_of, with_null

if TYPE_CHECKING:
    from lftj.sql.places import SqlText
    from lftj.sql.queries import Queries


def set_operation(queries: Queries, node: exp.SetOperation, around: Outside | None, distinct: bool) -> Derived:
    """The rows of a set operation; `distinct`: how often a row is there does not matter."""
    each_once = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        if node.args.get("by_name"):
            blocks = _by_name([_side(queries, part, around) for part in (node.left, node.right)], queries.text)
        else:
            blocks = [block for part in (node.left, node.right) for block in operands(queries, part, around, each_once)]
        return rows_of(queries, [*unified(queries, blocks, node)], distinct=distinct or each_once, word="union")
    if node.args.get("by_name"):
        remedy = "give the columns out in the same order on both sides"
        raise queries.text.unsupported(f"`{node.key} by name`", node, remedy)
    sides = [_side(queries, part, around) for part in (node.left, node.right)]
    one, two = (
        rows_of(queries, [block], distinct=each_once or (distinct and isinstance(node, exp.Intersect)), word="side")
        for block in _of_one_type(queries, sides, node)
    )
    return _Combined(QueryScope(queries, around), node, one, two).rows()


def operands(queries: Queries, node: exp.Expr, around: Outside | None, each_once: bool) -> list[SelectBlock]:
    """The blocks of a union; of a union of unions of the same kind all of them."""
    inner = queries.plain(node, around)  # with the limit behind its parentheses
    same = bool(inner.args.get("distinct")) == each_once
    if (
        isinstance(inner, exp.Union)
        and same
        and not any(inner.args.get(name) for name in ("with_", "limit", "offset", "by_name"))
    ):
        return [block for part in (inner.left, inner.right) for block in operands(queries, part, around, each_once)]
    return [_side(queries, node, around)]


def _side(queries: Queries, node: exp.Expr, around: Outside | None) -> SelectBlock:
    """An operand as a block."""
    block = queries.block(node, around)
    if block is not None and not block.distinct:
        return block
    scope = QueryScope(queries, around)
    derived = queries.rows_of(node, Beside(scope))
    source = scope.add(derived, "")
    return SelectBlock(scope, [Output(name, cases, node) for name, cases in source.columns.items()])


def _by_name(blocks: Sequence[SelectBlock], source: SqlText) -> list[SelectBlock]:
    """The blocks with the columns that any of them has, as these come, and null for those that a block lacks."""
    each: list[dict[str, Output]] = []
    for block in blocks:
        each.append({})
        for output in block.outputs:
            if each[-1].setdefault(output.name.casefold(), output) is not output:
                raise source.error(
                    f"two columns named `{output.name}` in a side of `union by name`",
                    output.node,
                    why="columns of both sides meet by their names",
                    remedy=f"give one of them another name, as in `{output.name} as other`",
                )
    any_of = {name: output for own in each for name, output in own.items()}
    names = dict.fromkeys(name for own in each for name in own)
    return [
        replace(
            block,
            outputs=[own.get(name) or Output(any_of[name].name, [null_case(())], any_of[name].node) for name in names],
        )
        for block, own in zip(blocks, each, strict=True)
    ]


def unified(
    queries: Queries, blocks: list[SelectBlock], node: exp.Expr, types: Sequence[str] = ()
) -> list[SelectBlock]:
    """The blocks as one head may have their rows: with columns of `types`, if these are given, else of common ones."""
    made = _of_one_type(queries, blocks, node, types)
    for outputs in zip(*(block.outputs for block in made), strict=True):
        _check_codes_of_null(outputs, queries.text)
    return made


def _of_one_type(
    queries: Queries, blocks: list[SelectBlock], node: exp.Expr, types: Sequence[str] = ()
) -> list[SelectBlock]:
    """The blocks with columns of the same types: of `types`, if these are given, else of those that hold all values."""
    widths = {len(block.outputs) for block in blocks}
    if len(widths) > 1:
        raise queries.text.error(
            f"a set operation over {' and '.join(map(str, sorted(widths)))} columns",
            node,
            why="both sides have equally many columns",
            remedy="let both sides give out the same columns",
        )
    for at, outputs in enumerate(zip(*(block.outputs for block in blocks), strict=True)):
        wanted = types[at] if types else _common(outputs, queries.text)
        for output, block in zip(outputs, blocks, strict=True):
            if any(case.type != wanted for case in output.cases if case.term is not None):
                output.cases = computed([output.cases], partial(_cast, Expressions(block.scope), wanted, output.node))
            output.cases = [null_case(case.literals, wanted) if case.term is None else case for case in output.cases]
    return blocks


def _check_codes_of_null(outputs: Sequence[Output], source: SqlText) -> None:
    """Refuse a constant that stands for null in a column that another side lets be null."""
    if not any(case.nullable for output in outputs for case in output.cases):
        return
    for output in outputs:
        for case in output.cases:
            if isinstance(case.term, ast.Constant) and is_code_of_null(case.term.value, with_null(case.type)):
                raise source.error(
                    f"`{case.term.value}` in a column of a set operation that may be null",
                    output.node,
                    why="the code of this value is that of null there",
                    remedy="write another value, or give out one instead of null elsewhere, as in `coalesce(x, 0)`",
                )


def _common(outputs: Sequence[Output], source: SqlText) -> str:
    """The type that holds all values of a column, with the digits of texts that are written out."""
    terms = [(case.term, case.type) for output in outputs for case in output.cases]
    found = common(terms, _unlike_first(outputs), source)
    if family_of(found) != DECIMAL:
        return found
    for output in outputs:
        for case in output.cases:
            if case.type == SYMBOL and isinstance(case.term, ast.Constant):
                found = exact_type(str(case.term.value), found, output.node, source)
    return found


def _unlike_first(outputs: Sequence[Output]) -> exp.Expr:
    """The first of the values in one column whose type is not that of the first value; the last, if all are alike."""
    types = [next((case.type for case in output.cases if case.type), "") for output in outputs]
    found = (output.node for output, type_ in zip(outputs, types, strict=True) if type_ and type_ != types[0])
    return next(found, outputs[-1].node)


def _cast(of: Expressions, wanted: str, node: exp.Expr, values: Sequence[Known]) -> tuple[ast.Term, str]:
    return of.cast(values[0], wanted, node), wanted


class _Combined:
    """The head of `intersect` and `except`. `scope`: sees the query around, of which the sides have parameters."""

    def __init__(self, scope: QueryScope, node: exp.SetOperation, one: Derived, two: Derived) -> None:
        self.scope, self.heads, self.sides = scope, scope.heads, (one, two)
        self.intersect, self.every = isinstance(node, exp.Intersect), not node.args.get("distinct")
        self.name = self.heads.name("intersect" if self.intersect else "except")
        self.given = [
            self.heads.variable(a.name, a.nullable or b.nullable) for a, b in zip(one.columns, two.columns, strict=True)
        ]
        self.atoms = [ast.Atom(side.rows.name, (*self._parameters(side), *self.given)) for side in self.sides]
        self.parameters = tuple(scope.parameters.values())

    def _parameters(self, side: Derived) -> list[ast.Term]:
        found = [self.scope.parameter(list(p.outside), p.variable.name)[0].term for p in side.parameters]
        return [term for term in found if term is not None]

    def rows(self) -> Derived:
        """The head with its rows."""
        (left, n), (right, m) = (self._counted(at) for at in (0, 1))
        lacking = ast.Negation(ast.Atom(right.name, (*right.args[:-1], ast.Wildcard())) if self._bag(1) else right)
        if not self.every:
            self._rule(None, left, right if self.intersect else lacking)
        elif self.intersect:
            self._rule(ast.Functor("min", (n, m)), left, right)
        else:
            self._rule(n, left, lacking)
            if self._bag(0):
                self._rule(ast.Functor("-", (n, m)), left, right, ast.Comparison(">", n, m))
        own = (OutputColumn(p.variable.name, p.type, p.nullable) for p in self.parameters)
        return Derived(Rows.of(self.name, (*own, *self.sides[0].columns), bag=self.every), self.parameters)

    def _bag(self, at: int) -> bool:
        return self.sides[at].rows.bag

    def _counted(self, at: int) -> tuple[ast.Atom, ast.Term]:
        """The atom of a side, and how often it has a row."""
        atom = self.atoms[at]
        if not self._bag(at):
            return atom, ast.Constant(1, NUMBER)
        copies = self.heads.variable("copies", False)
        return ast.Atom(atom.name, (*atom.args, copies)), copies

    def _rule(self, copies: ast.Term | None, *body: ast.Literal) -> None:
        key = [*(p.variable for p in self.parameters), *self.given]
        closed = self.scope.closed(Branch((), body, {}), key)
        terms = [*key, *([] if copies is None else [copies])]
        self.heads.rule(self.name, terms, (*closed.body, *or_null(self.heads, key)), functional=copies is not None)
