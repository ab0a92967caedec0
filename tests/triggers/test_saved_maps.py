"""Tables of maps saved and put into new maps: these go on as the first ones do."""

from __future__ import annotations

import hashlib
import random

import numpy as np

from lftj.triggers.m3f_reader import parsed
from lftj.triggers.maps import Maps
from lftj.triggers.saved_maps import LAYOUT, arrays_of, code_hash, put_into
from tests.conftest import JIT

# A slice of one map, an order of another, and twins.
PROGRAM = """
relation R(a: number, b: number)
relation S(b: number, c: number)
map q[a: number] = R(a, b) * S(b, c) * c
map n[a: number] = R(a, b) * S(b, c)
map r[b: number, a: number] = R(a, b)
map s[b: number] = S(b, c) * c
map m[b: number] = S(b, c)
map o[] = R(a, b) * S(d, c) * {b < c}
map rb[b: number] = R(a, b)
map sc[c: number] = S(b, c)
top q, n, o
on +R(a, b): q[a] += s[b]
on +R(a, b): n[a] += m[b]
on +R(a, b): o[] += sc[c] * {b < c}
on +R(a, b): r[b, a] += 1
on +R(a, b): rb[b] += 1
on +S(b, c): q[a] += r[b, a] * c
on +S(b, c): n[a] += r[b, a]
on +S(b, c): o[] += rb[x] * {x < c}
on +S(b, c): s[b] += c
on +S(b, c): m[b] += 1
on +S(b, c): sc[c] += 1
on -R(a, b): q[a] -= s[b]
on -R(a, b): n[a] -= m[b]
on -R(a, b): o[] -= sc[c] * {b < c}
on -R(a, b): r[b, a] -= 1
on -R(a, b): rb[b] -= 1
on -S(b, c): q[a] -= r[b, a] * c
on -S(b, c): n[a] -= r[b, a]
on -S(b, c): o[] -= rb[x] * {x < c}
on -S(b, c): s[b] -= c
on -S(b, c): m[b] -= 1
on -S(b, c): sc[c] -= 1
"""


def events(rng: random.Random, maps: Maps, present: list[tuple[int, int, int]], n: int) -> None:
    """Run random events, of which those that erase take away what is there."""
    kinds, rows = [], []
    for _ in range(n):
        if present and rng.random() < 0.4:
            relation, a, b = present.pop(rng.randrange(len(present)))
            sign = -1
        else:
            relation, a, b = rng.randrange(2), rng.randrange(-9, 9), rng.randrange(9)
            present.append((relation, a, b))
            sign = 1
        kinds.append(maps.kinds[sign, "RS"[relation]])
        rows.append((a, b))
    maps.run(np.array(kinds, np.int64), np.array(rows, np.int64).reshape(-1, 2))


def state(maps: Maps) -> dict[str, list[tuple[int, ...]]]:
    found = {}
    for name in maps.program.maps:
        keys, values = maps.entries(name)
        found[name] = sorted(map(tuple, np.vstack([keys, values]).T.tolist()))
    return found


def test_maps_go_on_from_saved_tables() -> None:
    program = parsed(PROGRAM)
    for seed in range(20 if JIT else 2):
        rng = random.Random(seed)
        maps, present = Maps(program), list[tuple[int, int, int]]()
        for _ in range(4):
            events(rng, maps, present, rng.choice([0, 1, 30, 300]))
            arrays, made = arrays_of(maps), Maps(program)
            assert code_hash(maps) == code_hash(made)
            assert put_into(made, arrays)
            assert state(made) == state(maps)
            other, theirs = random.Random(seed + 1), list(present)
            events(random.Random(seed + 1), maps, present, 50)
            events(other, made, theirs, 50)
            assert state(made) == state(maps)
            maps = made


def test_arrays_that_do_not_fit_are_refused() -> None:
    program = parsed(PROGRAM)
    maps = Maps(program)
    events(random.Random(1), maps, [], 100)
    arrays = arrays_of(maps)
    wrong = [
        arrays._replace(slots=arrays.slots[:-1]),
        arrays._replace(slots=[part[:, :-1] for part in arrays.slots]),
        arrays._replace(slots=[part[:-1] for part in arrays.slots]),
        arrays._replace(nodes=arrays.nodes[:, :-1]),
        arrays._replace(heap=arrays.heap[:-1]),
        arrays._replace(counts=arrays.counts[:-1]),
    ]
    for one in wrong:
        assert not put_into(Maps(program), one)
    fewer = parsed(PROGRAM.replace("{b < c}", "{b <= c}"))
    assert code_hash(Maps(fewer)) != code_hash(maps)


def test_the_layout_is_the_one_that_files_have() -> None:
    """Where this fails, kernels lay tables out otherwise: raise `LAYOUT`, and write the new number and hash here."""
    maps = Maps(parsed(PROGRAM))
    events(random.Random(7), maps, [], 500)
    arrays = arrays_of(maps)
    assert arrays.nodes.size > 1
    digest = hashlib.blake2b(digest_size=8)
    for part in (*arrays.slots, arrays.nodes):
        digest.update(np.ascontiguousarray(part).tobytes())
    assert (LAYOUT, digest.hexdigest()) == (1, "6b0f03ae3c80d216")
