"""A live stream of ratings: everything that is asked about it kept up to date, event by event.

    python -m bench.ratings [-e lftj,lftj-recompute,duckdb] [--quick]

The soc-bitcoin-otc stream (who rated whom, from -10 to 10) in the order of time. Per user the mean and the greatest
rating received; users who never were rated; triangles of users who rate each other positively. `rating` is a functional
predicate: an event is an upsert, so a later rating of the same user by the same user replaces the earlier one. The
published stream rates every pair once, so 2,000 random pairs are rated anew at its end ("again"). One transaction per
event; the answers at the end are compared with plain Python. Evaluating anew (lftj, and DuckDB with the same questions
in SQL) is measured on the last events of either part. To `bench/results/ratings.jsonl`.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench import results
from bench.cases import Bench, Line, times
from bench.graphs import SHARED, Rows
from bench.rivals.recompute import Recomputed
from bench.updates import Batch, read_columns

RATINGS = results.RESULTS / "ratings.jsonl"
STREAM, AGAIN = "soc-bitcoin-otc", 2_000
ENGINES = ("lftj", "lftj-recompute", "duckdb")
#: Events that an engine which evaluates anew is measured on.
FEW = 20
QUICK_EVENTS, QUICK_AGAIN = 150, 40
PROGRAM = """
.decl rating(rater:number, user:number) -> stars:number
.decl mean_rating(user:number) -> stars:float
.decl top_rating(user:number) -> stars:number
mean_rating[u] = mean r : { rating(_, u, r) }.
top_rating[u] = max r : { rating(_, u, r) }.
user(u) :- rating(u, _, _).
user(u) :- rating(_, u, _).
never_rated(u) :- user(u), !rating(_, u, _).
mutual(x, y) :- rating(x, y, r), r > 0, rating(y, x, s), s > 0, x < y.
trust(x, y, z) :- mutual(x, y), mutual(y, z), mutual(x, z).
"""
SQL = {
    "mean_rating": "SELECT c1, avg(c2) FROM rating GROUP BY c1",
    "top_rating": "SELECT c1, max(c2) FROM rating GROUP BY c1",
    "users": "SELECT c0 FROM rating UNION SELECT c1 FROM rating",
    "never_rated": "SELECT c0 FROM users WHERE c0 NOT IN (SELECT c1 FROM rating)",
    "mutual": "SELECT a.c0 AS x, a.c1 AS y FROM rating a, rating b "
    "WHERE a.c0 = b.c1 AND a.c1 = b.c0 AND a.c2 > 0 AND b.c2 > 0 AND a.c0 < a.c1",
    "trust": "SELECT a.x AS x, a.y AS y, b.y AS z FROM mutual a, mutual b, mutual c "
    "WHERE a.y = b.x AND a.x = c.x AND b.y = c.y",
}
ANSWERS = ("mean_rating", "top_rating", "never_rated", "trust")
NONE = np.empty((0, 3), np.int64)
Row = tuple[Any, ...]


def stream(events: int | None = None) -> tuple[Rows, str]:
    """(rater, user, stars) per event in the order of time, and where they are from: "shared" or "generated"."""
    path = SHARED / "temporal" / f"{STREAM}.tsv"
    if path.exists() and events is None:
        table = read_columns(path, 4)
        table = table[np.argsort(table[:, 2], kind="stable")]
        return np.ascontiguousarray(table[:, [0, 1, 3]]), "shared"
    rng = np.random.default_rng(110)
    count, users = (35_592, 5_881) if events is None else (events, max(6, events // 12))
    ends = (rng.random((count, 2)) ** 2 * users).astype(np.int64)
    ends[ends[:, 0] == ends[:, 1], 1] += 1
    stars = np.where(rng.random(count) < 0.85, rng.integers(1, 11, count), rng.integers(-10, 0, count))
    return np.column_stack([ends, stars]), "generated"


def rated_again(events: Rows, count: int) -> Rows:
    """Events that rate random pairs of `events` anew, by other stars."""
    rng = np.random.default_rng(111)
    found = events[rng.integers(0, len(events), count)]
    found[:, 2] = (found[:, 2] + 10 + rng.integers(1, 20, count)) % 21 - 10
    return found


def plain(events: Rows) -> dict[str, set[Row]]:
    """The answers in dicts and loops."""
    rating = {(rater, user): stars for rater, user, stars in events.tolist()}
    received: dict[int, list[int]] = defaultdict(list)
    for (_, user), stars in rating.items():
        received[user].append(stars)
    trusts: dict[int, set[int]] = defaultdict(set)
    for (x, y), stars in rating.items():
        if x < y and stars > 0 and rating.get((y, x), 0) > 0:
            trusts[x].add(y)
    return {
        "mean_rating": {(user, sum(stars) / len(stars)) for user, stars in received.items()},
        "top_rating": {(user, max(stars)) for user, stars in received.items()},
        "never_rated": {(rater,) for rater, _ in rating if rater not in received},
        "trust": {(x, y, z) for x, ys in list(trusts.items()) for y in ys for z in ys & trusts.get(y, set())},
    }


def compare(found: dict[str, set[Row]], events: Rows) -> dict[str, int]:
    """How many rows each answer has; AssertionError if one is not what plain Python finds."""
    expected = plain(events)
    for name in ANSWERS:
        if found[name] != expected[name]:
            differing = sorted(found[name] ^ expected[name])[:3]
            raise AssertionError(f"{name}: {len(found[name])} rows, {len(expected[name])} expected; {differing}")
    return {name: len(rows) for name, rows in expected.items()}


def database(anew: bool = False) -> Any:
    """An empty database with the program; `anew`: its heads are evaluated with every change."""
    import lftj

    db = lftj.Database()
    heads = ("mean_rating", "top_rating", "user", "never_rated", "mutual", "trust")
    db.rules(PROGRAM, maintain=dict.fromkeys(heads, "recompute") if anew else None)
    return db


def _answers(db: Any) -> dict[str, set[Row]]:
    return {name: set(db[name]) for name in ANSWERS}


def _upserts(db: Any, events: Rows) -> tuple[list[float], int, dict[str, float]]:
    """CPU seconds per event, steps, and the seconds of each head, over all events."""
    took: list[float] = []
    steps, heads = 0, defaultdict[str, float](float)
    for event in map(tuple, events.tolist()):
        start = time.process_time()
        with db.transaction() as tx:
            tx.upsert("rating", [event])
        took.append(time.process_time() - start)
        steps += tx.stats["total"]["steps"]
        for name, head in tx.stats["heads"].items():
            heads[name] += head["seconds"]
    return took, steps, dict(heads)


def maintained(events: Rows, again: Rows) -> Line:
    """The figures of lftj: every event from an empty database on."""
    db = database()
    db.evaluate()
    took, steps, heads = _upserts(db, events)
    rows = compare(_answers(db), events)
    more, more_steps, _ = _upserts(db, again)
    after = compare(_answers(db), np.concatenate([events, again]))
    tenth = max(1, len(took) // 10)
    return {
        "arrivals": {**times(took[1:]), "last_tenth_ms": times(took[-tenth:])["median_ms"], "steps": steps},
        "again": {**times(more), "steps": more_steps},
        "head_ms": {name: seconds / len(took) * 1e3 for name, seconds in heads.items()},
        "rows": rows,
        "rows_again": after,
    }


def anew(events: Rows, again: Rows, few: int) -> Line:
    """The figures of lftj that evaluates anew: the last events of either part, all others at once."""
    db = database(anew=True)
    with db.transaction() as tx:
        tx.upsert("rating", events[:-few])
    db.evaluate()
    took, steps, _ = _upserts(db, events[-few:])
    rows = compare(_answers(db), events)
    with db.transaction() as tx:
        tx.upsert("rating", again[:-few])
    more, more_steps, _ = _upserts(db, again[-few:])
    after = compare(_answers(db), np.concatenate([events, again]))
    return {
        "arrivals": {**times(took), "steps": steps},
        "again": {**times(more), "steps": more_steps},
        "rows": rows,
        "rows_again": after,
    }


def rival(events: Rows, again: Rows, few: int) -> Line:
    """The figures of DuckDB, which evaluates anew: as `anew`."""
    subject = Recomputed(SQL)
    held: dict[Row, int] = {}
    told: Line = {}
    done = NONE
    for part, rows_of in (("arrivals", events), ("again", again)):
        for rater, user, stars in rows_of[:-few].tolist():
            held[rater, user] = stars
        subject.load("rating", np.array([(*pair, stars) for pair, stars in held.items()], np.int64))
        subject.evaluate()
        took = []
        for rater, user, stars in rows_of[-few:].tolist():
            old = held.get((rater, user))
            gone = NONE if old is None else np.array([[rater, user, old]])
            start = time.process_time()
            subject.apply("rating", Batch(gone, np.array([[rater, user, stars]])))
            took.append(time.process_time() - start)
            held[rater, user] = stars
        done = np.concatenate([done, rows_of])
        compare({name: set(subject.rows(name)) for name in ANSWERS}, done)
        told[part] = times(took)
    return told


def measured(request: Line) -> Line:
    """One engine: `request` has "engine" and "quick"."""
    quick, engine = request["quick"], request["engine"]
    small, _ = stream(QUICK_EVENTS)
    small_again = rated_again(small, QUICK_AGAIN)
    few = 5 if quick else FEW
    if quick:
        events, again, source = small, small_again, "generated"
    else:
        if engine == "lftj":
            maintained(small, small_again)
        elif engine == "lftj-recompute":
            anew(small, small_again, 5)
        events, source = stream()
        again = rated_again(events, AGAIN)
    figures = (
        maintained(events, again)
        if engine == "lftj"
        else anew(events, again, few)
        if engine == "lftj-recompute"
        else rival(events, again, few)
    )
    return {"status": "ok", "graph": _title(source), "events": len(events), "events_again": len(again), **figures}


def _title(source: str) -> str:
    return STREAM if source == "shared" else f"{STREAM} (stand-in)"


def requests(quick: bool) -> Iterator[Line]:
    """What is to be measured."""
    for engine in ENGINES:
        yield {"workload": "ratings", "graph": STREAM, "mode": "events", "engine": engine, "quick": quick}


def note(line: Line) -> str:
    """The figures in one line."""
    parts = ((part, line[part]) for part in ("arrivals", "again"))
    return "  ".join(f"{part}: median {m['median_ms']:.3f} ms, p99 {m['p99_ms']:.3f}" for part, m in parts)


BENCH = Bench("bench.ratings", RATINGS, requests, measured, note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record."""
    return BENCH.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
