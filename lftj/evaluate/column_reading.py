"""What a clause reads column by column: the rows of one relation, and rows of others by their keys.

    total[r] = sum p * q : { sale(_, c, p, q), customer(c, r) }     c, p, q of each sale; of its customer, by c, the r

Each row of the `base`, which is the largest relation, has at most one row of every other one: those are *looked up*,
one after the other, by what is bound by then. That there is at most one, a declared key tells; or nothing does, and a
much smaller relation is tried. What compares is applied where its variables are bound, of what is looked up before it
is entered in a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lftj.language.clause import BodyAtom, Clause, Compare, Parameter, Term, Value, Var, names_of, replaced
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation

# A relation without a key that rows are looked up in has at most this part of the rows of the base.
UNDECLARED = 1 / 4


@dataclass(frozen=True)
class ReadColumns:
    """What is read of one relation: `columns`, by variable, of the rows that hold the `constants` and are `compared`.

    `constants`: by the places of other columns · `repeated`: those that hold the variable of another column as well ·
    `compared`: what compares only these variables.
    """

    relation: str
    columns: Mapping[str, int]
    constants: Sequence[tuple[int, Value | Parameter]]
    repeated: Sequence[tuple[int, str]]
    compared: Sequence[Compare]

    @property
    def places(self) -> tuple[int, ...]:
        """The columns that are read: the variables', of the constants, and those that repeat a variable."""
        return (*self.columns.values(), *(place for place, _ in (*self.constants, *self.repeated)))


@dataclass(frozen=True)
class RowLookup:
    """A relation whose row is looked up: by the variables `key` of its `part`, which are bound before.

    `compared`: what compares its variables with others · `declared`: whether a declared key says that there is at most
    one such row.
    """

    part: ReadColumns
    key: tuple[str, ...]
    compared: Sequence[Compare]
    declared: bool


@dataclass(frozen=True)
class ColumnReading:
    """How a clause is read: the rows of `base`, for each the `lookups` in turn.

    `defined`: variables that conditions define, by terms of those that are bound.
    """

    base: ReadColumns
    lookups: Sequence[RowLookup]
    defined: Mapping[str, Term]

    def __str__(self) -> str:
        found = [f"`{lookup.part.relation}` by {' and '.join(lookup.key)}" for lookup in self.lookups]
        looked_up = f", for each row with its row of {', of '.join(found)}" if found else ""
        return f"`{self.base.relation}` is read by columns{looked_up}"

    def distinct(self, clause: Clause, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether different rows of the base give the clause's head different rows: it holds what tells these apart."""
        held = {arg.name for arg in clause.head_args if isinstance(arg, Var)}
        return _has_key(self._atom(clause), held, relations[self.base.relation])

    def adds_up(self, clause: Clause, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether it is the same if a row of the base comes once with all its copies, or again and again with some."""
        atom, aggregate = self._atom(clause), clause.aggregate
        copies = atom.args[-1]
        if not relations[atom.predicate].repeats or (aggregate is not None and aggregate.op in ("min", "max")):
            return True
        if not isinstance(copies, Var):
            return False
        if aggregate is None:
            return relations[clause.head].schema.bag and clause.head_args[-1] == copies
        return aggregate.op == "sum" and copies.name in names_of(clause.head_args[-1])

    def _atom(self, clause: Clause) -> BodyAtom:
        return next(atom for atom in clause.atoms if atom.predicate == self.base.relation)

    @property
    def shape(self) -> tuple[object, ...]:
        """What is equal of readings with other constants."""
        parts = (self.base, *(lookup.part for lookup in self.lookups))
        return tuple((part.relation, part.places, len(part.columns), *(c.op for c in part.compared)) for part in parts)


def reading_of(clause: Clause, relations: Mapping[str, StoredRelation]) -> ColumnReading | None:
    """How a clause can be read by columns; None if it is of another form."""
    if not clause.atoms or clause.negated or clause.threshold is not None:
        return None
    if clause.aggregate is None and split_text(clause) is not None:
        return None  # of aggregates, only those that are inlined compute texts
    first, *others = sorted(clause.atoms, key=lambda atom: -len(relations[atom.predicate]))
    compared, defined = conditions_of(clause)
    terms = (*clause.head_args, *defined.values(), *(side for c in compared for side in (c.left, c.right)))
    joined = [arg.name for atom in clause.atoms for arg in atom.args if isinstance(arg, Var)]
    read = names_of(*terms) | {v for v in joined if joined.count(v) > 1}
    base, waiting = _part(first, read, compared)
    bound, lookups = set(base.columns), list[RowLookup]()
    small = UNDECLARED * len(relations[base.relation])
    while others:
        # Those with a declared key first; without one, they may bind that of another.
        ready = [atom for atom in others if not bound.isdisjoint(_places(atom))]
        keyed = [atom for atom in ready if _has_key(atom, bound, relations[atom.predicate])]
        tried = [atom for atom in ready if _may_have_key(relations[atom.predicate], small)]
        if not (found := keyed or tried):
            return None
        others.remove(found[0])
        part, waiting = _part(found[0], read, waiting)
        key = tuple(name for name in part.columns if name in bound)
        bound |= set(part.columns)
        now, waiting = _ready(waiting, bound)
        lookups.append(RowLookup(part, key, now, bool(keyed)))
    return None if waiting or not base.places else ColumnReading(base, lookups, defined)


def _part(atom: BodyAtom, read: set[str], compared: Sequence[Compare]) -> tuple[ReadColumns, list[Compare]]:
    """(what is read of an atom whose variables `read` matter, what else is compared)."""
    columns = {name: i for name, i in _places(atom).items() if name in read}
    own, others = _ready(compared, set(columns))
    repeated = [
        (i, arg.name) for i, arg in enumerate(atom.args) if isinstance(arg, Var) and _places(atom)[arg.name] != i
    ]
    return ReadColumns(atom.predicate, columns, _constants(atom), repeated, own), others


def _places(atom: BodyAtom) -> dict[str, int]:
    """Where each variable is first."""
    return {arg.name: i for i, arg in reversed([*enumerate(atom.args)]) if isinstance(arg, Var)}


def _constants(atom: BodyAtom) -> list[tuple[int, Value | Parameter]]:
    return [(i, arg) for i, arg in enumerate(atom.args) if isinstance(arg, Value | Parameter)]


def _has_key(atom: BodyAtom, bound: set[str], relation: StoredRelation) -> bool:
    """Whether what is bound holds a declared key of the atom's relation; of one without a key, that is the row."""
    schema = relation.schema
    held = {i for i, arg in enumerate(atom.args) if isinstance(arg, Var) and arg.name in bound}
    known = held | {i for i, _ in _constants(atom)}
    return known >= (set(relation.key) or set(range(schema.arity - schema.functional)))


def _may_have_key(relation: StoredRelation, most: float) -> bool:
    """Whether other columns than the declared key may tell its rows apart, and trying that costs little."""
    return not relation.schema.keyed and len(relation) <= most


def _ready(compared: Sequence[Compare], bound: set[str]) -> tuple[list[Compare], list[Compare]]:
    """(those that compare what is bound, the others)."""
    now, later = list[Compare](), list[Compare]()
    for compare in compared:
        names = names_of(compare.left, compare.right)
        (now if names <= bound else later).append(compare)
    return now, later


def conditions_of(clause: Clause) -> tuple[list[Compare], dict[str, Term]]:
    """(what is compared, the variables that conditions define by the atoms'); all by terms of the atoms' variables."""
    bound = {arg.name for atom in clause.atoms for arg in atom.args if isinstance(arg, Var)}
    defined = dict[str, Term]()
    left = list[Compare]()
    for compare in clause.compares:
        sides = replaced(compare.left, defined), replaced(compare.right, defined)
        for one, other in (sides, sides[::-1]):
            free = isinstance(one, Var) and one.name not in bound and "?" not in (one.type[-1:], other.type[-1:])
            if compare.op == "=" and free and names_of(other) <= bound:
                assert isinstance(one, Var)
                defined[one.name] = other
                break
        else:
            left.append(replace(compare, left=sides[0], right=sides[1]))
    compared = [replace(c, left=replaced(c.left, defined), right=replaced(c.right, defined)) for c in left]
    return compared, defined
