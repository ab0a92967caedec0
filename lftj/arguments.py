"""Arguments: what calls are given, checked where it is first used.

A value of another kind than the call takes would fail somewhere inside, or worse, be accepted. Each function here looks
at one kind of argument and returns it as the engine uses it, or raises `ArgumentError` in the words of the call:

    `timeout` cannot be 'x'
      why: it is a time in seconds, a number of 0 or more
      do: give `timeout=60` or `timeout=0.5`, or leave it out for no limit

Names of relations are not looked at here: a name that is found needs no check, and `lftj.results.answers.unknown` says
what is wrong with the others. Rows and their sources are those of `lftj.io`, terms of rules those of the builder.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

from lftj.errors import ArgumentError

T = TypeVar("T")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", re.IGNORECASE)
_SHOWN_LENGTH = 80
SIZES = "bytes, 500MB (powers of 1000) or 2GiB (powers of 1024)"


def refused(name: str, value: object, why: str, remedy: str) -> ArgumentError:
    """The error for argument `name`, to be raised: what it takes (`why`), and what to give instead."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_LENGTH else f"{shown[:_SHOWN_LENGTH]}..."
    return ArgumentError(f"`{name}` cannot be {shown}", why=why, remedy=remedy)


def instance(name: str, value: object, kind: type[T], why: str, remedy: str) -> T:
    """A value of type `kind`; `why` and `remedy` as for `refused`."""
    if not isinstance(value, kind):
        raise refused(name, value, why, remedy)
    return value


def mapping(name: str, value: object, why: str, remedy: str) -> Mapping[Any, Any]:
    """A dict, or something like one; `why` and `remedy` as for `refused`."""
    if not isinstance(value, Mapping):
        raise refused(name, value, why, remedy)
    return value


def text(name: str, value: object, why: str, remedy: str) -> str:
    """A str; `why` and `remedy` as for `refused`."""
    return instance(name, value, str, why, remedy)


def one_of(name: str, value: object, choices: Collection[str], why: str) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise refused(name, value, why, "give " + " or ".join(f'`{name}="{choice}"`' for choice in choices))
    return value


def flag(name: str, value: Any) -> bool | None:
    """True, False, or None where the call decides."""
    if value is None:
        return None
    # numpy's bools are no ints; `value in (0, 1)` of a str or a list is False, of an array an error.
    if type(value).__name__ not in ("bool", "bool_", "int") or value not in (0, 1):
        raise refused(
            name, value, "it says whether or not", f"give `{name}=True` or `{name}=False`, or leave it out to decide"
        )
    return bool(value)


def seconds(value: object) -> float | None:
    """A time limit; None for none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:  # NaN is not
        raise refused(
            "timeout",
            value,
            "it is a time in seconds, a number of 0 or more",
            "give `timeout=60` or `timeout=0.5`, or leave it out for no limit",
        )
    return float(value)


def count(name: str, value: object, of: str) -> int | None:
    """A number of things, 1 or more; None where there is no limit. `of` says of what."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or value.__index__() < 1:
        raise refused(name, value, f"it is a number of {of}, 1 or more", f"give `{name}=1000`, or leave it out")
    return value.__index__()


def cores() -> int:
    """The cores that this process may use: how many threads or processes work where the call leaves it open."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def size(value: object, name: str = "memory_limit") -> int | None:
    """A memory limit in bytes: a number, or a text as the command line takes it; None for none."""
    if value is None:
        return None
    found = None
    if isinstance(value, str):
        found = bytes_of(value)
    elif isinstance(value, SupportsIndex) and not isinstance(value, bool):
        found = value.__index__()
    if found is None or found < 1:
        raise refused(
            name,
            value,
            "it is a number of bytes, 1 or more, or such a number in words",
            f'give {SIZES}, as in `{name}="2GiB"`, or leave it out for no limit',
        )
    return found


def bytes_of(words: str) -> int | None:
    """The bytes that `500MB` (powers of 1000) or `2GiB` (powers of 1024) says; None if it is no size of 1 or more."""
    found = _SIZE.fullmatch(words.strip())
    if found is None or (found[3] and not found[2]):
        return None
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " KMGT".index(found[2].upper() or " ")) or None


def folder(value: object) -> Path:
    """A folder, `~` expanded; whether it is there is not looked at."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise refused("directory", value, "it is a folder, a str or a Path", 'give its path, as in `"facts"`')
    return Path(os.path.expanduser(file_name(value)))


def file_name(name: str | os.PathLike[str]) -> str:
    """A file's name or path as the system takes it.

    What the encoding of names lacks (all beyond ASCII with `LC_ALL=C`) is written in UTF-8, as programs are.
    """
    text = os.fspath(name)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        with suppress(UnicodeEncodeError):  # half a character, which no name has
            return os.fsdecode(text.encode(errors="surrogateescape"))
    return text


def utf8(name: str) -> str:
    """The text of a file's name, or of an argument of a command: its bytes as UTF-8, whatever the locale says.

    If they are no UTF-8, it is what the locale takes them for.
    """
    try:
        return os.fsencode(name).decode()
    except UnicodeError:
        return name


def by_name(name: str, value: object, remedy: str) -> Mapping[str, Any]:
    """A dict whose keys are the names of relations; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refused(name, value, "it says what is asked for per relation, by its name", remedy)
    return value


def names(name: str, value: object, remedy: str) -> tuple[str, ...]:
    """Several names, in an order that matters: a tuple or list of str."""
    if not isinstance(value, tuple | list) or not all(isinstance(word, str) for word in value):
        raise refused(name, value, "it is names in an order, a tuple or list of str", remedy)
    return tuple(value)


def function(
    name: str,
    value: Callable[..., T],
    takes: str,
    instead: str = "give a function that does its work when it is called",
) -> Callable[..., T]:
    """Something that can be called; `takes` shows how, as in `delta`. `instead`: what to do in the place of `async`."""
    if not callable(value):
        raise refused(name, value, f"it is called with `{takes}`", "give a function")
    if found := _put_off(value):
        raise refused(
            name, value, f"it is called with `{takes}`, which would only give {found} that nobody runs", instead
        )
    return value


def _put_off(value: Callable[..., Any]) -> str:
    """What calling this gives that has yet to be run; empty of functions that do their work when they are called."""
    for called in (value, getattr(value, "__call__", None)):  # noqa: B004  (of an object, its method)
        if inspect.iscoroutinefunction(called):
            return "a coroutine"
        if inspect.isasyncgenfunction(called):
            return "an asynchronous generator"
        if inspect.isgeneratorfunction(called):
            return "a generator"
    return ""
