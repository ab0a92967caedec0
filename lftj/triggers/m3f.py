"""M3F: a trigger program as text (Cumulus, section 3; "map maintenance message format").

    relation O(k: number, r: number)
    relation L(k: number, p: number)
    map q[] = O(k, r) * r * L(k, p) * p
    map m_O[k: number] = L(k, p) * p
    map m_L[k: number] = O(k, r) * r
    top q
    on +O(k, r): q[] += r * m_O[k]
    on +O(k, r): m_L[k] += r

In a product `name(..)` is a relation, `name[..]` an entry of a map, a name or a number its value, `{a + b}` the value
of a term, `{a < b}` a comparison, `{x ^= t}` a lift, `Sum[k](..)` an AggSum, `(f + g)` a sum. An event's parameters
have the names of the columns. `-=` begins with the factor -1. What is no plain name stands in backticks.

What is worked out anew after an event stands at the end (m3f_final.py). `m3f_reader.parsed(text(program)) == program`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count

from lftj.language.clause import Apply, Parameter, Term, Value, Var
from lftj.triggers.algebra import (
    EVENT,
    INSERTION,
    Add,
    AggSum,
    Cmp,
    Factor,
    Formula,
    Lift,
    MapDefinition,
    MapRead,
    Mul,
    Rel,
    Statement,
    TriggerProgram,
    Val,
)
from lftj.triggers.formulas import variables_of_all
from lftj.triggers.m3f_final import final_lines
from lftj.values.schema import Column, Schema
from lftj.values.spelling import symbol_text
from lftj.values.type_table import type_of

KEYWORDS = frozenset(("relation", "map", "top", "on", "interval", "run", "final", "none", "including", "Sum", "null"))
_PLAIN = re.compile(r"(?![0-9])[\w?@·][\w?@·.']*")
# The functors that are written between their operands, with how tightly they bind; others are written as calls.
INFIX = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_OPERAND = 3
_MINUS_ONE = Val(Value(-1, "number"))

# What parameters are called.
Names = Mapping[str, str]


def text(program: TriggerProgram) -> str:
    """The program as M3F; every line ends with a newline."""
    lines = [_relation(name, schema) for name, schema in program.relations.items()]
    lines += [definition_text(definition) for definition in program.maps.values()]
    if program.tops:
        lines.append(f"top {', '.join(map(name_text, program.tops))}")
    lines += statement_lines(program)
    if program.final is not None:
        lines += final_lines(program.final, name_text)
    return "\n".join(lines) + "\n"


def statement_lines(program: TriggerProgram, sign: int | None = None) -> list[str]:
    """The statements of a program, one a line; with `sign` those of insertions or of deletions."""
    lines = []
    for event, statements in program.statements.items():
        if sign is None or event[0] == sign:
            lines += event_lines(event, statements, program.relations[event[1]])
    return lines


def _relation(name: str, schema: Schema) -> str:
    columns = schema.columns[:-1] if schema.functional else schema.columns
    value = f" -> {_column(schema.columns[-1])}" if schema.functional else ""
    return f"relation {name_text(name)}({', '.join(map(_column, columns))}){value}"


def _column(column: Column | Var) -> str:
    return f"{name_text(column.name)}: {column.type}"


def definition_text(definition: MapDefinition) -> str:
    """A map with its key types and what it holds: `map m[k: number] = L(k, p) * p`."""
    keys = ", ".join(map(_column, definition.keys))
    return f"map {name_text(definition.name)}[{keys}] = {formula_text(definition.body)}"


def event_lines(event: tuple[int, str], statements: Sequence[Statement], schema: Schema) -> list[str]:
    """The statements of an event on a relation with this schema, one a line: `on +R(a): m[a] += 1`."""
    sign, relation = event
    names = parameter_names(schema, statements)
    header = f"on {'+' if sign == INSERTION else '-'}{name_text(relation)}({', '.join(map(name_text, names.values()))})"
    return [f"{header}: {statement_text(statement, names)}" for statement in statements]


def parameter_names(schema: Schema, statements: Iterable[Statement]) -> dict[str, str]:
    """What the parameters of an event are called in its statements: as the columns, unless a variable is called so."""
    used = {
        name
        for statement in statements
        for name in (
            *variables_of_all(statement.factors),
            *(key.name for key in statement.keys if isinstance(key, Var)),
        )
    }
    names: dict[str, str] = {}
    for i, column in enumerate(schema.columns):
        base = column.name
        candidates = chain((base,), (f"{base}{n}" for n in count(2)))
        name = next(name for name in candidates if name not in used)
        used.add(name)
        names[f"{EVENT}{i}"] = name
    return names


def statement_text(statement: Statement, names: Names) -> str:
    """A statement: `m[k] += m2[a] * b`."""
    factors: Sequence[Factor] = statement.factors
    change = "+="
    if factors and factors[0] == _MINUS_ONE:
        factors, change = factors[1:], "-="
    target = f"{name_text(statement.target)}[{_args(statement.keys, names)}]"
    return f"{target} {change} {' * '.join(formula_text(factor, names) for factor in factors) or '1'}"


def formula_text(formula: Formula, names: Names | None = None) -> str:
    """A formula. `names`: what the parameters of the event are called."""
    names = names or {}
    match formula:
        case Rel(name, args):
            return f"{name_text(name)}({_args(args, names)})"
        case MapRead(name, keys):
            return f"{name_text(name)}[{_args(keys, names)}]"
        case Lift(var, term):
            return f"{{{term_text(var, names)} ^= {term_text(term, names)}}}"
        case Cmp(op, left, right):
            return f"{{{term_text(left, names)} {op} {term_text(right, names)}}}"
        case Val(term):
            shown = term_text(term, names)
            # A bare 1 or 0 is the product or the sum of nothing.
            return f"{{{shown}}}" if isinstance(term, Apply) or shown in ("0", "1") else shown
        case Mul(()):
            return "1"
        case Mul((part,)):
            return f"(* {formula_text(part, names)})"
        case Mul(parts):
            return " * ".join(_nested(part, names) for part in parts)
        case Add(()):
            return "0"
        case Add((part,)):
            return f"(+ {formula_text(part, names)})"
        case Add(parts):
            return f"({' + '.join(formula_text(part, names) for part in parts)})"
        case AggSum(keys, body):
            return f"Sum[{_args(keys, names)}]({formula_text(body, names)})"


def _nested(part: Formula, names: Names) -> str:
    shown = formula_text(part, names)
    return f"({shown})" if isinstance(part, Mul) and len(part.parts) > 1 else shown


def _args(args: Sequence[Var | Value], names: Names) -> str:
    return ", ".join(term_text(arg, names) for arg in args)


def term_text(term: Term, names: Names | None = None) -> str:
    """A term; types that its parts do not tell are written behind it."""
    return _term(term, names or {})[0]


def _term(term: Term, names: Names) -> tuple[str, int]:
    if isinstance(term, Var):
        return name_text(names.get(term.name, term.name)), _OPERAND
    if isinstance(term, Value):
        return _literal(term), _OPERAND
    assert not isinstance(term, Parameter), "the parameters of queries have values before they come here"
    level = INFIX.get(term.op, 0)
    if level and len(term.args) == 2:
        (left, left_level), (right, right_level) = (_term(arg, names) for arg in term.args)
        left = left if left_level >= level else f"({left})"
        right = right if right_level > level else f"({right})"
        shown = f"{left} {term.op} {right}"
    else:
        level = _OPERAND
        shown = f"{name_text(term.op)}({', '.join(_term(arg, names)[0] for arg in term.args)})"
    if term.type != common_type(term.args):
        return f"({shown}):{term.type}", _OPERAND
    return shown, level


def common_type(args: Sequence[Term]) -> str:
    """The type that all arguments have, which a functor's result has unless another is written; "" if they differ."""
    types = {arg.type for arg in args}
    return types.pop() if len(types) == 1 else ""


def _literal(value: Value) -> str:
    if value.value is None:
        return f"null:{value.type}"
    if value.type == "number":
        return str(value.value)
    if value.type == "symbol":
        return symbol_text(value.value)
    return f"{symbol_text(type_of(value.type).text(value.value))}:{value.type}"


def name_text(name: str) -> str:
    """A name, in backticks unless it is plain."""
    if _PLAIN.fullmatch(name) and name not in KEYWORDS:
        return name
    return f"`{name.replace('`', '``')}`"
