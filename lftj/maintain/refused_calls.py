"""What a transaction says where it cannot do what it is asked for."""

from __future__ import annotations

from collections.abc import Iterable

from lftj.errors import DataError, TransactionError, UnknownRelationError
from lftj.values.schema import Schema


def not_begun() -> TransactionError:
    """It is used before its block."""
    return TransactionError(
        "the transaction has not begun",
        why="changes are collected inside its block",
        remedy="write `with db.transaction() as tx:` and use `tx` inside",
    )


def ended(phase: str) -> TransactionError:
    """It is used after its block; `phase`: what became of it."""
    return TransactionError(
        f"the transaction has ended: it was {phase}",
        why="a transaction is its block, and no more can be added to it",
        remedy="begin another one with `with db.transaction() as tx:`",
    )


def not_committed() -> TransactionError:
    """Its delta is asked for inside of its block."""
    return TransactionError(
        "the transaction has not been committed yet",
        why="it commits at the end of its block",
        remedy="read `tx.delta` after the block, or call `tx.preview()`",
    )


def inside_another() -> TransactionError:
    """A block begins within another."""
    return TransactionError(
        "a transaction inside another",
        why="the block of the first has not ended, and one changes the database at a time",
        remedy="use the transaction that is open, or begin this one after its block; where Ctrl-C came at the very end "
        "of the block, delete its name, as in `del tx`",
    )


def inside_call(what: str, call: str) -> TransactionError:
    """The source of a call that changes the database makes another change."""
    return TransactionError(
        f"{what} inside `{call}`",
        why="a source or a function of it makes the change, which would be lost when the call ends",
        remedy="make it before the call, or after it",
    )


def replaced(name: str, was: Schema, now: Schema) -> DataError:
    """The relation that rows were read for is another by now."""
    return DataError(
        f"`{name}` was replaced while rows for it were read",
        why=f"they were read for {was}, and it is {now} now",
        remedy="give the rows as it is now, or replace it before or after the call",
    )


def underived(name: str, heads: Iterable[str]) -> UnknownRelationError:
    """Rules are to be removed of what no rule derives."""
    from lftj.language.diagnostics import did_you_mean

    return UnknownRelationError(
        f"no rule derives `{name}`",
        why="it has no rules that could be removed",
        remedy=did_you_mean(name, heads, "erase its facts, if these are meant"),
    )


def derived(name: str, row: tuple[object, ...], rule: object) -> DataError:
    """A row is to be erased that is no fact, and that a rule derives."""
    return DataError(
        f"`{name}` has no fact {row!r} to erase, though it has the row",
        why=f"only facts can be erased, and this row is derived by {rule}",
        remedy='erase the facts that the rule reads, change the rule, or use missing="ignore"',
    )


def absent(name: str, row: tuple[object, ...]) -> DataError:
    """A row is to be erased that is not there."""
    return DataError(
        f"`{name}` has no row {row!r} to erase",
        why='missing="error" asks for this',
        remedy='erase rows that were inserted, or use missing="ignore"',
    )
