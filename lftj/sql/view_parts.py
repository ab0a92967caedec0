"""The parts of a view, `@revenue.sum1`, under names that no part has, or had when the transaction began.

A commit compares relations by their names. So where a view takes the place of another of its name, its parts are not
those of before: `@revenue.sum1` becomes `@revenue.sum1'`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from lftj.language import ast
from lftj.language.clause import INTERNAL

_NAMED = (ast.Atom, ast.Assignment, ast.Lookup, ast.Declaration)


def with_new_parts(program: ast.Program, taken: Collection[str]) -> ast.Program:
    """The program, with other names for the internal relations it defines that are `taken`."""
    names: dict[str, str] = {}
    for item in program.items:
        heads = item.heads if isinstance(item, ast.Rule) else (item,) if isinstance(item, ast.Declaration) else ()
        for head in heads:
            name = head.name
            if name.startswith(INTERNAL) and name in taken:
                while name in taken:
                    name += "'"
                names[head.name] = name
    return replace(program, items=_renamed(program.items, names)) if names else program


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A node, or a tuple of nodes, with other names of relations."""
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if type(node).__module__ != ast.__name__:
        return node
    changed = {field.name: _renamed(getattr(node, field.name), names) for field in fields(node)}
    if isinstance(node, _NAMED):
        changed["name"] = names.get(node.name, node.name)
    return replace(node, **changed)
