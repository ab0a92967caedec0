"""Orders that grow from what is bound: those of looking at every variable each time, though few are."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import pytest

import lftj
from bench import plans
from lftj.plan.body import body_of
from lftj.plan.keyorder import BINDINGS, CROWDED, OrderSearch, delta_order


def plain(search: OrderSearch, *, head_first: bool) -> tuple[str, ...] | None:
    """The order by the definition: each time the least of all variables that are connected, or of all if none is."""
    matches, partial = search.matches, search.start
    while left := search.leading & ~partial.bound:
        near = (matches.frontier(left, partial.bound) if partial.bound else 0) or left
        known: list[tuple[bool, float, int, str]] = []
        for some in (left & search.head, near) if head_first else (near,):
            offers = [(v, matches.matching(matches.bit[v], partial.bound)) for v in matches.named(some)]
            known = known or [(not m.defined, m.matches, search.rank[v], v) for v, m in offers if m is not None]
        following = search.bind_twins(partial, min(known)[-1]) if known else None
        if following is None:
            return None
        partial = following
    return partial.order


def searches(number: int) -> tuple[lftj.Database, list[OrderSearch]]:
    """Searches of a case of `bench.plans`, from nothing and behind some of its atoms; and the database of both."""
    case = plans.case_of(number)
    db = lftj.Database("".join(f".decl {name}(a:number, b:number)  " for name in case.relations))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db.rules(case.rule)
    for name, rows in case.relations.items():
        db.load(name, rows)
    (clause,) = db._strata.of("r")
    body = body_of(clause)
    statistics = {name: db._relations[name].statistics for name in case.relations}
    made = [OrderSearch(body, statistics, False)]
    for atom in random.Random(number).sample(body.atoms, min(3, len(body.atoms))):
        made.append(OrderSearch(body, statistics, False))
        made[-1].begin(named(atom.columns))
    return db, made


def named(columns: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v for v in columns if v is not None))


@pytest.mark.parametrize("number", range(0, 300, 6))
def test_they_are_those_of_looking_at_every_variable(number: int) -> None:
    _db, made = searches(number)
    for search in made:
        for head_first in (False, True):
            grown = search.grown(head_first=head_first)
            assert (None if grown is None else grown.order) == plain(search, head_first=head_first)


@pytest.mark.parametrize("number", range(0, 300, 9))
def test_a_delta_takes_no_more_than_by_the_search(number: int) -> None:
    """By estimates: what grows is taken where a row has few bindings, or where the search takes long."""
    _db, (search, *_) = searches(number)
    body, statistics = search.body, search.statistics
    for atom in body.atoms[:3]:
        choice = delta_order(body, statistics, named(atom.columns))
        other = OrderSearch(body, statistics, False, sort=0.0)
        other.begin(named(atom.columns))
        best = min(found.cost for found in other.ranked())
        if len(search.names) > CROWDED and max(choice.rows) > BINDINGS:
            continue
        assert choice.cost <= 4 * best + 64
