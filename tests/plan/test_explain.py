"""Explanations: the full text of a fixed program, and the same as JSON."""

from __future__ import annotations

import json
import re

import lftj

PROGRAM = """
.decl e(src:number, dst:number)
.decl name(id:number, text:symbol)
tri(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y.
out(x, n) :- tri(x, _, z), name(z, t), n = cat(t, "!"), e(_, _).
one(x) :- e(x, 3).
"""


def database() -> lftj.Database:
    db = lftj.Database(PROGRAM, page_rows=4, directory_rows=4)
    db.load("e", [(i, j) for i in range(8) for j in range(8) if i < j and (i * j) % 3 != 1])
    db.load("name", [(i, f"v{i}") for i in range(8)])
    return db


def masked(text: str) -> str:
    """Without seconds and estimates: those may change with the cost model."""
    text = re.sub(r"\d+\.\d{3} s", "_ s", text)
    text = re.sub(r"estimated [\d,]+ steps", "estimated _ steps", text)
    return re.sub(r"^( +\S+ +)[\d,]+( +(?:[\d,]+|-)  )", r"\1_\2", text, flags=re.MULTILINE)


TEXT = """\
stratum 1: tri(x:number, y:number, z:number)  34 rows
  tri(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y.
    key order x, y, z  (estimated _ steps)
         estimated      actual  reads
      x            _           7  e[0,1](x)
      y            _          19  e[0,1](x, y) & e[0,1](y)  [y > x]
      z            _          34  e[0,1](y, z) & e[0,1](x, z)
    34 rows, 137 steps, 190 seeks, _ s
stratum 2: out(x:number, n:symbol)  17 rows
  out(x, n) :- tri(x, _, z), name(z, t), n = cat(t, "!"), e(_, _).
    first:
      the part that binds the texts' variables
"""


def test_text() -> None:
    db = database()
    db.evaluate()
    lines = masked(str(db.explain())).splitlines()
    assert lines[:8] == [
        "stratum 1: tri(x:number, y:number, z:number)  34 rows",
        "  tri(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y.",
        "    key order x, y, z  (estimated _ steps)",
        "           estimated      actual  reads",
        "      x            _           7  e[0,1](x)",
        "      y           _          19  e[0,1](x, y) & e[0,1](y)  [y > x]",
        "      z           _          34  e[0,1](y, z) & e[0,1](x, z)",
        "    34 rows, 137 steps, 190 seeks, _ s",
    ]
