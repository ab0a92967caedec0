"""Circuits as parts of a database: a commit is a tick, and outputs are relations that rules may read.

An output is a head with one clause of its own kind, which reads the relations of the inputs; the strategy `circuit`
derives it. All heads of one circuit share its *moments*: what the inputs held, the states of the operators, what the
outputs held. A commit makes the next moment from that of the contents before it; the moment is kept with the commit or
dropped with it, so that a commit that fails leaves the circuit where it was. What was loaded since the last moment is
one tick when somebody looks.

A commit that changes no input is a tick, too, but for circuits that are known to do nothing at it: those that only pass
changes on (idle.py), and others once a tick without changes has left them as they were.
Outputs are made sets, since relations are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from lftj import arguments
from lftj.errors import DataError
from lftj.evaluate.evaluator import Evaluator
from lftj.join.run import Limits
from lftj.language.clause import Clause
from lftj.language.diagnostics import did_you_mean
from lftj.maintain.choose import register
from lftj.maintain.recompute import MAKERS, TICKING
from lftj.maintain.report import Reason, RuleWork
from lftj.maintain.step import Step
from lftj.maintain.strategy import Cost, Staged
from lftj.program.declare_outputs import CIRCUIT, declared
from lftj.program.evaluation import Evaluation
from lftj.program.state import State
from lftj.program.strata import Heads
from lftj.results.answer_errors import unknown
from lftj.store.change import Change
from lftj.store.stored import StoredRelation
from lftj.streams.circuit import Circuit
from lftj.streams.clocks import counters_of_late
from lftj.streams.distinct import DistinctChange
from lftj.streams.graph import Graph
from lftj.streams.idle import passes_on
from lftj.streams.integral import ascending
from lftj.streams.operators import Delay, Integrate, Room, Tick, zset_of
from lftj.streams.zsets import ZSet
from lftj.values.faults import shown
from lftj.values.schema import Schema
from scantree.version import Version


class Moment(NamedTuple):
    """A circuit after a tick: its inputs' contents, its states, its outputs' contents and how the tick changed them.

    `rests`: ticks without changes leave it as it is · `late`: by stream and column, how many rows came so far below a
    watermark.
    """

    ticks: int
    inputs: Mapping[str, Version]
    states: Mapping[int, Any]
    outputs: Mapping[str, Version]
    changes: Mapping[str, Change]
    seconds: float
    rests: bool
    late: Mapping[str, int]


class Attached:
    """A circuit in a database. `inputs`: the relation of each input; `outputs`: the output of each relation."""

    def __init__(
        self, graph: Graph, name: str, inputs: Mapping[str, str], outputs: Mapping[str, str], room: Room
    ) -> None:
        self.graph, self.name, self.inputs, self.outputs, self.room = graph, name, inputs, outputs, room
        self.passes_on = passes_on(self.graph)
        self._late = counters_of_late(self.graph)
        # The last two that were kept: of an interrupted publication, the one before is in force again.
        self._kept: list[Moment] = []
        self._made: Moment | None = None
        self._made_of: Moment | None = None

    def apart(self) -> Attached:
        """The same for a branch, which goes on from here by itself."""
        made = Attached(self.graph, self.name, self.inputs, self.outputs, self.room)
        made._kept = list(self._kept)
        return made

    def moment(self, contents: Mapping[str, StoredRelation]) -> Moment | None:
        """The last moment whose inputs are these contents."""
        return next((moment for moment in reversed(self._kept) if self._is_of(moment, contents)), None)

    def _is_of(self, moment: Moment, contents: Mapping[str, StoredRelation]) -> bool:
        return all(contents[relation].content is moment.inputs[name] for name, relation in self.inputs.items())

    def ticks_without_changes(self, contents: Mapping[str, StoredRelation]) -> bool:
        """Whether a commit that changes no input may change something, `contents` being those before it."""
        if self.passes_on:
            return False
        moment = self.moment(contents)
        return moment is None or not moment.rests

    def keep(self, moment: Moment) -> None:
        """The moment is that of the database from now on."""
        if moment is self._made:
            self._kept = [*(() if self._made_of is None else (self._made_of,)), moment]
            self._made = None

    def drop(self, moment: Moment) -> None:
        """The moment is not kept, though `keep` may have been called."""
        self._made = None
        self._kept = [kept for kept in self._kept if kept is not moment]

    def after(
        self,
        before: Moment | None,
        relations: Mapping[str, StoredRelation],
        changes: Mapping[str, Change] | None,
    ) -> Moment:
        """The moment of the contents of `relations`: one tick after `before`. `changes`: theirs, if they are known."""
        made = self._made
        if made is not None and self._made_of is before and self._is_of(made, relations):
            return made
        began = time.perf_counter()
        contents = {name: relations[relation].content for name, relation in self.inputs.items()}
        given = {name: ZSet.zero(node.arity) for name, node in self.graph.inputs.items() if name not in self.inputs}
        for name, relation in self.inputs.items():
            if changes is not None:
                change = changes.get(relation, Change.none(relations[relation].arity))
            else:
                old = relations[relation].content.store.empty() if before is None else before.inputs[name]
                change = Change.between(old, contents[name])
            given[name] = ZSet(change.rows, change.kinds.astype(np.int64), normal=True)
        if changes is None and before is not None and not any(map(len, given.values())):
            # The same rows, as of a head that was evaluated again since a commit that evaluated it was discarded.
            self._made_of, self._made = before, before._replace(inputs=contents)
            return self._made
        states = self.graph.start(self.room) if before is None else before.states
        ticks = 0 if before is None else before.ticks
        values, following = self.graph.tick(states, given, Tick((ticks,), self.room))
        rests = not any(map(len, given.values())) and self.graph.same(states, following)
        outputs, differences = {}, {}
        for relation, output in self.outputs.items():
            delta = zset_of(values[self.graph.outputs[output].number]).normal()
            change = Change(np.ascontiguousarray(delta.rows), delta.weights.astype(np.int8))
            content = relations[relation].content.store.empty() if before is None else before.outputs[relation]
            if len(change.kinds):
                content, _ = content.update(change.rows, change.kinds)
            rests = rests and not len(change.kinds)
            outputs[relation], differences[relation] = content, change
        self._made_of = before
        seconds = time.perf_counter() - began
        late = {name: following[node] for name, node in self._late.items()}
        self._made = Moment(ticks + 1, contents, following, outputs, differences, seconds, rests, late)
        return self._made

    def last(self) -> Moment | None:
        """The moment that was kept last."""
        return self._kept[-1] if self._kept else None

    def memory(self) -> int:
        """Bytes of the integrals."""
        moment = self.last()
        return 0 if moment is None else self.graph.memory(moment.states)


@dataclass(slots=True, kw_only=True)
class StagedOutput(Staged):
    """An output after a step."""

    attached: Attached
    moment: Moment

    def adopt(self) -> None:
        """The moment is kept."""
        self.attached.keep(self.moment)

    def discard(self) -> None:
        """The moment is dropped."""
        self.attached.drop(self.moment)


class KeptCircuit:
    """The moment before a step."""

    strategy = CIRCUIT

    def __init__(self, heads: Heads, attached: Attached, before: Moment | None) -> None:
        self.clauses, self.attached, self.before = heads.clauses, attached, before

    def holds_for(self, step: Step, heads: Heads) -> bool:
        """Whether it is of the contents before the step; it is found again for each."""
        return False

    def estimate(self, step: Step, heads: Heads) -> Cost:
        """There is no other way."""
        return Cost("a commit is a tick of its circuit")

    def apply(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Make the tick, or take what it gave another output."""
        head, attached = heads.name, self.attached
        moment = attached.after(self.before, step.after, step.changes if self.before is not None else None)
        relation, change = step.after[head], moment.changes[head]
        old = step.before.relations[head].content if head in step.before.relations else relation.content
        if self.before is None or old is not self.before.outputs.get(head):
            change = Change.between(old, moment.outputs[head])
        after = relation.successor(moment.outputs[head], change=change)
        past = {} if self.before is None else self.before.late
        late = {name: count - past.get(name, 0) for name, count in moment.late.items()}
        work = [RuleWork(0, 0, 0, 0, len(change.kinds), moment.seconds)]
        kept = KeptCircuit(heads, attached, moment)
        return StagedOutput(
            CIRCUIT,
            why,
            {head: after},
            {head: change},
            work=work,
            more={"late": late} if late else {},
            kept=kept,
            attached=attached,
            moment=moment,
        )

    def memory(self) -> dict[str, int]:
        """Bytes of the circuit, said of its first output."""
        first = next(iter(self.attached.outputs))
        return {"circuit: integrals": self.attached.memory()} if self.clauses[0].head == first else {}


class CircuitStrategy:
    """The strategy of outputs of circuits."""

    name = CIRCUIT

    def fits(self, step: Step, heads: Heads) -> str:
        """It fits them, and nothing else."""
        return "" if _circuit_of(step, heads) is not None else "no circuit derives it"

    def kept(self, step: Step, heads: Heads) -> KeptCircuit:
        """The moment before the step."""
        attached = _circuit_of(step, heads)
        assert attached is not None
        there = all(relation in step.before.relations for relation in attached.inputs.values())
        before = attached.moment(step.before.relations) if there else None
        return KeptCircuit(heads, attached, before)

    def unprepared(self, step: Step, heads: Heads) -> Reason:
        """There always is something."""
        return "a commit is a tick of its circuit"

    def prepare(self, step: Step, heads: Heads, why: Reason, limits: Limits) -> Staged:
        """Make the tick."""
        return self.kept(step, heads).apply(step, heads, why, limits)

    def explain(self, step: Step, heads: Heads, head: str, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
        """It steps with each commit."""
        attached = _circuit_of(step, heads)
        assert attached is not None
        moment = attached.moment(step.before.relations)
        return {
            "why": f"it is the output `{attached.outputs[head]}` of the circuit `{attached.name}`",
            "recorded": True,
            "current": heads.name not in step.state.stale,
            "late": {} if moment is None else dict(moment.late),
        }

    def lines(self, explained: Mapping[str, Any], indent: str) -> list[str]:
        """A line, and one about rows that came too late."""
        made = [f"{indent}follows changes by a tick of a circuit: {explained['why']}"]
        late = ", ".join(f"{name} {count:,}" for name, count in explained["late"].items())
        return [*made, f"{indent}rows dropped so far since they came below a watermark: {late}"] if late else made


# Of the marks that clauses have: different ones in all databases, as branches have those of what they were made of.
_NUMBERS = count(1)


def _circuit_of(step: Step, heads: Heads) -> Attached | None:
    """The circuit that a head is an output of."""
    aggregate = heads.clauses[0].aggregate if heads.clauses else None
    return step.circuits.get(aggregate.op) if aggregate is not None else None


def _attached_of(evaluator: Evaluator, clause: Clause) -> Attached:
    assert clause.aggregate is not None
    attached: Attached = evaluator.circuits[clause.aggregate.op]
    return attached


def _content(evaluator: Evaluator, clause: Clause, limits: Limits) -> Version:
    """The content of an output over the evaluator's relations: a tick, if its inputs changed since the last."""
    attached = _attached_of(evaluator, clause)
    moment = attached.moment(evaluator.state.relations)
    if moment is None:
        moment = attached.after(attached.last(), evaluator.state.relations, None)
        attached.keep(moment)
    return moment.outputs[clause.head]


def _ticks(evaluator: Evaluator, state: State, clause: Clause) -> bool:
    """Whether an output may change in a commit after `state` that changes none of the inputs."""
    return _attached_of(evaluator, clause).ticks_without_changes(state.relations)


def attach(
    evaluator: Evaluator,
    new: Callable[[Schema], StoredRelation],
    circuit: Circuit,
    inputs: Mapping[str, str] | None,
    outputs: Mapping[str, str] | None,
) -> Attached:
    """Declare the outputs of a circuit as stale heads in the evaluator's state. `DataError` if it does not fit.

    `new` makes an empty relation. If what follows fails, the evaluator's `circuits` are to be what they were.
    """
    if not isinstance(circuit, Circuit):
        raise DataError(
            f"{shown(circuit)} is no circuit",
            why="what is attached steps with every commit",
            remedy="make one with `streams.Circuit()` or `streams.from_rules(...)`",
        )
    made = circuit.changes_graph()
    reads, gives = _named("input", made.inputs, inputs), _named("output", made.outputs, outputs)
    relations = evaluator.state.relations
    # A circuit of rules has every relation at both ends: those that are there are read, the others are given, and so is
    # one that is named as what its output becomes.
    for name in made.inputs.keys() & made.outputs.keys():
        if name in relations and name not in (outputs or {}):
            del gives[name]
        elif (name not in relations or gives[name] == name) and name not in (inputs or {}):
            del reads[name]
    if made.outputs and not gives:
        raise DataError(
            f"the circuit `{circuit.name}` would give nothing",
            why=f"what it could give are relations that are there, which it reads: {', '.join(made.outputs)}",
            remedy=f'say what its outputs become, as in `outputs={{"{(name := list(made.outputs)[-1])}": "{name}"}}`',
        )
    names: dict[str, str] = {}
    for output, relation in gives.items():
        if relation in names:
            raise DataError(
                f"the outputs `{names[relation]}` and `{output}` would both become `{relation}`",
                why="an output of a circuit is a relation of its own",
                remedy=f'give one of them another name: `outputs={{"{output}": "another_{relation}"}}`',
            )
        names[relation] = output
    for name, relation in reads.items():
        if relation not in relations:
            raise unknown(relation, relations)
        schema, columns = relations[relation].schema, made.inputs[name].columns
        if schema.types != tuple(column.type for column in columns):
            raise DataError(
                f"the input `{name}` cannot read `{relation}`",
                why=f"its columns are {Schema(name, columns)}, those of the relation {schema}",
                remedy="make the input with the types of the relation, or name another one in `inputs=`",
            )
    room = Room(evaluator.arena, evaluator.symbols, evaluator.page_rows, evaluator.dir_rows)
    attached = Attached(_as_sets(made), circuit.name, reads, names, room)
    op = f"{CIRCUIT} {next(_NUMBERS)}"
    columns_of = {relation: made.outputs[output].columns for relation, output in names.items()}
    text = f"attach({circuit.name})"
    evaluator.state = declared(evaluator.state, op, list(dict.fromkeys(reads.values())), columns_of, text, new)
    evaluator.circuits[op] = attached
    return attached


def _named(kind: str, there: Mapping[str, object], given: Mapping[str, str] | None) -> dict[str, str]:
    """The relation of each input or output: as given, else of the same name."""
    why, remedy = f"it is the relation of an {kind}, by the name of this", f'give `{kind}s={{"best": "best_bid"}}`, say'
    given = arguments.mapping(f"{kind}s", {} if given is None else given, why, remedy)
    for name, relation in given.items():
        if name not in there:
            raise DataError(
                f"the circuit has no {kind} {name!r}",
                why=f"its {kind}s are {', '.join(there) or 'none'}",
                remedy=did_you_mean(str(name), list(there), "give one of these names"),
            )
        arguments.text(name, relation, "relations are known by their names", "give the name of a relation as a str")
    return {name: given.get(name, name) for name in there}


def _as_sets(graph: Graph) -> Graph:
    """The circuit with outputs that are changes of sets."""
    made = graph.copy()
    for name, node in graph.outputs.items():
        order = ascending(range(node.arity))
        why = "relations are sets (4.7)"
        integral = made.add(Integrate(order), [node], node.columns, why=why)
        before = made.add(Delay(node.arity, order), [integral], node.columns, why=why)
        made.expose(name, made.add(DistinctChange(), [before, node], node.columns, why=why))
    return made


MAKERS[CIRCUIT] = _content
TICKING[CIRCUIT] = _ticks
register(CircuitStrategy(), asked=False)
