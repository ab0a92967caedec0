"""Running a text of SQL: `Database.sql` and `Transaction.sql`, which import no parser before they are called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lftj.errors import Error
from lftj.results.transaction_delta import Deltas

if TYPE_CHECKING:
    from sqlglot import exp

    from lftj.sql.places import SqlText
    from lftj.sql.results import SqlResult

NAME = "<sql>"


class MissingPackageError(Error, ImportError):
    """A part of lftj needs a package that is not installed."""


def run(
    database: Any,
    text: str,
    parameters: Mapping[str, Any],
    timeout: float | None,
    maintain: Mapping[str, str] | None,
) -> SqlResult | Deltas:
    """Run the statements of a text: the answer of its last one if that is a query, else what all of them changed."""
    source, statements = statements_of(text, NAME, parameters)
    from lftj.sql.one_off import asked
    from lftj.sql.session import carry_out, is_query, options_for, without_brackets

    statements = without_brackets(statements)

    options = options_for(None, maintain, None, statements)
    if all(map(is_query, statements)):
        return [asked(database, statement, source, timeout) for statement in statements][-1]
    with database.transaction(timeout=timeout) as tx:
        for statement in statements:
            result = carry_out(tx, statement, source, options)
    return tx.delta if result is None else result


def run_in(transaction: Any, text: str, parameters: Mapping[str, Any]) -> SqlResult | None:
    """Run the statements of a text in an open transaction: the answer of the last one if that is a query.

    If one of them fails, none has been carried out, and the transaction may go on.
    """
    source, statements = statements_of(text, NAME, parameters)
    from lftj.sql.session import carry_out

    result = None
    with transaction._restoring():
        for statement in statements:
            result = carry_out(transaction, statement, source)
    return result


def statements_of(
    text: str, name: str, parameters: Mapping[str, Any] | None = None
) -> tuple[SqlText, list[exp.Expression]]:
    """A text of SQL, called `name` in messages, and its statements."""
    if find_spec("sqlglot") is None:
        raise MissingPackageError(
            "SQL needs the package sqlglot, which is not installed",
            why="lftj parses SQL with it, and rules without it",
            remedy='pip install "lftj[sql]"',
        )
    from lftj.sql.places import SqlText
    from lftj.sql.statements import parsed

    source = SqlText(text, name)
    return source, parsed(source, parameters or {})
