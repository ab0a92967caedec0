"""`from`: tables, views, subqueries and their joins, as atoms and conditions of the body.

    t, u            an atom each
    t join u on c   the same, and the condition c
    (select ...)    merged into the body where nothing groups its rows; else the atom of its head
    left join ...   the atom of a head with the rows of the join (`outer_joins.py`)
    semi join ...   the condition that a head has a row for what `on` names

In `using` and `natural` joins a column that both sides have is one column. A join is of the tables behind the last
comma: those before it are beside its rows, and a name after `on` is theirs if no table of the join has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from lftj.language import ast
from lftj.language.diagnostics import did_you_mean
from lftj.language.types import NUMBER
from lftj.sql.branches import renamed
from lftj.sql.cases import is_null, split
from lftj.sql.catalogue import unlike
from lftj.sql.outer_joins import outer_join, semi_join, side_of
from lftj.sql.query_scope import Beside, Derived, FromTable, Outside, QueryScope
from lftj.sql.scope import Case, Conjunction
from lftj.sql.series import series
from lftj.sql.shared_columns import equality, merge, shared_columns
from lftj.sql.sql_expressions import conjuncts, holds
from lftj.sql.view import Rows, column_of
from lftj.values.faults import counted

if TYPE_CHECKING:
    from lftj.sql.select_block import SelectBlock

# What to do about a table that is not there; users of DuckDB name frames of Python.
_CREATE = "create it first, or correct the name; a frame or a file is loaded: `create table {name} (...)`, then "
_CREATE += '`db.load("{name}", source)`'


def add_from(scope: QueryScope, select: exp.Expr) -> None:
    """Add the tables that a select reads."""
    first = select.args.get("from_")
    if first is not None:
        add_joined(scope, first.this, select.args.get("joins") or ())


def add_joined(scope: QueryScope, first: exp.Expr, joins: Sequence[exp.Join]) -> None:
    """Add a table and those that are joined to it; `join` binds closer than a comma."""
    parts: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
    for join in joins:
        if join.meta.get("word") or any(join.args.get(name) for name in ("method", "side", "kind", "on", "using")):
            parts[-1][1].append(join)
        else:
            parts.append((join.this, []))
    for table, joined in parts:
        own = [*(table.args.get("joins") or ()), *joined] if isinstance(table, exp.Table) else joined
        if scope.sources and any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in own):
            _add_apart(scope, table, joined)
            continue
        before = len(scope.sources)
        add_table(scope, table)
        for join in joined:
            _join(scope, join, before)


def _add_apart(scope: QueryScope, first: exp.Expr, joins: Sequence[exp.Join]) -> None:
    """Add tables whose outer joins are among themselves: a row of one that matches nothing has no null for others."""
    inner = QueryScope(scope.queries, Beside(scope))
    add_joined(inner, first, joins)
    for source in inner.sources:
        check_name(scope, source, first)
    side_of(inner, first).add(scope)


def _join(scope: QueryScope, join: exp.Join, first: int) -> None:
    """Join a table to those of the scope from the `first` on; those before it are in front of a comma."""
    method, side, kind = (str(join.args.get(name) or "").upper() for name in ("method", "side", "kind"))
    semi = kind in ("SEMI", "ANTI")
    if method not in ("", "NATURAL") or not (semi or kind in ("", "INNER", "OUTER", "CROSS")) or (semi and side):
        shown = " ".join(part.lower() for part in (method, side * semi, kind) if part)
        remedy = f"write `{kind.lower()} join`" if semi else "use `exists`, or an inner or outer join"
        raise scope.source.unsupported(f"`{shown} join`", join, remedy)
    conditional = (side or kind == "INNER" or join.meta.get("word")) and not method and kind != "CROSS"
    if conditional and not join.args.get("on") and not join.args.get("using"):
        raise without_condition(scope, join)
    if side or semi:
        right = QueryScope(scope.queries, Beside(scope))
        if not isinstance(join.this, exp.Lateral):
            add_table(right, join.this)
        elif semi:
            remedy = "use an inner or left join, or `exists`"
            raise scope.source.unsupported(f"`lateral` in `{kind.lower()} join`", join.this, remedy)
        if side:
            outer_join(scope, join, side, right, first)
        else:
            for source in right.sources:
                check_name(scope, source, join.this)
            semi_join(scope, join, right, first, anti=kind == "ANTI")
        return
    before = len(scope.sources)
    with scope.joining(first):
        add_joined(scope, join.this, ())
    for shared in shared_columns(scope, join, scope.sources[first:before], scope.sources[before:]):
        scope.body.conditions.append(holds(equality(scope, shared, shared.left.cases, shared.right.cases), scope))
        merge(shared, shared.left.cases)
    if join.args.get("on") is not None:
        with scope.joining(first):
            for part in conjuncts(join.args["on"]):
                scope.body.conditions.append(holds(part, scope))


def without_condition(scope: QueryScope, join: exp.Join) -> Exception:
    """The error to raise about a join that does not say which rows belong together."""
    return scope.source.error(
        "a join without `on` or `using`",
        join.this,
        why="nothing says which rows belong together",
        remedy="add `on a = b` or `using (a)`; `cross join` has each row with each",
    )


# Tables


def add_table(scope: QueryScope, node: exp.Expr) -> None:
    """Add a table, a view or a subquery of `from`."""
    for name in ("sample", "pivots", "version", "ordinality", "partition"):
        if node.args.get(name):
            raise scope.source.unsupported(f"`{name.removesuffix('s')}` of a table", node)
    alias = node.args.get("alias")
    columns = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
    before = len(scope.sources)
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Values):
        add_named(scope, node, columns)
    elif _has_tables(node):
        if alias is not None:
            raise scope.source.unsupported("a name for a join in parentheses", alias, "write `(select ...) as name`")
        add_joined(scope, node.this, () if isinstance(node.this, exp.Table) else node.this.args.get("joins") or ())
    elif isinstance(node, exp.Subquery | exp.Values | exp.Table):  # of values in parentheses of a join, a table of them
        query = node if isinstance(node, exp.Values) else node.this
        _add_query(scope, query, node.alias, columns, Beside(scope), node)
    elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        _add_query(scope, node.this.this, node.alias, columns, scope, node)
    else:
        raise scope.source.unsupported(f"`{node.sql('duckdb')}` in `from`", node, "read a table, a view or a subquery")
    if isinstance(node, exp.Table) and node.args.get("joins"):
        for join in node.args["joins"]:
            _join(scope, join, before)


def _has_tables(node: exp.Expr) -> bool:
    """Whether the parentheses have tables within, `(a join b on ...)`, and no query."""
    within = node.this
    if not isinstance(node, exp.Subquery):
        return False
    if isinstance(within, exp.Subquery):
        return bool(within.args.get("joins") or within.args.get("alias")) or _has_tables(within)
    return isinstance(within, exp.Table)


def add_named(scope: QueryScope, node: exp.Table, columns: Sequence[str]) -> None:
    """Add a table, a view or a query of `with` by its name, or a series."""
    name = node.name
    if isinstance(node.this, exp.GenerateSeries):
        values = series(scope.queries, node.this)
        source = scope.add(values, node.alias or values.columns[0].name, columns or [node.alias] * bool(node.alias))
        check_names(scope, columns, len(source.columns), node)
        append(scope, source, node)
        return
    if not isinstance(node.this, exp.Identifier) or node.args.get("db") is not None:
        raise scope.source.unsupported(f"`{node.sql('duckdb')}` in `from`", node, "name a table or a view")
    called = node.alias or name
    common = scope.queries.common(name)
    if common is not None:
        common.add(scope, called, columns, node)
        return
    table = scope.queries.catalogue.table(name)
    if table is None:
        raise scope.source.error(
            f"unknown table `{name}`",
            node,
            why="no table, view or query of `with` has this name",
            remedy=did_you_mean(name, scope.queries.names, _CREATE.format(name=name)),
        )
    made = tuple(column_of(column.name, column.type) for column in table.columns)
    names = [column.name for column in made]
    key = tuple(names.index(part) for part in table.key) if table.key and not table.bag else None
    check_names(scope, columns, len(made), node)
    rows = Rows.of(table.name, made, bag=table.bag, key=key)
    append(scope, scope.add(Derived(rows), called, columns), node)


def _add_query(
    scope: QueryScope, query: exp.Expr, name: str, columns: Sequence[str], around: Outside, node: exp.Expr
) -> None:
    queries = scope.queries
    block = queries.block(query, around)
    if block is not None and block.mergeable:
        source = merged(scope, block, name, columns, lateral=around is scope)
    else:
        derived = queries.rows_of(query, around) if block is None else queries.rows_of_block(block)
        source = scope.add(derived, name, columns)
    check_names(scope, columns, len(source.columns), node)
    append(scope, source, node)


def append(scope: QueryScope, source: FromTable, node: exp.Expr) -> None:
    """Add a table to `from`; an error if another one has its name."""
    check_name(scope, source, node)
    scope.sources.append(source)


def check_name(scope: QueryScope, source: FromTable, node: exp.Expr) -> None:
    """Raise an error if another table of `from` has the name of this one."""
    if source.name and any(other.name.casefold() == source.name.casefold() for other in scope.sources):
        raise scope.source.error(
            f"two tables named `{source.name}`",
            node,
            why="a column is named by the table that it is of",
            remedy=f"give one of them another name, as in `{source.name} as other`",
        )


def check_names(scope: QueryScope, columns: Sequence[str], width: int, node: exp.Expr) -> None:
    """Raise an error if `node` names more columns than there are."""
    if len(columns) > width:
        raise scope.source.error(
            f"{len(columns)} names for {counted(width, 'column')}",
            node.args.get("alias") or node,
            why="each column has one name",
            remedy="drop names",
        )


def merged(
    scope: QueryScope, block: SelectBlock, name: str, columns: Sequence[str], *, lateral: bool = False
) -> FromTable:
    """Add the body of a subquery; the table that its columns are in `from`."""
    inner = block.scope
    names: dict[str, ast.Term] = {}
    for parameter in inner.parameters.values():
        outside = parameter.outside[0].term
        if lateral and (len(parameter.outside) > 1 or not isinstance(outside, ast.Variable)):
            # Its name says that nothing need read it: what the subquery gives out may not be asked for.
            names[parameter.variable.name] = given = ast.Variable(f"_{parameter.variable.name}")
            scope.heads.nullable[given.name] = parameter.nullable
            scope.body.conditions.append(
                [_is_case(scope, given, parameter.type, case) for one in parameter.outside for case in split(one)]
            )
        elif outside is not None:
            names[parameter.variable.name] = outside

    def literals(found: Sequence[ast.Literal]) -> tuple[ast.Literal, ...]:
        return tuple(renamed(literal, names) for literal in found)

    scope.body.atoms += [atom.renamed(names) for atom in inner.body.atoms]
    scope.body.conditions += [[literals(part) for part in alternatives] for alternatives in inner.body.conditions]
    source = FromTable(name, {})
    for at, output in enumerate(block.outputs):
        called = columns[at] if at < len(columns) else output.name
        cases = [
            replace(
                case, literals=literals(case.literals), term=None if case.term is None else renamed(case.term, names)
            )
            for case in output.cases
        ]
        source.columns[unlike(called, source.columns)] = possible(scope, cases)
    return source


def _is_case(scope: QueryScope, given: ast.Variable, type_: str, case: Case) -> Conjunction:
    """That a variable has the value of a case, which is null or never is.

    An equality gives it no null, as null equals nothing: an atom does, over a relation that has nothing else.
    """
    if case.term is not None:
        return (*case.literals, ast.Comparison("=", given, case.term))
    null = scope.heads.constants([ast.Constant(None, type_ or NUMBER)])
    return (*case.literals, is_null(given), ast.Atom(null, (given,)))


def possible(scope: QueryScope, cases: list[Case]) -> list[Case]:
    """The cases that the conditions of the body leave; the literals of a single one hold then anyway."""
    if len(cases) == 1:
        return cases
    left = [case for case in cases if scope.body.branches(scope.heads.nullable, [case.literals])]
    return [replace(left[0], literals=())] if len(left) == 1 else left or cases
