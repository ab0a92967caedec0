"""Terms without a value: when one is an error, and for which row.

A row is in error if some term of the rule has no value for it (a division by zero, a text that is no number) and every
condition of the body that does not need that term holds. So `y != 0` protects `z = 10 / y` wherever it stands, and
whatever the key order is; so does an atom that has no such row.

Evaluation does not know that when it meets the term: it goes on as if a condition failed, and says that it did
(`expression_vm.NO_VALUE`, `text_steps.Stepped.undefined`). Then the rule is asked here, term by term: *the rest* of the
body is a clause of its own, in which what needs the term is left out and the term's having no value is a condition:

    p(x) :- e(x, y), f(x), z = 10 / y, z > 1.      rest of `10 / y`     e(x, y), f(x), y = 0

It is evaluated like any other clause (rest_of_body.py). Where it has a row that row is in error, the least one is told;
where it meets another term without a value, that one is left out too, and so on (term_sets.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.range_checks import range_check
from lftj.evaluate.rest_of_body import rest_of
from lftj.evaluate.term_columns import TermColumns
from lftj.evaluate.term_sets import ask_for_sets
from lftj.evaluate.undefined_atoms import without_undefined
from lftj.join.run import Limits
from lftj.language.clause import Apply, Clause, Value, Var, variables_of
from lftj.language.functors import CHECKED, MATCH, known_as
from lftj.language.notation import literal_text
from lftj.language.null import not_admitted
from lftj.language.types import SYMBOL
from lftj.plan.partial_functions import partial_in
from lftj.program.text_split import computes_text

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator
    from lftj.store.stored import StoredRelation

Rows = npt.NDArray[np.int64]
# Columns that a rule made of SQL, or of braces, has though nothing names them; as the copies of a row of a bag.
_WILDCARD = re.compile(r"_w[0-9]+")


def look_for_error(
    evaluator: Evaluator, clause: Clause, limits: Limits, also: Mapping[str, StoredRelation] | None = None
) -> None:
    """Raise `EvaluationError` if a row of `clause` is in error over the evaluator's relations (and those of `also`).

    Which row is told depends on the rows alone: the first term in the order of the text, then the least values.
    """
    terms, more_relations = partial_in(clause), dict(also or {})
    if evaluator.state.undefined:
        clause, undefined = without_undefined(evaluator, clause)
        more_relations.update(undefined)

    def ask(without: tuple[Apply, ...]) -> bool:
        if not without:
            return True
        rest = rest_of(clause, without)
        if rest is None:
            return False
        limits.look(0)
        chunks: list[Rows] = []
        _, saw_undefined = evaluator.walk(rest, limits, chunks.append, also=more_relations)
        rows, count = evaluator.distinct(chunks, len(rest.head_args))
        if count:
            raise _error(evaluator, clause, without[0], rest, rows[:, 0])
        return saw_undefined

    ask_for_sets(evaluator, clause, terms, ask, limits, more_relations)


def code_of_null(clause: Clause, term: Apply, where: str, kept: str) -> EvaluationError | None:
    """The error if `term` of a clause only keeps the code of null out of a column. `kept`: what was left as it was."""
    refused = next((not_admitted(compare) for compare in clause.compares if compare.left == term), None)
    if refused is None:
        return None
    return EvaluationError(
        f"{refused} does not fit into a column that admits null",
        where=where,
        why=f"it is the code of null there; {kept}",
        remedy="exclude such rows, or keep null away from the column",
    )


def _error(evaluator: Evaluator, clause: Clause, term: Apply, rest: Clause, row: Rows) -> EvaluationError:
    """What the user reads: the rule, the row and the arguments that have no value."""
    symbols = evaluator.symbols
    variables = [arg for arg in rest.head_args if isinstance(arg, Var)]
    held = dict(zip((v.name for v in variables), row.tolist(), strict=True))
    columns = TermColumns({name: np.array([code]) for name, code in held.items()}, 1, symbols, evaluator.given)
    arguments = [evaluator.decode(int(columns.codes(arg)[0]), arg.type) for arg in term.args]
    where = f"{clause.span}: in `{clause.text}`"
    read = [(atom, evaluator.relations.get(atom.predicate)) for atom in rest.atoms]
    counted = {atom.args[-1] for atom, relation in read if relation is not None and relation.schema.bag}
    shown = [v for v in variables if not (_WILDCARD.fullmatch(v.name) or v in counted)]
    if any(variables_of(term)) and shown:
        where += " with " + ", ".join(f"{v.name} = {evaluator.decode(held[v.name], v.type)!r}" for v in shown)
    if (refused := code_of_null(clause, term, where, "nothing was changed")) is not None:
        return refused
    if computes_text(replace(term, args=tuple(Var("", arg.type) for arg in term.args))):  # itself, not an argument
        return _text_error(term, arguments, where)
    if (term.op in ("/", "%") and arguments[1] == 0) or (term.op == "^" and term.type == "number"):
        return EvaluationError(
            "division by zero",
            where=where,
            why="the quotient has no value; nothing was changed",
            remedy="exclude the divisor 0 in the body, e.g. `y != 0`",
        )
    if (asked := range_check(term, partial_in(clause))) is not None:
        value = evaluator.decode(int(columns.codes(asked.term)[0]), asked.term.type)
        return EvaluationError(
            f"`{value}` {asked.fault}",
            where=where,
            why=asked.why,
            remedy="cast to a type that holds it, or exclude such rows",
        )
    applied = replace(term, args=tuple(Value(v, a.type) for v, a in zip(arguments, term.args, strict=True)))
    if term.op in CHECKED:
        return EvaluationError(
            f"`{replace(applied, op=CHECKED[term.op])}` does not fit into 64 bits",
            where=where,
            why="a number is from -(2^63 - 1) to 2^63 - 1; nothing was changed",
            remedy="compute with floats (`cast(x as double)` in SQL), or exclude such rows",
        )
    return EvaluationError(
        "an arithmetic result is not a number, or not in the range of its type",
        where=where,
        why=f"`{applied}` could not be stored as a key; nothing was changed",
        remedy="bound the arguments in the body",
    )


def _text_error(term: Apply, arguments: list[object], where: str) -> EvaluationError:
    kinds = [arg.type for arg in term.args]
    shown = ", ".join(literal_text(value, kind) for value, kind in zip(arguments, kinds, strict=True))
    why = "it is out of the range of its type"
    try:
        function = known_as(term.op).text
        assert function is not None
        function(*arguments)
    except ValueError as error:
        why = str(error)
    remedy = "bound the arguments in the body"
    if SYMBOL in kinds:
        remedy = "exclude such texts in the body, e.g. with `match`"
    return EvaluationError(
        f"a functor of the rule has no value: `{term.op}({shown})`",
        where=where,
        why=f"{why}; nothing was changed",
        remedy="correct the pattern" if term.op == MATCH else remedy,
    )
