"""Rules that come later: those of a new head, or one more of a head that is there."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.mixed.programs import Mixed, add_folding, add_free, add_join, body_of, pick, rule_of


def more_rules(rng: Random, mixed: Mixed, heads: list[str]) -> str:
    """Lines of a program; `heads`: those that may get one more rule, which reads relations declared before them."""
    if heads and pick(rng, (True, False)):
        head = pick(rng, heads)
        before = list(mixed.known)[: list(mixed.known).index(head)]
        below = replace(
            mixed, known={name: mixed.known[name] for name in before}, functional=mixed.functional & set(before)
        )
        return rule_of(rng, below, body_of(rng, below), head, mixed.known[head])
    made = replace(mixed, lines=[], known=dict(mixed.known), functional=set(mixed.functional))
    pick(rng, (add_free, add_free, add_join, add_folding))(rng, made, f"n{len(mixed.known)}")
    return made.text
