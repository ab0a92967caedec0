"""The findings of one check: collected by every pass, without repetition, and reported together in source order."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from lftj.errors import Diagnostic, ProgramError, Span
from lftj.values.faults import counted


class Findings:
    """A list of diagnostics. What two passes, or two clauses of one rule, find at one place is reported once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Span], Diagnostic] = {}

    def error(
        self,
        what: str,
        span: Span,
        *,
        why: str,
        remedy: str,
        predicate: str = "",
        related: tuple[tuple[str, Span], ...] = (),
    ) -> None:
        """Record an error."""
        shown = tuple((word, place) for word, place in related if place.line)
        found = Diagnostic(what, span, why=why, remedy=remedy, predicate=predicate, related=shown)
        self._found.setdefault((what, span), found)

    def unsupported(self, feature: str, span: Span, remedy: str = "rewrite the program without it") -> None:
        """Record that a construct is recognised and not evaluated yet."""
        why = "lftj recognises this construct and cannot evaluate it yet"
        self.error(f"not supported yet: {feature}", span, why=why, remedy=remedy)

    def warning(self, what: str, span: Span, *, why: str, remedy: str, predicate: str = "") -> None:
        """Record a warning."""
        found = Diagnostic(what, span, why=why, remedy=remedy, severity="warning", predicate=predicate)
        self._found.setdefault((what, span), found)

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return any(found.severity == "error" for found in self._found.values())

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All findings by line and column; sources in the order in which they were first named."""
        sources: dict[str, int] = {}
        for found in self._found.values():
            sources.setdefault(found.span.source, len(sources))
        key = lambda d: (sources[d.span.source], d.span.line, d.span.column)  # noqa: E731 - one use, next line
        return tuple(sorted(self._found.values(), key=key))

    def raise_if_failed(self) -> None:
        """Raise ProgramError with all findings, warnings included, if one of them is an error."""
        if self.failed:
            found = self.in_order()
            error = ProgramError(found)
            first = next(d for d in found if d.severity == "error")
            error.what, error.where, error.why, error.remedy = first.what, str(first.span), first.why, first.remedy
            raise error


class TooDeepError(ProgramError):
    """A term is deeper than Python's stack."""


def too_deep(source: str) -> TooDeepError:
    """What a term that is deeper than Python's stack is refused with."""
    remedy = "split the expression into several rules"
    return TooDeepError(
        [
            Diagnostic(
                "a clause is nested too deeply", Span(source), why="it is deeper than Python's stack", remedy=remedy
            )
        ]
    )


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """A remedy that names the most similar candidate, or `otherwise` if none is similar."""
    near = get_close_matches(name, sorted(candidates), 1)
    return f"did you mean `{near[0]}`?" if near else otherwise


def given(number: int) -> str:
    """`1 argument is given`, `2 arguments are given`."""
    return f"{counted(number, 'argument')} {'is' if number == 1 else 'are'} given"
