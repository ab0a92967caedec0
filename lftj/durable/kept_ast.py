"""The syntax tree of a program as JSON, and back: every node as the name of its class and its fields, without spans.

    Atom("edge", (Variable("x"),))   ->   {"node": "Atom", "name": "edge", "args": [{"node": "Variable", "name": "x"}]}

Values that JSON has none for are kept as {"value": type, "text": text}. Only classes of
`lftj.language.ast` are made: nothing else is taken from a file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from lftj.errors import DatabaseFileError
from lftj.language import ast

_NODES = {
    name: made
    for name, made in vars(ast).items()
    if isinstance(made, type) and is_dataclass(made) and made.__module__ == ast.__name__
}
_VALUES: dict[str, tuple[type, Callable[[Any], str], Callable[[str], object]]] = {
    "decimal": (Decimal, str, Decimal),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "duration": (dt.timedelta, lambda d: str(d // dt.timedelta(microseconds=1)), lambda s: dt.timedelta(0, 0, int(s))),
    "uuid": (UUID, str, UUID),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "float": (float, repr, float),
}


def kept(node: Any) -> Any:
    """A node, or a tuple of nodes, as JSON has it."""
    if isinstance(node, tuple):
        return [kept(part) for part in node]
    if type(node).__name__ in _NODES and is_dataclass(node):
        shown = {f.name: kept(getattr(node, f.name)) for f in fields(node) if f.name != "span"}
        return {"node": type(node).__name__, **shown}
    if node is None or type(node) in (bool, int, str):
        return node
    for name, (type_, write, _) in _VALUES.items():
        if isinstance(node, type_):
            return {"value": name, "text": write(node)}
    raise AssertionError(f"no node of the syntax tree holds a {type(node).__name__}")


def restored(given: Any) -> Any:
    """The node, or the tuple of nodes, that `kept` gave."""
    if isinstance(given, list):
        return tuple(restored(part) for part in given)
    if not isinstance(given, dict):
        return given
    if "node" in given:
        made = _NODES.get(given["node"])
        if made is not None:
            return made(**{name: restored(part) for name, part in given.items() if name != "node"})
    elif given.get("value") in _VALUES:
        return _VALUES[given["value"]][2](given["text"])
    raise DatabaseFileError(
        "the file has a rule that this lftj does not know",
        why=f"it holds {str(given)[:60]}",
        remedy="open it with the lftj that wrote it",
    )
