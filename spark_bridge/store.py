"""A checkpoint: journal, state and outputs of the partitions of a query, and the commits that say which of it counts.

    DIR/commits/V.json       version V, from 0. It exists, or version V does not
    DIR/commits/V-*.json     a twin of it, for when it is damaged
    DIR/journal/  state/  output/     part files; those that a commit names count, others are left behind

A version is a *base* (created, compacted, rescaled: every partition's facts and outputs in full) or a *batch* (what
changed since the version before: journal, facts, outputs). A base holds the query (program, options, identity) and the
layout as well. Commit V is made by giving a finished file the name `V.json`
if nothing has it (`files.publish`): of two drivers one wins. Each commit holds the token of the one before it.

Names of part files begin with the version they were made for. When that version is committed and does not name the
file, nothing ever will: that is how rubbish is told from the work of an attempt that is still running.

After a compaction the base before the last one stays, with everything since: from it and the journal every later file
can be made again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_bridge.bridge_errors import StateError
from spark_bridge.files import DamagedError, publish, read_json, read_part, write_json, write_part

JOURNAL, STATE, OUTPUT = "journal", "state", "output"
Body = dict[str, Any]


class Checkpoint:
    """A checkpoint folder. Reading costs one file per commit, once per process."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self._query: Body | None = None
        self._commits: dict[int, Body] = {}

    @property
    def commits(self) -> Path:
        """The folder of commits."""
        return self.folder / "commits"

    # -- the query ----------------------------------------------------------------------------------------------------

    def begin(self, query: Body) -> None:
        """Make the folders for a query. `StateError` if there is one already; what never got to a commit is none."""
        if self.head() >= 0:
            raise StateError(
                f"{self.folder} holds a checkpoint already",
                why="one checkpoint is one query",
                remedy="open it with `open`, or create in another folder",
            )
        for folder in ("commits", JOURNAL, STATE, OUTPUT):
            try:
                (self.folder / folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StateError(
                    f"{self.folder} cannot be made a checkpoint",
                    why=f"{error.filename}: {error.strerror}",
                    remedy="give a folder that can be made, or written to, in `checkpoint=`",
                ) from error
        self._query = query

    @property
    def query(self) -> Body:
        """What `begin` was given."""
        if self._query is None:
            self._query = self.commit(self.base(self.head()))["query"]
        return self._query

    # -- commits ------------------------------------------------------------------------------------------------------

    def head(self) -> int:
        """The last version, -1 if there is none."""
        found = [int(path.stem) for path in self.commits.glob("*.json") if path.stem.isdigit()]
        return max(found, default=-1)

    def commit(self, version: int) -> Body:
        """What version `version` is; `StateError` if there is none, or no more."""
        if version not in self._commits:
            self._commits[version] = self._read(version)
        return self._commits[version]

    def _read(self, version: int) -> Body:
        path = self.commits / f"{version}.json"
        if not path.exists():
            raise StateError(
                f"there is no version {version} in {self.folder}",
                why=f"the last one is {self.head()}; compaction removes those before the last but one base",
                remedy="ask for a version that is there",
            )
        with suppress(DamagedError):
            body: Body = read_json(path)
            return body
        twins = []
        for twin in self.commits.glob(f"{version}-*.json"):
            with suppress(DamagedError):
                twins.append(read_json(twin))
        if len(twins) > 1 and (self.commits / f"{version + 1}.json").exists():
            previous = self.commit(version + 1)["previous"]
            twins = [twin for twin in twins if twin["token"] == previous]
        if len(twins) != 1:
            raise StateError(
                f"{path} is damaged",
                why=f"{len(twins)} twins of it can be read, so what was committed cannot be told",
                remedy="restore the file, or create the query again from its sources",
            )
        found: Body = twins[0]
        return found

    def publish(self, body: Body) -> bool:
        """Commit `body` as its version; whether it became that version."""
        version, token = body["version"], body["token"]
        twin = self.commits / f"{version}-{token}.json"
        write_json(twin, body)
        draft = self.commits / f"{version}-{token}.draft"
        write_json(draft, body)
        won = publish(draft, self.commits / f"{version}.json")
        if won:
            self._commits[version] = body
        else:
            twin.unlink(missing_ok=True)  # whoever won may have cleared it away
        return won

    def base(self, version: int) -> int:
        """The base that a version is built on (itself if it is one)."""
        return int(self.commit(version)["base"])

    def since_base(self, version: int) -> range:
        """The batches between its base and a version, itself included."""
        return range(self.base(version) + 1, version + 1)

    def batch(self, batch_id: str) -> Body | None:
        """What became of a batch: its `version`, `digest` and `summary`; None if it was never committed."""
        version = self.head()
        while version >= 0:
            commit = self.commit(version)
            if commit["batch"] is not None and commit["batch"]["id"] == batch_id:
                return {"version": version, **commit["batch"]}
            for known in commit.get("history", ()):
                if known["id"] == batch_id:
                    return dict(known)
            if "history" in commit:
                break
            version -= 1
        return None

    def history(self, version: int) -> list[Body]:
        """All batches up to a version, oldest first."""
        found: list[Body] = []
        for v in range(version, self.base(version) - 1, -1):
            commit = self.commit(v)
            if commit["batch"] is not None:
                found.append({"version": v, **commit["batch"]})
        return [*self.commit(self.base(version)).get("history", ()), *reversed(found)]

    # -- part files ---------------------------------------------------------------------------------------------------

    def write(self, folder: str, version: int, label: str, tables: dict[str, pa.Table]) -> Body:
        """Write a part file for `version` under a name that nothing else has."""
        name = f"{version:08d}-{label}-{uuid.uuid4().hex[:16]}.part"
        return {"folder": folder, **write_part(self.folder / folder / name, tables)}

    def read(self, file: Body) -> dict[str, pa.Table]:
        """The tables of a part file that a commit names; `DamagedError`."""
        return read_part(self.folder / file["folder"] / file["name"], file["hash"])

    def files(self, version: int) -> Iterator[Body]:
        """The part files that a commit names."""
        commit = self.commit(version)
        yield from commit["journal"]
        for part in commit["parts"]:
            yield from (part[kind] for kind in ("facts", "replica", "output") if part.get(kind))

    def kept(self) -> range:
        """The versions that are still there."""
        head = self.head()
        if head < 0:
            return range(0)
        base = self.base(head)
        # Commits vanish from the oldest on; what a clean-up was killed in the middle of is not counted.
        return range(self.base(base - 1) if base and (self.commits / f"{base - 1}.json").exists() else base, head + 1)

    def clean(self) -> int:
        """Remove what nothing will use any more; how many files that were."""
        kept = self.kept()
        named = {file["name"] for version in kept for file in self.files(version)}
        removed = 0
        for folder in (JOURNAL, STATE, OUTPUT):
            for path in (self.folder / folder).iterdir():
                if path.name not in named and int(path.name.partition("-")[0]) < kept.stop:
                    path.unlink(missing_ok=True)
                    removed += 1
        for path in sorted(self.commits.iterdir(), key=lambda p: int(p.stem.partition("-")[0])):
            version, _, token = path.stem.partition("-")
            stray = bool(token) and int(version) < kept.stop and token != self._token(int(version), kept)
            if int(version) < kept.start or stray:
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def _token(self, version: int, kept: range) -> str:
        return str(self.commit(version)["token"]) if version in kept else ""
