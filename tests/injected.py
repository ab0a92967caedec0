"""Injected failures: a function that raises at one of its calls, before its work or after it."""

from __future__ import annotations

from typing import Any

import pytest


def fails_at(
    patch: pytest.MonkeyPatch, owner: Any, name: str, number: int, error: BaseException, *, after: bool
) -> list[int]:
    """Make call `number` of a function raise, before or after its work."""
    function, calls = getattr(owner, name), [0]

    def failing(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        mine = calls[0] == number  # the function may call itself
        if mine and not after:
            raise error
        result = function(*args, **options)
        if mine:
            raise error
        return result

    patch.setattr(owner, name, failing)
    return calls
