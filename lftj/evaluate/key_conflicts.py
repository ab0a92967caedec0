"""Functional predicates and primary keys: one value, or row, per key, and the error that shows two.

    .decl price(item:symbol) -> cost:float         price["anvil"] = 3.0

is a relation price(item, cost) whose last column, the *value*, is determined by the others, its *key*; without a key
(`.decl best() -> x:number`) it holds one row or none. Every version that becomes the facts or the content of such a
relation is checked before it is published: a whole one by comparing neighbours once, the next of one that was checked
by looking up the keys of the inserted rows. Two rows under one key are a `KeyConflictError`, which says of each where
it comes from: that it is a fact, or the rule that derives it with a binding of its variables. The binding is found by
evaluating the rule with the row in the place of its head, as far as the first answer.

    .decl city(id:number, name:symbol) primary-key (id)

is a relation whose *primary key* determines the row; its columns may stand anywhere. Where they come first, it is
checked as above. Where only some of them do, rows that begin like an inserted one are compared, as long as these are
few. Else the facts before are looked up in the key order that begins with the key, which is built for the first check
of few rows and follows as others do; for many rows the keys of all are sorted.

An aggregate's own relation has one row per group because of how it is computed (`Heads.grouped`), and is not checked;
nor is what shares the content of a functional predicate (alias.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lftj.errors import Error, KeyConflictError, Span
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause, Compare, Value
from lftj.language.notation import literal_text
from lftj.store.change import INSERTED, Change
from lftj.store.primary_keys import as_declared, key_first
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.schema import Schema
from lftj.values.type_table import is_nullable
from scantree.memory import ArenaFullError
from scantree.sort import permuted, sorting
from scantree.version import Rows, Version

Row = tuple[Any, ...]

# From this part of the relation on, looking through all of it is cheaper than looking up the keys of the inserted rows;
# and from this one on if the key order that they are looked up in is still to be built, with all columns.
LARGE_PART, LARGE_UNORDERED_PART = 1 / 8, 1 / 64
# Steps for each inserted row, and some more, that comparing it with those that begin alike may take.
NEARBY, SOME_NEARBY = 32, 256
A_FACT = "a fact (loaded or inserted)"


def check_facts(evaluator: Evaluator, before: StoredRelation, facts: Version, inserted: Rows) -> None:
    """Raise `KeyConflictError` if `facts`, those that follow on `before`, have two values or rows under one key.

    `inserted` int64[arity, n]: rows that came since they were last checked; some of them may have been there.
    """
    pair = _two_alike(before, facts, inserted)
    if pair is not None:
        schema = before.schema
        first, second = (gate.decode_row(row.tolist(), schema, evaluator.symbols) for row in pair.T)
        raise _conflict(schema, first, second, (A_FACT, A_FACT), "")


def key_holds(before: StoredRelation, facts: Version, since: Version) -> bool:
    """Whether no two of `facts` have one key. They follow on `since`, where it held, and those on what was `before`."""
    recent = Change.between(since, facts).of_kind(INSERTED)
    if not recent.shape[1]:
        return True
    known, pair = _pair(before.schema, key_first(before.schema), facts, recent)
    if not known:
        pair = _two_alike(before, facts, Change.between(before.facts, facts).of_kind(INSERTED))
    return pair is None


def _two_alike(before: StoredRelation, facts: Version, inserted: Rows) -> Rows | None:
    """Two values or rows of `facts` under one key, int64[arity, 2]; as `check_facts`."""
    schema, order = before.schema, key_first(before.schema)
    known, pair = _pair(schema, order, facts, inserted)
    if not known and before.content is before.facts:
        part = LARGE_PART if order in before.orders else LARGE_UNORDERED_PART
        if known := inserted.shape[1] <= part * len(facts):
            pair = _pair_beside(before, order, facts, inserted)
    if not known:
        pair = _pair_anywhere(schema, order, facts)
    return pair


def check_content(
    evaluator: Evaluator, head: str, after: StoredRelation, change: Change | None, limits: Limits
) -> None:
    """Raise `KeyConflictError` if the content of `after`, the next of `head`, has two values or rows under one key.

    It is what the rules of `head` derive from the evaluator's state, and its facts there. `change`: how it differs from
    a content that was checked; None: there was none.
    """
    relations, clauses = evaluator.state.relations, evaluator.state.strata.by_head[head]
    relation, content = relations[head], after.content
    functional = relation.schema.functional
    below = relations.get(clauses[0].atoms[0].predicate) if len(clauses) == 1 and clauses[0].atoms else None
    if functional and below is not None and below.content is content and below.schema.functional:
        return
    inserted, order = None if change is None else change.of_kind(INSERTED), key_first(relation.schema)
    known, pair = _pair(relation.schema, order, content, inserted)
    if not known:
        pair = _pair_anywhere(relation.schema, order, content)
    if pair is None:
        return
    rows, described, where = [], [], ""
    for codes in pair.T:
        row = gate.decode_row(codes.tolist(), relation.schema, evaluator.symbols)
        words, span = A_FACT, None
        if not relation.facts.contains(codes[:, None])[0]:
            words, span = derivation(evaluator, clauses, row, limits)
        rows.append(row)
        described.append(words)
        where = where or (str(span) if span is not None else "")
    raise _conflict(relation.schema, rows[0], rows[1], (described[0], described[1]), where)


def _pair(schema: Schema, order: tuple[int, ...], version: Version, inserted: Rows | None) -> tuple[bool, Rows | None]:
    """(whether the declared key order tells, two rows of a version under one key). `inserted`: as `check_facts`."""
    keys, few = len(schema.key) or schema.arity - 1, None
    if inserted is not None and inserted.shape[1] <= LARGE_PART * len(version):
        few = inserted
    if order == tuple(range(schema.arity)):
        if keys == schema.arity:
            return True, None
        return True, version.pair(keys) if few is None else version.pair(keys, few[:keys])
    first = next(column for column in range(schema.arity) if column not in schema.key)
    if few is None or not first:
        return False, None
    return version.pair_nearby(few, first, schema.key, SOME_NEARBY + NEARBY * few.shape[1])


def _pair_anywhere(schema: Schema, order: tuple[int, ...], version: Version) -> Rows | None:
    """Two rows of a version under one key, which may stand anywhere. Only keys are sorted, unless there is a pair."""
    _, repeats = sorting(version.some_columns(schema.key))
    return _neighbours(permuted(version.columns(), order), order, len(schema.key)) if repeats else None


def _neighbours(rows: Rows, order: tuple[int, ...], keys: int) -> Rows | None:
    """Two of the `rows` int64[arity, n], in key order, that share their first keys: int64[arity, 2], as declared."""
    alike = (rows[:keys, 1:] == rows[:keys, :-1]).all(axis=0)
    at = int(np.argmax(alike)) if alike.any() else -1
    return None if at < 0 else as_declared(rows[:, at : at + 2], order)


def _pair_beside(before: StoredRelation, order: tuple[int, ...], facts: Version, inserted: Rows) -> Rows | None:
    """Two rows of `facts` under one key, of which one was inserted since `before`."""
    new = np.compress(~before.facts.contains(inserted), inserted, axis=1)
    if not new.shape[1]:
        return None
    rows, keys = permuted(new, order), len(before.schema.key)
    pair = _neighbours(rows, order, keys)
    if pair is None:
        beside = as_declared(before.order(order).rows_under(rows[:keys]), order)
        beside = np.compress(facts.contains(beside), beside, axis=1)
        if beside.shape[1]:
            key = list(before.schema.key)
            other = np.flatnonzero((new[key] == beside[key, :1]).all(axis=0))[0]
            pair = np.stack([beside[:, 0], new[:, other]], axis=1)
    return pair


# The error ------------------------------------------------------------------------------------------------------------


def shown_row(schema: Schema, row: Row) -> str:
    """A row as the language writes it: `price["anvil"] = 3.0`."""
    if not schema.functional:
        shown = (literal_text(v, type) for v, type in zip(row, schema.types, strict=True))
        return f"{schema.name}({', '.join(shown)})"
    *key, value = (literal_text(v, type) for v, type in zip(row, schema.types, strict=True))
    return f"{schema.name}[{', '.join(key)}] = {value}"


def _conflict(schema: Schema, first: Row, second: Row, derivations: tuple[str, str], where: str) -> KeyConflictError:
    shown = [shown_row(schema, row) for row in (first, second)]
    if schema.key and derivations == (A_FACT, A_FACT):
        remedy = "give each row a key of its own; `tx.upsert` replaces the row that is there"
    elif derivations == (A_FACT, A_FACT):
        remedy = "give each key one value; `tx.upsert` replaces the value that is there"
    elif A_FACT in derivations:
        remedy = "erase the fact, or make the rule leave its key out"
    else:
        remedy = (
            "let the rules derive one value per key, by an aggregate such as `max` or by conditions of which one holds"
        )
    named = ", ".join(f"{schema.names[at]} = {literal_text(first[at], schema.types[at])}" for at in schema.key)
    alike = f"two rows with the key {named}" if schema.key else "two values under one key"
    columns = ", ".join(schema.names[at] for at in schema.key)
    is_a = f"the primary key of `{schema.name}` is ({columns})" if schema.key else f"{schema} is a functional predicate"
    return KeyConflictError(
        f"`{schema.name}` has {alike}: {shown[0]} and {shown[1]}",
        relation=schema.name,
        rows=(first, second),
        derivations=derivations,
        details=tuple(f"{row}: {derivation}" for row, derivation in zip(shown, derivations, strict=True)),
        where=where,
        why=f"{is_a}; nothing was changed",
        remedy=remedy,
    )


def derivation(evaluator: Evaluator, clauses: Sequence[Clause], row: Row, limits: Limits) -> tuple[str, Span | None]:
    """What derives `row`, in words, and the place of the rule."""
    for clause in clauses:
        rule = f"{clause.span}: `{clause.text or clause}`"
        if clause.aggregate is not None:
            return rule, clause.span
        try:
            binding = _binding(evaluator, clause, row, limits)
        except (Error, ArenaFullError):
            continue  # the conflict is what has to be told, not that time or memory ran out
        if binding is not None:
            shown = ", ".join(f"{name} = {value}" for name, value in binding.items())
            return rule + (f" with {shown}" if shown else ""), clause.span
    return "one of its rules", clauses[0].span


class _FoundError(Exception):
    """Ends an evaluation at its first rows."""

    def __init__(self, codes: list[int]) -> None:
        self.codes = codes


def _binding(evaluator: Evaluator, clause: Clause, row: Row, limits: Limits) -> dict[str, str] | None:
    """Variable -> value, as written, of one binding by which `clause` derives `row`; None if it does not derive it."""
    if any(value is None and not is_nullable(term.type) for value, term in zip(row, clause.head_args, strict=True)):
        return None
    variables = clause.variables()
    given = [(term, Value(value, term.type)) for value, term in zip(row, clause.head_args, strict=True)]
    if any(isinstance(term, Value) and term != value for term, value in given):
        return None
    compares = [Compare("=", term, value) for term, value in given if not isinstance(term, Value)]
    asked = replace(clause, head_args=variables, compares=(*clause.compares, *compares), rule=0)

    def found(rows: Rows) -> None:
        if rows.shape[1]:
            raise _FoundError(rows[:, 0].tolist())

    try:
        evaluator.rows(asked, limits, found)
    except _FoundError as first:
        codes = first.codes
    else:
        return None
    values = [evaluator.decode(code, v.type) for code, v in zip(codes, variables, strict=True)]
    # Names that begin with an underscore were made for expressions and wildcards, or are of no interest.
    return {
        v.name: literal_text(value, v.type)
        for v, value in zip(variables, values, strict=True)
        if not v.name.startswith("_")
    }
