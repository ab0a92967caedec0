"""Counts and sums of groups whose bindings are counted, and not enumerated.

    m[b] = count : { e(a, b), e(b, c), e(c, d) }      for each b: the a's, by the c's with their d's
    s[b] = sum x * y : { r(x, b), t(b, y) }           for each b: the sum of x, by that of y

Once the group's variables are bound, what is left falls into blocks whose counts multiply, and with them the sums of
variables whose product is summed (lftj/join/blocks.py). The rows of a group are added up. What leaves 64 bits on the
way, or the range of a decimal, is enumerated: whether that is an error is told there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lftj.errors import EvaluationError
from lftj.evaluate.accumulators import BITS, COUNTABLE, LOW, Folding, Sums
from lftj.language.aggregate_specs import accumulated
from lftj.language.clause import Apply, Clause, Term, Var, variables_of
from lftj.language.types import DECIMAL, NUMBER, scale_of
from lftj.plan.body import Body, body_of
from lftj.plan.joinplan import Folded
from lftj.plan.partial_functions import partial_of, partial_terms
from lftj.program.text_split import split_text
from lftj.values.type_table import family_of, type_of
from scantree.consolidate import runs_of

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator
    from lftj.join.run import Limits
    from lftj.program.evaluation import Evaluation

Ints = npt.NDArray[np.int64]


def folded_of(clause: Clause, body: Body) -> Folded | None:
    """What is to be counted of the groups of a clause; None if its bindings have to be enumerated."""
    aggregate = clause.aggregate
    if aggregate is None or not accumulated(aggregate.op) or len(body.atoms) < 2:
        return None
    head, operand = clause.head_args[: aggregate.groups], clause.head_args[aggregate.groups :]
    groups = tuple(dict.fromkeys(v.name for term in head for v in variables_of(term)))
    factors = [factor for term in operand for factor in _factors(term)]
    names = [factor.name for factor in factors if isinstance(factor, Var) and _is_plain(factor.type)]
    if len(names) < len(factors) or len({*names, *groups}) < len(names) + len(groups):
        return None
    # Which bindings are met, and so for which of them a term has no value, is not that of the rule.
    if any(any(partial_of(c.compare)) for c in body.conditions) or any(any(partial_terms(term)) for term in head):
        return None
    if len(groups) == len(body.variables) and not any(atom.multiplicity for atom in body.atoms):
        return None
    return Folded(groups, head, frozenset(names))


def _factors(term: Term) -> Iterator[Term]:
    """What is multiplied, if the code of the product is the product of the codes."""
    if isinstance(term, Apply) and term.op in ("*", "checked_mul") and _is_plain(term.type):
        scales = [scale_of(factor.type) for factor in term.args]
        if all(_is_plain(factor.type) for factor in term.args) and sum(scales) == scale_of(term.type):
            for factor in term.args:
                yield from _factors(factor)
            return
    yield term


def _is_plain(type: str) -> bool:
    """Whether a value that is no null has the code of a number, or of that many of its least digits."""
    return family_of(type) in (NUMBER, DECIMAL) and not type.endswith("?")


def _greatest(term: Term) -> int:
    """The greatest magnitude that each product in a term holds."""
    products = (
        [_greatest(factor) for factor in term.args if isinstance(factor, Apply)] if isinstance(term, Apply) else []
    )
    return min([type_of(term.type).high, *products])


def sums_by_blocks(
    evaluator: Evaluator, clause: Clause, folding: Folding, limits: Limits
) -> tuple[Sums, Evaluation] | None:
    """The sums of all groups; None where bindings are to be enumerated."""
    folded = None if split_text(clause) is not None else folded_of(clause, body_of(clause))
    if folded is None:
        return None
    chunks: list[Ints] = []
    try:
        evaluation = evaluator.walk_folded(clause, folded, limits, chunks.append)
    except EvaluationError:  # what leaves 64 bits
        return None
    rows = np.concatenate([np.empty((folding.groups + 3, 0), np.int64), *chunks], axis=1)
    most = _greatest(clause.head_args[-1]) if folding.operand else 0
    if (rows[-3] > COUNTABLE).any() or (folding.operand and (rows[-1] > most).any()):
        return None
    return _sums(folding, rows), evaluation


def _sums(folding: Folding, rows: Ints) -> Sums:
    """Of rows int64[k + 3, n]: the terms of a group, a count, a sum; terms may be the same for several rows."""
    k = folding.groups
    values = rows[k : k + 1]
    if folding.operand:
        values = np.stack([rows[k], rows[k + 1] >> BITS, rows[k + 1] & LOW])
    groups = rows[:k]
    if k and rows.shape[1]:
        groups, order, starts = runs_of(np.ascontiguousarray(groups))
        if order is not None:
            values = values[:, order]
        groups, values = groups.take(starts, axis=1), np.add.reduceat(values, starts, axis=1)
    none = np.empty((k + 1, 0), np.int64)
    return Sums(groups, values, none, none[0])
