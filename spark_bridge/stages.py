"""Stages: a program that one partitioning does not carry, as several in a row.

Relations are given *levels*: level 0 is what can be partitioned over the given relations, level 1 what can be over
these and all of level 0, sent anew, and so on. A stage derives the outputs of its level, and what later stages read.

Where an aggregate's groups cross partitions, or a head has nothing to partition by, its rule is *cut* in two (cut.py),
and the levels are found again: counts, sums and extremes become parts, other aggregates are sent their bindings. What
is recursive cannot be cut: it would have to send rows in the middle of a stage.

One stage is enough for most programs, and then there is one: levels are found where `make_plan` refuses, and where the
one stage would replicate many rows that parts of an aggregate spare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lftj.language import CheckedProgram, Clause
from lftj.language.clause import owner
from spark_bridge.bridge_errors import PlanError
from spark_bridge.cut import by_bindings, by_rows, in_parts
from spark_bridge.plan import ALL, ONE, PART, Exchange, PartitionPlan, Pattern, StagedPlan
from spark_bridge.planner import SPARED, Planner, make_plan
from spark_bridge.program_checks import checked, with_facts
from spark_bridge.refusals import ON_ONE_MACHINE, Refusal, replicating


def make_stages(
    text: str,
    *,
    outputs: Sequence[str] | None = None,
    replicate: Sequence[str] = (),
    second: bool = False,
    rows: Mapping[str, int] | None = None,
    partitions: int = 2,
    single: bool = False,
) -> StagedPlan:
    """The plan for a program's text, in one stage unless several are needed, or spare partitions many rows.

    `single`: in one or not at all. For the rest see `make_plan`. Raises `PlanError` naming the rule that stages do not
    help either.
    """
    try:
        return _made(text, outputs, replicate, second, rows or {}, partitions, single)
    except PlanError as refusal:
        proposed, name = replicating(refusal.relation), refusal.relation
        if proposed not in refusal.remedy or second or single:
            raise
        try:
            make_stages(text, outputs=outputs, replicate=[*replicate, name], rows=rows, partitions=partitions)
        except PlanError as other:
            if other.remedy.endswith(ON_ONE_MACHINE):  # with all of that in full nothing is left to be partitioned
                remedy = refusal.remedy.replace(proposed, ON_ONE_MACHINE)
                raise PlanError(
                    refusal.what, why=refusal.why, remedy=remedy, span=refusal.span, relation=name
                ) from None
        raise


def _made(
    text: str,
    outputs: Sequence[str] | None,
    replicate: Sequence[str],
    second: bool,
    rows: Mapping[str, int],
    partitions: int,
    single: bool,
) -> StagedPlan:
    plan = None
    try:
        plan = make_plan(text, outputs=outputs, replicate=replicate, second=second, rows=rows, partitions=partitions)
    except PlanError as refusal:
        if second or single or not refusal.relation:
            raise
    if plan is not None and (second or single or _replicated(plan, rows) < SPARED):
        return StagedPlan((plan,))
    program, chosen = checked(text, outputs, replicate)
    staged = _Stager(program, chosen, frozenset(replicate), rows, partitions).plan()
    if plan is None:
        return staged
    one = StagedPlan((plan,))
    return staged if _held(staged, rows, partitions) < _held(one, rows, partitions) - SPARED else one


def _replicated(plan: PartitionPlan, rows: Mapping[str, int]) -> int:
    return sum(rows.get(name, 0) for name, pattern in plan.copies if pattern == ALL)


def _held(plan: StagedPlan, rows: Mapping[str, int], partitions: int) -> float:
    """The rows that a partition holds of what is given, and of what is sent."""
    held, program = 0.0, plan.stages[-1].program
    for stage in plan.stages:
        sources = {take.target: take.source for take in stage.takes}
        for name, pattern in stage.copies:
            if name not in sources and name in stage.derived:
                continue
            size = _size(program, sources.get(name, name), rows)
            held += size * (1 / partitions if pattern.kind == "x" else 1)
    return held


def _size(program: CheckedProgram, name: str, rows: Mapping[str, int]) -> int:
    """The rows of a relation at a guess: as many as of the largest that its rules read, as of joins by foreign keys."""
    found, waiting = set[str](), [name]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += [atom.predicate for c in program.clauses if c.head == at for atom in c.atoms]
    return max(rows.get(read, 0) for read in found)


class _Stager:
    """Finds the stages of a program that takes several.

    `level`: of each relation that is asked for or may be sent on. `parts`: of each relation that is put together from
    parts (`@n.parts` of cut.py), the one that keeps them (`@n.part`). `sent`: the halves that a later stage is sent.
    """

    def __init__(
        self,
        program: CheckedProgram,
        outputs: Sequence[str],
        replicate: frozenset[str],
        rows: Mapping[str, int],
        partitions: int,
    ) -> None:
        self.program, self.outputs = program, outputs
        self.replicate, self.rows, self.partitions = replicate, rows, partitions
        self.level: dict[str, int] = {}
        self.parts: dict[str, str] = {}
        self.sent = frozenset[str]()

    def plan(self) -> StagedPlan:
        """The stages. Raises `PlanError`."""
        while not self._levelled():
            pass
        found = self._stages()
        plans = [planner.finished(ways, ()) for planner, ways, _ in found]
        base = self._planner(0).base()
        homes = {name: next((i for i, plan in enumerate(plans) if plan.patterns(name)), 0) for name in base}
        stages = []
        for number, (planner, ways, takes) in enumerate(found):
            plan = planner.finished(ways, [name for name in base if homes[name] == number])
            stages.append(replace(plan, takes=takes))
        return StagedPlan(tuple(stages))

    def _planner(
        self,
        level: int,
        program: CheckedProgram | None = None,
        *,
        parts: frozenset[str] = frozenset(),
        sent: frozenset[str] = frozenset(),
    ) -> Planner:
        """What finds copies for the relations of a level."""
        given = {name for name, at in self.level.items() if at < level}
        targets = {target for target, source in self.parts.items() if source in given}
        return Planner(
            program or self.program,
            self.replicate,
            self.rows,
            self.partitions,
            staged=True,
            given=frozenset(given | targets),
            waiting=frozenset(self.parts.keys() - targets),
            sent_parts=frozenset((*self.parts.values(), *parts)),
            sent=self.sent | sent,
        )

    def _stages(self) -> list[tuple[Planner, dict[str, Pattern], tuple[Exchange, ...]]]:
        """For each stage the patterns of what it derives for others, and what it is sent: found from the last one."""
        wanted: dict[int, dict[str, None]] = {}
        for name in self.outputs:
            wanted.setdefault(self.level.get(name, 0), {})[name] = None
        found = []
        for level in range(max(wanted), -1, -1):
            if level not in wanted:
                continue
            planner = self._planner(level)
            ways = planner.cheapest(wanted[level], complete=self._complete())
            takes = []
            for target in dict.fromkeys(name for name, _ in planner.finished(ways, ()).copies if name in planner.given):
                source = self.parts.get(target, target)
                takes.append(Exchange(source, target, self.level[source]))
                wanted.setdefault(self.level[source], {})[source] = None
            found.append((level, planner, ways, takes))
        number = {level: i for i, (level, *_) in enumerate(reversed(found))}
        return [
            (planner, ways, tuple(replace(take, stage=number[take.stage]) for take in takes))
            for _, planner, ways, takes in reversed(found)
        ]

    # -- levels -------------------------------------------------------------------------------------------------------

    def _levelled(self) -> bool:
        """Find the level of everything; False if a rule was cut, and it is to be done again."""
        self.level, level = {}, 0
        while names := self._open():
            planner, complete = self._planner(level), self._complete()
            found = [name for name in names if _derivable(planner, name, name in complete)]
            self.level |= dict.fromkeys(found, level)
            left = self._open()
            self.level = {name: at for name, at in self.level.items() if at < level}
            if any(self._put_in_parts(level, name) for name in names if name in found or name in left):
                return False
            self.level |= dict.fromkeys(found, level)
            if not found:
                self._cut(planner, left)
                return False
            level += 1
        return True

    def _open(self) -> list[str]:
        """What has no level yet, and is asked for or read by what has none; bottom up."""
        planner = self._planner(0)
        closed = planner.whole | self.level.keys()
        found, waiting = set[str](), [name for name in self.outputs if name not in closed]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [read for read in self._reads(name) if read in planner.clauses and read not in closed]
        return [name for stratum in self.program.strata for name in stratum if name in found]

    def _reads(self, name: str) -> set[str]:
        """The relations that the rules of one read; for parts that are put together, where they are kept."""
        return {self.parts.get(read, read) for clause in self._rules(name) for read in clause.reads}

    def _rules(self, name: str) -> list[Clause]:
        return [clause for clause in self.program.clauses if clause.head == name]

    def _complete(self) -> set[str]:
        """What has to be derived with whole groups: rules that are needed read it, or it has facts besides."""
        found, waiting = set[str](), list(self.outputs)
        while waiting:
            for read in self._reads(waiting.pop()) - found:
                found.add(read)
                waiting.append(read)
        return (found | with_facts(self.program, self.rows)) - set(self.parts.values())

    # -- cutting ------------------------------------------------------------------------------------------------------

    def _component(self, name: str) -> tuple[str, ...]:
        """The relations that are recursive with one; itself alone if it is recursive with none."""
        return next(stratum for stratum in self.program.strata if name in stratum)

    def _recursive(self, clause: Clause) -> bool:
        return bool(clause.reads.keys() & set(self._component(clause.head)))

    def _put_in_parts(self, level: int, name: str) -> bool:
        """Cut an aggregate into parts where this level can keep them, and it has to or spares much by it."""
        clause, *others = self._rules(name)
        if clause.aggregate is None or others or name in self.parts.values() or self._recursive(clause):
            return False
        if name not in self._complete() or any(read in self.parts for read in clause.reads):
            return False
        program, part, parts = in_parts(self.program, clause)
        try:
            ways = self._planner(level, program, parts=frozenset([part])).options(part)
        except PlanError:
            return False
        if not any(pattern.kind == PART for pattern in ways):
            return False
        self.program = program
        self.parts[parts] = part
        return True

    def _cut(self, planner: Planner, names: Sequence[str]) -> None:
        """Cut a rule of the first relation that is not derivable though all it reads is sent. Raises `PlanError`."""
        name = next(name for name in names if not self._reads(name) & set(names) - set(self._component(name)))
        for clause in (c for member in self._component(name) for c in self._failing(planner, member)):
            halves = list(self._halves(clause))
            if halves:
                _, self.program, sent = min(halves, key=lambda half: half[0])
                self.sent |= {sent}
                return
        try:
            planner.options(name, complete=True)
        except PlanError as refusal:
            raise self._refusal(name, refusal) from None
        raise AssertionError(f"{name} can be derived")

    def _failing(self, planner: Planner, name: str) -> list[Clause]:
        """The rules that are in the way of the column by which the most of a relation's rules can be derived.

        Those that are recursive can be derived where the others can, or not at all; and what a rule that was cut reads
        can be sent by any column.
        """
        if name in self.sent:
            return []
        rules = [clause for clause in self._rules(name) if not self._recursive(clause) and not clause.best]
        rules = [clause for clause in rules if not clause.reads or clause.reads.keys() - self.sent]
        tried = [Pattern("x", (c,)) for c in range(self.program.schemas[name].arity)]
        tried += [ONE] if name in planner.small else []
        ways = [[clause for clause in rules if not _fits(planner, clause, pattern)] for pattern in tried]
        return min(filter(None, ways), key=len, default=[])

    def _halves(self, clause: Clause) -> Iterator[tuple[float, CheckedProgram, str]]:
        """The ways to cut a rule: what partitions hold to derive what is sent, the program, and what that is."""
        ways = [by_bindings(self.program, clause)] if clause.aggregate else by_rows(self.program, clause)
        level = max(self.level.values(), default=-1) + 1
        for program, sent in ways:
            planner = self._planner(level, program, sent=frozenset([sent]))
            costs = [planner.cost([(sent, pattern)])[0] for pattern in planner.by_columns(sent)[0]]
            if costs:
                yield min(costs), program, sent

    def _refusal(self, name: str, refusal: PlanError) -> PlanError:
        recursive = any(map(self._recursive, self._rules(name)))
        why = (
            "it is recursive, and partitions send what they derive when a recursion has ended, not between rounds"
            if recursive
            else "nor can its rows be sent by anything in the body of its rules"
        )
        why = f"{refusal.why}; {why}"
        return PlanError(refusal.what, why=why, remedy=refusal.remedy, span=refusal.span, relation=owner(name))


def _derivable(planner: Planner, name: str, complete: bool) -> bool:
    try:
        return bool(planner.options(name, complete=complete))
    except PlanError:
        return False


def _fits(planner: Planner, clause: Clause, pattern: Pattern) -> bool:
    try:
        planner.step(clause, pattern)
    except Refusal:
        return False
    return True
