"""The walk: everything a join reads and writes, as arrays, and the names of their columns.

A walk is made by `lftj.plan.lowering` from a plan and the versions it reads, and run by `lftj.join.triejoin`. Nothing
else holds state, so a walk can be stopped anywhere between two steps and go on later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined

Ints = npt.NDArray[np.int64]

# fmt: off
# Columns of `depths`: static
KIND, PART_LO, PART_HI, MOVE_LO, MOVE_HI, VALUE_LO, VALUE_HI, CODE_LO, CODE_HI = range(9)
BLOCK, FIRST, LEAF, CHILD, AHEAD, FOLLOWS, FUSED, BOUND_LO, BOUND_HI = range(9, 18)
# ... and of the walk
CANDIDATE, TURN, AGREE, MATCHES, HIGH = 18, 19, 20, 21, 22
# Static: behind the participants, parts from PART_HI to NEG_HI are the negated atoms looked at after a match, and from
# there to TEST_HI the atoms whose rows must be older than a limit
NEG_HI, TEST_HI = 23, 24
# Static: whether the key is a factor of what is summed
WEIGHS = 25
DEPTH_WIDTH = 26
# Kinds of KIND: keys that participants agree on, one key that is computed, how many rows the run of a participant has
JOIN, VALUE, ROWS = 0, 1, 2
# Kinds of FUSED: a depth is walked together with the last one below it (last_two); it is if that one has stamps
# (stamped_two). And the last one is a loop over matches that are looked up (leaf_lookups.py)
PAIR, STAMPED, LOOKED = 1, 2, 3
# Kinds of `bounds`
FROM_LIMIT, ABOVE_LIMIT, TO_LIMIT, BELOW_LIMIT = 0, 1, 2, 3

# Columns of `blocks`: static, from MEMO on of block_memo.py (SLOTS: 0 without a memo); then the walk's (blocks.py): of
# a block the count, the sum and that of magnitudes; the products of those of its child blocks; of its memo the slot
# that was looked at, lookups, answers, the steps before the last count, those of counts, and whether it is not asked
PARENT, TOP, SIBLING, MEMO, KEYS, SLOTS = range(6)
COUNT, SUM, SIZE, PRODUCT, SUM_PRODUCT, SIZE_PRODUCT, SLOT, LOOKS_BACK, HITS, BEGAN, SPENT, IDLE = range(6, 18)
BLOCK_WIDTH = 18
# Cells of `control`; STAY: the depth above the part of the walk that is walked (-1: all of it); LIMIT: rounds below
# which the rows of tested atoms must be (lftj/recursion)
DEPTH, ENTER, STEPS, OPENS, LANDED, WRITTEN, UNTIL, COUNTING, STAY, LIMIT = range(10)
# ... and leaf_dedup.py: where the table lies (0: none), the key of its first word, the present epoch, the depth down to
# which a match begins a new one
STAMP, STAMP_LOW, EPOCH, EPOCH_DEPTH = 10, 11, 12, 13
# ... and the frame that stands on a row with a limit of its own as its value, -1 without one, and its register
LIMIT_AT, LIMIT_IN = 14, 15
# ... and, of leaf_dedup.py again, how many heads were there already, the key of the table's last word, the epoch that
# the head's own run was last looked at in, how often it was (negative: its keys are stamped), and about how long it is
MET, STAMP_HIGH, OWN_EPOCH, LOOKS, OWN_ROWS = 16, 17, 18, 19, 20
# ... and whether a limit of a row is marked where a tested row is there and not below it (place.older), which counts
# one more
MARKING = 21
# ... and, when counting, whether factors are summed, too, and the first of the registers of the count, the sum and the
# magnitude of a group, whose variables are the first block (0: there is no group)
WEIGHING, RESULT = 22, 23
CONTROL = 24
# fmt: on


class Walk(NamedTuple):
    """Everything a walk reads and writes.

    frames int64[f, trie.WIDTH] · depths int64[n, DEPTH_WIDTH] · parts int64[p]: frames taking part, depth by depth, in
    canonical order, those of negated atoms behind the others · moves int64[q]: frames to forget when the key of a depth
    moves · bounds int64[l, 2]: (kind, register) of comparisons that narrow a depth · blocks int64[b, BLOCK_WIDTH] ·
    code int64[c, 4] and regs int64[r]: expression_vm.py · head int64[h]: registers of the output columns · ranks
    int64[s]: text order of symbols · control int64[CONTROL] · cell float64[machine.CELL] · memo int64[m]: of blocks
    (block_memo.py).
    """

    frames: Ints
    depths: Ints
    parts: Ints
    moves: Ints
    bounds: Ints
    blocks: Ints
    code: Ints
    regs: Ints
    head: Ints
    ranks: Ints
    control: Ints
    cell: npt.NDArray[np.float64]
    memo: Ints


@inlined
def write_row(walk, out):
    """One row of output `out` int64[h, n], from the registers."""
    regs, head, control = walk.regs, walk.head, walk.control
    n = control[WRITTEN]
    for k in range(len(head)):
        out[k, n] = regs[head[k]]
    control[WRITTEN] = n + 1
