"""`Database`: relations and rules in one place, answers on demand.

    db = lftj.Database()
    db.rules(".decl edge(src:number, dst:number)  tri(x,y,z) :- edge(x,y), edge(y,z), edge(x,z).")
    db.load("edge", "edges.csv")
    len(db["tri"]);  db.query("tri(1, y, z), y < z").count();  db.query("tri($x, y, z)", x=1)

A program is Souffle's text, or made by `lftj.Program`, and may hold

    declarations            .decl edge(src:number, dst:number), .type, and functional predicates, one value per key:
                            .decl price(item:symbol) -> cost:float
    facts and rules         several heads, several rules for a head, alternatives `;`, constants, wildcards
    conditions              atoms, comparisons, `contains`, `match`; variables bound by equations, `z = x + y`
    functors                arithmetic, bits, texts, conversions: `lftj functors` lists them
    negation                !edge(x, _), !(edge(x, y), edge(y, x)); a cycle through one is refused
    aggregates              n = count : { edge(x, _) }, sum, mean, min, max, cat; as heads deg[x] = count : { ... }
    directives              .input, .output, .printsize

What else Souffle has is refused by name. All of it is maintained by transactions.

`rules` checks a whole program before anything happens and adds all of it or nothing. `load` reads a whole source
before anything happens and adds all of it or nothing. Rules are evaluated when somebody looks at what they derive,
bottom up, and once; what is not affected by a load is not evaluated again. A predicate may hold loaded facts and be
the head of rules: its content is the union.

A load is evaluated when somebody looks; a transaction (`lftj.transaction`) changes facts, rules and everything derived
at once and tells the exact difference.

Aggregates and negated conjunctions become relations of their own, *parts* of the rule they stand in, with names such as
`@deg.1`. `list(db)`, deltas and outputs leave them out; `explain`, `memory` and `tx.stats` show them under their rule.

One writer at a time; what `db[...]` hands out is immutable and may be read from any thread. All that changes is in one
state (`lftj.program.state`), replaced as a whole.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lftj import arguments
from lftj.errors import DataWarning, ForkError, TransactionError
from lftj.evaluate.empty_relations import check_constraints, constraints_of
from lftj.evaluate.evaluator import Evaluator
from lftj.evaluate.key_conflicts import check_facts
from lftj.explain.bytes_held import bytes_held
from lftj.explain.explained import explained
from lftj.explain.explanation import Explanation
from lftj.io.read_options import ReadOptions
from lftj.join.run import Limits
from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.clause import Directive
from lftj.maintain.journal import Journal
from lftj.maintain.refresh import refresh
from lftj.maintain.refused_calls import inside_call
from lftj.maintain.step import KeptHeads, Step
from lftj.program.closed_heads import refuse_rows
from lftj.program.declare_paths import big_counts_of, declared
from lftj.program.extend import extended
from lftj.program.rule_options import RuleOptions
from lftj.program.state import State
from lftj.program.strata import Strata
from lftj.progress import Progress
from lftj.results.listing import as_html, as_text
from lftj.results.metrics import Metrics
from lftj.results.path_counts import PathCounts
from lftj.results.transaction_delta import Deltas
from lftj.snapshot import Moments
from lftj.store.stored import StoredRelation
from lftj.store.threads import crew_of
from lftj.transaction import Transaction
from lftj.values.symbols import SymbolTable
from scantree.locks import Lock
from scantree.memory import Arena
from scantree.version import Version

if TYPE_CHECKING:
    from types import TracebackType

    from lftj.io.change_feed import ChangeReport
    from lftj.io.rejects import Rejects
    from lftj.results.event_stream import AppliedEvents
    from lftj.sql.results import SqlResult
    from lftj.streams.circuit import Circuit


class Database(Moments):
    """Relations, rules over them, and their answers.

    `program` is rule text, a `lftj.Program`, or nothing; `maintain` says how its heads are kept, as in `rules`.
    `memory_limit` caps the bytes of stored pages: a number, or a text such as "2GiB"; beyond it `MemoryLimitError` is
    raised. `threads`: how many may work at a time on what is large enough (`lftj.store.threads` lists what); the
    answers are those of one thread.

    `path`: the file that everything is kept in (docs/files.md). It is made if it is not there, else opened with what is
    in it; a `program` that it was opened with before is not added again. The next two are for files only. `sync`: what
    a commit survives once it has returned: "full" a loss of power, "normal" the end of the process; "off" may lose what
    was committed within the last second. `retain`: how many entries of the log are kept beyond the last checkpoint,
    with the changes of derived relations (None: all; 0: none; "kept": as many as when the file was last opened with a
    number, and none in a new file).
    """

    # Of pages and buffers, where not the usual ones (`_sized`).
    _sizes: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        program: str | Program | ast.Program | None = None,
        *,
        maintain: Mapping[str, str] | None = None,
        memory_limit: int | str | None = None,
        threads: int = 1,
        path: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        sync: str = "full",
        retain: int | Literal["kept"] | None = "kept",
    ) -> None:
        options = RuleOptions.of(None, maintain, None)
        if options.maintain and program is None:
            raise arguments.refused(
                "maintain",
                maintain,
                "it says how heads of the program are kept, and no program is given",
                "give the program with it, or give it to `db.rules` with the rules",
            )
        self._arena = Arena(arguments.size(memory_limit), ForkError)
        self._arena.crew = crew_of(threads)
        self._symbols = SymbolTable()
        self._evaluator = Evaluator(self._arena, self._symbols, State(), **self._sizes)
        self._kept = KeptHeads()
        self._lock = Lock(ForkError, "the database")
        self._progress = Progress()
        self._known = {}
        self._journal = Journal()
        self._rejects: dict[str, Rejects | None] = {}
        self._constraints_wait = False  # for the end of several loads that are one
        self._begin_watching()
        if path is not None:
            self._open_file(path, read_only, sync, retain)
        else:
            self._check_in_memory(read_only, retain)
        seq = self.seq
        try:
            if program is not None and not self._has_program(program, maintain):
                self._add_rules(program, options)
            if self._file is not None:
                self._file.begin_history(seq)
        except BaseException:
            self._let_go()  # nobody else can
            raise

    @classmethod
    def _sized(
        cls,
        program: str | Program | ast.Program | None = None,
        *,
        page_rows: int = 256,
        directory_rows: int = 64,
        buffer_rows: int = 1 << 16,
        columns_from: int = 1 << 13,
        **options: Any,
    ) -> Database:
        """A database with pages and buffers of other sizes, for tests: tiny ones take the paths of large data."""
        sizes = {
            "page_rows": page_rows,
            "dir_rows": directory_rows,
            "buffer_rows": buffer_rows,
            "columns_from": columns_from,
        }
        made: Database = type(cls.__name__, (cls,), {"_sizes": sizes})(program, **options)
        return made

    # -- rules --------------------------------------------------------------------------------------------------------

    def rules(
        self,
        program: str | Program | ast.Program,
        *,
        key_orders: Mapping[str, tuple[str, ...] | list[str]] | None = None,
        maintain: Mapping[str, str] | None = None,
        granularity: Mapping[str, str] | None = None,
    ) -> None:
        """Add declarations, facts and rules: Souffle text, a builder's `Program` or an AST.

        docs/rules.md says what a program may hold.

        Everything is checked first; `ProgramError` holds every finding and nothing is added. Warnings go to
        `warnings.warn`.

        The options are given by head, and never change an answer. `key_orders` forces the order in which the rules of a
        head bind their variables, as in `{"tri": ("y", "x", "z")}`. (Delta joins of recursive rules, each of which
        begins with what changed, have orders of their own.) `maintain` says how transactions keep the head up to date:
        "trace", "delta" (key orders instead of records), "triggers" (maps; for a count, sum or mean), "recompute" (none
        of these), or "auto", which takes what is estimated to be quickest. Recursive heads follow by rounds; with
        "trace" or "delta" they do so however much changes. `granularity` says what traces keep where there is a choice:
        "node" (few records), "interval" (few lookups), or "auto".
        """
        self._add_rules(program, RuleOptions.of(key_orders, maintain, granularity))

    def _add_rules(self, program: str | Program | ast.Program, options: RuleOptions) -> None:
        """Add a program; warnings are told at the line of the user who called the method that calls this one."""
        with self._alone("rules"):
            added = extended(self._state, program, options, self._new, self._symbols)
            state = added.state.made_stale(added.heads)
            for name, (rows, count) in added.facts.items():
                state = state.with_facts(name, self._with_facts(state.relations[name], rows, count))
            state = self._constrained(state)
            with self._publishing():
                self._write_rules(program, options, state, added.heads)
                self._evaluator.state = state
        for warning in added.warnings:
            warnings.warn(warning.render(), stacklevel=3)

    def path_counts(self, relation: str, *, into: str) -> PathCounts:
        """Count the paths of length 1 or more along the edges of binary `relation`, and keep the counts up to date.

        `relation`, base or derived, has two columns of one type and no cycle. Declares `into`, a functional predicate
        over pairs of nodes that rules may read, `paths(src, dst) -> count:number`, with a row for every pair that has a
        path. The counts are integers of any size in the `PathCounts` that is returned. If one of them is no number
        (2**63 or more), then `into`, and what is derived from it, cannot be read until none is (`CountRangeError`,
        never a wrong number); everything else goes on.

        A transaction costs |paths to x| * |paths from y| per edge (x, y) that comes or goes. One that closes a cycle
        raises `CycleError`, which names it, and nothing is committed; so does this call if there is one, and nothing
        is declared. A load is counted, and refused, when somebody looks. `tx.remove_rules(into)` ends the counting.
        Raises `DataError` if `relation` is no such relation or `into` is taken.
        """
        with self._alone("path_counts"), self._publishing():
            self._stored(relation)
            arguments.text("into", into, "it is the name of a relation to be", 'give a name such as `into="paths"`')
            before = self._state
            self._evaluator.state = declared(before, relation, into, self._new)
            try:
                self._refresh((big_counts_of(into),), None)
                self._write_paths(relation, into)
            except BaseException:
                self._evaluator.state = before
                raise
        return PathCounts(self, into)

    def attach(
        self,
        circuit: Circuit,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
    ) -> None:
        """Make a circuit of `lftj.streams` a part of the database: every commit is a tick of it.

        `inputs`: the relation that each input of the circuit reads, `outputs`: the name of the relation that each
        output becomes; what is not named has its own name, and a circuit of rules (`streams.from_rules`) reads the
        relations that are there and gives the others. The circuit computes changes (`Circuit.incremental`, which
        is called if it was not), steps inside the commit, all or nothing with it, and what it gives is made a set.
        Rules may read the outputs. It starts from nothing, with the database's present rows as its first tick; what is
        loaded is a tick when somebody looks. `tx.remove_rules(output)` ends it. Raises `DataError` if relations are
        not there, are of other types or names are taken, and what the circuit raises.
        """
        from lftj.streams.attached import attach

        with self._alone("attach"):
            self._refuse_file("a circuit is attached", "a circuit is made of Python functions, which no file keeps")
            before, circuits = self._state, dict(self._evaluator.circuits)
            try:
                attached = attach(self._evaluator, self._new, circuit, inputs, outputs)
                self._refresh(list(attached.outputs), None)
            except BaseException:
                self._evaluator.state, self._evaluator.circuits = before, circuits
                raise

    @property
    def directives(self) -> tuple[Directive, ...]:
        """The `.input`, `.output` and `.printsize` directives of all programs.

        `lftj run` carries them out; so do `read_inputs` and `write_outputs`.
        """
        return self._state.directives

    # -- data ---------------------------------------------------------------------------------------------------------

    def load(
        self,
        name: str,
        source: Any,
        *,
        columns: Any = None,
        delimiter: str | None = None,
        header: bool | None = None,
        quoting: bool | None = None,
        on_error: str = "raise",
        extra: str = "note",
        format: str | None = None,
    ) -> Rejects | None:
        """Add the rows of `source` to the facts of relation `name`.

        `source`: a path, glob, URL, open file or list of these (csv, tsv, facts, json, ndjson, parquet, arrow; .gz,
        .zst; `format=` where the name does not tell), an object with an Arrow stream (pandas, polars, relations of
        DuckDB), a numpy array (n, k), a dict of columns, or an iterable of rows: tuples, dicts, dataclasses, named
        tuples.
        `columns={"src": 0, "dst": "to"}` picks columns by position or name. Without it, a source that names all columns
        of a declared relation may have others: they are passed over, with a `DataWarning`, or refused if
        `extra="error"`. A bad row raises `DataError` and nothing is loaded; with `on_error="quarantine"` good rows are
        loaded and bad ones returned (and kept in `db.rejects[name]`). Two values, or rows, for one key raise
        `KeyConflictError`, and a row that breaks a constraint raises `ConstraintError`; both are `DataError`s. In a bag
        each row of the source is one more copy; if the source names the bag's last column, as many as that says.
        """
        from lftj.io.named_columns import read_facts

        with self._alone("load"):
            relation = self._stored(name)
            refuse_rows(self._state, name)
            with self._progress.step(f"loading {name}"), self._journal.load(name) as given:
                options = ReadOptions(columns, delimiter, header, quoting, on_error, extra, format)
                loaded = read_facts(source, relation.schema, self._symbols, options)
                rows = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
                facts = self._with_facts(relation, rows, loaded.rows)
                state = self._constrained(self._state.with_facts(name, facts))
                with self._publishing():
                    self._write_load(name, relation.facts, facts)
                    self._evaluator.state = state
                given(loaded.rows)
            self._rejects[name] = loaded.rejects
        if loaded.note:
            warnings.warn(loaded.note, DataWarning, stacklevel=2)
        return loaded.rejects

    def load_changes(
        self,
        name: str,
        source: Any,
        *,
        op: str = "op",
        tx: str | None = None,
        batch_rows: int | None = None,
        start: int = 0,
        on_commit: Callable[[ChangeReport], object] | None = None,
        columns: Any = None,
        delimiter: str | None = None,
        header: bool | None = None,
        quoting: bool | None = None,
        extra: str = "note",
        format: str | None = None,
    ) -> ChangeReport:
        """Apply the changes in `source`, rows of relation `name` with a column `op`, in whole commits.

        `source`, and what says how it is read, as for `load`. `op` says `+1` or `-1`, `insert` or `delete` (also `c`,
        `r`, `i`, `d`), of functional predicates `update` (`u`) too. A run of rows with one value in the column `tx` is
        a commit, without it `batch_rows` (default 10,000). `start`: the first row, from 0, to go on where a call ended:
        its report says the `offset`; `on_commit` gets one after every commit, and what is raised has it as `report`.
        """
        from lftj.io.change_feed import FeedReader, follow

        with self._alone("load_changes"):
            schema = self._stored(name).schema
            refuse_rows(self._state, name)
        options = ReadOptions(columns, delimiter, header, quoting, "raise", extra, format)
        reader = FeedReader(schema, self._symbols, op, tx, options)
        report = follow(self, name, reader, source, batch_rows=batch_rows, start=start, on_commit=on_commit)
        for note in dict.fromkeys(reader.notes):
            warnings.warn(note, DataWarning, stacklevel=2)
        return report

    def _with_facts(self, relation: StoredRelation, rows: np.ndarray[Any, Any], count: int) -> Version:
        """The facts of a relation and `count` more rows int64[arity, count]; not published."""
        facts: Version = self._guarded(relation.with_facts, rows, count)
        if relation.schema.keyed:
            built = relation.built_so_far
            try:
                check_facts(self._evaluator, relation, facts, rows)
            except BaseException:
                relation.forget_since(built)
                raise
        return facts

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """Several loads that are one: if the block raises, the state and `rejects` are what they were before it."""
        with self._alone("read_inputs", several=True), self._publishing():
            state, rejects = self._state, dict(self._rejects)
            self._constraints_wait = True
            try:
                with self._written_together():
                    yield
                    self._constraints_wait = False
                    self._evaluator.state = self._constrained(self._state)
            except BaseException:
                self._evaluator.state = state
                self._rejects = rejects
                raise
            finally:
                self._constraints_wait = False

    def _constrained(self, state: State) -> State:
        """A state that a load or a program made, once the constraints that it concerns are evaluated, and hold."""
        constraints = [] if self._constraints_wait else constraints_of(state)
        if not constraints:
            return state
        staged = self._evaluator.over(state)
        self._guarded(refresh, staged, constraints, lambda _: Limits())
        check_constraints(staged, constraints, lambda _: Limits())
        return staged.state

    @contextmanager
    def _alone(self, what: str, *, several: bool = False) -> Iterator[None]:
        """Hold the writer's lock, outside of transactions and of other such calls; `several`: that may be in this."""
        while True:
            with self._lock:
                if self._open is None:
                    if inside := self._call_at_work():
                        raise inside_call(f"`{what}`", inside)
                    try:
                        self._changing, self._changing_in = "" if several else what, id(sys._getframe(2))
                        yield
                    finally:
                        self._changing, self._changing_in = "", 0
                    return
                passing = self._open._passing
                if passing is None:
                    raise TransactionError(
                        f"`{what}` inside a transaction",
                        why="it would change the database while the transaction may still be discarded",
                        remedy="use `tx.rules`"
                        if what == "rules"
                        else "use `tx.insert`, or do it outside of the block",
                    )
            passing.wait()

    @property
    def rejects(self) -> dict[str, Rejects | None]:
        """By relation, the bad rows of its last load; None if that was not to keep them (`on_error="quarantine"`)."""
        return self._rejects

    def read_inputs(self, directory: str | os.PathLike[str] = ".", *, on_error: str = "raise") -> dict[str, Rejects]:
        """Carry out the `.input` directives: load each relation from its file in `directory` (Souffle's `-F`).

        All of them or none. `directory` must be there. With `on_error="quarantine"` the good rows of every file are
        loaded, and the bad ones returned by relation (and kept in `db.rejects`).
        """
        from lftj.io.directive_files import read_inputs

        return read_inputs(self, directory, on_error=on_error)

    def write_outputs(self, directory: str | os.PathLike[str] = ".") -> None:
        """Carry out the `.output` and `.printsize` directives.

        Write each relation to its file in `directory`, as Souffle does with `-D`; it is made if it is missing.

        `directory="-"` writes all of them to stdout, in Souffle's layout.
        """
        from lftj.io.directive_files import write_outputs

        write_outputs(self, directory)

    # -- SQL ----------------------------------------------------------------------------------------------------------

    def sql(
        self,
        text: str,
        /,
        *,
        timeout: float | None = None,
        maintain: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> SqlResult | Deltas:
        """Run statements of SQL, separated by `;`, over the relations: definitions, changes and queries (docs/sql.md).

        All that a text changes is one transaction. Returns the answer of the last statement if that is a query, else
        what all of them changed, as `tx.delta`. `parameters` are those of `$name` in the text; `timeout` limits each
        evaluation, in seconds; `maintain` is that of `rules`, for views of the text. Raises `ProgramError`, and what
        evaluations and commits raise. Needs `pip install "lftj[sql]"`.
        """
        from lftj.sql.running import run

        return run(self, text, parameters, arguments.seconds(timeout), maintain)

    # -- answers ------------------------------------------------------------------------------------------------------

    def evaluate(self, *names: str, timeout: float | None = None) -> None:
        """Bring the named relations (default: all) up to date within `timeout` seconds.

        `TimeoutExpired` leaves the rest to be evaluated later.
        """
        timeout = arguments.seconds(timeout)
        with self._lock:
            for name in names:
                self._stored(name)
            if names:
                self._refresh(names, timeout)
            else:
                self._refresh_all(timeout)

    def explain(self, name: str | None = None) -> Explanation:
        """How relation `name` (default: everything) is evaluated: strata, key orders, estimated and actual rows.

        It also says how the relation follows changes: what its traces keep, or would keep, and how the last commit
        went. Below a rule that was taken apart are its parts, each with the clause that derives it, and below a table
        of SQL its constraints. Print it, or call `.json()`.
        """
        with self._lock:
            names = list(self._state.strata.order) if name is None else [name]
            for n in names:
                self._stored(n)
            made: Explanation = self._guarded(explained, self._evaluator, self._kept, names, self._threads)
            return made

    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes of pages per relation and key order (by column names), and of everything under "total".

        A scan is a key order of its own, "scan: max of amount, in order region, store, amount".
        A derived relation whose traces are kept has more: one entry per sensitivity index, "trace: edge[0,1] at z" for
        what steps at `z` in that key order of `edge` depend on, "trace: support and filters", and of a count, sum or
        mean "trace: accumulators". The parts that its rules were taken apart into stand under it, with their names
        before what they hold: "@deg.1: x, count", "@deg.1: trace: accumulators".
        """
        with self._lock:
            self._arena.collect()
            return bytes_held(self._state.relations, self._kept.memory(), self._arena.used)

    def metrics(self) -> Metrics:
        """Numbers about what the database did, from the first call on, and what it holds (`lftj.results.metrics`)."""
        with self._lock:
            self._arena.collect()
            state, counts = self._state, self._journal.counts()
            fresh = {name: len(state.relations[name]) for name in self if name not in state.stale}
            stale = len(list(self)) - len(fresh)
            return Metrics.of(counts, fresh, stale, len(self._symbols), self._arena.used, self._arena.limit)

    def prepare(self) -> None:
        """Compile every kernel now (or load it from the cache), so that no later call pays for it."""
        from lftj.maintain.all_kernels import PROGRAM, use_all

        use_all(Database(PROGRAM))

    # -- transactions -------------------------------------------------------------------------------------------------

    def transaction(self, *, missing: str = "ignore", timeout: float | None = None) -> Transaction:
        """A transaction, to be used as `with db.transaction() as tx:`; see `lftj.transaction`.

        It commits when the block ends and is discarded when anything is raised in it. `missing="error"` refuses to
        erase rows that are not there. `timeout` limits the commit, and each preview, in seconds. Transactions of other
        threads wait until the block has ended.
        """
        return Transaction(self, missing, timeout)

    def apply(
        self, events: Iterable[Sequence[Any]], *, watch: Iterable[str] = (), timeout: float | None = None
    ) -> AppliedEvents:
        """Apply a stream of events in one transaction: rows that come and go, one after the other.

        `events`: blocks (relation, op, rows) in order; `op` as in `load_changes`, one for the block or one for each
        row, `rows` as for `load`. `watch`: heads that triggers keep, of which the report has a log: every row that
        came or went, with the number of its event (`lftj.results.event_stream`). `timeout` as for `transaction`.
        """
        from lftj.results.event_stream import apply

        return apply(self, events, watch, timeout)

    def _evaluated(self, heads: frozenset[str], seconds: float) -> None:
        self._journal.evaluated(heads, seconds)

    @property
    def _strata(self) -> Strata:
        return self._state.strata

    @property
    def _relations(self) -> dict[str, StoredRelation]:
        return self._state.relations

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.close()
        self.close()

    def __repr__(self) -> str:
        return as_text(self._state, self._arena.used)

    def _repr_html_(self) -> str:
        with self._lock:
            step = Step.at_rest(self._evaluator, self._kept)
            return as_html(self._state, step, self.memory(), self._arena.used)
