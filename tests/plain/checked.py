"""Terms and comparisons as lftj's checker leaves them, in the words of the plain evaluator."""

from __future__ import annotations

from collections.abc import Mapping

from lftj.language import clause
from tests.plain import evaluate, terms
from tests.plain.syntax import Apply, Cmp, Const, Scalar, Term, Unsigned

Binding = Mapping[str, Scalar]
NOTHING = evaluate.World()


def value_of(term: clause.Term, binding: Binding) -> Scalar:
    """The value of a term whose variables are bound. Raises `Undefined`, and KeyError if one is not."""
    value = terms.value_of(bound(term, binding), {}, NOTHING.fold)
    return int(value) if isinstance(value, Unsigned) else value


def holds(compare: clause.Compare, binding: Binding) -> bool:
    """Whether a comparison whose variables are bound holds."""
    op = compare.op.removeprefix("not_")
    found = Cmp(op, bound(compare.left, binding), bound(compare.right, binding))
    return evaluate.holds(found, {}, NOTHING) == (op == compare.op)


def bound(term: clause.Term, binding: Binding) -> Term:
    """The term with the values of its variables in their place."""
    if isinstance(term, clause.Apply):
        return Apply(term.op, tuple(bound(arg, binding) for arg in term.args))
    value = binding[term.name] if isinstance(term, clause.Var) else term.value
    return Const(terms.typed(value, term.type))
