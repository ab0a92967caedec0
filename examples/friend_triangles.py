"""Triangles per member of a social graph: how many pairs of one's friends are friends of each other.

88,234 friendships of 4,039 people on Facebook, which ship with lftj (J. McAuley and J. Leskovec, 2012). Prints:

    88,234 friendships, 1,612,010 triangles; in most of them are
       1912: 30,025 triangles among 755 friends (10.5% of the pairs)
       107: 26,750 triangles among 1,045 friends (4.9% of the pairs)
       2347: 16,863 triangles among 291 friends (40.0% of the pairs)
    48 and 54 fall out
       48: -4, 54: -4, 0: -1, 1: -1, 53: -1, 119: -1
       1,612,006 triangles
    2 and 3 meet, 48 and 54 make up
       1: +1, 2: +1, 3: +1, 53: +1, 119: +1, 0: +2, 48: +4, 54: +4
       1,612,011 triangles
"""

from importlib.resources import files

import lftj

RULES = """
    .decl friend(a:number, b:number)      // each friendship once, a < b
    .decl all(triangles:number)

    knows(a, b) :- friend(a, b).
    knows(b, a) :- friend(a, b).

    degree[x]    = count : { knows(x, _) }.
    triangles[x] = count : { knows(x, y), knows(x, z), friend(y, z) }.
    all(t / 3)   :- t = sum n : { triangles[_] = n }.

    // Of the pairs of one's friends, the part that are friends.
    clustering[x] = itof(2 * t) / itof(d * (d - 1)) :- triangles[x] = t, degree[x] = d.
"""


def line(member):
    """What is known of a member."""
    found = f"{db['triangles'][member]:,} triangles among {db['degree'][member]:,} friends"
    return f"{member}: {found} ({db['clustering'][member]:.1%} of the pairs)"


def show(tx):
    """The members whose count the transaction changed, with the change."""
    before = dict(tx.delta["triangles"].erased)
    after = dict(tx.delta["triangles"].inserted)
    changes = sorted((after.get(x, 0) - before.get(x, 0), x) for x in before.keys() | after.keys())
    print("  ", ", ".join(f"{x}: {change:+}" for change, x in changes))
    ((total,),) = db["all"]
    print(f"   {total:,} triangles")


db = lftj.Database(RULES)
db.load("friend", files("lftj.demo") / "data" / "ego-Facebook.tsv.zst")
((total,),) = db["all"]
print(f"{len(db['friend']):,} friendships, {total:,} triangles; in most of them are")
for member, _ in sorted(db["triangles"], key=lambda row: -row[1])[:3]:
    print("  ", line(member))

print("48 and 54 fall out")
with db.transaction() as tx:
    tx.erase("friend", [(48, 54)])
show(tx)

print("2 and 3 meet, 48 and 54 make up")
with db.transaction() as tx:
    tx.insert("friend", [(2, 3), (48, 54)])
show(tx)
