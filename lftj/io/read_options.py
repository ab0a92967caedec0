"""Read options: how a source is to be read, as whoever loads it says.

    db.load("edge", "e.csv", header=True, on_error="quarantine")   ->   ReadOptions(header=True, on_error="quarantine")

One value from the public methods down to the readers. A reader looks at what concerns it, after `checked`.
"""

from __future__ import annotations

from typing import NamedTuple

from lftj import arguments
from lftj.io.pick import Columns, check_columns
from lftj.values.schema import Schema

ON_ERROR = ("raise", "quarantine")
EXTRA = ("note", "error")


class ReadOptions(NamedTuple):
    """How a source is to be read.

    `columns`: picks the source's columns by position (from 0) or name · `delimiter`, `header` and `quoting`: of text
    files only; None decides from the file (`lftj/io/read_text.py`) · `on_error`: "raise" refuses a source with a bad
    row, "quarantine" keeps bad rows apart · `extra`: columns beyond those of the relation, where all of these are there
    by name, are passed over ("note") or refused ("error") · `format`: of files, where their names do not tell it.
    """

    columns: Columns | None = None
    delimiter: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    on_error: str = "raise"
    extra: str = "note"
    format: str | None = None

    def checked(self, schema: Schema) -> ReadOptions:
        """These, if each has a value that it may have; `DataError` says which does not."""
        arguments.one_of(
            "on_error", self.on_error, ON_ERROR, "a source with bad rows is refused, or they are kept apart"
        )
        header, quoting = arguments.flag("header", self.header), arguments.flag("quoting", self.quoting)
        if self.delimiter is not None:
            arguments.text(
                "delimiter",
                self.delimiter,
                "it is what stands between two fields",
                'give a text such as `delimiter=";"`',
            )
        arguments.one_of(
            "extra", self.extra, EXTRA, "columns that the relation does not have are passed over, or refused"
        )
        if self.format is not None:
            arguments.text("format", self.format, "it is what a file is read as", 'give a name such as `format="csv"`')
        check_columns(schema, self.columns)
        return self._replace(header=header, quoting=quoting)

    def given(self, *names: str) -> str:
        """The first of the options `names` that says something; empty if none does."""
        return next((name for name in names if getattr(self, name) is not None), "")


DEFAULTS = ReadOptions()
# With these, rows that are values, and all good, are read without looking at any option.
PLAIN = (DEFAULTS, ReadOptions(extra="error"))
