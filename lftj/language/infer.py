"""Type inference: one base type for every column and every term of a program.

Every variable, constant and functor result of a clause is a *slot*; slots that must have one type are joined
(union-find). A slot starts with the set of types it may have: an integer literal may be any numeric type, `x + y`
too, a string only symbol. Declared columns fix slots; what a slot was fixed by, and where, is kept, so that a
conflict can show both places.

Columns of a relation without declaration are slots shared by all clauses that define it. Components of the program
are inferred bottom up, and what is still an open number at the end of a component becomes `number`: the type of a
relation is decided by its own rules, never by its uses. So `p(1).` is p(number), `p(1). p(1.5).` is p(float), and
`p(x) :- q(x).` has the type of q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lftj.errors import Span
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, COUNTED
from lftj.language.clause import INTERNAL, owner
from lftj.language.diagnostics import Findings
from lftj.language.functors import CONSTRAINTS, FUNCTORS, NULL_TESTS
from lftj.language.internal_relations import COUNTS, Fold, is_part
from lftj.language.names import Names
from lftj.language.normal_form import Conjunction
from lftj.language.signature import EACH, SAME, Signature
from lftj.language.text import term_source
from lftj.language.typed_functors import ResultOf
from lftj.language.types import (
    ADDED,
    ANY,
    BASE_TYPES,
    CALENDAR,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGRAL,
    LITERAL,
    NUMBER,
    NUMERIC,
    SYMBOL,
    TIMESTAMP,
    decimal_of,
    meet,
    narrower,
    scale_of,
    widest,
)
from lftj.language.visitors import subterms
from lftj.values.type_table import family_of, is_nullable, with_null, without_null

# The types that a constant text is read as, where an operator takes nothing else: `bucket(t, "1h")`.
READ_FROM_TEXT = (DATE, TIMESTAMP, DURATION)
_CONVERSIONS = {
    frozenset({SYMBOL}): "convert it with `to_string`",
    CALENDAR: "convert it with `to_date` or `to_timestamp`",
    frozenset({TIMESTAMP}): "convert it with `to_timestamp`",
    frozenset({FLOAT, DECIMAL}): "convert it with `to_float` or `to_decimal`",
}
_ONE_SCALE = "`+`, `-` and `%` take decimals with as many digits behind the point; `to_decimal` gives them as many"


@dataclass(slots=True, eq=False)
class Slot:
    """One unknown type. `reason` and `span` say what fixed it, in words that follow "number, as"."""

    domain: frozenset[str] = ANY
    reason: str = ""
    span: Span = ast.NOWHERE
    parent: Slot | None = None
    conflicted: bool = False
    scale: int = 0  # the digits behind the point of its decimal constants

    def root(self) -> Slot:
        """The slot that stands for all slots joined with this one."""
        slot = self
        while slot.parent is not None:
            if slot.parent.parent is not None:
                slot.parent = slot.parent.parent
            slot = slot.parent
        return slot

    @property
    def type(self) -> str | None:
        """The type, once it is certain."""
        domain = self.root().domain
        return next(iter(domain)) if len(domain) == 1 and DECIMAL not in domain else None


@dataclass(slots=True)
class TypedClause:
    """One head with one conjunction, and the slots of its terms.

    `fold`: what an aggregate makes of them · `best`: which of them stands under a key, as in `clause.Clause` ·
    `joined`: as in `InternalRule` · `written`: the terms in whose places desugaring put variables, by their names ·
    `variables`: slots by name, those of parameters with their `$` · `nullable`: the variables that may be null ·
    `not_null`: those that the clause keeps from it · `admitted`: positions of arguments of the head that are not null,
    in columns where one of their values has the code of null (null.py).
    """

    rule: ast.Rule
    head: ast.Atom
    body: Conjunction
    fold: Fold | None = None
    best: str = ""
    joined: frozenset[str] = frozenset()
    written: Mapping[str, ast.Term] = field(default_factory=dict)
    variables: dict[str, Slot] = field(default_factory=dict)
    terms: dict[int, Slot] = field(default_factory=dict)  # by identity of the AST node
    nullable: frozenset[str] = frozenset()
    not_null: tuple[str, ...] = ()
    admitted: tuple[int, ...] = ()

    def type_of(self, term: ast.Term) -> str:
        """The type of a term; `number` if nothing says otherwise. With null, once null.py has looked at the clause."""
        slot = self.slot(term)
        found = (slot.type if slot is not None else None) or NUMBER
        if isinstance(term, ast.Variable) and term.name in self.nullable:
            return with_null(found)
        if isinstance(term, ast.Constant) and term.value is None:
            return with_null(found)
        if isinstance(term, ast.Functor) and term.name == "coalesce" and term.args:
            return with_null(found) if all(is_nullable(self.type_of(arg)) for arg in term.args) else found
        return found

    def slot(self, term: ast.Term) -> Slot | None:
        """The slot of a term of the clause; None for a wildcard."""
        if isinstance(term, ast.Variable | ast.Parameter):
            return self.variables.get(term.name if isinstance(term, ast.Variable) else f"${term.name}")
        return self.terms.get(id(term))

    def source(self, term: ast.Term) -> str:
        """A term as it was written."""

        def written(part: ast.Term) -> ast.Term:
            if isinstance(part, ast.Functor):
                return replace(part, args=tuple(map(written, part.args)))
            return self.written.get(part.name, part) if isinstance(part, ast.Variable) else part

        return term_source(written(term))


class Inference:
    """Infers types clause by clause; `columns` are the slots of the component at hand, `_source` the text of terms."""

    def __init__(self, names: Names, findings: Findings) -> None:
        self.names = names
        self.findings = findings
        self.columns: dict[str, list[Slot]] = {}
        self._source = term_source

    def component(self, clauses: list[TypedClause]) -> None:
        """Infer the clauses that define one component, and fix the types of its undeclared columns."""
        for name in dict.fromkeys(clause.head.name for clause in clauses):
            relation = self.names.relations.get(name)
            if relation is not None and relation.origin in ("derived", "internal"):
                self.columns[name] = [Slot() for _ in relation.types]
        self._clauses(clauses)
        for name, slots in self.columns.items():
            self.names.relations[name].types = [self._settle(slot) for slot in slots]
        for clause in clauses:
            for slot in (*clause.variables.values(), *clause.terms.values()):
                self._settle(slot)
            self._digits(clause)
        self.columns = {}

    def _settle(self, slot: Slot) -> str | None:
        root = slot.root()
        if len(root.domain) > 1 and root.domain != ANY:
            root.domain = frozenset({NUMBER}) if NUMBER in root.domain else root.domain
        if root.domain == frozenset({DECIMAL}):
            root.domain = frozenset({decimal_of(root.scale)})
        return root.type

    def _clauses(self, clauses: list[TypedClause]) -> None:
        """Infer clauses in turn. One with an operand of unknown type waits for the clauses that may tell its type."""
        waiting = [(clause, list(clause.body.compares)) for clause in clauses]
        while waiting:
            later = [(clause, compares) for clause, compares in waiting if not self._clause(clause, compares)]
            if len(later) == len(waiting):
                self._clause(*later.pop(0), guess=True)
            waiting = later

    def _clause(self, clause: TypedClause, compares: list[ast.Comparison], *, guess: bool = False) -> bool:
        """Infer a clause; False if it has to wait. `compares`: those that are left, which become fewer.

        What an operator means depends on the types of its operands: what gives these comes first. `guess` takes the
        first meaning that fits.
        """
        self._source = clause.source
        for atom in (*clause.body.atoms, *clause.body.negated):
            self._atom(clause, atom)
        while compares:
            ready = next((c for c in compares if not self._open(clause, (c.left, c.right))), None)
            if ready is None and not guess:
                return False
            ready = ready or compares[0]
            compares.remove(ready)
            self._compare(clause, ready)
        if not guess and self._open(clause, clause.head.args):
            return False
        if clause.fold is None:
            self._atom(clause, clause.head)
        else:
            self._aggregate(clause, clause.fold)
        return True

    def _open(self, clause: TypedClause, terms: Sequence[ast.Term]) -> bool:
        """Whether an operand of a functor whose result depends on its type may still be anything."""
        for side in terms:
            for term in subterms(side):
                if isinstance(term, ast.Functor) and term.name in FUNCTORS and FUNCTORS[term.name].depends_on_types:
                    for part in term.args:
                        if isinstance(part, ast.Variable):
                            slot = clause.variables.get(part.name)
                            if slot is None or slot.root().domain == ANY:
                                return True
        return False

    # Literals

    def _atom(self, clause: TypedClause, atom: ast.Atom) -> None:
        relation = self.names.relations.get(atom.name)
        for position, arg in enumerate(atom.args):
            slot = self._term(clause, arg)
            if slot is None or relation is None or relation.arity != len(atom.args):
                continue
            shared = self.columns.get(atom.name)
            reason = relation.column(position)
            if shared is not None:
                self._join(slot, shared[position], arg, atom, reason)
            elif (wanted := relation.types[position]) is not None:
                self._fix(slot, without_null(wanted), reason, arg, relation.place(position))

    def _digits(self, clause: TypedClause) -> None:
        """Refuse a head whose decimal column has fewer digits than its values may have, which other clauses may say."""
        head, relation = clause.head, self.names.relations.get(clause.head.name)
        if relation is None or head.name in self.columns or relation.arity != len(head.args):
            return
        for position, (arg, wanted) in enumerate(zip(head.args, relation.types, strict=True)):
            type_ = slot.type if (slot := clause.slot(arg)) is not None else None
            if wanted is None or type_ is None or isinstance(arg, ast.Constant) or not narrower(type_, wanted):
                continue
            self.findings.error(
                f"{relation.column(position)} is {wanted}, and `{clause.source(arg)}` is {type_}",
                arg.span,
                why="a value of it may have more digits than the column holds",
                remedy=f"declare the column `{widest(without_null(wanted))}`",
            )

    def _aggregate(self, clause: TypedClause, fold: Fold) -> None:
        """Join the groups with the columns of the head, and give the result its type."""
        columns, args = self.columns[clause.head.name], clause.head.args
        for column, arg in zip(columns, args[: fold.groups], strict=False):
            slot = self._term(clause, arg)
            if slot is not None:
                self._join(slot, column, arg, clause.head, f"a group of `{fold.op}`")
        result = columns[fold.groups]
        spec = AGGREGATES[fold.op]
        if spec.result and not spec.keeps:
            self._give(result, spec.result, fold.op, clause.head)
        counts = is_part(clause.head.name) and clause.head.name.endswith(COUNTS)  # each binding as often as it says
        domain = frozenset({NUMBER}) if counts else spec.operand
        for arg in args[fold.groups : fold.groups + 1]:
            slot = self._term(clause, arg)
            if slot is None:
                continue
            if not meet(slot.root().domain, domain):
                self._misfit(slot, domain, COUNTED if counts else fold.op, arg)
                continue
            narrow = Slot(domain)
            self._merge(slot.root(), narrow, "", arg.span)
            operand = slot.root()
            folded = spec.result_of(operand.type) if operand.type is not None else ""
            if spec.keeps:
                self._give(result, folded or spec.result, fold.op, clause.head)
            elif not spec.result and folded in ("", operand.type):
                self._join(result, slot, arg, clause.head, f"the operand of `{fold.op}`")
            elif not spec.result:  # a sum, of as many digits as there may be
                self._give(result, folded, fold.op, clause.head)

    def _give(self, result: Slot, type_: str, op: str, head: ast.Atom) -> None:
        """The result of an aggregate is of a type; in a recursion other clauses may have said of which."""
        given, known = Slot(frozenset({type_}), f"the result of `{op}`", head.span), result.root()
        if meet(known.domain, given.domain):
            self._merge(given, known, "", head.span)
        elif not known.conflicted:
            known.conflicted = True
            self.findings.error(
                f"type conflict: the result of `{op}` is {type_}, and {_is(known.domain)} elsewhere",
                head.span,
                why=f"all clauses of `{owner(head.name)}` derive rows of the same types",
                remedy="use one type, or convert with `to_number`, `to_unsigned`, `to_float` or `to_string`",
                predicate=owner(head.name),
                related=((f"{_is(known.domain)}, as {known.reason}", known.span),) if known.reason else (),
            )

    def _compare(self, clause: TypedClause, compare: ast.Comparison) -> None:
        left, right = self._term(clause, compare.left), self._term(clause, compare.right)
        if compare.op.removeprefix("not_") in NULL_TESTS:
            return
        if compare.op.removeprefix("not_") in CONSTRAINTS:
            for slot, term, position in ((left, compare.left, 1), (right, compare.right, 2)):
                if slot is not None:
                    reason = f"argument {position} of `{compare.op.removeprefix('not_')}`"
                    self._fix(slot, SYMBOL, reason, term, ast.NOWHERE)
        elif left is not None and right is not None:
            self._same(
                left,
                right,
                compare.left,
                compare.right,
                compare.span,
                f"`{compare.op}` compares two values of one type",
            )

    # Terms

    def _term(self, clause: TypedClause, term: ast.Term) -> Slot | None:
        """The slot of a term; None for a wildcard and for what is not supported."""
        if isinstance(term, ast.Variable):
            return clause.variables.setdefault(term.name, Slot())
        if isinstance(term, ast.Parameter):
            return clause.variables.setdefault(f"${term.name}", Slot())
        if not isinstance(term, ast.Constant | ast.Functor):
            return None
        known = clause.terms.get(id(term))
        if known is not None:
            return known
        if isinstance(term, ast.Constant):
            slot = Slot(_of_constant(term), "a constant", term.span, scale=scale_of(term.kind) if term.kind else 0)
        else:
            slot = self._functor(clause, term)
        clause.terms[id(term)] = slot
        return slot

    def _functor(self, clause: TypedClause, term: ast.Functor) -> Slot:
        signature = FUNCTORS.get(term.name)
        args = [(arg, self._term(clause, arg)) for arg in term.args]
        if signature is None or not signature.accepts(len(args)):
            return Slot(reason="", conflicted=True)
        slots = [slot for _, slot in args if slot is not None]
        if len(slots) == len(args) and self._has_meaning(signature, slots):
            return self._overloaded(signature, term, slots)
        same = Slot(signature.domain)
        first: ast.Term | None = None
        for position, (arg, slot) in enumerate(args):
            wanted = signature.parameter(position)
            if slot is None:
                continue
            if wanted == EACH:
                if not meet(slot.root().domain, signature.domain):
                    self._misfit(slot, signature.domain, term.name, arg)
            elif wanted != SAME:
                self._fix(slot, wanted, f"argument {position + 1} of `{term.name}`", arg, ast.NOWHERE)
            elif not meet(slot.root().domain, signature.domain):
                self._misfit(slot, signature.domain, _shown(term.name), arg)
                same.conflicted = True
            elif first is None:
                self._join(slot, same, arg, term, f"an operand of `{_shown(term.name)}`")
                first = arg
            else:
                self._same(same, slot, first, arg, term.span, f"`{_shown(term.name)}` takes operands of one type")
        if signature.result == SAME:
            return same
        result = signature.result
        known = len(slots) == len(args) and not any(slot.root().conflicted for slot in slots)
        if signature.result_of is not None and known:
            result = self._computed_type(term, slots, signature.result_of)
        elif result == EACH:
            return Slot(reason="", conflicted=True)
        return Slot(frozenset({result}), f"the result of `{term.name}`", term.span)

    def _has_meaning(self, signature: Signature, slots: Sequence[Slot]) -> bool:
        """Whether an overload is meant: some operand is of no type of numbers."""
        if any(slot.root().conflicted for slot in slots):
            return False
        special = frozenset(family for found in signature.overloads for family in found.parameters) - NUMERIC
        domains = [slot.root().domain for slot in slots if slot.root().domain != ANY]
        return any(not domain & NUMERIC and meet(domain, special) for domain in domains)

    def _overloaded(self, signature: Signature, term: ast.Functor, slots: Sequence[Slot]) -> Slot:
        """The result of what an operator means for operands that are no numbers."""
        for overload in signature.overloads:
            families = [frozenset({family}) for family in overload.parameters]
            for slot, arg, family in zip(slots, term.args, overload.parameters, strict=True):
                if _is_text(arg) and family in READ_FROM_TEXT:
                    slot.root().domain = frozenset({family})
            if all(meet(slot.root().domain, wanted) for slot, wanted in zip(slots, families, strict=True)):
                break
        else:
            kinds = " and ".join(_is(slot.root().domain) for slot in slots)
            for slot in slots:
                slot.root().conflicted = True
            meant = "; ".join(" and ".join(o.parameters) for o in signature.overloads)
            self.findings.error(
                f"type conflict: `{_shown(term.name)}` has no meaning for {kinds}",
                term.span,
                why=f"beside numbers it takes {meant}" if signature.domain & NUMERIC else f"it takes {meant}",
                remedy="convert one side, for instance with `to_duration`, `to_decimal` or `to_float`",
            )
            return Slot(reason="", conflicted=True)
        for slot, wanted in zip(slots, families, strict=True):
            self._merge(slot.root(), Slot(wanted), "", term.span)
        if overload.same:
            self._same(slots[0], slots[1], term.args[0], term.args[1], term.span, _ONE_SCALE)
        if any(slot.root().conflicted for slot in slots):
            return Slot(reason="", conflicted=True)
        result = self._computed_type(term, slots, overload.type)
        return Slot(frozenset({result}), f"the result of `{_shown(term.name)}`", term.span)

    def _computed_type(self, term: ast.Functor, slots: Sequence[Slot], of: ResultOf) -> str:
        """The type of a result that depends on the arguments."""
        constants = [arg.value if isinstance(arg, ast.Constant) else None for arg in term.args]
        types = [self._settle(slot) or NUMBER for slot in slots]
        try:
            return of(types, constants)
        except ValueError as error:
            self.findings.error(
                f"`{self._source(term)}` has no type",
                term.span,
                why=str(error),
                remedy="see `lftj functors`",
            )
            return NUMBER

    # Joining, with words for what does not fit

    def _fix(self, slot: Slot, wanted: str, reason: str, term: ast.Term, place: Span) -> None:
        root = slot.root()
        if _is_text(term) and wanted in READ_FROM_TEXT:
            root.domain = frozenset({wanted})
        joint = meet(root.domain, frozenset({wanted}))
        if joint:
            if joint != root.domain:
                root.domain, root.reason, root.span = joint, reason, term.span
            return
        if root.conflicted:
            return
        root.conflicted = True
        text, has = self._source(term), _is(root.domain)
        if isinstance(term, ast.Constant):
            what = f"type conflict: {reason} is {wanted}, and `{text}` is {has}"
            related: tuple[tuple[str, Span], ...] = (("declared here", place),)
            remedy = f"write a {wanted} constant, or use another column"
        else:
            what = f"type conflict: `{text}` is {wanted} here, as {reason}, and {has} elsewhere"
            related = ((f"{has}, as {root.reason}", root.span),) if root.reason else ()
            remedy = "use one type, or convert with `to_number`, `to_unsigned`, `to_float` or `to_string`"
        self.findings.error(
            what,
            term.span,
            why="a column, and a variable of a rule, holds values of one type",
            remedy=remedy,
            related=related,
        )

    def _join(self, slot: Slot, other: Slot, term: ast.Term, context: ast.Atom | ast.Functor, reason: str) -> None:
        """Join the slot of `term` with one of its context: an undeclared column, or the operands of a functor."""
        one, two = slot.root(), other.root()
        if one is two:
            return
        if meet(one.domain, two.domain):
            self._merge(one, two, reason, term.span)
        elif not (one.conflicted or two.conflicted):
            one.conflicted = two.conflicted = True
            head, remedy = context.name, f"use one type, or declare `{context.name}`"
            if head.startswith(INTERNAL):  # nobody can declare it
                head = owner(head)
                remedy = "use one type, or convert with `to_number`, `to_unsigned`, `to_float` or `to_string`"
                if {family_of(name) for name in one.domain | two.domain} == {DECIMAL}:
                    remedy = "give them as many digits behind the point, with `to_decimal`"
            self.findings.error(
                f"type conflict: {reason} is {_is(two.domain)} elsewhere, "
                f"and `{self._source(term)}` is {_is(one.domain)}",
                term.span,
                why=f"all clauses of `{head}` derive rows of the same types",
                remedy=remedy,
                predicate=context.name,
                related=((_is(two.domain), two.span),),
            )

    def _same(self, left: Slot, right: Slot, left_term: ast.Term, right_term: ast.Term, span: Span, why: str) -> None:
        one, two = left.root(), right.root()
        if one is two:
            return
        if meet(one.domain, two.domain):
            self._merge(one, two, "", span)
        elif not (one.conflicted or two.conflicted):
            one.conflicted = two.conflicted = True
            sides = ((left_term, one), (right_term, two))
            related = tuple(
                (f"`{self._source(t)}` is {_is(s.domain)}, as {s.reason}", s.span)
                for t, s in sides
                if s.reason and not isinstance(t, ast.Constant)
            )
            self.findings.error(
                f"type conflict: `{self._source(left_term)}` is {_is(one.domain)} and "
                f"`{self._source(right_term)}` is {_is(two.domain)}",
                span,
                why=why,
                remedy="convert one side with `to_number`, `to_unsigned`, `to_float` or `to_string`",
                related=related,
            )

    def _misfit(self, slot: Slot, domain: frozenset[str], taker: str, arg: ast.Term) -> None:
        root = slot.root()
        if root.conflicted:
            return
        root.conflicted = True
        related = ((f"{_is(root.domain)}, as {root.reason}", root.span),) if not isinstance(arg, ast.Constant) else ()
        self.findings.error(
            f"type conflict: `{taker}` takes {either_of(domain)}, and `{self._source(arg)}` is {_is(root.domain)}",
            arg.span,
            why="values of different types are not converted silently",
            remedy=_CONVERSIONS.get(domain, "convert it with `to_number`, `to_unsigned` or `to_float`"),
            related=related,
        )

    def _merge(self, one: Slot, two: Slot, reason: str, span: Span) -> None:
        """Make one slot of two. The side that is already certain explains the joint type."""
        domain = meet(one.domain, two.domain)
        speaker = one if len(one.domain) == 1 or (len(two.domain) > 1 and one.reason) else two
        one.parent = two
        two.domain, two.scale = domain, max(one.scale, two.scale)
        two.conflicted = one.conflicted or two.conflicted
        two.reason, two.span = speaker.reason or reason, speaker.span if speaker.reason else span


def _is(domain: frozenset[str]) -> str:
    """What a term of a domain is: its type, or a word for the types that a literal leaves open."""
    return {NUMERIC: "numeric", LITERAL: "numeric", INTEGRAL: "an integer"}.get(domain) or either_of(domain)


def either_of(domain: frozenset[str]) -> str:
    """The types of a domain in words."""
    words = [name for family in BASE_TYPES for name in sorted(domain) if family_of(name) == family]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _of_constant(constant: ast.Constant) -> frozenset[str]:
    """What a constant may be: an integer of any numeric type, a decimal of any that has as many digits."""
    if not constant.kind:
        return ANY if constant.value is None else ADDED
    if constant.kind == NUMBER and constant.value is not None:
        return LITERAL
    return frozenset({DECIMAL if family_of(constant.kind) == DECIMAL else constant.kind})


def _is_text(term: ast.Term) -> bool:
    return isinstance(term, ast.Constant) and term.kind == SYMBOL


def _shown(name: str) -> str:
    return "-" if name == "neg" else name
