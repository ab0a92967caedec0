"""`with recursive`: a query that is a start and a step that reads it.

    with recursive r as (select ... union select ... from r)     one head with the rules of both, of which one reads it

`union` stops when no new row comes. `union all` has a row once for each way to derive it, which is a sum along the rows
that it is derived from (`language/acyclic.py`):

    @v.recursive1(x)                      the rows, each once, as of `union`
    @v.start2(x, c)                       how often the start gives each
    @v.step3(y, x, k)                     how often the step makes it of the row y
    @v.derived4[x] = sum k * m : { @v.step3(y, x, k), @v.copies5(y, m) }.
    @v.copies5[x] = c + n :- @v.start2(x, c), @v.derived4(x, n).   ... and where one of both has no such row

Rows that come back to themselves would be there without end: they are refused when they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.types import DECIMAL, decimal_of, scale_of
from lftj.language.visitors import nodes
from lftj.sql.heads import or_null
from lftj.sql.limits import limited
from lftj.sql.query_scope import Derived, Outside
from lftj.sql.scope import Case
from lftj.sql.select_block import Output, SelectBlock, derives_rows, rows_of
from lftj.sql.set_operations import operands, unified
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.whole_numbers import added, number, product_of
from lftj.values.type_table import family_of

if TYPE_CHECKING:
    from lftj.sql.queries import Queries


class RecursiveQuery:
    """A query of `with recursive`. `name`: what it is called in its own step · `node`: where, for errors."""

    def __init__(self, queries: Queries, node: exp.CTE, around: Outside | None) -> None:
        self.queries, self.node, self.name, self.query, self._around = queries, node, node.alias, node.this, around
        self._names = [part.name for part in node.args["alias"].args.get("columns") or ()]
        self.every = not self.query.args.get("distinct")

    def derived(self, called: Callable[[Derived], None]) -> Derived:
        """The head with its rows. `called`: told of the head that has them each once, which the step is to read."""
        self._check()
        heads, query = self.queries.heads, self.query
        start = operands(self.queries, query.left, self._around, each_once=not self.every)
        start = unified(self.queries, start, query.left)
        columns = tuple(self._column(start, at) for at in range(len(start[0].outputs)))
        name = heads.name("recursive")
        heads.recursive.add(name)
        for nullable in (False, True):
            made = tuple(OutputColumn(c.name, c.type, c.nullable or nullable) for c in columns)
            rows = Rows.of(name, made, bag=False)
            called(Derived(rows))
            before = len(heads.items)
            step = operands(self.queries, query.right, self._around, each_once=not self.every)
            self._check_step(step, name, before)
            blocks = unified(self.queries, [*start, *step], query, [column.type for column in columns])
            if nullable or not any(
                case.nullable and not column.nullable
                for block in step
                for output, column in zip(block.outputs, columns, strict=True)
                for case in output.cases
            ):
                if not any(derives_rows(block) for block in start):
                    self._tell_types(rows)
                rows_of(self.queries, blocks, distinct=True, name=name)
                break
            del heads.items[before:]
        heads.recursive.discard(name)
        return self._copies(rows, start, step) if self.every else Derived(rows)

    def _column(self, start: Sequence[SelectBlock], at: int) -> OutputColumn:
        """A column as the start gives it out, under the name that is given to it; the step is cast to its type.

        A cast to a decimal does not ask whether there are too many digits in front of the point.
        """
        cases = [case for block in start for case in block.outputs[at].cases]
        first = next((case.type for case in start[0].outputs[at].cases if case.type), "number")
        if family_of(first) == DECIMAL:
            first = decimal_of(scale_of(first))
        name = self._names[at] if at < len(self._names) else start[0].outputs[at].name
        return OutputColumn(name, first, any(case.nullable for case in cases))

    def _tell_types(self, rows: Rows) -> None:
        """Add a rule that starts the recursion from no row: types are known from a start, and not from the step."""
        heads = self.queries.heads
        none = heads.sure(heads.name("start"), rows.columns)
        variables = [heads.variable(column.name, column.nullable) for column in rows.columns]
        heads.rule(rows.name, variables, [ast.Atom(none, tuple(variables)), *or_null(heads, variables)])

    # What it may not be

    def _check(self) -> None:
        text, query = self.queries.text, self.query
        if not isinstance(query, exp.Union) or self._reads(query.left):
            raise text.unsupported(
                "a recursive query that is no `union` of a start and a step",
                self.node,
                "write `select ... union select ...`, of which only the second reads it",
            )
        if query.args.get("by_name"):
            remedy = "give the columns out in the same order in the start and in the step"
            raise text.unsupported(f"`union by name` in the recursive query `{self.name}`", query.right, remedy)
        for part in query.find_all(exp.Query):
            if limited(part) and self._reads(part):
                raise text.unsupported(
                    f"`limit` in the recursive query `{self.name}`",
                    part.args.get("limit") or part.args.get("offset"),
                    "limit what reads it",
                )
        for join in query.right.find_all(exp.Join):
            if join.side and isinstance(join.parent, exp.Select) and self._reads(join.parent):
                raise text.unsupported(
                    f"an outer join in the step of the recursive query `{self.name}`",
                    join,
                    "use an inner join: which rows are met by none is known once the recursion has ended",
                )
        for node in query.right.find_all(exp.Not, exp.Except):
            if self._reads(node.right if isinstance(node, exp.Except) else node):
                raise text.unsupported(
                    f"`{node.key}` over the recursive query `{self.name}` in its own step",
                    node,
                    "ask so in a query that reads it: what it does not have is known once the recursion has ended",
                )

    def _check_step(self, step: Sequence[SelectBlock], name: str, before: int) -> None:
        """Refuse a step that aggregates, or of `union all` one that does not go from one row to the next."""
        if any(block.grouping is not None for block in step):
            raise self.queries.text.unsupported(
                f"an aggregate in the step of the recursive query `{self.name}`",
                self.node,
                "aggregate over the recursive query, in a query that reads it",
            )
        if not self.every:
            self._check_growing(step, name, before)
            return
        within = any(
            isinstance(literal, ast.Atom) and literal.name == name
            for item in self.queries.heads.items[before:]
            if isinstance(item, ast.Rule)
            for literal in item.body
        )
        if within or any(len(_read(block, name)) != 1 for block in step):
            raise self.queries.text.unsupported(
                f"a step of `union all` that does not name the recursive query `{self.name}` once in `from`",
                self.node,
                "name it once in the `from` of each step, or write `union`",
            )
        self._check_growing(step, name, before)

    def _check_growing(self, step: Sequence[SelectBlock], name: str, before: int) -> None:
        """Refuse a step in which a row that comes could take away what the rows before it gave."""
        items = self.queries.heads.items[before:]
        reading = _reading(items, name)
        parts = [part for item in items if isinstance(item, ast.Rule) for part in nodes(_roots(item))]
        for block in step:
            parts += nodes(part for ways in block.scope.body.conditions for way in ways for part in way)
            parts += nodes(part for output in block.outputs for case in output.cases for part in case.literals)
        whats = [
            what
            for kind, what in ((ast.Negation, "rows that are not there"), (ast.Aggregate, "an aggregate, or a count,"))
            if any(isinstance(part, kind) and _named((part,)) & reading for part in parts)
        ]
        if any(isinstance(item, ast.Declaration) and item.name in reading for item in items):
            whats.insert(0, "a window function, or first rows,")
        if whats:
            raise self.queries.text.unsupported(
                f"{whats[0]} of the recursive query `{self.name}` in its own step",
                self.node,
                "ask so in a query that reads it: what it has is known once the recursion has ended",
            )

    def _reads(self, node: exp.Expr) -> bool:
        return any(table.name.casefold() == self.name.casefold() for table in node.find_all(exp.Table))

    # How often each row is there

    def _copies(self, rows: Rows, start: Sequence[SelectBlock], step: Sequence[SelectBlock]) -> Derived:
        """The bag of `union all`, whose rows are `rows`."""
        heads = self.queries.heads
        steps = [SelectBlock(b.scope, [*_outputs(b, rows), *b.outputs]) for b in step]
        begun, stepped = (rows_of(self.queries, b, word=w).rows for b, w in ((start, "start"), (steps, "step")))
        derived, copies = heads.name("derived"), heads.name("copies")
        row, before = ([heads.variable(c.name, c.nullable) for c in rows.columns] for _ in range(2))
        c, k, m, n = (heads.variable(name, False) for name in ("copies", "times", "copies", "derived"))
        ways: list[ast.Literal] = [
            ast.Atom(stepped.name, (*before, *row, *([k] if stepped.bag else []))),
            ast.Atom(copies, (*before, m)),
            *or_null(heads, [*before, *row]),
        ]
        heads.aggregate(derived, "sum", product_of([k, m] if stepped.bag else [m]), row, ways)
        starts = ast.Atom(begun.name, (*row, *([c] if begun.bag else [])))
        given: ast.Term = c if begun.bag else number(1)
        follows, null = ast.Atom(derived, (*row, n)), or_null(heads, row)
        none = [
            ast.Negation(ast.Atom(atom.name, (*row, *(ast.Wildcard() for _ in atom.args[len(row) :]))))
            for atom in (starts, follows)
        ]
        heads.rule(copies, [*row, added(given, n)], [starts, follows, *null], functional=True)
        heads.rule(copies, [*row, given], [starts, none[1], *null], functional=True)
        heads.rule(copies, [*row, n], [ast.Atom(rows.name, tuple(row)), follows, none[0], *null], functional=True)
        return Derived(Rows.of(copies, rows.columns, bag=True))


def _roots(rule: ast.Rule) -> list[ast.Literal | ast.Term]:
    """What a rule reads."""
    return [*rule.body, *(head.value for head in rule.heads if isinstance(head, ast.Assignment))]


def _named(roots: Iterable[ast.Literal | ast.Term]) -> set[str]:
    """The relations that are read."""
    return {part.name for part in nodes(roots) if isinstance(part, ast.Atom)}


def _reading(items: Sequence[ast.Item], name: str) -> set[str]:
    """A head, and those whose rules read it, directly or through others."""
    found, rules = {name}, [item for item in items if isinstance(item, ast.Rule)]
    while more := {head.name for rule in rules if _named(_roots(rule)) & found for head in rule.heads} - found:
        found |= more
    return found


def _read(block: SelectBlock, name: str) -> list[tuple[ast.Variable, ...]]:
    """The columns of a head, for each atom of it in the body of a block."""
    return [atom.variables for atom in block.scope.body.atoms if atom.rows.name == name]


def _outputs(block: SelectBlock, rows: Rows) -> list[Output]:
    """The columns of the row that a step begins at."""
    (variables,) = _read(block, rows.name)
    return [
        Output(column.name, [Case((), variable, column.type, column.nullable)], block.outputs[0].node)
        for column, variable in zip(rows.columns, variables, strict=True)
    ]
