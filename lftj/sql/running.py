"""Running a text of SQL: `Database.sql`, `Transaction.sql` and `Snapshot.sql`, which import no parser before a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lftj import arguments
from lftj.errors import MissingPackageError, TransactionError
from lftj.results.transaction_delta import Deltas

if TYPE_CHECKING:
    from sqlglot import exp

    from lftj.results.answers import Answers
    from lftj.sql.kept_statements import KeptStatement
    from lftj.sql.places import SqlText
    from lftj.sql.results import SqlResult

NAME = "<sql>"
# The least version of sqlglot.
LEAST = (30, 20)


def run(
    database: Any,
    text: str,
    parameters: Mapping[str, Any],
    timeout: float | None,
    maintain: Mapping[str, str] | None,
) -> SqlResult | Deltas:
    """Run the statements of a text: the answer of its last one if that is a query, else what all of them changed."""
    kept, given = (None, parameters) if maintain else _kept(database, text, parameters)
    if kept is not None and kept.question is None:
        with database.transaction(timeout=timeout) as tx:
            if not kept.carried_out(tx, given):
                _all_carried_out(tx, text, parameters)
                kept.text_succeeded()
        return tx.delta  # type: ignore[no-any-return]
    if kept is not None and (found := kept.asked(database, given, timeout)) is not None:
        return found
    source, statements = statements_of(text, NAME, parameters)
    from lftj.sql.session import carry_out, is_query, options_for, without_brackets

    statements = without_brackets(statements)
    options = options_for(None, maintain, None, statements)
    if all(map(is_query, statements)):
        answer = _asked(database, source, statements, timeout)
        if kept is not None:
            kept.text_succeeded()
        return answer
    with database.transaction(timeout=timeout) as tx:
        for statement in statements:
            result = carry_out(tx, statement, source, options)
    return tx.delta if result is None else result


def ask(snapshot: Answers, text: str, parameters: Mapping[str, Any], timeout: float | None) -> SqlResult:
    """The answer of the last query of a text, over what does not change."""
    source, statements = statements_of(text, NAME, parameters)
    from lftj.sql.session import is_query, without_brackets

    statements = without_brackets(statements)
    for statement in statements:
        if not is_query(statement):
            raise TransactionError(
                f"`{statement.key}` over a snapshot",
                where=str(source.span(statement)),
                why="a snapshot is the database at one moment, and never changes",
                remedy="run it by `db.sql`; `db.branch()` is a copy that can be changed",
            )
    return _asked(snapshot, source, statements, timeout)


def _asked(
    database: Answers, source: SqlText, statements: Sequence[exp.Expression], timeout: float | None
) -> SqlResult:
    from lftj.sql.one_off import asked
    from lftj.sql.question import Question

    return [asked(database, Question(statement, source), timeout) for statement in statements][-1]


def run_in(transaction: Any, text: str, parameters: Mapping[str, Any]) -> SqlResult | None:
    """Run the statements of a text in an open transaction: the answer of the last one if that is a query.

    If one of them fails, none has been carried out, and the transaction may go on.
    """
    kept, given = _kept(transaction._database, text, parameters)
    if kept is None:
        pass
    elif kept.question is None:
        if kept.carried_out(transaction, given):
            return None
    elif (answer := kept.selected(transaction, given)) is not None:
        return answer
    with transaction._restoring():
        result = _all_carried_out(transaction, text, parameters)
    if kept is not None:
        kept.text_succeeded()
    return result


def _all_carried_out(transaction: Any, text: str, parameters: Mapping[str, Any]) -> SqlResult | None:
    source, statements = statements_of(text, NAME, parameters)
    from lftj.sql.session import carry_out

    result = None
    for statement in statements:
        result = carry_out(transaction, statement, source)
    return result


def _kept(database: Any, text: str, parameters: Mapping[str, Any]) -> tuple[KeptStatement | None, Mapping[str, Any]]:
    """What is kept of a text whose like was met before, and the values that it leaves open."""
    _check(text)
    from lftj.sql.kept_statements import kept_statement

    return kept_statement(database, text, parameters)


def statements_of(
    text: str, name: str, parameters: Mapping[str, Any] | None = None
) -> tuple[SqlText, list[exp.Expression]]:
    """A text of SQL, called `name` in messages, and its statements."""
    _check(text)
    from lftj.sql.places import SqlText
    from lftj.sql.statements import parsed

    source = SqlText(text, name)
    return source, parsed(source, parameters or {})


def _check(text: str) -> None:
    if find_spec("sqlglot") is None:
        raise MissingPackageError(
            "SQL needs the package sqlglot, which is not installed",
            why="lftj parses SQL with it, and rules without it",
            remedy='pip install "lftj[sql]"',
        )
    if _installed()[:2] < LEAST:
        raise MissingPackageError(
            f"SQL needs sqlglot {LEAST[0]}.{LEAST[1]} or later, and {version('sqlglot')} is installed",
            why="lftj extends its parser, which goes with its version",
            remedy='pip install "lftj[sql]"',
        )
    arguments.text("text", text, "statements are a text", 'give SQL, as in `db.sql("select a from t")`')


@cache
def _installed() -> tuple[int, ...]:
    """The version of sqlglot."""
    return tuple(int(part) for part in version("sqlglot").split(".") if part.isdigit())
