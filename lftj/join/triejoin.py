"""Leapfrog triejoin as one generic kernel: a plan (arrays) goes in, rows or a count come out.

**The walk.** Depth d of the walk binds variable d of the key order. The atoms that hold it, its participants, each
offer the sorted keys under their own prefix, and a leapfrog join finds the keys they agree on (leapfrog.py). A match
goes one depth down; an exhausted depth goes one up. At the last depth a match is a row.

**Kinds of depth.** JOIN is the above; comparisons of its variable with registers narrow it to a range of keys before
the first step. VALUE has its one candidate computed from registers (constants, repeated variables, `z = x + y`);
participants, if any, must hold it. ROWS has one, too: how many rows there are under the keys of its one participant,
whose other columns nobody asks for. After a match at any depth its code runs (filters and derived registers,
expression_vm.py), then negated atoms whose last variable this is are looked at (reposition.blocked).

**Counting without enumerating.** Where the variables below a binding fall into groups that share no atom and no
filter, their counts multiply: the plan cuts the depths into *blocks*, a chain of depths each, with child blocks that
are counted one after the other under each binding of the chain. For rows there is one block. A block that depends on
some of the bindings above it only remembers its counts (block_memo.py). A last depth with one participant counts its
run without walking it. The counts of groups are rows, and so are sums of products (blocks.py).

**Existential suffix.** Depths from `until` on do not reach the head: the first row found below a binding of the head
sends the walk back to it.

The kernel can stop anywhere between two nodes and go on later, since all its state is in its arguments: when `out` is
full, when the trace has no more room for records, and when `budget` steps are spent, so that the caller can look at
signals, clocks and limits. A walk may be kept to the subtree below a binding (`STAY`), which is how maintenance redoes
a part.

`tracing_triejoin` writes the records of a trace (sensitivity/records.py). `triejoin` is the same source with None for
the trace, which is a compilation of its own that contains none of that. `triejoin_anew` begins again with a walk that
has been run.
"""

from __future__ import annotations

import numpy as np

from lftj.join.block_memo import counted_before, note_count
from lftj.join.blocks import NO_BLOCK, TOO_LARGE, add_rows, begin_product, multiplied
from lftj.join.expression_vm import FAILS, HOLDS, run_code
from lftj.join.join_state import (
    AHEAD,
    BLOCK,
    CANDIDATE,
    CHILD,
    CODE_HI,
    CODE_LO,
    COUNT,
    COUNTING,
    DEPTH,
    ENTER,
    EPOCH,
    EPOCH_DEPTH,
    FIRST,
    FOLLOWS,
    FUSED,
    JOIN,
    KIND,
    LANDED,
    LEAF,
    LOOKED,
    MATCHES,
    NEG_HI,
    OPENS,
    PAIR,
    PARENT,
    PART_HI,
    PART_LO,
    RESULT,
    ROWS,
    SIZE,
    SLOTS,
    STAMP,
    STAMPED,
    STAY,
    STEPS,
    SUM,
    TEST_HI,
    TOP,
    UNTIL,
    VALUE_HI,
    VALUE_LO,
    WEIGHS,
    WRITTEN,
    write_row,
)
from lftj.join.leaf_dedup import stamped_leaf, stamped_two
from lftj.join.leaf_lookups import looked_leaf, looked_pair
from lftj.join.leapfrog import (
    LEAF_FULL,
    LEAF_NEXT,
    MATCHED,
    NODE_DONE,
    NODE_STOPPED,
    count_run,
    forget,
    last_two,
    leap,
    note_looks,
    open_node,
    pair_leaf,
    past_match,
    room_for,
    steps_recorded,
    value_matches,
)
from lftj.join.reposition import blocked, blocked_until, older
from lftj.join.trie import OPENED, UNIQUE, look_ahead, open_, run_length
from scantree._jit import kernel, shared

# Statuses; larger ones are those of the machine plus ERROR.
FINISHED, FULL, PAUSED, OVERFLOW, CROWDED, ERROR = 0, 1, 2, 3, 4, 16
# How a depth goes on (`control[ENTER]`): after a match, by opening its node, from a state inside a leapfrog
AFTER, OPENING, WITHIN = 0, 1, 2


@shared
def tracing_triejoin(mem, walk, trace, out, budget):
    """Walk on from the state `walk` is in.

    Stops at the end (FINISHED), when `out` int64[h, n] is full (FULL) or when about `budget` steps are made
    (PAUSED). A count is left in `blocks[0, COUNT]`, rows in `out[:, : control[WRITTEN]]`; the caller empties `out`
    and sets WRITTEN to 0 before it calls again. CROWDED: a site of `trace` has no room for what may come; the
    caller empties its buffer and sets the fills to 0. OVERFLOW: a count exceeds int64. ERROR + s: the machine
    stopped with status s.
    """
    depths, parts, frames, blocks, control, regs = (
        walk.depths,
        walk.parts,
        walk.frames,
        walk.blocks,
        walk.control,
        walk.regs,
    )
    counting = control[COUNTING] != 0
    room = out.shape[1]
    d, enter = control[DEPTH], control[ENTER]
    until, stay = control[UNTIL], control[STAY]
    stop = control[STEPS] + budget
    status = FINISHED
    while d > stay:
        if control[STEPS] >= stop:
            status = PAUSED
            break
        if control[WRITTEN] >= room and (not counting or control[RESULT]):
            status = FULL
            break
        if trace is not None and not room_for(walk, trace, d):
            status = CROWDED
            break
        matched, counted, block = False, False, NO_BLOCK
        if depths[d, KIND] == JOIN:
            alive = open_node(mem, walk, trace, d) if enter == OPENING else True
            if trace is None and control[STAMP] and depths[d, LEAF]:
                if alive and not stamped_leaf(mem, walk, d, out, room):
                    enter = WITHIN
                    continue
                alive = False
            if (
                alive
                and depths[d, LEAF]
                and depths[d, CODE_LO] == depths[d, CODE_HI]
                and depths[d, PART_HI] == depths[d, TEST_HI]
                and until > d
                and depths[d, WEIGHS] == 0
            ):
                m = depths[d, PART_HI] - depths[d, PART_LO]
                if m == 2:
                    limit = np.int64(-1) if counting else room - control[WRITTEN]
                    if not pair_leaf(mem, walk, trace, d, out, limit):
                        enter = WITHIN
                        continue
                    alive = False
                elif m == 1 and counting and enter == OPENING and frames[parts[depths[d, PART_LO]], UNIQUE]:
                    length = count_run(mem, walk, d)
                    control[STEPS] += 1
                    depths[d, MATCHES] += length
                    add_rows(walk, d, length)
                    alive = False
            if trace is None and alive and depths[d, FUSED] == LOOKED:
                # Of an existential suffix the first row is enough.
                limit = room if until > d else control[WRITTEN] + 1
                if depths[d, PART_HI] - depths[d, PART_LO] == 1:
                    alive = not looked_leaf(mem, walk, d, out, limit, stop, until <= d)
                else:
                    alive = not looked_pair(mem, walk, d, out, limit, stop)
                if until <= d and control[WRITTEN] == limit:
                    d, enter = until - 1, AFTER
                    continue
                if alive:
                    enter = WITHIN
                    continue
            if alive and enter == AFTER:
                alive = past_match(walk, d)
            if alive and depths[d, FUSED] == PAIR:
                outcome = last_two(mem, walk, trace, d, out, stop)
                if trace is not None and outcome >= LEAF_NEXT:
                    if outcome == NODE_STOPPED:
                        enter = WITHIN
                    else:
                        d += 1
                        enter = OPENING
                    continue
                if outcome != NODE_DONE:
                    # In the leaf that is full, or after a match whose leaf is done.
                    d += outcome
                    enter = WITHIN if outcome == LEAF_FULL else AFTER
                    continue
            elif alive:
                if trace is None and depths[d, FUSED] == STAMPED and control[STAMP] and d > control[EPOCH_DEPTH]:
                    outcome = stamped_two(mem, walk, d, out, stop)
                else:
                    outcome = leap(mem, walk, trace, d)
                if outcome > MATCHED:
                    enter = WITHIN
                    continue
                matched = outcome == MATCHED
                regs[d] = depths[d, CANDIDATE]
        elif enter == OPENING and depths[d, KIND] == ROWS:
            f = parts[depths[d, PART_LO]]
            control[STEPS] += 1
            matched = open_(mem, frames, f)
            if matched:
                regs[d] = run_length(mem, frames, f)
                if counting:
                    depths[d, MATCHES] += 1
                    add_rows(walk, d, regs[d])
                    matched = False
        elif enter == OPENING:
            stopped = run_code(walk.code, depths[d, VALUE_LO], depths[d, VALUE_HI], regs, walk.ranks, walk.cell)
            if stopped > FAILS:
                status = ERROR + stopped
                break
            matched = stopped == HOLDS and value_matches(mem, walk, trace, d, regs[d])
        if matched:
            depths[d, MATCHES] += 1
            if d <= control[EPOCH_DEPTH]:
                control[EPOCH] += 1
            forget(walk, d)
            if depths[d, AHEAD] >= 0:
                look_ahead(mem, frames, depths[d, AHEAD], depths[d, FOLLOWS])
            enter = AFTER
            if depths[d, CODE_LO] < depths[d, CODE_HI]:
                stopped = run_code(walk.code, depths[d, CODE_LO], depths[d, CODE_HI], regs, walk.ranks, walk.cell)
                if stopped > FAILS:
                    status = ERROR + stopped
                    break
                if stopped == FAILS:
                    continue
            if depths[d, PART_HI] < depths[d, NEG_HI]:
                control[STEPS] += depths[d, NEG_HI] - depths[d, PART_HI]
                if trace is not None and depths[d, KIND] == JOIN:
                    note_looks(walk, trace, d, regs[d])
                if blocked(mem, frames, walk, d):
                    # The steps of an INTERVAL depth are those of the leapfrog join, whatever is blocked.
                    if depths[d, KIND] == JOIN and (trace is None or not steps_recorded(walk, trace, d)):
                        depths[d, CANDIDATE], looked = blocked_until(mem, frames, walk, d)
                        control[STEPS] += looked
                    continue
            if depths[d, NEG_HI] < depths[d, TEST_HI]:
                control[STEPS] += depths[d, TEST_HI] - depths[d, NEG_HI]
                if not older(mem, frames, walk, d):
                    continue
            if depths[d, LEAF]:
                if not counting:
                    blocks[depths[d, BLOCK], COUNT] += 1
                    write_row(walk, out)
                else:
                    add_rows(walk, d, 1)
                if until <= d:
                    d = until - 1
            elif depths[d, CHILD] >= 0:
                block = depths[d, CHILD]
                begin_product(walk, d)
            else:
                d += 1
                enter = OPENING
        else:
            # Depth d is exhausted.
            enter = AFTER
            if not depths[d, FIRST]:
                d -= 1
                continue
            block = depths[d, BLOCK]
            d = blocks[block, PARENT]
            if d < 0:
                break
            counted = True
        if trace is None:
            # The blocks below the binding of depth d, one after the other: what was counted just now, then those whose
            # counts are known, up to one that is to be counted.
            while block >= 0:
                if counted:
                    note_count(walk, block)
                else:
                    blocks[block, COUNT] = blocks[block, SUM] = blocks[block, SIZE] = 0
                    if blocks[block, SLOTS] == 0 or not counted_before(walk, block):
                        d = blocks[block, TOP]
                        enter = OPENING
                        break
                block, counted = multiplied(walk, d, block, out), False
            if block == TOO_LARGE:
                status = OVERFLOW
                break
    control[DEPTH], control[ENTER] = d, enter
    return status


@kernel
def triejoin(mem, walk, out, budget):
    """Walk on, recording nothing; as `tracing_triejoin`."""
    return tracing_triejoin(mem, walk, None, out, budget)


@kernel
def triejoin_anew(mem, walk, out, budget):
    """As `triejoin`, from the beginning; the roots of the frames, and what `control` asks for, are set already."""
    frames, depths, control = walk.frames, walk.depths, walk.control
    for f in range(len(frames)):
        frames[f, OPENED] = 0
    for d in range(len(depths)):
        depths[d, MATCHES] = 0
    control[DEPTH], control[ENTER], control[STAY] = 0, OPENING, -1
    control[STEPS], control[LANDED], control[OPENS], control[WRITTEN] = 0, 0, 0, 0
    return triejoin(mem, walk, out, budget)
