"""Evaluating a component key by key, level by level: from scratch, or the keys above a change.

Every key of a level is computed from contents that hold the final values of all levels before. What comes out is
compared with what was there; keys above have a turn only if a value below them changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.evaluate.aggregate import folded_bindings
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.term_columns import TermColumns
from lftj.evaluate.undefined_groups import group_error
from lftj.evaluate.undefined_terms import look_for_error
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.recursion.key_graph import DeepError, KeyGraph, distinct
from lftj.recursion.key_rules import KeyRule, KeyRules
from lftj.recursion.key_tables import tables_of
from lftj.store.change import Change, change_of_rows
from lftj.store.stored import StoredRelation
from scantree.version import Rows, Version


class KeyByKey:
    """A component over `relations`: what lies below it, and its heads with the contents to start from.

    After `run`, or `follow`: `contents`, those of the heads, and `computed`: how many keys were.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rules: KeyRules,
        clauses: Sequence[Clause],
        relations: Mapping[str, StoredRelation],
        contents: dict[str, Version],
        limits: Limits,
    ) -> None:
        self._evaluator, self._rules, self._clauses, self._limits = evaluator, rules, clauses, limits
        self._relations = relations
        self.contents = contents
        self._outside = {name: relations[name].content for name in rules.outside}
        self._found: dict[str, tuple[list[Rows], list[Rows]]] = {name: ([], []) for name in rules.names}
        self._undefined: dict[int, Clause] = {}
        self.computed = 0

    def all_keys(self) -> dict[str, Rows]:
        """The keys of all rows, and of facts."""
        found: dict[str, Rows] = {}
        for head, rules in self._rules.of.items():
            chunks = [self._keys(rule, self._relations[rule.rows].content.columns()) for rule in rules]
            facts = self._relations[head].facts
            chunks += [facts.columns()[:-1]] if len(facts) else []
            found[head] = distinct(chunks) if chunks else np.empty((self._relations[head].arity - 1, 0), np.int64)
        return found

    def keys_of(self, changes: Mapping[str, Change], facts: Mapping[str, Change]) -> dict[str, Rows]:
        """The keys whose rows, or facts, changed, or what they look up outside."""
        found: dict[str, Rows] = {}
        for head, rules in self._rules.of.items():
            chunks = [self._keys(rule, changes[rule.rows].rows) for rule in rules if rule.rows in changes]
            chunks += [facts[head].rows[:-1]] if head in facts else []
            for name, readers in self._rules.outside.items():
                for rule, lookup in readers if name in changes else ():
                    if rule.clause.head == head:
                        rows = lookup.place.rows(self._relations[rule.rows], distinct([changes[name].rows[:-1]]))
                        chunks.append(rule.key.keys(rows, len(next(iter(rows.values())))))
            if chunks:
                found[head] = distinct(chunks)
        return found

    def _keys(self, rule: KeyRule, rows: Rows) -> Rows:
        return rule.key.keys(dict(zip(rule.names, rows, strict=True)), rows.shape[1])

    def follow(self, seeds: Mapping[str, Rows]) -> None:
        """As `run`, for what is likely to be a small change: by a kernel, if it can."""
        if not self._by_kernel(seeds, deep=False):
            self.run(seeds)

    def _by_kernel(self, seeds: Mapping[str, Rows], *, deep: bool) -> bool:
        """As `run`, by a kernel; False, and nothing is done, if it cannot. `deep`: the data are."""
        tables = tables_of(self._rules, self._evaluator)
        if tables is None:
            return False
        found = tables.follow(self._relations, self.contents, seeds, self._limits, deep=deep)
        if found is None:
            return False
        changed, self.computed = found
        for head, (gone, come) in changed.items():
            change = change_of_rows(len(gone), [gone], [come])
            self.contents[head], _ = self.contents[head].update(change.rows, change.kinds)
            self._found[head] = [gone], [come]
        return True

    def run(self, seeds: Mapping[str, Rows]) -> None:
        """Compute the keys `seeds` and whatever changes above them.

        Raises `CycleError`; `EvaluationError` if a term, or a sum, has no value.
        """
        fits = tables_of(self._rules, self._evaluator) is not None
        try:
            graph, levels = self._in_levels(seeds, shallow=fits)
        except DeepError:
            if self._by_kernel(seeds, deep=True):
                return
            graph, levels = self._in_levels(seeds, shallow=False)
        dirty = np.zeros(graph.size, np.bool_)
        for head, keys in seeds.items():
            if keys.shape[1]:
                dirty[graph.numbers(head, keys)] = True
        for level in levels:
            self._limits.look(self.computed)
            nodes = level[dirty[level]]
            for head, own in graph.by_head(nodes):
                changed = self._compute(head, graph.keys_of(head, own))
                if changed.shape[1]:
                    dirty[graph.above(graph.numbers(head, changed))] = True
        if self._undefined:
            staged = {name: self._relations[name].successor(content) for name, content in self.contents.items()}
            state = self._evaluator.state._replace(relations={**self._relations, **staged})
            for clause in self._undefined.values():
                look_for_error(self._evaluator.over(state), clause, self._limits)

    def _in_levels(self, seeds: Mapping[str, Rows], *, shallow: bool) -> tuple[KeyGraph, list[Rows]]:
        """The graph above `seeds` and its nodes, level by level."""
        graph = KeyGraph(self._rules, self._relations, seeds, self._limits, shallow=shallow)
        return graph, graph.in_levels(self._evaluator, self._clauses, shallow=shallow)

    def change(self, head: str) -> Change:
        """How the content of a head differs from the one it started from."""
        gone, come = self._found[head]
        return change_of_rows(self._relations[head].arity, gone, come)

    def _compute(self, head: str, keys: Rows) -> Rows:
        """Compute the values of keys; those of them that are others than before, or more, or none."""
        self.computed += keys.shape[1]
        rules = self._rules.of[head]
        aggregate = bool(rules) and rules[0].clause.aggregate is not None
        come = self._folded(rules, keys) if aggregate else self._derived(head, rules, keys)
        content = self.contents[head]
        gone = content.rows_under(keys) if len(keys) else content.columns()
        change = change_of_rows(len(keys) + 1, [gone], [come])
        if not len(change.kinds):
            return keys[:, :0]
        self.contents[head], _ = content.update(change.rows, change.kinds)
        for kind, chunks in zip((-1, 1), self._found[head], strict=True):
            chunks.append(change.of_kind(kind))
        return distinct([change.rows[:-1]])

    def _derived(self, head: str, rules: Sequence[KeyRule], keys: Rows) -> Rows:
        """The rows (key..., value) that rules and facts give for keys."""
        facts = self._relations[head].facts
        chunks = []
        if len(facts):
            chunks.append(facts.rows_under(keys) if len(keys) else facts.columns())
        for rule in rules:
            found = self._bindings(rule, keys)
            made = rule.key.keys(found.columns, found.count) if found.count else np.empty((len(keys), 0), np.int64)
            values = found.codes(rule.terms[-1]) if found.count else np.empty(0, np.int64)
            self._note(rule, undefined=found.undefined or not found.defined.all())
            chunks.append(np.compress(found.defined, np.vstack([made, values]), axis=1))
        rows = np.concatenate([np.empty((len(keys) + 1, 0), np.int64), *chunks], axis=1)
        return distinct([rows])

    def _folded(self, rules: Sequence[KeyRule], keys: Rows) -> Rows:
        """The rows (group..., result) of an aggregate for groups."""
        names = [v.name for v in rules[0].clause.variables()]
        for rule in rules[1:]:
            own = {v.name for v in rule.clause.variables()}
            names = [name for name in names if name in own]
        chunks = []
        for rule in rules:
            found = self._bindings(rule, keys)
            if found.count:
                terms = rule.key.keys(found.columns, found.count)
                operands = [found.codes(term) for term in rule.terms[len(keys) :]]
                bound = [found.columns[name] for name in names] if len(rules) > 1 else []
                chunks.append(np.compress(found.defined, np.vstack([terms, *operands, *bound]), axis=1))
            self._note(rule, undefined=found.undefined or not found.defined.all())
        if not chunks:
            return np.empty((len(keys) + 1, 0), np.int64)
        rows = np.concatenate(chunks, axis=1)
        if len(rules) > 1:  # what two alternatives bind alike is one binding
            rows = distinct([rows])
        clause = rules[0].clause
        made, without_result = folded_bindings(self._evaluator, clause, rows[: len(rules[0].terms)])
        if without_result:
            raise group_error(self._evaluator, clause, without_result)
        return made

    def _bindings(self, rule: KeyRule, keys: Rows) -> TermColumns:
        contents = {**self._outside, **self.contents} if self._outside else self.contents
        return rule.bindings(self._relations[rule.rows], keys, contents, self._evaluator.symbols)

    def _note(self, rule: KeyRule, *, undefined: bool) -> None:
        if undefined:
            self._undefined[id(rule)] = rule.clause
