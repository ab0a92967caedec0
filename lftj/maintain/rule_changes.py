"""Rules that come and go in a transaction, with its rows: the parts of `Transaction` that change the program."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lftj.language.null import is_without_null
from lftj.maintain.refused_calls import underived
from lftj.program.closed_heads import refuse_rules
from lftj.program.extend import extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.store.change import INSERT, Batch

if TYPE_CHECKING:
    from lftj.errors import Diagnostic
    from lftj.evaluate.evaluator import Evaluator
    from lftj.language import ast
    from lftj.language.builder import Program
    from lftj.store.stored import StoredRelation
    from scantree.version import Version


class RuleChanges:
    """The program as a transaction makes it. `_steps`: what was done to it, as the log keeps it."""

    __slots__ = (
        "_applied",
        "_batches",
        "_current",
        "_database",
        "_dropped",
        "_evaluator",
        "_heads",
        "_program",
        "_steps",
    )

    _database: Any
    _evaluator: Evaluator
    _batches: dict[str, list[Batch]]
    _applied: dict[str, tuple[int, Version]]
    _current: dict[str, Version]
    _program: State | None
    _heads: frozenset[str]
    _dropped: frozenset[str]
    _steps: list[dict[str, Any]]

    if TYPE_CHECKING:

        def _check_open(self) -> None: ...

        def _discard(self) -> None: ...

        def _relation(self, name: str) -> StoredRelation: ...

        def _add(self, name: str, relation: StoredRelation, batch: Batch) -> None: ...

    def rules(
        self,
        program: str | Program | ast.Program,
        *,
        key_orders: Mapping[str, tuple[str, ...] | list[str]] | None = None,
        maintain: Mapping[str, str] | None = None,
        granularity: Mapping[str, str] | None = None,
    ) -> None:
        """Add declarations, facts and rules, as `Database.rules` does; the facts are inserts of this transaction.

        Options as there. `ProgramError` holds every finding and nothing is added.
        """
        for warning in self._extended(program, RuleOptions.of(key_orders, maintain, granularity)):
            warnings.warn(warning.render(), stacklevel=2)

    def _extended(self, program: str | Program | ast.Program, options: RuleOptions) -> tuple[Diagnostic, ...]:
        """Add a program; the warnings about it."""
        self._check_open()
        state = self._program or self._evaluator.state
        # The commit compares relations by name: what the state before calls `@p.1` is nothing else after it. The rows
        # of `p` without null always have the same name.
        taken = {
            name: relation
            for name, relation in self._evaluator.state.relations.items()
            if name not in self._dropped and not is_without_null(name)
        }
        symbols = self._evaluator.symbols
        added = extended(state, program, options, self._database._new, symbols, taken=taken)
        for head in added.heads.intersection(self._batches):
            refuse_rules(added.state, head)
        with self._restoring():
            for name, (rows, count) in added.facts.items():
                self._add(name, added.state.relations[name], Batch(rows, count, INSERT))
        self._discard()
        self._program, self._heads = added.state, self._heads | added.heads
        self._database._note_rules(self._steps, program, options)
        return added.warnings

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """Several calls that are one: if the block raises, the transaction holds what it held before."""
        before = self._batches, self._current, self._program, self._heads, self._dropped
        steps = len(self._steps)
        self._batches = {name: list(batches) for name, batches in self._batches.items()}
        self._current = dict(self._current)
        try:
            yield
        except BaseException:
            self._discard()
            self._batches, self._current, self._program, self._heads, self._dropped = before
            self._applied = {}
            del self._steps[steps:]
            raise

    def remove_rules(self, head: str) -> None:
        """Remove all rules that derive `head`; its facts stay, and rules that read it."""
        self._relation(head)
        state = self._program or self._evaluator.state
        if not state.strata.of(head):
            raise underived(head, state.strata.order)
        self._discard()
        self._program = state.without_rules(head)
        self._steps.append({"remove": head})
        # Internal heads that this transaction has added may be gone again.
        self._heads = (self._heads | {head}).intersection(self._program.relations)

    def _drop(self, name: str) -> None:
        """Drop a relation that no rule reads, with its rules and its facts; no delta tells of it."""
        self._discard()
        self._steps.append({"drop": name})
        self._program = (self._program or self._evaluator.state).without_relation(name)
        self._dropped |= {name}
        self._heads = self._heads.intersection(self._program.relations)
        for kept in (self._batches, self._current, self._applied):
            for gone in kept.keys() - self._program.relations.keys():
                del kept[gone]
