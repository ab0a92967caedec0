"""Schemas: the names of relations and the names and types of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from lftj.values.type_table import is_type


@dataclass(frozen=True, slots=True)
class Column:
    """A named column of a type, by its name (type_table.py); names of the program have been resolved."""

    name: str
    type: str

    def __post_init__(self) -> None:
        assert is_type(self.type), f"{self.type!r} is no type; the checker resolves aliases"


@dataclass(frozen=True, slots=True)
class Schema:
    """The name and the columns of a relation. Arity 0 is legal: such a relation holds one row, (), or none.

    `functional`: the relation is a functional predicate, whose last column is determined by the others. `declared`:
    somebody named the columns; else they have the names of a rule's variables, by which no data is matched.

    `bag`: the last column, a number, is how often the row of the others is there (a SQL table without a primary key);
    it is functional, and users insert and erase rows without that column, one copy each. `key`: the positions of the
    columns of a primary key, no two rows are alike in; empty if there is none. It is for relations that are not
    functional, whose key is all columns but the last. `view`: it has the rows that its rules derive, and no facts.
    `mark`: of the rows that its rule copies it has the first ones only, in an order, or has values of window functions
    beside them (lftj/language/first_rows.py, window_functions.py).
    `constraint`: what the relation must be empty for, in words; no commit may leave a row in it.

    Worked out once: `arity`, how many columns there are · `types`, the base types of the columns, in order ·
    `numbers`, whether all of them are numbers, and there are some · `keyed`, whether a change may bring two rows with
    one key (of a bag it cannot: copies are added up) · `given`, the rows that users insert and erase: of a bag, those
    without the number of copies.
    """

    name: str
    columns: tuple[Column, ...]
    functional: bool = False
    declared: bool = field(default=True, compare=False)
    bag: bool = False
    key: tuple[int, ...] = ()
    view: bool = False
    constraint: str = ""
    mark: str = ""
    arity: int = field(init=False, repr=False, compare=False)
    types: tuple[str, ...] = field(init=False, repr=False, compare=False)
    numbers: bool = field(init=False, repr=False, compare=False)
    keyed: bool = field(init=False, repr=False, compare=False)
    given: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        types = tuple(column.type for column in self.columns)
        set_(self, "arity", len(types))
        set_(self, "types", types)
        set_(self, "numbers", {*types} == {"number"})
        set_(self, "keyed", bool(self.key) or (self.functional and not self.bag))
        set_(self, "given", Schema(self.name, self.columns[:-1], declared=self.declared) if self.bag else self)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def has_key(self) -> bool:
        """Whether a row can be replaced by its key: a functional predicate's, or a primary one."""
        return bool(self.key) or self.functional

    def __str__(self) -> str:
        shown = [f"{c.name}:{c.type}" for c in self.columns]
        if self.functional:
            return f"{self.name}({', '.join(shown[:-1])}) -> {shown[-1]}"
        return f"{self.name}({', '.join(shown)})"
