"""Databases with functional predicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import lftj


def functional(program: str, *names: str, **options: Any) -> lftj.Database:
    """A database whose relations `names` are functional predicates."""
    db = lftj.Database._sized(program, **options)
    make_functional(db, names)
    return db


def make_functional(db: lftj.Database, names: Iterable[str]) -> None:
    """Make relations functional predicates."""
    for name in names:
        relation = db._relations[name]
        relation.schema = replace(relation.schema, functional=True)
