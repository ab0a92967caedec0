"""Lowering: the statements of a program as instructions of the event kernel, over registers.

    registers    the columns of the event | constants | the variables and intermediate values of a statement
    tables       the maps of the program, twins in one, then the indexes by which statements read slices

What a term may hold is arithmetic whose codes are integers and add up as such: `+`, `-`, `*` and negation of numbers,
decimals and durations (computable.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lftj.language.clause import Apply, Term, Value, Var
from lftj.triggers import event_kernel as k
from lftj.triggers import table_kernel as t
from lftj.triggers.algebra import DELETION, EVENT, INSERTION, Cmp, Factor, Lift, MapRead, Statement, TriggerProgram, Val
from lftj.triggers.computable import check_computable
from lftj.triggers.key_ranges import KeyInterval, interval_of
from lftj.triggers.lowered_final import lower_final
from lftj.triggers.twins import Twins, skeleton, twins_of
from lftj.values.type_table import to_stored

COMPARISONS = {"=": k.EQ, "!=": k.NE, "<": k.LT, "<=": k.LE, ">": k.GT, ">=": k.GE}
_ARITHMETIC = {"+": k.ADD, "-": k.SUBTRACT, "*": k.MULTIPLY}


class TablePlace(NamedTuple):
    """Where a map is: the number of its table, and which of the table's values it is."""

    table: int
    value: int


@dataclass
class LoweredProgram:
    """A program for the kernel. `twins`: the maps of each table · `places`: of each map.

    `indexes`: of each table, in order, by which keys · `orders`: the same, the prefix and then the key that they are by
    · `kinds`: the number of each event · `width`: the most columns of
    an event · `registers`: with the constants in place · `statements`: in the order of the kernel's numbers, each that
    of the first of the twins.
    """

    program: TriggerProgram
    twins: list[Twins] = field(default_factory=list)
    places: dict[str, TablePlace] = field(default_factory=dict)
    indexes: list[list[tuple[int, ...]]] = field(default_factory=list)
    orders: list[list[tuple[int, ...]]] = field(default_factory=list)
    kinds: dict[tuple[int, str], int] = field(default_factory=dict)
    width: int = 0
    registers: list[int] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    _rows: list[list[int]] = field(default_factory=list)
    _lists: list[int] = field(default_factory=list)
    _begins: list[int] = field(default_factory=list)
    _constants: dict[int, int] = field(default_factory=dict)
    _ranges: list[tuple[int, int]] = field(default_factory=list)
    _asks: list[dict[tuple[int, tuple[int, ...]], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.program
        check_computable(program)
        self.twins = twins_of(program)
        self.places = {name: TablePlace(i, j) for i, made in enumerate(self.twins) for j, name in enumerate(made.names)}
        self.indexes = [[] for _ in self.twins]
        self.orders = [[] for _ in self.twins]
        self.width = max((schema.arity for schema in program.relations.values()), default=0)
        self.registers = [0] * self.width
        spans = [0]
        for relation in program.relations:
            for sign in (INSERTION, DELETION):
                self.kinds[sign, relation] = len(spans) - 1
                self._asks.append({})
                for table, twins in enumerate(self.twins):
                    for row in twins.statements.get((sign, relation), ()):
                        self._begins.append(len(self._rows))
                        self.statements.append(row[0])
                        _StatementLowering(self, table, row)
                spans.append(len(self.statements))
        self._begins.append(len(self._rows))
        final = -1 if program.final is None else lower_final(self, program.final)
        # Which order it is can be said once it is known how many indexes there are.
        firsts = np.cumsum([len(self.twins) + sum(map(len, self.indexes)), *map(len, self.orders)]).tolist()
        for cells in self._rows:
            if cells[k.OP] in (k.RANGE, k.ADD_UP, k.FIRST_KEY):
                table, order = self._ranges[cells[k.TABLE]]
                cells[k.TABLE] = firsts[table] + order
        asks = [(table, self.listed(columns)) for found in self._asks for table, columns in found]
        asked = np.cumsum([0, *map(len, self._asks)])
        self.code = k.EventCode(
            np.array(self._rows, np.int64).reshape(-1, k.CELLS),
            np.array(self._lists, np.int64),
            np.array(self._begins, np.int64),
            np.array(spans, np.int64),
            np.array(asks, np.int64).reshape(-1, 2),
            asked.astype(np.int64),
            np.array([final], np.int64),
        )

    @property
    def instructions(self) -> int:
        """How many instructions there are."""
        return len(self._rows)

    @property
    def most_keys(self) -> int:
        """The most keys of a map."""
        return max((len(made.keys) for made in self.program.maps.values()), default=0)

    @property
    def most_values(self) -> int:
        """The most values of a table."""
        return max((len(made.names) for made in self.twins), default=1)

    def new_register(self, value: int = 0) -> int:
        """A register of its own."""
        self.registers.append(value)
        return len(self.registers) - 1

    def constant(self, code: int) -> int:
        """The register of a constant."""
        if code not in self._constants:
            self._constants[code] = self.new_register(code)
        return self._constants[code]

    def index(self, table: int, bound: tuple[int, ...]) -> int:
        """The number of the index of a table by some keys."""
        if bound not in self.indexes[table]:
            self.indexes[table].append(bound)
        return self.indexes[table].index(bound)

    def order(self, table: int, keys: tuple[int, ...]) -> int:
        """The number, in `_ranges`, of the order of a table by the last of `keys`, the others being its prefix."""
        if keys not in self.orders[table]:
            self.orders[table].append(keys)
        self._ranges.append((table, self.orders[table].index(keys)))
        return len(self._ranges) - 1

    def listed(self, registers: Sequence[int]) -> int:
        """Where a list of registers stands, with its length."""
        self._lists += [len(registers), *registers]
        return len(self._lists) - len(registers) - 1

    def paired(self, pairs: Sequence[tuple[int, int]]) -> int:
        """Where a list of pairs stands, with how many there are."""
        self._lists += [len(pairs), *(number for pair in pairs for number in pair)]
        return len(self._lists) - 2 * len(pairs) - 1

    def numbers(self, numbers: Sequence[int]) -> int:
        """Where numbers stand."""
        self._lists += numbers
        return len(self._lists) - len(numbers)

    def emit(self, op: int, *cells: int) -> None:
        """Append an instruction."""
        self._rows.append([op, *cells])

    def patch(self, at: int, cell: int, value: int) -> None:
        """Change a cell of an instruction."""
        self._rows[at][cell] = value

    def ask(self, table: int, registers: Sequence[int]) -> None:
        """Events of the present kind need the slot of this key, if it is known from the start."""
        if all(r < self.width or r in self._constants.values() for r in registers):
            self._asks[-1][table, tuple(registers)] = None

    def described(self) -> tuple[t.Words, t.Words]:
        """(`desc`, `columns` of the tables), without regions yet."""
        rows, columns, most = [], [], max(1, self.most_keys)
        first = len(self.twins)
        first_order = first + sum(map(len, self.indexes))
        tops = set(self.program.tops)
        for made, slices, orders in zip(self.twins, self.indexes, self.orders, strict=True):
            keys, values = len(self.program.maps[made.names[0]].keys), len(made.names)
            links = 1 + keys + values
            top = int(not tops.isdisjoint(made.names))
            width = links + 2 * len(slices)
            rows.append([0, 0, 0, 0, keys, values, len(slices), first, links, width, top, len(orders), first_order])
            columns.append([0] * most)
            first, first_order = first + len(slices), first_order + len(orders)
        # An entry of an index is the first slot of a list; one of an order a root, and for each value a sum.
        for keys_of, less in ((self.indexes, 0), (self.orders, 1)):
            for made, listed in zip(self.twins, keys_of, strict=True):
                for named in listed:
                    keys, values = len(named) - less, 1 + less * len(made.names)
                    rows.append([0, 0, 0, 0, keys, values, 0, 0, 0, 1 + keys + values, 0, 0, 0])
                    columns.append([*named, *[0] * (most - len(named))])
        return np.array(rows, np.int64).reshape(-1, t.FIELDS), np.array(columns, np.int64).reshape(-1, most)


class _StatementLowering:
    """The instructions of one statement of twins. `known`: the registers of the bound variables of the first."""

    def __init__(self, lowered: LoweredProgram, table: int, members: Sequence[Statement]) -> None:
        self.lowered, self.members, self.known = lowered, members, dict[str, int]()
        kept = [[factor for factor in one.factors if not isinstance(factor, Val)] for one in members]
        done: frozenset[int] = frozenset()
        for i, factors in enumerate(zip(*kept, strict=True)):
            if i in done:
                continue
            interval = interval_of(members, kept, i, self.is_known) if isinstance(factors[0], MapRead) else None
            if interval is None:
                self.factor(factors)
            else:
                done |= interval.tests
                self.add_up(interval, [one for one in factors if isinstance(one, MapRead)])
        negated = self.values()
        keys = [self.register(key) for key in members[0].keys]
        lowered.ask(table, keys)
        lowered.emit(k.EMIT, table, int(negated), 0, 0, lowered.listed(keys), 0, len(members))

    def factor(self, factors: tuple[Factor, ...]) -> None:
        """Append what evaluates a factor, which every member has."""
        factor = factors[0]
        if isinstance(factor, MapRead):
            self.read(factor, [self.lowered.places[one.name] for one in factors if isinstance(one, MapRead)])
        elif isinstance(factor, Cmp):
            self.test(factor.op, self.register(factor.left), self.register(factor.right))
        else:
            assert isinstance(factor, Lift)
            made = self.register(factor.term)
            if self.is_known(factor.var):
                self.test("=", self.register(factor.var), made)
            else:
                self.known[factor.var.name] = made

    def values(self) -> bool:
        """Append what multiplies the weights by values; whether the products are to be taken away."""
        known, minus, negated = self.known, self.lowered.constant(-1), False
        standard = {new: known[old] for old, new in self._standard(self.members[0]).items() if old in known}
        of_members = []
        for one in self.members:
            names = self._standard(one)
            self.known = {old: standard[new] for old, new in names.items() if new in standard}
            of_members.append([self.register(f.term, k.WEIGHS) for f in one.factors if isinstance(f, Val)])
        self.known = known
        for r in list(of_members[0]):
            if all(r in registers for registers in of_members):
                if r == minus:  # -1 times the least number is none
                    negated = not negated
                else:
                    self._times(r, -1)
                for registers in of_members:
                    registers.remove(r)
        for member, registers in enumerate(of_members):
            for r in registers:
                self._times(r, member)
        return negated

    def _standard(self, statement: Statement) -> dict[str, str]:
        classes = {name: place.table for name, place in self.lowered.places.items()}
        return skeleton(statement, classes)[1]

    def _times(self, register: int, member: int) -> None:
        self.lowered.emit(k.TIMES, 0, register, member, 0, 0, 0, len(self.members))

    def test(self, op: str, a: int, b: int) -> None:
        """Append a comparison."""
        self.lowered.emit(k.TEST, COMPARISONS[op], a, b, 0, 0, 0, 0)

    def is_known(self, key: Var | Value) -> bool:
        """Whether a key is bound."""
        return isinstance(key, Value) or key.name.startswith(EVENT) or key.name in self.known

    def read(self, read: MapRead, places: Sequence[TablePlace]) -> None:
        """Append a lookup, or a loop over a slice or over all entries."""
        lowered, table, members = self.lowered, places[0].table, len(places)
        bound = tuple(i for i, key in enumerate(read.keys) if self.is_known(key))
        registers = [self.register(read.keys[i]) for i in bound]
        listed, reads = lowered.listed(registers), lowered.numbers([place.value for place in places])
        if len(bound) == len(read.keys):
            lowered.ask(table, registers)
            lowered.emit(k.READ, table, 0, 0, 0, listed, reads, members)
            return
        pairs, equal = [], []
        for i, key in enumerate(read.keys):
            if i in bound:
                continue
            assert isinstance(key, Var), "a constant is bound"
            register = lowered.new_register()
            pairs.append((i, register))
            if key.name in self.known:
                equal.append((self.known[key.name], register))
            else:
                self.known[key.name] = register
        where = lowered.paired(pairs)
        if bound:
            lowered.emit(k.SLICE, table, lowered.index(table, bound), 0, where, listed, reads, members)
        else:
            lowered.emit(k.ALL, table, 0, 0, where, 0, reads, members)
        for a, b in equal:
            self.test("=", a, b)

    def add_up(self, interval: KeyInterval, reads: Sequence[MapRead]) -> None:
        """Append the sum over an interval of the keys of a read, which every member has."""
        lowered, first = self.lowered, reads[0]
        places = [lowered.places[one.name] for one in reads]
        bound = tuple(i for i in range(len(first.keys)) if i != interval.key)
        listed = lowered.listed([self.register(first.keys[i]) for i in bound])
        ends = [-1 if end is None else self.register(end) for end in (interval.low, interval.high)]
        order = lowered.order(places[0].table, (*bound, interval.key))
        numbers = lowered.numbers([place.value for place in places])
        lowered.emit(k.RANGE, order, *ends, interval.open, listed, numbers, len(places))

    def register(self, term: Term, flags: int = 0) -> int:
        """The register that holds a term; what computes it is appended, with these `flags`."""
        lowered = self.lowered
        if isinstance(term, Var):
            return int(term.name[len(EVENT) :]) if term.name.startswith(EVENT) else self.known[term.name]
        if isinstance(term, Value):
            code = to_stored(term.value, term.type)
            assert isinstance(code, int), "`check_computable` refuses texts"
            return lowered.constant(code)
        assert isinstance(term, Apply), f"{term} is no term of a statement"
        args = [self.register(arg, flags) for arg in term.args]
        if term.op == "neg":
            args.insert(0, lowered.constant(0))
        made = lowered.new_register()
        lowered.emit(_ARITHMETIC.get(term.op, k.SUBTRACT), 0, args[0], args[1], made, 0, 0, flags)
        return made
