"""What the planner asks of one clause: which of its terms are one, and whether it only stands for an empty group."""

from __future__ import annotations

from lftj.language import Apply, Clause, Value, Var
from lftj.language.clause import INTERNAL, Term, owner


def is_zero_without(clause: Clause) -> bool:
    """Whether it only says that a count or sum over nothing is 0."""
    if clause.atoms or len(clause.negated) != 1 or not clause.head_args:
        return False
    absent, same = clause.negated[0], equalities(clause)
    if any(absent.args) or not absent.predicate.startswith(INTERNAL) or {c.op for c in clause.compares} - {"="}:
        return False
    constants = [same(term) for term in clause.head_args]
    last = constants[-1]
    found = all(isinstance(term, Value) for term in constants)
    return found and isinstance(last, Value) and last.value is not None and not last.value


def shown(name: str) -> str:
    """The relation a user knows: of a part that a rule was taken apart into, the rule's head."""
    return f"a part of `{owner(name)}`" if name.startswith(INTERNAL) else f"`{name}`"


class Same:
    """Terms of a clause that its equalities make one."""

    def __init__(self) -> None:
        self._to: dict[Term, Term] = {}

    def __call__(self, term: Term) -> Term:
        """The one that stands for a term."""
        while term in self._to:
            term = self._to[term]
        return term

    def join(self, left: Term, right: Term) -> None:
        """Both are one; a constant stands for a variable."""
        a, b = self(left), self(right)
        if a != b:
            if isinstance(a, Value):
                a, b = b, a
            if isinstance(a, Var):
                self._to[a] = b


def equalities(clause: Clause) -> Same:
    """Which terms of a clause its equalities make one."""
    same = Same()
    for compare in clause.compares:
        if compare.op == "=" and not isinstance(compare.left, Apply) and not isinstance(compare.right, Apply):
            same.join(compare.left, compare.right)
    return same
