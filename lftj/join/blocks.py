"""Counting by blocks: what a walk does with the bindings of a block when it counts, and with sums of products.

The count of a block is multiplied into that of the binding above it, block by block. With WEIGHING so is the sum, over
its bindings, of the product of those of its keys that weigh, which are the factors of a sum: sum a * c over r(a, b),
s(b, c) is, for each b, the sum of a times that of c. Beside it goes the sum of the magnitudes, 0 counting as 1: where
that is an int64, so is every sum, and every product of some factors of a binding. What is larger is KEY_MIN.

Where the bindings of the first block are groups (RESULT), each that has bindings below it is a row: its head, its
count, its sum and the magnitude of that.

Source: M. Abo Khamis, H. Q. Ngo, A. Rudra, FAQ: questions asked frequently (PODS 2016), section 5: variable elimination
in the order of the walk, from its end.
"""

from __future__ import annotations

import numpy as np

from lftj.join.join_state import (
    BLOCK,
    COUNT,
    PRODUCT,
    RESULT,
    SIBLING,
    SIZE,
    SIZE_PRODUCT,
    SUM,
    SUM_PRODUCT,
    TOP,
    WEIGHING,
    WEIGHS,
    write_row,
)
from lftj.join.trie import KEY_MIN
from scantree._jit import inlined, kernel

# In the place of a block: there is none, or what it counts or sums exceeds int64
NO_BLOCK, TOO_LARGE = -1, -2
MOST = 9.2e18


@inlined
def _product(a, b):
    """The product; KEY_MIN if it is too large, which matters only if no factor after it is 0."""
    return a * b if np.abs(np.float64(a)) * np.abs(np.float64(b)) <= MOST else KEY_MIN


@kernel
def _weight(walk, d):
    """(product, magnitude) of those keys that weigh, from the first depth of a block to depth d."""
    weight, size = np.int64(1), np.int64(1)
    for i in range(walk.blocks[walk.depths[d, BLOCK], TOP], d + 1):
        if walk.depths[i, WEIGHS]:
            key = walk.regs[i]
            weight *= key
            size = _product(size, max(np.int64(1), abs(key)) if key > KEY_MIN else key)
    return weight, size


@kernel
def _add_weighed(walk, d, n):
    """Add what `n` bindings of the last depth of a block weigh."""
    blocks, block = walk.blocks, walk.depths[d, BLOCK]
    weight, size = _weight(walk, d)
    blocks[block, SUM] += weight * n
    size = _product(size, n)
    more = np.abs(np.float64(blocks[block, SIZE])) + np.abs(np.float64(size))
    blocks[block, SIZE] = blocks[block, SIZE] + size if more <= MOST else KEY_MIN


@inlined
def add_rows(walk, d, n):
    """Add `n` bindings of the last depth of a block, whose keys do not weigh if there are several."""
    walk.blocks[walk.depths[d, BLOCK], COUNT] += n
    if walk.control[WEIGHING]:
        _add_weighed(walk, d, n)


@inlined
def begin_product(walk, d):
    """Before the child blocks of a binding of depth d are counted."""
    blocks, block = walk.blocks, walk.depths[d, BLOCK]
    blocks[block, PRODUCT] = 1
    if walk.control[WEIGHING]:
        blocks[block, SUM_PRODUCT], blocks[block, SIZE_PRODUCT] = _weight(walk, d)


@inlined
def multiplied(walk, d, block, out):
    """The count of a child block of depth d multiplies those before it: the next child; NO_BLOCK if there is none.

    After the last one the product is added to the block around, or it is a row of `out`. It may be TOO_LARGE.
    """
    blocks, control = walk.blocks, walk.control
    outer, count, weighing = walk.depths[d, BLOCK], blocks[block, COUNT], control[WEIGHING]
    if count == 0:
        return np.int64(NO_BLOCK)
    blocks[outer, PRODUCT] = _product(blocks[outer, PRODUCT], count)
    if weighing:
        blocks[outer, SIZE_PRODUCT] = _product(blocks[outer, SIZE_PRODUCT], blocks[block, SIZE])
        blocks[outer, SUM_PRODUCT] *= blocks[block, SUM]
    sibling = blocks[block, SIBLING]
    if sibling >= 0:
        return sibling
    if np.float64(blocks[outer, COUNT]) + np.abs(np.float64(blocks[outer, PRODUCT])) > MOST:
        return np.int64(TOO_LARGE)
    if weighing and np.float64(blocks[outer, SIZE]) + np.abs(np.float64(blocks[outer, SIZE_PRODUCT])) > MOST:
        return np.int64(TOO_LARGE)
    if outer == 0 and control[RESULT]:
        walk.regs[control[RESULT]] = blocks[outer, PRODUCT]
        walk.regs[control[RESULT] + 1] = blocks[outer, SUM_PRODUCT]
        walk.regs[control[RESULT] + 2] = blocks[outer, SIZE_PRODUCT]
        write_row(walk, out)
        return sibling
    blocks[outer, COUNT] += blocks[outer, PRODUCT]
    if weighing:
        blocks[outer, SUM] += blocks[outer, SUM_PRODUCT]
        blocks[outer, SIZE] += blocks[outer, SIZE_PRODUCT]
    return sibling
