"""Who may do what: groups within groups, folders within folders, grants, and denials that win over them.

`preview` says what a change would do before anything changes; `tx.delta` says what the committed change did. Prints:

    23 rights; bo may: read audit, read engine, read home, read payroll, read specs, write engine, write specs
    nobody may: write audit, write home
    robots in staff would bring: robot read audit, robot read home, robot read payroll
    cy leaves, payroll is closed to staff
    taken: ann read audit, ann read payroll, bo read audit, bo read payroll, cy read audit, cy read engine, ...
    given: nothing
    now nobody may: read audit, read payroll
"""

import lftj

RULES = """
    .decl person(who:symbol)
    .decl member(who:symbol, group:symbol)                   // a person, or a group, in a group
    .decl folder(name:symbol)
    .decl inside(name:symbol, parent:symbol)
    .decl grant(group:symbol, folder:symbol, right:symbol)   // of the folder and all within it
    .decl deny(group:symbol, folder:symbol, right:symbol)    // likewise, and it wins

    belongs(w, g) :- member(w, g).
    belongs(w, g) :- member(w, inner), belongs(inner, g).
    within(f, f)  :- folder(f).
    within(f, up) :- inside(f, parent), within(parent, up).

    granted(w, r, f) :- person(w), belongs(w, g), grant(g, up, r), within(f, up).
    denied(w, r, f)  :- person(w), belongs(w, g), deny(g, up, r), within(f, up).
    may(w, r, f)     :- granted(w, r, f), !denied(w, r, f).

    locked(r, f)     :- grant(_, _, r), folder(f), !may(_, r, f).
"""
PEOPLE = [("ann",), ("bo",), ("cy",), ("robot",)]
MEMBERS = [
    *[("ann", "leads"), ("bo", "engineers"), ("cy", "engineers"), ("robot", "robots")],
    *[("leads", "engineers"), ("engineers", "staff")],
]
FOLDERS = [("home",), ("payroll",), ("audit",), ("engine",), ("specs",)]
INSIDE = [("payroll", "home"), ("audit", "payroll"), ("engine", "home"), ("specs", "engine")]
GRANTS = [
    *[("staff", "home", "read"), ("engineers", "engine", "write")],
    *[("leads", "payroll", "write"), ("robots", "specs", "write")],
]
DENIALS = [("robots", "engine", "read"), ("staff", "audit", "write")]


def listed(rows, most=6):
    """Rows in one line: `read audit, read home`."""
    words = [" ".join(row) for row in rows]
    return ", ".join(words[:most] + ["..."] * (len(words) > most)) or "nothing"


db = lftj.Database(RULES)
db.load("person", PEOPLE)
db.load("member", MEMBERS)
db.load("folder", FOLDERS)
db.load("inside", INSIDE)
db.load("grant", GRANTS)
db.load("deny", DENIALS)
print(len(db["may"]), "rights; bo may:", listed(db.query('may("bo", r, f)'), most=9))
print("nobody may:", listed(db["locked"]))

# What would happen if ...? A transaction that is left by an exception changes nothing.
try:
    with db.transaction() as tx:
        tx.insert("member", [("robots", "staff")])
        print("robots in staff would bring:", listed(tx.preview()["may"].inserted))
        raise PermissionError("only asking")
except PermissionError:
    pass

print("cy leaves, payroll is closed to staff")
with db.transaction() as tx:
    tx.erase("member", [("cy", "engineers")])
    tx.insert("deny", [("staff", "payroll", "read")])
print("taken:", listed(tx.delta["may"].erased))
print("given:", listed(tx.delta["may"].inserted))
print("now nobody may:", listed(tx.delta["locked"].inserted))
