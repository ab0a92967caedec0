"""Undefined groups: an aggregate that has no result for a group is an error only where a rule asks for that group.

    p(x, s) :- r(x), s = sum y : { e(x, y) }.         an error if r(x) holds for an x whose sum its type does not hold

The aggregate is an internal relation, made of every group that its braces bind (aggregates.py). A group without a
result gets no row there; it is *undefined*, and the state keeps it (`State.undefined`). When a clause that reads such a
relation was derived, the rest of its body is asked whether it holds for an undefined group: the atom becomes one over
the undefined groups, and what needs the missing value is left out, as for a term without a value (undefined_terms.py):

    p(x, s) :- r(x), @p.1(x, s), q(s, z), s > 3, !f(s).        rest     r(x), undefined(x), q(s, z), s > 3, !f(s)
    p(x, s) :- r(x), @p.1(x, s), s > 3, !f(s).                 rest     r(x), undefined(x)

If the rest has a row and the user named the head, the row is in error. In another internal relation (the bindings of an
outer aggregate, the rows for which a negated conjunction holds) the row is undefined in its turn; of its columns only
those are known that need no missing value. The content of an internal relation may lack rows, or have others, where it
is undefined. Nobody sees them: a rule that asks for them is in error.

Atoms over aggregates are like terms: one whose group needs the missing value is left out, too. Groups themselves
(`@..groups`) are any values that a rule may ask for, and none is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.rest_of_body import bound_in, without_terms
from lftj.evaluate.term_sets import ask_for_sets
from lftj.evaluate.undefined_atoms import name_of, relation_of
from lftj.language.aggregate_specs import squares
from lftj.language.clause import INTERNAL, Apply, BodyAtom, Clause, Term, Value, Var, names_of
from lftj.language.internal_relations import GROUPS, WITH_ZERO
from lftj.language.null import not_null
from lftj.plan.partial_functions import partial_of
from lftj.program.undefined import UndefinedRows
from lftj.store.stored import StoredRelation
from lftj.values.type_table import type_of, with_null

if TYPE_CHECKING:
    from lftj.evaluate.accumulators import GroupsWithoutResult
    from lftj.evaluate.evaluator import Evaluator
    from lftj.join.run import Limits
    from lftj.program.strata import Heads

Rows = npt.NDArray[np.int64]
Undefined = dict[str, tuple[UndefinedRows, ...]]


def undefined_groups_of(clause: Clause, without_result: GroupsWithoutResult) -> tuple[UndefinedRows, ...]:
    """The groups of the aggregate `clause` without a result."""
    if not without_result:
        return ()
    return (
        UndefinedRows(
            tuple(range(len(without_result.groups))), without_result.groups, clause, without_result.undefined
        ),
    )


def undefined_of(
    evaluator: Evaluator,
    heads: Heads,
    relations: Mapping[str, StoredRelation],
    own: tuple[UndefinedRows, ...],
    limits: Limits,
) -> Undefined:
    """Rows of `heads` without a value, where there are any; `relations`: their contents, `own`: groups of their own.

    Raises `EvaluationError` if a row that the user sees needs such a value.
    """
    if not heads.recursive:
        found = undefined_in(evaluator, heads.name, own, limits)
        return {heads.name: found} if found else {}
    if not evaluator.state.undefined:
        return {}
    together = undefined_together(evaluator, heads.names, {**evaluator.relations, **relations}, limits)
    return {head: together[head] for head in heads.names if head in together}


def undefined_in(
    evaluator: Evaluator, head: str, own: tuple[UndefinedRows, ...], limits: Limits
) -> tuple[UndefinedRows, ...]:
    """The undefined rows of the internal relation `head`, derived from the evaluator's state; `own`: its own groups.

    Raises `EvaluationError` if there is one, and the user named the head.
    """
    undefined = evaluator.state.undefined
    if not own and not undefined:
        return ()
    internal = head.startswith(INTERNAL) and not evaluator.relations[head].schema.constraint
    if own and not internal:
        raise _error(evaluator, own[0], 0)
    if head.endswith(GROUPS):
        return ()
    if head.endswith(WITH_ZERO):
        clauses = evaluator.state.strata.of(head)
        groups = (_admitted(one, clauses) for one in undefined.get(head.removesuffix(WITH_ZERO), ()))
        return tuple(one for one in groups if one.rows.shape[1])
    found = list(own)
    for clause in evaluator.state.strata.of(head):
        if not undefined.keys().isdisjoint(clause.reads):
            found += _undefined_by(evaluator, clause, internal, limits)
    return tuple(found)


def undefined_together(
    evaluator: Evaluator, heads: tuple[str, ...], relations: Mapping[str, StoredRelation], limits: Limits
) -> dict[str, tuple[UndefinedRows, ...]]:
    """All undefined rows once the heads of a recursive component are derived, their content in `relations`.

    Raises `EvaluationError` if there is one in a head that the user named.
    """
    state = evaluator.state
    if not state.undefined:
        return state.undefined
    undefined = {name: rows for name, rows in state.undefined.items() if name not in heads}
    staged = evaluator.over(state._replace(relations={**relations}, undefined=undefined))
    # An aggregate with its zeros belongs to the component only for its groups.
    for head in sorted(heads, key=lambda head: not head.endswith(WITH_ZERO)):
        if found := undefined_in(staged, head, (), limits):
            if not head.endswith(WITH_ZERO):
                raise _error(evaluator, found[0], 0)
            undefined[head] = found
    return undefined


def with_undefined(undefined: Undefined, names: Iterable[str], found: Undefined) -> Undefined:
    """`undefined` with `found` for the heads `names`."""
    if not found and undefined.keys().isdisjoint(names):
        return undefined
    return {**{name: rows for name, rows in undefined.items() if name not in names}, **found}


def _admitted(one: UndefinedRows, clauses: Sequence[Clause]) -> UndefinedRows:
    """The groups of `one` that an aggregate with its zeros has, by its `clauses`."""
    columns = joined_columns(clauses, one.columns)
    keep = np.ones(one.rows.shape[1], np.bool_)
    for row, column in zip(one.rows, one.columns, strict=True):
        if column in columns:
            keep &= row != type_of(with_null(clauses[0].head_args[column].type)).null
    return one._replace(rows=one.rows[:, keep], undefined=one.undefined[keep])


def joined_columns(clauses: Sequence[Clause], columns: Iterable[int]) -> list[int]:
    """Those of the columns in which null is no group of an aggregate with its zeros, given by its clauses.

    They are joined outside the braces, and null equals nothing.
    """
    return [c for c in columns if all(not_null(clause.head_args[c]) in clause.compares for clause in clauses)]


# A clause ------------------------------------------------------------------------------------------------------------


def _undefined_by(evaluator: Evaluator, clause: Clause, internal: bool, limits: Limits) -> Iterator[UndefinedRows]:
    """The undefined rows of the head of `clause`, from those of its body."""
    undefined, body = evaluator.state.undefined, (*clause.atoms, *clause.negated)
    choices = [(None, *undefined.get(atom.predicate, ())) for atom in body]
    for chosen in sorted(product(*choices), key=lambda some: sum(one is not None for one in some)):
        if any(one is not None for one in chosen):
            yield from _undefined_where(evaluator, clause, chosen, internal, limits)


def _undefined_where(
    evaluator: Evaluator, clause: Clause, chosen: Sequence[UndefinedRows | None], internal: bool, limits: Limits
) -> list[UndefinedRows]:
    """The undefined rows of the head where the atoms of the body read the undefined rows `chosen`; None: a row."""
    state, relations = evaluator.state, evaluator.relations
    asking, first, names = asking_for(
        clause,
        [None if one is None else one.columns for one in chosen],
        lambda name: relations[name].types,
        lambda name: is_result(name, state.strata.of(name)),
    )
    also = {
        name: relation_of(evaluator, atom.predicate, one, name)
        for atom, one, name in zip((*clause.atoms, *clause.negated), chosen, names, strict=True)
        if one is not None
    }
    cause = next(one for one in chosen if one is not None)
    found: list[UndefinedRows] = []

    def ask(without: tuple[Apply, ...]) -> bool:
        rest = without_terms(asking, without)
        if rest is None:
            return False
        limits.look(0)
        columns = known_columns(clause, bound_in(rest)) if internal else ()
        known = tuple(clause.head_args[c] for c in columns)
        rest = replace(rest, head_args=(*known, *first))
        chunks: list[Rows] = []
        _, saw_undefined = evaluator.walk(rest, limits, chunks.append, also=also)
        rows, count = evaluator.distinct(chunks, len(rest.head_args))
        if count:
            error = _error(evaluator, cause, _place(cause, rows[len(known) :]))
            if not internal:
                raise error
            rows, count = evaluator.distinct([rows[: len(known)]], len(known))
            shown_error = (error.what, error.where, error.why, error.remedy)
            found.append(UndefinedRows(columns, rows, None, np.zeros(count, np.bool_), shown_error))
        return saw_undefined

    terms = tuple(dict.fromkeys(term for c in clause.compares for term in partial_of(c)))
    ask_for_sets(evaluator, asking, terms, ask, limits, also)
    return found


def known_columns(clause: Clause, bound: Mapping[str, Var]) -> tuple[int, ...]:
    """The columns of the head (of an aggregate, the group's) whose values are known by these variables."""
    width = len(clause.head_args) if clause.aggregate is None else clause.aggregate.groups
    return tuple(
        c
        for c, term in enumerate(clause.head_args[:width])
        if isinstance(term, Value) or (isinstance(term, Var) and term.name in bound)
    )


def asking_for(
    clause: Clause,
    chosen: Sequence[tuple[int, ...] | None],
    types: Callable[[str], Sequence[str]],
    of_result: Callable[[str], bool],
) -> tuple[Clause, tuple[Term, ...], list[str]]:
    """(`clause` whose body asks for undefined rows of its atoms, the known columns of the first; names).

    `chosen`: the known columns of these rows by atom, negated ones behind the others; None leaves an atom as it is. The
    names are those of the relations that the clause now reads in the place of these atoms' ("" where None). `types`: of
    the columns of a relation · `of_result`: `is_result` of a relation.
    """
    names: list[str] = []
    atoms: list[BodyAtom] = []
    results: list[BodyAtom] = []
    unknown: set[str] = set()
    first: tuple[Term, ...] | None = None
    for i, (atom, columns) in enumerate(zip((*clause.atoms, *clause.negated), chosen, strict=True)):
        names.append("" if columns is None else name_of(atom, i))
        if columns is None:
            if i < len(clause.atoms):
                (results if of_result(atom.predicate) else atoms).append(atom)
            continue
        kinds = types(atom.predicate)
        args = tuple(Var(f"·{i}.{c}", kinds[c]) if (arg := atom.args[c]) is None else arg for c in columns)
        atoms.append(BodyAtom(names[i], args))
        first = args if first is None else first
        if i < len(clause.atoms):
            unknown |= {v.name for c, v in enumerate(atom.args) if isinstance(v, Var) and c not in columns}
    negated = tuple(atom for atom, one in zip(clause.negated, chosen[len(clause.atoms) :], strict=True) if one is None)
    assert first is not None
    asking = replace(clause, atoms=tuple(atoms), negated=negated, aggregate=None, rule=0)
    if results:
        asking = replace(asking, atoms=(*atoms, *_answered(asking, results, unknown)))
    return asking, first, names


def _answered(clause: Clause, results: list[BodyAtom], unknown: set[str]) -> list[BodyAtom]:
    """Those of the atoms `results`, over aggregates, whose groups need no value of the variables `unknown`.

    `clause` has all other atoms.
    """
    answered: list[BodyAtom] = []
    while True:
        bound = bound_in(replace(clause, atoms=(*clause.atoms, *answered)))
        more = [atom for atom in results if atom not in answered and _group(atom) <= bound.keys()]
        if not more:
            break
        answered += more
    unknown = unknown - bound.keys()
    open_results, grew = [atom for atom in results if atom not in answered], True
    while grew:
        before = len(unknown)
        for c in clause.compares:
            for side, other in ((c.left, c.right), (c.right, c.left)):
                if c.op == "=" and isinstance(side, Var) and unknown & names_of(other):
                    unknown |= {side.name} - bound.keys()
        for atom in open_results:
            if _group(atom) & unknown and isinstance(value := atom.args[-1], Var):
                unknown |= {value.name} - bound.keys()
        grew = len(unknown) > before
    # The keys of a head form are bound by its aggregates.
    return [*answered, *(atom for atom in open_results if not _group(atom) & unknown)]


def _group(atom: BodyAtom) -> set[str]:
    return {v.name for v in atom.args[:-1] if isinstance(v, Var)}


def is_result(name: str, clauses: Sequence[Clause]) -> bool:
    """Whether a relation, with its clauses, holds what an aggregate in braces says of each group."""
    if not name.startswith(INTERNAL):
        return False
    return name.endswith(WITH_ZERO) or any(clause.aggregate is not None for clause in clauses)


# Errors --------------------------------------------------------------------------------------------------------------


def _place(one: UndefinedRows, rows: Rows) -> int:
    """The place of the least of `rows`, which are undefined rows of `one`."""
    if not len(rows):
        return 0
    least = rows[:, np.lexsort(rows[::-1])[0]]
    return int(np.flatnonzero((one.rows == least[:, None]).all(axis=0))[0])


def group_error(evaluator: Evaluator, clause: Clause, without_result: GroupsWithoutResult) -> EvaluationError:
    """The error for a group of the aggregate `clause` that has no result."""
    return _error(evaluator, undefined_groups_of(clause, without_result)[0], 0)


def _error(evaluator: Evaluator, one: UndefinedRows, place: int) -> EvaluationError:
    """What the user reads when a rule asks for an undefined row."""
    clause = one.clause
    if clause is None:
        what, where, why, remedy = one.error
        return EvaluationError(what, where=where, why=why, remedy=remedy)
    aggregate = clause.aggregate
    assert aggregate is not None
    group = one.rows[:, place].tolist()
    terms = clause.head_args[: aggregate.groups]
    bound = [f"{t} = {evaluator.decode(c, t.type)!r}" for t, c in zip(terms, group, strict=True)]
    operand = clause.head_args[aggregate.groups].type
    where = f"{clause.span}: in `{clause.text or clause}`" + (f" with {', '.join(bound)}" if bound else "")
    if one.undefined[place]:
        either = squares(aggregate.op)
        return EvaluationError(
            f"the {aggregate.op} of {'inf' if either else 'inf and -inf'} has no value",
            where=where,
            why=f"{'it is, or -inf,' if either else 'both are'} among the values of this group; nothing was changed",
            remedy=f"exclude {'both' if either else 'one of them'} in the body",
        )
    if squares(aggregate.op):
        return EvaluationError(
            f"the {aggregate.op} of a group is out of the range of float",
            where=where,
            why="it could not be stored as a value, or is one of 2^31 bindings and more; nothing was changed",
            remedy="scale the values down",
        )
    return EvaluationError(
        f"the sum of a group is out of the range of {operand}",
        where=where,
        why="it could not be stored as a value, or is one of 2^31 bindings and more; nothing was changed",
        remedy="sum floats (`itof`, `utof`)" if operand in ("number", "unsigned") else "scale the values down",
    )
