"""The partition function: the state of a partition and a batch in, new state files and the exact change of outputs out.

    Worker().run(request) -> what the commit is to say of the partition

It knows nothing of Spark: a Spark task, a process of the local pool and the tests' executor all call it with the same
requests, plain JSON. A request names a checkpoint, a partition, a stage, a version to start from by its commit's token,
and the work: "create", "apply", "compact", "rescale" or "check". That of a later stage names the files that partitions
wrote in those before it ("sent"). The same request gives files of the same content, under names of their own; they mean
something once a commit names them.

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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import lftj
from lftj.language.clause import owner
from lftj.transaction import Transaction
from lftj.values.schema import Schema
from spark_bridge.change_tables import Changes, ChangeTables, declaration, empty, net_of, rows_for, table_of, tables_of
from spark_bridge.error_bodies import failed, told
from spark_bridge.files import DamagedError
from spark_bridge.keys import Keyed
from spark_bridge.partition_database import answers, database, hit_rows, own_rows
from spark_bridge.partition_state import PartitionState, received
from spark_bridge.parts_followed import largest_part, sums_in_parts
from spark_bridge.plan import PartitionPlan
from spark_bridge.state_layout import StageLayout, StateLayout
from spark_bridge.store import OUTPUT, STATE, Body, Checkpoint

FAULTS = "LFTJ_SPARK_FAULTS"  # tests only: the folder that `stop_at` looks into


def stop_at(point: str, partition: int) -> None:
    """Where tests kill this process, or stop it, once: by a file `<point>-<partition>-<kill or stop>`.

    The names of points within later stages end with the number of the stage.
    """
    folder = os.environ.get(FAULTS)
    if not folder:
        return
    for action, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)):
        wish = Path(folder) / f"{point}-{partition}-{action}"
        with suppress(FileNotFoundError):
            wish.rename(wish.with_suffix(f".{os.getpid()}"))
            # To this very thread: one that is sent to the process may be taken by another, and while that waits for a
            # core this one works on, and may have answered before everything stops.
            signal.raise_signal(number)


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
        self._kept: dict[tuple[str, int, int], _Kept] = {}
        self._states: dict[str, PartitionState] = {}

    def run(self, request: Body) -> Body:
        """What came of a request. Whatever it raised is told under "error", for the driver to raise.

        With "again" if it is no error of lftj's: elsewhere, or the next time, the work may be done.
        """
        partition, started = request["partition"], time.perf_counter()
        stop_at(f"before{request['stage'] or ''}", partition)
        done: Body = {"partition": partition, "stage": request["stage"], "attempt": uuid.uuid4().hex, "stats": {}}
        done["damaged"] = []
        try:
            state = self._state(request)
            state.damaged = done["damaged"]
            done |= getattr(self, "_" + request["work"])(state, request, done)
        except lftj.Error as error:
            done["error"] = told(error, self._plan(request))
        except Exception as error:
            done |= {"error": failed(error), "again": True}
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

    def _plan(self, request: Body) -> PartitionPlan | None:
        """The plan that an error of a request is about; None if the error is that there is none."""
        with suppress(lftj.Error):
            state = self._state(request)
            made = "layout" in request
            layout = self._layout_to_be(state, request) if made else state.layout(request["version"])
            return layout.stages[request["stage"]].plan
        return None

    # -- the kinds of work --------------------------------------------------------------------------------------------

    def _create(self, state: PartitionState, request: Body, done: Body) -> Body:
        layout = self._layout_to_be(state, request)
        journal = state.read_segments(request["journal"], layout.schemas)
        return self._base(state, request, done, layout, journal)

    def _rescale(self, state: PartitionState, request: Body, done: Body) -> Body:
        layout = self._layout_to_be(state, request)
        stage = layout.stages[request["stage"]]
        found = state.everything(request["version"], stage.copies.keys() - stage.sent)
        return self._base(state, request, done, layout, {name: ChangeTables.of(table) for name, table in found.items()})

    def _layout_to_be(self, state: PartitionState, request: Body) -> StateLayout:
        query = request.get("definition")  # at first there is no commit that has it
        return StateLayout.of(query or state.checkpoint.query, {"layout": request["layout"]})

    def _routed(self, state: PartitionState, request: Body, layout: StateLayout, changes: Changes) -> Changes:
        """What concerns a partition of changes from outside, and of what its stage is sent."""
        stage = layout.stages[request["stage"]]
        arrived = state.arriving(layout, stage.number, request["sent"])
        return stage.routed(request["partition"], stage.given(changes) | arrived)

    def _base(self, state: PartitionState, request: Body, done: Body, whole: StateLayout, given: Changes) -> Body:
        """A base: evaluate everything, write facts and outputs."""
        partition, clock = request["partition"], _Clock(done["stats"])
        layout, facts = whole.stages[request["stage"]], self._routed(state, request, whole, given)
        tables = {name: change.inserted for name, change in facts.items()}
        db = database(layout, partition, tables)
        clock.lap("load")
        db.evaluate()
        found = answers(db, layout, partition)
        clock.lap("evaluate")
        outputs = {name: ChangeTables.of(table) for name, table in found.items()}
        result = self._written(state, request, layout, facts, outputs)
        clock.lap("write")
        self._keep(request, _Kept(db, done["attempt"]))
        return {**result, "state": done["attempt"]}

    def _apply(self, state: PartitionState, request: Body, done: Body) -> Body:
        """A batch: change the facts, write the change and that of the outputs."""
        partition, clock = request["partition"], _Clock(done["stats"])
        whole = state.layout(request["version"])
        layout = whole.stages[request["stage"]]
        routed = self._routed(state, request, whole, state.read_segments(request["journal"], whole.schemas))
        clock.lap("read")
        kept, done["stats"]["rebuilt"] = self._at(state, request, layout)
        clock.lap("load")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with kept.db.transaction() as tx:
                _change(tx, layout, partition, routed)
        # At once: whatever is raised below, a database that has moved on is not taken for one that has not.
        before, kept.state, kept.before = kept.state, done["attempt"], ""
        done["stats"]["heads"] = {name: how["strategy"] for name, how in tx.stats.get("heads", {}).items()}
        outputs, undo = {}, {}
        for name, pattern in layout.plan.outputs.items():
            delta = tx.delta[layout.names[name, pattern]]
            if delta:
                schema = layout.schemas[name]
                gone, come = (table_of(part, schema) for part in (delta.erased, delta.inserted))
                outputs[name] = ChangeTables(
                    own_rows(layout, partition, name, gone), own_rows(layout, partition, name, come)
                )
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
        kept.before, kept.undo = (before if reversible else ""), undo
        clock.lap("evaluate")
        result = self._written(state, request, layout, routed, outputs)
        clock.lap("write")
        return {**result, "state": done["attempt"]}

    def _compact(self, state: PartitionState, request: Body, done: Body) -> Body:
        """The same content in new files, without evaluating anything."""
        version, partition, clock = request["version"], request["partition"], _Clock(done["stats"])
        layout = state.layout(version).stages[request["stage"]]
        facts = {n: ChangeTables.of(t) for n, t in state.facts(layout.number, partition, version).items()}
        outputs = {n: ChangeTables.of(t) for n, t in state.outputs(partition, version, layout).items()}
        clock.lap("load")
        result = self._written(state, request, layout, facts, outputs)
        clock.lap("write")
        return {**result, "state": state.part(version, layout.number, partition)["state"]}

    def _check(self, state: PartitionState, request: Body, done: Body) -> Body:
        """Read every file, evaluate the facts and compare with the outputs, and with what was sent."""
        version, partition = request["version"], request["partition"]
        layout, wrong = state.layout(version).stages[request["stage"]], []
        if not layout.number:
            self._read_all(state, version, partition)
        facts = state.facts(layout.number, partition, version)
        for take in layout.plan.takes:
            tables = [state.output(p, version, take.source) for p in range(state.partitions(version))]
            schema = layout.schemas[take.target]
            sent = received(take, [ChangeTables.of(table) for table in tables], schema)
            mine = layout.routed(partition, {take.target: sent})[take.target].inserted
            if not _same(facts.get(take.target, empty(schema)), mine, schema):
                wrong.append(owner(take.target))
        stored = state.outputs(partition, version, layout)
        with database(layout, partition, facts) as db:
            for name, table in answers(db, layout, partition).items():
                if not _same(stored[name], table, layout.schemas[name]):
                    wrong.append(owner(name))
        return {"wrong": list(dict.fromkeys(wrong)), "state": ""}

    def _read_all(self, state: PartitionState, version: int, partition: int) -> None:
        """Read the files of a partition in all stages of all versions, so that those that are damaged are found."""
        for v in state.checkpoint.kept():
            commit = state.checkpoint.commit(v)
            parts = commit["parts"]
            # There may be more partitions now than at that version, or fewer.
            mine = [p for p in range(len(parts)) if p % state.partitions(version) == partition]
            files = [parts[p].get(kind) for p in mine for kind in ("facts", "replica", "output")]
            files += commit["journal"] if partition == 0 else []
            for file in files:
                with suppress(DamagedError):
                    state._read(file)

    def _close(self, state: PartitionState, request: Body, done: Body) -> Body:
        for key in [key for key in self._kept if (key[0], key[2]) == (request["query"], request["partition"])]:
            del self._kept[key]
        return {"state": ""}

    # -- databases ----------------------------------------------------------------------------------------------------

    def _keep(self, request: Body, kept: _Kept) -> None:
        self._kept[_key(request)] = kept

    def _at(self, state: PartitionState, request: Body, layout: StageLayout) -> tuple[_Kept, bool]:
        """The database of a partition at the version of the request, and whether it had to be built from files."""
        version, partition = request["version"], request["partition"]
        wanted = state.part(version, layout.number, partition)["state"]
        kept = self._kept.pop(_key(request), None)
        if kept is not None and kept.state != wanted and kept.before == wanted:
            with kept.db.transaction() as tx:
                for name, change in kept.undo.items():
                    schema = next(layout.schemas[c[0]] for c, n in layout.names.items() if n == name)
                    tx.erase(name, rows_for(change.erased, schema))
                    tx.insert(name, rows_for(change.inserted, schema))
            kept.state, kept.before, kept.undo = wanted, "", {}
        rebuilt = kept is None or kept.state != wanted
        if kept is None or rebuilt:
            kept = _Kept(database(layout, partition, state.facts(layout.number, partition, version)), wanted)
        self._keep(request, kept)
        return kept, rebuilt

    def _written(
        self, state: PartitionState, request: Body, layout: StageLayout, facts: Changes, outputs: Changes
    ) -> Body:
        """Write what there is: outputs, then facts, those that every partition holds once."""
        partition, version, store = request["partition"], request["target"], state.checkpoint
        found: Body = {"output": None, "facts": None, "replica": None}
        changed: Body = {n: [c.erased.num_rows, c.inserted.num_rows] for n, c in outputs.items() if c.rows}
        if tables := tables_of(outputs):
            found["output"] = store.write(OUTPUT, version, f"p{partition}", tables)
        stop_at(f"output{layout.number or ''}", partition)
        own = {name: change for name, change in facts.items() if not layout.replicated(name)}
        if tables := tables_of(own):
            found["facts"] = store.write(STATE, version, f"p{partition}", tables)
        if partition == 0:
            whole = {name: change for name, change in facts.items() if layout.replicated(name)}
            if tables := tables_of(whole):
                found["replica"] = store.write(STATE, version, "all", tables)
        stop_at(f"state{layout.number or ''}", partition)
        sums = [name for name in sums_in_parts(layout.plan) if name in outputs]
        largest: Body = {name: largest_part(outputs[name].inserted) for name in sums}
        return {**found, "changed": changed, "largest": largest}


def _change(tx: Transaction, layout: StageLayout, partition: int, changes: Changes) -> None:
    """Erase and insert what each copy of a partition is hit by."""
    for name, change in changes.items():
        schema = layout.schemas[name]
        gone, come = Keyed(change.erased, schema), Keyed(change.inserted, schema)
        for copy in layout.copies[name]:
            for verb, rows in ((tx.erase, gone), (tx.insert, come)):
                mine = hit_rows(layout, partition, copy[1], rows)
                if mine.num_rows:
                    verb(layout.names[copy], rows_for(mine, schema))


def _key(request: Body) -> tuple[str, int, int]:
    """What a worker knows a database by."""
    return request["query"], request["stage"], request["partition"]


def _same(stored: pa.Table, derived: pa.Table, schema: Schema) -> bool:
    """Whether two tables have the same rows."""
    if not net_of(stored, derived).rows:
        return True
    # A row may come several times.
    with lftj.Database() as compare:
        compare.rules(declaration(schema, "stored") + "\n" + declaration(schema, "derived"))
        compare.load("stored", rows_for(_plain(stored, schema), schema))
        compare.load("derived", rows_for(_plain(derived, schema), schema))
        return bool(compare["stored"] == compare["derived"])


def _plain(table: pa.Table, schema: Schema) -> pa.Table:
    return table.rename_columns([f"c{i}" for i in range(schema.arity)]) if schema.arity else table


class _Clock:
    def __init__(self, stats: Body) -> None:
        self.stats, self.last = stats, time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.stats[name] = round(now - self.last, 6)
        self.last = now
