"""Where statements are carried out: what they use of an open `Transaction`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from lftj.errors import Diagnostic
from lftj.language import ast
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.sql.question import NO_OPTIONS, Asking
from lftj.sql.view_parts import with_new_parts
from lftj.store.change import Batch
from lftj.store.stored import StoredRelation


class Changing(Asking, Protocol):
    """What changes of rows use."""

    def _present(self) -> State: ...

    def _relation(self, name: str) -> StoredRelation: ...

    def _add(self, name: str, relation: StoredRelation, batch: Batch) -> None: ...


class Session(Changing, Protocol):
    """What all statements use."""

    def _extended(self, program: ast.Program, options: RuleOptions) -> tuple[Diagnostic, ...]: ...

    def _drop(self, name: str) -> None: ...

    def _restoring(self) -> AbstractContextManager[None]: ...

    def remove_rules(self, head: str) -> None:
        """Remove all rules that derive `head`."""


def extend(session: Session, program: ast.Program) -> ast.Program:
    """Add a program whose parts get names that no part has, or had before; the program as it was added."""
    taken = session._evaluator.relations.keys() | session._present().relations.keys()
    program = with_new_parts(program, taken)
    session._extended(program, NO_OPTIONS)
    return program
