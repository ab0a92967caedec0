"""Functions of SQL over regular expressions, which are those of `match`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lftj.language import ast
from lftj.language.text_functors import MOST_GROUPS, pattern_of, replacement_of
from lftj.language.types import SYMBOL
from lftj.sql.applied import Result, SqlFunction, applied, whole_constant
from lftj.sql.cases import Known, Translator
from lftj.sql.conversions import call
from lftj.sql.places import SqlText
from lftj.sql.scope import Case
from lftj.sql.syntax_errors import too_few_arguments
from lftj.sql.whole_numbers import number


def check_pattern(pattern: ast.Term, node: exp.Expr, source: SqlText) -> None:
    """Refuse a pattern that is written out and is none."""
    if isinstance(pattern, ast.Constant):
        remedy = "write one, or take `like`, `contains` or `starts_with`"
        _check(lambda: pattern_of(str(pattern.value)), "a pattern that is none", remedy, node, source)


def _check(read: Callable[[], object], what: str, remedy: str, node: exp.Expr, source: SqlText) -> None:
    try:
        read()
    except ValueError as error:
        raise source.error(what, node, why=str(error), remedy=remedy) from None


def _check_options(options: exp.Expr | None, known: str, remedy: str, source: SqlText) -> None:
    if options is not None and not (isinstance(options, exp.Literal) and options.name in ("", known)):
        what = f"options of a pattern other than '{known}'" if known else "options of a pattern"
        raise source.unsupported(what, options, f"{remedy}options into the pattern, as in '(?i)abc'")


def extracted(of: Translator, node: exp.Expr) -> list[Case]:
    """`regexp_extract(x, pattern, group)`: what the first match, or a group of it, has; '' where there is none."""
    source, given = of.scope.source, node.args["group"]
    _check_options(node.args.get("parameters"), "", "write ", source)
    if isinstance(given, exp.Array):
        remedy = "write a call for each group, by its number"
        raise source.unsupported("`regexp_extract` with a list of names", given, remedy)
    group = whole_constant(of, given, given, "a group of `regexp_extract`")
    if not 0 <= group <= MOST_GROUPS:
        raise source.error(
            f"`{group}` as a group of a pattern",
            given,
            why=f"groups are numbered from 1 to {MOST_GROUPS}, and 0 is the match",
            remedy="write such a number",
        )

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        text, pattern = (value.term for value in values)
        check_pattern(pattern, node.expression, source)
        return call("first_match", SYMBOL, text, pattern, number(group)), SYMBOL

    return applied(of, node, SqlFunction(((SYMBOL,),) * 2, result), [node.this, node.expression])


def replaced(of: Translator, node: exp.Expr) -> list[Case]:
    """`regexp_replace(x, pattern, replacement)`: of the first match, with `'g'` behind it of each."""
    source, options = of.scope.source, node.args.get("modifiers")
    if node.args.get("replacement") is None:
        raise source.error(node=node, **too_few_arguments("regexp_replace", 2))
    _check_options(options, "g", "write 'g' to replace each match, and other ", source)
    count = number(-1 if options is not None and options.name else 1)

    def result(of: Translator, node: exp.Expr, values: Sequence[Known]) -> Result:
        text, pattern, replacement = (value.term for value in values)
        check_pattern(pattern, node.expression, source)
        if isinstance(pattern, ast.Constant) and isinstance(replacement, ast.Constant):
            remedy = r"write `\1` to `\9` for groups of the pattern, `\0` for the match and `\\` for a backslash"
            read = lambda: replacement_of(str(pattern.value), str(replacement.value))  # noqa: E731
            _check(read, "a replacement that is none", remedy, node.args["replacement"], source)
        return call("replace_match", SYMBOL, text, pattern, replacement, count), SYMBOL

    return applied(
        of, node, SqlFunction(((SYMBOL,),) * 3, result), [node.this, node.expression, node.args["replacement"]]
    )
