"""Triggers: sums and counts over joins, kept by higher-order deltas (the viewlet transform, Cumulus).

    from lftj import triggers
    program = triggers.from_calculus("q[] = Sum(p * r, O(k, r) and L(k, p))")
    print(triggers.to_m3f(program))            what every event does to the maps; `from_m3f` reads it back
    triggers.MapHierarchy(program)             the maps as a picture
    maps = triggers.Maps(program)              the maps in memory, which follow events

Sources: Y. Ahmad et al., DBToaster: Higher-order Delta Processing for Dynamic, Frequently Fresh Views (VLDB 2012), for
the viewlet transform; The Cumulus System for Exact Online Aggregation in the Cloud (a manuscript of the
DBToaster project), called Cumulus here, for the calculus and M3F.

calculus.py           formulae and terms of Cumulus; calculus_reader.py and calculus.lark from text
calculus_algebra.py   the calculus as algebra
algebra.py            formulas, maps, statements and programs, as data
formulas.py           variables of formulas, and their replacement
event_delta.py        what a row that comes or goes changes about a formula
normalise.py          polynomials, variable elimination, connected components
canonical.py          equal texts for definitions that are equal up to names
evaluation_order.py   the order in which the factors of a product are evaluated
extraction.py         what a product sums over relations becomes maps
worth_keeping.py      which components of a delta get a map, by estimates; fill_order.py in which order they are filled
from_clauses.py       from the clause of an aggregate to formulas, atoms.py of its atoms; one_body.py those of one body
derived_relations.py  what a formula reads of one relation, for batches of rows; events
event_rows.py         events as users write them
head_rows.py          from what maps logged to rows of the head
compilation.py        from the definitions of maps to what every event does to them
m3f.py                programs as text (m3f_final.py what comes last), m3f_reader.py and m3f.lark back from it,
                      syntax_error.py where it goes wrong
program_text.py       programs from text and as text, as users call it
hierarchy.py          the maps as a picture
key_ranges.py         reads that add up an interval of keys
kept_thresholds.py    sums over the rows for which a running sum passes a bound
twins.py              maps that share a table
lowered.py            statements as instructions; lowered_final.py those that come after an event
maps.py               the maps in memory, and events over them: event_kernel.py, table_kernel.py, order_kernel.py,
                      checked_arithmetic.py; row_kernel.py from one changed row to what changes about the head;
                      saved_maps.py the maps as arrays to save
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lftj.triggers.algebra import TriggerProgram
    from lftj.triggers.hierarchy import MapHierarchy
    from lftj.triggers.maps import Maps
    from lftj.triggers.program_text import from_calculus, from_m3f, to_m3f

_HOMES = {
    "MapHierarchy": "lftj.triggers.hierarchy",
    "Maps": "lftj.triggers.maps",
    "TriggerProgram": "lftj.triggers.algebra",
    "from_calculus": "lftj.triggers.program_text",
    "from_m3f": "lftj.triggers.program_text",
    "to_m3f": "lftj.triggers.program_text",
}

__all__ = [
    "MapHierarchy",
    "Maps",
    "TriggerProgram",
    "from_calculus",
    "from_m3f",
    "to_m3f",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lftj.triggers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
