"""Program text to trees, by recursive descent: the reference's own reading of the language.

No code of lftj's is used, so that a mistake of its grammar, its checker or of how it takes rules apart is not made
twice. Two things are rewritten on the way, by their definition in the language:

    price[x] as a term          a fresh variable v, and the atom price(x, v) in the conjunction that the term stands in
    an expression in an atom    a fresh variable v, and v = expression

A lookup in a negated literal (`!q(price[x])`, `!(price[x] > 5)`) is looked up outside of the negation; in a negated
group of several literals inside of it.
Only what is well formed is read; anything else is an AssertionError or IndexError without a message.
"""

from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import dataclass, field
from itertools import count


class Unsigned(int):
    """A value of type unsigned; a number is an int, a float a float, a symbol a str; null is None."""


Scalar = int | float | str | None


@dataclass(frozen=True)
class Var:
    name: str


@dataclass(frozen=True)
class Const:
    value: Scalar


@dataclass(frozen=True)
class Wild:
    pass


@dataclass(frozen=True)
class Apply:
    op: str
    args: tuple[Term, ...]


@dataclass(eq=False)
class Agg:
    """`op operand : { body }`; `outer`: its variables that also occur around it, which group it.

    `matching`: those of them for which `or_null` lets null match null around it.
    """

    op: str
    operand: Term | None
    body: Conj
    outer: frozenset[str] = frozenset()
    matching: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Atom:
    name: str
    args: tuple[Term, ...]


@dataclass(frozen=True)
class Cmp:
    """A comparison or a test; `known(x)` is the condition that x, which is computed with, is not null."""

    op: str
    left: Term
    right: Term


@dataclass(eq=False)
class Not:
    """No binding of `body`; `outer` as of an aggregate."""

    body: Conj
    outer: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Or:
    alternatives: tuple[Conj, ...]


Term = Var | Const | Wild | Apply | Agg
Literal = Atom | Cmp | Not | Or
Conj = tuple[Literal, ...]


@dataclass(frozen=True)
class Rule:
    """`head :- body`.

    Without body and with an aggregate for value the variables of its keys group (`deg[x] = count : {...}`).
    """

    head: Atom
    body: Conj


@dataclass
class Program:
    """`kinds`: base types of declared relations; `functional`: those whose last column is the value of the others.

    `nullable`: the columns that admit null · `empty`: relations that must hold nothing · `primary`: columns of keys.
    """

    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nullable: set[tuple[str, int]] = field(default_factory=set)
    functional: set[str] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)
    primary: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    facts: list[tuple[str, tuple[Scalar, ...]]] = field(default_factory=list)


_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<unsigned>(?:0x[0-9a-fA-F]+|0b[01]+|\d+)u)|(?P<number>0x[0-9a-fA-F]+|0b[01]+|\d+)|(?P<string>"(?:\\.|[^"\\])*")
    |(?P<directive>\.(?:decl|type|input|output|printsize)\b)|(?P<name>[A-Za-z_?][A-Za-z0-9_?]*)
    |(?P<op>:-|->|<:|<=|>=|!=|[-+*/%^(){}\[\],;:.!=<>|])""",
    re.VERBOSE | re.DOTALL,
)
_LEVELS = ({"lor"}, {"lxor"}, {"land"}, {"bor"}, {"bxor"}, {"band"}, {"bshl", "bshr", "bshru"}, {"+", "-"}, set("*/%"))
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
_FOLDS = ("count", "sum", "mean", "min", "max", "cat", "quantile_disc", "quantile_cont", *_VARIANCES)
_BASE = ("number", "unsigned", "float", "symbol")
_QUALIFIERS = ("btree", "brie", "inline", "input", "output", "printsize", "empty", "primary")
NULL_TESTS = ("is_null", "or_null", "known")


class _NotThis(Exception):
    """The tokens do not read so; try the other reading."""


class _Parser:
    def __init__(self, text: str) -> None:
        found = [(str(m.lastgroup), m[0]) for m in _TOKEN.finditer(text)]
        assert sum(len(token) for _, token in found) == len(text), "not a token"
        self.tokens = [*((kind, token) for kind, token in found if kind != "skip"), ("end", "")]
        self.at, self.numbers, self.hoisted = 0, count(), list[Literal]()
        self.program, self.types = Program(), {name: name for name in _BASE}
        self.values: set[Term] = set()  # what stands for lookups

    # -- tokens --------------------------------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead][1]

    def kind(self) -> str:
        return self.tokens[self.at][0]

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if expected is not None and token != expected:
            raise _NotThis(f"{token} for {expected}")
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() != token or self.kind() == "string":
            return False
        self.at += 1
        return True

    # -- items ---------------------------------------------------------------------------------------------------------

    def read(self) -> Program:
        while self.kind() != "end":
            if self.kind() != "directive":
                self.rule()
            else:
                {".decl": self.declaration, ".type": self.type}.get(self.take(), self.directive)()
        return self.program

    def declaration(self) -> None:
        names = [self.take()]
        while self.accept(","):
            names.append(self.take())
        self.take("(")
        columns, kinds = list[str](), list[str]()
        while not self.accept(")"):
            columns.append(self.peek())
            kinds.append(self.column())
            self.accept(",")
        if self.accept("->"):
            kinds.append(self.column())
            self.program.functional.update(names)
        while self.kind() == "name" and self.peek() in _QUALIFIERS and self.peek(1) not in ("(", "["):
            self.qualifier(names, columns)
        for name in names:
            self.program.nullable |= {(name, i) for i, kind in enumerate(kinds) if kind.endswith("?")}
        self.program.kinds.update(dict.fromkeys(names, tuple(kind.removesuffix("?") for kind in kinds)))

    def qualifier(self, names: list[str], columns: list[str]) -> None:
        qualifier = self.take()
        if qualifier == "empty":
            self.program.empty.update(names)
        elif qualifier == "primary":
            self.take("-")
            self.take("key")
            self.take("(")
            found = [columns.index(self.take())]
            while self.accept(","):
                found.append(columns.index(self.take()))
            self.take(")")
            self.program.primary |= dict.fromkeys(names, tuple(found))

    def column(self) -> str:
        self.take()
        self.take(":")
        kind = self.take()
        return self.types[kind.removesuffix("?")] + "?" * kind.endswith("?")

    def type(self) -> None:
        name = self.take()
        assert self.take() in ("=", "<:")
        self.types[name] = self.types[self.take()]

    def directive(self) -> None:
        self.take()
        if self.accept("("):
            while self.take() != ")":
                pass

    def rule(self) -> None:
        self.hoisted = []
        heads = [self.head()]
        while self.accept(","):
            heads.append(self.head())
        lifted, body = self.hoisted, ()
        if self.accept(":-"):
            body = self.disjunction()
        self.take(".")
        for head in heads:
            if not body and not lifted and all(_is_constant(arg) for arg in head.args):
                self.program.facts.append((head.name, tuple(_constant(arg) for arg in head.args)))
                continue
            # Of null in a group, no key is computed (evaluate.derived).
            groups = not body and any(isinstance(arg, Agg) for arg in head.args)
            rule = Rule(head, (*body, *lifted, *(() if groups else self.known(*head.args))))
            if body:  # aggregates in heads are terms of the body
                self.hoisted = []
                rule = Rule(Atom(head.name, tuple(self.plain(a, isinstance(a, Agg)) for a in head.args)), rule.body)
                rule = Rule(rule.head, (*rule.body, *self.hoisted))
            mark(rule)
            self.program.rules.append(rule)

    def head(self) -> Atom:
        name = self.take()
        if self.accept("["):
            keys = self.terms("]")
            self.take("=")
            return Atom(name, (*keys, self.term()))
        self.take("(")
        return Atom(name, self.terms(")"))

    # -- literals ------------------------------------------------------------------------------------------------------

    def disjunction(self) -> Conj:
        alternatives = [self.with_values(*alternative) for alternative in self.alternatives()]
        return alternatives[0] if len(alternatives) == 1 else (Or(tuple(alternatives)),)

    def alternatives(self) -> list[tuple[list[Literal], Conj]]:
        """What each alternative looks up and computes, and its literals."""
        found = [self.conjunction()]
        while self.accept(";"):
            found.append(self.conjunction())
        return found

    def conjunction(self) -> tuple[list[Literal], Conj]:
        outside, self.hoisted = self.hoisted, []
        found = list(self.literal())
        while self.accept(","):
            found += self.literal()
        hoisted, self.hoisted = self.hoisted, outside
        return hoisted, tuple(found)

    def with_values(self, hoisted: list[Literal], found: Conj) -> Conj:
        """A conjunction in which `price[x] = c` is the atom."""
        kept = tuple(literal for literal in found if not self.is_value(literal, hoisted))
        return (*hoisted, *kept)

    def is_value(self, literal: Literal, hoisted: list[Literal]) -> bool:
        if isinstance(literal, Cmp) and literal.op == "=":
            for lookup, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if lookup in self.values and isinstance(other, Var | Const | Wild):
                    at = next(i for i, x in enumerate(hoisted) if isinstance(x, Atom) and x.args[-1] == lookup)
                    atom = hoisted[at]
                    assert isinstance(atom, Atom)
                    hoisted[at] = Atom(atom.name, (*atom.args[:-1], other))
                    return True
        return False

    def literal(self) -> Conj:
        found = self.condition()
        if found is None:
            found = self.disjunction()
            self.take(")")
        return found

    def negation(self) -> Conj:
        """One condition alone has its values outside of its negation; of several together there are none."""
        outside, self.hoisted = self.hoisted, []
        found = self.condition()
        alternatives = [(self.hoisted, found)] if found is not None else self.alternatives()
        if found is None:
            self.take(")")
        self.hoisted, bodies = outside, list[Conj]()
        for hoisted, body in alternatives:
            if len(body) > 1:
                bodies.append(self.with_values(hoisted, body))
                continue
            computed = [x for x in hoisted if isinstance(x, Cmp) and x.op == "=" and not may_lack_value(x)]
            self.hoisted += [x for x in hoisted if x not in computed]
            self.hoisted += self.known(*(compare.right for compare in computed))
            bodies.append((*body, *computed))
        return (Not(bodies[0] if len(bodies) == 1 else (Or(tuple(bodies)),)),)

    def condition(self) -> Conj | None:
        """An atom, a comparison, a test or a negation; None behind the parenthesis that opens a disjunction."""
        if self.accept("!"):
            return self.negation()
        start, hoisted = self.at, len(self.hoisted)
        try:
            return self.comparison()
        except _NotThis:
            self.at = start
            del self.hoisted[hoisted:]
        if self.accept("("):
            return None
        name = self.take()
        if name in ("true", "false"):
            return (Cmp("=", Const(1), Const(int(name == "true"))),)
        self.take("(")
        if name in ("contains", "match"):
            left, right = self.terms(")")
            return (Cmp(name, left, right),)
        if name in NULL_TESTS:
            (tested,) = self.terms(")")
            return (Cmp(name, tested, Const(0)),)
        return (Atom(name, tuple(self.plain(arg) for arg in self.terms(")"))),)

    def comparison(self) -> Conj:
        left = self.term()
        op = self.take()
        if op not in _COMPARISONS:
            raise _NotThis(op)
        return (Cmp(op, left, self.term()),)

    # -- terms ---------------------------------------------------------------------------------------------------------

    def known(self, *terms: Term) -> Conj:
        """The conditions that what is computed with is not null."""
        names = sorted(set().union(*map(computed_with, terms))) if self.program.nullable else ()
        return tuple(Cmp("known", Var(name), Const(0)) for name in names)

    def plain(self, term: Term, needed: bool | None = None) -> Term:
        """A term as an atom holds it: no expression."""
        if needed is False or (needed is None and isinstance(term, Var | Const | Wild)):
            return term
        fresh = Var(f"={next(self.numbers)}")
        self.hoisted.append(Cmp("=", fresh, term))
        return fresh

    def terms(self, end: str) -> tuple[Term, ...]:
        found: list[Term] = []
        while not self.accept(end):
            found.append(self.term())
            if self.peek() != end:
                self.take(",")
        return tuple(found)

    def term(self, level: int = 0) -> Term:
        if level == len(_LEVELS):
            return self.unary()
        left = self.term(level + 1)
        while self.kind() in ("op", "name") and self.peek() in _LEVELS[level]:
            left = Apply(self.take(), (left, self.term(level + 1)))
        return left

    def unary(self) -> Term:
        for sign in ("-", "bnot", "lnot"):
            if self.accept(sign):
                return Apply("neg" if sign == "-" else sign, (self.unary(),))
        base = self.primary()
        return Apply("^", (base, self.unary())) if self.accept("^") else base

    def primary(self) -> Term:
        kind, token = self.tokens[self.at]
        if kind == "float":
            return Const(float(self.take()))
        if kind in ("number", "unsigned"):
            self.take()
            digits = token.removesuffix("u")
            value = int(digits, {"0x": 16, "0b": 2}.get(digits[:2], 10))
            return Const(Unsigned(value) if kind == "unsigned" else value)
        if kind == "string":
            return Const(str(literal_eval(self.take())))
        if self.accept("("):
            inner = self.term()
            self.take(")")
            return inner
        if kind != "name":
            raise _NotThis(token)
        if token in _FOLDS:
            start, hoisted = self.at, len(self.hoisted)
            try:
                return self.aggregate()
            except _NotThis:
                self.at = start
                del self.hoisted[hoisted:]
        self.take()
        if self.accept("["):
            fresh = Var(f"#{next(self.numbers)}")
            self.values.add(fresh)
            keys = tuple(self.plain(arg) for arg in self.terms("]"))
            self.hoisted.append(Atom(token, (*keys, fresh)))
            return fresh
        if self.peek() == "(":
            if token in self.program.kinds:
                raise _NotThis(token)
            self.take()
            return Apply(token, self.terms(")"))
        return Wild() if token == "_" else Const(None) if token == "null" else Var(token)

    def aggregate(self) -> Agg:
        op = self.take()
        if op.startswith("quantile"):
            self.take("(")
            op += f"({self.take()})"
            self.take(")")
        outside, self.hoisted = self.hoisted, []
        try:
            operand = None if op == "count" else self.term()
            self.take(":")
            if self.accept("{"):
                body = (*self.disjunction(), *self.hoisted)
                self.take("}")
            else:
                body = self.with_values(self.hoisted, self.literal())
        finally:
            self.hoisted = outside
        return Agg(op, operand, self.named(body))

    def named(self, body: Conj) -> Conj:
        """The body of an aggregate: every wildcard of its positive atoms is a variable of its own."""
        found: list[Literal] = []
        for literal in body:
            if isinstance(literal, Atom):
                args = (Var(f"#{next(self.numbers)}") if isinstance(arg, Wild) else arg for arg in literal.args)
                literal = Atom(literal.name, tuple(args))
            elif isinstance(literal, Or):
                literal = Or(tuple(self.named(alternative) for alternative in literal.alternatives))
            found.append(literal)
        return tuple(found)


def _is_constant(term: Term) -> bool:
    return isinstance(term, Const) or (isinstance(term, Apply) and term.op == "neg" and isinstance(term.args[0], Const))


def _constant(term: Term) -> Scalar:
    if isinstance(term, Apply):
        return -_constant(term.args[0])  # type: ignore[operator]
    assert isinstance(term, Const)
    return term.value


# Which variables group an aggregate, or are given to a negated group ---------------------------------------------


def mark(rule: Rule) -> None:
    """Set `outer` of everything nested in a rule."""
    head = set().union(*(names_in(arg) for arg in rule.head.args if not isinstance(arg, Agg)))
    for arg in rule.head.args:
        if isinstance(arg, Agg) and not rule.body:  # grouped by the other arguments, which it binds itself
            arg.outer = frozenset()
            _mark_conjunction(arg.body, head | names_in(arg.operand))
    _mark_conjunction(rule.body, head, rule.head.args if rule.body else ())


def _mark_conjunction(body: Conj, around: set[str], terms: tuple[Term, ...] = ()) -> None:
    visible = around | set().union(*(names_in(literal) for literal in body))
    matching = matching_null(body)
    for literal in (*body, *terms):
        for node in nested_in(literal):
            operand = node.operand if isinstance(node, Agg) else None
            everything = set().union(all_names(operand) if operand else (), *(all_names(inner) for inner in node.body))
            node.outer = frozenset(everything & visible)
            if isinstance(node, Agg):
                node.matching = node.outer & matching
            _mark_conjunction(node.body, set(node.outer) | names_in(operand))


def _parts(node: Literal | Term | None) -> tuple[Literal | Term, ...]:
    if isinstance(node, Atom | Apply):
        return node.args
    if isinstance(node, Cmp):
        return (node.left, node.right)
    return tuple(x for conj in node.alternatives for x in conj) if isinstance(node, Or) else ()


def names_in(node: Literal | Term | None) -> set[str]:
    """The variables of a literal or term, but for what is nested in braces or negated."""
    if isinstance(node, Var):
        return {node.name}
    return set().union(*(names_in(part) for part in _parts(node)))


def matching_null(body: Conj) -> frozenset[str]:
    """The variables for which null matches null in a conjunction."""
    tests = [x for x in body if isinstance(x, Cmp) and x.op == "or_null"]
    return frozenset(x.left.name for x in tests if isinstance(x.left, Var))


def computed_with(term: Term) -> set[str]:
    """The variables among the arguments of functors, but for those that `coalesce` looks at."""
    if not isinstance(term, Apply):
        return set()
    own = set() if term.op == "coalesce" else {arg.name for arg in term.args if isinstance(arg, Var)}
    return own.union(*map(computed_with, term.args))


def nested_in(node: Literal | Term) -> list[Agg | Not]:
    """The aggregates and negations of a literal or term, the outermost only."""
    if isinstance(node, Agg | Not):
        return [node]
    return [found for part in _parts(node) for found in nested_in(part)]


def may_lack_value(literal: Literal) -> bool:
    """Whether what is compared is an aggregate that has no value where there is nothing to fold."""
    if isinstance(literal, Cmp):
        return any(isinstance(x, Agg) and x.op not in ("count", "sum") for x in nested_in(literal))
    if isinstance(literal, Not):
        return any(map(may_lack_value, literal.body))
    return isinstance(literal, Or) and any(may_lack_value(part) for conj in literal.alternatives for part in conj)


def all_names(node: Literal | Term) -> set[str]:
    """The variables of a literal or term, nested ones too."""
    found = names_in(node)
    for inner in nested_in(node):
        found |= set().union(*(all_names(literal) for literal in inner.body))
        if isinstance(inner, Agg) and inner.operand is not None:
            found |= all_names(inner.operand)
    return found


def relations_in(node: Literal | Term) -> set[str]:
    """The relations that a literal or term reads, nested ones too."""
    if isinstance(node, Agg | Not):
        own = [] if isinstance(node, Not) or node.operand is None else [node.operand]
        return set().union(*(relations_in(part) for part in (*node.body, *own)))
    here = {node.name} if isinstance(node, Atom) else set()
    return here.union(*(relations_in(part) for part in _parts(node)))


def waited_for(node: Literal | Term, around: set[str], *, negated: bool = False) -> set[str]:
    """The relations that have to be complete where a literal or term is asked: those that are folded or negated.

    What is negated twice may grow meanwhile, if all variables in between are those `around` it.
    """
    if isinstance(node, Not) and set().union(*map(all_names, node.body)) <= around:
        return set().union(*(waited_for(part, around, negated=not negated) for part in node.body))
    if isinstance(node, Agg | Not):
        return relations_in(node)
    here = {node.name} if negated and isinstance(node, Atom) else set()
    return here.union(*(waited_for(part, around, negated=negated) for part in _parts(node)))


def key_columns(program: Program, name: str) -> tuple[int, ...] | None:
    """The columns in which no two rows of a relation agree, if it has a key."""
    if name in program.functional:
        return tuple(range(len(program.kinds[name]) - 1))
    return program.primary.get(name)


def parse(text: str) -> Program:
    """The program that `text` writes."""
    return _Parser(text).read()
