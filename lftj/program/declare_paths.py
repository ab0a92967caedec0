"""What `Database.path_counts` adds: two heads, one above the other, in strata like those that rules derive.

    @paths.big_counts(place, src, dst, part)     the counts, of any size (big_counts.py)          reads edge
    paths(src, dst) -> count:number         the same where all of them are numbers      reads @paths.big_counts

Their clauses say what is read, and are marked as folds (`Aggregate.op` PATHS and NUMBERS), so a rule by which `edge`
would depend on its own paths is refused as any aggregate over itself is. They are the only clauses of their heads.
"""

from __future__ import annotations

from collections.abc import Callable

from lftj.errors import DataError
from lftj.language.clause import INTERNAL, Aggregate, BodyAtom, Clause, Value, Var
from lftj.language.notation import NAME
from lftj.program.put_heads import with_heads
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from lftj.values.schema import Column, Schema

PATHS, NUMBERS = "paths", "numbers"


def big_counts_of(into: str) -> str:
    """The name of the relation that holds the counts."""
    return f"{INTERNAL}{into}.big_counts"


def counts_paths(clause: Clause) -> bool:
    """Whether the clause is one of the two that path counts have."""
    return clause.aggregate is not None and clause.aggregate.op in (PATHS, NUMBERS)


def declared(state: State, edge: str, into: str, new: Callable[[Schema], StoredRelation]) -> State:
    """`state` with the paths of `edge` counted in `into`, both heads stale. `new` makes an empty relation.

    Raises `DataError` if `edge` is no binary relation over nodes of one type, or `into` is no name that is free
    (put_heads.py).
    """
    nodes = state.relations[edge].schema
    if nodes.arity != 2 or nodes.types[0] != nodes.types[1]:
        raise DataError(
            f"the paths of `{edge}` cannot be counted: it does not lead from nodes to nodes",
            why=f"it is {nodes}, and edges have two columns of one type",
            remedy="derive such a relation from it by a rule, and count its paths",
        )
    if not NAME.fullmatch(into):
        raise DataError(
            f"into={into!r} is no name of a relation",
            why="rules name the relation, so its name is ASCII letters, digits, `_` and `?`, and starts with no digit",
            remedy='give a name such as into="paths"',
        )
    count = "count"
    while count in nodes.names:
        count += "_"
    big_counts, place, part = big_counts_of(into), Column("place", "number"), Column("part", "number")
    src, dst = (Var(column.name, column.type) for column in nodes.columns)
    text = f"path_counts({edge}, into={into})"
    rule = max((clause.rule for clause in state.strata.clauses), default=0) + 1
    counting = Clause(
        big_counts,
        (src, dst),
        (BodyAtom(edge, (src, dst)),),
        (),
        text=text,
        rule=rule,
        aggregate=Aggregate(PATHS, 2, "number"),
    )
    number = Var(count, "number")
    reading = Clause(
        into,
        (src, dst, number),
        (BodyAtom(big_counts, (Value(0, "number"), src, dst, number)),),
        (),
        text=text,
        rule=rule,
        aggregate=Aggregate(NUMBERS, 2, "number"),
    )
    return with_heads(
        state,
        (counting, reading),
        (
            Schema(big_counts, (place, *nodes.columns, part)),
            Schema(into, (*nodes.columns, Column(count, "number")), functional=True),
        ),
        new,
        why="path counts make a relation of their own",
        remedy=lambda _: "give another name, as in `into=`",
    )
