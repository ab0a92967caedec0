"""lftj: Datalog rules over your data, evaluated by leapfrog triejoin, in process, and kept up to date.

    import lftj
    db = lftj.Database(".decl edge(a:number, b:number)  tri(x,y,z) :- edge(x,y), edge(y,z), edge(x,z).")
    db.load("edge", "edges.csv")
    print(db["tri"])
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
    print(tx.delta["tri"].inserted)

    Database                       relations, rules and answers; transactions, snapshots, callbacks (lftj/database.py)
    Relation, Query                what `db["tri"]` and `db.query(...)` give
    Program, variables, unsigned   rules written in Python (lftj/language/builder.py), with `agg` for aggregates,
    agg, fn, any_of                `fn` for functors and `any_of` for alternatives
    monoid                         registers an associative function for `Relation.scan` (lftj/results/monoids.py)
    Error, ProgramError, DataError what lftj raises (lftj/errors.py)
    streams                        circuits over Z-sets (lftj/streams)
    triggers                       programs of triggers, from the calculus or M3F, and their maps (lftj/triggers)

Importing lftj imports nothing else: numba, pyarrow and the parser come with the first name that needs them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers take it; `typing` takes longer to import than all of this

if TYPE_CHECKING:
    from lftj.database import Database
    from lftj.errors import DataError, Error, ProgramError
    from lftj.language.builder import Program
    from lftj.language.terms import agg, any_of, fn, unsigned, variables
    from lftj.results.monoids import monoid
    from lftj.results.query import Query
    from lftj.results.relation import Relation

__version__ = "0.1.0"

_HOMES = {
    "Database": "lftj.database",
    "DataError": "lftj.errors",
    "Error": "lftj.errors",
    "Program": "lftj.language.builder",
    "ProgramError": "lftj.errors",
    "Query": "lftj.results.query",
    "Relation": "lftj.results.relation",
    "agg": "lftj.language.terms",
    "any_of": "lftj.language.terms",
    "fn": "lftj.language.terms",
    "monoid": "lftj.results.monoids",
    "unsigned": "lftj.language.terms",
    "variables": "lftj.language.terms",
}

__all__ = [
    "DataError",
    "Database",
    "Error",
    "Program",
    "ProgramError",
    "Query",
    "Relation",
    "agg",
    "any_of",
    "fn",
    "monoid",
    "unsigned",
    "variables",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("streams", "triggers"):
        return import_module(f"lftj.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lftj' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
