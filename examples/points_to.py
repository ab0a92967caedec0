"""Points-to analysis (L. O. Andersen, 1994): the objects that each variable of a program may stand for.

The facts are read off the syntax tree of a small Python program. When its source is edited, only the facts of the
changed lines differ, and only what follows from them is worked out again. Prints:

    queue may be {Queue:1}, last may be {Job:3, Job:5}
    work may be the same object as: last
    without an object: log

    log = last.owner  ->  log = last.queue
      + last may be Queue:1
      + log may be Queue:1
      + Queue:1.last may be Queue:1

    queue.last = urgent  ->  queue.last = work
      - last may be Job:5
      - last may be Queue:1
      - log may be Queue:1
      - Queue:1.last may be Job:5
      - Queue:1.last may be Queue:1
"""

import ast

import lftj

PROGRAM = """\
queue = Queue()
first = queue
work = Job()
queue.last = work
urgent = Job()
urgent.queue = queue
queue.last = urgent
last = first.last
log = last.owner
first.last = log
"""
RULES = """
    .decl new(to:symbol, object:symbol)                    // to = Class()
    .decl copy(to:symbol, from:symbol)                     // to = from
    .decl load(to:symbol, base:symbol, field:symbol)       // to = base.field
    .decl store(base:symbol, field:symbol, from:symbol)    // base.field = from

    points(v, o)   :- new(v, o).
    points(v, o)   :- copy(v, w), points(w, o).
    points(v, o)   :- load(v, b, f), points(b, a), heap(a, f, o).
    heap(a, f, o)  :- store(b, f, w), points(b, a), points(w, o).

    alias(v, w)    :- points(v, o), points(w, o), v != w.
    variable(v)    :- new(v, _) ; copy(v, _) ; load(v, _, _).
    dangling(v)    :- variable(v), !points(v, _).
"""


def facts(source):
    """The assignments of a program as (relation, row); an object is named by its class and its line."""
    found = set()
    for line in ast.parse(source).body:
        match line:
            case ast.Assign([ast.Name(to)], ast.Call(ast.Name(kind))):
                found.add(("new", (to, f"{kind}:{line.lineno}")))
            case ast.Assign([ast.Name(to)], ast.Name(source)):
                found.add(("copy", (to, source)))
            case ast.Assign([ast.Name(to)], ast.Attribute(ast.Name(base), field)):
                found.add(("load", (to, base, field)))
            case ast.Assign([ast.Attribute(ast.Name(base), field)], ast.Name(source)):
                found.add(("store", (base, field, source)))
    return found


def follow(db, old, new):
    """Change the facts of the source `old` to those of `new`; the transaction."""
    with db.transaction() as tx:
        for relation, row in facts(old) - facts(new):
            tx.erase(relation, [row])
        for relation, row in facts(new) - facts(old):
            tx.insert(relation, [row])
    return tx


def objects(variable):
    """The objects that a variable may stand for."""
    return "{" + ", ".join(o for (o,) in db.query(f'points("{variable}", o)')) + "}"


db = lftj.Database(RULES)
follow(db, "", PROGRAM)
print(f"queue may be {objects('queue')}, last may be {objects('last')}")
print("work may be the same object as:", *(v for (v,) in db.query('alias("work", v)')))
print("without an object:", *(v for (v,) in db["dangling"]))

edits = [("log = last.owner", "log = last.queue"), ("queue.last = urgent", "queue.last = work")]
source = PROGRAM
for old, new in edits:
    print(f"\n{old}  ->  {new}")
    edited = source.replace(old, new)
    tx = follow(db, source, edited)
    source = edited
    for sign, rows in (("-", tx.delta["points"].erased), ("+", tx.delta["points"].inserted)):
        for variable, thing in rows:
            print(f"  {sign} {variable} may be {thing}")
    for sign, rows in (("-", tx.delta["heap"].erased), ("+", tx.delta["heap"].inserted)):
        for thing, field, other in rows:
            print(f"  {sign} {thing}.{field} may be {other}")
