"""Answers on stdout: a table, CSV, JSON or a stream of Arrow."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lftj.results.text_table import table_lines

if TYPE_CHECKING:
    from lftj.results.relation import Relation
    from lftj.sql.results import SqlResult

ARROW = "arrow"


def print_table(rows: Relation | SqlResult) -> None:
    """Columns in line: numbers to the right, texts to the left."""
    if not rows.columns:
        return _print_truth(rows)
    from lftj.values.type_table import in_dictionary

    cells = [["null" if cell is None else cell for cell in row] for row in _fields(rows)]
    for line in table_lines(list(rows.columns), cells, list(map(in_dictionary, rows.columns.values())), ruled=True):
        print(line)
    return None


def _print_csv(rows: Relation | SqlResult) -> None:
    if not rows.columns:
        return _print_truth(rows)
    from lftj.io.write_text import UnwritableTextError

    sys.stdout.flush()
    try:
        rows.to_csv(sys.stdout.buffer)
    except UnwritableTextError as error:
        remedy = "ask with --format json or --format arrow, which tell null apart"
        raise UnwritableTextError(error.what, why=error.why, remedy=remedy) from None
    return None


def _fields(rows: Relation | SqlResult) -> Iterator[list[str | None]]:
    """The values of each row as a fact file holds them; None for null."""
    from lftj.values.type_table import type_of

    types = [type_of(kind) for kind in rows.columns.values()]
    for row in rows:
        yield [None if value is None else kind.text(value) for value, kind in zip(row, types, strict=True)]


def _print_truth(rows: Relation | SqlResult) -> None:
    print("true" if rows else "false")


def _print_json(rows: Relation | SqlResult) -> None:
    from lftj.io.json_text import json_values
    from lftj.values.type_table import type_of

    names, types = list(rows.columns), list(map(type_of, rows.columns.values()))
    answer = [dict(zip(names, json_values(row, types), strict=True)) for row in rows]
    print(json.dumps(answer, ensure_ascii=False))


def _print_arrow(rows: Relation | SqlResult) -> None:
    import pyarrow as pa

    table = rows.arrow()
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)


FORMS: dict[str, Callable[[Relation | SqlResult], None]] = {
    "table": print_table,
    "csv": _print_csv,
    "json": _print_json,
    ARROW: _print_arrow,
}
