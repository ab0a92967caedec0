"""Transitive closures are run in one form, however they are written.

    t(x, y) :- e(x, y).    with one of    t(x, z) :- e(x, y), t(y, z).    right-linear
                                          t(x, z) :- t(x, y), e(y, z).    left-linear
                                          t(x, z) :- t(x, y), t(y, z).    nonlinear

derive the same rows, if no row of `t` is a fact of its own, and cost differently. The right-linear form is run: what
an edge (x, y) brings or may take with it are rows (x, z) for the rows (y, z), which lie side by side in the key order
that `t` has anyway; for the left-linear form they lie apart, and the nonlinear one finds each row by each of its middle
points. Ten edges of dag5k erased, then inserted, by CPU: 30 and 11 ms, left-linear 45 and 18, nonlinear 526 and 73; of
cal 11 and 6, left-linear 47 and 11, nonlinear 55 and 8. (Of wiki-Vote with its edges turned round, where far more
points are reached from one than reach it, 113 and 2.0 ms, left-linear 39 and 15: the only one of six graphs where
another form erases faster; `python -m bench.forms`.)

The rounds that one form gives are well-founded by its rules only. So it is known of a content by which form it has
them (`content.Noted`); where facts come, the component is evaluated anew as it is written, and stays so.

J. Naughton, R. Ramakrishnan, Y. Sagiv, J. Ullman: Efficient evaluation of right-, left-, and multi-linear rules, SIGMOD
1989.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lftj.language.clause import Clause, Var

if TYPE_CHECKING:
    from lftj.program.state import State
    from lftj.program.strata import Strata


def right_linear(clauses: Sequence[Clause]) -> tuple[Clause, ...] | None:
    """The clauses of a transitive closure in right-linear form, each in its place.

    None if they are not those of a transitive closure, or are right-linear as they are.
    """
    if len(clauses) != 2 or not all(map(_plain, clauses)):
        return None
    base, step = sorted(clauses, key=lambda clause: len(clause.atoms))
    head, edge = base.head, base.atoms[0].predicate
    if step.head != head or edge == head or len(base.atoms) != 1 or len(step.atoms) != 2:
        return None
    if base.atoms[0].args != base.head_args or len(set(base.head_args)) < 2:
        return None
    x, z = step.head_args
    first, last = sorted(step.atoms, key=lambda atom: atom.args[0] != x)
    y = first.args[1]
    if first.args != (x, y) or last.args != (y, z) or len({x, y, z}) < 3:
        return None
    if (first.predicate, last.predicate) not in ((head, edge), (head, head)):
        return None
    atoms = (replace(first, predicate=edge), replace(last, predicate=head))
    return tuple(replace(clause, atoms=atoms) if clause is step else clause for clause in clauses)


def written_of(strata: Strata, heads: Iterable[str]) -> tuple[Clause, ...]:
    """The clauses of the component `heads` as they are written."""
    return tuple(clause for head in heads for clause in strata.of(head))


def run_as_written(state: State, heads: Iterable[str]) -> bool:
    """Whether an evaluation from scratch is to run the clauses of the component `heads` as they are written."""
    facts = any(len(state.relations[head].facts) for head in heads)
    return facts or right_linear(written_of(state.strata, heads)) is None


def as_run(written: tuple[Clause, ...], *, as_written: bool) -> tuple[Clause, ...]:
    """The clauses that are run for those `written`, each in its place; a closure's in its one form."""
    return written if as_written else right_linear(written) or written


def _plain(clause: Clause) -> bool:
    """Whether it is made of atoms of two variables, nothing else."""
    terms = (clause.head_args, *(atom.args for atom in clause.atoms))
    plain = all(len(args) == 2 and all(isinstance(arg, Var) for arg in args) for args in terms)
    return plain and bool(clause.atoms) and not (clause.negated or clause.compares or clause.aggregate or clause.best)
