"""What a program has to be before it is planned: checked, and without what partitions have no way to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from lftj.language import CheckedProgram, check, parse
from lftj.language.clause import INTERNAL, owner
from lftj.values.schema import Schema
from spark_bridge.bridge_errors import PlanError
from spark_bridge.keys import OP, UNIT

KEPT_PROGRAMS = 16  # so many are kept: a query plans its program several times, and a process has few queries


@lru_cache(KEPT_PROGRAMS)
def _checked(text: str) -> CheckedProgram:
    return check(parse(text))


def checked(text: str, outputs: Sequence[str] | None, replicate: Sequence[str]) -> tuple[CheckedProgram, list[str]]:
    """A program, and those of the relations to be asked for that rules derive. Raises what `make_plan` does."""
    program = _checked(text)
    for name, schema in program.schemas.items():
        if schema.bag or schema.key:
            raise PlanError(
                f"`{name}` {'is a bag' if schema.bag else 'has a primary key'}, which partitions do not have",
                why="copies are counted, and keys compared, within one database",
                remedy="declare it without `bag` and `primary-key`, as a set or a functional predicate",
            )
        if schema.constraint:
            raise PlanError(
                f"`{name}` must be {schema.constraint}, which no partition can tell",
                why="a constraint refuses commits by all that they would derive, and a partition derives its part",
                remedy=f"declare `{name}` without `empty` and ask for its rows, or use lftj.Database, on one machine",
                relation=name,
            )
        _columns_of_their_own(schema)
    heads = list(dict.fromkeys(c.head for c in program.clauses if not c.head.startswith(INTERNAL)))
    asked = list(dict.fromkeys(d.relation for d in program.directives if d.kind == "output"))
    chosen = list(outputs) if outputs is not None else asked or heads
    for name in (*chosen, *replicate):
        if name not in program.schemas:
            raise PlanError(
                f"there is no relation `{name}`",
                why="the program neither declares nor derives it",
                remedy="name a relation of the program",
            )
    return program, [name for name in dict.fromkeys(chosen) if name in heads]


def with_facts(program: CheckedProgram, rows: Mapping[str, int]) -> set[str]:
    """The relations that rules derive and that facts are given of as well."""
    return {clause.head for clause in program.clauses if rows.get(clause.head)}


def _columns_of_their_own(schema: Schema) -> None:
    """A `PlanError` for a column that tables of changes, or of a relation without columns, have besides."""
    for column in schema.names:
        if column.lower() in (OP, UNIT):  # Spark takes names that differ in case alone for the same
            raise PlanError(
                f"`{owner(schema.name)}` has a column `{column}`",
                why=f"`{OP}` and `{UNIT}`, in whatever case, name columns that partitions add to tables of rows",
                remedy="give the column another name, in the declaration or, without one, the variable in the head",
            )
