"""The dialect of SQL: DuckDB's, where sqlglot reads it otherwise than DuckDB does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

from lftj.sql.extensible_parser import extensible_parser

if TYPE_CHECKING:
    from sqlglot.parsers.duckdb import DuckDBParser
else:
    DuckDBParser = extensible_parser()

OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
# What stands behind the table of an `insert`, in DuckDB.
_ROWS = {TokenType.VALUES, TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, TokenType.TABLE}
_ROWS |= {TokenType.DEFAULT, TokenType.ON, TokenType.RETURNING, TokenType.SENTINEL}
# Functions that sqlglot knows no place of.
_WITHOUT_PLACE = (exp.AggFunc, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp)


class LftjSql(DuckDB):
    """DuckDB's dialect. `$` begins a parameter's name and never a text (sqlglot takes `$a, $` for one)."""

    class Tokenizer(DuckDB.Tokenizer):
        """The tokens."""

        HEREDOC_STRINGS: ClassVar[list[Any]] = []
        HEREDOC_STRING_ALTERNATIVE = TokenType.PARAMETER

    class Parser(DuckDBParser):
        """The trees. In `date '2024-01-31'::text` the date is cast, and not the text that writes it.

        All aggregates have a place, `current_date`, intervals, and the field of `extract`. Functions say how many
        `arguments` are written, of which sqlglot drops some without a word. Several groupings may be by conditions, and
        `in` and `all` over `values`. A join tells whether it is a `word` or a comma, a query of `with` whether it has
        an `as`, and `insert` whether `into` is there. Behind its table stands what DuckDB knows, and not `set`.
        """

        def _parse_function_call(
            self,
            functions: dict[str, Any] | None = None,
            anonymous: bool = False,
            optional_parens: bool = True,
            any_token: bool = False,
        ) -> exp.Expr | None:
            name, begin = self._curr, self._index
            found = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
            function = found
            while isinstance(function, exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
                function = function.this
            if isinstance(function, _WITHOUT_PLACE) and "start" not in function.meta:
                function.update_positions(name)
            if isinstance(found, exp.TimeToStr | exp.StrToTime):
                _keep_format(found, self._tokens[self._index - 2])
            if function is not None:
                function.meta["arguments"] = _argument_count(self._tokens, begin)
            return _of_rows(found) if isinstance(found, exp.Anonymous) else found

        def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
            begin = self._index
            found = super()._parse_cte()
            if isinstance(found, exp.CTE):
                found.meta["as"] = _has_as(self._tokens, begin)
            return found

        def _parse_insert(self) -> exp.Insert | exp.MultitableInserts:
            begin = self._index + 2 * (self._curr.token_type == TokenType.OR)
            found = super()._parse_insert()
            kinds = [token.token_type for token in self._tokens[begin : begin + 2]]
            found.meta["into"] = kinds[:1] == [TokenType.INTO] and kinds[1:] != [TokenType.TABLE]
            return found

        def _parse_insert_table(self) -> exp.Expr | None:
            found = super()._parse_insert_table()
            if self._curr.token_type not in _ROWS and self._curr.text.lower() != "by":
                self.raise_error("Unexpected token")
            return found

        def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
            begin = self._curr
            found = super()._parse_join(*args, **kwargs)
            if found is not None:
                found.meta["word"] = begin.token_type != TokenType.COMMA
            return found

        def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
            found = super()._parse_in(this, alias)
            if len(found.expressions) == 1 and isinstance(found.expressions[0], exp.Values):
                found.set("query", exp.Subquery(this=found.expressions[0]))
                found.set("expressions", None)
            return found

        def _parse_extract(self) -> exp.Extract | exp.Anonymous:
            field = self._curr
            found = super()._parse_extract()
            if isinstance(found.this, exp.Var):
                found.this.update_positions(field)
            return found

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Add | exp.Interval | None:
            word = self._curr
            found = super()._parse_interval(require_interval, parse_function_unit)
            if isinstance(found, exp.Interval) and not any("start" in part.meta for part in found.walk()):
                found.update_positions(word)
            return found

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
            begin = self._index
            found = super()._parse_type(parse_interval, fallback_to_identifier)
            if isinstance(found, exp.Cast) and isinstance(found.this, exp.Cast) and self._has_type_in_front(begin):
                return _with_type_first(found)
            return found

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            if with_prefix or not self._match_set((TokenType.CUBE, TokenType.ROLLUP)):
                return super()._parse_cube_or_rollup(with_prefix)
            kind = exp.Cube if self._prev.token_type == TokenType.CUBE else exp.Rollup
            return kind(expressions=self._parse_wrapped_csv(self._parse_disjunction))

        def _parse_grouping_set(self) -> exp.Expr | None:
            return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

        def _has_type_in_front(self, begin: int) -> bool:
            """Whether a text with its type in front of it begins at this token, and no `cast(...)` or `'...'::t`."""
            end = self._index
            self._retreat(begin)
            try:
                made = self._parse_types(check_func=True, allow_identifiers=False)
                return isinstance(made, exp.DataType) and self._curr.token_type == TokenType.STRING
            finally:
                self._retreat(end)


def _keep_format(function: exp.TimeToStr | exp.StrToTime, last: Token) -> None:
    """Put the format of `strftime` or `strptime` back as it is written, and where: sqlglot makes another."""
    if isinstance(function.args["format"], exp.Literal) and last.token_type == TokenType.STRING:
        function.set("format", exp.Literal.string(last.text).update_positions(last))


def _argument_count(tokens: Sequence[Token], name: int) -> int:
    """How many arguments the function has whose name is the token at this place; 1 if it has none."""
    commas = depth = 0
    for at in range(name + 1, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind in OPENS) - (kind in CLOSES)
        commas += kind == TokenType.COMMA and depth == 1
        if depth == 0:
            break
    return commas + 1


def _has_as(tokens: Sequence[Token], name: int) -> bool:
    """Whether `as`, or what DuckDB reads before it, stands behind the name of a query of `with` and its columns."""
    at = name + 1
    if tokens[at].token_type == TokenType.L_PAREN:
        at = next(i for i in range(at, len(tokens)) if tokens[i].token_type == TokenType.R_PAREN) + 1
    return tokens[at].token_type in (TokenType.ALIAS, TokenType.USING)


def _of_rows(function: exp.Anonymous) -> exp.Expr:
    """What sqlglot takes for a function: `row (...)`, and `all (...)` of a query in more parentheses or of `values`."""
    name, arguments = function.name.upper(), function.expressions
    if name == "ROW" and arguments:
        return exp.Tuple(expressions=arguments)
    query = arguments[0] if len(arguments) == 1 else None
    if name != "ALL" or not isinstance(query, exp.Query | exp.Values):
        return function
    return exp.All(this=query if isinstance(query, exp.Subquery) else exp.Subquery(this=query))


def _with_type_first(cast: exp.Cast) -> exp.Expr:
    """`cast(cast('...' as t) as date)`, which sqlglot makes of `date '...'::t`, with the two types exchanged."""
    whole: exp.Expr = cast.this
    text = whole
    while isinstance(text, exp.Cast):
        text = text.this
    text.replace(exp.Cast(this=text.copy(), to=cast.args["to"]))
    return whole
