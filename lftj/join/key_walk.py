"""Values that are computed from those of other keys, followed from the rows that changed (lftj/recursion/key_rules.py).

A *node* is a key of a head. The walk begins with the keys whose rows changed, finds the nodes above them (the rows that
look them up name the keys that they are for), and computes nodes in topological order, each once: from its rows, with
the values of nodes below as they are now, and of keys that are no node as they were. A node below which nothing changed
keeps its value.

Only what machine code can do is done here: codes, integer sums, counts and extremes of numbers. Whatever is an error,
or is not done here, gives a status; nothing has changed then, and the caller goes on without the kernel, which tells
what is wrong. Steps: a seek per row looked up, and per node and rule.

Source: A. Kahn, *Topological sorting of large networks*, CACM 1962.
"""

from __future__ import annotations

import numpy as np

from lftj.join.expression_vm import HOLDS, NO_VALUE, SIGN, run_code
from scantree._jit import kernel
from scantree.cursor import end_pos, seek_lub
from scantree.layout import Shape, compare
from scantree.prefix import address_at, following

# fmt: off
# Columns of `versions`: where a version lies, and its shape
ROOT, KEYS, COLS, PAGE_BITS, DIR_BITS = range(5)
# Columns of `heads`: versions of the content and of the facts (-1: none), the length of the key, how bindings are
# folded, the rules, the lookups that read the head (from `parts`)
CONTENT, FACTS, WIDTH, FOLD, RULE_LO, RULE_HI, READ_LO, READ_HI = range(8)
# Kinds of FOLD
VALUE_OF, COUNT_OF, SUM_OF_NUMBERS, SUM_OF_UNSIGNED, LEAST, GREATEST = range(6)
# Columns of `ways`, of a rule (its rows under a key of its head) and of a lookup (its rows under the key looked up):
# the head; the version of the rows; registers of its columns, of the key's parts, and places of the key that are sought
# (from `parts`); conditions on the key (from `checks`); the lookups of the rule, its code, the register of its value
HEAD, ROWS, COLUMN_LO, COLUMN_HI, KEY_LO, KEY_HI, GIVEN_LO, GIVEN_HI, CHECK_LO, CHECK_HI = range(10)
LOOK_LO, LOOK_HI, CODE_LO, CODE_HI, RESULT = range(10, 15)
# ... and of a lookup: its rule, and what is done with the value
RULE, USE = 15, 16
WAY = 17
# Kinds of USE: there has to be one, bind it, compare it, there must be none
THERE, BIND, EQUAL, ABSENT = range(4)
# Columns of `checks`: a place of the key, which equals a register or another place
PLACE, OTHER_PLACE, REGISTER = range(3)
# Columns of `nodes`, before the key
OF, WAITING, DIRTY, WAS_THERE, WAS, IS_THERE, IS, LINK = range(8)
NODE = 8
# Cells of `state`: counts; how far a walk is, nodes linked, waiting for their turn and computed; the nodes of a slice
NODES, LINKS, COMPUTED, STAGE, LINKED, QUEUED, TAKEN, SLICE, VALUE_AT = range(9)
# Kinds of STAGE
SEEDING, LINKING, COMPUTING = range(3)
# fmt: on
DONE, FULL, REFUSED, CYCLE, PART = range(5)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BITS, LOW = np.int64(32), np.int64((1 << 32) - 1)


@kernel
def _shape(versions, v):
    """The shape of a version."""
    none = versions[v, ROOT] & 0
    return Shape(versions[v, KEYS], versions[v, COLS], versions[v, PAGE_BITS], versions[v, DIR_BITS], none, none, none)


@kernel
def _slot_of(nodes, table, head, key, width):
    """Where the number of a node, counted from 1, stands in the table, or is to be put; 0 stands there if it is new."""
    hashed = np.uint64(head) * GOLDEN
    for i in range(width):
        hashed = (hashed ^ np.uint64(key[i])) * GOLDEN
        hashed ^= hashed >> np.uint64(29)
    mask = np.int64(len(table) - 1)
    slot = np.int64(hashed >> np.uint64(1)) & mask
    while table[slot] > 0:
        node = table[slot] - 1
        if nodes[node, OF] == head:
            i = 0
            while i < width and nodes[node, NODE + i] == key[i]:
                i += 1
            if i == width:
                break
        slot = (slot + 1) & mask
    return slot


@kernel
def _node_of(nodes, table, state, head, key, width):
    """The number of the node, which is made if it is new; -1 if there is no room for it."""
    slot = _slot_of(nodes, table, head, key, width)
    if table[slot] > 0:
        return table[slot] - 1
    node = state[NODES]
    if node == len(nodes) or 2 * node >= len(table):
        return np.int64(-1)
    table[slot] = node + 1
    nodes[node, :NODE] = 0
    nodes[node, OF] = head
    for i in range(width):
        nodes[node, NODE + i] = key[i]
    state[NODES] = node + 1
    return node


@kernel
def _value_in(mem, versions, v, key, width, out):
    """Whether a version of rows (key..., value) has a row under the key; its value goes to `out[0]`."""
    root, shape = versions[v, ROOT], _shape(versions, v)
    pos = seek_lub(mem, root, shape, key[:width]) if width else np.int64(0)
    if pos >= end_pos(mem, root, shape):
        return False
    at, cap = address_at(mem, root, shape, pos), 1 << shape.page_bits
    if compare(mem, at, cap, key, 1, width) != 0:
        return False
    out[0] = mem[at + width * cap]
    return True


@kernel
def _begin(mem, versions, ways, w, parts, checks, regs, key, prefix):
    """Position of the first row of a way under a key, whose sought part goes to `prefix`; -1 if it can have none."""
    way = ways[w]
    for c in range(way[CHECK_LO], way[CHECK_HI]):
        value = key[checks[c, PLACE]]
        if checks[c, OTHER_PLACE] >= 0:
            if value != key[checks[c, OTHER_PLACE]]:
                return np.int64(-1)
        elif value != regs[checks[c, REGISTER]]:
            return np.int64(-1)
    given = way[GIVEN_HI] - way[GIVEN_LO]
    for i in range(given):
        prefix[i] = key[parts[way[GIVEN_LO] + i]]
    v = way[ROWS]
    if given == 0:
        return np.int64(0)
    return seek_lub(mem, versions[v, ROOT], _shape(versions, v), prefix[:given])


@kernel
def _load(mem, shape, at, way, parts, regs):
    """The columns of the row at an address into the registers of a way."""
    for i in range(way[COLUMN_HI] - way[COLUMN_LO]):
        regs[parts[way[COLUMN_LO] + i]] = mem[at + (i << shape.page_bits)]


@kernel
def _key_from(way, parts, regs, key):
    """The parts of a key from the registers of a way."""
    for i in range(way[KEY_HI] - way[KEY_LO]):
        key[i] = regs[parts[way[KEY_LO] + i]]


@kernel
def _looked_up(mem, versions, heads, ways, parts, nodes, table, regs, rule, key, out):
    """Whether all lookups of a rule hold for the row in the registers; binds what they find."""
    for look in range(rule[LOOK_LO], rule[LOOK_HI]):
        way = ways[look]
        head, use = way[HEAD], way[USE]
        width = heads[head, WIDTH]
        _key_from(way, parts, regs, key)
        node = table[_slot_of(nodes, table, head, key, width)] - 1
        if node >= 0:
            there = nodes[node, IS_THERE] != 0
            out[0] = nodes[node, IS]
        else:
            there = _value_in(mem, versions, heads[head, CONTENT], key, width, out)
        if there == (use == ABSENT):
            return False
        if use == BIND:
            regs[way[RESULT]] = out[0]
        elif use == EQUAL and regs[way[RESULT]] != out[0]:
            return False
    return True


@kernel
def _compute(mem, versions, heads, ways, parts, checks, code, regs, ranks, cell, nodes, table, node, keys, out):
    """Compute a node; `keys` int64[3, k] is scratch. False if that is refused."""
    head = heads[nodes[node, OF]]
    width, fold = head[WIDTH], head[FOLD]
    own, prefix, key = keys[0], keys[1], keys[2]
    for i in range(width):
        own[i] = nodes[node, NODE + i]
    there, value = False, np.int64(0)
    count, high, low = np.int64(0), np.int64(0), np.int64(0)
    if head[FACTS] >= 0 and _value_in(mem, versions, head[FACTS], own, width, out):
        there, value = True, out[0]
    for r in range(head[RULE_LO], head[RULE_HI]):
        rule = ways[r]
        v = rule[ROWS]
        root, shape = versions[v, ROOT], _shape(versions, v)
        given, end, cap = rule[GIVEN_HI] - rule[GIVEN_LO], end_pos(mem, root, shape), 1 << shape.page_bits
        pos = _begin(mem, versions, ways, r, parts, checks, regs, own, prefix)
        while pos >= 0 and pos < end:
            at = address_at(mem, root, shape, pos)
            if compare(mem, at, cap, prefix, 1, given) != 0:
                break
            pos = following(mem, root, shape, pos)
            _load(mem, shape, at, rule, parts, regs)
            if not _looked_up(mem, versions, heads, ways, parts, nodes, table, regs, rule, key, out):
                continue
            cell[NO_VALUE] = 0.0
            if run_code(code, rule[CODE_LO], rule[CODE_HI], regs, ranks, cell) != HOLDS:
                if cell[NO_VALUE] != 0.0:
                    return False
                continue
            found = regs[rule[RESULT]]
            if fold == VALUE_OF:
                if there and value != found:
                    return False
                value = found
            elif fold == LEAST:
                value = min(value, found) if there else found
            elif fold == GREATEST:
                value = max(value, found) if there else found
            elif fold == SUM_OF_NUMBERS:
                high += found >> BITS
                low += found & LOW
            elif fold == SUM_OF_UNSIGNED:
                found ^= SIGN
                high += (found >> BITS) & LOW
                low += found & LOW
            there = True
            count += 1
    if fold == COUNT_OF:
        value = count
    elif fold == SUM_OF_NUMBERS or fold == SUM_OF_UNSIGNED:
        high += low >> BITS
        least, most = np.int64(-(1 << 31)), np.int64(1 << 31)
        if fold == SUM_OF_UNSIGNED:
            least, most = np.int64(0), np.int64(1 << 32)
        if high < least or high >= most:
            return False
        value = (high << BITS) | (low & LOW)
        if fold == SUM_OF_UNSIGNED:
            value ^= SIGN
    nodes[node, IS_THERE], nodes[node, IS] = np.int64(there), value if there else np.int64(0)
    return True


@kernel
def _link(mem, versions, heads, ways, reads, parts, checks, regs, nodes, links, table, state, keys):
    """Find all nodes above those that are there, and link each with those that read it: DONE, FULL or PART."""
    own, prefix, key = keys[0], keys[1], keys[2]
    end_of_slice = state[LINKED] + state[SLICE]
    while state[LINKED] < state[NODES]:
        node = state[LINKED]
        if node == end_of_slice:
            return PART
        head = heads[nodes[node, OF]]
        for i in range(head[WIDTH]):
            own[i] = nodes[node, NODE + i]
        for read in range(head[READ_LO], head[READ_HI]):
            look = reads[read]
            way = ways[look]
            rule = ways[way[RULE]]
            v = way[ROWS]
            root, shape = versions[v, ROOT], _shape(versions, v)
            given, end, cap = way[GIVEN_HI] - way[GIVEN_LO], end_pos(mem, root, shape), 1 << shape.page_bits
            pos = _begin(mem, versions, ways, look, parts, checks, regs, own, prefix)
            while pos >= 0 and pos < end:
                at = address_at(mem, root, shape, pos)
                if compare(mem, at, cap, prefix, 1, given) != 0:
                    break
                pos = following(mem, root, shape, pos)
                _load(mem, shape, at, way, parts, regs)
                _key_from(rule, parts, regs, key)
                above = _node_of(nodes, table, state, rule[HEAD], key, heads[rule[HEAD], WIDTH])
                link = state[LINKS]
                if above < 0 or link == len(links):
                    return FULL
                links[link, 0], links[link, 1] = nodes[node, LINK], above
                nodes[node, LINK] = link + 1
                nodes[above, WAITING] += 1
                state[LINKS] = link + 1
        state[LINKED] = node + 1
    return DONE


@kernel
def walk_keys(
    mem,
    versions,
    heads,
    ways,
    reads,
    parts,
    checks,
    code,
    regs,
    ranks,
    cell,
    seeds,
    nodes,
    links,
    table,
    queue,
    keys,
    state,
):
    """Compute the keys `seeds` int64[m, 1 + k] (head, key...) and what changes above them.

    `nodes` int64[n, NODE + k], `links` int64[l, 2], `table` int64[a power of 2], zeros, `queue` int64[n] and `keys`
    int64[3, k] are room, `state` int64[9] zeros but for SLICE. Returns DONE; FULL: there is too little room; REFUSED: a
    value, or what is done with it, is an error, or may be; CYCLE: nodes are computed from themselves; PART: a slice is
    over, and the next call, with all arrays as they are, goes on.
    """
    out = state[VALUE_AT:]
    if state[STAGE] == SEEDING:
        for s in range(len(seeds)):
            node = _node_of(nodes, table, state, seeds[s, 0], seeds[s, 1:], heads[seeds[s, 0], WIDTH])
            if node < 0:
                return FULL
            nodes[node, DIRTY] = 1
        state[STAGE] = LINKING
    if state[STAGE] == LINKING:
        linked = _link(mem, versions, heads, ways, reads, parts, checks, regs, nodes, links, table, state, keys)
        if linked != DONE:
            return linked
        for node in range(state[NODES]):
            if nodes[node, WAITING] == 0:
                queue[state[QUEUED]] = node
                state[QUEUED] += 1
        state[STAGE] = COMPUTING
    end_of_slice = state[TAKEN] + state[SLICE]
    while state[TAKEN] < state[QUEUED]:
        if state[TAKEN] == end_of_slice:
            return PART
        node = queue[state[TAKEN]]
        state[TAKEN] += 1
        head = heads[nodes[node, OF]]
        for i in range(head[WIDTH]):
            keys[0, i] = nodes[node, NODE + i]
        there = _value_in(mem, versions, head[CONTENT], keys[0], head[WIDTH], out)
        nodes[node, WAS_THERE], nodes[node, WAS] = np.int64(there), out[0] if there else np.int64(0)
        changed = False
        if nodes[node, DIRTY]:
            state[COMPUTED] += 1
            if not _compute(
                mem, versions, heads, ways, parts, checks, code, regs, ranks, cell, nodes, table, node, keys, out
            ):
                return REFUSED
            changed = nodes[node, IS_THERE] != nodes[node, WAS_THERE] or nodes[node, IS] != nodes[node, WAS]
        else:
            nodes[node, IS_THERE], nodes[node, IS] = nodes[node, WAS_THERE], nodes[node, WAS]
        link = nodes[node, LINK]
        while link:
            above = links[link - 1, 1]
            link = links[link - 1, 0]
            if changed:
                nodes[above, DIRTY] = 1
            nodes[above, WAITING] -= 1
            if nodes[above, WAITING] == 0:
                queue[state[QUEUED]] = above
                state[QUEUED] += 1
    return DONE if state[TAKEN] == state[NODES] else CYCLE
