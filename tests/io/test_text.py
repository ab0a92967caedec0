"""What a text file says: delimiters, headers, quoting, values. The fast and the careful reader must say the same."""

from __future__ import annotations

import datetime as dt
import gzip
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.io.lines import lines

E2 = "src:number dst:number"
S2 = "src:symbol dst:symbol"
MAY = dt.date(2024, 5, 31)


@pytest.mark.parametrize(
    ("name", "content", "declared", "options", "rows"),
    [
        ("e.tsv", "1\t2\n3\t4\n", E2, {}, [(1, 2), (3, 4)]),
        ("e.txt", "1\t2\n3\t4", E2, {}, [(1, 2), (3, 4)]),
        ("e.facts", "1\t2\r\n3\t4\r\n", E2, {}, [(1, 2), (3, 4)]),
        ("e.tsv", "1\t2\r3\t4\r", E2, {}, [(1, 2), (3, 4)]),
        ("e.csv", "1,2\n3,4\n", E2, {}, [(1, 2), (3, 4)]),
        ("e.csv", "1\t2\n", E2, {"delimiter": "\t"}, [(1, 2)]),
        ("e.dat", "1|2\n", E2, {"delimiter": "|"}, [(1, 2)]),
        ("e.tsv", "1, 2\n", E2, {"delimiter": ", "}, [(1, 2)]),
        ("e.tsv", "1→2\n", E2, {"delimiter": "→"}, [(1, 2)]),
        ("e.tsv", "", E2, {}, []),
        ("e.csv", "", E2, {}, []),
        ("e.tsv", "\ufeff", E2, {}, []),
        ("e.tsv", "\ufeff1\t2\n", E2, {}, [(1, 2)]),
        ("e.csv", "\ufeffsrc,dst\n1,2\n", E2, {}, [(1, 2)]),
        # header: only if the fields are the declared names, in any order
        ("e.csv", "src,dst\n1,2\n", E2, {}, [(1, 2)]),
        ("e.csv", "dst,src\n1,2\n", E2, {}, [(2, 1)]),
        ("e.csv", '"dst","src"\n1,2\n', E2, {}, [(2, 1)]),
        ("e.csv", "dst,src\n", E2, {}, []),
        ("e.csv", "dst,src", E2, {}, []),
        ("e.csv", "src,other\nx,y\n", S2, {"header": False}, [("src", "other"), ("x", "y")]),
        ("e.csv", "src,dst\nx,y\n", S2, {"header": False}, [("src", "dst"), ("x", "y")]),
        ("e.csv", "dst,src\nx,y\n", S2, {"header": False}, [("dst", "src"), ("x", "y")]),
        ("e.csv", "from,to\nx,y\n", S2, {"header": True}, [("x", "y")]),
        ("e.csv", "dst,src\nx,y\n", S2, {"header": True}, [("y", "x")]),
        # columns
        ("e.csv", "9,1,2\n8,3,4\n", E2, {"columns": {"src": 1, "dst": 2}}, [(1, 2), (3, 4)]),
        ("e.csv", "a,b,c\n1,2,3\n", E2, {"columns": {"src": "c", "dst": "a"}}, [(3, 1)]),
        ("e.csv", "a,b,c\n1,2,3\n", E2, {"columns": {"src": 2, "dst": "a"}}, [(3, 1)]),
        ("e.csv", "src,w,dst\n1,x,3\n", E2, {"columns": {"src": 0, "dst": 2}}, [(1, 3)]),
        ("e.csv", "src,w,dst\n1,x,3\n", S2, {"columns": {"src": 0, "dst": 1}}, [("src", "w"), ("1", "x")]),
        ("e.csv", "1,2\n", E2, {"columns": {"src": 0, "dst": 0}}, [(1, 1)]),
        ("e.csv", "1,2\n", "a:number b:symbol", {"columns": {"a": 0, "b": 0}}, [(1, "1")]),
        ("e.csv", "2024-05-31,2\n", "a:date b:symbol?", {"columns": {"a": 0, "b": 0}}, [(MAY, "2024-05-31")]),
        ("e.csv", "1,\n,\n", "a:symbol b:number?", {"columns": {"a": 0, "b": 0}}, [("1", 1), ("", None)]),
        ("e.csv", "a,b\n", E2, {"columns": {"src": "a", "dst": "b"}}, []),
        # quoting
        ("e.csv", '"a,b","c""d"\n', S2, {}, [("a,b", 'c"d')]),
        ("e.csv", '"a\nb",x\n', S2, {}, [("a\nb", "x")]),
        ("e.csv", '"a\r\nb",x\r\n', S2, {}, [("a\r\nb", "x")]),
        ("e.csv", '"a"b,c"d\n', S2, {}, [("ab", 'c"d')]),
        ("e.csv", '"a"b"c,x\n', S2, {}, [('ab"c', "x")]),
        ("e.csv", ' "a",x\n', S2, {}, [(' "a"', "x")]),
        ("e.csv", '"",""\n', S2, {}, [("", "")]),
        ("e.csv", '"1","2"\n', E2, {}, [(1, 2)]),
        ("e.csv", '"a","b"\n', S2, {"quoting": False}, [('"a"', '"b"')]),
        ("e.tsv", '"a\tb"\n', S2, {}, [('"a', 'b"')]),
        ("e.tsv", '"a\tb"\tc\n', S2, {"quoting": True}, [("a\tb", "c")]),
        ("e.dat", '"a|b"|c\n', S2, {"quoting": True, "delimiter": "|"}, [("a|b", "c")]),
        ("e.dat", '"a::b"::c\n', S2, {"quoting": True, "delimiter": "::"}, [("a::b", "c")]),
        # symbols are the text exactly
        ("e.csv", "NA, x \nnull,\n,NaN\n", S2, {}, [("NA", " x "), ("null", ""), ("", "NaN")]),
        ("e.csv", ",\n", S2, {}, [("", "")]),
        ("e.csv", "\x00,é\n", S2, {}, [("\x00", "é")]),
        ("e.csv", "a\x0bb\x0c,\x1c\x85\u2028\n", S2, {}, [("a\x0bb\x0c", "\x1c\x85\u2028")]),
        # blank lines with one column
        ("e.tsv", "a\n\nb\n\n", "x:symbol", {}, [("a",), ("",), ("b",), ("",)]),
        ("e.tsv", "\n", "x:symbol", {}, [("",)]),
        ("e.csv", '""\n', "x:symbol", {}, [("",)]),
        # the ranges and spellings of numbers
        (
            "e.csv",
            "-9223372036854775808,0\n9223372036854775807,18446744073709551615\n007,00000000000000000000000000001\n-0,0\n",
            "a:number b:unsigned",
            {},
            [(-(2**63), 0), (2**63 - 1, 2**64 - 1), (7, 1), (0, 0)],
        ),
        (
            "e.csv",
            "1.5\n-2e-3\n.5\n5.\n15\ninf\n-Infinity\n1E+5\n0.1\n-0\n1e-999\n",
            "a:float",
            {},
            [
                (1.5,),
                (-2e-3,),
                (0.5,),
                (5.0,),
                (15.0,),
                (float("inf"),),
                (float("-inf"),),
                (1e5,),
                (0.1,),
                (0.0,),
                (0.0,),
            ],
        ),
        # what no column needs may hold anything
        ("e.tsv", b"1\t\xff\t2\n", E2, {"columns": {"src": 0, "dst": 2}}, [(1, 2)]),
        # arity 0
        ("e.facts", "()\n()\n", "", {}, [(), ()]),
        ("e.facts", "", "", {}, []),
    ],
)
def test_content(reader, both_ways, name, content, declared, options, rows):
    reader.file(name, content)
    fast, careful = both_ways(lambda: reader.rows(name, declared, **options))
    assert fast == rows
    assert careful == rows


def test_the_fast_reader_does_the_usual_files(reader, monkeypatch):
    """Falling back is legal anywhere, so only this test notices if it becomes the rule."""
    monkeypatch.setattr("lftj.io.read_text._read_carefully", None)
    reader.file("a.tsv", "1\t2\n" * 10)
    reader.file("b.csv", "dst,src\n1,2\n")
    reader.file("c.csv", '"a,b",x\n"c\nd",y')
    reader.file("d.csv", "1.5,1,x\n-inf,2,\n")
    assert len(reader.rows("a.tsv", E2)) == 10
    assert reader.rows("b.csv", E2) == [(2, 1)]
    assert reader.rows("c.csv", S2) == [("a,b", "x"), ("c\nd", "y")]
    assert reader.rows("d.csv", "a:float b:unsigned c:symbol") == [(1.5, 1, "x"), (float("-inf"), 2, "")]


@pytest.mark.parametrize("block", [7, 64, 1024])
def test_any_block_size_gives_the_same_rows(reader, both_ways, monkeypatch, block):
    """Records, line ends and quotes on every block border."""
    monkeypatch.setattr("lftj.io.read_text.BLOCK_BYTES", block)
    monkeypatch.setattr("lftj.io.lines.BLOCK_BYTES", block)
    monkeypatch.setattr("lftj.io.read_text.CHUNK_ROWS", 3)
    rows = [(i * 7919, f'"{i}\r\n' if i % 3 == 0 else f"text {i},") for i in range(40)]
    content = "".join('{},"{}"\r\n'.format(number, text.replace('"', '""')) for number, text in rows)
    reader.file("e.csv", "\ufeff" + content)
    fast, careful = both_ways(lambda: reader.rows("e.csv", "a:number b:symbol"))
    assert fast == careful == rows


@given(st.lists(st.sampled_from([b"a", b"bcdefgh", b"\r", b"\n", b"\r\n"]), max_size=30), st.integers(1, 9))
def test_lines_are_those_of_the_whole_text(parts: list[bytes], block: int) -> None:
    """Whatever blocks they are read in: a line in many parts is joined once."""
    text = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lftj.io.lines.BLOCK_BYTES", block)
        found = list(lines(pa.BufferReader(b"\xef\xbb\xbf" + text)))
    assert found == text.splitlines(keepends=True)


@pytest.mark.parametrize("name", ["e.tsv", "e.csv.gz", "e.tsv.gz", "e.facts.zst", "e.txt.GZ", "e.dat.gz"])
def test_compression(reader, name):
    delimiter = "," if ".csv" in name else "\t"
    content = f"1{delimiter}2\n3{delimiter}4\n".encode()
    if name.lower().endswith(".gz"):
        content = gzip.compress(content[:4]) + gzip.compress(content[4:])
    elif name.endswith(".zst"):
        content = pa.compress(content, "zstd", asbytes=True)
    reader.file(name, content)
    assert reader.rows(name, E2, delimiter="\t" if "dat" in name else None) == [(1, 2), (3, 4)]


def test_paths_globs_and_lists(reader):
    os.mkdir("parts")
    for i in range(3):
        reader.file(f"parts/{2 - i}.tsv", f"{2 - i}\t0\n")
    reader.file("odd[1].tsv", "9\t9\n")
    expected = [(0, 0), (1, 0), (2, 0)]
    assert reader.rows("parts/*.tsv", E2) == expected
    assert reader.rows(Path("parts") / "*.tsv", E2) == expected
    assert reader.rows(["parts/0.tsv", Path("parts/1.tsv"), "parts/2.tsv"], E2) == expected
    assert reader.rows(("parts/[01].tsv", "parts/2.tsv"), E2) == expected
    assert reader.rows("odd[1].tsv", E2) == [(9, 9)]  # an existing name is no glob
    assert reader.load("parts/*.tsv", E2).source_rows == 3


def test_files_of_one_load_may_differ_in_layout(reader):
    reader.file("a.csv", "dst,src\n2,x\n")
    reader.file("b.tsv", "y\t3\n")
    assert reader.rows(["a.csv", "b.tsv"], "src:symbol dst:number") == [("x", 2), ("y", 3)]


@pytest.mark.parametrize("content", ["1\t2\n", "1\tx\n"])
def test_a_pipe_is_read_once(reader, content):
    os.mkfifo("pipe.tsv")
    writer = threading.Thread(target=lambda: Path("pipe.tsv").write_text(content))
    writer.start()
    loaded = reader.load("pipe.tsv", E2, on_error="quarantine")
    writer.join()
    assert (loaded.rows, len(loaded.rejects)) == ((1, 0) if content == "1\t2\n" else (0, 1))


def test_symbols_of_all_columns_share_the_table(reader):
    reader.file("e.tsv", "a\tb\nb\ta\n")
    loaded = reader.load("e.tsv", S2)
    assert [column.tolist() for column in loaded.columns] == [[0, 1], [1, 0]]
    assert reader.symbols.texts().to_pylist() == ["a", "b"]


def test_a_crlf_inside_quotes_survives_every_block_border(reader, monkeypatch):
    """arrow #51368: at the border of two blocks pyarrow loses the line feed."""
    monkeypatch.setattr("lftj.io.read_text._read_carefully", None)
    for length in range(20, 60):
        rows = [(0, "x" * length + "\r\n"), (1, "plain")]
        reader.file("e.csv", f'0,"{rows[0][1]}"\n1,plain\n')
        for block in range(length + 2, length + 8):  # the line feed is byte length + 4
            monkeypatch.setattr("lftj.io.read_text.BLOCK_BYTES", block)
            assert reader.rows("e.csv", "a:number b:symbol") == rows


def test_nul_bytes_are_read_carefully(reader, monkeypatch):
    """arrow #50481: near a NUL pyarrow overlooks delimiters, quotes and line ends."""
    reader.file("e.csv", "a long text with a \0,1\nnext,2\n")
    assert reader.rows("e.csv", "a:symbol b:number") == [("a long text with a \0", 1), ("next", 2)]
    monkeypatch.setattr("lftj.io.read_text._read_carefully", None)
    with pytest.raises(TypeError):
        reader.rows("e.csv", "a:symbol b:number")
