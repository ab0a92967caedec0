"""The rules of a component as tables for the kernel that goes from key to key (lftj/join/key_walk.py).

It follows small changes, and goes along data of many levels of a few keys each, of which columns would be short.

Not all rules fit: texts that are computed, sums of floats and means, alternatives in braces of which a binding counts
once, comparisons of texts, and lookups in what is no head of them any more. Those are followed column by column
(key_by_key.py), and so is what the kernel refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lftj.evaluate.evaluator import Evaluator
from lftj.join import key_walk as cells
from lftj.join.expression_vm import CELL
from lftj.join.run import Limits
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.clause import Value, Var
from lftj.language.functors import TEXT_TESTS
from lftj.plan.lowering import row_code
from lftj.program.text_split import computes_text
from lftj.recursion.key_rules import KeyLookup, KeyRule, KeyRules, Place
from lftj.store.stored import StoredRelation
from lftj.values.codes import NUMBER_MAX, NUMBER_MIN
from lftj.values.type_table import in_dictionary, is_nullable, storage_of, type_of
from scantree.version import Rows, Version

# Room for nodes to begin with, and the most: beyond, columns are quicker, where the data are not deep.
ROOM, MOST = 1 << 7, 1 << 15
# The most room where they are, which is some 100 MB, and the nodes of a slice, which takes about 0.1 s.
MOST_DEEP, SLICE = 1 << 19, 1 << 15
# How an aggregate folds codes of a storage.
FOLDS = {
    ("count", ""): cells.COUNT_OF,
    ("sum", "number"): cells.SUM_OF_NUMBERS,
    ("sum", "unsigned"): cells.SUM_OF_UNSIGNED,
    **{("min", storage): cells.LEAST for storage in ("number", "unsigned", "float")},
    **{("max", storage): cells.GREATEST for storage in ("number", "unsigned", "float")},
}


class KeyChange(NamedTuple):
    """What the kernel found of one head: rows (key..., value) that go and that come, in any order."""

    gone: Rows
    come: Rows


def tables_of(rules: KeyRules, evaluator: Evaluator) -> KeyTables | None:
    """The tables of `rules`, made once; None if the kernel cannot follow them."""
    if not rules.tables:
        rules.tables.append(KeyTables(rules, evaluator) if _fits(rules) else None)
    found: KeyTables | None = rules.tables[0]
    return found


def _fits(rules: KeyRules) -> bool:
    return not rules.outside and all(_fold(own) is not None and all(map(_plain, own)) for own in rules.of.values())


def _fold(own: Sequence[KeyRule]) -> int | None:
    """How the bindings of a head are folded; None if the kernel does not."""
    aggregate = own[0].clause.aggregate if own else None
    if aggregate is None:
        return cells.VALUE_OF
    operand = _operand(own[0])
    if len(own) > 1 or is_nullable(operand):
        return None
    return FOLDS.get((aggregate.op, storage_of(operand) if operand else ""))


def _operand(rule: KeyRule) -> str:
    """The type of what an aggregate folds; empty for a count."""
    assert rule.clause.aggregate is not None
    operands = rule.terms[rule.clause.aggregate.groups :]
    return operands[0].type if operands else ""


def _range(own: Sequence[KeyRule]) -> tuple[int, int] | None:
    """Between what the sums of a head have to lie, where that is less than their words hold."""
    aggregate = own[0].clause.aggregate if own else None
    if aggregate is None or aggregate.op != "sum":
        return None
    made = type_of(AGGREGATES["sum"].result_of(_operand(own[0])))
    return (made.low, made.high) if (made.low, made.high) != (NUMBER_MIN, NUMBER_MAX) else None


def _plain(rule: KeyRule) -> bool:
    """Whether a rule computes and compares no texts."""
    for _, compare in rule.steps:
        if compare.op in TEXT_TESTS or (in_dictionary(compare.left.type) and compare.op not in ("=", "!=")):
            return False
        if computes_text(compare.left) or computes_text(compare.right):
            return False
    return not any(computes_text(term) for term in rule.terms)


class KeyTables:
    """The tables of `rules`, in which only where versions lie changes from one commit to the next."""

    def __init__(self, rules: KeyRules, evaluator: Evaluator) -> None:
        self._heads, self._numbers = rules.names, {name: i for i, name in enumerate(rules.names)}
        self._evaluator = evaluator
        self._parts: list[int] = []
        self._checks: list[tuple[int, int, int]] = []
        self._registers: list[int] = []
        self._code: list[Rows] = []
        self._codes = 0
        # What a version of the tables is: rows of a relation in a key order, a head's content or its facts.
        self._versions: dict[tuple[str, tuple[int, ...] | str], int] = {}
        self._widths: list[int] = []
        every = [rule for name in rules.names for rule in rules.of[name]]
        ways = np.zeros((len(every) + sum(len(rule.lookups) for rule in every), cells.WAY), np.int64)
        heads = np.zeros((len(rules.names), 8), np.int64)
        reads: dict[str, list[int]] = {name: [] for name in rules.names}
        begin = len(every)
        for r, rule in enumerate(every):
            self._rule(rule, ways, r, begin, reads)
            begin += len(rule.lookups)
        at = 0
        flat: list[int] = []
        for h, name in enumerate(rules.names):
            fold = _fold(rules.of[name])
            assert fold is not None
            width = len(rules.of[name][0].key.terms) if rules.of[name] else 0
            self._widths.append(width)
            heads[h] = [
                self._version(name, "content"),
                self._version(name, "facts"),
                width,
                fold,
                at,
                at + len(rules.of[name]),
                len(flat),
                len(flat) + len(reads[name]),
            ]
            at += len(rules.of[name])
            flat += reads[name]
        self._table = heads, ways, np.array(flat, np.int64), np.array(self._parts, np.int64)
        self._conditions = np.array(self._checks, np.int64).reshape(-1, 3)
        self._all_code = np.concatenate([np.empty((0, 4), np.int64), *self._code])
        self._constants = np.array([*self._registers, 0], np.int64)
        self._keys = max([1, *self._widths])
        self._ranges = [_range(rules.of[name]) for name in rules.names]

    # -- making them --------------------------------------------------------------------------------------------------

    def _version(self, name: str, what: tuple[int, ...] | str) -> int:
        return self._versions.setdefault((name, what), len(self._versions))

    def _register(self, code: int) -> int:
        self._registers.append(code)
        return len(self._registers) - 1

    def _list(self, numbers: Sequence[int]) -> tuple[int, int]:
        lo = len(self._parts)
        self._parts += numbers
        return lo, len(self._parts)

    def _rule(self, rule: KeyRule, ways: Rows, r: int, begin: int, reads: dict[str, list[int]]) -> None:
        base = len(self._registers)
        values = [x.value.name for x in rule.lookups if isinstance(x.value, Var)]
        names = list(dict.fromkeys((*rule.names, *values)))
        terms = rule.terms[len(rule.key.terms) :]
        code = row_code(names, rule.steps, terms, self._evaluator.encode)
        self._registers += code.registers.tolist()
        shifted = code.rows.copy()
        shifted[:, 1:] += base
        lo, self._codes = self._codes, self._codes + len(shifted)
        self._code.append(shifted)
        registers = {name: base + i for i, name in enumerate(names)}
        self._place(ways[r], self._numbers[rule.clause.head], rule.rows, rule.key, rule.names, registers)
        result = base + code.results[0] if code.results else base
        ways[r, cells.LOOK_LO : cells.RESULT + 1] = [begin, begin + len(rule.lookups), lo, self._codes, result]
        bound = set(rule.names)
        for look, lookup in enumerate(rule.lookups, begin):
            self._place(ways[look], self._number(lookup), rule.rows, lookup.place, rule.names, registers)
            ways[look, cells.RULE] = r
            ways[look, cells.USE], ways[look, cells.RESULT] = self._use(lookup, bound, registers)
            reads[lookup.head].append(look)

    def _number(self, lookup: KeyLookup) -> int:
        return self._numbers[lookup.head]

    def _use(self, lookup: KeyLookup, bound: set[str], registers: Mapping[str, int]) -> tuple[int, int]:
        if lookup.absent:
            return cells.ABSENT, 0
        if lookup.value is None:
            return cells.THERE, 0
        if isinstance(lookup.value, Value):
            return cells.EQUAL, self._register(lookup.code)
        use = cells.EQUAL if lookup.value.name in bound else cells.BIND
        bound.add(lookup.value.name)
        return use, registers[lookup.value.name]

    def _place(
        self, way: Rows, head: int, rows: str, place: Place, names: Sequence[str], registers: Mapping[str, int]
    ) -> None:
        columns = self._list([registers[names[c]] for c in place.order])
        key, checks = [], len(self._checks)
        for i, (term, code) in enumerate(zip(place.terms, place.codes, strict=True)):
            if isinstance(term, Var):
                key.append(registers[term.name])
            elif code is not None:
                key.append(self._register(code))
                self._checks.append((i, -1, key[-1]))
        self._checks += [(i, j, 0) for i, j in place.same]
        version = self._version(rows, place.order)
        way[: cells.LOOK_LO] = [
            head,
            version,
            *columns,
            *self._list(key),
            *self._list(place.given),
            checks,
            len(self._checks),
        ]

    # -- running them -------------------------------------------------------------------------------------------------

    def follow(
        self,
        relations: Mapping[str, StoredRelation],
        contents: Mapping[str, Version],
        seeds: Mapping[str, Rows],
        limits: Limits,
        *,
        deep: bool,
    ) -> tuple[dict[str, KeyChange], int] | None:
        """(what changes, the keys computed) from `seeds` upwards; None if that is too much, or to be done otherwise.

        `deep`: the data are.
        """
        rows, most = self._seeds(seeds), MOST_DEEP if deep else MOST
        if len(rows) > (most if deep else most >> 2):
            return None
        versions = np.zeros((len(self._versions), 5), np.int64)
        held = []
        heads = self._table[0].copy()
        for (name, what), v in self._versions.items():
            relation = relations[name]
            if what == "facts":
                version = relation.facts
                if not len(version):
                    heads[self._numbers[name], cells.FACTS] = -1
                    continue
            elif what == "content":
                version = contents[name]
            else:
                assert isinstance(what, tuple)
                version = relation.order(what)
            held.append(version)
            shape = version.store.shape
            versions[v] = version.root, shape.keys, shape.cols, shape.page_bits, shape.dir_bits
        room = ROOM
        while room < len(rows):
            room *= 4
        while room <= most:
            nodes = np.zeros((room, cells.NODE + self._keys), np.int64)
            state = np.zeros(cells.VALUE_AT + 1, np.int64)
            state[cells.SLICE] = SLICE
            arrays = (
                *self._table[1:],
                self._conditions,
                self._all_code,
                self._constants.copy(),
                np.zeros(1, np.int64),
                np.zeros(CELL),
                rows,
                nodes,
                np.empty((8 * room, 2), np.int64),
                np.zeros(4 * room, np.int64),
                np.empty(room, np.int64),
                np.empty((3, self._keys), np.int64),
                state,
            )
            mem = self._evaluator.arena.space.mem
            while (status := cells.walk_keys(mem, versions, heads, *arrays)) == cells.PART:
                limits.look(int(state[cells.COMPUTED]))
            if status == cells.DONE:
                found = self._changed(nodes[: state[cells.NODES]])
                return None if found is None else (found, int(state[cells.COMPUTED]))
            if status != cells.FULL:
                return None
            room *= 4
        return None

    def _seeds(self, seeds: Mapping[str, Rows]) -> Rows:
        rows = np.zeros((sum(keys.shape[1] for keys in seeds.values()), 1 + self._keys), np.int64)
        at = 0
        for head, keys in seeds.items():
            n = keys.shape[1]
            rows[at : at + n, 0] = self._numbers[head]
            rows[at : at + n, 1 : 1 + len(keys)] = keys.T
            at += n
        return rows

    def _changed(self, nodes: Rows) -> dict[str, KeyChange] | None:
        """What changes of each head; None if a value is out of its range."""
        differ = (nodes[:, cells.WAS_THERE] != nodes[:, cells.IS_THERE]) | (nodes[:, cells.WAS] != nodes[:, cells.IS])
        nodes = nodes[differ]
        found = {}
        for h, (name, width) in enumerate(zip(self._heads, self._widths, strict=True)):
            own = nodes[nodes[:, cells.OF] == h] if len(self._heads) > 1 else nodes
            if not len(own):
                continue
            gone, come = own[own[:, cells.WAS_THERE] != 0], own[own[:, cells.IS_THERE] != 0]
            held = self._ranges[h]
            if held is not None and ((come[:, cells.IS] < held[0]) | (come[:, cells.IS] > held[1])).any():
                return None
            key = slice(cells.NODE, cells.NODE + width)
            found[name] = KeyChange(
                np.vstack([gone[:, key].T, gone[:, cells.WAS]]), np.vstack([come[:, key].T, come[:, cells.IS]])
            )
        return found
