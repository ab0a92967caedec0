"""What circuits read in files, beside what `db.load` reads in them: the same values, the same rows refused.

Catches: a type that is read by Arrow's rules; a null that is an empty text, or a text that is null; a row that is
refused without its file and line; a difference between the first piece of a file and those behind it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lftj
from lftj import streams
from lftj.errors import ArgumentError, DataError
from lftj.streams import batches as sources

TYPES = (
    "number",
    "unsigned",
    "float",
    "symbol",
    "bool",
    "date",
    "timestamp",
    'timestamp("Europe/Berlin")',
    "duration",
    "decimal(10,2)",
    "uuid",
    "bytes",
)
UUID = "123e4567-e89b-12d3-a456-426614174000"
FIELDS = (
    "5|-5|+5| 5|5 |007|0x1f|5.0|1.50|1.505|1e3|.5|-0|1e400|-1e400|1e-400|9223372036854775807|"
    "9223372036854775808|-9223372036854775808|18446744073709551615|9007199254740993|| |NA|null|NULL|nan|NaN|"
    'inf|-Infinity|true|TRUE|false|0|1|ü|"|a"b|2024-05-31|2024-5-31|2024-02-30|0001-01-01|2024-05-31T12:30:00|'
    "2024-05-31 12:30:00.5|2024-05-31T12:30:00+02:00|2024-05-31T12:30:00Z|2024-03-31T02:30:00|1h30m|PT1H30M|"
    "01:30:00|00ff|00FF|0|00f|xyz"
)
TEXTS = [*FIELDS.split("|"), UUID, UUID.upper(), UUID.replace("-", "")]
# What is written into a line of JSON: any value, and what is no value.
IN_JSON = (
    "5|-5|-0|05|5.0|1.5|1.505|1e3|1e400|-1e400|9007199254740993|-9007199254740993|9223372036854775807|"
    "9223372036854775808|-9223372036854775808|18446744073709551615|1e20|1e-400|null|true|false|NaN|Infinity|"
    '-Infinity|[1]|{"a": 1}||"\\ud800"|"\\u0000"|"a\tb"'
)
VALUES = [*map(json.dumps, TEXTS), *IN_JSON.split("|")]


def of_circuit(path: Path, types: dict[str, str], rows: int = 1000) -> list[tuple[Any, ...]]:
    made = streams.Circuit("all")
    made.output("all", made.input("t", **types))
    found: list[tuple[Any, ...]] = []
    for step in made.incremental().run({"t": path}, rows=rows):
        for row, weight in step["all"]:
            found += [row] * weight
    return sorted(found, key=repr)


def loaded(path: Path, types: dict[str, str]) -> list[tuple[Any, ...]]:
    db = lftj.Database(f".decl t({', '.join(f'{name}:{type}' for name, type in types.items())})")
    db.load("t", path)
    return sorted(db["t"], key=repr)


def outcome(read: Any, path: Path, types: dict[str, str]) -> Any:
    """What a reading gives; of a refusal where and what it is."""
    try:
        return read(path, types)
    except lftj.Error as error:
        return error.where, error.what


@pytest.mark.filterwarnings("ignore:.*columns passed over")
@pytest.mark.parametrize("null", ["", "?"], ids=["plain", "nullable"])
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("kind", ["csv", "tsv", "ndjson"])
def test_values_are_those_that_a_load_reads(tmp_path: Path, kind: str, type_: str, null: str) -> None:
    """Arrow's rules held for circuits: other values without a word, and errors of its own."""
    types = {"k": "number", "v": type_ + null}
    differ: dict[str, Any] = {}
    for number, text in enumerate(VALUES if kind == "ndjson" else TEXTS):
        path = tmp_path / f"{number}.{kind}"
        if kind == "ndjson":
            path.write_text(f'{{"k": 1, "v": {text}}}\n', encoding="utf-8")
        else:
            path.write_text(f"k,v\n1,{text}\n" if kind == "csv" else f"k\tv\n1\t{text}\n", encoding="utf-8")
        found, wanted = outcome(of_circuit, path, types), outcome(loaded, path, types)
        if found != wanted:
            differ[text] = found, wanted
    assert not differ


SHAPES = {
    "csv": [
        *(
            "k,v\n1,a\n\n",
            "k,v\n1\n",
            "k,v\n1,a,b\n",
            "v,k\na,1\n",
            "x,v,k\n9,a,1\n",
            "1,a\n2,b\n",
            "1\n",
            "k,x\n1,a\n",
        ),
        *(
            'k,v\n1,"a"b\n',
            'k,v\n1,"a\nb"\n2,c\n',
            'k,v\n1,"a',
            'k,v\n1,a"b"\n',
            "k,v\r\n1,a\r\n",
            "k,v\r1,a\r",
            "\n",
            "",
        ),
        *("\ufeffk,v\n1,a\n", '\ufeff1,"a\nb"\n', "k,v\n", "k,v\n1,a\n2,\0\n", "k,v\n1,v\n", "\nk,v\n1,a\n"),
    ],
    "tsv": [
        'k\tv\n1\t"a\n2\tb"\n',
        '1\t"a"\n',
        'k\tv\n1\t"a""b"\n',
        "k\tv\n1\t a \n",
        "k\tv\n1\ta\tb\n",
        "k\tv\n1\ta,b",
    ],
    "ndjson": [
        *(
            '{"k": 1}\n',
            '{"k": 1, "v": "a", "x": 2}\n',
            '[1, "a"]\n[2, "b"]\n',
            "[1]\n",
            "5\n",
            '\n{"k": 1, "v": "a"}\n\n',
        ),
        *(
            '{"k": 1, "v": "a"} {"k": 2, "v": "b"}\n',
            '{"k": 1,\n"v": "a"}\n',
            '{"k": 1, "k": 2, "v": "a"}\n',
            "{\n",
            "",
        ),
        *(
            '{"k": 1, "v": "a"} {"k": 2,\n"v": "b"}\n',
            '{"v": "a", "k": 1}\r\n{"k": 2, "v": "b"}',
            '{"k": 1, "v": "a"},\n',
        ),
        *('\ufeff{"k": 1, "v": "a"}\n', '{"k": 1, "v": "a"}\n[2, "b"]\n', '{"k": 1, "v": "a"}\n{"k": 2}\n'),
    ],
}


@pytest.mark.filterwarnings("ignore:.*columns passed over")
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in SHAPES.items() for text in texts])
def test_rows_are_those_that_a_load_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str, piece: int
) -> None:
    """Ragged and blank lines, headers and quotes: quotes of a TSV file were taken for those of a CSV file."""
    monkeypatch.setattr(sources, "PIECE", piece)
    path, types = tmp_path / f"t.{kind}", {"k": "number", "v": "symbol"}
    path.write_bytes(text.encode())
    found, wanted = outcome(of_circuit, path, types), outcome(loaded, path, types)
    if piece == 1 << 20:
        assert found == wanted
    else:  # what is refused is the first of the piece, and not of the file
        assert isinstance(found, list) == isinstance(wanted, list)
        assert found == wanted or isinstance(found, tuple)


@pytest.mark.parametrize(
    "text",
    [
        "v,k\n\ufeffx,1\n\ufeffy,2",
        '\ufeff\ufeffx,1\n"\ufeffy",2\n\ufeffz,3\n',
        'v,k\n\ufeff"x",1\n\n\ufeff',
        '[1, "\ufeffx"]\n[2, "y"]\n',
        '{"k": 1, "v": "x"}\n\ufeff{"k": 2, "v": "y"}\n',
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_mark_within_a_file_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, piece: int) -> None:
    """U+FEFF was dropped where a piece of the file begins with it, as that behind the last line end does."""
    monkeypatch.setattr(sources, "PIECE", piece)
    path = tmp_path / ("t.ndjson" if text.startswith(("[", "{")) else "t.csv")
    path.write_bytes(text.encode())
    types = {"k": "number", "v": "symbol"}
    found, wanted = outcome(of_circuit, path, types), outcome(loaded, path, types)
    assert isinstance(found, list) == isinstance(wanted, list)
    assert found == wanted or isinstance(found, tuple)


def test_a_mark_that_is_appended_is_text(tmp_path: Path) -> None:
    """A piece that is appended to a followed file lost the U+FEFF that it began with."""
    path, made = tmp_path / "t.csv", streams.Circuit("all")
    path.write_text("\ufeffv,k\nx,1\n", encoding="utf-8")
    made.output("all", made.input("t", k="number", v="symbol"))
    steps = made.incremental().run({"t": path}, follow=True)
    assert list(next(steps)["all"].inserted) == [(1, "x")]
    with path.open("a", encoding="utf-8") as file:
        file.write("\ufeffy,2\n")
    assert list(next(steps)["all"].inserted) == [(2, "\ufeffy")]


@pytest.mark.parametrize("rows", [1, 2, 1000])
@pytest.mark.parametrize("kind", ["csv", "tsv", "ndjson"])
def test_a_followed_file_is_read_as_a_load_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: int
) -> None:
    monkeypatch.setattr(sources, "PIECE", 40)
    types = {"at": 'timestamp("Europe/Berlin")', "x": "bytes", "n": "number?"}
    wanted = [
        ("2024-05-31T12:30:00", "00ff", "1"),
        ("2024-05-31T12:30:00+00:00", "", ""),
        ("2024-01-31", "0a", "-7"),
    ] * 3
    path = tmp_path / f"t.{kind}"
    if kind == "ndjson":
        dicts = [{"at": at, "x": x, "n": int(n) if n else None} for at, x, n in wanted]
        path.write_text("".join(json.dumps(row) + "\n" for row in dicts))
    else:
        path.write_text("".join(("," if kind == "csv" else "\t").join(row) + "\n" for row in [tuple(types), *wanted]))
    made = streams.Circuit("all")
    made.output("all", made.input("t", **types))
    found: list[Any] = []
    for step in made.incremental().run({"t": path}, rows=rows, follow=True):
        found += [row for row, weight in step["all"] for _ in range(weight)]
        if len(found) == len(wanted):
            break
    assert set(found) == set(loaded(path, types))


@pytest.mark.parametrize(
    ("kind", "lines", "line"),
    [
        ("csv", ["k,v", *["1,a"] * 20, "x,a"], 22),
        ("csv", ["k,v", '1,"a\n\nb"', "x,a"], 5),
        ("tsv", [*["1\ta"] * 20, "1"], 21),
        ("ndjson", [*['{"k": 1, "v": "a"}'] * 20, '{"k": 1.5, "v": "a"}'], 21),
        ("ndjson", [*['{"k": 1, "v": "a"}', ""] * 20, "{"], 41),
    ],
)
def test_a_bad_row_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, lines: list[str], line: int
) -> None:
    monkeypatch.setattr(sources, "PIECE", 30)
    path = tmp_path / f"t.{kind}"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as caught:
        of_circuit(path, {"k": "number", "v": "symbol"})
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("names", [("k", "v"), ("a", "b")])
def test_rows_of_typed_files_are_told_with_the_file(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    """`Table, row 0 (from 0)` was all that was said of them. Columns of other names are those by position."""
    path, types = tmp_path / f"t.{kind}", {"k": "number", "v": "symbol"}

    def write(table: pa.Table) -> None:
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)

    write(pa.table([[*range(25), None], ["a"] * 26], names=names))
    with pytest.raises(DataError) as caught:
        of_circuit(path, types, rows=10)
    assert caught.value.where == f"{path}, row 25 (from 0)"
    write(pa.table([[1.5], ["a"]], names=names))
    with pytest.raises(DataError) as caught:
        of_circuit(path, types)
    assert caught.value.where == str(path)
    write(pa.table([[1, 2], ["a", "b"]], names=names))
    assert of_circuit(path, types) == loaded(path, types)


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("csv", "k,_weight\n2021-01-01,2\n", 2),
        ("csv", "2021-01-01,2\n", 2),
        ("tsv", "_weight\tk\n2\t2021-01-01\n", 2),
        ("ndjson", '{"k": "2021-01-01", "_weight": 2}\n', 2),
        ("ndjson", '["2021-01-01", 2]\n', 2),
        ("ndjson", '["2021-01-01"]\n', 1),
        ("ndjson", '{"k": "2021-01-01", "x": "_weight"}\n', 1),
        ("ndjson", '{"k": "2021-01-01", "_weight": 2}\n{"k": "2021-01-01"}\n', None),
    ],
)
@pytest.mark.parametrize("piece", [3, 1 << 20])
def test_weights_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str, wanted: int | None, piece: int
) -> None:
    monkeypatch.setattr(sources, "PIECE", piece)
    path = tmp_path / f"t.{kind}"
    path.write_text(text)
    if wanted is not None:
        assert len(of_circuit(path, {"k": "date"})) == wanted
        return
    with pytest.raises(DataError, match=r"some rows of .*t\.ndjson have a `_weight`, and others have none"):
        of_circuit(path, {"k": "date"})


def test_plain_rows_of_json_with_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE", 3)
    path = tmp_path / "t.ndjson"
    path.write_text('{"k": 1, "_weight": 2}\n{"k": 1, "_weight": 1}\n')
    assert of_circuit(path, {"k": "number"}) == [(1,)] * 3
    path.write_text('{"k": 1}\n{"k": 1, "_weight": 1}\n')
    with pytest.raises(DataError, match="and others have none"):
        of_circuit(path, {"k": "number"})
    with pytest.raises(ArgumentError):
        of_circuit(path, {"k": "number"}, rows=0)


@pytest.mark.parametrize(("kind", "text"), [("csv", "k,x\n1,a\n"), ("tsv", "1\n"), ("ndjson", '{"k": 1}\n')])
def test_a_file_of_other_columns_is_told_what_a_circuit_can_do(tmp_path: Path, kind: str, text: str) -> None:
    """A circuit has no `columns=`, of which loads tell."""
    path = tmp_path / f"t.{kind}"
    path.write_text(text)
    with pytest.raises(DataError, match="do: let the file have the columns `k`, `v`") as caught:
        of_circuit(path, {"k": "number", "v": "symbol"})
    assert caught.value.where.startswith(str(path))
