"""The tables of maps as arrays to save, and maps made of them: without an event, with every slot where it was.

The slots of a table are copied as they lie, so they mean something to the same program only, lowered to the same code
for the same kernels: `code_hash` tells whether it is, and `LAYOUT` is raised where kernels lay slots or nodes out
otherwise, which tests/triggers/test_saved_maps.py notices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.triggers import order_kernel as o
from lftj.triggers import table_kernel as t
from lftj.triggers.maps import Maps

Ints = npt.NDArray[np.int64]

# How slots, hashes of keys and nodes of orders are laid out.
LAYOUT = 1
# The columns of `desc` that events change, but for OFF; the others follow from the program.
_CHANGED = [t.CAP, t.COUNT, t.GONE]
_FIXED = [column for column in range(t.FIELDS) if column not in (t.OFF, *_CHANGED)]


class MapArrays(NamedTuple):
    """The tables of maps. `slots`: of each table int64[width, slots] · `nodes` int64[1, words]: those of orders.

    `counts`: of each table its slots, its entries, and the entries that went · `heap`: of orders.
    """

    slots: Sequence[Ints]
    nodes: Ints
    counts: list[list[int]]
    heap: list[int]


def code_hash(maps: Maps) -> str:
    """What the kernels run events of these maps by, as a hash in 32 digits: code, constants, and what tables hold."""
    digest = hashlib.blake2b(digest_size=16)
    fixed = np.ascontiguousarray(maps.tables.desc[:, _FIXED])
    registers = np.array(maps.lowered.registers, np.int64)
    for part in (*maps.lowered.code, fixed, maps.tables.columns, registers):
        digest.update(repr(part.shape).encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def arrays_of(maps: Maps) -> MapArrays:
    """A copy of the tables, which hold for a state (`Maps.lost` is False)."""
    desc, trees = maps.tables.desc, maps.tables.trees
    slots = []
    for begin, many, width in desc[:, [t.OFF, t.CAP, t.WIDTH]].tolist():
        slots.append(maps.tables.mem[begin : begin + many * width].copy().reshape(many, width).T)
    nodes = trees.nodes[: int(trees.heap[o.TOP])].copy()[None, :]
    return MapArrays(slots, nodes, desc[:, _CHANGED].tolist(), trees.heap.tolist())


def put_into(maps: Maps, arrays: MapArrays) -> bool:
    """Give new maps tables that were saved of maps with the same `code_hash`; whether they fit."""
    desc, heap = maps.tables.desc.copy(), np.array(arrays.heap, np.int64)
    counts = np.array(arrays.counts, np.int64).reshape(-1, len(_CHANGED))
    if len(counts) != len(desc) or len(arrays.slots) != len(desc) or len(heap) != len(maps.tables.trees.heap):
        return False
    for part, width, (many, *_) in zip(arrays.slots, desc[:, t.WIDTH].tolist(), arrays.counts, strict=True):
        if part.shape != (width, many) or many < 1 or many & (many - 1):
            return False
    if arrays.nodes.shape != (1, int(heap[o.TOP])):
        return False
    desc[:, _CHANGED] = counts
    live = sum(part.size for part in arrays.slots)
    mem, at = np.zeros(max(256, live + live // 2), np.int64), 0
    for number, part in enumerate(arrays.slots):
        desc[number, t.OFF] = at
        mem[at : at + part.size].reshape(part.shape[::-1])[:] = part.T
        at += part.size
    trees = maps.tables.trees._replace(nodes=np.ascontiguousarray(arrays.nodes[0]), heap=heap)
    maps.replace_tables(maps.tables._replace(mem=mem, desc=desc, top=np.array([at], np.int64), trees=trees))
    return True
