"""A program of numbers, numpy in and numpy out, needs no pyarrow: neither its memory nor its 170 MB of an install."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

CODE = """
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'")
sys.meta_path.insert(0, NotInstalled())
import numpy as np
import lftj
db = lftj.Database('''
    .decl e(a:number, b:number)  .decl f(a:float, b:unsigned)
    t(x, y, z) :- e(x, y), e(y, z), e(x, z).  d(x, n) :- e(x, _), n = count : { e(x, _) }.
    r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z).
''')
db.load("e", np.array([[1, 2], [2, 3]]))
db.load("e", [(1, 3)])
db.load("e", [{"b": 4, "a": 3}])
db.load("f", np.array([(1.5, 2)], [("a", "f8"), ("b", "u8")]))
assert list(db["t"]) == [(1, 2, 3)] and db["d"].to_numpy().tolist() == [[1, 2], [2, 1], [3, 1]]
assert db["f"].to_numpy().tolist() == [(1.5, 2)] and db.query("t(1, y, z)").count() == 1
with db.transaction() as tx:
    tx.insert("e", np.array([[4, 5]]))
    tx.erase("e", [(1, 2)])
assert tx.delta["t"].to_numpy().tolist() == [[1, 2, 3, -1]] and (3, 5) in db.snapshot()["r"]
sys.stdout.write(f"{len(db['r'])} {'pyarrow' in sys.modules}")
"""


def test_numbers_need_no_pyarrow() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "9 False"), done.stderr
