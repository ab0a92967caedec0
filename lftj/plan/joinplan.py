"""The join plan: a key order worked out to depths, participants, conditions and blocks.

Data only; `explain` prints it, `lowering` makes it arrays.

For `tri(x,y,z) :- e(x,y), e(y,z), e(x,z)` in key order x, y, z:

    depth  variable  participants                 trie nodes (frames) by (rows, key order, variables so far)
    0      x         e(x                          0: e[0,1] x        shared by the first and the third atom
    1      y         e(x,y   e(y                  1: e[0,1] x,y      2: e[0,1] y
    2      z         e(y,z   e(x,z                3: e[0,1] y,z      4: e[0,1] x,z

Atoms over the same relation whose leading variables agree share trie nodes, so the same key set never takes part
twice. When only a count is wanted, depths are cut into blocks (triejoin.py): variables that nothing connects once the
ones before them are bound are counted apart, and so are those that only a part of the ones before them has to do with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from lftj.language.clause import Apply, Compare, Term, Value, Var, variables_of
from lftj.language.functors import FLIPPED
from lftj.plan.body import Atom, Body, Condition
from lftj.plan.keyorder import Choice
from lftj.plan.partial_functions import partial_of, partial_terms
from lftj.plan.statistics import Stored
from lftj.values.type_table import in_dictionary

ROOT_VARIABLE = "#0"


@dataclass(frozen=True, slots=True)
class TrieNode:
    """One level of the trie of some rows.

    `predicate` in `key_order`, at `level`, below node `above` (-1: the root), binding `variable`.
    """

    predicate: str
    key_order: tuple[int, ...]
    level: int
    above: int
    variable: str


@dataclass(frozen=True, slots=True)
class Depth:
    """One depth of the walk.

    `participants` index `JoinPlan.nodes`, and so do `negated`, the last nodes of negated atoms looked at here ·
    `definition` is the term that computes the variable (None: a leapfrog) · `bounds` are (operator, term) that limit
    its keys · `counts`: its one candidate is how many rows the run of its participant has (Atom.multiplicity) ·
    `filters` are checked after a match · `rows` is the estimated number of bindings · `block` and what ends
    it: `leaf` (a full binding), `child` (first child block) or neither (the next depth).
    """

    variable: str
    participants: tuple[int, ...]
    definition: Term | None
    bounds: tuple[tuple[str, Term], ...]
    filters: tuple[Compare, ...]
    rows: float
    block: int
    first: bool
    leaf: bool
    child: int
    negated: tuple[int, ...] = ()
    tested: tuple[int, ...] = ()
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A chain of depths from `top` on, counted below each binding of depth `parent` (-1: once).

    `sibling` is counted next (-1: none) · `keys`: the bound variables that its count depends on, if these do not say
    what all of them are, so that it may be counted for the same ones again; else None.
    """

    parent: int
    top: int
    sibling: int
    keys: tuple[str, ...] | None = None


class Folded(NamedTuple):
    """What is counted, and summed, of the bindings of each group, where an aggregate is evaluated by blocks.

    `groups`: the variables that the group's `head` is made of · `factors`: those whose product is summed.
    """

    groups: tuple[str, ...]
    head: tuple[Term, ...]
    factors: frozenset[str] = frozenset()


class Abandoned(NamedTuple):
    """A key order that was walked for so many `steps`, and abandoned: it was `estimated` to take fewer by far."""

    order: tuple[str, ...]
    steps: int
    estimated: float


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """All that is fixed about a join before data is touched.

    `until`: depths from here on are an existential suffix (len(depths): none) · `in_order`: the output comes out
    sorted and without repeats · `uses`: per body atom, its text and the key order it reads · `guards`, `voids`:
    relations that must not be empty, and that must be · `witnesses`: estimated bindings of an existential suffix below
    one of the head · `limiting`: the node of the row that holds the limit of tested rows (-1: there is none) ·
    `looked_up`: the texts of atoms that bind nothing: their row is looked up for every binding · `abandoned`: the
    orders that were walked before this one, and took too long · `folded`: what is counted of groups, if they are.
    """

    depths: tuple[Depth, ...]
    nodes: tuple[TrieNode, ...]
    blocks: tuple[Block, ...]
    guards: tuple[str, ...]
    head: tuple[Term, ...]
    until: int
    in_order: bool
    counting: bool
    cost: float
    forced: bool
    uses: tuple[tuple[str, str, tuple[int, ...]], ...]
    shown: dict[str, str]
    voids: tuple[str, ...] = ()
    witnesses: float = 1.0
    limiting: int = -1
    looked_up: tuple[str, ...] = ()
    abandoned: tuple[Abandoned, ...] = ()
    folded: Folded | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """The key order: variables as they print."""
        named = (d.variable for d in self.depths if d.variable != ROOT_VARIABLE and not d.counts)
        return tuple(self.shown.get(v, v) for v in named)

    def node_text(self, i: int) -> str:
        """A trie node as it prints: relation, key order, and the variables down to it."""
        node, path = self.nodes[i], [self.shown.get(self.nodes[i].variable, self.nodes[i].variable)]
        above = node.above
        while above >= 0:
            variable = self.nodes[above].variable
            path.insert(0, self.shown.get(variable, variable))
            above = self.nodes[above].above
        return f"{node.predicate}[{','.join(map(str, node.key_order))}]({', '.join(path)})"

    def above(self, depth: int) -> set[int]:
        """The depths that are bound when the walk stands at `depth` (itself included; none for -1)."""
        found = set[int]()
        while depth >= 0:
            block = self.blocks[self.depths[depth].block]
            found |= {d for d in range(block.top, depth + 1) if self.depths[d].block == self.depths[depth].block}
            depth = block.parent
        return found


def choice_of(plan: JoinPlan) -> Choice:
    """The choice that a plan, which does not count, is worked out from."""
    depths = [depth for depth in plan.depths if depth.variable != ROOT_VARIABLE and not depth.counts]
    order, rows = (tuple(depth.variable for depth in depths), tuple(depth.rows for depth in depths))
    return Choice(order, rows, plan.cost, plan.forced, plan.witnesses)


def _key_order(
    atom: Atom, place: Mapping[str, int], stored: Stored, chosen: list[tuple[str, tuple[int, ...]]], *, whole: bool
) -> tuple[tuple[int, ...], int]:
    """(key order to read the atom in, levels used).

    An order that exists, or that another atom asks for already, if one begins right. `whole`: of all columns.
    """
    columns = tuple(
        sorted((c for c, v in enumerate(atom.columns) if v is not None), key=lambda c: place[atom.columns[c] or ""])
    )
    candidates = [*sorted(stored.orders), *(order for predicate, order in chosen if predicate == atom.predicate)]
    for order in candidates:
        if order[: len(columns)] == columns and (len(order) == stored.arity or not whole):
            return order, len(columns)
    if whole:
        return (*columns, *(c for c in range(stored.arity) if c not in columns)), len(columns)
    return stored.key_order(columns), len(columns)


def _trie(
    body: Body,
    place: Mapping[str, int],
    relations: Mapping[str, Stored],
    looked_up: Collection[int],
    whole: Collection[str],
) -> tuple[list[TrieNode], list[tuple[str, str, tuple[int, ...]]], list[int], list[int], dict[int, int]]:
    """Trie nodes of all atoms, shared where rows and leading variables agree, and the key order each atom reads.

    Then the nodes that positive atoms hold, the last nodes of negated ones, and (by number) those of atoms that are
    `looked_up` by whole rows, in the order of their columns.
    """
    nodes: list[TrieNode] = []
    known: dict[tuple[str, tuple[int, ...], tuple[str, ...]], int] = {}
    chosen: list[tuple[str, tuple[int, ...]]] = []
    uses = []
    positive: list[int] = []
    ends: list[int] = []

    def chain(atom: Atom, order: tuple[int, ...], levels: int) -> list[int]:
        found: list[int] = []
        path = tuple[str, ...]()
        for level in range(levels):
            variable = atom.columns[order[level]]
            assert variable is not None
            path = (*path, variable)
            at = (atom.predicate, order, path)
            if at not in known:
                known[at] = len(nodes)
                nodes.append(TrieNode(atom.predicate, order, level, found[-1] if found else -1, variable))
            found.append(known[at])
        return found

    for i, atom in enumerate((*body.atoms, *body.negated)):
        name = atom.predicate
        order, levels = _key_order(atom, place, relations[name], chosen, whole=name in whole)
        chosen.append((atom.predicate, order))
        negated = i >= len(body.atoms)
        uses.append((f"!{atom.text}" if negated else atom.text, atom.predicate, order))
        path = chain(atom, order, levels)
        if negated:
            ends.append(path[-1])
            continue
        positive += path
        if atom.multiplicity:
            positive.append(len(nodes))
            nodes.append(TrieNode(atom.predicate, order, levels, path[-1] if path else -1, atom.multiplicity))
    looks = {}
    for atom in (atom for atom in (*body.atoms, *body.looked) if atom.place in looked_up):
        declared = tuple(range(len(atom.columns)))
        looks[atom.place] = chain(atom, declared, len(declared))[-1]
    return nodes, uses, positive, ends, looks


def _components(names: list[str], neighbours: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """The parts of `names` (in key order) that nothing connects.

    Each in key order, in the order of their first variables.
    """
    parts: list[list[str]] = []
    left = list(names)
    while left:
        reached, frontier = {left[0]}, [left[0]]
        while frontier:
            for w in neighbours[frontier.pop()]:
                if w in left and w not in reached:
                    reached.add(w)
                    frontier.append(w)
        parts.append([v for v in left if v in reached])
        left = [v for v in left if v not in reached]
    return parts


def _in_blocks(
    order: tuple[str, ...],
    neighbours: Mapping[str, frozenset[str]],
    conditions: Collection[Condition],
    groups: int,
    at_once: Collection[str],
) -> tuple[list[str], list[Block], dict[str, tuple[int, bool, int]]]:
    """(order, blocks, per variable (block, first of it, first child block)) for counting: see the module's text.

    The first `groups` variables are a block, whatever connects them · `at_once`: what is counted without a walk, as
    quickly as it would be remembered.
    """
    laid: list[str] = []
    blocks: list[Block] = []
    where: dict[str, tuple[int, bool, int]] = {}

    def keys_of(part: list[str], bound: frozenset[str]) -> tuple[str, ...] | None:
        if len(part) == 1 and part[0] in at_once:
            return None
        keys = frozenset[str]().union(*(neighbours[v] for v in part if v != ROOT_VARIABLE)) & bound - {ROOT_VARIABLE}
        return tuple(v for v in laid if v in keys) if bound - _computed(keys, conditions) else None

    def lay(part: list[str], parent: int, above: frozenset[str], keys: tuple[str, ...] | None) -> int:
        number = len(blocks)
        blocks.append(Block(parent, len(laid), -1, keys))
        first = True
        while True:
            v, rest = part[0], part[1:]
            laid.append(v)
            above |= {v}
            parts = [rest] if len(laid) < groups else _components(rest, neighbours)
            if len(parts) != 1 or len(laid) == groups or (len(laid) > groups and keys_of(parts[0], above) is not None):
                break
            where[v] = (number, first, -1)
            first, part = False, parts[0]
        at, previous = len(laid) - 1, -1
        where[v] = (number, first, len(blocks) if parts else -1)
        for child in parts:
            made = lay(child, at, above, keys_of(child, above))
            if previous >= 0:
                blocks[previous] = replace(blocks[previous], sibling=made)
            previous = made
        return number

    lay(list(order), -1, frozenset(), None)
    return laid, blocks, where


def _counted_at_once(body: Body, folded: Folded | None) -> frozenset[str]:
    """Multiplicities, and what is the last key of the rows of one atom, which asks for nothing else of it."""
    elsewhere = [*(c.variables for c in body.conditions), *(atom.variables for atom in body.negated)]
    wanted = frozenset[str]().union(*elsewhere, folded.factors if folded is not None else ())
    of_one = Counter(v for atom in body.atoms for v in atom.variables)
    free = (v for atom in body.atoms if None not in atom.columns for v in atom.variables if of_one[v] == 1)
    return frozenset(free) - wanted | {atom.multiplicity for atom in body.atoms if atom.multiplicity}


def _computed(variables: frozenset[str], conditions: Collection[Condition]) -> frozenset[str]:
    """`variables`, what conditions compute from them, and what is the same in all bindings."""
    found, before = variables | {ROOT_VARIABLE}, frozenset[str]()
    while found != before:
        before = found
        found |= {name for c in conditions for name, _, needs in c.defines if needs <= found}
    return found


def _bound(condition: Condition, variable: str, type: str, earlier: frozenset[str]) -> tuple[str, Term] | None:
    """(operator, term) if the condition limits the keys of `variable` by a term of earlier variables.

    Symbols are not in key order.
    """
    compare = condition.compare
    if compare.op not in FLIPPED or in_dictionary(type):
        return None
    for op, side, other in (
        (compare.op, compare.left, compare.right),
        (FLIPPED[compare.op], compare.right, compare.left),
    ):
        if isinstance(side, Var) and side.name == variable and all(v.name in earlier for v in variables_of(other)):
            # A constant without a value would have to be computed before the first depth, where nothing can fail.
            computed = any(variables_of(other)) or not any(partial_terms(other))
            return (op, other) if computed else None
    return None


def _neighbours(body: Body, order: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Of each variable, multiplicities included, those that an atom or a condition has with it."""
    scopes = [*body.scopes, *(a.variables | {a.multiplicity} for a in body.atoms if a.multiplicity)]
    return {v: frozenset[str]().union(*(s for s in scopes if v in s)) - {v} for v in order}


def plan_join(
    body: Body,
    choice: Choice,
    relations: Mapping[str, Stored],
    *,
    counting: bool = False,
    folded: Folded | None = None,
    tested: tuple[int, ...] = (),
    limited_by: int = -1,
    whole: Collection[str] = (),
) -> JoinPlan:
    """Work out `choice` for `body`. Nothing is built yet: `uses` and `nodes` name the key orders the join will read.

    `folded`: what is counted of groups · `tested`: the atoms, by their number in the clause, whose rows must be older
    than a limit; `limited_by`: the atom whose row holds it. All their columns hold variables. `whole`: relations whose
    key orders are to have all columns.
    """
    multiplicities = sorted({atom.multiplicity for atom in body.atoms} - {""})
    rows = dict(zip(choice.order, choice.rows, strict=True))
    rows |= dict.fromkeys(multiplicities, choice.rows[-1] if choice.rows else 1.0)
    order = (*choice.order, *multiplicities) if counting else choice.order
    neighbours = _neighbours(body, order) if counting else {}
    definitions: dict[str, Term] = {}
    # The first variables, down to the last one of the groups.
    groups = 0 if folded is None else max((order.index(v) + 1 for v in folded.groups), default=0)
    top = not order or (counting and not groups and (folded is not None or len(_components([*order], neighbours)) > 1))
    if top or groups == len(order):
        # Parts that nothing connects, or no part at all, hang below one depth with one candidate. So does what counts
        # as one below the groups, if nothing is left there.
        order = (ROOT_VARIABLE, *order) if top else (*order, ROOT_VARIABLE)
        neighbours = {v: n | {ROOT_VARIABLE} for v, n in neighbours.items()} | {ROOT_VARIABLE: frozenset(order)}
        definitions[ROOT_VARIABLE] = Value(0, "number")
        rows[ROOT_VARIABLE] = 1.0
        groups += top and folded is not None
    if counting:
        laid, blocks, where = _in_blocks(order, neighbours, body.conditions, groups, _counted_at_once(body, folded))
    else:
        laid, blocks = [*order, *multiplicities], [Block(-1, 0, -1)]
        where = {v: (0, i == 0, -1) for i, v in enumerate(laid)}
    place = {v: i for i, v in enumerate(laid)}
    nodes, uses, positive, ends, looks = _trie(body, place, relations, (*tested, limited_by), whole)
    holding: dict[str, list[int]] = {}
    for i in sorted(set(positive)):
        holding.setdefault(nodes[i].variable, []).append(i)
    bound = {a.place: max(place[v] for v in a.variables) for a in (*body.atoms, *body.looked) if a.place in looks}
    limited = bound.get(limited_by, 0)
    tests = [(looks[i], max(bound[i], limited)) for i in tested if i in looks]

    waiting = list(body.conditions)
    depths: list[Depth] = []
    for d, v in enumerate(laid):
        earlier = frozenset(laid[:d])
        definition = definitions.get(v)
        bounds: list[tuple[str, Term]] = []
        filters: list[Compare] = []
        for condition in list(waiting):
            term = next((t for name, t, needs in condition.defines if name == v and needs <= earlier), None)
            if definition is None and term is not None:
                definition = term
                waiting.remove(condition)
        for condition in list(waiting):
            if condition.variables <= earlier | {v}:
                limit = _bound(condition, v, body.variables.get(v, "number"), earlier) if definition is None else None
                if limit is not None:
                    bounds.append(limit)
                else:
                    filters.append(condition.compare)
                waiting.remove(condition)
        # A participant at level 0 ranges over all keys and is sought at random: it follows the others.
        taking_part = sorted(holding.get(v, ()), key=lambda i: (nodes[i].level == 0, i))
        block, first, child = where[v]
        last_of_chain = d + 1 == len(laid) or where[laid[d + 1]][1]
        depths.append(
            Depth(
                v,
                tuple(taking_part),
                definition,
                tuple(bounds),
                tuple(filters),
                rows[v],
                block,
                first,
                last_of_chain and child < 0,
                child,
                tuple(i for i in ends if nodes[i].variable == v),
                tuple(dict.fromkeys(i for i, at in tests if at == d)),
                v in multiplicities,
            )
        )
    assert not waiting, "the checker admits only conditions over bound variables"

    until, in_order = len(laid), False
    if not counting and not body.every:
        head = body.head_variables
        end = max((place[v] + 1 for v in head), default=0)
        # A first witness must not hide a binding after it for which a term has no value.
        if not (any(any(partial_of(c.compare)) for c in body.conditions) and end < len(laid)):
            until = end
            # A binding of the head is met once if what stands before its end, and it does not hold, is computed.
            once = all(d.variable in head or d.definition is not None for d in depths[:end])
            straight = [place[t.name] for t in body.head if isinstance(t, Var)]
            ordered = straight == sorted(set(straight)) and not any(isinstance(t, Apply) for t in body.head)
            in_order = once and ordered
    return JoinPlan(
        tuple(depths),
        tuple(nodes),
        tuple(blocks),
        body.guards,
        body.head if folded is None else folded.head,
        until,
        in_order,
        counting,
        choice.cost,
        choice.forced,
        tuple(uses),
        body.shown,
        body.voids,
        choice.witnesses,
        looks.get(limited_by, -1),
        tuple(atom.text for atom in body.looked),
        folded=folded,
    )
