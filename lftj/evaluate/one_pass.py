"""Aggregates over one body, folded in one pass over its columns.

    select region, sum(price), max(price), count(*) filter (where qty > 9) from sale ... group by region

Each aggregate of a `group by` is a head of its own. Those over one body differ in what they fold, and in conditions on
that: that it is not null, or what a `filter` says. So where several are about to be evaluated, what they read is read
once (by_columns.py), and folded by groups that are numbered once (folds_by_group.py). A sum that several heads fold, as
`sum` and `mean` of one term do, is added up once.

`min`, `max` and what computes texts read a relation of bindings. Where nobody asks for that later, as below a question
that is asked once, it is left out: they are folded from what derives it (inlining.py). So are counts below windows
(window_rows.py).

Where a term or a condition of one of them has no value, each is evaluated by itself: that finds out whose error it is.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lftj.evaluate.accumulators import folding_of
from lftj.evaluate.by_columns import likely_reading, pays_to_sort, read_rows, walk_from_now_on
from lftj.evaluate.column_reading import conditions_of, reading_of
from lftj.evaluate.folds_by_group import Folded, FoldedTerm, FoldsByGroup
from lftj.evaluate.inlining import inlined, is_extreme
from lftj.evaluate.window_rows import counted_below, counted_rows
from lftj.join.run import Counters, Limits
from lftj.language.aggregate_specs import accumulated
from lftj.language.clause import BodyAtom, Clause, Plain, Term, Var, replaced
from lftj.program.evaluation import Evaluation
from lftj.program.text_split import split_text
from lftj.store.stored import StoredRelation
from scantree.version import Rows

if TYPE_CHECKING:
    from lftj.evaluate.evaluator import Evaluator


class SharedAggregate(NamedTuple):
    """An aggregate in terms that others may share: each variable is named by the place where an atom first holds it.

    `clause`: it, over what is read for it · `atoms`, `groups`: what those have in common that are folded in one pass.
    """

    clause: Clause
    atoms: tuple[BodyAtom, ...]
    groups: tuple[Term, ...]
    fold: FoldedTerm

    @classmethod
    def of(cls, clause: Clause, relations: Mapping[str, StoredRelation]) -> SharedAggregate:
        """Of a clause; what its conditions define is written out."""
        conditions, defined = conditions_of(clause)
        places: dict[str, tuple[int, int]] = {}
        for i, atom in enumerate(clause.atoms):
            for j, arg in enumerate(atom.args):
                if isinstance(arg, Var):
                    places.setdefault(arg.name, (i, j))
        names = {name: f"{i}.{j}" for name, (i, j) in places.items()}
        placed = {var.name: Var(names[var.name], var.type) for var in clause.variables() if var.name in names}

        def plain(arg: Plain | None) -> Plain | None:
            if not isinstance(arg, Var):
                return arg
            i, j = places[arg.name]  # conditions may narrow its type: here it has that of the column
            return Var(names[arg.name], relations[clause.atoms[i].predicate].types[j])

        def written_out(term: Term) -> Term:
            return replaced(replaced(term, defined), placed)

        atoms = tuple(replace(atom, args=tuple(map(plain, atom.args))) for atom in clause.atoms)
        compares = frozenset(replace(c, left=written_out(c.left), right=written_out(c.right)) for c in conditions)
        head = [written_out(term) for term in clause.head_args]
        folding = folding_of(clause)
        groups, operand = tuple(head[: folding.groups]), head[folding.groups] if folding.operand else None
        unread = frozenset(map(written_out, defined.values())) - {*groups, operand}
        if folding.op == "mean" or folding.squares:  # what is added up is the same for all of these
            folding = folding._replace(op="var_pop" if folding.squares else "sum")
        return cls(clause, atoms, groups, FoldedTerm(folding, operand, compares, unread))


class Found(NamedTuple):
    """What an aggregate comes to, and how that was found."""

    folded: Folded
    evaluation: Evaluation


class OnePass:
    """Aggregates that are about to be evaluated, and what one pass found for others than the one in hand.

    Heads are evaluated bottom up: what the first of those over one body reads does not change before the last. `below`:
    heads that have the rows that their clauses derive from others, and that only other heads read.
    """

    def __init__(self, clauses: Iterable[Clause], below: Collection[str] = ()) -> None:
        clauses, self.below = [*clauses], below
        of, readers = dict[str, list[Clause]](), dict[str, list[Clause]]()
        for clause in clauses:
            of.setdefault(clause.head, []).append(clause)
            for read in clause.reads:
                readers.setdefault(read, []).append(clause)
        self._clauses = dict[str, Clause]()
        # By relations of bindings, the aggregates that alone read them.
        self._readers = dict[str, list[str]]()
        for head, (clause, *_) in of.items():
            adds = clause.aggregate is not None and accumulated(clause.aggregate.op) and not clause.acyclic
            if (adds and not clause.is_counted) or is_extreme(clause):
                self._clauses[head] = clause
        for head in below:
            derived, reading = of.get(head, []), readers.get(head, [])
            if len(derived) == 1 and all(clause is self._clauses.get(clause.head) for clause in reading):
                over = {clause.head: inlined(clause, derived[0]) for clause in reading}
                if None not in over.values():
                    self._readers[head] = [*over]
                    self._clauses |= {name: clause for name, clause in over.items() if clause is not None}
        counted = {c.head: found for c in clauses if (found := counted_below(c, of, readers, below)) is not None}
        self._windows = {head: window for window, found in counted.items() for head in found.between}
        self._counts = {window: found.clause for window, found in counted.items()}
        self._rows = dict[str, Rows | None]()
        # Those that no pass was made for.
        self._waiting: dict[str, list[SharedAggregate]] | None = None
        self._found: dict[str, Found] = {}

    def __contains__(self, head: str) -> bool:
        """Whether a pass found what this head comes to."""
        return head in self._found

    def folded(self, evaluator: Evaluator, clause: Clause, limits: Limits) -> Found | None:
        """What a pass found, or finds now, for `clause` among others; None if it is to be evaluated by itself."""
        if clause.head not in self and len(self._clauses) > 1 and clause is self._clauses.get(clause.head):
            self._pass(evaluator, clause, limits, least=2)
        return self._found.pop(clause.head, None)

    def rows(self, window: str) -> Rows | None:
        """The rows that a head with window functions reads, if the relation with them was left out; once."""
        return self._rows.pop(window, None)

    def leaves_out(self, evaluator: Evaluator, head: str, limits: Limits) -> bool:
        """Whether a head need not be evaluated: all that reads it was folded from what derives it, or has its rows."""
        if (window := self._windows.get(head)) is not None:
            if window not in self._rows:
                self._rows[window] = counted_rows(evaluator, self._counts[window], limits)
            return self._rows[window] is not None
        readers = self._readers.get(head, [])
        for reader in readers:
            if reader not in self:
                self._pass(evaluator, self._clauses[reader], limits, least=1)
        return bool(readers) and all(reader in self for reader in readers)

    def _pass(self, evaluator: Evaluator, clause: Clause, limits: Limits, *, least: int) -> None:
        """Make a pass for a clause and those over its body, if there are so many at `least`."""
        if likely_reading(evaluator, clause) is None:
            return
        if self._waiting is None:
            self._waiting = self._by_body(evaluator)
        alike = self._waiting.get(clause.head, [])
        for one in alike:
            del self._waiting[one.clause.head]
        read = [one for one in alike if one.clause is clause or likely_reading(evaluator, one.clause) is not None]
        # Extremes alone are read each in a pass of its own, which takes less than numbering groups for all of them.
        if (read and least == 1) or (len(read) >= least and any(one.fold.extreme is None for one in read)):
            self._found |= _folded(evaluator, clause, read, limits)

    def _by_body(self, evaluator: Evaluator) -> dict[str, list[SharedAggregate]]:
        """By each head, the aggregates over its body, itself among them."""
        bodies: dict[tuple[object, ...], list[SharedAggregate]] = {}
        for clause in self._clauses.values():
            one = SharedAggregate.of(clause, evaluator.relations)
            bodies.setdefault((one.atoms, one.groups), []).append(one)
        return {one.clause.head: alike for alike in bodies.values() for one in alike}


def _folded(evaluator: Evaluator, asked: Clause, alike: Sequence[SharedAggregate], limits: Limits) -> dict[str, Found]:
    """What one pass finds, by head, when `asked` is to be evaluated; nothing if they are to be evaluated apart."""
    began, cpu = time.perf_counter(), time.thread_time_ns()
    first = alike[0]
    common = frozenset.intersection(*(one.fold.conditions for one in alike))
    gathering = FoldsByGroup(evaluator, first.groups, common, dict.fromkeys(one.fold for one in alike))
    head_args = (*first.groups, *gathering.read)
    clause = replace(first.clause, head_args=head_args, atoms=first.atoms, compares=tuple(sorted(common, key=str)))
    reading = reading_of(clause, evaluator.relations)
    if reading is None:
        return {}
    if split_text(clause) is None and pays_to_sort(evaluator, clause, reading):
        for one in alike:
            if (own := likely_reading(evaluator, one.clause)) is not None:
                walk_from_now_on(evaluator, one.clause, own)
        return {}
    done = read_rows(evaluator, clause, reading, limits, gathering.add)
    folded = None if done is None else gathering.folded()
    if done is None or folded is None:
        return {}
    seconds, took = time.perf_counter() - began, time.thread_time_ns() - cpu
    found = {}
    for one in alike:
        evaluation = Evaluation(
            one.clause, None, Counters(), instead=f"{done.instead}, once for {len(alike)} aggregates"
        )
        evaluation.elsewhere = took - sum(gathering.cpu[fold] for fold in gathering.cpu if fold != one.fold)
        if one.clause is asked:
            evaluation.counters, evaluation.seconds = done.counters, seconds
            evaluation.elsewhere -= took
        found[one.clause.head] = Found(folded[one.fold], evaluation)
    return found
