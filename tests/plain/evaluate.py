"""What a program means: sets of rows, by loops.

A conjunction is solved by taking its literals one after the other: first what can be tested, then equalities that
bind, then atoms, then disjunctions. A negation can be tested once its `outer` variables are bound, and holds where its
body has no binding; an aggregate has a value then, folded over the distinct bindings of its body. Relations are
evaluated in an order in which each follows those that it reads; those that read each other, together, by all of their
rules over and over until nothing is new. Functional ones that read each other hold what their rules derive from what
they held before, over and over until that stays as it is, as it does where the data have no cycle. No key order, no
plan, and no part of a rule has a relation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tests.plain.aggregates import Empty, Overflow, folded
from tests.plain.arithmetic import Missing
from tests.plain.arithmetic import Undefined as Undefined
from tests.plain.arithmetic import matches as matches_all_of
from tests.plain.syntax import (
    NULL_TESTS,
    Agg,
    Apply,
    Atom,
    Cmp,
    Conj,
    Const,
    Literal,
    Not,
    Or,
    Program,
    Rule,
    Scalar,
    Term,
    Var,
    Wild,
    key_columns,
    matching_null,
    may_lack_value,
    names_in,
    relations_in,
    waited_for,
)
from tests.plain.syntax import parse as parse
from tests.plain.terms import typed, value_of

Row = tuple[Scalar, ...]
Contents = dict[str, set[Row]]
Env = dict[str, Scalar]


class Ungrounded(Exception):
    """A rule in which a variable is never bound."""


class Cycle(Exception):
    """Relations that read each other, where one has to be complete before it is negated or aggregated."""


class KeyConflict(Exception):
    """Two rows with one key. The transaction that leads to it fails."""


class Broken(Exception):
    """A row of a relation that must stay empty. The transaction that leads to it fails."""


def evaluate(program: Program, data: Mapping[str, Iterable[Sequence[Any]]] | None = None) -> Contents:
    """The content of every relation that holds the facts of the text and those of `data`, and what rules derive."""
    given: Contents = {}
    for name, row in program.facts:
        given.setdefault(name, set()).add(stored(program, name, row))
    for name, rows in (data or {}).items():
        given.setdefault(name, set()).update(stored(program, name, row) for row in rows)
    world = World()
    for component in in_order(program, given):
        for name in component:
            world.put(name, given.get(name, set()))
        if recursive(program, component) and program.functional.issuperset(component):
            by_key(program, component, world, given)
        while consequences(program, component, world) and recursive(program, component):
            pass
        for name in component:
            check(program, name, world.rows[name])
    return world.rows


def consequences(program: Program, component: tuple[str, ...], world: World) -> bool:
    """Add what the rules of some relations derive from a world; whether there is anything new."""
    grown = False
    for rule in program.rules:
        name = rule.head.name
        if name in component:
            new = {stored(program, name, row) for row in set(derived(rule, world))} - world.rows[name]
            if new:
                world.put(name, world.rows[name] | new)
                grown = True
    return grown


def by_key(program: Program, component: tuple[str, ...], world: World, given: Contents) -> None:
    """Replace the contents of functional relations by what their rules derive from these, until they stay."""
    rules = [rule for rule in program.rules if rule.head.name in component]
    while True:
        made = {name: set(given.get(name, ())) for name in component}
        for rule in rules:
            made[rule.head.name] |= {stored(program, rule.head.name, row) for row in set(derived(rule, world))}
        if all(made[name] == world.rows[name] for name in component):
            for rule in rules:
                check_proposed(program, rule, world)
            return
        for name, rows in made.items():
            world.put(name, rows)


def check_proposed(program: Program, rule: Rule, world: World) -> None:
    """Every value that is proposed to an extreme in a recursion has to fit into its column, not the best one alone."""
    *_, fold = rule.head.args
    kind = program.kinds[rule.head.name][-1]
    nullable = (rule.head.name, len(rule.head.args) - 1) in program.nullable
    if isinstance(fold, Agg) and not rule.body and fold.op in ("min", "max"):
        for value in world.values(fold, solve(fold.body, {}, world)):
            cell(value, kind, nullable=nullable)


def stored(program: Program, name: str, row: Sequence[Any]) -> Row:
    """A row as its relation's types have it."""
    kinds = program.kinds.get(name)
    if kinds is None:
        return tuple(row)
    cells = enumerate(zip(row, kinds, strict=True))
    return tuple(cell(v, kind, nullable=(name, i) in program.nullable) for i, (v, kind) in cells)


def cell(value: Scalar, kind: str, *, nullable: bool) -> Scalar:
    """A value as a column has it: one that admits null has the code of one number for it."""
    if value is None:
        assert nullable, "null in a column that does not admit it"
        return None
    value = typed(value, kind)
    if nullable and value == {"number": -(2**63), "unsigned": 2**64 - 1}.get(kind):
        raise Undefined("the number whose code is that of null")
    return value


def check(program: Program, name: str, rows: set[Row]) -> None:
    """What is declared of a relation's rows."""
    if name in program.empty and rows:
        raise Broken(name)
    columns, found = key_columns(program, name), dict[Row, Row]()
    for row in rows if columns is not None else ():
        other = found.setdefault(tuple(row[column] for column in columns or ()), row)
        if other != row:
            raise KeyConflict(f"{name}: {other} and {row}")


def reads(rule: Rule) -> set[str]:
    """The relations that a rule reads."""
    return set().union(*(relations_in(part) for part in (*rule.body, *rule.head.args)))


def recursive(program: Program, component: tuple[str, ...]) -> bool:
    """Whether the relations of a component read each other, or the only one itself."""
    return any(rule.head.name in component and reads(rule) & set(component) for rule in program.rules)


def in_order(program: Program, given: Contents) -> list[tuple[str, ...]]:
    """The relations in components that read each other, each after those that its rules read."""
    below: dict[str, set[str]] = {name: {name} for name in (*program.kinds, *given)}
    for rule in program.rules:
        below.setdefault(rule.head.name, {rule.head.name}).update(reads(rule))
    for name in set().union(*below.values()):
        below.setdefault(name, {name})
    for through in below:  # Warshall
        for name in below:
            if through in below[name]:
                below[name] |= below[through]
    found = {tuple(sorted(n for n in below[name] if name in below[n])): len(below[name]) for name in below}
    for rule in program.rules:
        read = (*rule.body, *rule.head.args)
        others = [set().union(*(names_in(other) for other in read if other is not part)) for part in read]
        for name in set().union(*(waited_for(part, around) for part, around in zip(read, others, strict=True))):
            component = next(component for component in found if rule.head.name in component)
            if rule.head.name in below[name] and not program.functional.issuperset(component):
                raise Cycle(rule.head.name, name)
    return sorted(found, key=lambda component: found[component])


class World:
    """The relations evaluated so far, and tables to find their rows by some of their columns."""

    def __init__(self) -> None:
        self.rows: Contents = {}
        self._tables: dict[tuple[str, tuple[int, ...]], dict[Row, list[Row]]] = {}

    def put(self, name: str, rows: set[Row]) -> None:
        """Give a relation its rows."""
        self.rows[name] = rows
        self._tables = {key: table for key, table in self._tables.items() if key[0] != name}

    def find(self, name: str, columns: tuple[int, ...], key: Row) -> list[Row]:
        """The rows of a relation that hold `key` in `columns`."""
        table = self._tables.get((name, columns))
        if table is None:
            table = self._tables[name, columns] = {}
            for row in self.rows[name]:
                table.setdefault(tuple(row[c] for c in columns), []).append(row)
        return table.get(key, [])

    def fold(self, node: Agg, env: Mapping[str, Scalar]) -> Scalar:
        """The value of an aggregate under what its group variables are bound to."""
        null = {v for v in node.outer if env[v] is None}
        if null - node.matching:
            raise Empty
        found: list[Env] = []
        for body in alternatives_of(node.body):
            # Of a group that may be null, and matches null, the braces bind what is null.
            own = null & set().union(*(names_in(literal) for literal in body if isinstance(literal, Atom)))
            bound = solve(body, {v: env[v] for v in node.outer - own}, self)
            found += (b for b in bound if all(b[v] is None for v in null))
        return self.fold_all(node, found)

    def fold_all(self, node: Agg, found: Iterable[Env]) -> Scalar:
        """The value over bindings, each of which counts once."""
        # What computes an argument is no variable of the text: one alternative may compute one, another not.
        distinct = {
            tuple(item for item in env.items() if not item[0].startswith("=")): env
            for env in (dict(sorted(env.items())) for env in found)
        }
        values: list[Scalar] = [0] * len(distinct)
        if node.operand is not None:
            values = list(self.values(node, distinct.values()))
        return folded(node.op, values)

    def values(self, node: Agg, found: Iterable[Env]) -> Iterator[Scalar]:
        """What an aggregate folds: values that are not null."""
        operand, times = node.operand, None
        assert operand is not None
        if isinstance(operand, Apply) and operand.op == "counted":
            operand, times = operand.args
        for env in in_key_order(node.body, found):
            try:
                value = value_of(operand, env, self.fold)
                number = 1 if times is None else value_of(times, env, self.fold)
            except Missing:
                continue
            if value is not None:
                assert isinstance(number, int)
                yield from [value] * number


def in_key_order(body: Conj, found: Iterable[Env]) -> list[Env]:
    """Bindings in the order of their variables as the body names them, texts by code point."""
    named = [arg.name for atom in body if isinstance(atom, Atom) for arg in atom.args if isinstance(arg, Var)]
    return sorted(found, key=lambda env: [(env[name] is not None, env[name]) for name in named])


def derived(rule: Rule, world: World) -> Iterator[Row]:
    """The rows of a rule."""
    *keys, last = rule.head.args or (None,)
    if isinstance(last, Agg) and not rule.body:  # the variables of the head's keys group
        names = sorted(set().union(*map(names_in, keys)))
        groups: dict[Row, list[Env]] = {} if names or last.op not in ("count", "sum") else {(): []}
        for env in solve(last.body, {}, world):
            groups.setdefault(tuple(env[name] for name in names), []).append(env)
        for group, found in groups.items():
            if last.operand is not None and names and not any(True for _ in world.values(last, found)):
                continue
            with suppress(Empty, Missing):
                key = (value_of(key, dict(zip(names, group, strict=True)), world.fold) for key in keys)
                yield (*key, world.fold_all(last, found))
        return
    for env in solve(rule.body, {}, world):
        if not all(known(arg, env) for arg in rule.head.args):
            raise Ungrounded(rule)
        try:
            row = tuple(value_of(arg, env, world.fold) for arg in rule.head.args)
        except (Empty, Missing):  # an extreme or a mean of nothing, or what is computed of null
            continue
        yield row


# Conjunctions ---------------------------------------------------------------------------------------------------


def solve(
    body: Conj, env: Env, world: World, error: Overflow | None = None, null: frozenset[str] = frozenset()
) -> Iterator[Env]:
    """Every way to bind the variables of a conjunction that `env` leaves open.

    Raises `Overflow` if an aggregate has no value for it where all holds that does not need that value. `error`: one
    that a literal met, which is left out. `null`: the variables that are null where their columns are.
    """
    null |= matching_null(body)
    at = min(range(len(body)), key=lambda i: urgency(body[i], env), default=None)
    if at is None or urgency(body[at], env) == len(_URGENCY):
        if error is not None:  # what is left needs the value
            raise error
        if at is not None:
            raise Ungrounded(body[at])
        yield env
        return
    literal, rest = body[at], (*body[:at], *body[at + 1 :])
    if isinstance(literal, Atom):
        for extended in matches(literal, env, world, null):
            yield from solve(rest, extended, world, error, null)
    elif isinstance(literal, Or):
        for alternative in literal.alternatives:
            yield from solve((*alternative, *rest), env, world, error, null)
    else:
        try:
            after = tested(literal, env, world, null)
        except Overflow as found:
            after, error = env, found
        if after is not None:
            yield from solve(rest, after, world, error, null)


def alternatives_of(body: Conj) -> list[Conj]:
    """A conjunction for each choice of alternatives in its disjunctions."""
    at = next((i for i, literal in enumerate(body) if isinstance(literal, Or)), None)
    if at is None:
        return [body]
    rest = (*body[:at], *body[at + 1 :])
    return [made for part in body[at].alternatives for made in alternatives_of((*part, *rest))]


def tested(literal: Cmp | Not, env: Env, world: World, null: frozenset[str]) -> Env | None:
    """`env` with the variable that a literal binds, if it binds one; None if the literal does not hold."""
    if isinstance(literal, Not):
        return env if none(literal, env, world, null) else None
    if known(literal.left, env) and known(literal.right, env):
        return env if holds(literal, env, world) else None
    var, term = (literal.left, literal.right) if known(literal.right, env) else (literal.right, literal.left)
    assert isinstance(var, Var)
    try:
        value = value_of(term, env, world.fold)
    except (Empty, Missing):
        return None
    return None if value is None else {**env, var.name: value}


def none(negation: Not, env: Env, world: World, null: frozenset[str]) -> bool:
    """Whether the body of a negation has no binding.

    A comparison alone, and conditions without variables of their own, are taken apart: whether one of them is denied.
    That differs where a comparison has no value, which is neither the case nor denied.
    """
    if is_opened(negation, null):
        return any(denied(literal, negation, env, world, null) for literal in negation.body)
    return not bindings(negation, env, world, null)


def bindings(negation: Not, env: Env, world: World, null: frozenset[str]) -> list[Env]:
    """Those of the body: all of them, so that it does not depend on an order whether a value is missing."""
    around = null if len(conditions(negation)) == 1 else frozenset[str]()
    return list(solve(negation.body, {v: env[v] for v in negation.outer}, world, null=around))


def is_opened(negation: Not, null: frozenset[str]) -> bool:
    """Whether what is negated are conditions of the variables around it, and no atom alone."""
    parts = conditions(negation)
    if len(parts) == 1:
        return not isinstance(parts[0], Atom) and not matching_null(negation.body)
    if not matching_null(negation.body) <= null or any(map(may_lack_value, negation.body)):
        return False
    wild = any(isinstance(part, Atom) and any(isinstance(arg, Wild) for arg in part.args) for part in parts)
    own = set().union(*map(names_in, parts)) - negation.outer - computed(negation).keys()
    return not own and not (wild and any(isinstance(part, Cmp) for part in parts))


def conditions(negation: Not) -> list[Literal]:
    """The body of a negation without what computes arguments of its atoms, and without what is no condition."""
    return [x for x in negation.body if not (isinstance(x, Cmp) and (is_computed(x) or x.op in ("or_null", "known")))]


def is_computed(compare: Cmp) -> bool:
    return isinstance(compare.left, Var) and compare.left.name.startswith("=")


def computed(negation: Not) -> dict[str, Term]:
    """The expressions for arguments of a negation's atoms, by the variables in their places."""
    return {
        part.left.name: part.right
        for part in negation.body
        if isinstance(part, Cmp) and is_computed(part) and isinstance(part.left, Var)
    }


def denied(literal: Literal, negation: Not, env: Env, world: World, null: frozenset[str]) -> bool:
    """Whether the opposite of a part of a negation holds."""
    if isinstance(literal, Cmp):
        return literal in conditions(negation) and truth(literal, env, world) is False
    if isinstance(literal, Not):  # `!!(x < 5)` is `x < 5`, which does not hold for null
        return bool(bindings(literal, env, world, null))
    if isinstance(literal, Or):
        return all(none(Not(part, negation.outer), env, world, null) for part in literal.alternatives)
    terms = computed(negation)
    try:
        values = {name: value_of(terms[name], env, world.fold) for name in names_in(literal) & terms.keys()}
    except (Empty, Missing):
        return False
    return not any(True for _ in matches(literal, env | values, world, null))


_URGENCY = ("test", "bind", "atom", "or")


def urgency(literal: Atom | Cmp | Not | Or, env: Env) -> int:
    """When to take a literal: the index in _URGENCY of what it can be used for; beyond them if nothing yet."""
    if isinstance(literal, Atom):
        return 2
    if isinstance(literal, Or):
        return 3
    if isinstance(literal, Not):
        return 0 if literal.outer <= env.keys() else len(_URGENCY)
    left, right = known(literal.left, env), known(literal.right, env)
    if left and right:
        return 0
    binds = literal.op == "=" and (
        (left and isinstance(literal.right, Var)) or (right and isinstance(literal.left, Var))
    )
    return 1 if binds else len(_URGENCY)


def known(term: Term, env: Env) -> bool:
    """Whether a term has its variables bound."""
    if isinstance(term, Apply):
        return all(known(arg, env) for arg in term.args)
    if isinstance(term, Agg):
        return term.outer <= env.keys()
    return isinstance(term, Const) or (isinstance(term, Var) and term.name in env)


def matches(atom: Atom, env: Env, world: World, null: frozenset[str]) -> Iterator[Env]:
    """`env` extended by every row of an atom's relation that agrees with it."""
    bound = tuple(i for i, arg in enumerate(atom.args) if known(arg, env))
    key = tuple(value_of(atom.args[i], env, world.fold) for i in bound)
    for row in world.find(atom.name, bound, key):
        extended = dict(env)
        for arg, value in zip(atom.args, row, strict=True):
            assert isinstance(arg, Var | Const | Wild)
            if isinstance(arg, Var) and arg.name in extended:
                if extended[arg.name] != value or (value is None and arg.name not in null):
                    break
            elif isinstance(arg, Var):
                extended[arg.name] = value
        else:
            yield extended


def holds(compare: Cmp, env: Env, world: World) -> bool:
    """Whether a comparison of bound terms holds; not if an aggregate in it has no value, or something is null."""
    return truth(compare, env, world) is True


def truth(compare: Cmp, env: Env, world: World) -> bool | None:
    """Whether a comparison of bound terms holds; None if one of them has no value."""
    try:
        left, right = (value_of(term, env, world.fold) for term in (compare.left, compare.right))
    except (Empty, Missing):
        return None
    if compare.op in NULL_TESTS:
        return compare.op == "or_null" or (left is None) == (compare.op == "is_null")
    if left is None or right is None:
        return None
    if compare.op in ("contains", "match"):
        text, part = str(right), str(left)
        return part in text if compare.op == "contains" else matches_all_of(part, text)
    below, same = left < right, left == right  # type: ignore[operator]
    return {"=": same, "!=": not same, "<": below, "<=": below or same, ">": not below and not same, ">=": not below}[
        compare.op
    ]
