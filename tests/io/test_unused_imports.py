"""What a program does not use is not imported.

Numbers, numpy in and numpy out, need no pyarrow: neither its memory nor its 170 MB of an install. Files need no pandas,
which pyarrow imports where it can, for 0.3 seconds of a process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


FILES = """
import sys
import lftj
db = lftj.Database('''
    .decl o(id:number, who:symbol, day:date, fine:bool, n:unsigned, x:float, at:timestamp)
    t(w, d) :- o(_, w, d, _, _, _, _).  s(w, y) :- o(_, w, _, _, _, _, _), y = sum x : { o(_, w, _, _, _, x, _) }.
''')
head = "id,who,day,fine,n,x,at"
rows = "".join(f"\\n{i},u{i % 7},2024-01-0{i % 9 + 1},true,{i},{i}.5,2024-01-01 10:00:00" for i in range(50))
with open("o.csv", "w") as out:
    out.write(head + rows + "\\n")
db.load("o", "o.csv")
for name in "ots":
    db[name].to_csv(name + "2.csv")
with db.transaction() as tx:
    tx.erase("o", [row for row in db["o"] if row[0] == 1])
again = lftj.Database(".decl o(id:number, who:symbol, day:date, fine:bool, n:unsigned, x:float, at:timestamp)")
again.load("o", "o2.csv")
assert len(again["o"]) == 50 and len(db["o"]) == 49 and len(db["s"]) == 7
sys.stdout.write(str("pandas" in sys.modules))
"""


def test_files_need_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", FILES], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False"), done.stderr
