"""The partition plan: which variable of each rule is partitioned, and what every partition needs to hold.

A *copy* of a relation says which of its rows a partition holds, by a *pattern*:

    all         every row, in every partition (replicated)
    x (c)       the rows whose key in column c belongs to the partition
    xy (c, d)   the rows whose pair of keys in columns c and d belongs to the partition
    y (d)       the rows whose key in column d may be the second key of a pair that belongs to the partition
    part (n)    of counts and sums: those of a group over the bindings whose variable number n belongs to the partition

Every pair of keys belongs to one partition (`placement.py`); while no key is split, it is that of the first key alone,
and xy is x, y is all. The invariant of a plan: a derived copy holds exactly the rows of its relation that its pattern
names. So partitions derive disjoint sets of rows, their deltas add up without any exchange, and an aggregate or a
negation sees the whole of what it is about. Recursion is no exception where every round keeps the partitioned variable:

    reach(x, z) :- reach(x, y), edge(y, z).                  reach x(0):  reach x(0), edge all

It is made from the heads down. To derive h by column c, each rule of h needs its variable x of that column in a body
atom that is partitioned by x; atoms without x are replicated, if they can be:

    tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).      tri x(0):  edge x(0), edge all, edge x(0)

A count or sum whose groups cross partitions can be asked for all the same, if no rule reads it: every partition keeps
its part of each group, and what is answered is the sum of the parts (partial.py).

A relation that rules derive is replicated only if they are constant or the user asks for it (`replicate=`): every
partition derives all of it then. Otherwise a rule that reads it by another column than the one it can be derived by is
refused by name, which covers aggregates over groups that cross partitions. A relation may be derived in several copies,
one per column it is read by. Of the ways found the one is taken that holds the fewest rows per partition.

What a rule is taken apart into is a relation like any other in a partition. So a group whose aggregate has no result is
an error there even where no rule asks for it, which in one database it is not (lftj/evaluate/undefined_groups.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from lftj.language import Apply, BodyAtom, CheckedProgram, Clause, Value, Var, check, parse
from lftj.language.clause import INTERNAL, Term
from lftj.values.codes import Schema
from lftj.values.type_table import family_of
from spark_bridge.bridge_errors import PlanError

# Rows by which the parts of an aggregate must lessen what a partition holds to be kept where whole groups could be.
SPARED = 10_000
# Types whose sums are exact where they are added up.
ADDED = ("number", "decimal", "duration")
COMPARED = ("number", "unsigned", "decimal", "float", "date")  # types whose least and greatest Arrow finds as lftj does
MANY = 512  # so many combinations of heads' columns are compared; beyond, each head takes its own best


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """Which rows of a relation a partition holds: `kind` is "x", "xy", "y", "part" or "all"."""

    kind: str
    columns: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.kind if not self.columns else f"{self.kind}{''.join(f'_{c}' for c in self.columns)}"


ALL = Pattern("all")
PART = "part"
Copy = tuple[str, Pattern]


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


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What every partition derives.

    `copies`: all that a partition holds, in an order in which each follows what it reads, but within recursion.
    `steps`: the rules of the derived ones. `outputs`: of every relation whose content and change can be asked for, the
    pattern of the copy that answers. `second`: whether pairs of keys, not only single keys, may be told apart.
    """

    program: CheckedProgram
    copies: tuple[Copy, ...]
    steps: tuple[PlanStep, ...]
    outputs: dict[str, Pattern]
    second: bool

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas of the relations that the program names."""
        return {n: s for n, s in self.program.schemas.items() if not n.startswith(INTERNAL)}

    @property
    def derived(self) -> frozenset[str]:
        """The relations that rules derive."""
        return frozenset(clause.head for clause in self.program.clauses)

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
        for step in self.steps:
            if step.clause.head.startswith(INTERNAL) and step.head == ALL and not step.clause.atoms:
                continue
            by = " and ".join(map(str, step.terms))
            lines.append(f"{step.clause}  [{f'partitioned by {by}' if by else 'derived in full by every partition'}]")
            for sign, atoms, patterns in (
                ("", step.clause.atoms, step.positive),
                ("!", step.clause.negated, step.negated),
            ):
                for atom, pattern in zip(atoms, patterns, strict=True):
                    lines.append(f"    {sign}{atom}: {_treatment(atom, pattern)}")
        return "\n".join(lines)


def _treatment(atom: BodyAtom, pattern: Pattern) -> str:
    if pattern == ALL:
        return "replicated"
    if pattern.kind == PART:
        return "each partition's own part"
    by = " and ".join(str(atom.args[c]) for c in pattern.columns)
    return f"shared by {by}" if pattern.kind == "y" else f"partitioned by {by}"


def make_plan(
    text: str,
    *,
    outputs: Sequence[str] | None = None,
    replicate: Sequence[str] = (),
    second: bool = False,
    rows: Mapping[str, int] | None = None,
    partitions: int = 2,
) -> PartitionPlan:
    """The plan for a program's text.

    `outputs`: the relations to be asked for (default: those of `.output`, or all that rules derive). `replicate`: the
    derived relations that every partition may derive in full. `second`: pairs of keys are to be told apart. `rows`: the
    size of relations, to choose by. Raises `ProgramError`, or `PlanError` naming the rule that cannot be partitioned.
    """
    program = check(parse(text))
    for name, schema in program.schemas.items():
        if schema.bag or schema.key:
            raise PlanError(
                f"`{name}` {'is a bag' if schema.bag else 'has a primary key'}, which partitions do not have",
                why="copies are counted, and keys compared, within one database",
                remedy="declare it without `bag` and `primary-key`, as a set or a functional predicate",
            )
    heads = list(dict.fromkeys(c.head for c in program.clauses if not c.head.startswith(INTERNAL)))
    asked = list(dict.fromkeys(d.relation for d in program.directives if d.kind == "output"))
    chosen = list(outputs) if outputs is not None else asked or heads
    for name in (*chosen, *replicate):
        if name not in program.schemas:
            raise PlanError(
                f"there is no relation `{name}`",
                why="the program neither declares nor derives it",
                remedy="name a relation of the program",
            )
    planner = _Planner(program, frozenset(replicate), second)
    return planner.plan([name for name in chosen if name in heads], rows or {}, partitions)


class _Refusal(Exception):
    def __init__(self, clause: Clause, why: str, remedy: str = "", cause: _Refusal | None = None) -> None:
        super().__init__(why)
        self.clause, self.why, self.remedy, self.cause = clause, why, remedy, cause and cause.kept()

    def kept(self) -> _Refusal:
        """The same, to be kept: without the frames it went through, which hold the rows of whoever asked for a plan."""
        return self.with_traceback(None)


class _Planner:
    def __init__(self, program: CheckedProgram, replicate: frozenset[str], second: bool) -> None:
        self.program, self.second = program, second
        self.clauses: dict[str, list[Clause]] = {}
        for clause in program.clauses:
            self.clauses.setdefault(clause.head, []).append(clause)
        self.constant: set[str] = set()
        for name in (name for stratum in program.strata for name in stratum):
            reads = {read for clause in self.clauses.get(name, ()) for read in clause.reads}
            if name in self.clauses and reads <= self.constant:
                self.constant.add(name)
        self.whole = self._below(replicate) | self.constant
        self._steps: dict[Copy, list[PlanStep] | _Refusal] = {}

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
        """The rules of one copy; none for a relation without rules. Raises `_Refusal`.

        A copy that is read while its own rules are looked at is taken to be derivable: so recursion is partitioned by
        a variable that every round keeps. If it is refused after all, nothing that was found meanwhile stands.
        """
        if name not in self.clauses:
            return []
        if (name, pattern) not in self._steps:
            known = dict(self._steps)
            self._steps[name, pattern] = []
            try:
                self._steps[name, pattern] = [self._step(clause, pattern) for clause in self.clauses[name]]
            except _Refusal as refusal:
                self._steps = {**known, (name, pattern): refusal.kept()}
        found = self._steps[name, pattern]
        if isinstance(found, _Refusal):
            raise _Refusal(found.clause, found.why, found.remedy, found.cause)
        return found

    def _step(self, clause: Clause, pattern: Pattern) -> PlanStep:
        if pattern == ALL:
            if clause.head not in self.whole:
                raise _Refusal(clause, f"{_shown(clause.head)} would have to be derived in full by every partition")
            whole = (*(self._whole(clause, a) for a in (*clause.atoms, *clause.negated)),)
            return PlanStep(clause, ALL, whole[: len(clause.atoms)], whole[len(clause.atoms) :])
        if pattern.kind == PART:
            return self._part(clause, pattern)
        schema = self.program.schemas[clause.head]
        if schema.functional and max(pattern.columns) >= schema.arity - 1:
            what = "an aggregate" if clause.head.startswith(INTERNAL) else "a functional predicate"
            raise _Refusal(clause, f"{_shown(clause.head)} cannot be partitioned by the value of {what}, only by a key")
        same = _equalities(clause)
        terms: list[Term] = []
        for c in pattern.columns:
            if clause.aggregate is not None and c >= clause.aggregate.groups:
                raise _Refusal(clause, "its groups cross partitions")
            term = same(clause.head_args[c])
            if isinstance(term, Apply):
                raise _Refusal(clause, f"`{term}` in its head is computed, and may belong to another partition")
            terms.append(term)
        positive = tuple(self._read(clause, atom, terms, same) for atom in clause.atoms)
        negated = tuple(self._read(clause, atom, terms, same) for atom in clause.negated)
        wanted = "xy" if len(terms) == 2 else "x"
        if wanted not in {p.kind for p in positive}:
            held = " and ".join(f"`{term}`" for term in terms)
            raise _Refusal(clause, f"no atom of its body that holds {held} can be partitioned by it")
        return PlanStep(clause, pattern, positive, negated)

    def _part(self, clause: Clause, pattern: Pattern) -> PlanStep:
        """A count or sum over the bindings of a partition, and what only copies it or is 0 without it."""
        if sum(not _is_zero_without(other) for other in self.clauses[clause.head]) > 1:
            raise _Refusal(clause, "several rules derive it, and parts of their values may not be compared")
        if clause.aggregate is None:
            atoms = (*clause.atoms, *clause.negated)
            copied = clause.atoms[0] if len(atoms) == 1 and clause.atoms and not clause.compares else None
            if copied is not None and (copied.args != clause.head_args or len(set(copied.args)) < len(copied.args)):
                copied = None
            if (copied is None and not _is_zero_without(clause)) or atoms[0].predicate not in self.clauses:
                raise _Refusal(clause, "it reads an aggregate whose groups cross partitions")
            self.steps(atoms[0].predicate, pattern)
            return PlanStep(clause, pattern, (pattern,) * len(clause.atoms), (pattern,) * len(clause.negated))
        aggregate = clause.aggregate
        types = {"count": ADDED, "sum": ADDED, "min": COMPARED, "max": COMPARED}.get(aggregate.op, ())
        if family_of(aggregate.type) not in types or (types == COMPARED and aggregate.type.endswith("?")):
            raise _Refusal(
                clause,
                f"the parts of a {aggregate.op} of {aggregate.type} cannot be put together exactly",
                "ask for its sum and its count, which do" if aggregate.op == "mean" else "",
            )
        variables = clause.variables()
        if pattern.columns[0] >= len(variables):
            raise _Refusal(clause, "its groups cross partitions, and its body has no variable to partition by")
        same = _equalities(clause)
        terms = [same(variables[pattern.columns[0]])]
        positive = tuple(self._read(clause, atom, terms, same) for atom in clause.atoms)
        negated = tuple(self._read(clause, atom, terms, same) for atom in clause.negated)
        if "x" not in {p.kind for p in positive}:
            raise _Refusal(clause, f"no atom of its body that holds `{terms[0]}` can be partitioned by it")
        return PlanStep(clause, pattern, positive, negated)

    def _whole(self, clause: Clause, atom: BodyAtom) -> Pattern:
        self.steps(atom.predicate, ALL)
        return ALL

    def _read(self, clause: Clause, atom: BodyAtom, terms: list[Term], same: _Same) -> Pattern:
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
        cause: _Refusal | None = None
        for pattern in (*tries, ALL):
            try:
                self.steps(atom.predicate, pattern)
            except _Refusal as refusal:
                cause = cause or refusal
            else:
                return pattern
        held = " and ".join(f"`{term}`" for term in terms)
        if tries:
            why = f"{_shown(atom.predicate)}, which it reads by {held}, cannot be partitioned so"
        else:
            why = f"{_shown(atom.predicate)}, which it reads without {held}, is derived, and spread over partitions"
        raise _Refusal(clause, why, cause=cause)

    # -- the program --------------------------------------------------------------------------------------------------

    def plan(self, outputs: list[str], rows: Mapping[str, int], partitions: int) -> PartitionPlan:
        """The cheapest plan that derives `outputs`."""
        options = [self._options(name, rows, partitions) for name in outputs]
        count = 1
        for found in options:
            count *= len(found)
        if count <= MANY:
            ways: Iterable[tuple[Pattern, ...]] = product(*options)
        else:
            ways = [
                tuple(
                    min(found, key=lambda p, n=name: self._cost(self._copies([(n, p)]), rows, partitions))  # type: ignore[misc]
                    for name, found in zip(outputs, options, strict=True)
                )
            ]
        best = min(
            (dict(zip(outputs, way, strict=True)) for way in ways),
            key=lambda way: self._cost(self._copies(way.items()), rows, partitions),
        )
        return self._finished(best)

    def _options(self, name: str, rows: Mapping[str, int], partitions: int) -> list[Pattern]:
        if name in self.whole:
            return [ALL]
        arity = self.program.schemas[name].arity
        if self.second:
            tried = [Pattern("xy", (c, d)) for c in range(arity) for d in range(arity) if c != d]
        else:
            tried = [Pattern("x", (c,)) for c in range(arity)]
        found, refusals = [], []
        for pattern in tried:
            try:
                self.steps(name, pattern)
                found.append(pattern)
            except _Refusal as refusal:
                refusals.append(refusal.kept())
        parts, without = self._parts(name)
        if found and parts:
            # Whole groups are answered as they are, so parts must spare partitions a good deal of rows.
            least = min(self._cost(self._copies([(name, p)]), rows, partitions)[0] for p in found)
            costs = [(self._cost(self._copies([(name, p)]), rows, partitions)[0], p) for p in parts]
            parts = [p for cost, p in costs if cost < least - SPARED]
        if not found and not parts:
            raise self._error(name, refusals, without)
        return [*found, *parts]

    def _parts(self, name: str) -> tuple[list[Pattern], _Refusal | None]:
        """The variables by which the parts of a count or sum can be kept; why not by the first, if by none."""
        own, seen = list(self.clauses[name]), 0
        for clause in own:
            seen = max(seen, len(clause.variables()))
            own += [c for read in clause.reads if read.startswith(INTERNAL) for c in self.clauses[read] if c not in own]
        found, first = list[Pattern](), None
        if self.second or not any(clause.aggregate for clause in own):
            return found, None
        for i in range(max(1, seen)):
            try:
                self.steps(name, Pattern(PART, (i,)))
                found.append(Pattern(PART, (i,)))
            except _Refusal as refusal:
                first = first or refusal.kept()
        return found, None if found else first

    def _error(self, name: str, refusals: list[_Refusal], parts: _Refusal | None) -> PlanError:
        if not refusals:
            clause = self.clauses[name][0]
            why = (
                "its head holds no second variable" if self.second and clause.head_args else "its head has no variable"
            )
            refusals = [_Refusal(clause, f"{why} to partition by")]
        deepest = refusals[0]
        reasons = [deepest.why]
        while deepest.cause is not None:
            deepest = deepest.cause
            reasons.append(deepest.why)
        clause, remedy = refusals[0].clause, ""
        if parts is not None:
            reasons.append(f"nor can its parts be kept: {parts.why}")
            remedy = f"{parts.remedy}; or else " if parts.remedy else ""
        return PlanError(
            f"`{name}` cannot be derived partition by partition: {clause.text or clause}",
            span=deepest.clause.span,
            why="; ".join(dict.fromkeys(reasons)),
            remedy=f'{remedy}replicate=["{name}"] lets every partition derive all of it, '
            "where it and what it reads are small",
            relation=name,
        )

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

    def _cost(self, copies: Iterable[Copy], rows: Mapping[str, int], partitions: int) -> tuple[float, list[Copy]]:
        cost = 0.0
        for name, pattern in copies:
            held = 1.0 if pattern.kind in ("all", "y") else 1.0 / max(2, partitions)
            cost += rows.get(name, 1) * held
        return cost, sorted(copies)

    def _finished(self, outputs: dict[str, Pattern]) -> PartitionPlan:
        copies = self._copies(outputs.items())
        answers = dict(outputs)
        for name, schema in self.program.schemas.items():
            if name.startswith(INTERNAL) or name in self.clauses:
                continue
            own = [p for n, p in copies if n == name]
            if schema.functional and not any(_sees_conflicts(p, schema) for p in own):
                own.append(Pattern("x", (0,)) if schema.arity > 1 else ALL)
            elif not own:
                own.append(Pattern("x", (0,)) if schema.arity else ALL)
            copies |= dict.fromkeys((name, p) for p in own)
            answers[name] = min(own, key=lambda p: ("xy", "x", "y", "all").index(p.kind))
        steps = tuple(step for copy in copies for step in self.steps(*copy))
        if not any(pattern.kind in ("x", "xy") for _, pattern in copies):
            raise PlanError(
                "nothing of this program can be partitioned",
                why="every relation would be held, and derived, in full by every partition",
                remedy="evaluate it with lftj.Database, on one machine",
            )
        return PartitionPlan(self.program, tuple(copies), steps, answers, self.second)


def _sees_conflicts(pattern: Pattern, schema: Schema) -> bool:
    """Whether two rows of a functional predicate under one key meet in a partition."""
    return all(c < schema.arity - 1 for c in pattern.columns)


def _is_zero_without(clause: Clause) -> bool:
    """Whether it only says that a count or sum over nothing is 0."""
    if clause.atoms or len(clause.negated) != 1 or not clause.head_args:
        return False
    absent, same = clause.negated[0], _equalities(clause)
    if any(absent.args) or not absent.predicate.startswith(INTERNAL) or {c.op for c in clause.compares} - {"="}:
        return False
    constants = [same(term) for term in clause.head_args]
    last = constants[-1]
    found = all(isinstance(term, Value) for term in constants)
    return found and isinstance(last, Value) and last.value is not None and not last.value


def _shown(name: str) -> str:
    """The relation a user knows: of a part that a rule was taken apart into, the rule's head."""
    return f"a part of `{name[1:].split('.')[0]}`" if name.startswith(INTERNAL) else f"`{name}`"


class _Same:
    """Terms of a clause that its equalities make one."""

    def __init__(self) -> None:
        self._to: dict[Term, Term] = {}

    def __call__(self, term: Term) -> Term:
        while term in self._to:
            term = self._to[term]
        return term

    def join(self, left: Term, right: Term) -> None:
        """Both are one; a constant stands for a variable."""
        a, b = self(left), self(right)
        if a != b:
            if isinstance(a, Value):
                a, b = b, a
            if isinstance(a, Var):
                self._to[a] = b


def _equalities(clause: Clause) -> _Same:
    same = _Same()
    for compare in clause.compares:
        if compare.op == "=" and not isinstance(compare.left, Apply) and not isinstance(compare.right, Apply):
            same.join(compare.left, compare.right)
    return same
