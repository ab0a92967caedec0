"""A type is one class and one entry of the table: a toy, the pages of a book in roman numerals, works everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOY = """
from lftj.values import faults, type_table as types
from lftj.values.decimal_type import read_each
from lftj.values.value_type import Misfit, ValueType

DIGITS = {"M": 1000, "CM": 900, "D": 500, "CD": 400, "C": 100, "XC": 90, "L": 50, "XL": 40, "X": 10, "IX": 9, "V": 5}
DIGITS |= {"IV": 4, "I": 1}


class Roman(str):
    pass


class Romans(ValueType):
    family, takes, spelled = "roman", "a roman is a number from I to MMM", "a roman is written in the letters MDCLXVI"
    article, python, low, high = "a roman", "Roman", 1, 3000

    def read(self, value):
        if not isinstance(value, str):
            raise Misfit(faults.of_kind(self, value))
        return self.parse(value)

    def shown(self, stored):
        text = ""
        for digit, worth in DIGITS.items():
            text, stored = text + digit * (stored // worth), stored % worth
        return Roman(text)

    def parse(self, text):
        rest, total = text, 0
        for digit, worth in DIGITS.items():
            while rest.startswith(digit):
                rest, total = rest[len(digit):], total + worth
        if rest or not total or self.shown(total) != text:
            raise Misfit(faults.not_spelled(self))
        return total

    def arrow_type(self):
        import pyarrow as pa
        return pa.string()

    def fits_arrow(self, given):
        import pyarrow as pa
        return pa.types.is_string(given)

    def from_arrow(self, array):
        return read_each(self, array.to_pylist())

    def to_arrow(self, stored, mask):
        import pyarrow as pa
        texts = [self.shown(max(code, 0)) for code in stored.tolist()]
        return pa.array([None if mask is not None and mask[i] else t for i, t in enumerate(texts)], pa.string())


types.FAMILIES["roman"] = Romans
import lftj
"""
USE = """
db = lftj.Database('''
    .decl page(book:symbol, n:roman?)
    .decl big(n:roman)
    after(b, n, m) :- page(b, n), page(b, m), n < m.
    last[b] = max n : { page(b, n) }.
    lost(b) :- page(b, n), is_null(n).
    shown(to_string(n)) :- page(_, n).
''')
db.load("page", [("a", "IX"), ("a", "X"), ("a", "IV"), ("b", None)])
assert sorted(db["after"]) == [("a", "IV", "IX"), ("a", "IV", "X"), ("a", "IX", "X")]
assert list(db["last"]) == [("a", "X")] and list(db["lost"]) == [("b",)]
assert [n for _, n in db["page"]] == ["IV", "IX", "X", None][:3] + [None]
again = lftj.Database(".decl page(book:symbol, n:roman?)")
again.load("page", db["page"].arrow())
assert list(again["page"]) == list(db["page"])
try:
    db.load("big", [("IIII",)])
except lftj.DataError as error:
    print(error)
"""


def test_a_toy_type(tmp_path: Path) -> None:
    script = tmp_path / "toy.py"
    script.write_text(TOY + USE.replace("    shown(to_string(n)) :- page(_, n).\n", ""))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "list, row 0 (from 0): 1 bad row: column `n` of `big`: 'IIII' is not a roman",
        "  why: a roman is written in the letters MDCLXVI",
        '  do: correct the value or declare the column `symbol`, or keep the good rows with on_error="quarantine"',
    ]
