"""The aggregates of a query with groups, each a head that is keyed by the groups.

An aggregate folds *contributions*: a branch of the body with the conditions of its `filter`, and one case of what it
takes. `sum(case when c then x else 0 end)` has one contribution, x where c holds: what contributes 0 is left out. Where
there are several, each is a head, and another adds them up. Null contributes nothing.

    sum(x)            @v.sum1[k] = sum x : { t(k, x) }                    with copies, of a bag: sum x * copies
    avg(x)            @v.mean1[k] = mean x : { t(k, x) }, or the sum by the count where rows repeat
    count(distinct x) @v.distinct1(k, x) :- t(k, x).   @v.count2[k] = count : { @v.distinct1(k, x) }
    string_agg(x)     joined_texts.py
    arg_max(x, y)     @v.max1[k] = max y : { t(k, x, y) }            @v.min2[k] = min x : { t(k, x, y), @v.max1(k, y) }
    mode(x)           the same of y, how often the group has x: @v.count1[k, x] = count : { t(k, x) }

A group in which nothing contributes has null, or 0 of a count: a head with both reads those that have something, and
negates it for the others. Without `group by` there is one group, of no rows too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, COUNTED, word_of
from lftj.language.types import DECIMAL, DURATION, FLOAT, NUMBER, SYMBOL, UNSIGNED
from lftj.language.visitors import Node
from lftj.sql.branches import Branch, RowAtom, may_be_null
from lftj.sql.cases import is_null, not_null, null_case
from lftj.sql.constants import constant
from lftj.sql.conversions import shown
from lftj.sql.heads import or_null
from lftj.sql.joined_texts import TextOrder, as_text, check_downwards, joined_texts, written_order
from lftj.sql.places import SqlText
from lftj.sql.scope import Case, Conjunction
from lftj.sql.sql_expressions import holds, value
from lftj.sql.view import OutputColumn, Rows
from lftj.sql.whole_numbers import product_of
from lftj.sql.written_quantiles import CONT, check_between, fraction_given, taken_as, with_fraction_of
from lftj.values.type_table import family_of

if TYPE_CHECKING:
    from lftj.sql.grouping import Grouping

_OPS: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
    exp.AnyValue: "min",
    exp.ArgMax: "min",
    exp.ArgMin: "min",
    exp.Mode: "min",
    exp.GroupConcat: "cat",
    exp.Median: "quantile",
    exp.Quantile: "quantile",
    exp.PercentileCont: "quantile",
    exp.PercentileDisc: "quantile",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}
# Those that take a value of the rows with the greatest or the least of another: the least of several such values.
_TOPS: dict[type[exp.Expr], str] = {exp.ArgMax: "max", exp.ArgMin: "min"}
_OF_NUMBERS = {
    "sum": "sum",
    "mean": "mean",
    **dict.fromkeys(("var_samp", "var_pop"), "variance"),
    **dict.fromkeys(("stddev_samp", "stddev_pop"), "standard deviation"),
}
_AS_FLOAT = {NUMBER: "itof", UNSIGNED: "utof", DECIMAL: "to_float"}
ZERO = ast.Constant(0, NUMBER)


class KeyedBranch(NamedTuple):
    """A branch of the body, and the terms of the key in it: the parameters (`outside`), then the groups (`keys`)."""

    branch: Branch
    outside: tuple[ast.Term, ...]
    keys: tuple[ast.Term, ...]

    @property
    def terms(self) -> tuple[ast.Term, ...]:
        """All of the key."""
        return (*self.outside, *self.keys)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, of those that are known or not."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls):
        return is_aggregate(node.this)
    return isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)


def check_alone(taken: exp.Expr, source: SqlText) -> None:
    """Refuse an aggregate within what another takes."""
    for part in taken.walk(prune=lambda node: isinstance(node, exp.Query)):  # one in a subquery is its own
        if is_aggregate(part):
            raise source.error(
                f"`{source.call(part)}` within another aggregate",
                part,
                why="an aggregate folds rows, and the other has one value for a group",
                remedy="compute the inner one in a subquery",
            )


@dataclass(slots=True)
class WrittenAggregate:
    """An aggregate as it is written. `cases`: of what it takes (of `count(*)` none) · `filter`: alternatives.

    `top`: "max" or "min", if it takes only from rows with the extreme of another value · `by`: the cases of that.
    `most`: it takes only the values that most rows have · `order`, `separator`: of texts that are joined.
    """

    op: str
    distinct: bool
    cases: list[Case]
    filter: list[Conjunction]
    type: str
    top: str = ""
    by: list[Case] = field(default_factory=list)
    most: bool = False
    order: list[TextOrder] = field(default_factory=list)
    separator: str = ""


@dataclass(slots=True)
class _Found:
    """What contributes. `zeros`: what contributes 0 to a sum · `always`: every row contributes, with `zeros`."""

    contributions: list[tuple[KeyedBranch, ast.Term]] = field(default_factory=list)
    zeros: list[KeyedBranch] = field(default_factory=list)
    always: bool = True


class AggregateHeads:
    """The heads of the aggregates of one grouping."""

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self.heads = grouping.heads
        self.written: dict[str, WrittenAggregate] = {}

    # What is written

    def read(self, node: exp.Expr) -> WrittenAggregate:
        """An aggregate; what it takes is translated once."""
        text = node.sql("duckdb")
        if text not in self.written:
            self.written[text] = self._translated(node)
        return self.written[text]

    def _translated(self, node: exp.Expr) -> WrittenAggregate:
        rows, source = self.grouping.rows, self.grouping.rows.source
        conditions: list[Conjunction] = [()]
        inner = node
        while isinstance(inner, exp.Filter | exp.IgnoreNulls):
            if isinstance(inner, exp.Filter):
                conditions = holds(inner.expression.this, rows)
            inner = inner.this
        op = _OPS.get(type(inner), "")
        if not op or len(inner.expressions) > 0:
            name = source.word(inner)
            raise source.unsupported(
                f"the aggregate `{name}`" if not op else f"`{name}` of several columns",
                inner,
                "use sum, count, avg, min, max, arg_max, arg_min, stddev, variance, median, quantile_cont, "
                "quantile_disc, mode or string_agg",
            )
        taken = inner.this
        if op == "cat" and isinstance(taken, exp.Order):
            taken = taken.this
        distinct = isinstance(taken, exp.Distinct)
        if distinct:
            if len(taken.expressions) > 1:
                raise source.unsupported("an aggregate of several distinct columns", inner, "use a subquery")
            taken = taken.expressions[0]
        self._check_belongs(node)
        check_alone(taken, source)
        if isinstance(taken, exp.Star):
            return WrittenAggregate(op, False, [], conditions, NUMBER)
        cases = value(taken, rows)
        if op == "cat":
            return self._joined(inner, taken, cases, conditions, distinct=distinct)
        top = _TOPS.get(type(inner), "")
        by = self._compared(inner) if top else []
        type_ = next((case.type for case in cases if case.type), NUMBER)
        if op == "quantile":
            return self._quantile(inner, cases, conditions, type_, distinct=distinct)
        domain = AGGREGATES[op].operand
        if op in _OF_NUMBERS and family_of(type_) not in domain and type_ not in domain:
            raise source.error(
                f"`{source.call(inner)}` of {shown(type_)}",
                inner,
                why=f"only numbers {'and intervals ' * (DURATION in domain)}have a {_OF_NUMBERS[op]}",
                remedy="convert it with `cast`, or count it",
            )
        repeats = any(row.copies is not None for row in rows.body.atoms) and not distinct
        if repeats and type_ == UNSIGNED and op in ("sum", "mean"):
            raise source.unsupported(  # what a row adds is a product, and those of unsigned numbers wrap
                f"`{'avg' if op == 'mean' else op}` of ubigint over rows that may repeat",
                inner,
                "cast it to bigint, or give the table a primary key",
            )
        most = isinstance(inner, exp.Mode)
        distinct &= most or op not in ("min", "max")
        return WrittenAggregate(op, distinct, cases, conditions, type_, top, by, most)

    def _quantile(
        self, node: exp.Expr, cases: list[Case], conditions: list[Conjunction], type_: str, *, distinct: bool
    ) -> WrittenAggregate:
        """A median, or another quantile."""
        rows, source = self.grouping.rows, self.grouping.rows.source
        op, taken = taken_as(node, type_)
        if taken is not node.this:
            cases = value(taken, rows)
            type_ = next((case.type for case in cases if case.type), type_)
        if op == CONT:
            check_between(node, type_, source)
        given = fraction_given(node, source)
        op = with_fraction_of(op, given, [] if given is None else value(given, rows), source)
        return WrittenAggregate(op, distinct, cases, conditions, type_)

    def _joined(
        self, node: exp.Expr, taken: exp.Expr, cases: list[Case], conditions: list[Conjunction], *, distinct: bool
    ) -> WrittenAggregate:
        """A `string_agg`, of what is no text as texts."""
        rows, source = self.grouping.rows, self.grouping.rows.source
        separator, ordered = written_order(node, distinct, source)
        orders = []
        for by in ordered:
            check_alone(by.this, source)
            found = TextOrder(value(by.this, rows), bool(by.args.get("desc")), bool(by.args.get("nulls_first")))
            check_downwards(found, by, source)
            orders.append(found)
        if any(case.type not in ("", SYMBOL) for case in cases):
            cases = value(as_text(taken), rows)
        return WrittenAggregate("cat", distinct, cases, conditions, SYMBOL, order=orders, separator=separator)

    def _compared(self, node: exp.Expr) -> list[Case]:
        """The value by which `arg_max` and `arg_min` choose rows."""
        source = self.grouping.rows.source
        if node.args.get("count") is not None:
            raise source.unsupported(
                f"`{source.call(node)}`, a list of values", node, "rank the rows by `row_number() over (...)`"
            )
        check_alone(node.expression, source)
        return value(node.expression, self.grouping.rows)

    def _check_belongs(self, node: exp.Expr) -> None:
        """Refuse an aggregate of columns of the query around only, of which it is an aggregate by the standard."""
        rows = self.grouping.rows
        # A name alone in a subquery of the aggregate may be one of that.
        columns = [c for c in node.find_all(exp.Column) if c.table or c.parent_select is node.parent_select]
        if rows.around is None or any(rows.own(column) is not None for column in columns):
            return
        around = next((column for column in columns if rows.around.has(column)), None)
        if around is None:
            return
        raise rows.source.unsupported(
            f"`{rows.source.call(node)}` over columns of the query around only",
            node,
            f"by the standard it is an aggregate of that query, whose column `{around.sql('duckdb')}` is: "
            "compute it there, or in a subquery of `from`",
        )

    def parts(self) -> Iterator[Node]:
        """The literals and terms of what the aggregates take, and of their filters."""
        for written in self.written.values():
            yield from (part for literals in written.filter for part in literals)
            cases = (*written.cases, *written.by, *(case for order in written.order for case in order.cases))
            yield from (part for case in cases for part in case.parts)

    # QueryHeads

    def add(self, node: exp.Expr) -> Case:
        """Make the head of an aggregate and add it to what is over the groups; the value."""
        written = self.read(node)
        if AGGREGATES[written.op].by_rows and all(case.term is None and not case.type for case in written.cases):
            return null_case(())
        found = self._contributions(written)
        name, nullable = self._head(written, found)
        type_ = NUMBER if written.op == "count" else AGGREGATES[written.op].result_of(written.type)
        word = word_of(written.op)
        column = OutputColumn(word, type_, nullable)
        variable = self.heads.variable(word, nullable)
        columns = (*self.grouping.columns, column)
        rows = Rows.of(name, columns, bag=False, key=tuple(range(len(columns) - 1)))
        self.grouping.add(rows, (*self.grouping.variables, variable))
        return Case((), variable, type_, nullable)

    def _contributions(self, written: WrittenAggregate) -> _Found:
        found = _Found(always=written.filter == [()])
        nullable = self.heads.nullable
        if not written.cases:
            one: ast.Term = ast.Constant(1, NUMBER)
            found.contributions = [(choice, one) for choice in self.grouping.choices(written.filter)]
            return found
        if written.op == "cat":
            found.always = False
            return found
        if written.top:
            found.always, found.contributions = False, self._of_tops(written)
            return found
        for case in written.cases:
            if case.term is None:
                found.always &= not self.grouping.choices(written.filter, [case.literals])
                continue
            for choice in self.grouping.choices(written.filter, [case.literals], of=[case.term]):
                term = choice.branch.term(case.term)
                if written.op == "sum" and isinstance(term, ast.Constant) and term.value == 0:
                    found.zeros.append(choice)
                    continue
                if case.nullable and may_be_null(term, choice.branch, nullable):
                    found.always = False
                    choice = choice._replace(branch=choice.branch.with_literals(not_null(term)))
                found.contributions.append((choice, term))
        if written.distinct:
            found.contributions = self._distinct(found.contributions, written)
        if written.most:
            found.contributions = self._of_most(found.contributions, written)
        return found

    def _of_most(
        self, contributions: Sequence[tuple[KeyedBranch, ast.Term]], written: WrittenAggregate
    ) -> list[tuple[KeyedBranch, ast.Term]]:
        """The contributions of the values that most rows of a group have, each once."""
        if not contributions:
            return []
        columns, counts = self._numbers(contributions, written.type)
        variables = [self.heads.variable(column.name, column.nullable) for column in columns]
        number, most = self.heads.variable("count", False), self.heads.name("max")
        atom = RowAtom(
            Rows.of(counts, (*columns, OutputColumn("count", NUMBER, False)), bag=False), (*variables, number)
        )
        *key, value = variables
        self.heads.aggregate(most, "max", number, key, [atom.atom])
        branch = Branch((atom,), (ast.Atom(most, (*key, number)), *or_null(self.heads, key)), {})
        outside = len(self.grouping.parameters)
        return [(KeyedBranch(branch, tuple(key[:outside]), tuple(key[outside:])), value)]

    def _numbers(
        self, parts: Sequence[tuple[KeyedBranch, ast.Term]], type_: str
    ) -> tuple[tuple[OutputColumn, ...], str]:
        """(the columns of the groups and a value, the head that says how many rows of a group have it)."""
        columns = (*self.grouping.columns, OutputColumn("value", type_, False))
        counted = [self.heads.counted((*choice.terms, term), choice.branch) for choice, term in parts]
        return columns, self.heads.added_up(counted, len(columns), columns)

    def _of_tops(self, written: WrittenAggregate) -> list[tuple[KeyedBranch, ast.Term]]:
        """The contributions of rows with the extreme of another value in their group; neither value is null."""
        rows = []
        for case, compared in product(written.cases, written.by):
            if case.term is None or compared.term is None:
                continue
            for choice in self.grouping.choices(
                written.filter, [case.literals], [compared.literals], of=[case.term, compared.term]
            ):
                term, by = choice.branch.term(case.term), choice.branch.term(compared.term)
                known = [
                    not_null(part)
                    for part, one in ((term, case), (by, compared))
                    if one.nullable and may_be_null(part, choice.branch, self.heads.nullable)
                ]
                rows.append((choice._replace(branch=choice.branch.with_literals(*known)), term, by))
        tops = [self.heads.folded(written.top, by, choice.terms, choice.branch) for choice, _, by in rows]
        name = self.heads.added_up(tops, len(self.grouping.columns), self.grouping.columns, written.top)
        found = []
        for choice, term, by in rows:
            key, literals = self._matched(choice.terms)
            top = by if isinstance(by, ast.Variable) else self.heads.variable(written.top, False)
            literals += [ast.Atom(name, (*key, top)), *([] if top is by else [ast.Comparison("=", by, top)])]
            found.append((choice._replace(branch=choice.branch.with_literals(*literals)), term))
        return found

    def _matched(self, terms: Sequence[ast.Term]) -> tuple[list[ast.Term], list[ast.Literal]]:
        """Arguments of an atom that have the values of a key, of which null matches null, and what says so."""
        key, literals = list[ast.Term](), or_null(self.heads, terms)
        for term in terms:
            if isinstance(term, ast.Constant) and term.value is None:
                term = self.heads.variable("key", True)
                literals.append(is_null(term))
            key.append(term)
        return key, literals

    def _distinct(
        self, contributions: Sequence[tuple[KeyedBranch, ast.Term]], written: WrittenAggregate
    ) -> list[tuple[KeyedBranch, ast.Term]]:
        """The contributions without repeats: one, over a head with the values of each group."""
        if not contributions:
            return []
        name = self.heads.name("distinct")
        for choice, term in contributions:
            self.heads.rule(name, (*choice.terms, term), choice.branch.body)
        columns = (*self.grouping.columns, OutputColumn("x", written.type, False))
        variables = [self.heads.variable(column.name, column.nullable) for column in columns]
        atom = RowAtom(Rows.of(name, columns, bag=False), tuple(variables))
        outside = len(self.grouping.parameters)
        branch = Branch((atom,), tuple(or_null(self.heads, variables[:-1])), {})
        return [(KeyedBranch(branch, tuple(variables[:outside]), tuple(variables[outside:-1])), variables[-1])]

    def _head(self, written: WrittenAggregate, found: _Found) -> tuple[str, bool]:
        """The head of an aggregate with a row for each group, and whether its value may be null."""
        parts = found.contributions
        if written.op == "count":
            name = self._counted(parts)
            always = found.always or (self.grouping.always and bool(name))
            return self._complete(name, ZERO, always=always), False
        type_ = AGGREGATES[written.op].result_of(written.type)
        if written.op == "mean" and (len(parts) > 1 or any(choice.branch.copies for choice, _ in parts)):
            name = self._mean(parts, written.type)
        elif written.op == "sum":
            name = self._added(parts, written.type)
            if self.grouping.always:
                return self._of_all(name, found, type_), not self.grouping.partial
            if found.zeros:
                name = self._with_zero(name, found, constant(0, type_))
        elif written.op == "cat":
            name = joined_texts(
                self.grouping,
                written.cases,
                written.filter,
                written.order,
                written.separator,
                distinct=written.distinct,
            )
        elif AGGREGATES[written.op].takes_counted:
            name = self._of_counted(written.op, written.type, parts)
        else:
            folded = [self.heads.folded(written.op, term, choice.terms, choice.branch) for choice, term in parts]
            name = self.heads.added_up(folded, len(self.grouping.columns), self.grouping.columns, written.op)
        always = found.always and not self.grouping.single and AGGREGATES[written.op].least == 1
        nullable = not (name and (always or self.grouping.partial))
        return self._complete(name, ast.Constant(None, type_), always=always), nullable

    def _added(self, parts: Sequence[tuple[KeyedBranch, ast.Term]], type_: str) -> str:
        """The head of a sum; "" if nothing contributes."""
        folded = []
        for choice, term in parts:
            copies = choice.branch.copies
            if type_ == NUMBER:
                term = product_of([term, *copies])
            elif copies:
                times = product_of(copies)
                term = ast.Functor("*", (term, ast.Functor("itof", (times,)) if type_ == FLOAT else times))
            folded.append(self.heads.folded("sum", term, choice.terms, choice.branch))
        return self._up(folded)

    def _counted(self, parts: Sequence[tuple[KeyedBranch, ast.Term]]) -> str:
        """The head of how many rows contribute; "" if none does."""
        return self._up([self.heads.counted(choice.terms, choice.branch) for choice, _ in parts])

    def _up(self, folded: Sequence[str]) -> str:
        return self.heads.added_up(folded, len(self.grouping.columns), self.grouping.columns)

    def _mean(self, parts: Sequence[tuple[KeyedBranch, ast.Term]], type_: str) -> str:
        """The head of a mean: the sum by the number of rows."""
        sums, counts = self._added(parts, type_), self._counted(parts)
        if not sums:
            return ""
        name, (key, _) = self.heads.name("mean"), self._key()
        total, number = self.heads.variable("sum", False), self.heads.variable("count", False)
        body: list[ast.Literal] = [
            ast.Atom(sums, (*key, total)),
            ast.Atom(counts, (*key, number)),
            ast.Comparison(">", number, ZERO),
        ]
        self.heads.rule(name, (*key, _quotient(total, number, type_)), [*body, *or_null(self.heads, key)])
        return name

    def _of_counted(self, op: str, type_: str, parts: Sequence[tuple[KeyedBranch, ast.Term]]) -> str:
        """The head of a quantile or a variance, to which a row with copies counts as often; "" if nothing contributes.

        Of several contributions the numbers of rows are added up first, by group and value.
        """
        heads, grouping = self.heads, self.grouping
        if len(parts) < 2:
            for choice, term in parts:
                copies = choice.branch.copies
                operand = ast.Functor(COUNTED, (term, product_of(copies))) if copies else term
                return heads.folded(op, operand, choice.terms, choice.branch)
            return ""
        _, counts = self._numbers(parts, type_)
        name = heads.name(op)
        key = [heads.variable(column.name, column.nullable) for column in grouping.columns]
        value, number = heads.variable("value", False), heads.variable("count", False)
        operand = ast.Functor(COUNTED, (value, number))
        heads.aggregate(name, op, operand, key, [ast.Atom(counts, (*key, value, number))])
        return name

    # Groups in which nothing contributes

    def _of_all(self, name: str, found: _Found, type_: str) -> str:
        """The sum of all rows, null if there are none; the engine's sum of none is 0."""
        made = self.heads.name("total")
        total, number = self.heads.variable("sum", False), self.heads.variable("count", False)
        contributing = [*found.contributions, *((choice, ZERO) for choice in found.zeros)]
        count = self.rows_of_groups() if found.always else self._counted(contributing)
        atoms: list[ast.Literal] = [ast.Atom(count, (number,))] if count else []
        if count and name:
            some = (ast.Atom(name, (total,)), *atoms, ast.Comparison(">", number, ZERO))
            self.heads.rule(made, (total,), some)
        elif count:
            self.heads.rule(made, (constant(0, type_),), (*atoms, ast.Comparison(">", number, ZERO)))
        if not self.grouping.partial:
            nothing = (*atoms, ast.Comparison("=", number, ZERO)) if count else ()
            self.heads.rule(made, (ast.Constant(None, type_),), nothing)
        return self.heads.sure(made, [OutputColumn("sum", type_, True)])

    def _with_zero(self, name: str, found: _Found, value: ast.Term) -> str:
        """A sum with 0 for the groups in which only zeros contribute."""
        made = self.heads.name("total")
        key, null_too = self._key()
        lacking = self._copied(name, made) if name else []
        if found.always:
            groups = self.grouping.group(key)
        else:
            groups = [ast.Atom(self._counted([(choice, ZERO) for choice in found.zeros]), (*key, ast.Wildcard()))]
        self.heads.rule(made, (*key, value), [*groups, *null_too, *(part(key) for part in lacking)])
        return made

    def _copied(self, name: str, made: str) -> list[Callable[[Sequence[ast.Term]], ast.Literal]]:
        """Add the rows of a head to another; what says that a group is not among them."""
        key, _ = self._key()
        result = self.heads.variable("result", False)
        self.heads.rule(made, (*key, result), [ast.Atom(name, (*key, result))])
        return [lambda group: ast.Negation(ast.Atom(name, (*group, ast.Wildcard())))]

    def _complete(self, name: str, nothing: ast.Term, *, always: bool) -> str:
        """A head with `nothing` for the groups that are not in `name`; `always`: all are, of those that have rows."""
        if name and (self.grouping.partial or (always and not self.grouping.by_domain)):
            return name
        made = self.heads.name("total")
        key, null_too = self._key()
        lacking = self._copied(name, made) if name else []
        groups = self.grouping.group(key)
        self.heads.rule(made, (*key, nothing), [*groups, *null_too, *(part(key) for part in lacking)])
        return made

    def rows_of_groups(self) -> str:
        """The head of how many rows each group has."""
        return self._counted([(choice, ZERO) for choice in self.grouping.choices()])

    def _key(self) -> tuple[list[ast.Variable], list[ast.Literal]]:
        key = [self.heads.variable(column.name, column.nullable) for column in self.grouping.columns]
        return key, or_null(self.heads, key)


def _quotient(total: ast.Term, number: ast.Term, type_: str) -> ast.Term:
    """A sum by a number of rows, as a float; of intervals the nearest interval, half to even as `mean` rounds.

    `/` of intervals leaves a rest. Twice the rest says whether the mean is nearer to the next microsecond: where it is
    more than the number, or as much and the whole is odd.
    """
    if type_ == DURATION:
        two = ast.Constant(2, NUMBER)
        whole = ast.Functor("/", (total, number))
        rest = ast.Functor("-", (total, ast.Functor("*", (whole, number))))
        odd = ast.Functor("-", (whole, ast.Functor("*", (ast.Functor("/", (whole, two)), two))))
        twice = ast.Functor("+", (ast.Functor("*", (rest, two)), odd))
        more = ast.Functor("/", (twice, ast.Functor("+", (number, ast.Constant(1, NUMBER)))))
        return ast.Functor("+", (whole, more))
    functor = _AS_FLOAT.get(family_of(type_))
    as_float = total if functor is None else ast.Functor(functor, (total,))
    return ast.Functor("/", (as_float, ast.Functor("itof", (number,))))
