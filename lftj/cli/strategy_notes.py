"""Strategies that were asked for and do not fit: what `--maintain` and `--granularity` say of a head, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lftj.cli.outcome import say
from lftj.cli.settings import Settings

if TYPE_CHECKING:
    from lftj.database import Database


def note_strategies(db: Database, settings: Settings) -> None:
    """Say on stderr what of these options does not hold; the planner's choice, which does, is in `lftj explain`."""
    if settings.no_warn or not (settings.maintain or settings.granularity):
        return
    from lftj.language.clause import owner
    from lftj.language.options import AUTO
    from lftj.maintain.choose import at_rest, named
    from lftj.maintain.recompute import RECOMPUTE
    from lftj.maintain.rounds import Rounds
    from lftj.maintain.step import Step
    from lftj.maintain.trace import Trace

    step = Step.at_rest(db._evaluator, db._kept)
    for head in dict.fromkeys([*settings.maintain, *settings.granularity]):
        # What a rule computes of several rows, it reads from parts, and these follow changes as the head is asked to.
        members = [db._strata.heads_of(name) for name in db._strata.order if owner(name) == head]
        by = {at_rest(step, heads)[0].name: heads for heads in members}
        ways = ", ".join(by)
        asked = settings.maintain.get(head, AUTO)
        rounds = Rounds.name in by  # by traces, or by deltas: they take both words
        if asked not in (AUTO, RECOMPUTE.name, *by) and not (rounds and asked in (Trace.name, "delta")):
            why = named(asked).fits(step, members[0]) or "its rules follow changes in a way of their own"
            say(f"lftj: --maintain {head}={asked} does not fit: {why}; `{head}` follows changes by {ways}")
        if head in settings.granularity and settings.granularity[head] != AUTO and Trace.name not in by and not rounds:
            asked = settings.granularity[head]
            say(f"lftj: --granularity {head}={asked} changes nothing: `{head}` follows changes by {ways}")
