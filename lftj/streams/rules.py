"""Rules as a circuit: the second implementation of everything that rules can say.

    streams.from_rules(text)     an incremental circuit: inputs and outputs are the relations of the program

A rule is a chain of joins (rule_body.py), a head the `distinct` sum of its rules and its facts. A recursive component
is a nested circuit: each head is a loop that reads itself through a delay. Aggregates are functions by key over the
bindings of their braces; in recursion, the best value of each key.

What a database refuses is refused (refused.py).

Nothing is chosen by cost, and joins are binary: the circuit is a reference for the engine, not its rival. The inputs
are Z-sets: a row is in its relation while its weight is positive.

Source: M. Budiu et al., DBSP (VLDB 2023), sections 4 (relational operators), 5 (recursion), 6 (incremental recursion).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lftj import arguments
from lftj.language.builder import Program
from lftj.language.checker import check
from lftj.language.clause import INTERNAL, CheckedProgram, Clause
from lftj.language.parse import parse
from lftj.streams.by_key import ByKey
from lftj.streams.circuit import Circuit, NestedCircuit
from lftj.streams.distinct import Distinct
from lftj.streams.graph import Graph
from lftj.streams.no_cycle import without_cycle
from lftj.streams.ranking import Ranking, TopK
from lftj.streams.refused import Refused
from lftj.streams.rule_body import ClauseStreams, constant
from lftj.streams.stream import Stream
from lftj.values.schema import Schema


def from_rules(rules: str | Program) -> Circuit:
    """The incremental circuit of a program: it maps changes of relations to changes of all relations.

    Every relation is an input (what is given of a head are facts of it) and an output. Raises `ProgramError`.
    """
    return circuit_of(rules).incremental()


def circuit_of(rules: str | Program) -> Circuit:
    """The circuit of a program over whole relations, before it is made incremental."""
    why, remedy = "it is the text of rules, or a lftj.Program", 'give rules, as in `from_rules("p(x) :- e(x).")`'
    text = rules.to_text() if isinstance(rules, Program) else arguments.text("rules", rules, why, remedy)
    return _Translation(check(parse(text))).circuit


class _Translation:
    """The circuit of a program, stratum by stratum. `relations`: the stream of each, where it is made."""

    def __init__(self, program: CheckedProgram) -> None:
        self.program, self.circuit = program, Circuit("rules")
        self.clauses: dict[str, list[Clause]] = {}
        for clause in program.clauses:
            self.clauses.setdefault(clause.head, []).append(clause)
        self.relations: dict[str, Stream] = {}
        self.without_result: dict[str, tuple[Clause, Stream]] = {}
        self.facts = {name: self._facts(schema) for name, schema in program.schemas.items()}
        for name in program.schemas:
            if name not in self.clauses:
                facts = self.facts[name]
                assert facts is not None
                self.relations[name] = facts.distinct().named(name)
        for component in program.strata:
            reads = {read for head in component for clause in self.clauses[head] for read in clause.reads}
            if reads & set(component):
                self._recursive(component, reads - set(component))
            else:
                (head,) = component
                self.relations[head] = self._head(head, self.relations, self.facts[head], self.circuit._graph)
        refused = Refused(self.circuit._graph, program, self.clauses, self.relations, self.without_result).streams()
        for name in program.schemas:
            if not name.startswith(INTERNAL):
                made = self.relations[name]
                for never in refused.get(name, ()):
                    made = made + never
                self.circuit.output(name, made)

    def _facts(self, schema: Schema) -> Stream | None:
        """The facts of a relation: those of the text, and what comes in. None of one that no user can name."""
        if schema.name.startswith(INTERNAL):
            return None
        given = self.circuit.input(schema.name, **{c.name: c.type for c in schema.columns})
        rows = self.program.facts.get(schema.name)
        if not rows:
            return given
        return given + constant(self.circuit._graph, rows, schema.columns)

    def _recursive(self, component: Sequence[str], outside: set[str]) -> None:
        """A component whose heads are derived from one another, as a nested circuit."""
        along_data = [clause for head in component for clause in self.clauses[head] if clause.acyclic]
        schemas = [self.program.schemas[head] for head in component]
        below = {**self.relations, **(without_cycle(self.relations, along_data, schemas) if along_data else {})}
        with self.circuit.nested(" ".join(component)) as inner:
            known = {name: inner.enter(below[name]) for name in sorted(outside)}
            loops = {head: self._loop(inner, head) for head in component}
            known.update({head: loop.delay() for head, loop in loops.items()})
            for head in component:
                given = self.facts[head]
                made = self._head(head, known, None if given is None else inner.enter(given), inner._graph)
                inner.connect(loops[head], made)
                self.relations[head] = inner.leave(made)
                if head in self.without_result:
                    clause, rows = self.without_result[head]
                    self.without_result[head] = clause, inner.leave(rows)

    def _loop(self, inner: NestedCircuit, head: str) -> Stream:
        return inner.placeholder(head, **{c.name: c.type for c in self.program.schemas[head].columns})

    def _head(self, head: str, known: Mapping[str, Stream], facts: Stream | None, graph: Graph) -> Stream:
        """The rows of a head: of its rules, and its facts."""
        schema, clauses = self.program.schemas[head], self.clauses[head]
        bodies = [ClauseStreams(graph, clause, known) for clause in clauses]
        if clauses[0].aggregate is not None and len(bodies) > 1:  # in recursion: a clause for each alternative
            bodies[0].add(bodies[1:])
            del bodies[1:]
        parts = [body.head(schema.columns) for body in bodies]
        if bodies[0].without_result is not None:
            self.without_result[head] = clauses[0], bodies[0].without_result
        made = parts[0]
        for part in (*parts[1:], *([] if facts is None else [facts])):
            made = made + part
        best = next((clause.best for clause in clauses if clause.best), "")
        if best:
            last = schema.arity - 1
            ranking = Ranking(tuple(range(last)), ((last, best == "max"),), schema.columns)
            return made._made(ByKey(TopK(ranking, 1, once=True, symbol=best)), schema.columns).named(head)
        return made._made(Distinct(schema.arity), schema.columns).named(head)
