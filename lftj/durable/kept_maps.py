"""The maps of heads that triggers follow, in a checkpoint: their tables, and the program that they are of.

They are taken up for exactly the same program only: its text (M3F, and what rows its relations are made of), and what
it is lowered to. That they hold for the contents of the same checkpoint, and that these were derived by the same rules,
says the checkpoint. Of heads that have maps in common, the first one's parts hold these, and the others name it.
"""

from __future__ import annotations

from lftj.durable.chunks import ends_by_number
from lftj.durable.followed_lists import KeptParts, SavedParts
from lftj.maintain.body_maps import BodyMaps
from lftj.maintain.choose import TRIGGERS
from lftj.maintain.cost import RebuildCost
from lftj.maintain.kept_triggers import KeptTriggers
from lftj.maintain.step import Step
from lftj.program.strata import Heads
from lftj.triggers.from_clauses import DoesNotFit
from lftj.triggers.m3f import text
from lftj.triggers.saved_maps import LAYOUT, MapArrays, arrays_of, code_hash, put_into

MAPS = "maps"
_NODES = "nodes of orders"


def maps_of(kept: KeptTriggers, first: str) -> KeptParts:
    """What is kept of a head: its maps, copied, if it is the `first` head that is told of that has them."""
    noted = {"layout": LAYOUT, "first": first, "orders": kept.orders, "rebuild": list(kept.rebuild)}
    if first != kept.head:
        return KeptParts(MAPS, noted, {}, {})
    body = kept.body
    tables = arrays_of(body.maps)
    noted |= {
        "program": _program_text(body),
        "code": code_hash(body.maps),
        "counts": tables.counts,
        "heap": tables.heap,
        "sizes": body.sizes,
        "most": body.events.magnitudes.noted(),
        "steps": body.steps_per_event,
    }
    arrays = {_table(i): (slots, ends_by_number) for i, slots in enumerate(tables.slots)}
    return KeptParts(MAPS, noted, {}, {**arrays, _NODES: (tables.nodes, ends_by_number)})


def maps_again(step: Step, heads: Heads, saved: SavedParts) -> KeptTriggers | None:
    """What was kept of a head; None if its maps are of another program. Raises `DatabaseFileError`.

    The first head comes before others that have the same maps.
    """
    noted = saved.noted
    if noted["layout"] != LAYOUT or isinstance(TRIGGERS.formulas(step, heads), str):
        return None
    relations = step.after
    body = _body_again(step, heads, saved) if noted["first"] == heads.name else TRIGGERS.at_hand(step, heads, relations)
    if body is None:
        return None
    kept = KeptTriggers(heads, body, step.evaluator.symbols)
    kept.rebuild = RebuildCost(*noted["rebuild"])
    kept.orders = [(name, many) for name, many in noted["orders"]]
    return kept


def _body_again(step: Step, heads: Heads, saved: SavedParts) -> BodyMaps | None:
    """The maps as they were saved; None if they are of another program. Raises `DatabaseFileError`."""
    noted = saved.noted
    try:
        body = TRIGGERS.body(step, TRIGGERS.members(step, heads), step.after, noted["sizes"])
    except DoesNotFit:
        return None
    if (_program_text(body), code_hash(body.maps)) != (noted["program"], noted["code"]):
        return None
    slots = [saved.array(_table(i)) for i in range(len(noted["counts"]))]
    if not put_into(body.maps, MapArrays(slots, saved.array(_NODES), noted["counts"], noted["heap"])):
        return None
    body.events.magnitudes.go_on_from(noted["most"])
    body.steps_per_event = noted["steps"]
    body.hold(step.after)
    step.kept.bodies[tuple(body.members)] = body
    return body


def _table(number: int) -> str:
    return f"table {number}"


def _program_text(body: BodyMaps) -> str:
    """The program of maps, whose they are, and what rows of the relations below its events are."""
    heads = (f"{clause.head}\n" for clause in body.members)
    return "".join([*heads, *(f"{made}\n" for made in body.formulas.relations), text(body.maps.program)])
