"""Which programs can run: those whose statements compute with integers, and compare codes.

A program of a rule holds nothing else, since what concerns one row is computed before the row becomes an event
(derived_relations.py). One of the calculus, or of M3F, may: it can be printed, and is refused when it is to run.
"""

from __future__ import annotations

from collections.abc import Iterator

from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language.clause import Apply, Parameter, Term, Value
from lftj.triggers.algebra import Cmp, Lift, MapRead, Statement, TriggerProgram, Val
from lftj.triggers.m3f import Names, event_lines, parameter_names, term_text
from lftj.values.type_table import family_of, in_dictionary, is_nullable

ARITHMETIC = frozenset({"+", "-", "*", "neg"})
# Types whose codes are integers that arithmetic of the types is arithmetic of.
INTEGERS = frozenset({"number", "decimal", "duration"})


def check_computable(program: TriggerProgram) -> None:
    """Raises ProgramError with everything in statements that the kernel cannot compute."""
    findings: dict[tuple[str, str], Diagnostic] = {}
    for event, statements in program.statements.items():
        schema = program.relations[event[1]]
        names = parameter_names(schema, statements)
        for number, statement in enumerate(statements):
            for why in _faults(statement, names):
                finding = Diagnostic(
                    f"triggers cannot run a statement of `{statement.target}`",
                    Span("<triggers>", line_text=event_lines(event, statements, schema)[number]),
                    why=why,
                    remedy="write the sum as a rule, which computes such things before a row becomes an event",
                )
                findings.setdefault((statement.target, why), finding)
    if findings:
        raise ProgramError(list(findings.values()))


def _faults(statement: Statement, names: Names) -> Iterator[str]:
    """Why a statement cannot be computed, from left to right."""
    for factor in statement.factors:
        match factor:
            case MapRead(_, keys):
                yield from _of_terms(keys, names)
            case Lift(_, term):
                yield from _of_terms((term,), names)
            case Cmp(op, left, right):
                yield from _of_terms((left, right), names)
                if op not in ("=", "!=") and in_dictionary(left.type):
                    yield f"`{term_text(left, names)}` is a text, and codes of texts have no order"
            case Val(term):
                yield from _of_terms((term,), names)
                if family_of(term.type) not in INTEGERS or is_nullable(term.type):
                    yield f"`{term_text(term, names)}` is {term.type}, and numbers, decimals and durations are added up"
    yield from _of_terms(statement.keys, names)


def _of_terms(terms: tuple[Term, ...], names: Names) -> Iterator[str]:
    for term in terms:
        if isinstance(term, Value) and in_dictionary(term.type) and term.value is not None:
            yield f"an event is a row of codes, and the text `{term_text(term, names)}` has no code"
        elif isinstance(term, Apply) and (
            term.op not in ARITHMETIC or not {family_of(part.type) for part in (term, *term.args)} <= INTEGERS
        ):
            yield f"`{term_text(term, names)}` is no sum or product of integers"
        elif isinstance(term, Apply):
            yield from _of_terms(term.args, names)
        assert not isinstance(term, Parameter), "the parameters of queries have values before they come here"
