"""Variants of a clause: what evaluation and maintenance of recursive rules ask for.

    delta_rule           one atom ranges over changed rows, and only heads that are not there yet are wanted
    dependents           one atom ranges over changed rows, and only heads of later rounds than those rows are wanted
    rederive             the head is one of the asked rows: which have a derivation, from rows older than a limit
    candidates_for_keys  the head's key is one of the asked ones: all heads, of a functional predicate

For `t(x, z) :- e(x, y), t(y, z)` and its second atom these are

    t(x, z) :- e(x, y), Δ(y, z), !t(x, z).
    t(x, z) :- e(x, y), Δ(y, z), t(x, z).      Δ(y, z) is older than t(x, z), which is looked up
    t(x, z) :- e(x, y), t(y, z), Δ(x, z).      t(y, z) is older than Δ(x, z)

They are clauses like any other, over one relation more (`CHANGED`), and are planned as such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from lftj.language.clause import Apply, BodyAtom, Clause, Compare, Plain, Var, names_of
from lftj.program.text_split import split_text

# The relation of changed, or asked, rows.
CHANGED = "@Δ"


def delta_rule(clause: Clause, i: int | None) -> Clause:
    """New heads by atom `i` over changed rows (None: by all rows).

    Of a clause that computes texts, all heads. Atoms are numbered with the negated ones behind the others: a negated
    atom over changed rows finds what they, gone, no longer block.
    """
    found, columns = _with_head(_over_changed(clause, i, keep=True))
    if split_text(found) is not None:  # a text without a value is an error of a row that is there, too
        return found
    return replace(found, negated=(*found.negated, BodyAtom(clause.head, columns)))


def dependents(clause: Clause, i: int, members: Collection[str]) -> tuple[Clause, tuple[int, ...]]:
    """(the heads that atom `i` has a part in with changed rows, the atoms whose rows are to be older than the head).

    Of a negated atom: with rows it had not. What blocks derivations otherwise is left as it is. The atoms of `members`
    are to be older, for the others are no support: the clause's last atom is the head then. There are none where the
    head or all members have no columns.
    """
    tested = tuple(i for i, atom in enumerate(clause.atoms) if atom.predicate in members and atom.args)
    found = _over_changed(clause, i, keep=False)
    if not tested or not clause.head_args:
        return found, ()
    found, columns = _with_head(found)
    return replace(found, atoms=(*found.atoms, BodyAtom(clause.head, columns))), tested


def rederive(clause: Clause, members: Collection[str]) -> tuple[Clause, tuple[int, ...]]:
    """(which of the changed rows are heads of derivations, the atoms of `members`, whose rows are to be older).

    Where the last atom waits for texts that are computed, one more has the columns that are known before.
    """
    found, columns = _with_head(clause)
    asked = BodyAtom(CHANGED, columns)
    found = replace(found, atoms=(*found.atoms, asked))
    split = split_text(found)
    if split is not None and asked in split.outer.atoms:
        known = names_of(*split.inner.head_args)
        narrow = tuple(arg if isinstance(arg, Var) and arg.name in known else None for arg in columns)
        found = replace(found, atoms=(BodyAtom(CHANGED, narrow), *found.atoms))
    return found, tuple(i for i, atom in enumerate(found.atoms) if atom.predicate in members)


def candidates_for_keys(clause: Clause) -> Clause:
    """The heads whose columns but the last are one of the changed rows."""
    found, columns = _with_head(clause)
    return replace(found, atoms=(*found.atoms, BodyAtom(CHANGED, columns[:-1])))


def _over_changed(clause: Clause, i: int | None, *, keep: bool) -> Clause:
    """Atom `i` over changed rows; a negated one becomes positive so, and with `keep` stays negated besides."""
    if i is None:
        return clause
    if i < len(clause.atoms):
        atoms = list(clause.atoms)
        atoms[i] = replace(atoms[i], predicate=CHANGED)
        return replace(clause, atoms=tuple(atoms))
    n = i - len(clause.atoms)
    atom = replace(clause.negated[n], predicate=CHANGED)
    negated = clause.negated if keep else (*clause.negated[:n], *clause.negated[n + 1 :])
    return replace(clause, atoms=(*clause.atoms, atom), negated=negated)


def _with_head(clause: Clause) -> tuple[Clause, tuple[Plain | None, ...]]:
    """The clause with a variable or a value for every argument of its head, and these."""
    names = _fresh(clause, "_h")
    columns: list[Plain] = []
    compares = list(clause.compares)
    for term in clause.head_args:
        if isinstance(term, Apply):
            variable = Var(next(names), term.type)
            compares.append(Compare("=", variable, term))
            columns.append(variable)
        else:
            columns.append(term)
    return replace(clause, head_args=tuple(columns), compares=tuple(compares)), tuple(columns)


def _fresh(clause: Clause, stem: str) -> Iterator[str]:
    taken = {v.name for v in clause.variables()} | names_of(*clause.head_args)
    taken |= names_of(*(arg for atom in clause.negated for arg in atom.args))
    n = 0
    while True:
        n += 1
        if f"{stem}{n}" not in taken:
            yield f"{stem}{n}"
