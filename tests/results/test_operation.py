"""What a database says about its work: lines of the logger, metrics in both forms, spans; and nothing unasked."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import lftj
from tests.conftest import ROOT

PROGRAM = """
.decl e(a:number, b:number)
two(x, z) :- e(x, y), e(y, z).
deg[x] = count : { e(x, _) }.
"""
EDGES = [(1, 2), (2, 3), (3, 4)]
TIME = re.compile(r"\d+\.\d{3} ms")


def made() -> lftj.Database:
    db = lftj.Database(PROGRAM)
    db.load("e", EDGES)
    db.evaluate()
    return db


def commit(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.insert("e", [(4, 5), (1, 3)])
        tx.erase("e", [(2, 3)])


def discarded(db: lftj.Database) -> None:
    with db.transaction() as tx:
        tx.insert("e", [(9, 9)])
        raise ZeroDivisionError


# -- the logger --------------------------------------------------------------------------------------------------------


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [TIME.sub("0.000 ms", record.getMessage()) for record in caplog.records if record.name == "lftj"]


def test_a_line_for_each_commit_load_and_evaluation(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lftj"):
        db = made()
        commit(db)
        with db.transaction() as tx:
            tx.insert("e", [(4, 5)])
    assert lines(caplog)[:2] == ["load of e: 3 rows; 0.000 ms", "evaluation of deg, two; 0.000 ms"]
    first, second = lines(caplog)[2:]
    assert first.startswith("commit 1: e +2 -1, ")
    assert set(re.findall(r"(\w+) \+(\d+) -(\d+)", first)) == {("e", "2", "1"), ("two", "2", "2"), ("deg", "2", "2")}
    assert re.search(r"; .*two by \w+", first)
    assert first.endswith("; 0.000 ms")
    assert second == "commit 2: no rows changed; 0.000 ms"
    about = caplog.records[2].lftj  # type: ignore[attr-defined]
    assert (about["commit"], about["inserted"], about["erased"]) == (1, 6, 5)
    assert about["milliseconds"] > 0


def test_a_line_for_each_head(caplog: pytest.LogCaptureFixture) -> None:
    db = made()
    with caplog.at_level(logging.DEBUG, "lftj"):
        commit(db)
    details = [r for r in caplog.records if r.levelno == logging.DEBUG]
    assert {re.match(r"commit 1: (\w+)", r.getMessage())[1] for r in details} == {"two", "deg"}  # type: ignore[index]
    assert all(" by " in r.getMessage() and ", since " in r.getMessage() for r in details)


def test_commits_are_numbered_whoever_listens(caplog: pytest.LogCaptureFixture) -> None:
    db = made()
    for n in range(100, 105):
        with db.transaction() as tx:
            tx.insert("e", [(n, n)])
    with pytest.raises(ZeroDivisionError):
        discarded(db)
    with caplog.at_level(logging.INFO, "lftj"):
        commit(db)
    assert lines(caplog)[0].startswith("commit 6: ")


def test_nothing_is_written_unasked() -> None:
    code = (
        "import lftj\n"
        "db = lftj.Database('.decl e(a:number)  p(x) :- e(x).')\n"
        "db.load('e', [(1,)])\nlen(db['p'])\n"
        "with db.transaction() as tx: tx.insert('e', [(2,)])\n"
        "import sys\nassert 'opentelemetry' not in sys.modules and 'prometheus_client' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_metrics_count_from_the_first_call() -> None:
    db = lftj.Database(PROGRAM)
    before = db.metrics()
    assert (before.commits, before.loads, before.inserted, before.rows) == (0, 0, {}, {"e": 0})
    db.load("e", EDGES)
    assert db.metrics().stale == 2
    db.evaluate()
    commit(db)
    after = db.metrics()
    assert (after.loads, after.loaded, after.commits) == (1, {"e": 3}, 1)
    assert after.inserted == {"e": 2, "two": 2, "deg": 2}
    assert after.erased == {"e": 1, "two": 2, "deg": 2}
    assert after.rows == {name: len(db[name]) for name in db} == {"e": 4, "two": 2, "deg": 3}
    assert after.stale == 0
    assert sum(after.heads.values()) >= 2
    assert after.heads.keys() == after.seconds.keys()
    assert after.evaluations >= 2
    assert 0 < sum(after.seconds.values()) <= after.commit_seconds < after.counted_seconds
    assert min(after.load_seconds, after.evaluation_seconds) > 0
    assert after.memory == db.memory()["total"]["pages"] > 0
    assert after.memory_limit is None
    assert lftj.Database(memory_limit=1 << 30).metrics().memory_limit == 1 << 30
    assert after.as_dict()["inserted"] == after.inserted


def test_rows_are_those_of_the_deltas() -> None:
    db = made()
    db.metrics()
    inserted: dict[str, int] = {}
    for n in range(20):
        with db.transaction() as tx:
            tx.insert("e", [(n % 5, n % 7)])
            tx.erase("e", [(n % 3, n % 4)])
        for name, delta in tx.delta.items():
            inserted[name] = inserted.get(name, 0) + len(delta.inserted)
    assert db.metrics().inserted == {name: n for name, n in inserted.items() if n}
    assert db.metrics().commits == 20


def test_what_fails_is_not_counted() -> None:
    db = made()
    db.metrics()
    with pytest.raises(lftj.DataError):
        db.load("e", [(1, "x")])
    with pytest.raises(ZeroDivisionError):
        discarded(db)
    assert (db.metrics().commits, db.metrics().loads, db.metrics().loaded) == (0, 0, {})


def test_prometheus_text() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    db = lftj.Database(PROGRAM, memory_limit="1GiB")
    db.metrics()
    db.load("e", EDGES)
    db.evaluate()
    commit(db)
    metrics = db.metrics()
    text = metrics.prometheus(database='a "b"\\\n', host="h")
    assert text.endswith("\n")
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    values: dict[tuple[str, str], float] = {}
    for family in families.values():
        assert family.name.startswith("lftj_")
        assert family.documentation
        assert family.type in ("counter", "gauge")
        for sample in family.samples:
            assert (sample.name.endswith("_total")) == (family.type == "counter")
            assert sample.labels.pop("database") == 'a "b"\\\n'
            assert sample.labels.pop("host") == "h"
            values[sample.name, "".join(sample.labels.values())] = sample.value
    assert values["lftj_commits_total", ""] == 1
    assert values["lftj_rows_inserted_total", "two"] == metrics.inserted["two"]
    assert values["lftj_relation_rows", "e"] == 4
    assert values["lftj_memory_bytes", ""] == metrics.memory
    assert values["lftj_memory_limit_bytes", ""] == 1 << 30
    assert values["lftj_commit_seconds_total", ""] == pytest.approx(metrics.commit_seconds)
    assert {name for name, _ in values if "strategy" in name} == {"lftj_strategy_seconds_total"}


def test_each_sample_has_the_form_of_the_format() -> None:
    db = made()
    db.metrics()
    commit(db)
    sample = re.compile(r'lftj_[a-z_]+(\{([a-z_]+="(\\["\\n]|[^"\\\n])*",?)+\})? \d+(\.\d+)?(e-?\d+)?')
    for line in db.metrics().prometheus(database='x"\\\ny').splitlines():
        assert re.fullmatch(r"# (HELP lftj_\w+ .+|TYPE lftj_\w+ (counter|gauge))", line) or sample.fullmatch(line), line


@pytest.mark.parametrize("name", ["relation", "a-b", "__name__"])
def test_labels_that_are_refused(name: str) -> None:
    with pytest.raises(lftj.DataError) as caught:
        made().metrics().prometheus(**{name: "x"})
    assert str(caught.value) == (
        f"a label cannot be named {name!r}\n"
        "  why: labels are letters, digits and `_`; `relation` and `strategy` have a meaning here\n"
        '  do: give another name, as in `prometheus(database="rights")`'
    )


# -- spans -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An exporter of finished spans; OpenTelemetry is forgotten afterwards, as if it had never been imported."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
        del sys.modules[name]


def test_spans_belong_to_the_callers(spans: Any) -> None:
    from opentelemetry import trace

    with trace.get_tracer("user").start_as_current_span("request") as request:
        db = made()
        commit(db)
    found = {span.name: span for span in spans.get_finished_spans()}
    assert set(found) == {"lftj.load", "lftj.evaluation", "lftj.commit", "request"}
    for name in "lftj.load", "lftj.evaluation", "lftj.commit":
        span = found[name]
        assert span.parent.span_id == request.get_span_context().span_id
        assert span.end_time - span.start_time == pytest.approx(
            span.attributes["lftj.milliseconds"] * 1e6, abs=2, rel=1e-3
        )
    assert found["lftj.load"].attributes["lftj.rows"] == 3
    assert found["lftj.evaluation"].attributes["lftj.heads"] == ("deg", "two")
    about = found["lftj.commit"].attributes
    assert (about["lftj.commit"], about["lftj.inserted"], about["lftj.erased"]) == (1, 6, 5)
    assert any(head.startswith("two: ") for head in about["lftj.heads"])


def test_spans_are_made_once_the_program_has_imported_the_api(spans: Any) -> None:
    api = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "opentelemetry"}
    for name in api:
        del sys.modules[name]
    db = made()
    commit(db)
    assert spans.get_finished_spans() == ()
    sys.modules.update(api)
    db.load("e", [(7, 8)])
    commit(db)
    assert [span.name for span in spans.get_finished_spans()] == ["lftj.load", "lftj.commit"]
