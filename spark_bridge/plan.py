"""The partition plan: what every partition of a stage holds and derives, and what stages send each other.

A *copy* of a relation says which of its rows a partition holds, by a *pattern*:

    all         every row, in every partition (replicated)
    x (c)       the rows whose key in column c belongs to the partition
    xy (c, d)   the rows whose pair of keys in columns c and d belongs to the partition
    y (d)       the rows whose key in column d may be the second key of a pair that belongs to the partition
    part (n)    of an aggregate: those of a group over the bindings whose variable number n belongs to the partition
    one         every row, in the first partition alone

Every pair of keys belongs to one partition (`placement.py`); while no key is split, it is that of the first key alone,
and xy is x, y is all. The invariant of a plan: a derived copy holds exactly the rows of its relation that its pattern
names. So partitions derive disjoint sets of rows, their deltas add up without any exchange, and an aggregate or a
negation sees the whole of what it is about.

A program that one partitioning does not carry is evaluated in *stages*, one after the other, each partitioned in its
own way. What a stage derives and a later one reads is *exchanged*: the rows, or their change, that all partitions of
the earlier stage wrote are sent to the partitions of the later one, which hold them under patterns like relations that
are given:

    total[c] = sum v : { r(a, b, v), s(b, c) }.    stage 1, by b: a part of each group per partition
    large(c) :- total(c, s), s > 10.               stage 2, by c: total[c] is the sum of its parts

Within a stage nothing moves. `planner.py` makes the plan of a stage, `stages.py` divides a program into them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lftj.language import BodyAtom, CheckedProgram, Clause, Value
from lftj.language.clause import INTERNAL, Term
from lftj.values.schema import Schema
from spark_bridge.clause_terms import equalities


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """Which rows of a relation a partition holds: `kind` is "x", "xy", "y", "part", "one" or "all"."""

    kind: str
    columns: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.kind if not self.columns else f"{self.kind}{''.join(f'_{c}' for c in self.columns)}"


ALL, ONE = Pattern("all"), Pattern("one")
PART = "part"
Copy = tuple[str, Pattern]
Place = tuple[Pattern, tuple[Value, ...]]  # the partition to which keys belong under a pattern of their columns


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a stage is sent: relation `source`, as the partitions of stage number `stage` wrote it, as `target`.

    The two have one name, unless `source` is kept in parts: the rows of `target` have a first column more, the number
    of the partition that a part comes from.
    """

    source: str
    target: str
    stage: int

    @property
    def numbered(self) -> bool:
        """Whether rows get the number of their partition."""
        return self.source != self.target


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A rule for one copy of its head, and the pattern under which each atom of the body is read."""

    clause: Clause
    head: Pattern
    positive: tuple[Pattern, ...]
    negated: tuple[Pattern, ...]

    def copies(self) -> Iterable[Copy]:
        """The copies its body reads."""
        for atom, pattern in zip(self.clause.atoms, self.positive, strict=True):
            yield atom.predicate, pattern
        for atom, pattern in zip(self.clause.negated, self.negated, strict=True):
            yield atom.predicate, pattern

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the head that are partitioned; of a part of an aggregate, the variable that is."""
        if self.head.kind == PART:
            return self.clause.variables()[self.head.columns[0] : self.head.columns[0] + 1]
        return tuple(self.clause.head_args[c] for c in self.head.columns)

    @property
    def place(self) -> Place | None:
        """The partition that derives it, if its body does not say: the first one, or that of its head's constants."""
        if self.head != ONE and (
            self.head.kind not in ("x", "xy") or self.head.kind in {pattern.kind for pattern in self.positive}
        ):
            return None
        terms = map(equalities(self.clause), self.terms)
        return self.head, tuple(term for term in terms if isinstance(term, Value))


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What every partition of a stage holds and derives.

    `copies`: all that a partition holds, in an order in which each follows what it reads, but within recursion.
    `steps`: the rules of the derived ones. `outputs`: of every relation that the stage answers for or sends on, the
    pattern of the copy that does. `second`: whether pairs of keys, not only single keys, may be told apart. `takes`:
    what it is sent.
    """

    program: CheckedProgram
    copies: tuple[Copy, ...]
    steps: tuple[PlanStep, ...]
    outputs: dict[str, Pattern]
    second: bool
    takes: tuple[Exchange, ...] = ()

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas of the relations that the program names, and of what is sent."""
        sent = {*self.outputs, *(take.target for take in self.takes)}
        return {n: s for n, s in self.program.schemas.items() if not n.startswith(INTERNAL) or n in sent}

    @property
    def derived(self) -> frozenset[str]:
        """The relations that rules derive."""
        return frozenset(clause.head for clause in self.program.clauses) - {take.target for take in self.takes}

    def part_op(self, name: str) -> str:
        """What makes one value of the parts of an output's group: "sum", "min" or "max"."""
        heads, i = [name], 0
        while True:
            for step in self.steps:
                if step.clause.head == heads[i] and step.head.kind == PART:
                    if step.clause.aggregate is not None:
                        op = step.clause.aggregate.op
                        return op if op in ("min", "max") else "sum"
                    heads += step.clause.reads
            i += 1

    def patterns(self, name: str) -> tuple[Pattern, ...]:
        """The patterns of all copies of a relation."""
        return tuple(pattern for relation, pattern in self.copies if relation == name)

    def explain(self) -> str:
        """Rule by rule, what is partitioned and what is replicated."""
        lines = []
        sent = {take.target: f"sent by stage {take.stage + 1}, " for take in self.takes}
        for step in self.steps:
            if step.clause.head.startswith(INTERNAL) and step.head == ALL and not step.clause.atoms:
                continue
            lines.append(f"{step.clause}  [{_derivation(step)}]")
            for sign, atoms, patterns in (
                ("", step.clause.atoms, step.positive),
                ("!", step.clause.negated, step.negated),
            ):
                for atom, pattern in zip(atoms, patterns, strict=True):
                    lines.append(f"    {sign}{atom}: {sent.get(atom.predicate, '')}{_treatment(atom, pattern)}")
        return "\n".join(lines)


def _derivation(step: PlanStep) -> str:
    if step.head == ONE:
        return "derived by one partition"
    by = " and ".join(map(str, step.terms))
    return f"partitioned by {by}" if by else "derived in full by every partition"


def _treatment(atom: BodyAtom, pattern: Pattern) -> str:
    if pattern == ALL:
        return "replicated"
    if pattern == ONE:
        return "held by one partition"
    if pattern.kind == PART:
        return "each partition's own part"
    by = " and ".join("its partition" if arg is None else str(arg) for arg in (atom.args[c] for c in pattern.columns))
    return f"shared by {by}" if pattern.kind == "y" else f"partitioned by {by}"


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """A program in stages, each of which is sent what those before it derived; most programs have one.

    `outputs`: of every relation whose content and change can be asked for, the pattern of the copy that answers.
    """

    stages: tuple[PartitionPlan, ...]

    @property
    def program(self) -> CheckedProgram:
        """The program."""
        return self.stages[0].program

    @property
    def second(self) -> bool:
        """Whether pairs of keys may be told apart; in several stages they are not."""
        return self.stages[0].second

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas of the relations that the program names."""
        return {n: s for n, s in self.program.schemas.items() if not n.startswith(INTERNAL)}

    @property
    def derived(self) -> frozenset[str]:
        """The relations that rules derive."""
        return frozenset(clause.head for clause in self.program.clauses)

    @property
    def outputs(self) -> dict[str, Pattern]:
        """See the class."""
        found = {name: pattern for stage in self.stages for name, pattern in stage.outputs.items()}
        return {name: pattern for name, pattern in found.items() if not name.startswith(INTERNAL)}

    def stage_of(self, name: str) -> int:
        """The stage that answers for a relation, or sends it on."""
        return next(i for i, stage in enumerate(self.stages) if name in stage.outputs)

    def holds(self, name: str) -> bool:
        """Whether any output depends on a relation, or it is given."""
        return any(stage.patterns(name) for stage in self.stages)

    def part_op(self, name: str) -> str:
        """What makes one value of the parts of an output's group: "sum", "min" or "max"."""
        return self.stages[self.stage_of(name)].part_op(name)

    def explain(self) -> str:
        """Stage by stage and rule by rule, what is partitioned, what is replicated and what is sent on."""
        if len(self.stages) == 1:
            return self.stages[0].explain()
        lines = []
        for number, stage in enumerate(self.stages, 1):
            lines += [f"stage {number}", stage.explain()]
            sent = {take.source for later in self.stages for take in later.takes if take.stage == number - 1}
            if sent:
                lines.append("sent on: " + ", ".join(_sent(stage, name) for name in stage.outputs if name in sent))
        return "\n".join(lines)


def _sent(stage: PartitionPlan, name: str) -> str:
    columns = ", ".join(stage.program.schemas[name].names)
    return f"{name}({columns})" + (", its parts" if stage.outputs[name].kind == PART else "")
