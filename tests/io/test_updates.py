"""Change files: what is written is read back, whatever the values; how lines make transactions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.io.change_file import (
    ERASE,
    INSERT,
    UPSERT,
    ChangeFileError,
    ChangeRun,
    FileTransaction,
    change_line,
    transactions,
)
from lftj.values.schema import Column, Schema

SCHEMAS = {
    "p": Schema("p", (Column("s", "symbol"), Column("n", "number"), Column("f", "float"), Column("t", "symbol"))),
    "q": Schema("q", (Column("u", "unsigned"),)),
    "yes": Schema("yes", ()),
    "bag": Schema("bag", (Column("s", "symbol"), Column("copies", "number")), functional=True, bag=True),
    "price": Schema("price", (Column("item", "symbol"), Column("cost", "float")), functional=True),
}
texts = st.text(max_size=6) | st.text('"\\ \t\n#+-a\u00a0\u2028', max_size=4)
rows = st.one_of(
    st.tuples(
        st.just("p"),
        st.tuples(
            texts.filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False).filter(lambda x: x != 0 or math.copysign(1, x) > 0),
            st.text("ab\\é ", max_size=3),
        ),
    ),
    st.tuples(st.just("q"), st.tuples(st.integers(0, 2**64 - 1))),
    st.tuples(st.just("yes"), st.just(())),
)
changes = st.lists(st.tuples(st.sampled_from((INSERT, ERASE)), rows), min_size=1, max_size=6)


@given(st.lists(changes, max_size=3))
def test_what_is_written_is_read_back(written: list[list[tuple[str, tuple[str, tuple[object, ...]]]]]) -> None:
    lines = [change_line(op, SCHEMAS[name], row) for one in written for op, (name, row) in one]
    assert all("\n" not in line and "\r" not in line for line in lines)
    blocks = ["\n".join(change_line(op, SCHEMAS[name], row) for op, (name, row) in one) for one in written]
    text = "\n\n".join(blocks).encode()
    found = list(transactions(text.splitlines(keepends=True), SCHEMAS, "x"))
    read = [[(run.op, (run.relation, row)) for run in one.runs for row in run.rows] for one in found]
    assert read == written


def test_copies_of_a_bag() -> None:
    """A delta of a bag could not be read back: its lines have the number of copies at the end."""
    lines = [change_line("+", SCHEMAS["bag"], ("tea", 3)).encode(), b"+bag tea", b'-bag "3" 2', b"-bag 3"]
    assert lines[0] == b"+bag tea 3"
    assert list(transactions(lines, SCHEMAS, "x")) == [
        FileTransaction([ChangeRun("+", "bag", [("tea",)] * 4), ChangeRun("-", "bag", [("3",)] * 3)], 1, 4)
    ]
    for wrong in (b"+bag tea 0", b"-bag tea -1", b"+bag tea x", b"+bag tea 1 2", b"+bag"):
        with pytest.raises(ChangeFileError):
            list(transactions([wrong], SCHEMAS, "x"))


@pytest.mark.parametrize("name", ["old sale", '"sale"', "sale\tof\nmay", "käse", "#1", "null", ""])
def test_any_name_of_a_table_of_sql_is_read_back(name: str) -> None:
    """`create table "old sale"` makes a relation of which no line could be written, or read."""
    schemas = {name: Schema(name, (Column("s", "symbol"),))}
    line = change_line(INSERT, schemas[name], ("of tea",)).encode()
    assert list(transactions([line], schemas, "x")) == [FileTransaction([ChangeRun(INSERT, name, [("of tea",)])], 1, 1)]


def test_a_quoted_name_is_that_of_a_relation() -> None:
    for wrong, named in ((b'+"p 1"', "p 1"), (b'+"\\q" 1', '"\\q"')):
        with pytest.raises(ChangeFileError) as caught:
            list(transactions([wrong], SCHEMAS, "x"))
        assert caught.value.what == f"there is no relation `{named}`"
    (done,) = transactions([b'+"q" 1'], SCHEMAS, "x")
    assert done.runs == [ChangeRun(INSERT, "q", [(1,)])]


def test_runs_and_transactions() -> None:
    lines = [b"+q 1\n", b"+q 2\n", b"# no\n", b"-q 1\n", b" \t\r\n", b"\n", b"+yes", b"\n", b"# end\n"]
    assert list(transactions(lines, SCHEMAS, "x")) == [
        FileTransaction([ChangeRun("+", "q", [(1,), (2,)]), ChangeRun("-", "q", [(1,)])], 1, 5),
        FileTransaction([], 6, 6),
        FileTransaction([ChangeRun("+", "yes", [()])], 7, 8),
    ]


def test_upserts() -> None:
    lines = [b"=price anvil 3\n", b'=price "a b" 1.5\n', b"+price x 1\n", b"=price x 2\n"]
    assert list(transactions(lines, SCHEMAS, "x")) == [
        FileTransaction(
            [
                ChangeRun(UPSERT, "price", [("anvil", 3.0), ("a b", 1.5)]),
                ChangeRun(INSERT, "price", [("x", 1.0)]),
                ChangeRun(UPSERT, "price", [("x", 2.0)]),
            ],
            1,
            4,
        )
    ]
    with pytest.raises(ChangeFileError) as caught:
        list(transactions([b"+q 1\n", b"=q 2\n"], SCHEMAS, "x"))
    assert caught.value.render() == (
        "x:2:2: error: `q` is not a functional predicate, so none of its columns is a key\n"
        "    =q 2\n"
        "     ^\n"
        "  why: it is declared as q(u:unsigned); nothing of its transaction (lines 1 to 2) was applied\n"
        "  do: erase a row with `-q`, insert one with `+q`"
    )


def test_it_reads_no_line_ahead() -> None:
    given: list[bytes] = []

    def lines() -> object:
        for line in (b"+q 1\n", b"\n", b"+q 2\n"):
            given.append(line)
            yield line

    first = next(transactions(lines(), SCHEMAS, "x"))  # type: ignore[arg-type]
    assert (first.size, len(given)) == (1, 2)


@pytest.mark.parametrize(
    ("type", "bare", "others"),
    [
        ("number", b"-1", [b'"-1"']),
        ("unsigned?", b"7", [b'"7"']),
        ("bool", b"true", [b'"true"', b'"1"']),
        ("date", b"2024-05-31", [b'"2024-05-31"']),
        ("timestamp", b"2024-05-31T12:30:00", [b'"2024-05-31 12:30:00"', b'"2024-05-31T14:30:00+02:00"']),
        ("duration", b"1h30m", [b'"1h30m"', b'"01:30:00"']),
        ("decimal(10,2)?", b"1.50", [b'"1.50"', b'"1.5"']),
        ("uuid", b"123e4567-e89b-12d3-a456-426614174000", [b'"123e4567-e89b-12d3-a456-426614174000"']),
        ("bytes", b"00ff", [b'"00ff"']),
        ("bytes?", b'""', []),
        ("number?", b"null", [b'""']),
    ],
)
def test_a_value_of_any_type_may_be_quoted(type: str, bare: bytes, others: list[bytes]) -> None:
    schemas = {"v": Schema("v", (Column("x", type),))}
    ((run,),) = [one.runs for one in transactions([b"+v " + field + b"\n" for field in (bare, *others)], schemas, "x")]
    assert run.rows == [run.rows[0]] * (1 + len(others))
    for wrong in (b'"x\\n"', b'"\\q"', b'"\xff"', b'"1" 2'):
        with pytest.raises(ChangeFileError):
            list(transactions([b"+v " + wrong], schemas, "x"))
