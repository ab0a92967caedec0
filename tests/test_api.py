"""The public surface: the names, and their use in short.

Growth of the surface is a decision: it shows here.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import lftj
from tests.conftest import JIT, ROOT

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
PROGRAM = """
  .decl edge(src:number, dst:number)
  tri(x,y,z) :- edge(x,y), edge(y,z), edge(x,z).
"""


def test_names() -> None:
    assert lftj.__all__ == [
        "DataError",
        "Database",
        "Error",
        "Program",
        "ProgramError",
        "Query",
        "Relation",
        "agg",
        "any_of",
        "fn",
        "monoid",
        "unsigned",
        "variables",
    ]
    assert all(getattr(lftj, name) is not None for name in lftj.__all__)
    assert set(lftj.__all__) <= set(dir(lftj))
    with pytest.raises(AttributeError, match="module 'lftj' has no attribute 'Datalog'"):
        lftj.Datalog  # noqa: B018


def test_names_of_triggers() -> None:
    """The documentation imported from six modules that nothing promised to keep."""
    assert lftj.triggers.__all__ == [
        "MapHierarchy",
        "Maps",
        "TriggerProgram",
        "from_calculus",
        "from_m3f",
        "to_m3f",
    ]
    assert all(getattr(lftj.triggers, name) is not None for name in lftj.triggers.__all__)
    assert set(lftj.triggers.__all__) <= set(dir(lftj.triggers))
    with pytest.raises(AttributeError, match=r"module 'lftj\.triggers' has no attribute 'compile'"):
        lftj.triggers.compile  # noqa: B018


FORMS = ["arrow", "df", "numpy", "pl"] + [
    f"to_{form}" for form in ("arrow", "csv", "duckdb", "numpy", "pandas", "parquet", "polars")
]


def public(kind: type) -> list[str]:
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def test_what_only_tests_ask_for_is_no_parameter() -> None:
    """`help(Database)` showed the sizes of pages, which users have no use for."""
    assert list(inspect.signature(lftj.Database).parameters) == [
        "program",
        "maintain",
        "memory_limit",
        "threads",
        "path",
        "read_only",
        "sync",
        "retain",
    ]
    assert lftj.Database._sized(page_rows=4)._evaluator.page_rows == 4
    assert lftj.Database()._evaluator.page_rows == 256


def test_methods() -> None:
    assert public(lftj.Database) == [
        "apply",
        "at",
        "attach",
        "branch",
        "changes",
        "checkpoint",
        "close",
        "diff",
        "directives",
        "evaluate",
        "explain",
        "load",
        "load_changes",
        "memory",
        "metrics",
        "on_commit",
        "path",
        "path_counts",
        "prepare",
        "prepare_query",
        "query",
        "read_inputs",
        "refresh",
        "rejects",
        "rules",
        "seq",
        "snapshot",
        "sql",
        "transaction",
        "write_outputs",
    ]
    assert public(lftj.Relation) == sorted([*FORMS, "columns", "get", "name", "scan"])
    assert public(lftj.Query) == sorted([*FORMS, "columns", "count", "explain", "relation", "stats"])


def test_methods_of_transactions_and_snapshots() -> None:
    from lftj.results.transaction_delta import Delta
    from lftj.snapshot import Snapshot
    from lftj.transaction import Transaction

    changes = ["delta", "erase", "insert", "preview", "remove_rules", "rules", "sql", "stats", "upsert"]
    assert public(Transaction) == changes
    assert public(Delta) == sorted([*FORMS, "erased", "inserted"])
    assert public(Snapshot) == ["prepare_query", "query", "sql"]


def test_import_is_light() -> None:
    code = "import time, sys; t = time.process_time(); import lftj; sys.stdout.write(str(time.process_time() - t))"
    fastest = min(
        float(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    assert fastest < 0.15


def test_rules_load_and_look() -> None:
    db = lftj.Database()
    db.rules(PROGRAM)
    db.load("edge", EDGES)
    r = db["tri"]
    assert len(r) == 1
    assert (1, 2, 3) in r
    assert list(r) == [(1, 2, 3)]
    assert r.arrow().to_pylist() == [{"x": 1, "y": 2, "z": 3}]
    assert r.df().to_dict("list") == {"x": [1], "y": [2], "z": [3]}
    assert r.pl().to_dict(as_series=False) == {"x": [1], "y": [2], "z": [3]}
    assert r.numpy().tolist() == [[1, 2, 3]]
    assert r.columns == {"x": "number", "y": "number", "z": "number"}
    assert r.name == "tri"
    assert list(db) == ["edge", "tri"]


def test_numpy_of_mixed_columns_is_structured() -> None:
    db = lftj.Database('.decl p(n:number, s:symbol) p(2, "b"). p(1, "a").')
    array = db["p"].numpy()
    assert array.dtype.names == ("n", "s")
    assert array.tolist() == [(1, "a"), (2, "b")]


def sources(folder: Path) -> dict[str, Any]:
    table = pa.table({"src": [a for a, _ in EDGES], "dst": [b for _, b in EDGES]})
    (folder / "edges.csv").write_text("src,dst\n" + "".join(f"{a},{b}\n" for a, b in EDGES))
    (folder / "edges.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in EDGES))
    pyarrow.parquet.write_table(table, folder / "edges.parquet")
    return {
        "csv": folder / "edges.csv",
        "tsv": str(folder / "edges.tsv"),
        "parquet": folder / "edges.parquet",
        "arrow": table,
        "pandas": pd.DataFrame(EDGES, columns=["src", "dst"]),
        "polars": pl.DataFrame(EDGES, schema=["src", "dst"], orient="row"),
        "numpy": np.array(EDGES),
        "dict": {"src": [a for a, _ in EDGES], "dst": [b for _, b in EDGES]},
        "tuples": iter(EDGES),
    }


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow", "pandas", "polars", "numpy", "dict", "tuples"])
def test_loads(kind: str, tmp_path: Path) -> None:
    db = lftj.Database(PROGRAM)
    assert db.load("edge", sources(tmp_path)[kind]) is None
    assert list(db["edge"]) == sorted(EDGES)
    assert list(db["tri"]) == [(1, 2, 3)]


def test_a_relation_is_a_source_for_others() -> None:
    db = lftj.Database(PROGRAM)
    db.load("edge", EDGES)
    other = lftj.Database(PROGRAM)
    other.load("edge", db["edge"])
    other.load("edge", db.query("edge(x, y), x < 2"))
    assert other["edge"] == db["edge"]
    assert pa.table(db["tri"]).num_rows == 1
    assert pl.DataFrame(db["tri"]).shape == (1, 3)


def test_quarantine() -> None:
    db = lftj.Database(PROGRAM)
    rejects = db.load("edge", [(1, 2), (3, "x")], on_error="quarantine")
    assert rejects is not None
    assert rejects is db.rejects["edge"]
    assert list(db["edge"]) == [(1, 2)]


def test_builder() -> None:
    p = lftj.Program()
    edge = p.input("edge", src=int, dst=int)
    (tri,) = p.relations("tri")
    x, y, z = lftj.variables("x y z")
    p.rule(tri(x, y, z), edge(x, y), edge(y, z), edge(x, z))
    db = lftj.Database(p)
    db.load("edge", EDGES)
    assert list(db["tri"]) == [(1, 2, 3)]
    again = lftj.Database(p.to_text())
    again.load("edge", EDGES)
    assert again["tri"] == db["tri"]


def test_queries() -> None:
    db = lftj.Database(PROGRAM)
    db.load("edge", EDGES)
    query = db.query("tri(1, y, z), y < z")
    assert query.stats == {}
    assert query.count() == 1
    assert {"rows", "steps", "seeks", "opens", "matches", "seconds", "key_order"} == set(query.stats)
    assert list(query) == [(2, 3)]
    assert (2, 3) in query
    assert query.df().shape == query.pl().shape == (1, 2)
    assert query.numpy().tolist() == [[2, 3]]
    assert query.arrow().column_names == ["y", "z"]
    assert bool(query)
    assert not db.query("tri(7, y, z)")
    assert str(db.explain("tri")).startswith("stratum 1: tri(x:number, y:number, z:number)  1 row")
    assert db.query("edge(_, _)").count() == 1
    assert list(db.query("edge(1, 2)")) == [()]
    assert list(db.query("edge(2, 1)")) == []


def test_counting_keeps_nothing() -> None:
    db = lftj.Database(PROGRAM)
    db.load("edge", EDGES)
    before = db.memory()
    assert db.query("edge(x, y), edge(y, z), edge(x, z)").count() == 1
    assert db.memory() == before


def test_a_database_as_a_context() -> None:
    with lftj.Database(PROGRAM) as db:
        db.load("edge", EDGES)
        assert len(db["tri"]) == 1


def test_prepare() -> None:
    assert lftj.Database().prepare() is None


@pytest.mark.jit_only
def test_after_prepare_nothing_is_compiled() -> None:
    """Every kernel that evaluation and transactions use is compiled, or read from the cache, by `prepare`."""
    code = """
import sys
from dataclasses import replace
import numpy as np
import lftj
def kernels():
    return {
        (value.py_func.__module__, value.py_func.__name__): len(value.signatures)
        for name, module in list(sys.modules.items())
        if name.split(".")[0] in ("scantree", "sensitivity", "lftj")
        for value in vars(module).values()
        if hasattr(value, "py_func")
    }
lftj.Database().prepare()
before = kernels()
rules = '''
.decl e(a:number, b:number)
.decl s(n:symbol, x:number)
.decl v(x:number, y:number)
t(x, y, z) :- e(x, y), e(y, z), e(x, z).
two(x, z) :- e(x, y), e(y, z), x < z.
total(x + y) :- e(x, y), y != 3.
named(n, y) :- s(n, x), e(x, y), n < "z".
far(y, x, z) :- t(x, y, z), e(z, w), w = x + 1.
.decl f(x:number, y:number, w:float)
degree(x, n) :- e(x, _), n = count : { e(x, _) }.
middle(n) :- n = mean y : { e(_, y) }.
sums(x, n) :- s(_, x), n = sum w : { f(x, _, w) }.
top(x, n) :- e(x, _), n = max w : { f(x, _, w) }.
tops(x, y, n) :- e(x, y), n = max w : { f(x, y, w) }.
texts(c) :- c = cat n : { s(n, _) }.
'''
heads = ("t", "two", "total", "named", "far")
random = np.random.default_rng(0)
for granularity in ("node", "interval", "auto"):
    db = lftj.Database()
    db.rules(rules, granularity=dict.fromkeys(heads, granularity), maintain=dict.fromkeys(heads, "trace"))
    db.load("e", random.integers(0, 60, (800, 2)))
    db.load("s", [("a", 1), ("zz", 2), ("b", 3)])
    db._relations["v"].schema = replace(db._relations["v"].schema, functional=True)
    db.load("v", [(1, 2), (3, 2)])
    for n in (1, 1, 1, 60, 300):
        with db.transaction() as tx:
            tx.insert("e", random.integers(0, 70, (n, 2)))
            tx.erase("e", db["e"].numpy()[random.integers(0, len(db["e"]), n)])
            tx.insert("s", [("b", 4)]); tx.insert("two", [(1, 1)])
            tx.insert("f", [(i % 3, i % 7, 0.1 * i) for i in range(n)])
            tx.upsert("v", random.integers(0, 70, (n, 2)))
            tx.preview()
        assert n < 60 or tx.stats["heads"]["t"]["strategy"] == "trace"
        list(tx.delta["t"].inserted), tx.stats, db.explain(), db.memory(), db.snapshot().query("t(1, y, z)").count()
with db.transaction() as tx:
    tx.insert("e", [(-(2**62), 2**62)])
big = lftj.Database(".decl n(x:symbol, y:number)  .decl m(y:number)  many[y] = count : { n(_, y) }.")
big.load("n", [(f"n{i}", i % 5_000) for i in range(70_000)])
big.load("m", random.permutation(5_000)[:, None])
assert len(big["many"]) == len(big["m"]) == 5_000
sys.stdout.write("\\n".join(f"{k}: {v}" for k, v in kernels().items() if v != before.get(k, 0)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.jit_only
def test_typical_use_leaves_one_specialisation_per_kernel() -> None:
    """A second signature is a second compilation of seconds: a read-only array, an int32, a strided column.

    In a process of its own: tests of single kernels call them with whatever they like.
    """
    code = """
import sys, warnings
import numpy as np, pyarrow as pa, pandas as pd
import lftj
warnings.simplefilter("ignore")
db = lftj.Database(".decl e(a:number, b:number) .decl s(n:symbol, w:float, u:unsigned) .decl f() e(1, 2). f().")
db.load("e", np.array([[i, (i * 7) % 50] for i in range(400)], np.int32))
db.load("e", pd.DataFrame({"a": [1, 2], "b": [3, 4]}))
db.load("e", [(5, 6)])
db.load("s", pa.table({"n": ["x", "y"], "w": [0.5, 1.5], "u": pa.array([1, 2], pa.uint64())}))
db.rules('''
t(x, y, z) :- e(x, y), e(y, z), e(x, z).
t(x, x, y) :- e(x, y), x < y, f().
p(n, z) :- s(n, w, u), w < 1.0, z = cat(n, "!"), e(_, _).
h(x + y) :- e(x, y), !contains("q", "r").
''')
for name in db:
    list(db[name]); db[name].numpy()
assert db.query("e(x, y), e(z, w), x < 3").count() > 0
list(db.query("e(x, y), e(y, z)", order=("z", "y", "x")))
db.load("e", [(1000, 1001)])
list(db["t"]), (1, 2) in db["e"], db.explain(), db.memory()
with db.transaction(missing="error") as tx:
    tx.insert("e", [(7, 7)]); tx.insert("e", np.array([[8, 8], [9, 9]])); tx.erase("e", [(8, 8), (5, 6)])
    tx.insert("s", [("z", 0.5, 3)]); tx.erase("f", [()]); tx.rules("g(x) :- e(x, x).")
list(tx.delta["t"].inserted), db.snapshot().query("e(x, y), y = 7").count()
for granularity in ("node", "interval"):  # recorded, maintained, recorded again
    db.rules(f"{granularity}(x, z) :- e(x, y), e(y, z).", granularity={granularity: granularity})
    for rows in ([(3, 8)], [(4, 9)], [(i, i) for i in range(300)]):
        with db.transaction() as tx:
            tx.insert("e", rows); tx.erase("e", [(1, 7), rows[0]])
tx.stats
db.rules('''
.decl k(g:number, i:number, x:float)
n(a, c) :- e(a, _), c = count : { e(a, _) }.
all(c) :- c = sum b : { e(_, b) }.
w(g, c) :- e(g, _), c = sum x : { k(g, _, x) }.
top(g, c) :- e(g, _), c = min x : { k(g, _, x) }.
tops(g, i, c) :- e(g, i), c = min x : { k(g, i, x) }.
c(t) :- t = cat m : { s(m, _, _) }.
''')
db.load("k", np.array([[1, 2, 3]]))
for rows in ([(3, 8, 0.5)], [(4, 9, 1e300)], [(i % 9, i, 0.1 * i) for i in range(300)]):
    with db.transaction() as tx:
        tx.insert("k", rows); tx.insert("e", np.array([[7, 70], [9, 90]])); tx.erase("k", rows[:1])
many = {}
for name, module in list(sys.modules.items()):
    if name.split(".")[0] in ("scantree", "sensitivity", "lftj"):
        for key, value in vars(module).items():
            if hasattr(value, "py_func") and len(value.signatures) > 1:
                # Compiled for one that records and for None, which `triejoin` is.
                if key != "tracing_triejoin" or len(value.signatures) > 2:
                    many[value.py_func.__module__ + "." + key] = value.signatures
sys.stdout.write("\\n".join(f"{k}: {v}" for k, v in many.items()))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_jit_is_what_the_suite_thinks() -> None:
    from lftj.join import triejoin

    assert hasattr(triejoin.triejoin, "py_func") == JIT
