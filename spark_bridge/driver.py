"""The driver: which version follows which. Batches move metadata only; rows go from files to files.

Placing keys (create, rescale, estimate) does read rows here: of the journal up to `LOOKED_AT` per relation, of a
rescale or an estimate all of them.

    create    journal -> placement -> a base by every partition          -> commit 0
    apply     journal -> a batch by every partition                      -> commit V
    compact, rescale     the content of V, anew, by every partition      -> commit V + 1

Everything before the commit is attempts: files that nothing names. `Partitioned.apply` looks the batch's id up first,
so whoever is not told whether a batch was committed sends it again. Two drivers that race make files side by side, one
of them makes the commit, and the other begins again from there.

An `Executor` runs the partition function somewhere and brings sources into the journal: `local.py` in this process or
in processes of this machine, `spark.py` on a Spark cluster.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

import lftj
from lftj import errors as lftj_errors
from lftj.errors import UnknownRelationError
from lftj.language.options import VALUES
from lftj.values.codes import Schema
from spark_bridge import bridge_errors
from spark_bridge.bridge_errors import BatchError, PlanError, RaceError, StateError
from spark_bridge.estimates import Estimate, chosen_placement, estimate_of, plans_of
from spark_bridge.ingest import digest, stage
from spark_bridge.keys import Keyed, arrow_schema
from spark_bridge.partition import stop_at
from spark_bridge.partition_state import ChangeTables, PartitionState, net
from spark_bridge.parts_followed import PartsFollowed, joined
from spark_bridge.placement import Placement
from spark_bridge.plan import PART, PartitionPlan, make_plan
from spark_bridge.store import Body, Checkpoint

RACES = 8  # so often a driver begins again when another one commits first
ChosenBy = Callable[[PartitionPlan, PartitionPlan | None, Mapping[str, Keyed]], Placement]
LOOKED_AT = 20_000_000  # rows of a relation at most, to estimate work by


class Executor(Protocol):
    """Runs requests, and brings sources into the journal."""

    def run(self, requests: Sequence[Body]) -> list[Body]:
        """What came of each request. A partition that is lost is run again, wherever."""

    def stage(self, checkpoint: Checkpoint, version: int, schema: Schema, source: Any, *, changes: bool) -> list[Body]:
        """Bring the rows of one relation into the journal: its files. Raises `BatchError` for rows that do not fit."""

    def close(self) -> None:
        """End what it keeps beside the holders."""


@dataclass(frozen=True)
class Applied:
    """What became of a batch: the version it made, per relation rows erased and inserted; `repeated`: it was known.

    `changed` leaves out heads whose groups cross partitions, as each partition knows the change of its part alone:
    their change is what `delta` tells.
    """

    version: int
    batch_id: str
    changed: dict[str, tuple[int, int]]
    repeated: bool = False


class Partitioned:
    """A query over partitions. Made by `create` or `open`."""

    def __init__(self, executor: Executor, checkpoint: Checkpoint) -> None:
        self.executor, self.checkpoint = executor, checkpoint
        self.state = PartitionState(checkpoint)
        self._last: list[Body] = []
        self.parts = PartsFollowed(checkpoint, self.state)

    # -- making one ---------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        executor: Executor,
        program: str,
        inputs: Mapping[str, Any],
        *,
        checkpoint: str | Path,
        partitions: int,
        outputs: Sequence[str] | None = None,
        replicate: Sequence[str] = (),
        partition_memory: int | None = None,
        maintain: Mapping[str, str] | None = None,
        placement: ChosenBy | None = None,
    ) -> Partitioned:
        """Check and plan, read the inputs, place their keys, evaluate, commit version 0."""
        if partitions < 1:
            raise PlanError(
                f"partitions={partitions}",
                why="it is how many parts the relations are split into",
                remedy="give 1 or more",
            )
        options: dict[str, Any] = {"outputs": outputs, "replicate": replicate, "partitions": partitions}
        plan = make_plan(program, **options)
        for name in inputs:
            _known(plan, name)
        for name, how in (maintain or {}).items():
            if name not in plan.derived or how not in VALUES["maintain"]:
                raise PlanError(
                    f"maintain={{{name!r}: {how!r}}} says nothing",
                    why="it says how what rules derive is kept up to date",
                    remedy=f"name a relation that rules derive, and one of {', '.join(VALUES['maintain'])}",
                )
        store = Checkpoint(checkpoint)
        query = {
            "program": program,
            "outputs": None if outputs is None else list(outputs),
            "replicate": list(replicate),
            "memory": partition_memory,
            "maintain": dict(maintain or {}),
            "identity": uuid.uuid4().hex,
        }
        store.begin(query)
        made = cls(executor, store)
        try:
            body = made._created(plan, inputs, options, placement)
        except BaseException as error:
            with suppress(Exception):
                made._run("close", None, 0, partitions)
            if isinstance(error, lftj.Error) and store.head() >= 0:
                raise made._came_late() from error  # whoever won has removed our files, which we may have missed
            raise
        won = store.publish(body)
        stop_at("create-committed", 0)
        store.clean()  # what drivers left that died before they committed, or were later
        if not won:
            made._run("close", None, 0, partitions)
            raise made._came_late()
        return made

    def _created(
        self, plan: PartitionPlan, inputs: Mapping[str, Any], options: dict[str, Any], placement: ChosenBy | None
    ) -> Body:
        """What is to be committed as version 0."""
        store, query = self.checkpoint, self.checkpoint.query
        segments = [
            segment
            for name, source in inputs.items()
            for segment in self.executor.stage(store, 0, plan.schemas[name], source, changes=False)
        ]
        for name, rows in plan.program.facts.items():
            table = _fact_table(plan.schemas[name], rows)
            segment = stage(store, 0, plan.schemas[name], table, changes=False)
            segments += [segment] if segment is not None else []
        stop_at("create-journaled", 0)
        layout = self._layout(query["program"], options, segments, placement)
        partitions = options["partitions"]
        results = self._run("create", None, 0, partitions, journal=segments, layout=layout, definition=query)
        stop_at("create-worked", 0)
        self.parts.fitting(None, results, plan)
        return self._body("create", 0, 0, results, journal=segments, layout=layout, history=[])

    def _came_late(self) -> StateError:
        return StateError(
            f"{self.checkpoint.folder} was created by another driver",
            why="two created a query there at the same time, and the other one committed first",
            remedy="open it with `open`, or create in another folder",
        )

    @classmethod
    def open(cls, executor: Executor, checkpoint: str | Path) -> Partitioned:
        """The query of a checkpoint, as its last commit left it."""
        store = Checkpoint(checkpoint)
        if store.head() < 0:
            raise StateError(
                f"{store.folder} holds no checkpoint that was finished",
                why="it has no commit: its creation did not get so far",
                remedy="create the query there (what was left is cleared away then)",
            )
        return cls(executor, store)

    def _layout(
        self,
        program: str,
        options: dict[str, Any],
        segments: Sequence[Body],
        placement: ChosenBy | None,
    ) -> Body:
        """Where keys go, by the rows in the journal."""
        schemas = make_plan(program, **options).schemas
        rows = _rows(segments)
        tables = {}
        for name in rows:
            mine = [s for s in segments if name + "+" in s["rows"]]
            held, parts = 0, []
            for segment in mine:
                if held < LOOKED_AT:
                    parts.append(self.state.read_segments([segment], schemas)[name].inserted)
                    held += parts[-1].num_rows
            tables[name] = Keyed(pa.concat_tables(parts), schemas[name])
        return self._placed(program, options, rows, tables, placement)

    def _placed(
        self,
        program: str,
        options: dict[str, Any],
        rows: Mapping[str, int],
        tables: Mapping[str, Keyed],
        placement: ChosenBy | None,
    ) -> Body:
        plan, second = plans_of(program, options, rows)
        if placement is not None:
            chosen = placement(plan, second, tables)
        else:
            chosen, _, _ = chosen_placement(
                plan, second, rows, tables, options["partitions"], self.checkpoint.query["memory"]
            )
        if chosen.split and second is None:
            raise PlanError(
                "keys were to be split, and this program cannot tell second keys apart",
                why="heavy keys are split by the second variable that all atoms of a rule share",
                remedy="place whole keys only, or leave the placement to lftj",
            )
        return {"second": chosen.split, "rows": dict(rows), "placement": chosen.json()}

    # -- versions -----------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The last version."""
        return self.checkpoint.head()

    def apply(self, changes: Mapping[str, Any], *, batch_id: str) -> Applied:
        """Make the changes the next version; if a batch of this id and content was committed, only say so.

        Erases come first, then inserts. `BatchError` if the id was used for other content, or rows do not fit; whatever
        is raised, nothing was changed.
        """
        for _ in range(RACES):
            version = self.version
            layout = self.state.layout(version)
            for name in changes:
                _known(layout.plan, name)
            segments = [
                segment
                for name, source in changes.items()
                for segment in self.executor.stage(
                    self.checkpoint, version + 1, layout.schemas[name], source, changes=True
                )
            ]
            stop_at("journaled", 0)
            content = digest(segments)
            known = self.checkpoint.batch(batch_id)
            if known is not None:
                return _again(known, content)
            results = self._run("apply", version, version + 1, self.state.partitions(version), journal=segments)
            stop_at("worked", 0)
            moved = self.parts.fitting(version, results, layout.plan)
            batch: Body = {"id": batch_id, "digest": content, "changed": _summed(results, layout.plan)}
            body = self._body(
                "apply", version + 1, self.checkpoint.base(version), results, journal=segments, batch=batch
            )
            if self.checkpoint.publish(body):
                stop_at("committed", 0)
                self.parts.reached(moved, body["token"])
                return Applied(version + 1, batch_id, _pairs(batch["changed"]))
        raise RaceError(
            f"another driver committed first, {RACES} times in a row",
            why="one version follows another, and somebody else keeps making them",
            remedy="let one driver write to a checkpoint",
        )

    def compact(self) -> int:
        """Make the present content a new base, and remove what is older than the base before; the new version."""
        version = self.version
        base = self.checkpoint.commit(self.checkpoint.base(version))
        results = self._run("compact", version, version + 1, self.state.partitions(version))
        body = self._body(
            "compact",
            version + 1,
            version + 1,
            results,
            layout=base["layout"],
            history=self.checkpoint.history(version),
        )
        return self._based(body)

    def rescale(self, partitions: int, *, partition_memory: int | None = None, placement: Any = None) -> int:
        """Place the keys anew, over another number of partitions. The new version."""
        version = self.version
        query = self.checkpoint.query
        options = {"outputs": query["outputs"], "replicate": query["replicate"], "partitions": partitions}
        schemas = self.state.layout(version).schemas
        tables = {n: Keyed(t, schemas[n]) for n, t in self.state.everything(version).items()}
        rows = {name: len(table) for name, table in tables.items()}
        layout = self._placed(query["program"], options, rows, tables, placement)
        results = self._run("rescale", version, version + 1, partitions, layout=layout)
        history = self.checkpoint.history(version)
        return self._based(self._body("rescale", version + 1, version + 1, results, layout=layout, history=history))

    def _based(self, body: Body) -> int:
        if not self.checkpoint.publish(body):
            raise RaceError(
                "another driver committed first",
                why="a checkpoint has one version after another, and this batch was meant to be the next",
                remedy="try again",
            )
        self.checkpoint.clean()
        return int(body["version"])

    def verify(self) -> dict[str, Any]:
        """Read every file, evaluate every partition's facts and compare with its outputs.

        `damaged`: files that could not be used (a `compact` writes what they held anew); `wrong`: relations whose
        outputs are not what the facts lead to, by partition.
        """
        version = self.version
        results = self._run("check", version, version, self.state.partitions(version))
        damaged = sorted({name for result in results for name in result["damaged"]})
        wrong = {r["partition"]: r["wrong"] for r in results if r["wrong"]}
        return {"version": version, "damaged": damaged, "wrong": wrong, "ok": not damaged and not wrong}

    def release(self) -> None:
        """Let the workers drop what they keep of this query; whoever asks next has it built again."""
        version = self.version
        with suppress(lftj.Error):
            self._run("close", version, version, self.state.partitions(version))

    def close(self) -> None:
        """Let the workers drop what they keep of this query, and the executor what it keeps."""
        self.release()
        self.executor.close()

    # -- answers ------------------------------------------------------------------------------------------------------

    def answered(self, name: str, version: int | None = None) -> tuple[int, Schema]:
        """The version to be read (default: the last) and the schema of a relation; errors for what is not there."""
        version = self.version if version is None else version
        if version not in self.checkpoint.kept():
            kept = self.checkpoint.kept()
            raise StateError(
                f"there is no version {version} any more" if version < kept.start else f"there is no version {version}",
                why=f"versions {kept.start} to {kept.stop - 1} are kept",
                remedy="ask for one of these",
            )
        plan = self.state.layout(version).plan
        _known(plan, name)
        if name not in plan.outputs:
            raise UnknownRelationError(
                f"`{name}` is derived, and not kept",
                why="it is none of the outputs that were asked for",
                remedy=f"create the query with `{name}` among its outputs",
            )
        return version, plan.schemas[name]

    def table(self, name: str, version: int | None = None) -> pa.Table:
        """The content of a relation, read here."""
        version, schema = self.answered(name, version)
        if self.in_parts(name, version):
            return self.parts.at(name, schema, version).rows()
        parts = [self.state.output(p, version, name) for p in range(self.state.partitions(version))]
        return pa.concat_tables(parts) if parts else arrow_schema(schema).empty_table()

    def in_parts(self, name: str, version: int) -> bool:
        """Whether what partitions answer for a relation has to be added up."""
        return self.state.layout(version).plan.outputs[name].kind == PART

    def part_op(self, name: str, version: int) -> str:
        """By what: "sum", "min" or "max"."""
        return self.state.layout(version).plan.part_op(name)

    def span(self, name: str, since: int, until: int | None) -> tuple[int, int, Schema]:
        """What `delta` is to read."""
        last, schema = self.answered(name, until)
        self.answered(name, since)
        if since > last:
            raise StateError(
                f"version {since} comes after version {last}",
                why="a delta leads from an earlier version to a later one",
                remedy="give the earlier one first",
            )
        moved = [v for v in range(since + 1, last + 1) if self.checkpoint.commit(v)["kind"] == "rescale"]
        if moved:
            raise StateError(
                f"version {moved[0]} placed keys anew, and the delta from {since} to {last} would reach across it",
                why="placing keys anew begins a new history of each partition",
                remedy=f"ask for the deltas from {since} to {moved[0] - 1} and from {moved[0]} to {last}",
            )
        return since, last, schema

    def delta(self, name: str, since: int, until: int | None = None) -> ChangeTables:
        """The exact change of a relation between two versions, read here."""
        since, last, schema = self.span(name, since, until)
        if self.in_parts(name, last):
            return self.parts.change(name, schema, since, last)
        parts = [self.state.output_delta(p, since, last, name) for p in range(self.state.partitions(last))]
        none = arrow_schema(schema).empty_table()
        return net(
            schema,
            [joined(parts) if parts else ChangeTables(none, none)],
        )

    def metrics(self) -> dict[str, Any]:
        """Versions, files and bytes of the checkpoint, and what the partitions took in the last call."""
        kept = self.checkpoint.kept()
        files = {file["name"]: file["bytes"] for v in kept for file in self.checkpoint.files(v)}
        return {
            "version": self.version,
            "kept": [kept.start, kept.stop - 1],
            "partitions": self.state.partitions(self.version),
            "files": len(files),
            "bytes": sum(files.values()),
            "last": [{"partition": r["partition"], **r["stats"]} for r in self._last],
            "damaged": sorted({name for r in self._last for name in r["damaged"]}),
        }

    def estimate(self) -> Estimate:
        """The same as `estimate_of`, of what is there."""
        version, query = self.version, self.checkpoint.query
        schemas = self.state.layout(version).schemas
        tables = {n: Keyed(t, schemas[n]) for n, t in self.state.everything(version).items()}
        return estimate_of(
            query["program"],
            tables,
            partitions=self.state.partitions(version),
            outputs=query["outputs"],
            replicate=query["replicate"],
            partition_memory=query["memory"],
        )

    # -- requests -----------------------------------------------------------------------------------------------------

    def _run(self, work: str, version: int | None, target: int, partitions: int, **more: Any) -> list[Body]:
        token = None if version is None else self.checkpoint.commit(version)["token"]
        requests = [
            {
                "work": work,
                "folder": str(self.checkpoint.folder),
                "query": self.checkpoint.query["identity"],
                "partition": partition,
                "version": version,
                "token": token,
                "target": target,
                **more,
            }
            for partition in range(partitions)
        ]
        results = sorted(self.executor.run(requests), key=lambda result: int(result["partition"]))
        self._last = results
        for result in results:
            if "error" in result:
                raise raised(result["error"], result["partition"])
        return results

    def _body(self, kind: str, version: int, base: int, results: list[Body], **more: Any) -> Body:
        previous = self.checkpoint.commit(version - 1)["token"] if version else ""
        parts = [
            {k: result[k] for k in ("partition", "attempt", "state", "facts", "replica", "output", "largest", "stats")}
            for result in results
        ]
        if base == version:
            more["query"] = self.checkpoint.query
        body = {"version": version, "token": uuid.uuid4().hex, "previous": previous, "kind": kind, "base": base}
        return {"journal": [], "batch": None, **body, "parts": parts, **more}


def _rows(segments: Sequence[Body]) -> dict[str, int]:
    found: dict[str, int] = {}
    for segment in segments:
        for key, rows in segment["rows"].items():
            found[key[:-1]] = found.get(key[:-1], 0) + rows
    return found


def _known(plan: PartitionPlan, name: str) -> None:
    if name not in plan.schemas:
        raise UnknownRelationError(
            f"there is no relation `{name}`",
            why="no rule or declaration of the program names it",
            remedy=f"the program has {', '.join(sorted(plan.schemas))}",
        )
    if not plan.patterns(name):
        raise UnknownRelationError(
            f"`{name}` has no effect on any output",
            why="it is derived, and nothing that was asked for reads it",
            remedy=f"create the query with `{name}` among its outputs",
        )


def _fact_table(schema: Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    typed = arrow_schema(schema)
    if not schema.arity:
        return pa.table({typed.names[0]: [True] * len(rows)}, typed)
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, type) for column, type in zip(columns, typed.types, strict=True)], schema=typed
    )


def _summed(results: Sequence[Body], plan: PartitionPlan) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for result in results:
        for name, (gone, come) in result["changed"].items():
            if plan.outputs[name].kind == PART:
                continue
            known = found.setdefault(name, [0, 0])
            known[0] += gone
            known[1] += come
    return {name: counts for name, counts in found.items() if any(counts)}


def _again(known: Body, content: str) -> Applied:
    if known["digest"] != content:
        raise BatchError(
            f"batch {known['id']!r} was committed before, with other rows",
            why=f"it is version {known['version']}; an id stands for one content",
            remedy="give this batch an id of its own",
        )
    return Applied(known["version"], known["id"], _pairs(known["changed"]), repeated=True)


def _pairs(changed: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, int]]:
    return {name: (gone, come) for name, (gone, come) in changed.items()}


def raised(told: Body, partition: int | None = None) -> lftj.Error:
    """The error that a partition told of."""
    kind: type[lftj.Error] = getattr(bridge_errors, told["kind"], getattr(lftj_errors, told["kind"], lftj.Error))
    where = told["where"] + (f" (partition {partition})" if partition is not None else "")
    if issubclass(kind, (lftj_errors.KeyConflictError, lftj_errors.ProgramError, PlanError)):
        kind = lftj_errors.EvaluationError if kind is lftj_errors.KeyConflictError else lftj.Error
    more = {"cycle": tuple(told["cycle"])} if kind is lftj_errors.CycleError else {}
    made = kind(told["what"], where=where.strip(), why=told["why"], remedy=told["remedy"], **more)
    made.details = tuple(told["details"])
    return made
