"""The maps of a head that triggers follow, in a checkpoint: their tables, and the program that they are of.

They are taken up for exactly the same program only: its text (M3F, and what rows its relations are made of), and what
it is lowered to. That they hold for the contents of the same checkpoint, and that these were derived by the same rules,
says the checkpoint.
"""

from __future__ import annotations

from lftj.durable.chunks import ends_by_number
from lftj.durable.followed_lists import KeptParts, SavedParts
from lftj.maintain.choose import TRIGGERS
from lftj.maintain.cost import RebuildCost
from lftj.maintain.kept_triggers import KeptTriggers
from lftj.maintain.step import Step
from lftj.program.strata import Heads
from lftj.triggers.m3f import text
from lftj.triggers.saved_maps import LAYOUT, MapArrays, arrays_of, code_hash, put_into
from lftj.triggers.worth_keeping import EventStatistics

MAPS = "maps"
_NODES = "nodes of orders"


def maps_of(kept: KeptTriggers) -> KeptParts:
    """The maps of a head, copied."""
    tables = arrays_of(kept.maps)
    noted = {
        "layout": LAYOUT,
        "program": _program_text(kept),
        "code": code_hash(kept.maps),
        "counts": tables.counts,
        "heap": tables.heap,
        "sizes": kept.sizes,
        "most": kept.events.magnitudes.noted(),
        "steps": kept.steps_per_event,
        "orders": kept.orders,
        "rebuild": list(kept.rebuild),
    }
    arrays = {_table(i): (slots, ends_by_number) for i, slots in enumerate(tables.slots)}
    return KeptParts(MAPS, noted, {}, {**arrays, _NODES: (tables.nodes, ends_by_number)})


def maps_again(step: Step, heads: Heads, saved: SavedParts) -> KeptTriggers | None:
    """The maps of a head as they were saved; None if they are of another program. Raises `DatabaseFileError`."""
    noted, formulas = saved.noted, TRIGGERS.formulas(step, heads)
    if noted["layout"] != LAYOUT or isinstance(formulas, str):
        return None
    statistics = EventStatistics(noted["sizes"])
    kept = KeptTriggers(heads, formulas, statistics, step.evaluator.symbols, RebuildCost(*noted["rebuild"]))
    if (_program_text(kept), code_hash(kept.maps)) != (noted["program"], noted["code"]):
        return None
    slots = [saved.array(_table(i)) for i in range(len(noted["counts"]))]
    if not put_into(kept.maps, MapArrays(slots, saved.array(_NODES), noted["counts"], noted["heap"])):
        return None
    kept.events.magnitudes.go_on_from(noted["most"])
    kept.steps_per_event = noted["steps"]
    kept.orders = [(name, many) for name, many in noted["orders"]]
    return kept


def _table(number: int) -> str:
    return f"table {number}"


def _program_text(kept: KeptTriggers) -> str:
    """The program of maps, and what rows of the relations below its events are."""
    return "".join([*(f"{made}\n" for made in kept.formulas.relations), text(kept.maps.program)])
