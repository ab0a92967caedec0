"""The driver: which version follows which. Batches move metadata only; rows go from files to files.

Placing keys (create, rescale, estimate) does read rows here: of the journal up to `LOOKED_AT` per relation, of a
rescale or an estimate all of them.

    create    journal -> placement -> a base by every partition          -> commit 0
    apply     journal -> a batch by every partition                      -> commit V
    compact, rescale     the content of V, anew, by every partition      -> commit V + 1

Where a plan has several stages, every partition works once per stage, and the stages follow each other: one is told
which files those before it have written. They are one attempt, with one commit at its end.

Everything before the commit is attempts: files that nothing names. `Partitioned.apply` looks the batch's id up first,
so whoever is not told whether a batch was committed sends it again. Two drivers that race make files side by side, one
of them makes the commit, and the other begins again from there.

`requests.py` asks the partitions, `answering.py` reads what was committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import lftj
from lftj import arguments
from lftj.language.options import VALUES
from lftj.values.schema import Schema
from spark_bridge.answering import Answering, known_relation, takes_facts
from spark_bridge.bridge_errors import BatchError, PlanError, RaceError, StateError
from spark_bridge.estimates import ChosenBy, Estimate, estimate_of, layout_body
from spark_bridge.ingest import digest, stage
from spark_bridge.keys import Keyed, table_from_values
from spark_bridge.partition import stop_at
from spark_bridge.plan import PART, StagedPlan
from spark_bridge.query_arguments import PARTITIONS, folder, how_many, memory_of, planning, sources
from spark_bridge.requests import Executor, Requests
from spark_bridge.stages import make_stages
from spark_bridge.state_layout import StateLayout
from spark_bridge.store import Body, Checkpoint

RACES = 8  # so often a driver begins again when another one commits first
LOOKED_AT = 20_000_000  # rows of a relation at most, to estimate work by


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


class Partitioned(Answering):
    """A query over partitions. Made by `create` or `open`."""

    def __init__(self, executor: Executor, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.executor = executor
        self.requests = Requests(executor, checkpoint)

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
        partition_memory: int | str | None = None,
        maintain: Mapping[str, str] | None = None,
        placement: ChosenBy | None = None,
    ) -> Partitioned:
        """Check and plan, read the inputs, place their keys, evaluate, commit version 0."""
        store, options = Checkpoint(folder(checkpoint)), planning(program, partitions, outputs, replicate)
        sources(inputs)
        maintain = arguments.by_name("maintain", maintain, 'give a dict, as in `maintain={"tri": "trace"}`')
        memory = memory_of(partition_memory)
        plan = make_stages(program, **options)
        for name in inputs:
            known_relation(plan, name)
        for name, how in maintain.items():
            if name not in plan.derived or how not in VALUES["maintain"]:
                raise PlanError(
                    f"maintain={{{name!r}: {how!r}}} says nothing",
                    why="it says how what rules derive is kept up to date",
                    remedy=f"name a relation that rules derive, and one of {', '.join(VALUES['maintain'])}",
                )
        query = {
            "program": program,
            "outputs": options["outputs"],
            "replicate": options["replicate"],
            "memory": memory,
            "maintain": dict(maintain),
            "identity": uuid.uuid4().hex,
        }
        store.begin(query)
        made = cls(executor, store)
        try:
            body = made._created(plan, inputs, options, placement)
        except BaseException as error:
            with suppress(Exception):
                made.requests.run("close", None, 0, partitions)
            if isinstance(error, lftj.Error) and store.head() >= 0:
                raise made._came_late() from error  # whoever won has removed our files, which we may have missed
            raise
        won = store.publish(body)
        stop_at("create-committed", 0)
        store.clean()  # what drivers left that died before they committed, or were later
        if not won:
            made.requests.run("close", None, 0, partitions)
            raise made._came_late()
        return made

    def _created(
        self, plan: StagedPlan, inputs: Mapping[str, Any], options: dict[str, Any], placement: ChosenBy | None
    ) -> Body:
        """What is to be committed as version 0."""
        store, query = self.checkpoint, self.checkpoint.query
        segments = [
            segment
            for name, source in inputs.items()
            for segment in self.executor.stage(store, 0, plan.schemas[name], source, changes=False)
        ]
        for name, rows in plan.program.facts.items():
            table = table_from_values(plan.schemas[name], rows)
            segment = stage(store, 0, plan.schemas[name], table, changes=False)
            segments += [segment] if segment is not None else []
        stop_at("create-journaled", 0)
        layout = self._layout(plan.schemas, options, segments, placement)
        partitions = options["partitions"]
        made = StateLayout.of(query, {"layout": layout}).plan
        more: Body = {"journal": segments, "layout": layout}
        results = self.requests.staged("create", None, made, partitions, definition=query, **more)
        stop_at("create-worked", 0)
        self.parts.fitting(None, results, made)
        return self.requests.body("create", 0, 0, results, history=[], **more)

    def _came_late(self) -> StateError:
        return StateError(
            f"{self.checkpoint.folder} was created by another driver",
            why="two created a query there at the same time, and the other one committed first",
            remedy="open it with `open`, or create in another folder",
        )

    @classmethod
    def open(cls, executor: Executor, checkpoint: str | Path) -> Partitioned:
        """The query of a checkpoint, as its last commit left it."""
        store = Checkpoint(folder(checkpoint))
        if store.head() < 0:
            raise StateError(
                f"{store.folder} holds no checkpoint that was finished",
                why="it has no commit: its creation did not get so far",
                remedy="create the query there (what was left is cleared away then)",
            )
        return cls(executor, store)

    def _layout(
        self,
        schemas: Mapping[str, Schema],
        options: dict[str, Any],
        segments: Sequence[Body],
        placement: ChosenBy | None,
    ) -> Body:
        """Where keys go, by the rows in the journal."""
        query = self.checkpoint.query
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
        return layout_body(query, options, rows, tables, placement)

    # -- versions -----------------------------------------------------------------------------------------------------

    def apply(self, changes: Mapping[str, Any], *, batch_id: str) -> Applied:
        """Make the changes the next version; if a batch of this id and content was committed, only say so.

        Erases come first, then inserts. `BatchError` if the id was used for other content, or rows do not fit; whatever
        is raised, nothing was changed.
        """
        example = 'as in `query.apply({"edge": changes}, batch_id="b1")`'
        arguments.mapping(
            "changes", changes, "it is the changes of relations, by their names", f"give a dict, {example}"
        )
        arguments.text(
            "batch_id", batch_id, "it is the name by which a batch is known again", f"give a text, {example}"
        )
        for _ in range(RACES):
            version = self.version
            layout = self.state.layout(version)
            for name in changes:
                known_relation(layout.plan, name)
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
            for name in changes:
                takes_facts(layout.plan, name)
            partitions = self.state.partitions(version)
            try:
                results = self.requests.staged("apply", version, layout.plan, partitions, journal=segments)
            except StateError:
                if self.version == version:
                    raise
                continue  # whoever committed first, and compacted since, has removed our files
            stop_at("worked", 0)
            moved = self.parts.fitting(version, results, layout.plan)
            batch: Body = {"id": batch_id, "digest": content, "changed": _summed(results, layout.plan)}
            body = self.requests.body(
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
        results = self.requests.staged(
            "compact", version, self.state.layout(version).plan, self.state.partitions(version)
        )
        body = self.requests.body(
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
        partitions = how_many("partitions", partitions, PARTITIONS)
        version = self.version
        query = self.checkpoint.query
        options = {"outputs": query["outputs"], "replicate": query["replicate"], "partitions": partitions}
        schemas = self.state.layout(version).schemas
        tables = {n: Keyed(t, schemas[n]) for n, t in self.state.everything(version).items()}
        rows = {name: len(table) for name, table in tables.items()}
        layout = layout_body(query, options, rows, tables, placement)
        plan = StateLayout.of(query, {"layout": layout}).plan
        results = self.requests.staged("rescale", version, plan, partitions, layout=layout)
        history = self.checkpoint.history(version)
        return self._based(
            self.requests.body("rescale", version + 1, version + 1, results, layout=layout, history=history)
        )

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
        plan, partitions = self.state.layout(version).plan, self.state.partitions(version)
        results = [
            result
            for number in range(len(plan.stages))
            for result in self.requests.run("check", version, version, partitions, stage=number)
        ]
        damaged = sorted({name for result in results for name in result["damaged"]})
        wrong: dict[int, list[str]] = {}
        for result in results:
            if result["wrong"]:
                wrong.setdefault(result["partition"], []).extend(result["wrong"])
        return {"version": version, "damaged": damaged, "wrong": wrong, "ok": not damaged and not wrong}

    def release(self) -> None:
        """Let the workers drop what they keep of this query; whoever asks next has it built again."""
        version = self.version
        with suppress(lftj.Error):
            self.requests.run("close", version, version, self.state.partitions(version))

    def close(self) -> None:
        """Let the workers drop what they keep of this query, and the executor what it keeps."""
        self.release()
        self.executor.close()

    # -- figures ------------------------------------------------------------------------------------------------------

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
            "last": [{"partition": r["partition"], "stage": r["stage"], **r["stats"]} for r in self.requests.last],
            "damaged": sorted({name for r in self.requests.last for name in r["damaged"]}),
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


def _rows(segments: Sequence[Body]) -> dict[str, int]:
    found: dict[str, int] = {}
    for segment in segments:
        for key, rows in segment["rows"].items():
            found[key[:-1]] = found.get(key[:-1], 0) + rows
    return found


def _summed(results: Sequence[Body], plan: StagedPlan) -> dict[str, list[int]]:
    answered = {name for name, pattern in plan.outputs.items() if pattern.kind != PART}
    found: dict[str, list[int]] = {}
    for result in results:
        for name, (gone, come) in result["changed"].items():
            if name not in answered:
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
