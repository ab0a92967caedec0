"""The catalogue: the relations of a database as SQL sees them.

    relation                                     table
    p(a, b)                                      columns a, b; each row is there once
    p(a, b), primary key (a)                     the same, key a
    p(a) -> b, a functional predicate            columns a, b; key a
    p(a, b) -> copies, a bag                     columns a, b; a row is there `copies` times
    a head of rules                              a view, of any of these forms

A column has a name and a type of lftj; one that may be null has a type that ends in `?`. Of a bag the last column of
the relation is no column of the table: whoever translates a query counts with it.

Names are found as they are written, else without regard to case where that leaves one. Relations whose names begin
with `@` are parts of rules, and no tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lftj.language.clause import INTERNAL, owner
from lftj.language.names import COPIES
from lftj.program.state import State
from lftj.values.schema import Column, Schema

__all__ = ["COPIES", "Catalogue", "Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a view.

    `schema`: of its relation · `view`: rules derive it, and no statement changes its rows · `unique`: the columns of
    each constraint that says so.
    """

    schema: Schema
    view: bool
    unique: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        """The name of the relation."""
        return self.schema.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order; of a bag without the number of copies."""
        return self.schema.columns[:-1] if self.schema.bag else self.schema.columns

    @property
    def bag(self) -> bool:
        """Whether a row may be there several times: the relation's last column, a number, says how often."""
        return self.schema.bag

    @property
    def key(self) -> tuple[str, ...]:
        """The names of columns that no two rows are alike in; none if only whole rows differ, or not even these."""
        if self.schema.functional and not self.schema.bag:
            return self.schema.names[:-1]
        return tuple(self.schema.names[at] for at in self.schema.key)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each key: the primary one, and those that are unique where no column is null."""
        return ((self.key,) if self.key else ()) + self.unique

    def column(self, name: str) -> Column | None:
        """The column of a name, found as `find` does; None if there is none."""
        at = find(name, (column.name for column in self.columns))
        return None if at is None else next(column for column in self.columns if column.name == at)


class Catalogue:
    """The tables and views over `schemas`, which has one for every relation; `heads`: those that rules derive."""

    def __init__(self, schemas: Mapping[str, Schema], heads: Collection[str] = ()) -> None:
        unique: dict[str, tuple[tuple[str, ...], ...]] = {}
        for name, schema in schemas.items():
            if schema.constraint and name.startswith(f"{INTERNAL}{owner(name)}.unique"):
                unique[owner(name)] = (*unique.get(owner(name), ()), schema.names[:-1])
        self._tables = {
            name: Table(schema, name in heads or schema.view, unique.get(name, ()))
            for name, schema in schemas.items()
            if not name.startswith(INTERNAL)
        }

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def table(self, name: str) -> Table | None:
        """The table or view of a name, found as `find` does; None if there is none."""
        found = find(name, self._tables)
        return None if found is None else self._tables[found]

    @property
    def names(self) -> list[str]:
        """The names of all tables and views, for suggestions."""
        return list(self._tables)


def catalogue_of(state: State) -> Catalogue:
    """The tables and views of a state."""
    return Catalogue({name: relation.schema for name, relation in state.relations.items()}, state.strata.by_head)


def find(name: str, names: Iterable[str]) -> str | None:
    """`name` as it is among `names`, else the one that differs from it in case only; None if there are several."""
    alike = []
    for other in names:
        if other == name:
            return other
        if other.casefold() == name.casefold():
            alike.append(other)
    return alike[0] if len(alike) == 1 else None


def unlike(name: str, names: Iterable[str]) -> str:
    """`name`, with a number behind it if it is among `names`."""
    taken, made, number = set(names), name, 0
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    return made
