"""Bodies as conjunctions: negations pushed inwards, disjunctions distributed; later passes see flat lists.

    p(x) :- a(x), (b(x) ; x > 1, !(x = 2 ; c(x))).
      ->   a(x), b(x)        and        a(x), x > 1, x != 2, not c(x)

A negated comparison is its opposite, a double negation vanishes, a negated disjunction is the conjunction of the
negations, a negated conjunction the disjunction of the negations (de Morgan). A negated conjunction with variables of
its own says that there are none for which it holds, and stays whole, as does one with wildcards and comparisons, or
with a lookup or an aggregate that may have no value:

    p(x) :- a(x), !(b(x, y), c(y)).
      ->   a(x), not exists y: b(x, y), c(y)

`or_null` in a negated conjunction is no condition of it: it says that null matches null in it. One that does not stand
outside of it, too, stays whole.

In the braces of an aggregate, where a wildcard counts as a variable, an atom with wildcards that is negated twice stays
so: it says that there is such a row, not how many there are.

A fact has one conjunction, the empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import NamedTuple

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.functors import NEGATED
from lftj.language.visitors import Literals, Node, lets_null_match, nodes, open_variables, parts

LIMIT = 1024  # alternatives of one rule; a rule with ten binary disjunctions in a row reaches it
TOO_MANY = f"a rule with more than {LIMIT} alternatives"


@dataclass(frozen=True, slots=True)
class Conjunction:
    """One alternative of a body: atoms that hold, comparisons, atoms that do not hold.

    `none`: conjunctions with variables of their own, none of which holds for any value of these.
    """

    atoms: tuple[ast.Atom, ...] = ()
    compares: tuple[ast.Comparison, ...] = ()
    negated: tuple[ast.Atom, ...] = ()
    none: tuple[Literals, ...] = ()

    def __iter__(self) -> Iterator[ast.Literal | ast.Atom]:
        """All literals and negated atoms, without `none`."""
        yield from self.atoms
        yield from self.negated
        yield from self.compares


_Alternatives = list[Literals]
# Whether a literal in braces is under a negation; None of one that is in no braces.
_Under = bool | None


def conjunctions(body: Literals, outside: Iterable[Node] = (), *, braces: bool = False) -> list[Conjunction] | None:
    """The alternatives of a body in source order; None if there are more than LIMIT.

    `outside`: what stands outside of the body and shares its variables, such as the heads of a rule. `braces`: it is
    the body of an aggregate.
    """
    try:
        alternatives = _conjunction(body, False if braces else None)
        opened: _Alternatives = []
        seen = _LiteralsSeen(outside)
        while alternatives:
            literals = alternatives.pop(0)
            options = _opened(literals, seen, True if braces else None)
            if options is None:
                opened.append(literals)
            else:
                alternatives = options + alternatives
            if len(opened) + len(alternatives) > LIMIT:
                raise OverflowError
    except OverflowError:
        return None
    return [_sorted(literals) for literals in opened]


def _sorted(literals: Literals) -> Conjunction:
    inner = [x.literal for x in literals if isinstance(x, ast.Negation)]
    return Conjunction(
        tuple(x for x in literals if isinstance(x, ast.Atom)),
        tuple(x for x in literals if isinstance(x, ast.Comparison)),
        tuple(x for x in inner if isinstance(x, ast.Atom)),
        tuple(x.alternatives[0] for x in inner if isinstance(x, ast.Disjunction)),
    )


class _NegatedGroup(NamedTuple):
    """A negated conjunction that may be opened: its conditions, what says that null matches null, what it names."""

    conditions: Literals
    marks: Literals
    names: frozenset[str]


class _LiteralsSeen:
    """What is known of literals, each looked at once: most of them are in many alternatives.

    `outside`: what stands outside of the body and shares its variables.
    """

    def __init__(self, outside: Iterable[Node]) -> None:
        self.outside = tuple(outside)
        # By identity: comparing what is equal takes as long as looking at it. What is known is held, and stays itself.
        self._named: dict[int, tuple[Node, frozenset[str]]] = {}
        self._groups: dict[int, tuple[Node, _NegatedGroup | None]] = {}

    def names(self, node: Node) -> frozenset[str]:
        """The variables of a node, without those of scopes within it."""
        found = self._named.get(id(node))
        if found is None:
            found = self._named[id(node)] = node, frozenset(variable.name for variable in open_variables((node,)))
        return found[1]

    def name_all(self, nodes: Iterable[Node], names: frozenset[str]) -> bool:
        """Whether the nodes have all of these variables."""
        for node in nodes:
            if not names:
                break
            names -= self.names(node)
        return not names

    def group(self, literal: ast.Literal) -> _NegatedGroup | None:
        """What is to be opened of a literal; None if nothing is, whatever it stands beside."""
        found = self._groups.get(id(literal))
        if found is None:
            found = self._groups[id(literal)] = literal, _group(literal)
        return found[1]


def _group(literal: ast.Literal) -> _NegatedGroup | None:
    if not (isinstance(literal, ast.Negation) and isinstance(literal.literal, ast.Disjunction)):
        return None
    (group,) = literal.literal.alternatives
    marks = tuple(part for part in group if lets_null_match(part))
    conditions = tuple(part for part in group if part not in marks)
    if len(conditions) == 1:  # it is there in order to stay whole
        return None
    # Taken apart, every condition would have to have its values; and a wildcard is a variable of its own.
    if any(map(_may_lack_value, conditions)):
        return None
    if any(map(_has_wildcard, group)) and any(isinstance(part, ast.Comparison) for part in conditions):
        return None
    return _NegatedGroup(conditions, marks, frozenset(variable.name for variable in open_variables(group)))


def _opened(literals: Literals, seen: _LiteralsSeen, under: _Under) -> _Alternatives | None:
    """The alternatives of a conjunction whose first negated conjunction without own variables is opened, if any."""
    for at, literal in enumerate(literals):
        group = seen.group(literal)
        if group is None:
            continue
        others: Iterable[Node] = chain(seen.outside, literals[:at], literals[at + 1 :])
        if group.marks:
            others = (*others,)
            if not {*map(_plain_mark, group.marks)} <= {*map(_plain_mark, filter(lets_null_match, others))}:
                continue  # only in it null matches null
        if seen.name_all(others, group.names):
            options = _any_of(_literal(part, True, under) for part in group.conditions)
            return [
                literals[:at] + tuple(_with_marks(part, group.marks) for part in option) + literals[at + 1 :]
                for option in options
            ]
    return None


def _plain_mark(mark: Node) -> object:
    assert isinstance(mark, ast.Comparison)
    return mark.left.name if isinstance(mark.left, ast.Variable) else mark.left


def _with_marks(literal: ast.Literal, marks: Sequence[ast.Literal]) -> ast.Literal:
    """What a negated conjunction becomes; null matches null in one that stays whole (`_there_is`), too."""
    if not (isinstance(literal, ast.Negation) and isinstance(literal.literal, ast.Disjunction) and marks):
        return literal
    (group,) = literal.literal.alternatives
    named = {variable.name for variable in open_variables(group)}
    more = tuple(mark for mark in marks if _plain_mark(mark) in named and mark not in group)
    return replace(literal, literal=replace(literal.literal, alternatives=((*group, *more),)))


def _all_of(each: Iterable[_Alternatives]) -> _Alternatives:
    """The alternatives of `a and b and ...`, from those of each."""
    factors = list(each)
    if prod(map(len, factors)) > LIMIT:
        raise OverflowError
    return [tuple(chain.from_iterable(options)) for options in product(*factors)]


def _conjunction(literals: Literals, under: _Under) -> _Alternatives:
    return _all_of(_literal(literal, False, under) for literal in literals)


def _any_of(alternatives: Iterator[_Alternatives]) -> _Alternatives:
    result: _Alternatives = []
    for options in alternatives:
        result += options
        if len(result) > LIMIT:
            raise OverflowError
    return result


def _literal(literal: ast.Literal, negated: bool, under: _Under) -> _Alternatives:
    if isinstance(literal, ast.Negation):
        return _literal(literal.literal, not negated, under if under is None else True)
    if isinstance(literal, ast.Disjunction):
        if not negated:
            return _any_of(_conjunction(alternative, under) for alternative in literal.alternatives)
        # not (A or B) is (not A) and (not B)
        return _all_of(_none_of(alternative, literal, under) for alternative in literal.alternatives)
    if not negated:
        return [(_there_is(literal) if under and _has_wildcard(literal) else literal,)]
    if isinstance(literal, ast.Comparison):
        return [(replace(literal, op=NEGATED[literal.op]),)]
    return [(ast.Negation(literal, literal.span),)]


def _has_wildcard(literal: ast.Literal) -> bool:
    return isinstance(literal, ast.Atom) and any(isinstance(node, ast.Wildcard) for node in nodes(literal.args))


def _may_lack_value(node: Node) -> bool:
    """Whether a term of a literal may have no value: a lookup, or an aggregate where there is nothing to fold."""
    if isinstance(node, ast.Aggregate):
        return AGGREGATES[node.op].empty is None
    return isinstance(node, ast.Lookup) or any(map(_may_lack_value, parts(node)))


def _there_is(literal: ast.Literal) -> ast.Literal:
    """A literal as the negation of its negation, which `_opened` leaves whole."""
    group = (ast.Negation(literal, literal.span),)
    return ast.Negation(ast.Disjunction((group,), literal.span), literal.span)


def _none_of(alternative: Literals, within: ast.Disjunction, under: _Under) -> _Alternatives:
    """The alternatives of a negated conjunction: as a whole if it has several conditions, until it is `_opened`."""
    if len(alternative) == 1:
        return _literal(alternative[0], True, under)
    return [(ast.Negation(replace(within, alternatives=(alternative,)), within.span),)]
