"""Rules that compute texts: the parts of a clause that no kernel can run.

Kernels see codes; `cat`, `substr`, `to_number`, `match` and the like need the texts. A clause with such terms is
evaluated in two clauses with a step between:

    p(z, w) :- r(x, y), z = cat(x, y), q(z, w).

    inner   ·(x, y)    :- r(x, y).                        a join like any other
    step    z := cat(x, y)                                column by column, each distinct combination of arguments once
    outer   p(z, w)    :- ·(x, y, z), q(z, w).            a join over the intermediate rows

An atom waits for the outer clause when it holds a computed variable that the rest of the body can compute; where the
computed variable's own arguments come from that atom, the equation is a filter of the step instead. The outer clause
may compute texts again and is then split in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.engine.texts import FUNCTIONS
from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Term, Value, Var, variables_of
from lftj.plan.lowering import apply_columns
from lftj.plan.partial import MATCH, UNDEFINED
from lftj.values.codes import Column, Misfit, Schema, from_code, to_code
from lftj.values.symbols import SymbolTable

Rows = npt.NDArray[np.int64]
INNER = "·"

_ALWAYS = frozenset({"cat", "strlen", "substr", "to_string", MATCH})
_OF_TEXT = frozenset({"to_number", "to_unsigned", "to_float", "min", "max"})
_TESTS = frozenset({"contains", "match", "not_contains", "not_match"})


def computes_text(term: Term) -> bool:
    """Whether `term` holds a functor over texts."""
    if not isinstance(term, Apply):
        return False
    if term.op in _ALWAYS or (term.op in _OF_TEXT and term.args[0].type == "symbol"):
        return True
    return any(computes_text(arg) for arg in term.args)


def _needs_step(compare: Compare) -> bool:
    return compare.op in _TESTS or computes_text(compare.left) or computes_text(compare.right)


@dataclass(frozen=True, slots=True)
class TextSplit:
    """A clause in two.

    `inner` binds `inner.head_args`, then come `definitions` (variable, term) and `filters`, then `outer` reads the rows
    of `schema`.
    """

    inner: Clause
    definitions: tuple[tuple[Var, Term], ...]
    filters: tuple[Compare, ...]
    schema: Schema
    outer: Clause


def split_text(clause: Clause) -> TextSplit | None:
    """How to evaluate a clause that computes texts; None for one that does not."""
    steps = [c for c in clause.compares if _needs_step(c)]
    in_head = [term for term in clause.head_args if computes_text(term)]
    if not steps and not in_head:
        return None
    plain = [c for c in clause.compares if not _needs_step(c)]
    atoms = list(clause.atoms)
    waiting: list[BodyAtom] = []
    computed: dict[str, tuple[Var, Term]] = {}
    filters: list[Compare] = []

    def bound_by(chosen: Sequence[BodyAtom]) -> set[str]:
        """Variables that `chosen` and the plain equations over them bind."""
        names = {v.name for atom in chosen for arg in atom.args for v in variables_of(arg)}
        grew = True
        while grew:
            grew = False
            for c in plain:
                for side, other in ((c.left, c.right), (c.right, c.left)):
                    if (
                        c.op == "="
                        and isinstance(side, Var)
                        and side.name not in names
                        and names >= {v.name for v in variables_of(other)}
                    ):
                        names.add(side.name)
                        grew = True
        return names

    def define(c: Compare) -> bool:
        """Take `c` as the definition of a variable if the atoms that do not hold it can compute it now."""
        for side, other in ((c.left, c.right), (c.right, c.left)):
            if c.op != "=" or not isinstance(side, Var) or side.name in computed:
                continue
            needs = {v.name for v in variables_of(other)}
            rest = [a for a in atoms if side.name not in {v.name for arg in a.args for v in variables_of(arg)}]
            known = bound_by(rest)
            # What was computed before must not lose the atoms that bind its arguments.
            for _, term in computed.values():
                needs |= {v.name for v in variables_of(term)}
            if side.name not in known and needs <= known:
                waiting.extend(a for a in atoms if a not in rest)
                atoms[:] = rest
                computed[side.name] = (side, other)
                return True
        return False

    left = [c for c in steps if not define(c)]
    names = bound_by(atoms)
    later: list[Compare] = []
    for c in left:
        ready = {v.name for term in (c.left, c.right) for v in variables_of(term)} <= names | set(computed)
        (filters if ready else later).append(c)
    inner_plain = [c for c in plain if {v.name for t in (c.left, c.right) for v in variables_of(t)} <= names]
    outer_plain = [c for c in plain if c not in inner_plain]
    types = {v.name: v for v in clause.variables()}
    head: list[Term] = []
    for term in clause.head_args:
        if computes_text(term) and {v.name for v in variables_of(term)} <= names | set(computed):
            name = f"·{len(computed)}"
            while name in types:  # the first of two splits
                name += "·"
            computed[name] = (Var(name, term.type), term)
            head.append(Var(name, term.type))
        else:
            head.append(term)
    kept = [types[name] for name in types if name in names]
    columns = [*kept, *(var for var, _ in computed.values())]
    between = INNER
    while any(atom.predicate == between for atom in clause.atoms):  # the clause is itself the outer part of another
        between += INNER
    schema = Schema(between, tuple(Column(v.name, v.type) for v in columns))
    # A negated atom goes where its variables are bound first.
    early = [a for a in clause.negated if {v.name for arg in a.args for v in variables_of(arg)} <= names]
    inner = Clause(
        between,
        tuple(kept),
        tuple(atoms),
        tuple(inner_plain),
        clause.span,
        clause.text,
        clause.rule,
        negated=tuple(early),
    )
    outer = Clause(
        clause.head,
        tuple(head),
        (BodyAtom(between, tuple(columns)), *waiting),
        (*outer_plain, *later),
        clause.span,
        clause.text,
        clause.rule,
        negated=tuple(a for a in clause.negated if a not in early),
        aggregate=clause.aggregate,
    )
    return TextSplit(inner, tuple(computed.values()), tuple(filters), schema, outer)


def parts_of(clause: Clause) -> Iterator[Clause]:
    """The clauses without text terms that `clause` is evaluated by: itself, or the parts of its split."""
    while (split := split_text(clause)) is not None:
        yield split.inner
        clause = split.outer
    yield clause


class Stepped(NamedTuple):
    """What the step of a split makes of rows of its inner part.

    `rows` int64[columns of the intermediate relation, size]; `undefined`: whether a row had a term without a value.
    """

    rows: Rows
    size: int
    undefined: bool


def step(split: TextSplit, rows: Rows, count: int, symbols: SymbolTable) -> Stepped:
    """Map `count` rows int64[inner's columns, count] of the inner part through the definitions and filters.

    A function of each row, which it keeps: distinct rows give distinct rows.
    """
    names = split.schema.names
    columns = TextColumns(dict(zip(names[: len(rows)], rows, strict=True)), count, symbols)
    for variable, term in split.definitions:
        columns.columns[variable.name] = columns.codes(term)
        columns.take(np.ones(columns.count, np.bool_))
    for condition in split.filters:
        columns.take(columns.holds(condition))
    stacked = np.stack([columns.columns[n] for n in names]) if names else np.empty((0, columns.count), np.int64)
    return Stepped(stacked, columns.count, columns.undefined)


class TextColumns:
    """Columns of codes by variable, and terms evaluated over them.

    A row for which a term has no value holds any code there, and goes with the next `take`; `undefined` says that one
    went so.
    """

    def __init__(self, columns: dict[str, Rows], count: int, symbols: SymbolTable) -> None:
        self.columns, self.count, self.symbols = columns, count, symbols
        self.undefined = False
        self._defined = np.ones(count, np.bool_)

    def take(self, keep: npt.NDArray[np.bool_]) -> None:
        """Keep only the rows marked, of those whose terms all have values."""
        self.undefined = self.undefined or not self._defined.all()
        keep = keep & self._defined
        self.columns = {name: column[keep] for name, column in self.columns.items()}
        self.count = int(np.count_nonzero(keep))
        self._defined = np.ones(self.count, np.bool_)

    def holds(self, compare: Compare) -> npt.NDArray[np.bool_]:
        """Which rows satisfy `compare`."""
        if compare.op == UNDEFINED:
            assert isinstance(compare.left, Apply)
            for arg in compare.left.args:
                self.codes(arg)
            with_arguments = self._defined.copy()
            self.codes(compare.left)
            without, self._defined = ~self._defined, with_arguments
            return without
        if compare.op in _TESTS:
            wanted = not compare.op.startswith("not_")
            answer = self._applied(compare.op.removeprefix("not_"), (compare.left, compare.right), "number")
            held: npt.NDArray[np.bool_] = (answer != 0) == wanted
            return held
        left, right = self.codes(compare.left), self.codes(compare.right)
        if compare.left.type == "symbol" and compare.op not in ("=", "!="):
            ranks = self.symbols.ranks()
            left, right = ranks[left], ranks[right]
        result: npt.NDArray[np.bool_] = _ORDER[compare.op](left, right)
        return result

    def codes(self, term: Term) -> Rows:
        """The codes of `term`, one per row."""
        if isinstance(term, Var):
            return self.columns[term.name]
        if isinstance(term, Value):
            code = (
                self.symbols.intern_one(term.value) if isinstance(term.value, str) else to_code(term.value, term.type)
            )
            return np.full(self.count, code, np.int64)
        own = Apply(term.op, tuple(Var("", arg.type) for arg in term.args), term.type)
        if computes_text(own):
            return self._applied(term.op, term.args, term.type)
        codes, defined = apply_columns(term, [self.codes(arg) for arg in term.args])
        self._defined &= defined
        return codes

    def _applied(self, op: str, args: Sequence[Term], type: str) -> Rows:
        """A functor over texts applied to terms, once per distinct combination of codes."""
        arguments, function = [self.codes(arg) for arg in args], FUNCTIONS[op]
        if not self.count:
            return np.empty(0, np.int64)
        distinct, inverse = np.unique(np.stack(arguments), axis=1, return_inverse=True)
        inverse = inverse.reshape(-1)
        values = []
        for column, arg in zip(distinct, args, strict=True):
            values.append(
                self.symbols.decode(column).to_pylist()
                if arg.type == "symbol"
                else [from_code(int(c), arg.type) for c in column]
            )
        results = [_value(function, row, type) for row in zip(*values, strict=True)]
        self._defined &= np.array([result is not None for result in results])[inverse]
        if type == "symbol":
            codes = self.symbols.intern([str(result) for result in results])
        else:
            codes = np.array([0 if result is None else result for result in results], np.int64)
        return codes[inverse]


def _value(function: Callable[..., object], row: tuple[object, ...], type: str) -> object:
    """`function` of `row`, as a code if it is no symbol; None if there is no such value."""
    try:
        value = function(*row)
        return value if type == "symbol" else to_code(value, type)
    except (ValueError, Misfit):
        return None


_ORDER: dict[str, Callable[..., npt.NDArray[np.bool_]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
