"""The body of a clause as the planner sees it: variables, atoms over variables only, and conditions.

A `Clause` may hold constants, repeated variables and wildcards in its atoms. Here every column of an atom that
matters holds a variable, and each variable occurs at most once in an atom:

    e(x, 5, x, _)       ->   e(x, #1, #2, .)   with   #1 := 5,  #2 := x

so a constant, a repeated variable and a computed one (`z = x + y`) are one thing: a variable with a *definition*.
Where the definition's variables are bound before it, the variable has a single candidate, which takes part in the
leapfrog as a participant with one key; else the definition is checked as a filter. A column whose variable occurs
nowhere else is a wildcard: it asks only that the prefix exists, so it needs no trie level. Not so in atoms whose rows
are looked up (`whole`).

In the body of an aggregate every binding of all variables counts (`Body.every`). There too a column whose variable
occurs nowhere else needs no trie level: rows are distinct, so an atom adds as many bindings as it has rows with the
keys of its other columns. This number is its `multiplicity`, a column of the head behind those of the clause. Only a
trace, whose records name bindings, has columns as variables that nothing else reads (`apart`): all of them, or those of
a primary key, which determines the others.

Atoms left without any column (`e(_, _)`, `p()`) are *guards*: the relation must not be empty, or, where the atom is
negated, must be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lftj.language.aggregate_specs import by_rows
from lftj.language.clause import Clause, Compare, Parameter, Plain, Term, Value, Var, variables_of

NO_KEYS: Mapping[str, Collection[int]] = {}


@dataclass(frozen=True, slots=True)
class Atom:
    """`predicate` and, per column, the variable it holds (None: a wildcard). `text` is the atom as written.

    `place`: its number in the clause, negated atoms behind the others · `multiplicity`: the variable that holds how
    many of its rows have the keys of the other variables, where all of them count (empty: where they need not).
    """

    predicate: str
    columns: tuple[str | None, ...]
    text: str
    place: int
    multiplicity: str = ""

    @property
    def variables(self) -> frozenset[str]:
        """The variables it binds."""
        return frozenset(v for v in self.columns if v is not None)


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison. `defines` names the variables it could compute: `x = t` defines x where t does not hold x."""

    compare: Compare
    variables: frozenset[str]
    defines: tuple[tuple[str, Term, frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class Body:
    """What a join has to enumerate.

    `variables`: name -> base type, in order of appearance · `atoms` · `guards`: relations that must not be empty ·
    `conditions` · `head`: terms of the output columns, behind those of the clause the multiplicities · `shown`: how a
    variable prints (a constant prints as itself) · `negated`: atoms that must have no such row · `voids`: relations
    that must be empty · `every`: the output has a row per binding of all variables, whatever the head holds of them ·
    `looked`: atoms whose row is looked up for every binding (joinplan.py); they bind nothing.
    """

    variables: dict[str, str]
    atoms: tuple[Atom, ...]
    guards: tuple[str, ...]
    conditions: tuple[Condition, ...]
    head: tuple[Term, ...]
    shown: dict[str, str]
    negated: tuple[Atom, ...] = ()
    voids: tuple[str, ...] = ()
    every: bool = False
    looked: tuple[Atom, ...] = ()

    def without(self, names: Collection[str]) -> Body:
        """The body with wildcards in the place of variables that the other columns of their atoms determine.

        Its head has the variables that are left of a term which would be computed with them.
        """
        if not names:
            return self
        atoms = [replace(a, columns=tuple(None if v in names else v for v in a.columns)) for a in self.atoms]
        variables = {name: type for name, type in self.variables.items() if name not in names}
        head = list[Term]()
        for term in self.head:
            read = [*variables_of(term)]
            left = [v for v in read if v.name not in names]
            head += [term] if len(left) == len(read) else left
        return replace(self, variables=variables, atoms=tuple(atoms), head=tuple(head))

    @property
    def scopes(self) -> list[frozenset[str]]:
        """The variables of every part: those of one part are connected."""
        return [a.variables for a in (*self.atoms, *self.negated)] + [c.variables for c in self.conditions]

    @property
    def head_variables(self) -> frozenset[str]:
        """Variables the head needs, multiplicities apart: these are known once the others are bound."""
        return frozenset(v.name for term in self.head for v in variables_of(term) if v.name in self.variables)


def _condition(compare: Compare) -> Condition:
    left = frozenset(v.name for v in variables_of(compare.left))
    right = frozenset(v.name for v in variables_of(compare.right))
    defines = []
    if compare.op == "=":
        for side, other, needs in ((compare.left, compare.right, right), (compare.right, compare.left, left)):
            if isinstance(side, Var) and side.name not in needs:
                defines.append((side.name, other, needs))
    return Condition(compare, left | right, tuple(defines))


def body_of(
    clause: Clause, whole: Collection[int] = (), *, apart: bool = False, keys: Mapping[str, Collection[int]] = NO_KEYS
) -> Body:
    """The body of `clause`, normalised; atoms that are `whole`, by number, hold a variable in every column.

    `apart`: bindings of an aggregate are told apart, and not counted by multiplicities · `keys`: by relation, the
    columns of its primary key, by which they may be told apart.
    """
    every = clause.aggregate is not None
    counted = clause.aggregate is not None and not by_rows(clause.aggregate.op) and not apart
    literals = (*clause.atoms, *clause.negated)
    uses = Counter(v.name for atom in literals for arg in atom.args for v in variables_of(arg))
    uses.update(v.name for c in clause.compares for term in (c.left, c.right) for v in variables_of(term))
    uses.update(v.name for term in clause.head_args for v in variables_of(term))
    variables: dict[str, str] = {}
    shown: dict[str, str] = {}
    conditions = [_condition(c) for c in clause.compares]
    atoms: list[Atom] = []
    negated: list[Atom] = []
    guards: list[str] = []
    voids: list[str] = []

    def name(type: str, text: str) -> str:
        made = f"#{len(shown) + 1}"
        variables[made], shown[made] = type, text
        return made

    def define(term: Plain) -> str:
        made = name(term.type, str(term))
        conditions.append(_condition(Compare("=", Var(made, term.type), term)))
        return made

    for i, atom in enumerate(literals):
        positive = i < len(clause.atoms)
        needed = i in whole or (every and not (counted and positive))
        columns: list[str | None] = []
        telling = (keys.get(atom.predicate) if positive else None) or range(len(atom.args))
        for column, arg in enumerate(atom.args):
            if arg is None:
                columns.append(name("number", "_") if i in whole else None)
            elif isinstance(arg, Var) and uses[arg.name] == 1 and not (needed and (column in telling or i in whole)):
                columns.append(None)
            elif isinstance(arg, Value | Parameter) or arg.name in columns:
                columns.append(define(arg))
            else:
                variables.setdefault(arg.name, arg.type)
                columns.append(arg.name)
        multiplicity = ""
        if counted and positive and None in columns:
            multiplicity = f"#n{i}"
            shown[multiplicity] = "_"
        if any(columns) or multiplicity:
            (atoms if positive else negated).append(Atom(atom.predicate, tuple(columns), str(atom), i, multiplicity))
        else:
            (guards if positive else voids).append(atom.predicate)
    for c in clause.compares:
        for term in (c.left, c.right):
            for v in variables_of(term):
                variables.setdefault(v.name, v.type)
    return Body(
        variables,
        tuple(atoms),
        tuple(guards),
        tuple(conditions),
        (*clause.head_args, *(Var(atom.multiplicity, "number") for atom in atoms if atom.multiplicity)),
        shown,
        tuple(negated),
        tuple(voids),
        every,
    )
