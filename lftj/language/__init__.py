"""The language: rule text and the builder, one AST, and the checks before anything is evaluated.

    text ----parse----> ast.Program ----check----> CheckedProgram of Clauses, for the planner
    builder --ast()--^      |
                         to_text

Nothing here imports numba, numpy or pyarrow; lark is imported by the first `parse`. `tests/language` holds what each
message says.
"""

from lftj.language.builder import Program
from lftj.language.check import check, check_query
from lftj.language.clause import Apply, BodyAtom, CheckedProgram, Clause, Compare, Directive, Value, Var
from lftj.language.functors import FUNCTORS, Signature
from lftj.language.parse import parse
from lftj.language.terms import Condition, Relation, Term, agg, any_of, fn, unsigned, variables
from lftj.language.text import to_text

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
