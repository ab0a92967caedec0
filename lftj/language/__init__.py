"""The language: rule text and the builder, one AST, and the checks before anything is evaluated.

    text ----parse----> ast.Program ----check----> CheckedProgram of Clauses, for the planner
    builder --ast()--^      |
                         to_text

Nothing here imports numba, numpy or pyarrow; lark is imported by the first `parse`, the builder by the first name of
it. `tests/language` holds what each message says.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lftj.language.checker import check, check_query
from lftj.language.clause import Apply, BodyAtom, CheckedProgram, Clause, Compare, Directive, Value, Var
from lftj.language.functors import FUNCTORS
from lftj.language.parse import parse
from lftj.language.signature import Signature
from lftj.language.text import to_text

if TYPE_CHECKING:
    from lftj.language.builder import Program
    from lftj.language.terms import Condition, Relation, Term, agg, any_of, fn, unsigned, variables

__all__ = [
    "FUNCTORS",
    "Apply",
    "BodyAtom",
    "CheckedProgram",
    "Clause",
    "Compare",
    "Condition",
    "Directive",
    "Program",
    "Relation",
    "Signature",
    "Term",
    "Value",
    "Var",
    "agg",
    "any_of",
    "check",
    "check_query",
    "fn",
    "parse",
    "to_text",
    "unsigned",
    "variables",
]

_OF_TERMS = ("Condition", "Relation", "Term", "agg", "any_of", "fn", "unsigned", "variables")
_HOMES = {"Program": "lftj.language.builder", **dict.fromkeys(_OF_TERMS, "lftj.language.terms")}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'lftj.language' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
