"""The planner: which variable of each rule is partitioned within a stage.

A plan is made from the heads down. To derive h by column c, each rule of h needs its variable x of that column in a
body atom that is partitioned by x; atoms without x are replicated, if they can be:

    tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).      tri x(0):  edge x(0), edge all, edge x(0)

Recursion is no exception where every round keeps the partitioned variable:

    reach(x, z) :- reach(x, y), edge(y, z).                  reach x(0):  reach x(0), edge all

A count, sum or extreme whose groups cross partitions is kept in parts if no rule of the stage reads it: every partition
keeps its part of each group, and whoever reads it adds up the parts (partial.py, or a rule of a later stage).

A relation that rules derive is replicated only if they are constant or the user asks for it (`replicate=`): every
partition derives all of it then. Otherwise a rule that reads it by another column than the one it can be derived by is
refused: that takes another stage (stages.py). A relation may be derived in several copies, one per column it is read
by. Of the ways found the one is taken that holds the fewest rows per partition.

What a rule is taken apart into is a relation like any other in a partition. So a group whose aggregate has no result is
an error there even where no rule asks for it, which in one database it is not (lftj/evaluate/undefined_groups.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

from lftj.language import Apply, BodyAtom, CheckedProgram, Clause, Value
from lftj.language.clause import INTERNAL, Term
from lftj.values.schema import Schema
from lftj.values.type_table import family_of
from spark_bridge.bridge_errors import PlanError
from spark_bridge.clause_terms import Same, equalities, is_zero_without, shown
from spark_bridge.plan import ALL, ONE, PART, Copy, PartitionPlan, Pattern, PlanStep
from spark_bridge.program_checks import checked, with_facts
from spark_bridge.refusals import ON_ONE_MACHINE, Refusal, plan_error

# Rows by which the parts of an aggregate must lessen what a partition holds to be kept where whole groups could be.
SPARED = 10_000
# Types whose sums are exact where they are added up.
ADDED = ("number", "decimal", "duration")
COMPARED = ("number", "unsigned", "decimal", "float", "date")  # types whose least and greatest Arrow finds as lftj does
MANY = 512  # so many combinations of heads' columns are compared; beyond, each head takes its own best


def make_plan(
    text: str,
    *,
    outputs: Sequence[str] | None = None,
    replicate: Sequence[str] = (),
    second: bool = False,
    rows: Mapping[str, int] | None = None,
    partitions: int = 2,
) -> PartitionPlan:
    """The plan for a program's text in one stage.

    `outputs`: the relations to be asked for (default: those of `.output`, or all that rules derive). `replicate`: the
    derived relations that every partition may derive in full. `second`: pairs of keys are to be told apart. `rows`: the
    size of relations, to choose by. Raises `ProgramError`, or `PlanError` naming the rule that cannot be partitioned.
    """
    program, chosen = checked(text, outputs, replicate)
    planner = Planner(program, frozenset(replicate), rows or {}, partitions, second=second)
    plan = planner.finished(planner.cheapest(chosen), planner.base())
    if not any(pattern.kind in ("x", "xy") for _, pattern in plan.copies):
        raise PlanError(
            "nothing of this program can be partitioned",
            why="every relation would be held, and derived, in full by every partition",
            remedy=ON_ONE_MACHINE,
        )
    return plan


class Planner:
    """Finds copies for the relations of one stage.

    `rows`: how many of each given relation, and of each head that facts are given of, whose groups are kept whole.
    `staged`: of several. `given`: those of earlier stages, which it is sent. `waiting`: those that only a later stage
    is sent. `sent_parts`: the aggregates whose parts are sent on; `sent`: the rules' halves that are, which no stage
    derives again. `small`: those of one row at most, as they have no key, and what is derived from rows of these alone.
    """

    def __init__(
        self,
        program: CheckedProgram,
        replicate: frozenset[str],
        rows: Mapping[str, int],
        partitions: int,
        *,
        second: bool = False,
        staged: bool = False,
        given: frozenset[str] = frozenset(),
        waiting: frozenset[str] = frozenset(),
        sent_parts: frozenset[str] = frozenset(),
        sent: frozenset[str] = frozenset(),
    ) -> None:
        self.program, self.second, self.rows, self.partitions = program, second, rows, partitions
        self.staged, self.given, self.waiting, self.sent_parts = staged, given, waiting, sent_parts
        self.with_facts = with_facts(program, rows)
        self.clauses: dict[str, list[Clause]] = {}
        for clause in program.clauses:
            self.clauses.setdefault(clause.head, []).append(clause)
        constant, self.small = set[str](), {name for name, schema in program.schemas.items() if not schema.arity}
        for name in (name for stratum in program.strata for name in stratum):
            reads = {read for clause in self.clauses.get(name, ()) for read in clause.reads}
            if name in self.clauses and reads <= constant and name not in sent:
                constant.add(name)
            bound = {atom.predicate for clause in self.clauses.get(name, ()) for atom in clause.atoms}
            if program.schemas[name].arity == program.schemas[name].functional or bound <= self.small:
                self.small.add(name)
        self.whole = self._below(replicate) | constant
        for name in given:
            self.clauses.pop(name, None)
        self._steps: dict[Copy, list[PlanStep] | Refusal] = {}

    def base(self) -> list[str]:
        """The relations without rules that the program names."""
        names = [name for name in self.program.schemas if not name.startswith(INTERNAL)]
        return [name for name in names if name not in self.clauses and name not in self.given]

    def _below(self, names: Iterable[str]) -> set[str]:
        found, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [read for clause in self.clauses.get(name, ()) for read in clause.reads]
        return found

    # -- one copy -----------------------------------------------------------------------------------------------------

    def steps(self, name: str, pattern: Pattern) -> list[PlanStep]:
        """The rules of one copy; none for a relation without rules. Raises `Refusal`.

        A copy that is read while its own rules are looked at is taken to be derivable: so recursion is partitioned by
        a variable that every round keeps. If it is refused after all, nothing that was found derivable meanwhile
        stands; what was refused even so does.
        """
        if name in self.waiting:
            reader = next(clause for clause in self.program.clauses if name in clause.reads)
            raise Refusal(reader, f"{shown(name)} is put together in a later stage")
        if name not in self.clauses:
            return []
        if (name, pattern) not in self._steps:
            known = dict(self._steps)
            self._steps[name, pattern] = []
            try:
                self._steps[name, pattern] = [self.step(clause, pattern) for clause in self.clauses[name]]
            except Refusal as refusal:
                refused = {copy: found for copy, found in self._steps.items() if isinstance(found, Refusal)}
                self._steps = {**known, **refused, (name, pattern): refusal.kept()}
        found = self._steps[name, pattern]
        if isinstance(found, Refusal):
            raise Refusal(found.clause, found.why, found.remedy, found.cause)
        return found

    def step(self, clause: Clause, pattern: Pattern) -> PlanStep:
        """A rule for one copy of its head. Raises `Refusal`."""
        if pattern == ALL:
            if clause.head not in self.whole:
                raise Refusal(clause, f"{shown(clause.head)} would have to be derived in full by every partition")
            whole = (*(self._whole(clause, a) for a in (*clause.atoms, *clause.negated)),)
            return PlanStep(clause, ALL, whole[: len(clause.atoms)], whole[len(clause.atoms) :])
        if pattern == ONE:
            read = (*(self._sent(clause, atom) for atom in (*clause.atoms, *clause.negated)),)
            return PlanStep(clause, ONE, read[: len(clause.atoms)], read[len(clause.atoms) :])
        if pattern.kind == PART:
            return self._part(clause, pattern)
        schema = self.program.schemas[clause.head]
        if schema.functional and max(pattern.columns) >= schema.arity - 1:
            what = "an aggregate" if clause.head.startswith(INTERNAL) else "a functional predicate"
            raise Refusal(clause, f"{shown(clause.head)} cannot be partitioned by the value of {what}, only by a key")
        same = equalities(clause)
        terms: list[Term] = []
        for c in pattern.columns:
            if clause.aggregate is not None and c >= clause.aggregate.groups:
                raise Refusal(clause, "its groups cross partitions")
            term = same(clause.head_args[c])
            if isinstance(term, Apply):
                raise Refusal(clause, f"`{term}` in its head is computed, and may belong to another partition")
            terms.append(term)
        positive = tuple(self._read(clause, atom, terms, same) for atom in clause.atoms)
        negated = tuple(self._read(clause, atom, terms, same) for atom in clause.negated)
        wanted = "xy" if len(terms) == 2 else "x"
        # The partition that constants belong to derives a rule without atoms, and values that a recursion compares with
        # its own: no stage before could send these, while rows of other rules are sent from wherever they are.
        constant = all(isinstance(term, Value) for term in terms) and (not clause.reads or bool(clause.best))
        if not constant and wanted not in {p.kind for p in positive}:
            held = " and ".join(f"`{term}`" for term in terms)
            raise Refusal(clause, f"no atom of its body that holds {held} can be partitioned by it")
        return PlanStep(clause, pattern, positive, negated)

    def _part(self, clause: Clause, pattern: Pattern) -> PlanStep:
        """A count or sum over the bindings of a partition, and what only copies it or is 0 without it."""
        if clause.head in self.with_facts:
            raise Refusal(clause, "facts of it are given, which are whole values and no parts")
        if sum(not is_zero_without(other) for other in self.clauses[clause.head]) > 1:
            raise Refusal(clause, "several rules derive it, and parts of their values may not be compared")
        if clause.aggregate is None:
            atoms = (*clause.atoms, *clause.negated)
            copied = clause.atoms[0] if len(atoms) == 1 and clause.atoms and not clause.compares else None
            if copied is not None and (copied.args != clause.head_args or len(set(copied.args)) < len(copied.args)):
                copied = None
            if (copied is None and not is_zero_without(clause)) or atoms[0].predicate not in self.clauses:
                raise Refusal(clause, "it reads an aggregate whose groups cross partitions")
            self.steps(atoms[0].predicate, pattern)
            return PlanStep(clause, pattern, (pattern,) * len(clause.atoms), (pattern,) * len(clause.negated))
        aggregate = clause.aggregate
        types = {"count": ADDED, "sum": ADDED, "min": COMPARED, "max": COMPARED}.get(aggregate.op, ())
        # A later stage compares what it is sent as lftj does.
        known = family_of(aggregate.type) in types or (types == COMPARED and clause.head in self.sent_parts)
        if not known or (types == COMPARED and aggregate.type.endswith("?")):
            raise Refusal(
                clause,
                f"the parts of a {aggregate.op} of {aggregate.type} cannot be put together exactly",
                "ask for its sum and its count, which do" if aggregate.op == "mean" else "",
            )
        variables = clause.variables()
        if pattern.columns[0] >= len(variables):
            raise Refusal(clause, "its groups cross partitions, and its body has no variable to partition by")
        same = equalities(clause)
        terms = [same(variables[pattern.columns[0]])]
        positive = tuple(self._read(clause, atom, terms, same) for atom in clause.atoms)
        negated = tuple(self._read(clause, atom, terms, same) for atom in clause.negated)
        if "x" not in {p.kind for p in positive}:
            raise Refusal(clause, f"no atom of its body that holds `{terms[0]}` can be partitioned by it")
        return PlanStep(clause, pattern, positive, negated)

    def _sent(self, clause: Clause, atom: BodyAtom) -> Pattern:
        """The pattern under which one partition has all rows of an atom: of what is sent, or derived there."""
        if atom.predicate in self.whole:
            return self._whole(clause, atom)
        base = atom.predicate not in self.clauses and (not atom.args or atom in clause.negated)
        if not base and atom.predicate not in self.given | self.small:
            raise Refusal(clause, f"one partition would have to hold all of {shown(atom.predicate)}")
        self.steps(atom.predicate, ONE)
        return ONE

    def _whole(self, clause: Clause, atom: BodyAtom) -> Pattern:
        self.steps(atom.predicate, ALL)
        return ALL

    def _read(self, clause: Clause, atom: BodyAtom, terms: list[Term], same: Same) -> Pattern:
        """The pattern under which an atom is complete for the keys of a partition."""
        places = [[i for i, arg in enumerate(atom.args) if arg is not None and same(arg) == t] for t in terms]
        tries: list[Pattern] = []
        if len(terms) == 2:
            tries += [Pattern("xy", (i, j)) for i in places[0] for j in places[1] if i != j]
            if atom.predicate not in self.clauses:
                tries += [Pattern("x", (i,)) for i in places[0]]
                tries += [Pattern("y", (j,)) for j in places[1]]
        else:
            tries += [Pattern("x", (i,)) for i in places[0]]
        cause: Refusal | None = None
        for pattern in (*tries, ALL):
            try:
                self.steps(atom.predicate, pattern)
            except Refusal as refusal:
                cause = cause or refusal
            else:
                return pattern
        held = " and ".join(f"`{term}`" for term in terms)
        if tries:
            why = f"{shown(atom.predicate)}, which it reads by {held}, cannot be partitioned so"
        else:
            why = f"{shown(atom.predicate)}, which it reads without {held}, is derived, and spread over partitions"
        raise Refusal(clause, why, cause=cause)

    # -- the program --------------------------------------------------------------------------------------------------

    def cheapest(self, wanted: Iterable[str], *, complete: Collection[str] = ()) -> dict[str, Pattern]:
        """The patterns under which these relations together are derived at the least cost. Raises `PlanError`.

        `complete`: those whose groups have to be whole.
        """
        names = list(wanted)
        options = [self.options(name, complete=name in complete) for name in names]
        count = 1
        for found in options:
            count *= len(found)
        ways: Iterable[tuple[Pattern, ...]] = product(*options)
        if count > MANY:
            ways = [
                tuple(
                    min(found, key=lambda p, n=name: self.cost([(n, p)]))  # type: ignore[misc]
                    for name, found in zip(names, options, strict=True)
                )
            ]
        return min((dict(zip(names, way, strict=True)) for way in ways), key=lambda way: self.cost(way.items()))

    def options(self, name: str, *, complete: bool = False) -> list[Pattern]:
        """The patterns under which an output, or what is sent on, can be derived. Raises `PlanError`.

        `complete`: its groups have to be whole.
        """
        if name in self.whole:
            return [ALL]
        found, refusals = self.by_columns(name)
        parts, without = ([], None) if complete else self._parts(name)
        if found and parts:
            # Whole groups are answered as they are, so parts must spare partitions a good deal of rows.
            least = min(self.cost([(name, p)])[0] for p in found)
            parts = [p for p in parts if self.cost([(name, p)])[0] < least - SPARED]
        if not found and not parts:
            raise plan_error(self.clauses[name][0], refusals, without, pairs=self.second)
        return [*found, *parts]

    def by_columns(self, name: str) -> tuple[list[Pattern], list[Refusal]]:
        """The patterns under which partitions derive disjoint parts of a relation, and why not under the others."""
        arity = self.program.schemas[name].arity
        if self.second:
            tried = [Pattern("xy", (c, d)) for c in range(arity) for d in range(arity) if c != d]
        else:
            tried = [Pattern("x", (c,)) for c in range(arity)]
        found, refusals = [], []
        for pattern in (*tried, *([ONE] if self.staged and name in self.small else ())):
            try:
                self.steps(name, pattern)
                found.append(pattern)
            except Refusal as refusal:
                refusals.append(refusal.kept())
        return [p for p in found if p != ONE or len(found) == 1], refusals

    def _parts(self, name: str) -> tuple[list[Pattern], Refusal | None]:
        """The variables by which the parts of a count or sum can be kept; why not by the first, if by none."""
        own, seen = list(self.clauses[name]), 0
        for clause in own:
            seen = max(seen, len(clause.variables()))
            parts = [read for read in clause.reads if read.startswith(INTERNAL)]
            own += [c for read in parts for c in self.clauses.get(read, ()) if c not in own]
        found, first = list[Pattern](), None
        if self.second or not any(clause.aggregate for clause in own):
            return found, None
        for i in range(max(1, seen)):
            try:
                self.steps(name, Pattern(PART, (i,)))
                found.append(Pattern(PART, (i,)))
            except Refusal as refusal:
                first = first or refusal.kept()
        return found, None if found else first

    def _copies(self, wanted: Iterable[Copy]) -> dict[Copy, None]:
        found: dict[Copy, None] = {}
        begun: set[Copy] = set()

        def visit(copy: Copy) -> None:
            if copy not in begun:
                begun.add(copy)
                for step in self.steps(*copy):
                    for read in step.copies():
                        visit(read)
                found[copy] = None

        for copy in wanted:
            visit(copy)
        return found

    def cost(self, wanted: Iterable[Copy]) -> tuple[float, list[Copy]]:
        """The rows that a partition holds to derive these copies; then the copies, so that one of two is the first."""
        cost, copies = 0.0, self._copies(wanted)
        for name, pattern in copies:
            held = 1.0 if pattern.kind in ("all", "y", "one") else 1.0 / max(2, self.partitions)
            cost += self.rows.get(name, 1) * held
        return cost, sorted(copies)

    def finished(self, outputs: Mapping[str, Pattern], base: Iterable[str]) -> PartitionPlan:
        """The plan for these outputs, which answers for these relations without rules as well."""
        copies = self._copies(outputs.items())
        answers = dict(outputs)
        for name in base:
            schema = self.program.schemas[name]
            own = [p for n, p in copies if n == name]
            if schema.functional and not any(_sees_conflicts(p, schema) for p in own):
                own.append(Pattern("x", (0,)) if schema.arity > 1 else ALL)
            elif not own:
                own.append(Pattern("x", (0,)) if schema.arity else ALL)
            copies |= dict.fromkeys((name, p) for p in own)
            answers[name] = min(own, key=lambda p: ("xy", "x", "y", "one", "all").index(p.kind))
        steps = tuple(step for copy in copies for step in self.steps(*copy))
        return PartitionPlan(self.program, tuple(copies), steps, answers, self.second)


def _sees_conflicts(pattern: Pattern, schema: Schema) -> bool:
    """Whether two rows of a functional predicate under one key meet in a partition."""
    return all(c < schema.arity - 1 for c in pattern.columns)
