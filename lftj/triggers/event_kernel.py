"""The event kernel: the statements of a program, interpreted event by event.

Of one event all right sides are evaluated over the maps as they are before it, into a buffer of additions; then these
are made. A statement is a run of instructions (rows of `code`), each over registers, one int64 array: the columns of
the event, constants, variables, intermediate values. Maps that share a table (twins.py) share their statements: such
a statement has a weight for each of its *members*.

    READ      values of an entry whose keys are known multiply the weights; without entry the statement ends
    TEST      a comparison of two registers: if it does not hold, back to the last loop
    TIMES     a register multiplies one weight, or all (B is -1)
    ADD, SUBTRACT, MULTIPLY, MOVE, FLOOR, GREATEST, LEAST   a register is computed
    EMIT      the weights are to be added to an entry, or taken from it (A is 1)
    VALUE     a register gets the value of a map without keys
    FIRST_KEY a register gets the key at which a running sum passes a bound, as an end of an interval
    KEEP      the first weight is added to a register, and weights are 1 again
    SET       the values of a table without keys become those of registers
    RANGE     sums over an interval of one key multiply the weights (order_kernel.py); an empty one ends the statement
    ADD_UP    the same, and goes on
    SLICE     for every entry that agrees with the known keys: the others are bound, values multiply the weights
    ALL       for every entry of a table

More instructions: a number here, its case in `_evaluate`, and its lowering (lowered.py).

Products and sums are checked: one that no int64 holds ends the run (OVERFLOW), as does a lack of room (GROW: `state`
says of what), which the caller makes before it goes on. `state` says where a run stands, so that it goes on there.
Where events are taken back (UNDOING), weights and entries wrap instead: the sums that a deletion reads have its row in
them, and their products may be too large ((x + y)**2 grew by 2*x*y + y**2, and goes down by 2*(x + y)*y - y**2). Modulo
2**64 all is exact, and so are the entries at the end, which fitted before. So do the registers of terms that only
multiply weights (WEIGHS); the others are checked as ever: what is compared, and keys, have no meaning modulo 2**64.

Measured (sum and count of a two-way join by key, 10^7 rows): an event takes what its cache misses take, one for each
table it reads or changes. So sum and count are twins in one table, and the slots of the event AHEAD are asked for
while this one is worked on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lftj.triggers.checked_arithmetic import difference_overflows, exceeds, magnitude, product_overflows, sum_overflows
from lftj.triggers.order_kernel import (
    ENTRIES,
    FREE,
    add_under,
    first_above,
    has_nodes,
    new_node,
    sum_below,
    sum_of,
)
from lftj.triggers.table_kernel import (
    CAP,
    FIRST,
    FIRST_ORDER,
    HELD,
    KEYS,
    LINKS,
    OFF,
    ORDERS,
    SLICES,
    TOP,
    VALUES,
    WIDTH,
    ask_for,
    find,
    link,
    place,
    room_for_one,
    unlink,
    vacate,
)
from scantree._jit import inlined, kernel

Words = npt.NDArray[np.int64]

READ, TEST, TIMES, ADD, SUBTRACT, MULTIPLY, MOVE, FLOOR, GREATEST, LEAST, EMIT, VALUE, FIRST_KEY, KEEP, SET = range(15)
ADD_UP, RANGE, SLICE, ALL = range(15, 19)
# Comparisons, in the order of numbers that `lowered.py` gives them.
EQ, NE, LT, LE, GT, GE = range(6)
# Columns of `code`: the instruction, and what it is about: a table (or a comparison); registers or lists; where in
# `lists` the registers of its keys stand, and those of the values that its members read; how many members.
OP, TABLE, A, B, C, LIST, READS, MEMBERS, CELLS = range(9)
# The last column of FIRST_KEY, the instruction after an empty interval, and of arithmetic: the result only weighs.
JUMP, FLAGS, WEIGHS = MEMBERS, MEMBERS, 1
# Cells of `state`. UNDOING: weights and entries wrap.
EVENT, PHASE, AT, ADDITIONS, LOGGED, NEED, STEPS, STATEMENT, FINAL, UNDOING, STATE = range(11)
EVALUATING, WRITING = 0, 1
DONE, OVERFLOW, GROW_MEMORY, GROW_ADDITIONS, GROW_LOG, GROW_NODES = range(6)
# Columns of an addition before its amounts, one for each value of a table, which its keys follow; and of a line of the
# log before the old values, the new ones and the keys. NEGATED: the amounts, modulo 2**64, are those of a subtraction.
TARGET, NEGATED, AMOUNTS = 0, 1, 2
WHEN, LOG_TABLE, OLD = 0, 1, 2
KEY_MIN, KEY_MAX = np.int64(np.iinfo(np.int64).min), np.int64(np.iinfo(np.int64).max)
# How many events later the slots are asked for.
AHEAD = 6


class EventCode(NamedTuple):
    """A program: `code` int64[instructions, CELLS].

    `lists` int64[...]: registers · `begins` int64[statements + 1]: in `code` · `spans` int64[kinds + 1]: the statements
    of each kind of event · `asks` int64[n, 2]: (table, the list of columns that are its keys) of slots that events of a
    kind need, from `asked` int64[kinds + 1] on · `final` int64[1]: the instruction by which maps are worked out anew
    after an event, -1 if none are.
    """

    code: Words
    lists: Words
    begins: Words
    spans: Words
    asks: Words
    asked: Words
    final: Words


class EventWork(NamedTuple):
    """What a run works in: `registers`, and `buffer` for keys, int64[...].

    `weight` int64[members] · `cursors` int64[instructions], `weights` int64[instructions, members]: of loops · `loops`
    int64[...]: those that are open · `additions` int64[n, AMOUNTS + members + keys] · `log` int64[n, OLD + 2 * members
    + keys] · `state` int64[STATE].
    """

    registers: Words
    buffer: Words
    weight: Words
    cursors: Words
    weights: Words
    loops: Words
    additions: Words
    log: Words
    state: Words


@inlined
def _holds(op, a, b):
    """Whether a comparison holds."""
    if op == EQ:
        return a == b
    if op == NE:
        return a != b
    if op == LT:
        return a < b
    if op == LE:
        return a <= b
    if op == GT:
        return a > b
    return a >= b


@inlined
def _keys_of(code, i, work):
    """The registers that an instruction lists, into the buffer."""
    at = code.code[i, LIST]
    for j in range(code.lists[at]):
        work.buffer[j] = work.registers[code.lists[at + 1 + j]]


@inlined
def _times_entry(tables, code, i, word, before, work):
    """Make the weights `before` times the values of an entry that members read: 1; 0 if all are 0, -1 if too large."""
    at, values = code.code[i, READS], word + 1 + tables.desc[code.code[i, TABLE], KEYS]
    alive = np.int64(0)
    for v in range(code.code[i, MEMBERS]):
        value, old = tables.mem[values + code.lists[at + v]], before[v]
        product = old * value
        if product_overflows(old, value, product) and work.state[UNDOING] == 0:
            return np.int64(-1)
        work.weight[v] = product
        alive |= product
    return np.int64(alive != 0)


@kernel
def _first_key(tables, code, work, i):
    """Find the end of an interval; whether the interval is not empty. The order has no prefix.

    Of the instruction, TABLE is the order, A the register of the bound, B the value that is added up, LIST 1 for a low
    end and 0 for a high one, READS what is added to the key that is found.
    """
    is_low, bound, nodes = code.code[i, LIST] == 1, work.registers[code.code[i, A]], tables.trees.nodes
    t, made = code.code[i, TABLE], code.code[i, C]
    word = find(tables.mem, tables.desc, t, work.buffer, 0)
    if bound < 0:
        work.registers[made] = KEY_MIN
        return is_low
    key, there = np.int64(0), False
    if word >= 0:
        key, there = first_above(nodes, tables.mem[word + 1], code.code[i, B], bound)
    if not there:
        work.registers[made] = KEY_MAX
        return not is_low
    more = code.code[i, READS]
    if (more > 0 and key == KEY_MAX) or (more < 0 and key == KEY_MIN):
        return False
    work.registers[made] = key + more
    return True


@kernel
def _times_range(tables, code, work, i):
    """Multiply the weights by sums over an interval: 1, 0 if all are 0, -1 if too large.

    Of the instruction, TABLE is the order, A and B the registers of the bounds (-1: none), and C whether each is open.
    """
    nodes, t, registers = tables.trees.nodes, code.code[i, TABLE], work.registers
    _keys_of(code, i, work)
    word = find(tables.mem, tables.desc, t, work.buffer, 0)
    if word < 0:
        work.weight[: code.code[i, MEMBERS]] = 0
        return np.int64(0)
    root, at, alive = tables.mem[word + 1 + tables.desc[t, KEYS]], code.code[i, READS], np.int64(0)
    low, high, is_open = code.code[i, A], code.code[i, B], code.code[i, C]
    empty = low >= 0 and high >= 0 and registers[low] >= registers[high]
    if empty and registers[low] == registers[high]:
        empty = is_open == 3  # with one end open, both sums are of the same keys
    for v in range(code.code[i, MEMBERS]):
        value, total = code.lists[at + v], np.int64(0)
        if not empty:
            # A sum over an interval is one of 64 bits: those of all magnitudes are (`_orders_take`).
            if high >= 0:
                total = sum_below(nodes, root, value, registers[high], is_open & 2 == 0)
            else:
                total = sum_of(nodes, root, value)
            if low >= 0:
                total -= sum_below(nodes, root, value, registers[low], is_open & 1 == 1)
        product = work.weight[v] * total
        if product_overflows(work.weight[v], total, product) and work.state[UNDOING] == 0:
            return np.int64(-1)
        work.weight[v] = product
        alive |= product
    return np.int64(alive != 0)


@inlined
def _first(tables, code, i, work):
    """The word of the first entry that a loop goes through; -1 if there is none."""
    mem, desc, m = tables.mem, tables.desc, code.code[i, TABLE]
    if code.code[i, OP] == ALL:
        return _next_held(mem, desc, m, desc[m, OFF])
    t = desc[m, FIRST] + code.code[i, A]
    _keys_of(code, i, work)
    head = find(mem, desc, t, work.buffer, 0)
    if head < 0:
        return np.int64(-1)
    return desc[m, OFF] + (mem[head + 1 + desc[t, KEYS]] - 1) * desc[m, WIDTH]


@inlined
def _next(tables, code, i, word):
    """The word of the entry after the one at `word`, of those that a loop goes through; -1 behind the last one."""
    mem, desc, m = tables.mem, tables.desc, code.code[i, TABLE]
    if code.code[i, OP] == ALL:
        return _next_held(mem, desc, m, word + desc[m, WIDTH])
    after = mem[word + desc[m, LINKS] + 2 * code.code[i, A]]
    return desc[m, OFF] + (after - 1) * desc[m, WIDTH] if after > 0 else np.int64(-1)


@inlined
def _next_held(mem, desc, m, word):
    """The word of the first entry of a table at or after `word`; -1 if there is none."""
    end = desc[m, OFF] + desc[m, CAP] * desc[m, WIDTH]
    while word < end:
        if mem[word] == HELD:
            return word
        word += desc[m, WIDTH]
    return np.int64(-1)


@inlined
def _bind(tables, code, i, word, registers):
    """Give the registers of a loop the keys of an entry: `lists` has pairs of (key, register) from C on."""
    at = code.code[i, C]
    for j in range(code.lists[at]):
        registers[code.lists[at + 2 + 2 * j]] = tables.mem[word + 1 + code.lists[at + 1 + 2 * j]]


@kernel
def _evaluate(tables, code, work, i):
    """Evaluate the statement that begins with instruction `i`: its additions are appended. Returns DONE, or why not."""
    mem, desc, ops, registers, state, weight = (
        tables.mem,
        tables.desc,
        code.code,
        work.registers,
        work.state,
        work.weight,
    )
    open_loops, last = 0, len(work.additions)
    weight[:] = 1
    while True:
        op, m = ops[i, OP], ops[i, TABLE]
        state[STEPS] += 1
        goes_on = True
        if op == READ:
            _keys_of(code, i, work)
            word = find(mem, desc, m, work.buffer, 0)
            if word < 0:
                goes_on = False
            else:
                found = _times_entry(tables, code, i, word, weight, work)
                if found < 0:
                    return OVERFLOW
                goes_on = found > 0
        elif op == TIMES:
            value, one = registers[ops[i, A]], ops[i, B]
            for v in range(ops[i, MEMBERS]):
                if one < 0 or one == v:
                    product = weight[v] * value
                    if product_overflows(weight[v], value, product) and state[UNDOING] == 0:
                        return OVERFLOW
                    weight[v] = product
        elif op == TEST:
            goes_on = _holds(m, registers[ops[i, A]], registers[ops[i, B]])
        elif op == EMIT:
            at = state[ADDITIONS]
            if at == last:
                return GROW_ADDITIONS
            addition, values, alive = work.additions[at], desc[m, VALUES], np.int64(0)
            addition[TARGET], addition[NEGATED] = m, ops[i, A]
            for v in range(values):
                addition[AMOUNTS + v] = weight[v] if ops[i, A] == 0 else -weight[v]
                alive |= weight[v]
            listed = ops[i, LIST]
            for j in range(code.lists[listed]):
                addition[AMOUNTS + values + j] = registers[code.lists[listed + 1 + j]]
            if alive != 0:
                state[ADDITIONS] = at + 1
            goes_on = False
        elif op == VALUE:
            word = find(mem, desc, m, work.buffer, 0)
            registers[ops[i, C]] = mem[word + 1 + ops[i, A]] if word >= 0 else 0
        elif op == FIRST_KEY:
            if not _first_key(tables, code, work, i):
                i = ops[i, JUMP]  # the interval is empty, and with it all sums
                continue
        elif op == KEEP:
            value = registers[ops[i, C]] + weight[0]
            if sum_overflows(registers[ops[i, C]], weight[0], value) and state[UNDOING] == 0:
                return OVERFLOW
            registers[ops[i, C]] = value
            weight[:] = 1
        elif op == SET:
            if state[ADDITIONS] == last:
                return GROW_ADDITIONS
            word, alive = find(mem, desc, m, work.buffer, 0), np.int64(0)
            addition = work.additions[state[ADDITIONS]]
            addition[TARGET], addition[NEGATED] = m, 0
            for v in range(desc[m, VALUES]):
                old, new = mem[word + 1 + v] if word >= 0 else np.int64(0), registers[code.lists[ops[i, LIST] + 1 + v]]
                if difference_overflows(new, old, new - old) and state[UNDOING] == 0:
                    return OVERFLOW
                addition[AMOUNTS + v] = new - old
                alive |= new - old
            if alive != 0:
                state[ADDITIONS] += 1
            goes_on = False
        elif op == RANGE or op == ADD_UP:
            found = _times_range(tables, code, work, i)
            if found < 0:
                return OVERFLOW
            goes_on = found > 0 or op == ADD_UP
        elif op >= SLICE:
            word = _first(tables, code, i, work)
            if word < 0:
                goes_on = False
            else:
                _bind(tables, code, i, word, registers)
                work.cursors[i] = word
                for v in range(ops[i, MEMBERS]):
                    work.weights[i, v] = weight[v]
                work.loops[open_loops] = i
                open_loops += 1
                if _times_entry(tables, code, i, word, work.weights[i], work) < 0:
                    return OVERFLOW
        else:
            a, b = registers[ops[i, A]], registers[ops[i, B]]
            wraps = state[UNDOING] == 1 and ops[i, FLAGS] == WEIGHS
            if op == ADD:
                value = a + b
                if sum_overflows(a, b, value) and not wraps:
                    return OVERFLOW
            elif op == SUBTRACT:
                value = a - b
                if difference_overflows(a, b, value) and not wraps:
                    return OVERFLOW
            elif op == MULTIPLY:
                value = a * b
                if product_overflows(a, b, value) and not wraps:
                    return OVERFLOW
            elif op == FLOOR:
                value = a // b
            elif op == GREATEST:
                value = max(a, b)
            elif op == LEAST:
                value = min(a, b)
            else:
                value = a
            registers[ops[i, C]] = value
        if goes_on:
            i += 1
            continue
        word = np.int64(-1)
        while open_loops > 0:
            i = work.loops[open_loops - 1]
            word = _next(tables, code, i, work.cursors[i])
            if word >= 0:
                break
            open_loops -= 1
        if word < 0:
            return DONE
        _bind(tables, code, i, word, registers)
        work.cursors[i] = word
        if _times_entry(tables, code, i, word, work.weights[i], work) < 0:
            return OVERFLOW
        state[STEPS] += 1
        i += 1


@inlined
def _prefix(tables, t, addition, values, work):
    """The prefix of order `t` that an addition has, into the buffer."""
    for i in range(tables.desc[t, KEYS]):
        work.buffer[i] = addition[AMOUNTS + values + tables.columns[t, i]]


@kernel
def _orders_take(tables, work, addition, entry):
    """Whether the orders of a table take an addition: DONE, or why not. Their trees are there then.

    `entry`: the word of the table's entry, -1 if there is none. Of each tree the sum of the magnitudes has to be one of
    64 bits, as then are the sums of all runs of its entries, those in its nodes included.
    """
    mem, desc, m = tables.mem, tables.desc, addition[TARGET]
    values = desc[m, VALUES]
    for t in range(desc[m, FIRST_ORDER], desc[m, FIRST_ORDER] + desc[m, ORDERS]):
        if not has_nodes(tables.trees, values):
            return GROW_NODES
        _prefix(tables, t, addition, values, work)
        word = find(mem, desc, t, work.buffer, 0)
        if word < 0:
            missing = room_for_one(tables, t, work.buffer)
            if missing > 0:
                work.state[NEED] = missing
                return GROW_MEMORY
            word = place(mem, desc, t, work.buffer, 0)
            root = word + 1 + desc[t, KEYS]
            mem[root] = new_node(tables.trees, values, 1)
            for v in range(values):
                mem[root + 1 + v] = 0
        if work.state[UNDOING] == 1:
            continue
        for v in range(values):
            old, amount = mem[entry + 1 + desc[m, KEYS] + v] if entry >= 0 else np.int64(0), addition[AMOUNTS + v]
            others, new = mem[word + 2 + desc[t, KEYS] + v] - magnitude(old), magnitude(old + amount)
            if exceeds(old, amount, addition[NEGATED]) or new < 0 or sum_overflows(others, new, others + new):
                return OVERFLOW
    return DONE


@kernel
def _add_to_orders(tables, work, addition, entry):
    """Add to the orders of a table, whose entry at the word `entry` still has its old values."""
    mem, desc, m, trees = tables.mem, tables.desc, addition[TARGET], tables.trees
    values = desc[m, VALUES]
    for t in range(desc[m, FIRST_ORDER], desc[m, FIRST_ORDER] + desc[m, ORDERS]):
        _prefix(tables, t, addition, values, work)
        word = find(mem, desc, t, work.buffer, 0)
        key = addition[AMOUNTS + values + tables.columns[t, desc[t, KEYS]]]
        root = add_under(trees, values, mem[word + 1 + desc[t, KEYS]], key, addition, AMOUNTS)
        mem[word + 1 + desc[t, KEYS]] = root
        for v in range(values):
            old = mem[entry + 1 + desc[m, KEYS] + v]
            mem[word + 2 + desc[t, KEYS] + v] += magnitude(old + addition[AMOUNTS + v]) - magnitude(old)
        if trees.nodes[root + ENTRIES] == 0:
            trees.nodes[root] = trees.heap[FREE + values]
            trees.heap[FREE + values] = root
            vacate(mem, desc, t, word)


@kernel
def _add(tables, work, addition, event, logs):
    """Add to an entry. Returns DONE, or why not; nothing is changed then."""
    mem, desc, m = tables.mem, tables.desc, addition[TARGET]
    values, n = desc[m, VALUES], desc[m, KEYS]
    logged = logs and desc[m, TOP] > 0
    if logged and work.state[LOGGED] == len(work.log):
        return GROW_LOG
    word = find(mem, desc, m, addition, AMOUNTS + values)
    if desc[m, ORDERS] > 0:
        status = _orders_take(tables, work, addition, word)
        if status != DONE:
            return status
    if work.state[UNDOING] == 0:
        for v in range(values):
            old = mem[word + 1 + n + v] if word >= 0 else np.int64(0)
            if exceeds(old, addition[AMOUNTS + v], addition[NEGATED]):
                return OVERFLOW
    if word < 0:
        missing = room_for_one(tables, m, work.buffer)
        if missing > 0:
            work.state[NEED] = missing
            return GROW_MEMORY
        word = place(mem, desc, m, addition, AMOUNTS + values)
        for v in range(values):
            mem[word + 1 + n + v] = 0
        if desc[m, SLICES] > 0:
            link(tables, m, word, work.buffer)
    if logged:
        line = work.log[work.state[LOGGED]]
        line[WHEN], line[LOG_TABLE] = event, m
        for v in range(values):
            old = mem[word + 1 + n + v]
            line[OLD + 2 * v], line[OLD + 2 * v + 1] = old, old + addition[AMOUNTS + v]
        for j in range(n):
            line[OLD + 2 * values + j] = addition[AMOUNTS + values + j]
        work.state[LOGGED] += 1
    if desc[m, ORDERS] > 0:
        _add_to_orders(tables, work, addition, word)
    alive = np.int64(0)
    for v in range(values):
        mem[word + 1 + n + v] += addition[AMOUNTS + v]
        alive |= mem[word + 1 + n + v]
    if alive == 0:
        if desc[m, SLICES] > 0:
            unlink(tables, m, word, work.buffer)
        vacate(mem, desc, m, word)
    return DONE


@inlined
def _ask_ahead(tables, code, work, kind, rows, event):
    """Ask for the slots that an event to come needs."""
    for a in range(code.asked[kind], code.asked[kind + 1]):
        at = code.asks[a, 1]
        for j in range(code.lists[at]):
            column = code.lists[at + 1 + j]
            work.buffer[j] = rows[event, column] if column < rows.shape[1] else work.registers[column]
        ask_for(tables.mem, tables.desc, code.asks[a, 0], work.buffer, 0)


@kernel
def run_events(tables, code, work, kinds, rows, upto, most, logs):
    """Go on with events int64[n, columns] of `kinds`, to `upto` or until `most` steps are taken: DONE, or why not.

    `logs`: whether changes of top maps are logged. After OVERFLOW `state` says at which event and statement.
    """
    state, registers, enough = work.state, work.registers, work.state[STEPS] + most
    while state[EVENT] < upto and state[STEPS] < enough:
        event = state[EVENT]
        if state[PHASE] == EVALUATING:
            kind = kinds[event]
            if event + AHEAD < upto:
                _ask_ahead(tables, code, work, kinds[event + AHEAD], rows, event + AHEAD)
            state[ADDITIONS] = 0
            for c in range(rows.shape[1]):
                registers[c] = rows[event, c]
            for s in range(code.spans[kind], code.spans[kind + 1]):
                status = _evaluate(tables, code, work, code.begins[s])
                if status != DONE:
                    state[STATEMENT] = s
                    return status
            state[PHASE], state[AT], state[FINAL] = WRITING, 0, 0
        while True:
            while state[AT] < state[ADDITIONS]:
                status = _add(tables, work, work.additions[state[AT]], event, logs)
                if status != DONE:
                    return status
                state[AT] += 1
            # What is worked out anew is wanted after each event only where it is logged.
            if state[FINAL] == 1 or code.final[0] < 0 or not (logs or event + 1 == len(kinds)):
                break
            status = _evaluate(tables, code, work, code.final[0])
            if status != DONE:
                return status
            state[FINAL] = 1
        state[PHASE] = EVALUATING
        state[EVENT] = event + 1
    return DONE


@kernel
def take_back(tables, work):
    """Take back the additions of the present event that were made."""
    state = work.state
    while state[PHASE] == WRITING and state[AT] > 0:
        addition = work.additions[state[AT] - 1]
        for v in range(tables.desc[addition[TARGET], VALUES]):
            addition[AMOUNTS + v] = -addition[AMOUNTS + v]
        status = _add(tables, work, addition, 0, False)
        for v in range(tables.desc[addition[TARGET], VALUES]):
            addition[AMOUNTS + v] = -addition[AMOUNTS + v]
        if status != DONE:
            return status
        state[AT] -= 1
    state[PHASE] = EVALUATING
    return DONE
