"""A select: what it is made of (`SelectBlock`), and the head that has its rows.

A block whose rows nothing groups is merged into the query around it where it stands in `from`: its atoms and conditions
become that query's, so that a sum over it is one over tables. Any other query becomes a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.sql.branches import Branch, QueryBody
from lftj.sql.from_clause import add_from
from lftj.sql.grouping import Grouping, is_grouped
from lftj.sql.query_scope import Derived, Outside, QueryParameter, QueryScope, null_of
from lftj.sql.scope import Case
from lftj.sql.sql_expressions import holds, value
from lftj.sql.stars import expanded
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.whole_numbers import product_of
from lftj.sql.windowed_select import WindowedSelect, has_windows

if TYPE_CHECKING:
    from lftj.sql.queries import Queries

NULL = ast.Constant(None, "number")
# What a select may have, by the names that sqlglot gives it; all else is refused by name.
_KNOWN = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order", "limit", "offset"}
_KNOWN |= {"windows", "qualify"}
_NAMES = {"sample": "`using sample`", "pivots": "`pivot`"}


@dataclass(slots=True)
class Output:
    """A column that a select gives out."""

    name: str
    cases: list[Case]
    node: exp.Expr


@dataclass(slots=True)
class SelectBlock:
    """A select. `scope`: of what is given out, with the body · `grouping`: of a select with groups or aggregates.

    `windowed`: of one with window functions, whose values the scope has.
    """

    scope: QueryScope
    outputs: list[Output]
    distinct: bool = False
    grouping: Grouping | None = None
    windowed: WindowedSelect | None = None

    def value(self, node: exp.Expr) -> list[Case]:
        """The value of another expression in a row of the select."""
        over = self.windowed or self.grouping
        return value(node if over is None else over.replaced(node), self.scope)

    @property
    def mergeable(self) -> bool:
        """Whether a query around may have its body."""
        return self.grouping is None and not self.distinct


def block_of(
    queries: Queries,
    select: exp.Select,
    around: Outside | None,
    *,
    given: bool = True,
    scalar: bool = False,
    scope: QueryScope | None = None,
) -> SelectBlock:
    """The block of a select; not `given`: without the columns that it gives out, which nobody reads.

    `scalar`: it is a value, and what it is of no rows is told elsewhere · `scope`: sees its tables, if one does.
    """
    _check(queries, select)
    if has_windows(select):
        return WindowedSelect(queries, select, around).block()
    if scope is None:
        scope = QueryScope(queries, around)
        add_from(scope, select)
    where = select.args.get("where")
    if where is not None:
        parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
        for part in sorted(parts, key=lambda part: part.find(exp.Query) is not None):
            scope.body.conditions.append(holds(part, scope))
    distinct = select.args.get("distinct")
    grouping = None
    columns = expanded(scope, select.expressions) if given or is_grouped(select) else []
    inner = scope
    if is_grouped(select):
        grouping = Grouping(scope, select, columns, scalar=scalar)
        inner = grouping.scope
    block = SelectBlock(inner, [], distinct is not None, grouping)
    for name, node, cases in columns if given else ():
        given_out = cases if cases is not None and grouping is None else block.value(node)
        block.outputs.append(Output(name, given_out, node))
    return block


def _check(queries: Queries, select: exp.Select) -> None:
    for name, part in select.args.items():
        if part and name not in _KNOWN:
            node = part[0] if isinstance(part, list) else part
            shown = _NAMES.get(name, f"`{name.strip('_')}`")
            raise queries.text.unsupported(f"{shown} in a query", node if isinstance(node, exp.Expr) else select)
    distinct = select.args.get("distinct")
    assert distinct is None or not distinct.args.get("on"), "written by a window (`without_distinct_on`)"


# Rows


def rows_of(
    queries: Queries,
    blocks: Sequence[SelectBlock],
    *,
    distinct: bool = False,
    functional: bool = False,
    word: str = "rows",
    name: str = "",
) -> Derived:
    """The head with the rows of blocks of equally many columns, one after the other.

    `distinct`: each once · `functional`: there is one row for what all columns but the last say · `name`: of the head.
    """
    parameters = _parameters(blocks)
    made = [row for block in blocks for row in _rules(block, parameters)]
    columns = (
        *(OutputColumn(p.variable.name, p.type, p.nullable) for p in parameters),
        *(_column(outputs) for outputs in zip(*(block.outputs for block in blocks), strict=True)),
    )
    heads = queries.heads
    distinct = distinct or (all(block.distinct for block in blocks) and len(blocks) == 1)
    fixed = [p.variable.name for p in parameters]
    common = _common(blocks[0], parameters, made) if len(blocks) == 1 else None
    told_apart = common is not None and common[0].determines(common[1], fixed)
    if distinct or (told_apart and not any(branch.copies for branch, _ in made)):
        name = name or heads.name(word)
        for branch, terms in made:
            heads.rule(name, terms, branch.body, functional=functional)
        heads.sure(name, columns)
        key = None if distinct or common is None else _key(*common)
        rows = Rows.of(name, columns, bag=False, key=key)
    elif told_apart:
        name = name or heads.name(word)
        for branch, terms in made:
            heads.rule(name, [*terms, product_of(branch.copies)], branch.body, functional=True)
        heads.sure(name, columns, copies=True)
        rows = Rows.of(name, columns, bag=True)
    else:
        parts = [
            heads.folded("sum", product_of(branch.copies), terms, branch)
            if branch.copies
            else heads.folded("count", None, terms, branch)
            for branch, terms in made
        ]
        rows = Rows.of(
            heads.added_up(parts, len(columns), columns) or heads.sure(heads.name(word), columns, copies=True),
            columns,
            bag=True,
        )
    return Derived(rows, parameters)


def _parameters(blocks: Sequence[SelectBlock]) -> tuple[QueryParameter, ...]:
    """The parameters of the first block, which has those of all."""
    first = blocks[0].scope
    for block in blocks[1:]:
        for parameter in list(block.scope.parameters.values()):
            first.parameter(list(parameter.outside), parameter.variable.name)
    return tuple(first.parameters.values())


def _rules(block: SelectBlock, parameters: Sequence[QueryParameter]) -> Iterator[tuple[Branch, list[ast.Term]]]:
    """The rules that derive the rows of a block: bodies, and the arguments of the head."""
    scope = block.scope
    own = [scope.parameter(list(p.outside), p.variable.name)[0].term for p in parameters]
    for chosen in product(*(output.cases for output in block.outputs)):
        for branch in scope.body.branches(scope.heads.nullable, *([case.literals] for case in chosen)):
            terms = [branch.term(variable) for variable in own if variable is not None]
            terms += [null_of(case) if case.term is None else branch.term(case.term) for case in chosen]
            yield scope.closed(branch, terms), terms


def _column(outputs: Sequence[Output]) -> OutputColumn:
    cases = [case for output in outputs for case in output.cases]
    type_ = next((case.type for case in cases if case.type), "number")
    return OutputColumn(outputs[0].name, type_, any(case.nullable for case in cases))


def _common(
    block: SelectBlock, parameters: Sequence[QueryParameter], made: Sequence[tuple[Branch, list[ast.Term]]]
) -> tuple[Branch, list[ast.Term]] | None:
    """What all rules of a block have in common: conditions, and arguments of the head; null where these differ.

    Rows of two branches are different ones, and may give the same values all the same: `case when a = 1 then 2 else a
    end`. So only what each branch says of the row tells its rows apart from all others. None if no row is derived.
    """
    if len(made) < 2:
        return made[0] if made else None
    scope, outputs = block.scope, block.outputs
    same = [output.cases[0] if len(output.cases) == 1 else None for output in outputs]
    body = QueryBody(
        scope.body.atoms, [alternatives for alternatives in scope.body.conditions if len(alternatives) == 1]
    )
    (branch,) = body.branches(scope.heads.nullable, *([case.literals] for case in same if case is not None))
    own = [scope.parameter(list(p.outside), p.variable.name)[0].term for p in parameters]
    terms = [branch.term(variable) for variable in own if variable is not None]
    terms += [NULL if case is None or case.term is None else branch.term(case.term) for case in same]
    return branch, terms


def _key(branch: Branch, terms: Sequence[ast.Term]) -> tuple[int, ...]:
    """The positions of as few columns as tell the rows of a branch apart."""
    key = list(range(len(terms)))
    for at in reversed(range(len(terms))):
        fewer = [position for position in key if position != at]
        if branch.determines([terms[position] for position in fewer], ()):
            key = fewer
    return tuple(key)
