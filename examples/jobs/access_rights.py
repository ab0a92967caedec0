"""Access rights: who may read what, by groups within groups, and denials that win over grants.

    python examples/jobs/access_rights.py [number of users]

Users are in one to three teams, teams in departments, up to the whole company; a grant or a denial holds for all in a
group, and for all within a folder. Every right is kept, so that a question is a look-up, and a commit says exactly
which rights came and went. Prints:

    2,000 users, 106 groups in groups, 19,090 rights
    user 0 moves from team 44 to 99: 13 rights come, 3 go
    team 99 becomes a part of 44: 109 rights come, 0 go
    folder 1 is closed to team 99: 0 rights come, 239 go
"""

import sys

import numpy as np

import lftj

RULES = """
    .decl member(who:number, team:number)           // users in teams
    .decl part(team:number, of:number)              // groups in groups
    .decl inside(folder:number, parent:number)
    .decl grant(team:number, folder:number)
    .decl deny(team:number, folder:number)          // it wins

    under(g, h)   :- part(g, h).
    under(g, i)   :- part(g, h), under(h, i).
    belongs(w, g) :- member(w, g).
    belongs(w, h) :- member(w, g), under(g, h).

    within(f, f)  :- inside(f, _).
    within(f, f)  :- inside(_, f).
    within(f, h)  :- inside(f, g), within(g, h).

    denied(w, f)  :- belongs(w, g), deny(g, h), within(f, h).
    may(w, f)     :- belongs(w, g), grant(g, h), within(f, h), !denied(w, f).
"""


def make(users, seed=1):
    """The tables of a company with so many users: a team for every 20, a folder for every 20."""
    rng = np.random.default_rng(seed)
    teams, folders = max(users // 20, 12), max(users // 20, 12)
    who = np.repeat(np.arange(users), rng.choice([1, 2, 3], users, p=(0.6, 0.3, 0.1)))
    # Groups are numbered from the company, 0, on: 4 teams in each, as a rule; folders likewise, 6 in each.
    team, folder = np.arange(1, teams), np.arange(1, folders)
    leaves = np.arange(teams // 4, teams)
    return {
        "member": distinct(who=who, team=rng.choice(leaves, len(who))),
        "part": distinct(team=np.r_[team, team[::10]], of=np.r_[(team - 1) // 4, rng.integers(0, 1 + team[::10] // 4)]),
        "inside": {"folder": folder, "parent": (folder - 1) // 6},
        "grant": distinct(
            team=rng.integers(1, teams, 2 * teams), folder=rng.integers(folders // 6, folders, 2 * teams)
        ),
        "deny": distinct(team=rng.integers(1, teams, teams // 8), folder=rng.integers(1, folders, teams // 8)),
    }


def distinct(**columns):
    """The columns without rows that are there before."""
    rows = np.unique(np.stack(list(columns.values())), axis=1)
    return dict(zip(columns, rows, strict=True))


def load(tables):
    """The database."""
    db = lftj.Database(RULES)
    for name, columns in tables.items():
        db.load(name, columns)
    return db


def change(db, *, insert=(), erase=()):
    """Make changes, (relation, row) each; the rights that come, and those that go."""
    with db.transaction() as tx:
        for name, row in erase:
            tx.erase(name, [row])
        for name, row in insert:
            tx.insert(name, [row])
    return tx.delta["may"].inserted, tx.delta["may"].erased


def main(users=2_000):
    """A company, and what changes there."""
    db = load(make(users))
    print(f"{users:,} users, {len(db['part'])} groups in groups, {len(db['may']):,} rights")
    who, team = next(iter(db["member"]))
    other = max(team for _, team in db["member"])
    given, taken = change(db, erase=[("member", (who, team))], insert=[("member", (who, other))])
    print(f"user {who} moves from team {team} to {other}: {len(given)} rights come, {len(taken)} go")
    given, taken = change(db, insert=[("part", (other, team))])
    print(f"team {other} becomes a part of {team}: {len(given)} rights come, {len(taken)} go")
    given, taken = change(db, insert=[("deny", (other, 1))])
    print(f"folder 1 is closed to team {other}: {len(given)} rights come, {len(taken)} go")
    return db


if __name__ == "__main__":
    db = main(*map(int, sys.argv[1:]))
