"""Functions that lftj calls and that would put their work off: coroutines, and generators, that nobody runs.

Catches: a callback that is accepted and never does anything.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import lftj
from lftj import streams
from lftj.errors import ArgumentError

PROGRAM = ".decl edge(a:number, b:number)  two(x, z) :- edge(x, y), edge(y, z)."


async def coroutine(*given: Any) -> None:
    """Awaited by nobody."""


async def asynchronous_generator(*given: Any) -> AsyncIterator[int]:
    yield 1


def generator(*given: Any) -> Iterator[int]:
    yield 1


class Later:
    async def __call__(self, *given: Any) -> None:
        """Awaited by nobody."""

    async def told(self, *given: Any) -> None:
        """Awaited by nobody."""


@pytest.mark.parametrize(
    "function",
    [coroutine, asynchronous_generator, generator, Later(), Later().told, functools.partial(coroutine, 1)],
)
def test_functions_that_put_their_work_off_are_refused(function: Any) -> None:
    """`on_commit` took a coroutine function and called it, and nobody awaited what it gave."""
    db = lftj.Database(PROGRAM)
    with pytest.raises(ArgumentError, match=r"(?s)nobody runs.*async for deltas in db\.changes"):
        db.on_commit("two", function)
    with pytest.raises(ArgumentError, match="`on_commit` cannot be"):
        db.load_changes("edge", [(1, 2, "+1")], columns=("a", "b", "op"), on_commit=function)
    assert not len(db["edge"])
    for use in (
        lambda: lftj.monoid("later", combine=function, identity=0),
        lambda: lftj.monoid("later", combine=max, identity=0, lift=function),
        lambda: streams.Circuit().input("e", x=int).apply(function, "x", y=int),
    ):
        with pytest.raises(ArgumentError, match="nobody runs"):
            use()


def test_what_load_changes_is_to_call_is_looked_at_before_the_first_commit() -> None:
    db = lftj.Database(PROGRAM)
    given: Any = 5
    with pytest.raises(ArgumentError, match=r"called with `on_commit\(report\)`"):
        db.load_changes("edge", [(1, 2, "+1")], columns=("a", "b", "op"), on_commit=given)
    assert not len(db["edge"])


def test_a_callback_that_gives_a_coroutine_is_told_of() -> None:
    """Of a lambda nobody sees before it is called that it only makes a coroutine."""
    db = lftj.Database(PROGRAM)
    heard: list[int] = []
    db.on_commit("two", lambda delta: coroutine(delta))
    db.on_commit("two", lambda delta: heard.append(len(delta.inserted)))
    with pytest.warns(RuntimeWarning, match=r"(?s)the commit stands.*a coroutine.*db\.changes"), db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
    assert heard == [1]
    assert len(db["two"]) == 1


def test_a_callback_may_begin_a_task() -> None:
    """What it gives is looked at only where nothing would run it."""
    db, heard = lftj.Database(PROGRAM), list[int]()

    async def hear(delta: Any) -> None:
        heard.append(len(delta.inserted))

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        begin: Callable[[Any], object] = lambda delta: tasks.append(asyncio.ensure_future(hear(delta)))  # noqa: E731
        db.on_commit("two", begin)
        async with db.transaction() as tx:
            tx.insert("edge", [(1, 2), (2, 3)])
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert heard == [1]
