"""Lowering: a join plan and the versions it reads become the arrays the kernel walks (`walk.Walk`).

Registers hold the variables in key order, then constants (their codes), then results of terms. Code runs at the
earliest depth that binds what it reads: the definition of a variable before its depth is entered, filters and
everything later depths or the head derive from a variable right after its match. Of the filters of a depth those that
always have a value come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lftj.join import block_memo, expression_vm, trie
from lftj.join import join_state as cells
from lftj.join.first_key_index import JumpTable, jump_table
from lftj.join.triejoin import OPENING
from lftj.language.clause import Apply, Compare, Parameter, Term, Value, Var, variables_of
from lftj.language.functors import FUNCTORS
from lftj.language.types import DECIMAL, FLOAT, scale_of
from lftj.plan.joinplan import ROOT_VARIABLE, Block, JoinPlan
from lftj.plan.partial_functions import UNDEFINED, partial_of, partial_terms
from lftj.values.codes import KEY_MIN
from lftj.values.type_table import family_of, in_dictionary, storage_of, type_of
from scantree.version import Version

Encode = Callable[[object, str], int]

COMPARISONS = {
    "=": expression_vm.EQ,
    "!=": expression_vm.NE,
    "<": expression_vm.LT,
    "<=": expression_vm.LE,
    ">": expression_vm.GT,
    ">=": expression_vm.GE,
}
FAMILY = {"number": 0, "unsigned": expression_vm.UNSIGNED, "float": expression_vm.FLOAT}
CONVERSIONS = {
    ("number", "float"): expression_vm.I_TO_F,
    ("number", "unsigned"): expression_vm.I_TO_U,
    ("unsigned", "number"): expression_vm.U_TO_I,
    ("unsigned", "float"): expression_vm.U_TO_F,
    ("float", "number"): expression_vm.F_TO_I,
    ("float", "unsigned"): expression_vm.F_TO_U,
}
# How the name of an operation on days ends that is meant of microseconds.
OF_TIME = "_OF_TIME"
# Counts that the memo of a block has room for.
LEAST_SLOTS, MOST_SLOTS = 1 << 10, 1 << 18
LIMITS = {">=": cells.FROM_LIMIT, ">": cells.ABOVE_LIMIT, "<=": cells.TO_LIMIT, "<": cells.BELOW_LIMIT}


def operation_of(op: str, arguments: Sequence[str], result: str) -> int:
    """The number of the operation of a functor over arguments of these types; MOVE where nothing is to be done."""
    signature = FUNCTORS[op]
    if (overload := signature.overload(arguments)) is not None:
        name = overload.operation
        code: int = getattr(expression_vm, name.removesuffix(OF_TIME))
        return code + expression_vm.OF_TIME if name.endswith(OF_TIME) else code
    if signature.opcode == "COALESCE":
        return expression_vm.COALESCE if type_of(result).null == KEY_MIN else expression_vm.U_COALESCE
    if signature.opcode:
        code = getattr(expression_vm, signature.opcode)
        return code + FAMILY[storage_of(result)]
    if family_of(arguments[0]) == DECIMAL and family_of(result) == FLOAT:
        return expression_vm.DECIMAL_TO_F
    return CONVERSIONS.get((storage_of(arguments[0]), storage_of(result)), expression_vm.MOVE)


@dataclass(slots=True)
class _Code:
    """The code of one join while it is written: rows of the machine, registers handed out so far."""

    encode: Encode
    places: dict[str, int]
    registers: list[int]
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    prelude: list[tuple[int, int, int, int]] = field(default_factory=list)
    results: dict[Term, int] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    ranked: bool = False

    def new(self, initial: int = 0) -> int:
        self.registers.append(initial)
        return len(self.registers) - 1

    def value(self, term: Term) -> int:
        """The register that holds `term`; writes the code that computes it, once."""
        if isinstance(term, Var):
            return self.places[term.name]
        if term in self.results:
            return self.results[term]
        if isinstance(term, Value):
            self.results[term] = self.new(self.encode(term.value, term.type))
        elif isinstance(term, Parameter):
            self.results[term] = self.parameters[term.name] = self.new(self.encode(term, term.type))
        else:
            # What holds no variable is computed before the walk begins, where nothing can go wrong with it.
            early = not any(variables_of(term)) and not any(partial_terms(term))
            self.results[term] = self._apply(term, self.prelude if early else self.rows)
        return self.results[term]

    def _apply(self, term: Apply, rows: list[tuple[int, int, int, int]]) -> int:
        arguments = [self.value(arg) for arg in term.args]
        operation = operation_of(term.op, [arg.type for arg in term.args], term.type)
        left = arguments[0]
        if len(arguments) == 1 and FUNCTORS[term.op].variadic:
            return left
        # What is left of a conversion's arguments are constants, which its type tells.
        converts = operation == expression_vm.MOVE or expression_vm.I_TO_F <= operation < expression_vm.COALESCE
        others = [left] if converts else arguments[1:] or [left]
        if operation == expression_vm.DECIMAL_TO_F:  # what is one in the units of its type
            others = [self.new(10 ** scale_of(term.args[0].type))]
        for right in others:
            target = self.new()
            rows.append((operation, target, left, right))
            left = target
        return left

    def compare(self, condition: Compare) -> None:
        """Write a comparison."""
        if condition.op == UNDEFINED:
            assert isinstance(condition.left, Apply)
            rows: list[tuple[int, int, int, int]] = []
            self._apply(condition.left, rows)
            operation, _, *arguments = rows[0]
            self.rows.append((operation, expression_vm.UNDEFINED, arguments[0], arguments[1]))
            return
        left, right = self.value(condition.left), self.value(condition.right)
        if in_dictionary(condition.left.type) and condition.op not in ("=", "!="):
            self.ranked = True
            ranks = []
            for register in (left, right):
                target = self.new()
                self.rows.append((expression_vm.RANK, target, register, register))
                ranks.append(target)
            left, right = ranks
        self.rows.append((COMPARISONS[condition.op], 0, left, right))


@dataclass(slots=True)
class Lowered:
    """A join ready to run.

    The walk at its beginning, code to run before it (`prelude`), what keeps its memory alive, and whether it compares
    symbols by text order (then `walk.ranks` is to be filled in). `parameters`: the register of each.
    """

    walk: cells.Walk
    prelude: np.ndarray
    kept: tuple[Version | JumpTable, ...]
    ranked: bool
    parameters: Mapping[str, int]


class SeekHints(NamedTuple):
    """What is known of how first keys will be sought.

    `jumps`: a pass over a relation may be made for a jump table · `least`: so many will be, at least, whatever the plan
    estimates · `fleeting`: a relation that goes with the run, so that its table may have a word for each that is ·
    `stamped`: heads that were met are told by stamps, and not by looks into the negated atom.
    """

    jumps: bool = True
    least: float = 0.0
    fleeting: str = ""
    stamped: bool = False


EVALUATION = SeekHints()


def lower(
    plan: JoinPlan,
    versions: Mapping[tuple[str, tuple[int, ...]], Version],
    encode: Encode,
    no_ranks: np.ndarray,
    hints: SeekHints = EVALUATION,
) -> Lowered:
    """Arrays for `plan` over `versions` (predicate and key order -> version); `encode` gives the code of a constant.

    `hints`: what is known of how it will be run.
    """
    n = len(plan.depths)
    code = _Code(encode, {d.variable: i for i, d in enumerate(plan.depths)}, [0] * n)
    depths = np.zeros((n, cells.DEPTH_WIDTH), np.int64)
    parts: list[int] = []
    moves: list[int] = []
    bounds: list[tuple[int, int]] = []
    head = [(term, max((code.places[v.name] for v in variables_of(term)), default=0)) for term in plan.head]
    # Terms a later depth needs before it is entered: computed as soon as their variables are bound.
    limits = [
        [(op, term, max((code.places[v.name] for v in variables_of(term)), default=0)) for op, term in d.bounds]
        for d in plan.depths
    ]
    for d, depth in enumerate(plan.depths):
        row = depths[d]
        row[cells.PART_LO], row[cells.PART_HI] = len(parts), len(parts) + len(depth.participants)
        parts.extend((*depth.participants, *depth.negated, *depth.tested))
        row[cells.NEG_HI] = len(parts) - len(depth.tested)
        row[cells.TEST_HI] = len(parts)
        row[cells.MOVE_LO] = len(moves)
        moves.extend(
            i
            for i, node in enumerate(plan.nodes)
            if node.above >= 0 and plan.nodes[node.above].variable == depth.variable
        )
        row[cells.MOVE_HI] = len(moves)
        row[cells.WEIGHS] = plan.folded is not None and depth.variable in plan.folded.factors
        row[cells.VALUE_LO] = len(code.rows)
        if depth.definition is not None:
            row[cells.KIND] = cells.VALUE
            register = code.value(depth.definition)
            code.rows.append((expression_vm.MOVE, d, register, register))
        if depth.counts:
            row[cells.KIND] = cells.ROWS
        row[cells.VALUE_HI] = row[cells.CODE_LO] = len(code.rows)
        for condition in sorted(depth.filters, key=lambda c: any(partial_of(c))):
            code.compare(condition)
        for later in limits[d + 1 :]:
            for _, term, at in later:
                if at == d:
                    code.value(term)
        for term, at in head:
            if at == d:
                code.value(term)
        row[cells.CODE_HI] = len(code.rows)
        row[cells.BLOCK], row[cells.FIRST], row[cells.LEAF], row[cells.CHILD] = (
            depth.block,
            depth.first,
            depth.leaf,
            depth.child,
        )
    for d, limit in enumerate(limits):
        depths[d, cells.BOUND_LO] = len(bounds)
        bounds.extend((LIMITS[op], code.value(term)) for op, term, _ in limit)
        depths[d, cells.BOUND_HI] = len(bounds)
    frames, kept = _frames(plan, versions, hints)
    _shortcuts(plan, depths, frames)
    blocks, memo = _blocks(plan, code.places)
    control = np.zeros(cells.CONTROL, np.int64)
    control[cells.ENTER], control[cells.STAY] = OPENING, -1
    control[cells.UNTIL] = plan.until
    control[cells.COUNTING] = plan.counting
    outputs = [code.value(term) for term, _ in head]
    if plan.folded is not None:
        control[cells.WEIGHING] = bool(plan.folded.factors)
        control[cells.RESULT] = code.new()
        outputs += [control[cells.RESULT], code.new(), code.new()]
    control[cells.EPOCH_DEPTH] = -1
    control[cells.LIMIT_AT], control[cells.LIMIT_IN] = plan.limiting, code.new()
    walk = cells.Walk(
        frames,
        depths,
        np.array(parts, np.int64),
        np.array(moves, np.int64),
        np.array(bounds, np.int64).reshape(-1, 2),
        blocks,
        np.array(code.rows, np.int64).reshape(-1, 4),
        np.array(code.registers, np.int64),
        np.array(outputs, np.int64),
        no_ranks,
        control,
        np.zeros(expression_vm.CELL),
        memo,
    )
    return Lowered(walk, np.array(code.prelude, np.int64).reshape(-1, 4), kept, code.ranked, code.parameters)


def _blocks(plan: JoinPlan, places: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the blocks, and their memos: about as large as the estimates say that there are counts."""
    blocks = np.zeros((len(plan.blocks), cells.BLOCK_WIDTH), np.int64)
    memos: list[tuple[int, list[int]]] = []
    at = 0
    for b, block in enumerate(plan.blocks):
        blocks[b, : cells.SIBLING + 1] = (block.parent, block.top, block.sibling)
        if block.keys is not None:
            k, often = len(block.keys), int(min(_asked(plan, block), MOST_SLOTS))
            slots = max(LEAST_SLOTS, min(MOST_SLOTS, 1 << (2 * often).bit_length())) if k else 1
            values = block_memo.WEIGHED if plan.folded is not None and plan.folded.factors else block_memo.COUNTED
            blocks[b, cells.MEMO : cells.SLOTS + 1] = at, k, slots
            memos.append((at, [places[v] for v in block.keys]))
            at += k + slots * (values + k)
    memo = np.full(at, block_memo.UNKNOWN, np.int64)
    for start, registers in memos:
        memo[start : start + len(registers)] = registers
    return blocks, memo


def _asked(plan: JoinPlan, block: Block) -> float:
    """How often a memo is asked, by estimate, while the same counts are of use.

    The keys that are bound before any other variable stay the same meanwhile.
    """
    before = 1.0
    for d in sorted(plan.above(block.parent)):
        if plan.depths[d].variable not in (ROOT_VARIABLE, *(block.keys or ())):
            break
        before = plan.depths[d].rows
    return plan.depths[block.parent].rows / max(before, 1.0)


def _frames(
    plan: JoinPlan, versions: Mapping[tuple[str, tuple[int, ...]], Version], known: SeekHints
) -> tuple[np.ndarray, tuple[Version | JumpTable, ...]]:
    """One frame per trie node.

    Jump tables for those that are sought at random often enough to pay for a pass over the rows.
    """
    frames = np.zeros((max(1, len(plan.nodes)), trie.WIDTH), np.int64)
    place = {d.variable: i for i, d in enumerate(plan.depths)}
    kept: list[Version | JumpTable] = list(versions.values())
    seeks = {
        depth.variable: max(depth.rows, plan.depths[d - 1].rows if d else 0.0) if d else 1.0
        for d, depth in enumerate(plan.depths)
    }
    # A jump leaves the end of the page's part of the run open, which a last depth of one or two participants would
    # look at.
    random = {d.variable for d in plan.depths if not d.leaf or len(d.participants) > 2}
    # The keys of a depth of one participant are walked, and not sought.
    random -= {d.variable for d in plan.depths if len(d.participants) == 1 and d.definition is None}
    sought = {
        i: seeks[plan.nodes[i].variable]
        for depth in plan.depths
        for i in depth.participants
        if plan.nodes[i].variable in random
    }
    # A negated atom is looked up once per match; the end of its last level is looked at, too.
    for depth in plan.depths if not known.stamped else ():
        for i in depth.negated:
            while plan.nodes[i].above >= 0:
                i = plan.nodes[i].above
                sought[i] = seeks[depth.variable]
    for i, node in enumerate(plan.nodes):
        version = versions[node.predicate, node.key_order]
        shape = version.store.shape
        frames[i, trie.ROOT], frames[i, trie.LEVEL], frames[i, trie.ABOVE] = version.root, node.level, node.above
        frames[i, trie.PAGE_BITS], frames[i, trie.DIR_BITS] = shape.page_bits, shape.dir_bits
        frames[i, trie.UNIQUE] = node.level + 1 == shape.keys
        frames[i, trie.REGISTER] = place[node.variable]
        times = max(sought[i], known.least) if i in sought else 0.0
        if known.jumps and node.level == 0 and times and times * 8 >= len(version):
            table = jump_table(version, times if node.predicate == known.fleeting else 0.0)
            if table is not None:
                kept.append(table)
                frames[i, trie.JUMP], frames[i, trie.JUMP_LOW], frames[i, trie.JUMP_HIGH] = (
                    table.page,
                    table.low,
                    table.high,
                )
    return frames, tuple(kept)


def _shortcuts(plan: JoinPlan, depths: np.ndarray, frames: np.ndarray) -> None:
    """Mark the depths that the kernel may walk in a faster way.

    Two fused last depths, a last one whose matches are looked up, and matches that can be looked ahead.
    """

    def plain_pair(d: int) -> bool:
        return (
            plan.depths[d].definition is None
            and len(plan.depths[d].participants) == 2
            and not depths[d, cells.WEIGHS]
            and depths[d, cells.CODE_LO] == depths[d, cells.CODE_HI]
            and not plan.depths[d].negated
            and not plan.depths[d].tested
        )

    def looked(d: int) -> bool:
        """Whether depth d is a last one whose matches are looked up, of two participants or of the keys of one."""
        depth = plan.depths[d]
        if not depth.leaf or plan.counting or depth.definition is not None or not (depth.negated or depth.tested):
            return False
        if depths[d, cells.CODE_LO] < depths[d, cells.CODE_HI] or len(depth.participants) not in (1, 2):
            return False
        walked = frames[depth.participants[0]]
        one = bool(walked[trie.UNIQUE]) and not walked[trie.JUMP]
        return one or len(depth.participants) == 2

    def runs_below(d: int, leaf: int) -> bool:
        """Whether the last depth's one run lies below a first key of depth d, which a jump table finds."""
        above = plan.nodes[plan.depths[leaf].participants[0]].above
        others = [i for i in plan.depths[d].participants if i != above]
        return (
            len(others) == 1
            and not plan.depths[leaf].counts
            and bool(frames[above, trie.JUMP])
            and not frames[others[0], trie.JUMP]
        )

    for d, depth in enumerate(plan.depths):
        depths[d, cells.AHEAD] = -1
        if len(depth.participants) == 2 and depth.definition is None:
            walked, followed = depth.participants
            if frames[followed, trie.JUMP] and not frames[walked, trie.JUMP]:
                depths[d, cells.AHEAD], depths[d, cells.FOLLOWS] = walked, followed
        if looked(d):
            depths[d, cells.FUSED] = cells.LOOKED
        after = d + 1
        if depth.leaf or after == len(plan.depths) or not plain_pair(d):
            continue
        if plan.depths[after].leaf and not plan.depths[after].first and plan.until > after:
            if plain_pair(after):
                depths[d, cells.FUSED] = cells.PAIR
            elif len(plan.depths[after].participants) == 1 and runs_below(d, after):
                depths[d, cells.FUSED] = cells.STAMPED


class RowCode(NamedTuple):
    """Code that is run once per row: `rows` int64[c, 4], the registers before it, and where its results are.

    `ranked`: it compares symbols by text order.
    """

    rows: np.ndarray
    registers: np.ndarray
    results: tuple[int, ...]
    ranked: bool


def row_code(
    names: Sequence[str],
    steps: Sequence[tuple[Var | None, Compare]],
    terms: Sequence[Term],
    encode: Encode,
) -> RowCode:
    """The code for rows with the variables `names`, which are the first registers.

    `steps`: comparisons in turn, with the variable that one binds by its right side · `terms`: the results.
    """
    code = _Code(encode, {name: i for i, name in enumerate(names)}, [0] * len(names))
    for variable, compare in steps:
        if variable is None:
            code.compare(compare)
        else:
            code.places[variable.name] = code.value(compare.right)
    results = tuple(code.value(term) for term in terms)
    rows = np.array([*code.prelude, *code.rows], np.int64).reshape(-1, 4)
    return RowCode(rows, np.array(code.registers, np.int64), results, code.ranked)


def apply_columns(term: Apply, arguments: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A functor over numbers applied to columns of codes, by the machine that joins use.

    Returns (codes int64[n], which of them are values bool[n]).
    """
    rows, registers, result = _compiled(term.op, tuple(arg.type for arg in term.args), term.type)
    out, defined = np.empty(len(arguments[0]), np.int64), np.empty(len(arguments[0]), np.bool_)
    columns = np.stack(arguments) if len(arguments) > 1 else np.ascontiguousarray(arguments[0])[None, :]
    expression_vm.run_columns(rows, columns, registers.copy(), result, out, defined, np.zeros(expression_vm.CELL))
    return out, defined


@lru_cache(maxsize=256)
def _compiled(op: str, args: tuple[str, ...], type: str) -> tuple[np.ndarray, np.ndarray, int]:
    """(the machine's code of a functor over numbers, its registers before it runs, the one of the result)."""
    names = [f"a{i}" for i in range(len(args))]
    code = _Code(lambda value, type: 0, {name: i for i, name in enumerate(names)}, [0] * len(names))
    result = code.value(Apply(op, tuple(Var(n, t) for n, t in zip(names, args, strict=True)), type))
    return np.array(code.rows, np.int64).reshape(-1, 4), np.array(code.registers, np.int64), result
