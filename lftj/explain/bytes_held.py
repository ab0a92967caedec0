"""Bytes in words: what each relation, and each part that its rules were taken apart into, holds (`Database.memory`)."""

from __future__ import annotations

from collections.abc import Mapping

from lftj.language.clause import INTERNAL, owner
from lftj.store.order_stores import Built, ScanOrder
from lftj.store.stored import StoredRelation
from scantree.scan import Monoid


def bytes_held(
    relations: Mapping[str, StoredRelation], kept: Mapping[str, Mapping[str, int]], pages: int
) -> dict[str, dict[str, int]]:
    """Bytes per relation and key order. `kept`: what strategies keep, by head; `pages`: of everything."""
    found: dict[str, dict[str, int]] = {}
    for name in sorted(relations, key=lambda name: name.startswith(INTERNAL)):
        relation = relations[name]
        held = {_shown(built, relation.schema.names): size for built, size in relation.memory().items()}
        # A strategy that keeps no trace says itself what it keeps.
        held |= {part if ": " in part else f"trace: {part}": n for part, n in kept.get(name, {}).items()}
        prefix = f"{name}: " if name.startswith(INTERNAL) else ""
        found.setdefault(owner(name), {}).update({f"{prefix}{what}": size for what, size in held.items()})
    found["total"] = {"pages": pages}
    return found


def _shown(built: Built, names: tuple[str, ...]) -> str:
    """A key order, or a scan, by column names."""
    if not isinstance(built, ScanOrder):
        return ", ".join(names[c] for c in built)
    order = ", ".join(names[c] for c in built.order)
    of = "" if built.monoid == Monoid.COUNT else f" of {names[built.column]}"
    return f"scan: {built.monoid.name.lower()}{of}, in order {order}"
