"""Files that were cut short, changed in one bit, or are gone: found out, never used, made again."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from spark_bridge.bridge_errors import StateError
from spark_bridge.driver import Partitioned
from spark_bridge.files import DamagedError, publish, read_json, read_part, write_json, write_part
from spark_bridge.local import InProcess
from spark_bridge.store import Body
from tests.spark.graph import Graph

HOWS = ("torn", "flipped", "gone")


def damage(path: Path, how: str, rng: Random) -> None:
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "torn":
        path.write_bytes(data[: rng.randrange(len(data))])
    else:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)


def test_every_bit_of_a_part_file_counts(tmp_path: Path) -> None:
    tables = {"e+": pa.table({"a": [1, 2], "s": ["x", ""]}), "none-": pa.table({"u": pa.array([], pa.uint64())})}
    told = write_part(tmp_path / "f", tables)
    assert read_part(tmp_path / "f", told["hash"]) == tables
    assert told["rows"] == {"e+": 2, "none-": 0}
    data = (tmp_path / "f").read_bytes()
    for i in range(len(data)):
        (tmp_path / "g").write_bytes(data[:i] + bytes([data[i] ^ 4]) + data[i + 1 :])
        with pytest.raises(DamagedError):
            read_part(tmp_path / "g", told["hash"])
    for i in range(0, len(data), 7):
        (tmp_path / "g").write_bytes(data[:i])
        with pytest.raises(DamagedError):
            read_part(tmp_path / "g", told["hash"])
    other = write_part(tmp_path / "h", {"e+": tables["e+"]})
    with pytest.raises(DamagedError):
        read_part(tmp_path / "h", told["hash"])
    assert read_part(tmp_path / "h", other["hash"]).keys() == {"e+"}
    with pytest.raises(FileExistsError):
        write_part(tmp_path / "f", tables)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    for i in range(2):
        write_json(tmp_path / f"draft{i}", {"i": i})
    assert publish(tmp_path / "draft0", tmp_path / "0.json")
    assert not publish(tmp_path / "draft1", tmp_path / "0.json")
    assert read_json(tmp_path / "0.json") == {"i": 0}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.json"]
    (tmp_path / "0.json").write_text(json.dumps({"sha256": "0", "body": {"i": 1}}))
    with pytest.raises(DamagedError):
        read_json(tmp_path / "0.json")


def files(query: Partitioned, kind: str, version: int) -> list[Body]:
    commit = query.checkpoint.commit(version)
    return commit["journal"] if kind == "journal" else [p[kind] for p in commit["parts"] if p.get(kind)]


KINDS = ("facts", "replica", "output", "journal")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_damaged_part_files(tmp_path: Path, kind: str, version: int) -> None:
    """Version 0 is the first base, 3 a compaction, 2 and 4 are batches."""
    how = HOWS[(KINDS.index(kind) + version) % len(HOWS)]
    graph, rng = Graph(version), Random(version)
    query = graph.create(InProcess(), tmp_path / "q")
    for i in range(2):
        query.apply(graph.changes(), batch_id=str(i))
    query.compact()
    done = query.apply(graph.changes(), batch_id="2")
    found = files(query, kind, version)
    for file in found:
        damage(tmp_path / "q" / file["folder"] / file["name"], how, rng)
    again = Partitioned.open(InProcess(), tmp_path / "q")
    graph.check_delta(again, done)
    told = again.verify()
    assert (len(told["damaged"]), told["wrong"], told["ok"]) == (len(found), {}, not found)
    done = again.apply(graph.changes(), batch_id="3")
    graph.check_delta(again, done)
    again.compact()
    graph.check(again)
    again.compact()
    assert Partitioned.open(InProcess(), tmp_path / "q").verify()["ok"]


@pytest.mark.parametrize("how", HOWS)
def test_damaged_after_a_rescale(tmp_path: Path, how: str) -> None:
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q")
    query.apply(graph.changes(), batch_id="0")
    query.rescale(3)
    done = query.apply(graph.changes(), batch_id="1")
    for kind in ("facts", "replica", "output"):
        for file in files(query, kind, 2):
            damage(tmp_path / "q" / file["folder"] / file["name"], how, Random(1))
    again = Partitioned.open(InProcess(), tmp_path / "q")
    graph.check_delta(again, done)
    graph.check_delta(again, again.apply(graph.changes(), batch_id="2"))


def test_what_cannot_be_made_again_is_said(tmp_path: Path) -> None:
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q")
    query.apply(graph.changes(), batch_id="0")
    for kind in ("journal", "replica"):
        for file in files(query, kind, 1):
            damage(tmp_path / "q" / file["folder"] / file["name"], "torn", Random(1))
    again = Partitioned.open(InProcess(), tmp_path / "q")
    with pytest.raises(StateError, match="is damaged, and was needed to make another file again"):
        again.apply(graph.changes(), batch_id="1")
    assert again.version == 1


@pytest.mark.parametrize("how", ["torn", "flipped"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_damaged_commits(tmp_path: Path, version: int, how: str) -> None:
    graph = Graph()
    query = graph.create(InProcess(), tmp_path / "q")
    for i in range(2):
        done = query.apply(graph.changes(), batch_id=str(i))
    path = tmp_path / "q" / "commits" / f"{version}.json"
    damage(path, how, Random(version))
    again = Partitioned.open(InProcess(), tmp_path / "q")
    graph.check_delta(again, done)
    for twin in path.parent.glob(f"{version}-*.json"):
        damage(twin, how, Random(version))
    with pytest.raises(StateError, match="is damaged"):
        Partitioned.open(InProcess(), tmp_path / "q").table("tri")
