"""The dialect of SQL: DuckDB's, where sqlglot reads it otherwise than DuckDB does."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType


class LftjSql(DuckDB):
    """DuckDB's dialect. `$` begins a parameter's name and never a text (sqlglot takes `$a, $` for one)."""

    class Tokenizer(DuckDB.Tokenizer):
        """The tokens."""

        HEREDOC_STRINGS: ClassVar[list[Any]] = []
        HEREDOC_STRING_ALTERNATIVE = TokenType.PARAMETER

    class Parser(DuckDBParser):
        """The trees. In `date '2024-01-31'::text` the date is cast, and not the text that writes it.

        All aggregates have a place, and the field of `extract`.
        """

        def _parse_function_call(
            self,
            functions: dict[str, Any] | None = None,
            anonymous: bool = False,
            optional_parens: bool = True,
            any_token: bool = False,
        ) -> exp.Expr | None:
            name = self._curr
            found = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
            function = found
            while isinstance(function, exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
                function = function.this
            if isinstance(function, exp.AggFunc) and "start" not in function.meta:
                function.update_positions(name)
            return found

        def _parse_extract(self) -> exp.Extract | exp.Anonymous:
            field = self._curr
            found = super()._parse_extract()
            if isinstance(found.this, exp.Var):
                found.this.update_positions(field)
            return found

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
            begin = self._index
            found = super()._parse_type(parse_interval, fallback_to_identifier)
            if isinstance(found, exp.Cast) and isinstance(found.this, exp.Cast) and self._has_type_in_front(begin):
                return _with_type_first(found)
            return found

        def _has_type_in_front(self, begin: int) -> bool:
            """Whether a text with its type in front of it begins at this token, and no `cast(...)` or `'...'::t`."""
            end = self._index
            self._retreat(begin)
            try:
                made = self._parse_types(check_func=True, allow_identifiers=False)
                return isinstance(made, exp.DataType) and self._curr.token_type == TokenType.STRING
            finally:
                self._retreat(end)


def _with_type_first(cast: exp.Cast) -> exp.Expr:
    """`cast(cast('...' as t) as date)`, which sqlglot makes of `date '...'::t`, with the two types exchanged."""
    whole: exp.Expr = cast.this
    text = whole
    while isinstance(text, exp.Cast):
        text = text.this
    text.replace(exp.Cast(this=text.copy(), to=cast.args["to"]))
    return whole
