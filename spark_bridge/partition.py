"""The partition function: the state of a partition and a batch in, new state files and the exact change of outputs out.

    Worker().run(request) -> what the commit is to say of the partition

It knows nothing of Spark: a Spark task, a process of the local pool and the tests' executor all call it with the same
requests, plain JSON. A request names a checkpoint, a partition, a version to start from by its commit's token, and the
work: "create", "apply", "compact", "rescale" or "check". The same request gives files of the same content, under names
of their own; they mean something once a commit names them.

A worker keeps the databases of its partitions. Each is known by the *state* it is in, the id of the attempt that made
it, which the commit names if that attempt counts; a database in another state is not used. So an attempt that was given
up, or another driver's, can leave nothing behind that anybody takes for the truth. One step back is kept: a batch that
was refused elsewhere is undone rather than everything built again.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

import lftj
from lftj.errors import CycleError
from lftj.transaction import Transaction
from lftj.values.codes import Schema
from spark_bridge.files import DamagedError
from spark_bridge.keys import Keyed
from spark_bridge.partition_state import (
    Changes,
    ChangeTables,
    PartitionState,
    StateLayout,
    declaration,
    rows_for,
    table_of,
    tables_of,
)
from spark_bridge.parts_followed import largest_part, sums_in_parts
from spark_bridge.plan import ALL
from spark_bridge.store import OUTPUT, STATE, Body, Checkpoint

FAULTS = "LFTJ_SPARK_FAULTS"  # tests only: the folder that `stop_at` looks into


def stop_at(point: str, partition: int) -> None:
    """Where tests kill this process, or stop it, once: by a file `<point>-<partition>-<kill or stop>`."""
    folder = os.environ.get(FAULTS)
    if not folder:
        return
    for action, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)):
        wish = Path(folder) / f"{point}-{partition}-{action}"
        with suppress(FileNotFoundError):
            wish.rename(wish.with_suffix(f".{os.getpid()}"))
            os.kill(os.getpid(), number)


def database(layout: StateLayout, partition: int, facts: Mapping[str, pa.Table]) -> lftj.Database:
    """The database of a partition with the given facts, nothing evaluated yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the program was checked, and its warnings told, when the query was made
        db = lftj.Database()
        db.rules(layout.text, maintain=layout.maintain)
    for name, table in facts.items():
        schema = layout.schemas[name]
        rows = Keyed(table, schema)
        for copy in layout.copies[name]:
            mine = _hit(layout, partition, copy[1], rows)
            if mine.num_rows:
                db.load(layout.names[copy], rows_for(mine, schema))
    return db


def _hit(layout: StateLayout, partition: int, pattern: Any, rows: Keyed) -> pa.Table:
    if pattern == ALL:
        return rows.table
    mask = layout.placement.hits(partition, pattern, rows)
    return rows.table if mask.all() else rows.table.filter(pa.array(mask))


def _own(layout: StateLayout, partition: int, name: str, table: pa.Table) -> pa.Table:
    """The rows that this partition, of those that hold them, answers for."""
    pattern = layout.plan.outputs[name]
    derived = name in layout.plan.derived
    if not table.num_rows or (derived and pattern != ALL) or pattern.kind == "xy":
        return table
    rows = Keyed(table, layout.schemas[name])
    return table.filter(pa.array(layout.placement.owners(pattern, rows) == partition))


def answers(
    db: lftj.Database, layout: StateLayout, partition: int, names: Iterable[str] | None = None
) -> dict[str, pa.Table]:
    """What a partition answers for relations (default: all that can be asked for)."""
    return {
        name: _own(layout, partition, name, table_of(db[layout.names[name, pattern]], layout.schemas[name]))
        for name, pattern in layout.plan.outputs.items()
        if names is None or name in names
    }


@dataclass
class _Kept:
    """A database and the state it is in; `undo` leads back to the state `before`."""

    db: lftj.Database
    state: str
    before: str = ""
    undo: Changes = field(default_factory=dict)


class Worker:
    """Runs requests, one at a time, and keeps the databases of the partitions it has seen."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], _Kept] = {}
        self._states: dict[str, PartitionState] = {}

    def run(self, request: Body) -> Body:
        """What came of a request; an error that lftj raised on purpose is told under "error"."""
        partition, started = request["partition"], time.perf_counter()
        stop_at("before", partition)
        state = self._state(request)
        state.damaged = []
        done: Body = {"partition": partition, "attempt": uuid.uuid4().hex, "stats": {}}
        try:
            done |= getattr(self, "_" + request["work"])(state, request, done)
        except lftj.Error as error:
            done["error"] = _told(error)
        done["damaged"] = state.damaged
        done["stats"]["seconds"] = time.perf_counter() - started
        return done

    def forget(self) -> None:
        """Drop all databases."""
        self._kept.clear()

    def _state(self, request: Body) -> PartitionState:
        folder, identity = request["folder"], request["query"]
        if identity not in self._states:
            self._states[identity] = PartitionState(Checkpoint(folder))
        state = self._states[identity]
        version = request.get("version")
        if version is not None and state.checkpoint.commit(version)["token"] != request["token"]:
            # A version that was read when another file had its name: that of a checkpoint that was put back.
            self._states[identity] = state = PartitionState(Checkpoint(folder))
        return state

    # -- the kinds of work --------------------------------------------------------------------------------------------

    def _create(self, state: PartitionState, request: Body, done: Body) -> Body:
        layout = self._layout_to_be(state, request)
        journal = state.read_segments(request["journal"], layout.schemas)
        return self._base(state, request, done, layout, layout.routed(request["partition"], journal))

    def _rescale(self, state: PartitionState, request: Body, done: Body) -> Body:
        layout = self._layout_to_be(state, request)
        found = state.everything(request["version"])
        changes = {name: ChangeTables(table.slice(0, 0), table) for name, table in found.items()}
        return self._base(state, request, done, layout, layout.routed(request["partition"], changes))

    def _layout_to_be(self, state: PartitionState, request: Body) -> StateLayout:
        query = request.get("definition")  # at first there is no commit that has it
        return StateLayout.of(query or state.checkpoint.query, {"layout": request["layout"]})

    def _base(self, state: PartitionState, request: Body, done: Body, layout: StateLayout, facts: Changes) -> Body:
        """A base: evaluate everything, write facts and outputs."""
        partition, clock = request["partition"], _Clock(done["stats"])
        tables = {name: change.inserted for name, change in facts.items()}
        db = database(layout, partition, tables)
        clock.lap("load")
        db.evaluate()
        found = answers(db, layout, partition)
        clock.lap("evaluate")
        outputs = {name: ChangeTables(table.slice(0, 0), table) for name, table in found.items()}
        result = self._written(state, request, layout, facts, outputs)
        clock.lap("write")
        self._keep(request, _Kept(db, done["attempt"]))
        return {**result, "state": done["attempt"]}

    def _apply(self, state: PartitionState, request: Body, done: Body) -> Body:
        """A batch: change the facts, write the change and that of the outputs."""
        partition, clock = request["partition"], _Clock(done["stats"])
        layout = state.layout(request["version"])
        journal = state.read_segments(request["journal"], layout.schemas)
        routed = layout.routed(partition, journal)
        clock.lap("read")
        kept, done["stats"]["rebuilt"] = self._at(state, request, layout)
        clock.lap("load")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with kept.db.transaction() as tx:
                _change(tx, layout, partition, routed)
        done["stats"]["heads"] = {name: how["strategy"] for name, how in tx.stats.get("heads", {}).items()}
        outputs, undo = {}, {}
        for name, pattern in layout.plan.outputs.items():
            delta = tx.delta[layout.names[name, pattern]]
            if delta:
                schema = layout.schemas[name]
                gone, come = (table_of(part, schema) for part in (delta.erased, delta.inserted))
                outputs[name] = ChangeTables(_own(layout, partition, name, gone), _own(layout, partition, name, come))
        reversible = all(name not in layout.plan.derived for name in routed)
        if reversible:
            for name in routed:
                for copy in layout.copies[name]:
                    delta = tx.delta[layout.names[copy]]
                    if delta:
                        schema = layout.schemas[name]
                        undo[layout.names[copy]] = ChangeTables(
                            table_of(delta.inserted, schema), table_of(delta.erased, schema)
                        )
        kept.before, kept.undo = (kept.state if reversible else ""), undo
        kept.state = done["attempt"]
        clock.lap("evaluate")
        result = self._written(state, request, layout, routed, outputs)
        clock.lap("write")
        return {**result, "state": done["attempt"]}

    def _compact(self, state: PartitionState, request: Body, done: Body) -> Body:
        """The same content in new files, without evaluating anything."""
        version, partition, clock = request["version"], request["partition"], _Clock(done["stats"])
        layout = state.layout(version)
        facts = {n: ChangeTables(t.slice(0, 0), t) for n, t in state.facts(partition, version).items()}
        outputs = {}
        for name in layout.plan.outputs:
            table = state.output(partition, version, name)
            outputs[name] = ChangeTables(table.slice(0, 0), table)
        clock.lap("load")
        result = self._written(state, request, layout, facts, outputs)
        clock.lap("write")
        return {**result, "state": state.checkpoint.commit(version)["parts"][partition]["state"]}

    def _check(self, state: PartitionState, request: Body, done: Body) -> Body:
        """Read every file of a partition, evaluate its facts, and compare with its outputs."""
        version, partition = request["version"], request["partition"]
        layout, wrong = state.layout(version), []
        for v in state.checkpoint.kept():
            commit = state.checkpoint.commit(v)
            parts = commit["parts"]
            # There may be more partitions now than at that version, or fewer.
            mine = [p for p in range(len(parts)) if p % state.partitions(version) == partition]
            files = [parts[p].get(kind) for p in mine for kind in ("facts", "replica", "output")]
            files += commit["journal"] if partition == 0 else []
            for file in files:
                try:
                    state._read(file)
                except DamagedError:
                    continue
        with database(layout, partition, state.facts(partition, version)) as db:
            for name, table in answers(db, layout, partition).items():
                stored = state.output(partition, version, name)
                schema = layout.schemas[name]
                with lftj.Database() as compare:
                    compare.rules(_decl(schema))
                    compare.load("stored", rows_for(_plain(stored, schema), schema))
                    compare.load("derived", rows_for(_plain(table, schema), schema))
                    if compare["stored"] != compare["derived"]:
                        wrong.append(name)
        return {"wrong": wrong, "state": ""}

    def _close(self, state: PartitionState, request: Body, done: Body) -> Body:
        self._kept.pop((request["query"], request["partition"]), None)
        return {"state": ""}

    # -- databases ----------------------------------------------------------------------------------------------------

    def _keep(self, request: Body, kept: _Kept) -> None:
        self._kept[request["query"], request["partition"]] = kept

    def _at(self, state: PartitionState, request: Body, layout: StateLayout) -> tuple[_Kept, bool]:
        """The database of a partition at the version of the request, and whether it had to be built from files."""
        version, partition = request["version"], request["partition"]
        wanted = state.checkpoint.commit(version)["parts"][partition]["state"]
        kept = self._kept.pop((request["query"], partition), None)
        if kept is not None and kept.state != wanted and kept.before == wanted:
            with kept.db.transaction() as tx:
                for name, change in kept.undo.items():
                    schema = next(layout.schemas[c[0]] for c, n in layout.names.items() if n == name)
                    tx.erase(name, rows_for(change.erased, schema))
                    tx.insert(name, rows_for(change.inserted, schema))
            kept.state, kept.before, kept.undo = wanted, "", {}
        rebuilt = kept is None or kept.state != wanted
        if kept is None or rebuilt:
            kept = _Kept(database(layout, partition, state.facts(partition, version)), wanted)
        self._keep(request, kept)
        return kept, rebuilt

    def _written(
        self, state: PartitionState, request: Body, layout: StateLayout, facts: Changes, outputs: Changes
    ) -> Body:
        """Write what there is: outputs, then facts, those that every partition holds once."""
        partition, version, store = request["partition"], request["target"], state.checkpoint
        found: Body = {"output": None, "facts": None, "replica": None}
        changed: Body = {n: [c.erased.num_rows, c.inserted.num_rows] for n, c in outputs.items() if c.rows}
        if tables := tables_of(outputs):
            found["output"] = store.write(OUTPUT, version, f"p{partition}", tables)
        stop_at("output", partition)
        own = {name: change for name, change in facts.items() if not layout.replicated(name)}
        if tables := tables_of(own):
            found["facts"] = store.write(STATE, version, f"p{partition}", tables)
        if partition == 0:
            whole = {name: change for name, change in facts.items() if layout.replicated(name)}
            if tables := tables_of(whole):
                found["replica"] = store.write(STATE, version, "all", tables)
        stop_at("state", partition)
        sums = [name for name in sums_in_parts(layout.plan) if name in outputs]
        largest: Body = {name: largest_part(outputs[name].inserted) for name in sums}
        return {**found, "changed": changed, "largest": largest}


def _change(tx: Transaction, layout: StateLayout, partition: int, changes: Changes) -> None:
    """Erase and insert what each copy of a partition is hit by."""
    for name, change in changes.items():
        schema = layout.schemas[name]
        gone, come = Keyed(change.erased, schema), Keyed(change.inserted, schema)
        for copy in layout.copies[name]:
            for verb, rows in ((tx.erase, gone), (tx.insert, come)):
                mine = _hit(layout, partition, copy[1], rows)
                if mine.num_rows:
                    verb(layout.names[copy], rows_for(mine, schema))


def _decl(schema: Schema) -> str:
    return declaration(schema, "stored") + "\n" + declaration(schema, "derived")


def _plain(table: pa.Table, schema: Schema) -> pa.Table:
    return table.rename_columns([f"c{i}" for i in range(schema.arity)]) if schema.arity else table


def _told(error: lftj.Error) -> Body:
    """An error as a body. A cycle is told by its keys: a partition has heads of its own between them."""
    what, more = error.what, dict[str, Any]()
    if isinstance(error, CycleError):
        keys = [key if isinstance(key, int | str) else str(key) for key, _ in groupby(error.cycle)]
        what, more = f"{what.partition(':')[0]}: {' -> '.join(map(str, keys))}", {"cycle": keys}
    return {
        **more,
        "kind": type(error).__name__,
        "what": what,
        "where": error.where,
        "why": error.why,
        "remedy": error.remedy,
        "details": list(error.details),
    }


class _Clock:
    def __init__(self, stats: Body) -> None:
        self.stats, self.last = stats, time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.stats[name] = round(now - self.last, 6)
        self.last = now
