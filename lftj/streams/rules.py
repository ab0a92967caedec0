"""Rules as a circuit: the second implementation of everything that rules can say.

    streams.from_rules(text)     an incremental circuit: inputs and outputs are the relations of the program

A rule is a chain of joins of its atoms, filters and maps, in the order in which variables become bound; a head is the
`distinct` sum of its rules and its facts. A negated atom takes away what agrees with it. A recursive component is a
nested circuit: each head is a loop that reads itself through a delay. Aggregates are functions by key over the bindings
of their braces; in recursion, the best value of each key.

What a database refuses is refused, as streams of what must never be (never.py): rows for which a term has no value and
that no condition excludes, and two values under one key. A sum out of range is refused though no rule asks for it.

Nothing is chosen by cost, and joins are binary: the circuit is a reference for the engine, not its rival. The inputs
are Z-sets: a row is in its relation while its weight is positive.

Source: dbsp.txt, section 4 (relational operators), 5 (recursion), 6 (incremental recursion).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from lftj import arguments
from lftj.evaluate.undefined_terms import rest_of
from lftj.language.builder import Program
from lftj.language.checker import check
from lftj.language.clause import (
    INTERNAL,
    BodyAtom,
    CheckedProgram,
    Clause,
    Compare,
    Term,
    Value,
    Var,
    owner,
    variables_of,
)
from lftj.language.parse import parse
from lftj.plan.partial_functions import partial_in
from lftj.streams.by_key import ByKey
from lftj.streams.circuit import Circuit, NestedCircuit
from lftj.streams.constant import Constant
from lftj.streams.distinct import Distinct
from lftj.streams.expressions import Map
from lftj.streams.graph import Graph
from lftj.streams.never import Never, TwoValues, Undefined
from lftj.streams.operators import Columns
from lftj.streams.ranking import Joined, Ranking, TopK
from lftj.streams.stream import Stream
from lftj.streams.totals import Total, Totals
from lftj.values.codes import Column, Schema

# Terms without a value are looked at in all combinations, up to so many in a clause; of more, alone and two by two.
TOGETHER = 4


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
        self.never: dict[str, list[Stream]] = {}
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
        for clause in program.clauses:
            self._never_undefined(clause)
        for name, schema in program.schemas.items():
            if schema.functional:
                self._never_two_values(name, schema)
        for name in program.schemas:
            if not name.startswith(INTERNAL):
                self.circuit.output(name, self.relations[name] if name not in self.never else self._guarded(name))

    def _facts(self, schema: Schema) -> Stream | None:
        """The facts of a relation: those of the text, and what comes in. None of one that no user can name."""
        if schema.name.startswith(INTERNAL):
            return None
        given = self.circuit.input(schema.name, **{c.name: c.type for c in schema.columns})
        rows = self.program.facts.get(schema.name)
        if not rows:
            return given
        return given + _constant(self.circuit._graph, rows, schema.columns)

    def _recursive(self, component: Sequence[str], outside: set[str]) -> None:
        """A component whose heads are derived from one another, as a nested circuit."""
        with self.circuit.nested(" ".join(component)) as inner:
            known = {name: inner.enter(self.relations[name]) for name in sorted(outside)}
            loops = {head: self._loop(inner, head) for head in component}
            known.update({head: loop.delay() for head, loop in loops.items()})
            for head in component:
                given = self.facts[head]
                made = self._head(head, known, None if given is None else inner.enter(given), inner._graph)
                inner.connect(loops[head], made)
                self.relations[head] = inner.leave(made)

    # -- what must never be -------------------------------------------------------------------------------------------

    def _guarded(self, name: str) -> Stream:
        """A relation with what must never be for it, which adds nothing."""
        made = self.relations[name]
        for never in self.never[name]:
            made = made + never
        return made

    def _never(self, name: str, stream: Stream, operator: Never) -> None:
        schema = self.program.schemas[owner(name)]
        self.never.setdefault(schema.name, []).append(stream._made(operator, schema.columns))

    def _never_undefined(self, clause: Clause) -> None:
        """Rows of a clause for which terms have no value, while all holds that needs no such term."""
        terms = partial_in(clause)
        most = len(terms) if len(terms) <= TOGETHER else 2
        width = self.program.schemas[owner(clause.head)].arity
        for without in (some for size in range(1, most + 1) for some in combinations(terms, size)):
            rest = rest_of(clause, without)
            if rest is None:
                continue
            columns = tuple(Column(str(variable), variable.type) for variable in rest.head_args)
            found = _Body(self.circuit._graph, rest, self.relations).head(columns)
            self._never(clause.head, found, Undefined(width, clause, without[0], columns))

    def _never_two_values(self, name: str, schema: Schema) -> None:
        """The second row under a key of a functional predicate, with the value of the first as a last column."""
        relation, last = self.relations[name], schema.arity - 1
        ranking = Ranking(tuple(range(last)), (), schema.columns)
        places = relation._made(
            ByKey(TopK(ranking, 2, numbered=True, symbol="second")), (*schema.columns, Column("·place", "number"))
        )
        names = tuple(places.columns)
        second = places._made(Map(names, (_is_second(names),), None, "second"), places._node.columns)
        pairs = second.select(*schema.names).join(
            relation.rename(**{schema.names[last]: "·other"}), on=list(schema.names[:last])
        )
        differ = Compare("!=", Var(schema.names[last], schema.types[last]), Var("·other", schema.types[last]))
        found = pairs._made(Map(tuple(pairs.columns), (differ,), None, str(differ)), pairs._node.columns)
        self._never(name, found, TwoValues(schema.arity, schema))

    def _loop(self, inner: NestedCircuit, head: str) -> Stream:
        return inner.placeholder(head, **{c.name: c.type for c in self.program.schemas[head].columns})

    def _head(self, head: str, known: Mapping[str, Stream], facts: Stream | None, graph: Graph) -> Stream:
        """The rows of a head: of its rules, and its facts."""
        schema, clauses = self.program.schemas[head], self.clauses[head]
        bodies = [_Body(graph, clause, known) for clause in clauses]
        if clauses[0].aggregate is not None and len(bodies) > 1:  # in recursion: a clause for each alternative
            bodies[0].add(bodies[1:])
            del bodies[1:]
        parts = [body.head(schema.columns) for body in bodies]
        made = parts[0]
        for part in (*parts[1:], *([] if facts is None else [facts])):
            made = made + part
        best = next((clause.best for clause in clauses if clause.best), "")
        if best:
            last = schema.arity - 1
            ranking = Ranking(tuple(range(last)), ((last, best == "max"),), schema.columns)
            return made._made(ByKey(TopK(ranking, 1, once=True, symbol=best)), schema.columns).named(head)
        return made._made(Distinct(schema.arity), schema.columns).named(head)


def _is_second(names: Sequence[str]) -> Compare:
    return Compare("=", Var(names[-1], "number"), Value(2, "number"))


def _constant(graph: Graph, rows: Sequence[tuple[int | float | str, ...]], columns: Columns) -> Stream:
    """A stream that has the same rows at every tick."""
    constant = Constant(tuple(rows), tuple(column.type for column in columns))
    return Stream(graph, graph.add(constant, [], columns))


class _Body:
    """The bindings of a clause's variables, as a stream with a column for each that is bound so far."""

    def __init__(self, graph: Graph, clause: Clause, known: Mapping[str, Stream]) -> None:
        self.clause, self.known = clause, known
        self.left = list(clause.compares)
        self.wildcards = 0
        atoms = list(clause.atoms)
        self.stream: Stream | None = None
        while atoms:
            atom = self._next(atoms)
            atoms.remove(atom)
            self._join(self._atom(atom, wildcards=clause.aggregate is not None))
            self._compare()
        if self.stream is None:
            self.stream = _constant(graph, ((),), ())
        self._compare()
        for atom in clause.negated:
            self._without(self._atom(atom))
        assert not self.left, "a checked clause binds every variable"

    def _bound(self) -> dict[str, str]:
        return {} if self.stream is None else self.stream.columns

    def _next(self, atoms: Sequence[BodyAtom]) -> BodyAtom:
        """The first atom that shares a variable with what is bound, else the first."""
        bound = self._bound()
        for atom in atoms:
            if any(isinstance(arg, Var) and arg.name in bound for arg in atom.args):
                return atom
        return atoms[0]

    def _atom(self, atom: BodyAtom, *, wildcards: bool = False) -> Stream:
        """The rows of a relation as bindings of the atom's variables; `wildcards` are variables, too."""
        stream = self.known[atom.predicate]
        names = tuple(f"c{i}" for i in range(len(atom.args)))
        conditions: list[Compare] = []
        made: dict[str, Term] = {}
        columns: list[Column] = []
        for i, (arg, column) in enumerate(zip(atom.args, stream._node.columns, strict=True)):
            here = Var(names[i], column.type)
            if isinstance(arg, Var) and arg.name not in made:
                made[arg.name] = here
                columns.append(Column(arg.name, column.type))
            elif arg is None:
                if wildcards:
                    self.wildcards += 1
                    name = f"·{self.wildcards}"
                    made[name] = here
                    columns.append(Column(name, column.type))
            else:
                conditions.append(Compare("=", here, made[arg.name] if isinstance(arg, Var) else arg))
        return stream._made(
            Map(names, tuple(conditions), tuple(made.values()), str(atom), lenient=True), tuple(columns)
        )

    def _join(self, atom: Stream) -> None:
        if self.stream is None:
            self.stream = atom
        else:
            self.stream = self.stream.join(atom, on=[name for name in atom.columns if name in self.stream.columns])

    def _without(self, atom: Stream) -> None:
        assert self.stream is not None
        self.stream = self.stream.antijoin(atom, on=list(atom.columns))

    def _compare(self) -> None:
        """Filter by the comparisons whose variables are bound, and bind what equations can compute."""
        assert self.stream is not None
        done = False
        while not done:
            done = True
            bound = self._bound()
            ready = [c for c in self.left if self._names(c) <= bound.keys()]
            if ready:
                self.left = [c for c in self.left if c not in ready]
                self._map(tuple(ready), self._kept())
                done = False
                continue
            for compare in self.left:
                found = self._definition(compare, bound)
                if found is not None:
                    self.left.remove(compare)
                    self._map((), {**self._kept(), found[0].name: found[1]})
                    done = False
                    break

    def _names(self, compare: Compare) -> set[str]:
        return {v.name for term in (compare.left, compare.right) for v in variables_of(term)}

    def _definition(self, compare: Compare, bound: Mapping[str, str]) -> tuple[Var, Term] | None:
        if compare.op != "=":
            return None
        for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
            if (
                isinstance(side, Var)
                and side.name not in bound
                and {v.name for v in variables_of(other)} <= bound.keys()
            ):
                return side, other
        return None

    def _kept(self) -> dict[str, Term]:
        return {name: Var(name, type_) for name, type_ in self._bound().items()}

    def _map(self, conditions: tuple[Compare, ...], made: Mapping[str, Term]) -> None:
        assert self.stream is not None
        text = ", ".join([*map(str, conditions), *(f"{n} = {t}" for n, t in made.items() if str(t) != n)])
        columns = tuple(Column(name, term.type) for name, term in made.items())
        terms = None if len(made) == len(self._bound()) else tuple(made.values())
        self.stream = self.stream._made(Map(tuple(self._bound()), conditions, terms, text, lenient=True), columns)

    def add(self, others: Sequence[_Body]) -> None:
        """The bindings of other clauses as well: those of the variables that all of them have."""
        shared = [name for name in self._bound() if all(name in other._bound() for other in others)]
        assert self.stream is not None
        self.stream = self.stream.select(*shared)
        for other in others:
            assert other.stream is not None
            self.stream = self.stream + other.stream.select(*shared)

    def head(self, columns: Columns) -> Stream:
        """The rows that the clause derives."""
        assert self.stream is not None
        clause, names = self.clause, tuple(self._bound())
        aggregate = clause.aggregate
        if aggregate is None:
            text = ", ".join(map(str, clause.head_args))
            return self.stream._made(Map(names, (), clause.head_args, text, lenient=True), columns)
        groups, operand = aggregate.groups, clause.head_args[aggregate.groups :]
        key = tuple(range(groups))
        if aggregate.op in ("count", "sum", "mean"):
            bindings = self.stream.distinct()
            terms = (*clause.head_args[:groups], *operand)
            kinds = tuple(Column(f"a{i}", term.type) for i, term in enumerate(terms))
            rows = bindings._made(Map(names, (), terms, ", ".join(map(str, terms)), lenient=True), kinds)
            total = Total(aggregate.op, groups if operand else -1, operand[0].type if operand else "", -1)
            return rows._made(Totals(key, (total,), str(clause)), columns)
        terms = (*clause.head_args[:groups], *operand)
        rest = tuple(Var(name, type_) for name, type_ in self._bound().items())
        kinds = tuple(Column(f"a{i}", term.type) for i, term in enumerate((*terms, *rest)))
        rows = self.stream._made(Map(names, (), (*terms, *rest), ", ".join(map(str, terms)), lenient=True), kinds)
        if aggregate.op == "cat":
            others = [i for i, v in enumerate(rest, groups + 1) if v not in terms]
            ranking = Ranking(key, tuple((c, False) for c in (*others, groups)), kinds)
            return rows._made(ByKey(Joined(ranking, groups)), columns)
        ranking = Ranking(key, ((groups, aggregate.op == "max"),), kinds)
        best = rows._made(ByKey(TopK(ranking, 1, once=True, symbol=aggregate.op)), kinds)
        return best.select(*(c.name for c in kinds[: groups + 1]))
