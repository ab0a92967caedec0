"""What a query is translated to: rules, and what is to be known of the head that has its rows.

`Rows` is a relation as a query reads it: a table, a view, or a head that a part of a query has become. `View` is the
head of a whole query with the rules behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lftj.language import ast
from lftj.language.first_rows import OrderedColumn
from lftj.language.types import DECIMAL, decimal_of, scale_of
from lftj.values.type_table import family_of, with_null, without_null


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of rows. `type`: one of lftj without the `?` of null · `untyped`: null is all it has, of any type."""

    name: str
    type: str
    nullable: bool
    untyped: bool = False

    @property
    def declared(self) -> str:
        """Its type as a declaration says it: of a decimal with room for all that may be computed."""
        type_ = decimal_of(scale_of(self.type)) if family_of(self.type) == DECIMAL else self.type
        return with_null(type_) if self.nullable else type_


@dataclass(frozen=True, slots=True)
class Rows:
    """A relation. `bag`: it has one more column, how often the row is there · `keys`: sets of positions of columns.

    No two rows are alike in the columns of a key, the copies of one row of a bag aside; there is at least that of all
    columns.
    """

    name: str
    columns: tuple[OutputColumn, ...]
    bag: bool
    keys: tuple[frozenset[int], ...]

    @staticmethod
    def of(name: str, columns: tuple[OutputColumn, ...], *, bag: bool, key: tuple[int, ...] | None = None) -> Rows:
        """A relation with at most one key besides that of all columns; a column of null alone tells no rows apart."""
        places = range(len(columns)) if key is None else key
        return Rows(name, columns, bag, (frozenset(at for at in places if not columns[at].untyped),))


@dataclass(frozen=True, slots=True)
class View:
    """A query as rules.

    `items`: declarations and rules, to be added to a database as one program · `name`: the head with the rows ·
    `columns`: of the head, without the number of copies; the last `hidden` of them are there to sort by only ·
    `bag`: rows can repeat, and the head's last column says how often each is there · `order`, `limit`, `offset`: what
    is to be done to the rows of an answer; a view as such has no order.
    """

    items: tuple[ast.Item, ...]
    name: str
    columns: tuple[OutputColumn, ...]
    bag: bool
    hidden: int = 0
    order: tuple[OrderedColumn, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def program(self) -> ast.Program:
        """The rules as a program."""
        return ast.Program(self.items, "<sql>")


def column_of(name: str, type_: str) -> OutputColumn:
    """The column of a type of a schema, which ends in `?` where it admits null."""
    return OutputColumn(name, without_null(type_), type_.endswith("?"))
