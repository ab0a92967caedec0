"""A failing case made small: fewer steps, calls, rows, rules, as long as it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.case import Case
from tests.fuzz.retype import Retyping
from tests.plain.evaluate import evaluate, parse

Fails = Callable[[Case], bool]


def smaller(case: Case, fails: Fails) -> Case:
    """A smaller case that fails in the same way."""
    case = _fewer(case, fails)
    if not case.rewritings:
        for text in case.mixed.text.splitlines():
            if not text.startswith("."):
                kept = [line for line in case.mixed.lines if line != text]
                other = Retyping(case.type).program("\n".join(kept))
                trial = replace(case, other=other, mixed=replace(case.mixed, lines=kept))
                case = trial if _fails(trial, fails) else case
    return _fewer(case, fails)


def _fewer(case: Case, fails: Fails) -> Case:
    """A case whose history cannot lose anything."""
    while True:
        found = next((trial for trial in _shorter(case) if _fails(trial, fails)), None)
        if found is None:
            return case
        case = found


def _shorter(case: Case) -> Iterator[Case]:
    """Cases with a step, a call or a row less."""
    history = case.history
    for i in range(len(history) if len(history) > 1 else 0):
        yield replace(case, history=(*history[:i], *history[i + 1 :]))
    for i, calls in enumerate(history):
        for j, (verb, name, rows) in enumerate(calls):
            if len(calls) > 1:
                yield replace(case, history=(*history[:i], (*calls[:j], *calls[j + 1 :]), *history[i + 1 :]))
            for k in range(len(rows) if len(rows) > 1 else 0):
                less = (verb, name, [*rows[:k], *rows[k + 1 :]])
                yield replace(case, history=(*history[:i], (*calls[:j], less, *calls[j + 1 :]), *history[i + 1 :]))


def _fails(case: Case, fails: Fails) -> bool:
    try:
        evaluate(parse(case.mixed.text), {})
    except Exception:  # what is left of the program has no meaning any more
        return False
    return fails(case)
