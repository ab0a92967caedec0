"""A select as rules: what it is made of (`SelectBlock`), and the head that has its rows.

A block whose rows nothing groups is merged into the query around it where it stands in `from`: its atoms and conditions
become that query's, so that a sum over it is one over tables. Any other query becomes a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.sql.branches import Branch, QueryBody
from lftj.sql.computed_columns import with_few_ways
from lftj.sql.query_scope import Derived, QueryParameter, QueryScope, null_of
from lftj.sql.scope import Case
from lftj.sql.sql_expressions import value
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.whole_numbers import product_of

if TYPE_CHECKING:
    from lftj.sql.grouping import Grouping
    from lftj.sql.queries import Queries
    from lftj.sql.windowed_select import WindowedSelect

NULL = ast.Constant(None, "number")


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

    def compute_apart(self) -> None:
        """Let heads of their own have what is given out, where there were a rule for each of many combinations."""
        values = with_few_ways(self.scope, [output.cases for output in self.outputs])
        self.outputs = [replace(output, cases=cases) for output, cases in zip(self.outputs, values, strict=True)]

    @property
    def mergeable(self) -> bool:
        """Whether a query around may have its body."""
        return self.grouping is None and not self.distinct


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

    `distinct`: each once · `name`: of the head · `functional`: there is one row for what the parameters of the only
    block say, which nobody asks of others than the query around has.
    """
    parameters = _parameters(blocks)
    for block in blocks:
        block.compute_apart()
    of_block = [list(_rules(block, parameters)) for block in blocks]
    common = _common(blocks[0], parameters, of_block[0]) if len(blocks) == 1 else None
    if functional and common is not None and not common[0].determines(common[1][: len(parameters)], ()):
        of_block = [blocks[0].scope.asked_for(of_block[0])]
    made = [
        (block.scope.closed(branch, terms), terms)
        for block, rules in zip(blocks, of_block, strict=True)
        for branch, terms in rules
    ]
    columns = (
        *(OutputColumn(p.variable.name, p.type, p.nullable) for p in parameters),
        *(_column(outputs) for outputs in zip(*(block.outputs for block in blocks), strict=True)),
    )
    heads = queries.heads
    distinct = distinct or (all(block.distinct for block in blocks) and len(blocks) == 1)
    fixed = [p.variable.name for p in parameters]
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
        parts = [heads.counted(terms, branch) for branch, terms in made]
        rows = Rows.of(
            heads.added_up(parts, len(columns), columns) or heads.sure(heads.name(word), columns, copies=True),
            columns,
            bag=True,
        )
    return Derived(rows, parameters)


def derives_rows(block: SelectBlock) -> bool:
    """Whether a block has a rule: not if its conditions are false by their form."""
    return any(True for _ in _rules(block, ()))


def _parameters(blocks: Sequence[SelectBlock]) -> tuple[QueryParameter, ...]:
    """The parameters of the first block, which has those of all."""
    first = blocks[0].scope
    for block in blocks[1:]:
        for parameter in list(block.scope.parameters.values()):
            first.parameter(list(parameter.outside), parameter.variable.name, parameter.node)
    return tuple(first.parameters.values())


def _rules(block: SelectBlock, parameters: Sequence[QueryParameter]) -> Iterator[tuple[Branch, list[ast.Term]]]:
    """The rules that derive the rows of a block: bodies, to be `closed`, and the arguments of the head."""
    scope = block.scope
    own = [scope.parameter(list(p.outside), p.variable.name)[0].term for p in parameters]
    for branch, chosen in scope.body.choices(scope.heads.nullable, [output.cases for output in block.outputs]):
        terms = [branch.term(variable) for variable in own if variable is not None]
        terms += [null_of(case) if case.term is None else branch.term(case.term) for case in chosen]
        yield branch, terms


def _column(outputs: Sequence[Output]) -> OutputColumn:
    cases = [case for output in outputs for case in output.cases]
    type_ = next((case.type for case in cases if case.type), "")
    nullable = any(case.nullable for case in cases)
    return OutputColumn(outputs[0].name, type_ or "number", nullable, untyped=not type_)


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
