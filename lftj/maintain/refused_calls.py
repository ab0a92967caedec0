"""What a transaction says where it cannot do what it is asked for."""

from __future__ import annotations

from lftj.errors import DataError, TransactionError


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


def absent(name: str, row: tuple[object, ...]) -> DataError:
    """A row is to be erased that is not there."""
    return DataError(
        f"`{name}` has no row {row!r} to erase",
        why='missing="error" asks for this',
        remedy='erase rows that were inserted, or use missing="ignore"',
    )
