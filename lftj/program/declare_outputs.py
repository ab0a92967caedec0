"""What `Database.attach` adds: a head for each output of a circuit, which reads the relations of its inputs.

The clause of such a head says what is read, and is marked as a fold (`Aggregate.op`, "circuit" and a number), so a rule
by which an input would depend on an output is refused as any aggregate over itself is. It is the only one of its head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lftj.language.clause import Aggregate, BodyAtom, Clause, Var
from lftj.program.put_heads import with_heads
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema

CIRCUIT = "circuit"


def is_output(clause: Clause) -> bool:
    """Whether the clause stands for an output of a circuit."""
    return clause.aggregate is not None and clause.aggregate.op.startswith(CIRCUIT)


def declared(
    state: State,
    op: str,
    reads: Sequence[str],
    outputs: Mapping[str, tuple[Column, ...]],
    text: str,
    new: Callable[[Schema], StoredRelation],
) -> State:
    """`state` with a stale head for each of `outputs`, by name and columns. `new` makes an empty relation.

    Raises `DataError` if a name is taken (put_heads.py).
    """
    rule = max((clause.rule for clause in state.strata.clauses), default=0) + 1
    atoms = tuple(BodyAtom(name, (None,) * state.relations[name].arity) for name in reads)
    clauses = []
    for name, columns in outputs.items():
        head = tuple(Var(column.name, column.type) for column in columns)
        aggregate = Aggregate(op, len(columns), "number")
        clauses.append(Clause(name, head, atoms, (), text=text, rule=rule, aggregate=aggregate))
    return with_heads(
        state,
        clauses,
        [Schema(name, columns) for name, columns in outputs.items()],
        new,
        why="an output of a circuit is a relation of its own",
        remedy=lambda name: f'give it another name: `outputs={{"...": "another_{name}"}}`',
    )
