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

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Term, Value, Var, variables_of
from lftj.values.codes import Column, Misfit, Schema, from_code, to_code
from lftj.values.symbols import SymbolTable

Rows = npt.NDArray[np.int64]
INNER = "·"

_ALWAYS = frozenset({"cat", "strlen", "substr", "to_string"})
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
    inner = Clause(between, tuple(kept), tuple(atoms), tuple(inner_plain), clause.span, clause.text, clause.rule)
    outer = Clause(
        clause.head,
        tuple(head),
        (BodyAtom(between, tuple(columns)), *waiting),
        (*outer_plain, *later),
        clause.span,
        clause.text,
        clause.rule,
    )
    return TextSplit(inner, tuple(computed.values()), tuple(filters), schema, outer)


class TextColumns:
    """Columns of codes by variable, and terms evaluated over them. `rule` is the rule's text, for errors."""

    def __init__(self, columns: dict[str, Rows], count: int, symbols: SymbolTable, rule: str) -> None:
        self.columns, self.count, self.symbols, self.rule = columns, count, symbols, rule

    def take(self, keep: npt.NDArray[np.bool_]) -> None:
        """Keep only the rows marked."""
        self.columns = {name: column[keep] for name, column in self.columns.items()}
        self.count = int(np.count_nonzero(keep))

    def holds(self, compare: Compare) -> npt.NDArray[np.bool_]:
        """Which rows satisfy `compare`."""
        left, right = self.codes(compare.left), self.codes(compare.right)
        types = (compare.left.type, compare.right.type)
        test = _TESTS_BY_NAME.get(compare.op)
        if test is None:
            if compare.left.type == "symbol" and compare.op not in ("=", "!="):
                ranks = self.symbols.ranks()
                left, right = ranks[left], ranks[right]
            result: npt.NDArray[np.bool_] = _ORDER[compare.op](left, right)
            return result
        answer = self._each([left, right], types, lambda a, b: int(test(a, b)), "number")
        return answer.astype(np.bool_) if not compare.op.startswith("not_") else answer == 0

    def codes(self, term: Term) -> Rows:
        """The codes of `term`, one per row."""
        if isinstance(term, Var):
            return self.columns[term.name]
        if isinstance(term, Value):
            code = (
                self.symbols.intern_one(term.value) if isinstance(term.value, str) else to_code(term.value, term.type)
            )
            return np.full(self.count, code, np.int64)
        arguments = [self.codes(arg) for arg in term.args]
        types = tuple(arg.type for arg in term.args)
        if not computes_text(Apply(term.op, tuple(Var("", t) for t in types), term.type)):
            return self._arithmetic(term, arguments)
        return self._each(
            arguments, types, _FUNCTIONS[term.op] if term.op not in _PARSERS else _PARSERS[term.op], term.type
        )

    def _arithmetic(self, term: Apply, arguments: list[Rows]) -> Rows:
        """A functor over numbers, by the same machine that joins use."""
        from lftj.plan.lowering import apply_columns

        return apply_columns(term, arguments, self.rule)

    def _each(self, arguments: list[Rows], types: Sequence[str], function: Callable[..., object], type: str) -> Rows:
        """`function` of the values, once per distinct combination of codes."""
        if not self.count:
            return np.empty(0, np.int64)
        distinct, inverse = np.unique(np.stack(arguments), axis=1, return_inverse=True)
        values = []
        for column, t in zip(distinct, types, strict=True):
            values.append(
                self.symbols.decode(column).to_pylist() if t == "symbol" else [from_code(int(c), t) for c in column]
            )
        results = [self._one(function, row, type) for row in zip(*values, strict=True)]
        if type == "symbol":
            codes = self.symbols.intern([str(r) for r in results])
        else:
            codes = np.array(results, np.int64)
        return codes[inverse.reshape(-1)]

    def _one(self, function: Callable[..., object], row: tuple[object, ...], type: str) -> object:
        try:
            value = function(*row)
            return value if type == "symbol" else to_code(value, type)
        except (ValueError, Misfit, re.error) as error:
            shown = ", ".join(repr(v) for v in row)
            raise EvaluationError(
                f"a functor of the rule has no value for ({shown})",
                where=self.rule,
                why=str(error) or "the text cannot be converted",
                remedy="exclude such texts in the body, e.g. with `match`",
            ) from None


def _substr(text: str, start: int, length: int) -> str:
    return text[start : start + length] if 0 <= start <= len(text) and length >= 0 else ""


def _integer(text: object) -> int:
    if not isinstance(text, str) or not re.fullmatch(r"-?(0x[0-9a-fA-F]+|0b[01]+|[0-9]+)", text):
        raise ValueError(f"{text!r} is not an integer")
    return int(text, 0) if text.lstrip("-")[:2] in ("0x", "0b") else int(text)


def _float_text(value: object) -> str:
    from lftj.language.notation import float_text

    return float_text(value) if isinstance(value, float) else str(value)


_FUNCTIONS: dict[str, Callable[..., object]] = {
    "cat": lambda *texts: "".join(texts),
    "strlen": len,
    "substr": _substr,
    "to_string": _float_text,
    "min": lambda *texts: min(texts),
    "max": lambda *texts: max(texts),
}
_PARSERS: dict[str, Callable[..., object]] = {"to_number": _integer, "to_unsigned": _integer, "to_float": float}
_TESTS_BY_NAME: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda part, text: part in text,
    "not_contains": lambda part, text: part in text,
    "match": lambda pattern, text: re.fullmatch(pattern, text) is not None,
    "not_match": lambda pattern, text: re.fullmatch(pattern, text) is not None,
}
_ORDER: dict[str, Callable[..., npt.NDArray[np.bool_]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
