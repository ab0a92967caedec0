"""Databases with functional predicates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lftj


def functional(program: str, *names: str, **sizes: Any) -> lftj.Database:
    """A database whose relations `names` are functional predicates."""
    db = lftj.Database(program, **sizes)
    for name in names:
        relation = db._relations[name]
        relation.schema = replace(relation.schema, functional=True)
    return db
