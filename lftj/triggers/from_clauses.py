"""From the clause of a count, sum or mean to formulas over derived relations.

    @revenue.1(d, sum p * r) :- orders(k, d, r), lineitem(k, p, x), x < 10.

    relations    orders, and lineitem.1(k, p) of the rows of lineitem with x < 10
    count        AggSum([d], orders(k, d, r) * lineitem.1(k, p))
    total        AggSum([d], orders(k, d, r) * lineitem.1(k, p) * p * r)

Every combination of rows that agree is a binding: wildcards are variables, and relations are sets. So the number of
bindings is the product of how often the rows are there, and a negated atom, all of whose variables are bound, is
1 - how often its row is there. Variables that equations define are replaced by what defines them.

What concerns one atom is computed with its relation (derived_relations.py): conditions, and each largest part of a term
whose variables one atom has. Across atoms a formula adds and multiplies integers, and compares codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lftj.language.clause import (
    INTERNAL,
    Apply,
    BodyAtom,
    Clause,
    Compare,
    Term,
    Value,
    Var,
    names_of,
    replaced,
    variables_of,
)
from lftj.language.functors import CHECKED, TEXT_TESTS
from lftj.plan.partial_functions import partial_terms
from lftj.triggers.algebra import Add, Cmp, Formula, Lift, Mul, TriggerProgram, Val
from lftj.triggers.atoms import AtomColumns, NamedRelations
from lftj.triggers.compilation import compiled
from lftj.triggers.computable import ARITHMETIC, INTEGERS
from lftj.triggers.derived_relations import COLUMN, DerivedRelation
from lftj.triggers.worth_keeping import EventStatistics
from lftj.values.schema import Column, Schema
from lftj.values.type_table import family_of, in_dictionary, is_nullable

# The names of the maps of a head.
COUNT, TOTAL = "count", "total"
FOLDED = ("count", "sum", "mean")
ORDERED = ("<", "<=", ">", ">=")


class DoesNotFit(Exception):
    """A clause that formulas do not say; `args[0]` says why, in words that follow "it ..."."""


class ClauseFormulas(NamedTuple):
    """What is kept of a clause.

    `relations`: the derived ones that the formulas read · `keys`: of both maps · `shown`: of each column of the group,
    which key it is, or the constant · `bindings`, `totals`: the bodies of the count, and of the sum of each operand ·
    `checked`: terms across atoms.
    """

    relations: tuple[DerivedRelation, ...]
    keys: tuple[Var, ...]
    shown: tuple[int | Value, ...]
    bindings: Formula
    totals: tuple[Formula, ...]
    checked: tuple[Term, ...]

    def program(self, statistics: EventStatistics | None) -> tuple[TriggerProgram, str, tuple[str, ...]]:
        """(the program, its map of the count, those of the sums)."""
        made = compiled(self.tops(), self.schemas(), statistics=statistics)
        return made, made.tops[0], made.tops[1:]

    def tops(self) -> dict[str, tuple[tuple[Var, ...], Formula]]:
        """The maps that heads read: keys and bodies, by name."""
        named = {f"{TOTAL}{i or ''}": (self.keys, total) for i, total in enumerate(self.totals)}
        return {COUNT: (self.keys, self.bindings), **named}

    def schemas(self) -> dict[str, Schema]:
        """The schemas of the derived relations."""
        return {
            made.name: Schema(made.name, tuple(Column(f"c{i}", term.type) for i, term in enumerate(made.columns)))
            for made in self.relations
        }


def formulas_of(
    clause: Clause,
    schemas: Mapping[str, Schema],
    by_head: Mapping[str, Sequence[Clause]] | None = None,
    operands: Sequence[Term] | None = None,
) -> ClauseFormulas:
    """The formulas of a clause; `schemas` of the relations that it reads. Raises `DoesNotFit`.

    `by_head`: all clauses, among them those that select rows of one atom of this one by its texts · `operands`: what
    is summed, where it is not the operand of the clause itself.
    """
    aggregate = clause.aggregate
    if aggregate is None or aggregate.op not in FOLDED:
        raise DoesNotFit("is no count, sum or mean")
    if clause.acyclic:
        raise DoesNotFit("is evaluated key by key")
    if not clause.atoms:
        raise DoesNotFit("reads no relation")
    if operands is None:
        operands = () if aggregate.op == "count" else (clause.head_args[aggregate.groups],)
    return _ClauseTranslation(clause, schemas, by_head or {}).made(operands)


def _plain(op: str) -> str:
    """The operator of a functor: what `checked` terms compute is kept only as long as none of them leaves its type."""
    return CHECKED.get(op, op)


def _selection(clauses: Sequence[Clause]) -> Clause | None:
    """The clause of an internal relation that has rows of one other, those that meet conditions; None of any other.

    Both are over distinct variables, and only over those of the row: with a constant among them, or one variable twice,
    whether a row is selected is more than conditions on the row that is at hand.
    """
    clause = clauses[0] if len(clauses) == 1 else None
    if clause is None or not clause.head.startswith(INTERNAL):
        return None
    if len(clause.atoms) != 1 or clause.negated or clause.aggregate or clause.acyclic:
        return None
    bound, shown = [arg for arg in clause.atoms[0].args if arg is not None], clause.head_args
    for args in (bound, shown):
        if not all(isinstance(arg, Var) for arg in args) or len(names_of(*args)) < len(args):
            return None
    used = names_of(*shown, *(side for compare in clause.compares for side in (compare.left, compare.right)))
    return clause if used <= names_of(*bound) else None


class _ClauseTranslation:
    """One clause on its way. `defined`: what equations define, by variable; `made_up`: variables that formulas add."""

    def __init__(self, clause: Clause, schemas: Mapping[str, Schema], by_head: Mapping[str, Sequence[Clause]]) -> None:
        self.clause, self.schemas = clause, schemas
        selections = {atom: made for atom in clause.atoms if (made := _selection(by_head.get(atom.predicate, ())))}
        self.atoms = [self.occurrence(atom) for atom in clause.atoms if atom not in selections]
        for atom, selection in selections.items():
            if not self.selected(atom, selection):
                self.atoms.append(self.occurrence(atom))
        self.made_up = 0
        self.checked: list[Term] = []
        self.factors: list[Formula] = []
        self.defined: dict[str, Term] = {}
        self.conditions = self.without_definitions()

    def made(self, operands: Sequence[Term]) -> ClauseFormulas:
        aggregate = self.clause.aggregate
        assert aggregate is not None
        for names in self.shared():
            for atom in self.atoms:
                if names in atom.columns:
                    atom.wanted[names] = atom.columns[names]
        for condition in self.conditions:
            self.condition(condition)
        negated = [self.negated(atom) for atom in self.clause.negated]
        shown = [self.key(self.plain(term)) for term in self.clause.head_args[: aggregate.groups]]
        keys = tuple(dict.fromkeys(key for key in shown if isinstance(key, Var)))
        summed = [self.operand(self.plain(operand)) for operand in operands]
        for atom in self.atoms:
            atom.conditions += self.null_tests(atom)
        named = NamedRelations()
        rels: list[Formula] = [named.rel(atom) for atom in self.atoms]
        without = [Add((Mul(), Mul((Val(Value(-1, "number")), named.rel(atom))))) for atom in negated]
        count = Mul((*rels, *self.factors, *without))
        totals = tuple(Mul((*count.parts, operand)) for operand in summed)
        places = tuple(keys.index(key) if isinstance(key, Var) else key for key in shown)
        return ClauseFormulas(named.relations(self.checked), keys, places, count, totals, tuple(self.checked))

    # -- atoms --------------------------------------------------------------------------------------------------------

    def occurrence(self, atom: BodyAtom) -> AtomColumns:
        """A positive atom: constants and repeated variables become conditions."""
        made = AtomColumns(atom.predicate)
        for i, (arg, type_) in enumerate(zip(atom.args, self.schemas[atom.predicate].types, strict=True)):
            if arg is None:
                continue
            if isinstance(arg, Var):
                here = Var(COLUMN.format(i), arg.type)
                if arg.name not in made.columns:
                    made.columns[arg.name] = here
                    continue
                arg = made.columns[arg.name]
            elif isinstance(arg, Value):
                here = Var(COLUMN.format(i), type_.removesuffix("?"))
            else:
                raise DoesNotFit("has parameters")
            made.conditions.append(Compare("=", here, arg))
        return made

    def selected(self, atom: BodyAtom, selection: Clause) -> bool:
        """Whether `atom`, whose rows `selection` selects of one relation, is but conditions of another atom; these."""
        outer = dict(zip(selection.head_args, atom.args, strict=True))
        below = selection.atoms[0]
        columns = {arg: i for i, arg in reversed(list(enumerate(below.args))) if isinstance(arg, Var)}
        for home in self.atoms:
            here: dict[str, Term] = {}
            for var, i in columns.items():
                named = outer.get(var)
                found = home.columns.get(named.name) if isinstance(named, Var) else None
                if found is not None and found.name == COLUMN.format(i):
                    here[var.name] = found
            if home.predicate == below.predicate and len(here) == len(columns):
                home.conditions += [
                    Compare(one.op, replaced(one.left, here), replaced(one.right, here)) for one in selection.compares
                ]
                return True
        return False

    def null_tests(self, atom: AtomColumns) -> list[Compare]:
        """Tests of texts that may be null, that are computed with, and whose variable another atom keeps from null."""
        used = names_of(*(side for condition in atom.conditions for side in (condition.left, condition.right)))
        used |= names_of(*(term for term in atom.wanted.values() if isinstance(term, Apply)))
        tests = []
        for here in atom.columns.values():
            type_ = self.schemas[atom.predicate].types[int(here.name.removeprefix(COLUMN.format("")))]
            if here.name in used and in_dictionary(type_) and is_nullable(type_) and not is_nullable(here.type):
                tests.append(Compare("!=", here, Value(None, type_)))
        return tests

    def negated(self, atom: BodyAtom) -> AtomColumns:
        """A negated atom, which has each row of its columns once at most."""
        made, schema = AtomColumns(atom.predicate), self.schemas[atom.predicate]
        for i, arg in enumerate(atom.args):
            if arg is None:
                if not (schema.functional and i == len(atom.args) - 1):
                    raise DoesNotFit(f"asks whether any row of `{atom.predicate}` is there")
                continue
            here = Var(COLUMN.format(i), schema.types[i].removesuffix("?"))
            outer = self.key(self.plain(arg))
            if isinstance(outer, Value):
                made.conditions.append(Compare("=", here, outer))
            elif outer.name in made.columns:
                made.conditions.append(Compare("=", here, made.columns[outer.name]))
            else:
                made.columns[outer.name] = made.wanted[outer.name] = here
        return made

    def shared(self) -> list[str]:
        """The variables that several atoms bind."""
        seen: dict[str, int] = {}
        for atom in self.atoms:
            for name in atom.columns:
                seen[name] = seen.get(name, 0) + 1
        return [name for name, times in seen.items() if times > 1]

    def home(self, *terms: Term) -> AtomColumns | None:
        """The first atom that binds all variables of the terms."""
        names = names_of(*terms)
        return next((atom for atom in self.atoms if atom.has(names)), None)

    # -- equations ----------------------------------------------------------------------------------------------------

    def without_definitions(self) -> list[Compare]:
        """The comparisons but for equations that define variables, which become `defined`."""
        bound = {name for atom in self.atoms for name in atom.columns}
        left, partial = list(self.clause.compares), set[str]()
        grew = True
        while grew:
            grew = False
            for compare in left:
                found = self.definition(compare, bound)
                if found is not None:
                    var, term = found
                    if any(True for _ in partial_terms(term)):
                        partial.add(var.name)
                    self.defined[var.name] = self.plain(term)
                    bound.add(var.name)
                    left.remove(compare)
                    grew = True
                    break
        terms = [*self.clause.head_args, *(t for c in self.clause.compares for t in (c.left, c.right))]
        used = [var.name for term in terms for var in variables_of(term)]
        used += [var.name for atom in self.clause.negated for arg in atom.args for var in variables_of(arg)]
        for name in partial:
            if used.count(name) < 2:
                raise DoesNotFit(f"computes `{name}`, which nothing else needs")
        return [Compare(c.op, self.plain(c.left), self.plain(c.right)) for c in left]

    def definition(self, compare: Compare, bound: set[str]) -> tuple[Var, Term] | None:
        """The variable that an equation defines, and as what."""
        if compare.op != "=":
            return None
        for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
            if isinstance(side, Var) and side.name not in bound and names_of(other) <= bound:
                return side, other
        return None

    def plain(self, term: Term) -> Term:
        """A term without defined variables."""
        return replaced(term, self.defined)

    # -- what the formula says ----------------------------------------------------------------------------------------

    def condition(self, compare: Compare) -> None:
        """A condition of one atom, or a comparison across atoms."""
        home = self.home(compare.left, compare.right)
        if home is not None:
            home.conditions.append(Compare(compare.op, home.inside(compare.left), home.inside(compare.right)))
            return
        if compare.op in TEXT_TESTS:
            raise DoesNotFit(f"looks for a text of one atom in that of another (`{compare}`)")
        if compare.op in ORDERED and in_dictionary(compare.left.type):
            raise DoesNotFit(f"compares texts of two atoms by order (`{compare}`)")
        self.factors.append(Cmp(compare.op, self.across(compare.left), self.across(compare.right)))

    def key(self, term: Term) -> Var | Value:
        """A term as a key of a map: a variable, or a constant."""
        made = self.across(term)
        if isinstance(made, Var | Value):
            return made
        var = self.fresh(made.type)
        self.factors.append(Lift(var, made))
        return var

    def fresh(self, type: str) -> Var:
        """A variable that the clause does not have."""
        self.made_up += 1
        return Var(f"·{self.made_up}", type)

    def across(self, term: Term) -> Term:
        """A term over variables of the formula: what one atom has is a column of it, and the rest integers."""
        if isinstance(term, Value):
            return term
        home = self.home(term)
        if home is not None:
            return self.column(home, term)
        if not isinstance(term, Apply):
            raise DoesNotFit("has parameters")
        self.check_arithmetic(term)
        made = Apply(_plain(term.op), tuple(self.across(arg) for arg in term.args), term.type)
        self.checked.append(made)
        return made

    def check_arithmetic(self, term: Apply) -> None:
        """Raise `DoesNotFit` unless a term across atoms is a sum or product of integers."""
        types = {part.type for part in (term, *term.args)}
        if _plain(term.op) not in ARITHMETIC or not {family_of(type_) for type_ in types} <= INTEGERS:
            raise DoesNotFit(f"computes `{term}` across atoms, which is no sum or product of integers")

    def column(self, home: AtomColumns, term: Term) -> Var:
        """A term over the variables of one atom as a column of it."""
        if isinstance(term, Var):
            home.wanted[term.name] = home.columns[term.name]
            return term
        if term not in home.known:
            var = home.known[term] = self.fresh(term.type)
            home.wanted[var.name] = home.inside(term)
        return home.known[term]

    def operand(self, term: Term) -> Formula:
        """What is summed, as a sum of products."""
        family = family_of(term.type)
        if family == "unsigned" and (home := self.home(term)) is not None and not isinstance(term, Value):
            # Sums are of signed numbers.
            column = self.column(home, Apply("utoi", (term,), "number"))
            home.positive.add(column.name)
            return Val(column)
        if family not in INTEGERS:
            raise DoesNotFit(f"adds up {term.type}")
        self.across(term)
        return self.polynomial(term)

    def polynomial(self, term: Term) -> Formula:
        if isinstance(term, Apply) and self.home(term) is None:
            parts, op = [self.polynomial(arg) for arg in term.args], _plain(term.op)
            if op == "*":
                return Mul(tuple(parts))
            minus = Val(Value(-1, "number"))
            if op == "neg":
                return Mul((minus, parts[0]))
            return Add((parts[0], parts[1] if op == "+" else Mul((minus, parts[1]))))
        return Val(self.across(term))
