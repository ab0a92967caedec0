"""Explanations: the full text of a fixed program, and the same as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import lftj

PROGRAM = """
.decl e(src:number, dst:number)
.decl name(id:number, text:symbol)
tri(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y.
out(x, n) :- tri(x, _, z), name(z, t), n = cat(t, "!"), e(_, _).
one(x) :- e(x, 3).
"""


def database() -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(PROGRAM, maintain={"tri": "trace", "one": "trace"})
    db.load("e", [(i, j) for i in range(8) for j in range(8) if i < j and (i * j) % 3 != 1])
    db.load("name", [(i, f"v{i}") for i in range(8)])
    return db


def masked(text: str) -> str:
    """Without seconds and estimates: those change with the cost model."""
    text = re.sub(r"\d+\.\d{3} s", "_ s", text)
    text = re.sub(r"estimated [\d,]+ steps", "estimated _ steps", text)
    return re.sub(r"^( +\S+ +)([\d,]+)( +(?:[\d,]+|-)  )", estimate_masked, text, flags=re.MULTILINE)


def estimate_masked(found: re.Match[str]) -> str:
    return f"{found[1]}{'_':>{len(found[2])}}{found[3]}"


BEFORE = """\
stratum 1: one(x:number)  not evaluated
  one(x) :- e(x, 3).
    key order x, 3  (estimated _ steps)
           estimated      actual  reads
      x            _           -  e[0,1](x)
      3            _           -  = 3 & e[0,1](x, 3)  [first witness only]
    trace (key order x, 3)
      x  none      a changed branch names its node
      3  none      a changed branch names its node
  follows changes by its trace, as declared (not recorded yet)
key orders built:
  e: (src, dst) 6.1 kB"""

AFTER = """\
stratum 1: tri(x:number, y:number, z:number)  34 rows
  tri(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y.
    key order x, y, z  (estimated _ steps)
           estimated      actual  reads
      x            _           7  e[0,1](x)
      y            _          19  e[0,1](x, y) & e[0,1](y)  [y > x]
      z            _          34  e[0,1](y, z) & e[0,1](x, z)
    34 rows, 137 steps, 190 seeks, _ s
    trace (key order x, y, z)
      x  none      a changed branch names its node
      y  node      about 7 contexts of a prefix
      z  node      about 2 contexts of a prefix
  follows changes by its trace, as declared (not recorded yet)
stratum 2: out(x:number, n:symbol)  17 rows
  out(x, n) :- tri(x, _, z), name(z, t), n = cat(t, "!"), e(_, _).
    first:
      the part that binds the texts' variables
        key order z, t, x  (estimated _ steps)
        only if not empty: e
               estimated      actual  reads
          z            _           6  tri[2,0,1](z) & name[0,1](z)
          t            _           6  name[0,1](z, t)
          x            _          17  tri[2,0,1](z, x)
        17 rows, 47 steps, 61 seeks, _ s
    texts: n := cat(t, "!")
    key order x, n  (estimated _ steps)
           estimated      actual  reads
      x            _           6  ·[0,3,1,2](x)
      n            _          17  ·[0,3,1,2](x, n)
    17 rows, 30 steps, 37 seeks, _ s
  follows changes by evaluation: a rule asks whether a relation is empty
stratum 3: one(x:number)  3 rows
  one(x) :- e(x, 3).
    key order x, 3  (estimated _ steps)
           estimated      actual  reads
      x            _           7  e[0,1](x)
      3            _           3  = 3 & e[0,1](x, 3)  [first witness only]
    3 rows, 15 steps, 16 seeks, _ s
    trace (key order x, 3)
      x  none      a changed branch names its node
      3  none      a changed branch names its node
  follows changes by its trace, as declared (not recorded yet)
key orders built:
  e: (src, dst) 6.1 kB
  name: (id, text) 2.6 kB
  tri: (x, y, z) 8.7 kB; (z, x, y) 8.7 kB"""


def test_text() -> None:
    """The orders that the first part of a rule with texts reads were missing from the end."""
    db = database()
    assert masked(str(db.explain("one"))) == BEFORE
    db.evaluate()
    assert masked(str(db.explain())) == AFTER
    assert repr(db.explain()) == str(db.explain())


def test_text_of_a_query() -> None:
    query = database().query("e(x, y), e(x, z), y < 3")
    query.count()
    assert masked(str(query.explain())) == (
        "e(x, y), e(x, z), y < 3\n"
        "  key order x, y, z  (estimated _ steps)\n"
        "         estimated      actual  reads\n"
        "    x            _           7  e[0,1](x)\n"
        "    y            _           3  e[0,1](x, y)  [y < 3; counted apart]\n"
        "    z            _          11  e[0,1](x, z)  [counted apart]\n"
        "  18 rows, 17 steps, 27 seeks, _ s"
    )


def test_nothing_to_explain() -> None:
    assert str(lftj.Database().explain()) == "no rules"


def shape(value: Any) -> Any:
    """Keys and types of JSON, lists by their first element."""
    if isinstance(value, dict):
        return {key: shape(v) for key, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


DEPTH = {
    "variable": "str",
    "how": "str",
    "participants": ["str"],
    "conditions": [],
    "estimated_rows": "float",
    "actual_rows": "int",
    "counted_apart": "bool",
    "first_witness_only": "bool",
}
RULE = {
    "rule": "str",
    "clause": "str",
    "key_order": ["str"],
    "forced": "bool",
    "estimated_cost": "float",
    "reads": [{"atom": "str", "relation": "str", "columns": ["int"]}],
    "guards": [],
    "voids": [],
    "sorted_output": "bool",
    "depths": [DEPTH],
    "actual": {"seconds": "float", "rows": "int", "steps": "int", "seeks": "int", "opens": "int"},
}
TRACE = {
    "key_order": ["str"],
    "depths": [{"variable": "str", "granularity": "str", "why": "str"}],
    "indexes": [{"participant": "str", "variable": "str", "records": "NoneType", "bytes": "NoneType"}],
}
UPKEEP = {
    "by": "str",
    "why": "str",
    "recorded": "bool",
    "current": "bool",
    "support_bytes": "int",
    "last_commit": "NoneType",
}


def test_json() -> None:
    db = database()
    db.evaluate()
    found = json.loads(db.explain("tri").json())
    rule = {**RULE, "trace": TRACE, "parts": []}
    stratum = {"relation": "str", "name": "str", "evaluated": "bool", "rows": "int", "rules": [rule], "upkeep": UPKEEP}
    assert shape(found) == {"strata": [stratum], "key_orders": {"e": [{"columns": ["str"], "bytes": "int"}]}}
    assert found["strata"][0]["rules"][0]["key_order"] == ["x", "y", "z"]
    assert found["strata"][0]["rules"][0]["depths"][1]["conditions"] == ["y > x"]
    out = json.loads(db.explain("out").json())["strata"][1]["rules"][0]
    assert out["texts"] == ['n := cat(t, "!")']
    assert shape(out["first_part"]) == {**RULE, "guards": ["str"]}
    assert json.loads(db.query("e(x, y)").explain().json())["query"]["depths"][0]["actual_rows"] is None


# Following changes -----------------------------------------------------------------------------------------------

UPKEEP_BEFORE = """\
    trace (key order x, y, z)
      x  none      a changed branch names its node
      y  node      about 7 contexts of a prefix
      z  node      about 2 contexts of a prefix
  follows changes by its trace, as declared (not recorded yet)"""

UPKEEP_AFTER = """\
    trace (key order x, y, z)
      x  none      a changed branch names its node
      y  node      about 7 contexts of a prefix
                   e[0,1](x, y): 8 records, _
                   e[0,1](y): 8 records, _
      z  node      about 2 contexts of a prefix
                   e[0,1](y, z): 20 records, _
                   e[0,1](x, z): 20 records, _
  follows changes by its trace, as declared (recorded)
    support and filters: _
  last commit: trace, 23 steps, records +4 -0, _
    `e` changed; its rules are declared so
  follows changes by evaluation: a rule asks whether a relation is empty
  last commit: recompute, 77 steps, records +0 -0, _
    `e` changed; a rule asks whether a relation is empty
    trace (key order x, 3)
      x  none      a changed branch names its node
      3  none      a changed branch names its node
  follows changes by its trace, as declared (recorded)
  last commit: trace, 3 steps, records +0 -0, _
    `e` changed; its rules are declared so
    trace (key order x, y)
      x  none      a changed branch names its node
      y  interval  forced
  follows changes by its trace (not recorded yet)
    its rules say what records stand for"""


def upkeep(text: str) -> str:
    """The lines about following changes, without bytes and times."""
    found, inside = [], False
    for line in text.splitlines():
        inside = line.startswith(("    trace (", "  follows ")) or (
            inside and not re.match(r"stratum|key orders", line)
        )
        found += [line] if inside else []
    return re.sub(r"[\d,.]+ (kB|MB|ms)\b", "_", "\n".join(found))


def wished() -> lftj.Database:
    db = lftj.Database._sized(page_rows=4, directory_rows=4)
    db.rules(
        f"{PROGRAM}.decl f(x:number)\nboth(x, y) :- f(x), f(y).",
        maintain={"tri": "trace", "one": "trace"},
        granularity={"both": "interval"},
    )
    db.load("e", [(i, j) for i in range(8) for j in range(8) if i < j and (i * j) % 3 != 1])
    db.load("name", [(i, f"v{i}") for i in range(8)])
    return db


def test_text_about_following_changes() -> None:
    db = wished()
    assert upkeep(str(db.explain("tri"))) == UPKEEP_BEFORE
    for row in ((0, 8), (8, 9)):
        with db.transaction() as tx:
            tx.insert("e", [row])
    db.rules("", maintain={})
    assert upkeep(str(db.explain())) == UPKEEP_AFTER
    assert max(map(len, str(db.explain()).splitlines())) <= 80
    db.load("e", [(20, 21)])
    assert "  follows changes by its trace, as declared (outdated: the next commit records it again)" in str(
        db.explain()
    )
    db.rules("tri(x, x, x) :- e(x, _).", maintain={"tri": "recompute"})
    assert "  follows changes by evaluation: its rules are declared so" in str(db.explain("tri"))


def test_constants_of_an_atom_that_changes_are_shown() -> None:
    program = """
        .decl acl(g:number, d:symbol, may:bool, n:number)  .decl m(u:number, g:number)
        a(u, d) :- m(u, g), acl(g, d, true, _), !acl(7, d, false, u), !acl(g, "x", _, g).
    """
    db = lftj.Database()
    db.rules(program, maintain={"a": "delta"})
    db.load("acl", [(i % 7, "xyz"[i % 3], i % 2 == 0, i) for i in range(50)])
    db.load("m", [(i, i % 7) for i in range(300)])
    db.evaluate()
    with db.transaction() as tx:
        tx.insert("m", [(1000, 1)])
    changing = [line.split(" changes")[0].strip() for line in str(db.explain("a")).splitlines() if " changes: " in line]
    assert changing == [
        "when m(u, g)",
        "when acl(g, d, true, _)",
        "when !acl(7, d, false, u)",
        'when !acl(g, "x", _, g)',
    ]


def test_json_about_following_changes() -> None:
    db = wished()
    (stratum,) = json.loads(db.explain("tri").json())["strata"]
    indexes = [{"participant": "str", "variable": "str", "records": "NoneType", "bytes": "NoneType"}]
    assert shape(stratum["rules"][0]["trace"]["indexes"]) == indexes
    for row in ((0, 8), (0, 9)):
        with db.transaction() as tx:
            tx.insert("e", [row])
    (stratum,) = json.loads(db.explain("tri").json())["strata"]
    assert stratum["rules"][0]["trace"]["depths"][0] == {
        "variable": "x",
        "granularity": "none",
        "why": "a changed branch names its node",
    }
    held = db._kept.heads["tri"].traces[0]
    told = {(i["participant"], i["records"], i["bytes"]) for i in stratum["rules"][0]["trace"]["indexes"]}
    assert told == {
        (held.plan.node_text(held.trace_plan.sites[s].frame), held.indexes.count(s), held.indexes.memory(s))
        for s in held.trace_plan.recorded
    }
    assert stratum["upkeep"].pop("last_commit") == tx.stats["heads"]["tri"]
    assert stratum["upkeep"].pop("support_bytes") > 0
    assert stratum["upkeep"] == {"by": "trace", "why": "its rules are declared so", "recorded": True, "current": True}


def test_memory_names_what_traces_keep() -> None:
    db = wished()
    db.evaluate()
    before = db.memory()
    with db.transaction() as tx:
        tx.insert("e", [(0, 8)])
    after = db.memory()
    assert {
        head: set(after[head]) - set(before[head]) for head in after if after[head].keys() != before[head].keys()
    } == {
        "tri": {"trace: e[0,1] at y", "trace: e[0,1] at z", "trace: support and filters"},
        "one": {"trace: support and filters"},
    }
    assert after["tri"]["trace: e[0,1] at z"] > 0
    assert set(after["total"]) == {"pages"}
    parts = sum(size for name, sizes in after.items() for size in sizes.values() if name != "total")
    assert parts <= after["total"]["pages"]


@pytest.mark.parametrize(
    "rule",
    [
        'lab(k, n) :- s(k, n), contains("a", k).',
        'lab(k, n) :- s(k, n), !contains("b", k).',
        'lab(k, n) :- s(k, n), match("a.*", k).',
        'lab(cat(k, "b"), n) :- s(k, n), contains("a", k), s(cat(k, "a"), _).',
    ],
)
def test_conditions_on_texts_are_explained_before_they_are_evaluated(rule: str) -> None:
    """How the trace would be kept was planned of the whole clause, whose texts no join sees."""
    db = lftj.Database(f'.decl s(k:symbol, n:number)  s("a", 1). s("aa", 2). {rule}')
    before = db.explain()
    assert rule in before
    assert list(db["lab"])
    assert db.explain().data["strata"][0]["upkeep"]["by"] == before.data["strata"][0]["upkeep"]["by"]


def test_texts_of_columns_that_were_read_are_explained() -> None:
    """An evaluation that read columns took no parts, and the trace was planned of the whole clause, texts included."""
    db = lftj.Database._sized(".decl b(k:symbol, n:number)  .decl c(n:number) -> m:number", columns_from=0)
    db.rules('of[k] = count : { b(k, n), c(n, 0), "" < min("b", k) }.', maintain={"of": "trace"})
    db.load("b", [(f"k{n}", n) for n in range(12)])
    db.load("c", [(n, n % 2) for n in range(12)])
    assert len(db["of"]) == 6
    told = str(db.explain("of"))
    assert "without a walk: `b` is read by columns" in told
    assert "follows changes by its trace, as declared (not recorded yet)" in told
