"""`Database`: relations and rules in one place, answers on demand.

    db = lftj.Database()
    db.rules(".decl edge(src:number, dst:number)  tri(x,y,z) :- edge(x,y), edge(y,z), edge(x,z).")
    db.load("edge", "edges.csv")
    len(db["tri"]);  db.query("tri(1, y, z), y < z").count()

`rules` checks a whole program before anything happens and adds all of it or nothing. `load` reads a whole source
before anything happens and adds all of it or nothing. Rules are evaluated when somebody looks at what they derive,
bottom up, and once; what is not affected by a load is not evaluated again. A predicate may hold loaded facts and be
the head of rules: its content is the union.

One writer at a time; what `db[...]` hands out is immutable and may be read from any thread.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lftj.engine.evaluate import Evaluation, Evaluator
from lftj.engine.stored import StoredRelation
from lftj.engine.strata import Strata
from lftj.errors import DataError, MemoryLimitError, UnknownRelationError
from lftj.explain import Explanation
from lftj.io.sources import read
from lftj.join.run import Limits
from lftj.language import ast
from lftj.language.builder import Program
from lftj.language.check import check, check_query
from lftj.language.clause import Clause, Directive
from lftj.language.parse import parse
from lftj.progress import Progress
from lftj.query import Query
from lftj.relation import Relation
from lftj.values import gate
from lftj.values.codes import Schema
from lftj.values.symbols import SymbolTable
from scantree.memory import Arena, ArenaFullError

if TYPE_CHECKING:
    from types import TracebackType

    from lftj.io.rejects import Rejects


class Database:
    """Relations, rules over them, and their answers.

    `program` is rule text, a `lftj.Program`, or nothing. `memory_limit` caps the bytes of stored pages
    (`MemoryLimitError` beyond). `page_rows` and `directory_rows` are for tests.
    """

    def __init__(
        self,
        program: str | Program | ast.Program | None = None,
        *,
        memory_limit: int | None = None,
        page_rows: int = 256,
        directory_rows: int = 256,
        buffer_rows: int = 1 << 16,
    ) -> None:
        self._arena = Arena(memory_limit)
        self._symbols = SymbolTable()
        self._relations: dict[str, StoredRelation] = {}
        self._evaluator = Evaluator(
            self._arena,
            self._symbols,
            self._relations,
            page_rows=page_rows,
            dir_rows=directory_rows,
            buffer_rows=buffer_rows,
        )
        self._strata = Strata(self._evaluator)
        self._directives: list[Directive] = []
        self._lock = threading.RLock()
        self._progress = Progress()
        self._rejects: dict[str, Rejects | None] = {}
        if program is not None:
            self.rules(program)

    # -- rules --------------------------------------------------------------------------------------------------------

    def rules(
        self,
        program: str | Program | ast.Program,
        *,
        key_orders: Mapping[str, tuple[str, ...] | list[str]] | None = None,
    ) -> None:
        """Add declarations, facts and rules: Souffle text, a builder's `Program` or an AST.

        Everything is checked first; `ProgramError` holds every finding and nothing is added. Warnings go to
        `warnings.warn`. `key_orders` forces the order in which the rules of a head bind their variables: `{"tri":
        ("y", "x", "z")}`.
        """
        with self._lock:
            parsed = (
                parse(program)
                if isinstance(program, str)
                else program.ast()
                if isinstance(program, Program)
                else program
            )
            checked = check(parsed, known=self._schemas(), clauses=self._strata.clauses)
            self._force(key_orders or {}, checked.clauses)
            fresh = {name: self._new(schema) for name, schema in checked.schemas.items() if name not in self._relations}
            staged: dict[str, Any] = {}
            for name, rows in checked.facts.items():
                relation = self._relations[name] if name in self._relations else fresh[name]
                codes = [gate.encode_row(row, relation.schema, self._symbols) for row in rows]
                columns = np.array(codes, np.int64).reshape(len(codes), relation.arity).T
                staged[name] = self._guarded(relation.with_facts, np.ascontiguousarray(columns), len(codes))
            self._relations.update(fresh)
            for clause in checked.clauses:
                if clause.head in (key_orders or {}):
                    self._evaluator.key_orders[clause.rule] = tuple((key_orders or {})[clause.head])
            self._directives.extend(checked.directives)
            self._strata.extend(checked.clauses, (name for stratum in checked.strata for name in stratum))
            for name, facts in staged.items():
                self._set_facts(name, facts)
        for warning in checked.warnings:
            import warnings

            warnings.warn(warning.render(), stacklevel=2)

    def _force(self, key_orders: Mapping[str, Any], clauses: tuple[Clause, ...]) -> None:
        for head, order in key_orders.items():
            own = [clause for clause in clauses if clause.head == head]
            if not own:
                raise UnknownRelationError(
                    f"a key order is given for `{head}`, which no rule of this program derives",
                    remedy="name the head of a rule of the same program",
                )
            for clause in own:
                check_order(clause, tuple(order))

    @property
    def directives(self) -> tuple[Directive, ...]:
        """The `.input`, `.output` and `.printsize` directives of all programs.

        `lftj run` carries them out; so do `read_inputs` and `write_outputs`.
        """
        return tuple(self._directives)

    def _schemas(self) -> dict[str, Schema]:
        return {name: relation.schema for name, relation in self._relations.items()}

    def _new(self, schema: Schema) -> StoredRelation:
        sizes = {"page_rows": self._evaluator.page_rows, "dir_rows": self._evaluator.dir_rows}
        made: StoredRelation = self._guarded(StoredRelation, schema, self._arena, **sizes)
        return made

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
    ) -> Rejects | None:
        """Add the rows of `source` to the facts of relation `name`.

        `source`: a path, glob or list of paths (csv, tsv, facts, parquet, arrow; .gz, .zst), an object with an Arrow
        stream (pandas, polars, DuckDB results), a numpy array (n, k), a dict of columns, or an iterable of tuples.
        `columns={"src": 0, "dst": "to"}` picks columns by position or name. A bad row raises `DataError` and nothing
        is loaded; with `on_error="quarantine"` good rows are loaded and the bad ones returned (and kept in
        `db.rejects[name]`).
        """
        with self._lock:
            relation = self._stored(name)
            with self._progress.step(f"loading {name}"):
                loaded = read(
                    source,
                    relation.schema,
                    self._symbols,
                    columns=columns,
                    delimiter=delimiter,
                    header=header,
                    quoting=quoting,
                    on_error=on_error,
                )
                rows = np.stack(loaded.columns) if loaded.columns else np.empty((0, loaded.rows), np.int64)
                self._set_facts(name, self._guarded(relation.with_facts, rows, loaded.rows))
            self._rejects[name] = loaded.rejects
            return loaded.rejects

    @contextmanager
    def _restoring(self, names: Iterable[str]) -> Iterator[None]:
        """Several loads that are one.

        If the block raises, the facts of `names` and `rejects` are what they were before it.
        """
        with self._lock:
            facts = {name: self._stored(name).facts for name in names}
            rejects = dict(self._rejects)
            try:
                yield
            except BaseException:
                for name, before in facts.items():
                    self._set_facts(name, before)
                self._rejects = rejects
                raise

    @property
    def rejects(self) -> dict[str, Rejects | None]:
        """Per relation, the rows that its last load put into quarantine (None: none were to be)."""
        return self._rejects

    def _set_facts(self, name: str, facts: Any) -> None:
        relation = self._relations[name]
        if facts is relation.facts:
            return
        if self._strata.of(name):
            relation.facts = facts
        else:
            relation.publish(facts, facts)
        self._strata.touch(name)

    def read_inputs(self, directory: str | os.PathLike[str] = ".", *, on_error: str = "raise") -> dict[str, Rejects]:
        """Carry out the `.input` directives: load each relation from its file in `directory` (Souffle's `-F`).

        All of them or none.

        With `on_error="quarantine"` the good rows of every file are loaded, and the bad ones returned by relation
        (and kept in `db.rejects`).
        """
        from lftj.io.directives import read_inputs

        return read_inputs(self, directory, on_error=on_error)

    def write_outputs(self, directory: str | os.PathLike[str] = ".") -> None:
        """Carry out the `.output` and `.printsize` directives.

        Write each relation to its file in `directory`, as Souffle does with `-D`.

        `directory="-"` writes all of them to stdout, in Souffle's layout.
        """
        from lftj.io.directives import write_outputs

        write_outputs(self, directory)

    # -- answers ------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Relation:
        """The content of a relation, as it is now; evaluates what is not up to date."""
        with self._lock:
            relation = self._stored(name)
            self._refresh([name], None)
            return Relation(relation.schema, relation.content, self._symbols)

    def __contains__(self, name: object) -> bool:
        return name in self._relations

    def __iter__(self) -> Iterator[str]:
        """The names of all relations."""
        return iter(tuple(self._relations))

    def evaluate(self, *names: str, timeout: float | None = None) -> None:
        """Bring the named relations (default: all) up to date within `timeout` seconds.

        `TimeoutExpired` leaves the rest to be evaluated later.
        """
        with self._lock:
            for name in names:
                self._stored(name)
            self._refresh(names or tuple(self._relations), timeout)

    def query(
        self, text: str, *, order: tuple[str, ...] | list[str] | None = None, timeout: float | None = None
    ) -> Query:
        """A query over the relations, such as `"tri(1, y, z), y < z"`: lazy, one column per named variable.

        `order` forces the order in which its variables are bound; `timeout` limits each evaluation, in seconds.
        """
        clause = check_query(text, self._schemas())
        chosen = None if order is None else tuple(order)
        if chosen is not None:
            check_order(clause, chosen)
        return Query(self, clause, chosen, timeout)

    def explain(self, name: str | None = None) -> Explanation:
        """How relation `name` (default: everything) is evaluated: strata, key orders, estimated and actual rows.

        Print it, or call `.json()`.
        """
        with self._lock:
            names = [name] if name is not None else list(self._strata.order)
            wanted = set[str]()
            for n in names:
                self._stored(n)
                wanted |= self._strata.below(n)
            heads = [head for head in self._strata.order if head in wanted]
            evaluations = {
                head: [self._strata.evaluations.get(c) or self._evaluator.describe(c) for c in self._strata.of(head)]
                for head in heads
            }
            return Explanation.of_strata(heads, evaluations, self._relations, stale=self._strata.stale)

    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes of pages per relation and key order (by column names), and of everything under "total"."""
        with self._lock:
            self._arena.collect()
            found: dict[str, dict[str, int]] = {}
            for name, relation in self._relations.items():
                names = relation.schema.names
                found[name] = {", ".join(names[c] for c in order): size for order, size in relation.memory().items()}
            found["total"] = {"pages": self._arena.used}
            return found

    def prepare(self) -> None:
        """Compile every kernel now (or load it from the cache), so that no later call pays for it."""
        warm = Database(".decl e(x:number, y:number)  t(x, y, z) :- e(x, y), e(y, z), e(x, z), x < z + 1.")
        warm._evaluator.pilot_from = 0.0  # so that what only expensive joins need is compiled, too
        keys = np.arange(200)
        warm.load("e", np.stack([np.concatenate([keys, keys]), np.concatenate([keys + 1, keys + 2])], axis=1)[::-1])
        warm.query("e(y, x), e(z, x)").count()
        warm.load("e", [(500, 501)])
        assert len(warm["t"]) == 199
        assert (1, 2, 3) in warm["t"]
        assert next(iter(warm["t"])) == (0, 1, 2)

    # -- what queries use ---------------------------------------------------------------------------------------------

    def _stored(self, name: str) -> StoredRelation:
        if name not in self._relations:
            from lftj.language.findings import did_you_mean

            raise UnknownRelationError(
                f"there is no relation `{name}`",
                why="no rule or declaration names it",
                remedy=did_you_mean(
                    name, self._relations, "declare it with `.decl`, or see `list(db)` for what there is"
                ),
            )
        return self._relations[name]

    def _refresh(self, names: Any, timeout: float | None) -> None:
        until = Limits.within(timeout)

        def limits(head: str) -> Limits:
            return Limits(until.deadline, timeout, self._progress.rows(head))

        with self._progress.step("evaluating"):
            self._guarded(self._strata.refresh, names, limits)

    def _prepared(self, clause: Clause, timeout: float | None) -> Limits:
        """Bring what the clause reads up to date; what is left of the time."""
        until = Limits.within(timeout)
        self._refresh([atom.predicate for atom in clause.atoms], timeout)
        return Limits(until.deadline, timeout, self._progress.rows("query"))

    def _count(self, clause: Clause, order: tuple[str, ...] | None, timeout: float | None) -> tuple[int, Evaluation]:
        with self._lock:
            limits = self._prepared(clause, timeout)
            with self._progress.step("counting"):
                counted: tuple[int, Evaluation] = self._guarded(self._evaluator.count, clause, limits, order=order)
                return counted

    def _answer(
        self, clause: Clause, order: tuple[str, ...] | None, timeout: float | None
    ) -> tuple[Relation, Evaluation]:
        from lftj.values.codes import Column

        with self._lock:
            limits = self._prepared(clause, timeout)
            chunks: list[Any] = []
            with self._progress.step("evaluating"):
                evaluation = self._guarded(self._evaluator.rows, clause, limits, chunks.append, order=order)
            names = [str(term) for term in clause.head_args]
            schema = Schema("query", tuple(Column(n, t.type) for n, t in zip(names, clause.head_args, strict=True)))
            holder = self._new(schema)
            in_order = evaluation.plan.in_order and evaluation.inner is None
            version = self._guarded(holder.assemble, chunks, in_order=in_order)
            return Relation(schema, version, self._symbols), evaluation

    def _describe(self, clause: Clause, order: tuple[str, ...] | None) -> Evaluation:
        with self._lock:
            self._refresh([atom.predicate for atom in clause.atoms], None)
            return self._evaluator.describe(clause, order=order)

    def _guarded(self, action: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call `action`; running out of memory becomes an error that says so."""
        try:
            return action(*args, **options)
        except ArenaFullError as full:
            raise MemoryLimitError(
                f"{full.needed:,} bytes of pages are needed, the limit is {full.limit:,}",
                why="the change was not made; the database is as it was before",
                remedy="raise `memory_limit=`, or load less",
            ) from None

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.close()

    def __repr__(self) -> str:
        lines = [
            f"lftj.Database: {len(self._relations)} relations, {len(self._strata.clauses)} rules, "
            f"{self._arena.used / 1e6:,.1f} MB of pages"
        ]
        for name, relation in self._relations.items():
            state = "not evaluated" if name in self._strata.stale else f"{len(relation):,} rows"
            lines.append(f"  {relation.schema}  {state}")
        return "\n".join(lines)


def check_order(clause: Clause, order: tuple[str, ...]) -> None:
    """Raise `DataError` unless `order` names every variable of the clause, each once."""
    # Arguments that are expressions became variables, which nobody has to name.
    names = {v.name for v in clause.variables() if not re.fullmatch(r"_e\d+", v.name) or v.name in order}
    if set(order) != names or len(order) != len(names):
        raise DataError(
            f"the key order ({', '.join(order)}) does not name each variable of the rule once",
            where=str(clause.span),
            why=f"the variables of `{clause.text}` are {', '.join(sorted(names))}",
            remedy="list all of them, outermost first",
        )
