"""Lowering: the statements of a program as instructions of the event kernel, over registers.

    registers    the columns of the event | constants | the variables and intermediate values of a statement
    tables       the maps of the program in order, then the indexes by which statements read slices

What a term may hold is arithmetic whose codes are integers and add up as such: `+`, `-`, `*` and negation of numbers,
decimals and durations. All else about one row was computed before it became an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lftj.language.clause import Apply, Parameter, Term, Value, Var
from lftj.triggers import event_kernel as k
from lftj.triggers import table_kernel as t
from lftj.triggers.algebra import DELETION, EVENT, INSERTION, Cmp, Factor, Lift, MapRead, Statement, TriggerProgram
from lftj.values.type_table import family_of, to_stored

COMPARISONS = {"=": k.EQ, "!=": k.NE, "<": k.LT, "<=": k.LE, ">": k.GT, ">=": k.GE}
_ARITHMETIC = {"+": k.ADD, "-": k.SUBTRACT, "*": k.MULTIPLY}
# Types whose codes are integers that arithmetic of the types is arithmetic of.
INTEGERS = frozenset({"number", "decimal", "duration"})


def cannot_compute(term: Term) -> str:
    """Why a term is none that statements compute; empty if it is one."""
    if not isinstance(term, Apply):
        return "a parameter of a query" if isinstance(term, Parameter) else ""
    if term.op not in (*_ARITHMETIC, "neg"):
        return f"`{term}`, which is no sum or product"
    if not {family_of(part.type) for part in (term, *term.args)} <= INTEGERS:
        return f"`{term}`, which is arithmetic of {term.type}"
    return next(filter(None, map(cannot_compute, term.args)), "")


@dataclass
class Lowered:
    """A program for the kernel. `tables`: the number of each map · `indexes`: of each map, in order, by which keys.

    `kinds`: the number of each event · `width`: the most columns of an event · `registers`: with the constants in place
    · `code`, `instructions`: and how many of these there are · `statements`: in the order of the kernel's numbers.
    """

    program: TriggerProgram
    tables: dict[str, int] = field(default_factory=dict)
    indexes: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    kinds: dict[tuple[int, str], int] = field(default_factory=dict)
    width: int = 0
    registers: list[int] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    _rows: list[list[int]] = field(default_factory=list)
    _lists: list[int] = field(default_factory=list)
    _begins: list[int] = field(default_factory=list)
    _constants: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = self.program
        self.tables = {name: i for i, name in enumerate(program.maps)}
        self.indexes = {name: [] for name in program.maps}
        self.width = max((schema.arity for schema in program.relations.values()), default=0)
        self.registers = [0] * self.width
        spans = [0]
        for relation in program.relations:
            for sign in (INSERTION, DELETION):
                self.kinds[sign, relation] = len(spans) - 1
                for statement in program.statements.get((sign, relation), ()):
                    self._begins.append(len(self._rows))
                    self.statements.append(statement)
                    _StatementLowering(self, statement)
                spans.append(len(self.statements))
        self._begins.append(len(self._rows))
        self.code = k.Code(
            np.array(self._rows, np.int64).reshape(-1, k.CELLS),
            np.array(self._lists, np.int64),
            np.array(self._begins, np.int64),
            np.array(spans, np.int64),
        )

    @property
    def instructions(self) -> int:
        """How many instructions there are."""
        return len(self._rows)

    @property
    def most_keys(self) -> int:
        """The most keys of a map."""
        return max((len(made.keys) for made in self.program.maps.values()), default=0)

    def new_register(self, value: int = 0) -> int:
        """A register of its own."""
        self.registers.append(value)
        return len(self.registers) - 1

    def constant(self, code: int) -> int:
        """The register of a constant."""
        if code not in self._constants:
            self._constants[code] = self.new_register(code)
        return self._constants[code]

    def index(self, name: str, bound: tuple[int, ...]) -> int:
        """The number of the index of a map by some keys."""
        if bound not in self.indexes[name]:
            self.indexes[name].append(bound)
        return self.indexes[name].index(bound)

    def listed(self, registers: Sequence[int]) -> int:
        """Where a list of registers stands, with its length."""
        self._lists += [len(registers), *registers]
        return len(self._lists) - len(registers) - 1

    def paired(self, pairs: Sequence[tuple[int, int]]) -> int:
        """Where a list of pairs stands, with how many there are."""
        self._lists += [len(pairs), *(number for pair in pairs for number in pair)]
        return len(self._lists) - 2 * len(pairs) - 1

    def emit(self, op: int, about: int = 0, a: int = 0, b: int = 0, c: int = 0, listed: int = 0) -> None:
        """Append an instruction."""
        self._rows.append([op, about, a, b, c, listed])

    def described(self) -> tuple[t.Words, t.Words]:
        """(`desc`, `columns` of the tables), without regions yet."""
        rows, columns, most = [], [], max(1, self.most_keys)
        first = len(self.tables)
        tops = set(self.program.tops)
        for name, made in self.program.maps.items():
            slices = self.indexes[name]
            keys = len(made.keys)
            rows.append([0, 0, 0, 0, keys, len(slices), first, 2 + keys + 2 * len(slices), int(name in tops)])
            columns.append([0] * most)
            first += len(slices)
        for name in self.program.maps:
            for bound in self.indexes[name]:
                rows.append([0, 0, 0, 0, len(bound), 0, 0, 2 + len(bound), 0])
                columns.append([*bound, *[0] * (most - len(bound))])
        return np.array(rows, np.int64).reshape(-1, t.FIELDS), np.array(columns, np.int64).reshape(-1, most)


class _StatementLowering:
    """The instructions of one statement. `known`: the register of every variable that is bound so far."""

    def __init__(self, lowered: Lowered, statement: Statement) -> None:
        self.lowered, self.known = lowered, dict[str, int]()
        for factor in statement.factors:
            self.factor(factor)
        keys = [self.register(key) for key in statement.keys]
        lowered.emit(k.EMIT, lowered.tables[statement.target], listed=lowered.listed(keys))

    def factor(self, factor: Factor) -> None:
        """Append what evaluates a factor."""
        lowered = self.lowered
        if isinstance(factor, MapRead):
            self.read(factor)
        elif isinstance(factor, Cmp):
            self.test(factor.op, self.register(factor.left), self.register(factor.right))
        elif isinstance(factor, Lift):
            made = self.register(factor.term)
            if self.is_known(factor.var):
                self.test("=", self.register(factor.var), made)
            else:
                self.known[factor.var.name] = made
        else:
            lowered.emit(k.TIMES, a=self.register(factor.term))

    def test(self, op: str, a: int, b: int) -> None:
        """Append a comparison."""
        self.lowered.emit(k.TEST, COMPARISONS[op], a, b)

    def is_known(self, key: Var | Value) -> bool:
        """Whether a key is bound."""
        return isinstance(key, Value) or key.name.startswith(EVENT) or key.name in self.known

    def read(self, read: MapRead) -> None:
        """Append a lookup, or a loop over a slice or over all entries."""
        lowered, m = self.lowered, self.lowered.tables[read.name]
        bound = tuple(i for i, key in enumerate(read.keys) if self.is_known(key))
        listed = lowered.listed([self.register(read.keys[i]) for i in bound])
        if len(bound) == len(read.keys):
            lowered.emit(k.READ, m, listed=listed)
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
            lowered.emit(k.SLICE, m, a=lowered.index(read.name, bound), c=where, listed=listed)
        else:
            lowered.emit(k.ALL, m, c=where)
        for a, b in equal:
            self.test("=", a, b)

    def register(self, term: Term) -> int:
        """The register that holds a term; what computes it is appended."""
        lowered = self.lowered
        if isinstance(term, Var):
            return int(term.name[len(EVENT) :]) if term.name.startswith(EVENT) else self.known[term.name]
        if isinstance(term, Value):
            code = to_stored(term.value, term.type)
            assert isinstance(code, int), "texts are compared before rows become events"
            return lowered.constant(code)
        assert isinstance(term, Apply), f"{term} is no term of a statement"
        assert not cannot_compute(term), f"{term} is no arithmetic of integers"
        args = [self.register(arg) for arg in term.args]
        if term.op == "neg":
            args.insert(0, lowered.constant(0))
        made = lowered.new_register()
        lowered.emit(_ARITHMETIC.get(term.op, k.SUBTRACT), a=args[0], b=args[1], c=made)
        return made
