"""Bad rows: every kind on its full text, counted, quarantined, and found by line whichever reader met it."""

# ruff: noqa: E501 - messages are compared on their full text

from __future__ import annotations

import pytest

from lftj.io.rejects import BadRowsError, Reject, Rejects

E2 = "src:number dst:number"
S2 = "src:symbol dst:symbol"
KEEP = ', or keep the good rows with on_error="quarantine"'
NUMBER = "a number is an integer from -9223372036854775808 to 9223372036854775807"
UNSIGNED = "an unsigned is an integer from 0 to 18446744073709551615"
SPELLED = f"{NUMBER}: digits, an optional '-', nothing else"
FLOAT = "a float is written like 15, -1.5, 2e-3 or inf, without spaces or a leading '+'"
FIX = "correct the value or declare the column `symbol`"

# content, schema, line, reason, why, remedy
CASES = {
    "word": ("1\t2\n3\tx7\n", E2, 2, "column `dst` of `edge`: 'x7' is not a number", SPELLED, FIX),
    "empty": ("1\t\n", E2, 1, "column `dst` of `edge`: '' is not a number", SPELLED, FIX),
    "minus": ("1\t-\n", E2, 1, "column `dst` of `edge`: '-' is not a number", SPELLED, FIX),
    "inner minus": ("1\t1-2\n", E2, 1, "column `dst` of `edge`: '1-2' is not a number", SPELLED, FIX),
    "plus": ("1\t+2\n", E2, 1, "column `dst` of `edge`: '+2' is not a number", SPELLED, FIX),
    "space": ("1\t 2\n", E2, 1, "column `dst` of `edge`: ' 2' is not a number", SPELLED, FIX),
    "hex": ("1\t0x1F\n", E2, 1, "column `dst` of `edge`: '0x1F' is not a number", SPELLED, FIX),
    "point": ("1\t2.0\n", E2, 1, "column `dst` of `edge`: '2.0' is not a number", SPELLED, FIX),
    "underscore": ("1\t1_000\n", E2, 1, "column `dst` of `edge`: '1_000' is not a number", SPELLED, FIX),
    "arabic digits": ("1\t٣\n", E2, 1, "column `dst` of `edge`: '٣' is not a number", SPELLED, FIX),
    "not text": (b"1\t\xff\n", E2, 1, "column `dst` of `edge`: '\\\\xff' is not a number", SPELLED, FIX),
    "int64 + 1": (
        "1\t9223372036854775808\n",
        E2,
        1,
        "column `dst` of `edge`: '9223372036854775808' does not fit into number",
        NUMBER,
        "declare the column `unsigned`",
    ),
    "int64 - 1": (
        "1\t-9223372036854775809\n",
        E2,
        1,
        "column `dst` of `edge`: '-9223372036854775809' does not fit into number",
        NUMBER,
        "declare the column `symbol` or `float`",
    ),
    "huge": (
        "1\t" + "9" * 5000 + "\n",
        E2,
        1,
        "column `dst` of `edge`: '" + "9" * 79 + "... does not fit into number",
        NUMBER,
        "declare the column `symbol` or `float`",
    ),
    "negative unsigned": (
        "-1\n",
        "a:unsigned",
        1,
        "column `a` of `edge`: '-1' does not fit into unsigned",
        UNSIGNED,
        "declare the column `number`",
    ),
    "minus zero": (
        "-0\n",
        "a:unsigned",
        1,
        "column `a` of `edge`: '-0' is not an unsigned",
        f"{UNSIGNED}: digits, nothing else",
        FIX,
    ),
    "uint64 + 1": (
        "18446744073709551616\n",
        "a:unsigned",
        1,
        "column `a` of `edge`: '18446744073709551616' does not fit into unsigned",
        UNSIGNED,
        "declare the column `symbol` or `float`",
    ),
    "nan": (
        "nan\n",
        "a:float",
        1,
        "column `a` of `edge`: 'nan' is not a key",
        "NaN differs from itself, so no row could be found by it",
        "drop or replace the NaN values",
    ),
    "float word": ("1e\n", "a:float", 1, "column `a` of `edge`: '1e' is not a float", FLOAT, FIX),
    "float plus": ("+1.5\n", "a:float", 1, "column `a` of `edge`: '+1.5' is not a float", FLOAT, FIX),
    "float empty": ("\n", "a:float", 1, "column `a` of `edge`: '' is not a float", FLOAT, FIX),
    "float overflow": (
        "1e999\n",
        "a:float",
        1,
        "column `a` of `edge`: '1e999' does not fit into float",
        "the largest float is 1.7976931348623157e+308",
        "correct the value or write inf",
    ),
    "utf-8": (
        b"a\tb\na\t\xc3(\n",
        S2,
        2,
        "column `dst` of `edge`: '\\\\xc3(' is not UTF-8 text",
        "text files are read as UTF-8",
        "convert the file to UTF-8",
    ),
    "too many": (
        "1\t2\n1\t2\t3\n",
        E2,
        2,
        "'1\\t2\\t3' has 3 fields where 2 fields are due",
        "the delimiter is '\\t'",
        "correct the line",
    ),
    "too few": (
        "1\t2\n1\n",
        E2,
        2,
        "'1' has 1 field where 2 fields are due",
        "the delimiter is '\\t'",
        "correct the line",
    ),
    "first ragged": (
        "1\n1\t2\n",
        E2,
        1,
        "'1' has 1 field where 2 fields are due",
        "the delimiter is '\\t'",
        "correct the line",
    ),
    "blank": (
        "1\t2\n\n3\t4\n",
        E2,
        2,
        "the line is blank where 2 fields are due",
        "a blank line is not a row",
        "delete the line",
    ),
    "blank, symbols": (
        "a\tb\n\n",
        S2,
        2,
        "the line is blank where 2 fields are due",
        "a blank line is not a row",
        "delete the line",
    ),
    "blank first": (
        "\n",
        S2,
        1,
        "the line is blank where 2 fields are due",
        "a blank line is not a row",
        "delete the line",
    ),
    "not ()": (
        "()\nx\n",
        "",
        2,
        "'x' is not ()",
        "`edge` has no columns; its only row is ()",
        "write () or delete the line",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_full_text(reader, both_ways, case):
    content, declared, line, reason, why, remedy = CASES[case]
    reader.file("e.tsv", content)
    told = f"e.tsv:{line}: 1 bad row: {reason}\n  why: {why}\n  do: {remedy}{KEEP}"
    assert both_ways(lambda: reader.refusal("e.tsv", declared, error=BadRowsError)) == [told, told]
    loaded = reader.load("e.tsv", declared, on_error="quarantine")
    assert [(r.source, r.line, r.reason, r.why, r.remedy) for r in loaded.rejects] == [
        ("e.tsv", line, reason, why, remedy)
    ]
    assert loaded.rows == loaded.source_rows - 1


UNCLOSED = [('a,b\n1,"x\n2,y\n', 2), ('a,b\n1,"x', 2), ('"a,b\n', 1), ('a,b\n"', 2), ('a,"""\n', 1)]


@pytest.mark.parametrize(("content", "line"), UNCLOSED)
def test_an_unclosed_quote(reader, both_ways, content, line):
    """pyarrow takes the rest of the file for the field's value and says nothing."""
    reader.file("e.csv", content)
    text = content.splitlines()[line - 1]
    told = (
        f"e.csv:{line}: 1 bad row: {text!r} opens a quote that is never closed\n"
        f"  why: inside quotes, line ends are data\n  do: close the quote, or read with quoting=False{KEEP}"
    )
    assert both_ways(lambda: reader.refusal("e.csv", S2)) == [told, told]


def test_an_unclosed_quote_in_the_header(reader):
    reader.file("e.csv", '"a,b\n1,2\n')
    for options in ({"header": True}, {"columns": {"src": 0, "dst": 1}}):
        assert reader.refusal("e.csv", E2, **options) == (
            "e.csv:1: the first line opens a quote that is never closed\n"
            "  why: all that follows would be one field of the first line\n"
            "  do: close the quote, or read with quoting=False"
        )


def test_lines_count_the_header_and_lines_inside_quotes(reader, both_ways):
    reader.file("e.csv", 'a,b\n1,"x\ny"\nbad,z\n"worse\n",z\n')
    for rejects in both_ways(lambda: reader.load("e.csv", "a:number b:symbol", on_error="quarantine").rejects):
        assert [(r.line, r.text) for r in rejects] == [(4, "bad"), (5, "worse\n")]


def test_raise_counts_all_bad_rows_of_the_file(reader):
    content = "".join(f"{i}\t{'x' if i % 10 == 3 else i}\n" for i in range(1000)) + "ragged\n"
    reader.file("e.tsv", content)
    with pytest.raises(BadRowsError) as caught:
        reader.load("e.tsv", E2)
    assert str(caught.value) == (
        f"e.tsv:4: 101 bad rows; the first: column `dst` of `edge`: 'x' is not a number\n  why: {SPELLED}\n  do: {FIX}{KEEP}"
    )
    assert caught.value.count == 101
    assert len(caught.value.rejects) == 20
    assert (caught.value.where, caught.value.why, caught.value.remedy) == ("e.tsv:4", SPELLED, FIX + KEEP)


def test_a_row_is_rejected_once_for_its_first_bad_column(reader):
    reader.file("e.tsv", "x\ty\n1\tz\n")
    rejects = reader.load("e.tsv", E2, on_error="quarantine").rejects
    assert [(r.line, r.column, r.text) for r in rejects] == [(1, "src", "x"), (2, "dst", "z")]


def test_quarantine_keeps_order_across_chunks_and_files(reader, monkeypatch):
    monkeypatch.setattr("lftj.io.read_text.CHUNK_ROWS", 2)
    reader.file("a.tsv", "1\t2\nx\t1\n1\n3\t4\ny\t1\n")
    reader.file("b.tsv", "5\t6\nz\t1\n")
    loaded = reader.load(["a.tsv", "b.tsv"], E2, on_error="quarantine")
    assert [(r.source, r.line) for r in loaded.rejects] == [("a.tsv", 2), ("a.tsv", 3), ("a.tsv", 5), ("b.tsv", 2)]
    assert [column.tolist() for column in loaded.columns] == [[1, 3, 5], [2, 4, 6]]
    assert (loaded.source_rows, loaded.rows) == (7, 3)


def test_texts_of_bad_rows_are_not_interned(reader):
    reader.file("e.tsv", "good\t1\nbad\tx\n")
    loaded = reader.load("e.tsv", "a:symbol b:number", on_error="quarantine")
    assert loaded.rows == 1
    assert reader.symbols.texts().to_pylist() == ["good"]


def test_a_later_bad_file_leaves_nothing_of_the_earlier_ones(reader):
    reader.file("a.tsv", "x\t1\n")
    reader.file("b.tsv", "y\tz\n")
    assert "b.tsv:1" in reader.refusal(["a.tsv", "b.tsv"], "a:symbol b:number")


def test_raise_gives_no_rejects(reader):
    reader.file("e.tsv", "1\t2\n")
    assert reader.load("e.tsv", E2).rejects is None
    assert len(reader.load("e.tsv", E2, on_error="quarantine").rejects) == 0


def test_rejects_are_a_sequence_with_a_table():
    rejects = Rejects()
    assert repr(rejects) == "no bad rows"
    for line in range(1, 8):
        rejects.append(Reject("e.tsv", line, "dst", "x", "column `dst` of `edge`: 'x' is not a number"))
    assert rejects[0].line == 1
    assert [r.line for r in rejects] == list(range(1, 8))
    assert rejects.arrow().to_pylist()[6] == {
        "source": "e.tsv",
        "line": 7,
        "column": "dst",
        "text": "x",
        "reason": "column `dst` of `edge`: 'x' is not a number",
    }
    assert repr(rejects) == "\n".join(
        ["7 bad rows"]
        + [f"  e.tsv:{line}: column `dst` of `edge`: 'x' is not a number" for line in range(1, 6)]
        + ["  ... and 2 more"]
    )
    assert Rejects().arrow().num_rows == 0
