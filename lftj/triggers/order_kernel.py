"""Orders: the entries of a table by one of their keys, with the sums of every run of them in O(log n).

An order is a B+-tree for each prefix, the other keys that a statement knows, with sums in its nodes:

    node     entries | whether it is a leaf | keys [FAN] | children [FAN] | per value: sums [FAN]

Of a leaf the keys are those of entries and the sums their values; of an inner node each key is at most the least one
of the child, and each sum that of the child. An entry whose values are all 0 goes; a node that has become small joins
a neighbour. Nodes lie in one array of words, `nodes`, those that went in a list by their width (first word: the next).
Sums wrap: who adds sees to it that those of all runs are of 64 bits (`event_kernel._orders_take`).

The sum below a key adds up one node for each level, so one over an interval takes two walks down; where a running sum
first passes a bound is found by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scantree._jit import inlined, kernel

Words = npt.NDArray[np.int64]

FAN, SMALL = 16, 4
ENTRIES, LEAF, NODE_KEYS, CHILDREN = 0, 1, 2, 2 + FAN
SUMS = 2 + 2 * FAN
# Levels that a tree never exceeds: each but the root has SMALL entries or more, or could not join a neighbour.
LEVELS = 24
# Cells of `heap`: the first word that was never used; the first free node of so many values.
TOP, FREE = 0, 1


class Trees(NamedTuple):
    """`nodes` int64[words] · `heap` int64[FREE + most values + 1] · `path` int64[2, LEVELS]: of a walk down."""

    nodes: Words
    heap: Words
    path: Words


@inlined
def node_words(values):
    """Words of a node with so many values."""
    return SUMS + values * FAN


@kernel
def has_nodes(trees, values):
    """Whether an addition finds the nodes that it may need."""
    return trees.heap[TOP] + (LEVELS + 1) * node_words(values) <= len(trees.nodes)


@kernel
def new_node(trees, values, leaf):
    """A node without entries."""
    nodes, heap = trees.nodes, trees.heap
    node = heap[FREE + values]
    if node > 0:
        heap[FREE + values] = nodes[node]
    else:
        node = heap[TOP]
        heap[TOP] += node_words(values)
    nodes[node + ENTRIES], nodes[node + LEAF] = 0, leaf
    return node


@inlined
def _free(trees, values, node):
    """A node goes."""
    trees.nodes[node] = trees.heap[FREE + values]
    trees.heap[FREE + values] = node


@inlined
def _place(nodes, node, key):
    """The last entry of a node whose key is at most `key`; -1 if there is none."""
    at = nodes[node + ENTRIES] - 1
    while at >= 0 and nodes[node + NODE_KEYS + at] > key:
        at -= 1
    return at


@kernel
def _move(nodes, values, source, first, n, target, at):
    """Copy `n` entries from `first` of a node to `at` of another, or of the same one from the far end on."""
    forward = not (source == target and at > first)
    for j in range(n):
        i = j if forward else n - 1 - j
        nodes[target + NODE_KEYS + at + i] = nodes[source + NODE_KEYS + first + i]
        nodes[target + CHILDREN + at + i] = nodes[source + CHILDREN + first + i]
        for v in range(values):
            nodes[target + SUMS + v * FAN + at + i] = nodes[source + SUMS + v * FAN + first + i]


@inlined
def _total(nodes, node, v):
    """The sum of value `v` over the entries of a node."""
    total = np.int64(0)
    for i in range(nodes[node + ENTRIES]):
        total += nodes[node + SUMS + v * FAN + i]
    return total


@kernel
def add_under(trees, values, root, key, amounts, at):
    """Add amounts under a key; returns the root, another one if the tree grew or shrank. There are nodes for it."""
    nodes, path = trees.nodes, trees.path
    node, depth = root, 0
    while nodes[node + LEAF] == 0:
        i = max(np.int64(0), _place(nodes, node, key))
        if key < nodes[node + NODE_KEYS + i]:
            nodes[node + NODE_KEYS + i] = key
        for v in range(values):
            nodes[node + SUMS + v * FAN + i] += amounts[at + v]
        path[0, depth], path[1, depth] = node, i
        depth += 1
        node = nodes[node + CHILDREN + i]
    i = _place(nodes, node, key)
    if i >= 0 and nodes[node + NODE_KEYS + i] == key:
        alive = np.int64(0)
        for v in range(values):
            nodes[node + SUMS + v * FAN + i] += amounts[at + v]
            alive |= nodes[node + SUMS + v * FAN + i]
        return root if alive != 0 else _remove(trees, values, root, node, i, depth)
    _insert(nodes, values, node, i + 1, key)
    for v in range(values):
        nodes[node + SUMS + v * FAN + i + 1] = amounts[at + v]
    return _split_up(trees, values, root, node, depth) if nodes[node + ENTRIES] == FAN else root


@inlined
def _insert(nodes, values, node, at, key):
    """Make room for an entry with a key at `at`."""
    n = nodes[node + ENTRIES]
    _move(nodes, values, node, at, n - at, node, at + 1)
    nodes[node + NODE_KEYS + at] = key
    nodes[node + ENTRIES] = n + 1


@kernel
def _split_up(trees, values, root, node, depth):
    """Split a full node, and those above it that become full; returns the root."""
    nodes, path, half = trees.nodes, trees.path, FAN // 2
    while nodes[node + ENTRIES] == FAN:
        right = new_node(trees, values, nodes[node + LEAF])
        _move(nodes, values, node, half, FAN - half, right, 0)
        nodes[node + ENTRIES], nodes[right + ENTRIES] = half, FAN - half
        if depth == 0:
            root = new_node(trees, values, 0)
            nodes[root + ENTRIES] = 1
            nodes[root + NODE_KEYS], nodes[root + CHILDREN] = nodes[node + NODE_KEYS], node
            above, i = root, np.int64(0)
        else:
            depth -= 1
            above, i = path[0, depth], path[1, depth]
        _insert(nodes, values, above, i + 1, nodes[right + NODE_KEYS])
        nodes[above + CHILDREN + i + 1] = right
        for v in range(values):
            nodes[above + SUMS + v * FAN + i] = _total(nodes, node, v)
            nodes[above + SUMS + v * FAN + i + 1] = _total(nodes, right, v)
        node = above
    return root


@kernel
def _remove(trees, values, root, node, i, depth):
    """Take entry `i` out of a leaf; nodes that are small join a neighbour, if both fit in one. Returns the root."""
    nodes, path = trees.nodes, trees.path
    while True:
        n = nodes[node + ENTRIES] - 1
        _move(nodes, values, node, i + 1, n - i, node, i)
        nodes[node + ENTRIES] = n
        if depth == 0 or n >= SMALL:
            break
        depth -= 1
        above, i = path[0, depth], path[1, depth]
        if n == 0:
            _free(trees, values, node)
        else:
            left = i - 1 if i > 0 else i
            if left + 1 >= nodes[above + ENTRIES]:
                return root
            first, second = nodes[above + CHILDREN + left], nodes[above + CHILDREN + left + 1]
            a, b = nodes[first + ENTRIES], nodes[second + ENTRIES]
            if a + b > FAN - SMALL:
                return root
            _move(nodes, values, second, 0, b, first, a)
            nodes[first + ENTRIES] = a + b
            for v in range(values):
                nodes[above + SUMS + v * FAN + left] += nodes[above + SUMS + v * FAN + left + 1]
            _free(trees, values, second)
            i = left + 1
        node = above
    while nodes[root + LEAF] == 0 and nodes[root + ENTRIES] == 1:
        child = nodes[root + CHILDREN]
        _free(trees, values, root)
        root = child
    return root


@kernel
def sum_below(nodes, root, v, key, inclusive):
    """The sum of value `v` over the entries with a key below `key`, or at most `key`."""
    node, total = root, np.int64(0)
    while True:
        n, leaf = nodes[node + ENTRIES], nodes[node + LEAF] == 1
        i = 0
        while i < n and (nodes[node + NODE_KEYS + i] < key or (inclusive and nodes[node + NODE_KEYS + i] == key)):
            i += 1
        # Of an inner node, the child before `i` is the last that may have such keys: not all of its are.
        whole = i if leaf else i - 1
        for j in range(whole):
            total += nodes[node + SUMS + v * FAN + j]
        if leaf or i == 0:
            return total
        node = nodes[node + CHILDREN + i - 1]


@kernel
def sum_of(nodes, root, v):
    """The sum of value `v` over all entries."""
    return _total(nodes, root, v)


@kernel
def first_above(nodes, root, v, bound):
    """(the least key up to which the sum of value `v` is more than `bound`, whether there is one).

    For values that are not negative.
    """
    node, below = root, np.int64(0)
    while True:
        n, i = nodes[node + ENTRIES], np.int64(0)
        while i < n and below + nodes[node + SUMS + v * FAN + i] <= bound:
            below += nodes[node + SUMS + v * FAN + i]
            i += 1
        if i == n:
            return np.int64(0), False
        if nodes[node + LEAF] == 1:
            return nodes[node + NODE_KEYS + i], True
        node = nodes[node + CHILDREN + i]
