"""Clauses that are evaluated key by key, as lookups along rows (lftj/language/acyclic.py makes them).

    total(p, c + n) :- @total.3.rows(p, c), @total.1(p, n).

reads the rows (p, c), and looks up the value of `@total.1` under the key p of each. The rows are found by the key of
the head (what the value of a key comes from) and by the keys that they look up (what a value goes into).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.term_columns import TermColumns
from lftj.join.groups import Runs
from lftj.language.clause import BodyAtom, Clause, Compare, Term, Value, Var, variables_of
from lftj.program.strata import Heads
from lftj.store.stored import StoredRelation
from lftj.values.symbols import SymbolTable
from scantree.version import Rows, Version

Columns = dict[str, Rows]


class Place:
    """Where the parts of a key stand in rows with the columns `names`: variables there, or constants.

    `order`: the key order of the rows that begins with them · `codes`: of the parts that are constants · `given`: the
    parts that the rows are found by, in that order · `same`: pairs of parts that are one variable.
    """

    def __init__(self, terms: Sequence[Var | Value], names: Sequence[str], evaluator: Evaluator) -> None:
        self.terms = terms
        self.codes = [evaluator.encode(t.value, t.type) if isinstance(t, Value) else None for t in terms]
        first = {t.name: i for i, t in reversed(list(enumerate(terms))) if isinstance(t, Var)}
        self.given = sorted(first.values())
        self.same = [(i, first[t.name]) for i, t in enumerate(terms) if isinstance(t, Var) and first[t.name] != i]
        columns = tuple(names.index(t.name) for i in self.given if isinstance(t := terms[i], Var))
        self.order = (*columns, *(c for c in range(len(names)) if c not in columns))
        self._names = tuple(names[c] for c in self.order)

    def rows(self, relation: StoredRelation, keys: Rows) -> Columns:
        """The rows under distinct keys int64[k, n], by the names of their columns."""
        for i, code in enumerate(self.codes):
            if code is not None:
                keys = np.compress(keys[i] == code, keys, axis=1)
        for i, j in self.same:
            keys = np.compress(keys[i] == keys[j], keys, axis=1)
        prefixes = keys[self.given]
        if not len(prefixes):  # all rows have such a key, if one is asked for
            found = relation.order(self.order).columns() if keys.shape[1] else np.empty((len(self.order), 0), np.int64)
        else:
            found = relation.order(self.order).rows_under(prefixes)
        return dict(zip(self._names, found, strict=True))

    def keys(self, columns: Mapping[str, Rows], count: int) -> Rows:
        """The keys int64[k, count] of rows."""
        made = np.empty((len(self.terms), count), np.int64)
        for i, (term, code) in enumerate(zip(self.terms, self.codes, strict=True)):
            if isinstance(term, Var):
                made[i] = columns[term.name]
            elif code is not None:
                made[i] = code
        return made


class KeyLookup:
    """An atom over the component: the value of `head` under a key; `absent`: that there is none."""

    def __init__(self, atom: BodyAtom, names: Sequence[str], evaluator: Evaluator, *, absent: bool) -> None:
        keys = tuple(arg for arg in atom.args[:-1] if isinstance(arg, Var | Value))
        assert len(keys) == len(atom.args) - 1, "a key is bound by the rows"
        self.head, self.place, self.absent = atom.predicate, Place(keys, names, evaluator), absent
        self.value = None if absent else atom.args[-1]
        self.code = evaluator.encode(self.value.value, self.value.type) if isinstance(self.value, Value) else 0

    def bind(self, columns: Columns, count: int, content: Version) -> npt.NDArray[np.bool_]:
        """The rows for which the atom holds over `content`; binds the variable of its value."""
        keys = self.place.keys(columns, count)
        runs = Runs.of(content, keys)
        there = runs.there
        if self.absent or self.value is None:
            return ~there if self.absent else there
        values = runs.ends(len(keys), last=False)
        if isinstance(self.value, Value):
            there &= values == self.code
        elif (bound := columns.get(self.value.name)) is not None:
            there &= values == bound
        else:
            columns[self.value.name] = values
        return there


class KeyRule:
    """One clause. `key`: the head's key in the rows · `terms`: the arguments of its head · `steps`: its conditions."""

    def __init__(self, clause: Clause, evaluator: Evaluator) -> None:
        rows = clause.atoms[0]
        self.clause, self.rows = clause, rows.predicate
        self.names = tuple(arg.name if isinstance(arg, Var) else f"·{i}" for i, arg in enumerate(rows.args))
        groups = len(clause.head_args) - 1 if clause.aggregate is None else clause.aggregate.groups
        keys = tuple(term for term in clause.head_args[:groups] if isinstance(term, Var | Value))
        self.key = Place(keys, self.names, evaluator)
        self.terms = clause.head_args
        self.lookups = [KeyLookup(atom, self.names, evaluator, absent=False) for atom in clause.atoms[1:]]
        self.lookups += [KeyLookup(atom, self.names, evaluator, absent=True) for atom in clause.negated]
        bound = {*self.names, *(x.value.name for x in self.lookups if isinstance(x.value, Var))}
        self.steps = tuple(_in_turn(clause.compares, bound))

    def bindings(
        self, relation: StoredRelation, keys: Rows, contents: Mapping[str, Version], symbols: SymbolTable
    ) -> TermColumns:
        """What holds under `keys`, by variable; whether a term has no value somewhere is in `undefined`."""
        columns = self.key.rows(relation, keys)
        count = len(next(iter(columns.values())))
        for lookup in self.lookups:
            if not count:
                break
            held = lookup.bind(columns, count, contents[lookup.head])
            if not held.all():
                columns = {name: column[held] for name, column in columns.items()}
                count = int(np.count_nonzero(held))
        found = TermColumns(columns, count, symbols)
        if count:
            for variable, compare in self.steps:
                if variable is None:
                    found.take(found.holds(compare))
                else:
                    found.columns[variable.name] = found.codes(compare.right)
                    found.take(np.ones(found.count, np.bool_))
        return found


def _in_turn(compares: Sequence[Compare], bound: set[str]) -> Iterator[tuple[Var | None, Compare]]:
    """Comparisons, each after what binds its variables; with the variable that it binds itself, on the left."""
    waiting = list(compares)
    while waiting:
        for compare in waiting:
            for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
                if compare.op == "=" and isinstance(side, Var) and side.name not in bound and _known(other, bound):
                    bound.add(side.name)
                    yield side, Compare("=", side, other)
                    break
            else:
                if not (_known(compare.left, bound) and _known(compare.right, bound)):
                    continue
                yield None, compare
            waiting.remove(compare)
            break
        else:
            raise AssertionError("a checked clause binds its variables")


def _known(term: Term, bound: set[str]) -> bool:
    return all(v.name in bound for v in variables_of(term))


class KeyRules:
    """The rules of a component.

    `of`: those of each head · `readers`: (rule, lookup) of what looks a head up · `outside`: of a relation that is no
    head of them any more, since its rules are gone · `tables`: what a kernel follows them by, once it is made
    (key_tables.py), in a list that is empty before that.
    """

    def __init__(self, evaluator: Evaluator, names: Sequence[str], clauses: Sequence[Clause]) -> None:
        self.names = tuple(names)
        self.tables: list[Any] = []
        self.of: dict[str, list[KeyRule]] = {name: [] for name in names}
        self.readers: dict[str, list[tuple[KeyRule, KeyLookup]]] = {name: [] for name in names}
        self.outside: dict[str, list[tuple[KeyRule, KeyLookup]]] = {}
        for clause in clauses:
            rule = KeyRule(clause, evaluator)
            self.of[clause.head].append(rule)
            for lookup in rule.lookups:
                readers = self.readers if lookup.head in self.readers else self.outside
                readers.setdefault(lookup.head, []).append((rule, lookup))


def key_rules_of(evaluator: Evaluator, heads: Heads) -> KeyRules:
    """The rules of `heads`, kept from one evaluation to the next."""
    kept = evaluator.rounds.key_rules
    found: tuple[tuple[Clause, ...], KeyRules] | None = kept.get(heads.name)
    if found is None or found[0] != heads.clauses:
        found = kept[heads.name] = heads.clauses, KeyRules(evaluator, heads.names, heads.clauses)
    return found[1]
