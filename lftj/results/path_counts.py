"""Path counts as the user sees them: exact integers of any size, by pair of nodes.

    counts = db.path_counts("edge", into="paths")
    counts["a", "d"]                        how many paths lead from a to d: an int, 0 if none does
    ("a", "d") in counts   len(counts)      whether one does; how many pairs there are with one
    for a, b, n in counts: ...              all of them, in the order of the nodes
    counts.arrow()                          pyarrow.Table
    counts.at(db.snapshot())                the counts of a snapshot

A `PathCounts` is a view: it reads the database as it is when it is asked, and evaluates what is not up to date. What
`at` gives never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lftj import arguments
from lftj.errors import DataError, UnknownRelationError
from lftj.paths import big_counts
from lftj.program.declare_paths import big_counts_of
from lftj.results.answers import Answers
from lftj.results.not_pickled import NotPickled
from lftj.values import gate
from lftj.values.faults import shown
from lftj.values.schema import Schema
from lftj.values.type_table import in_dictionary

if TYPE_CHECKING:
    import pyarrow

    from scantree.version import Version

# Digits of the counts that Arrow's decimals hold.
DECIMAL_DIGITS = (38, 76)


class PathCounts(NotPickled):
    """The number of paths of length 1 or more between nodes. Made by `Database.path_counts`; see the module's text."""

    _instead = "give its rows instead, by `arrow()` or `list(...)`"

    def __init__(self, answers: Answers, into: str) -> None:
        self._answers, self._into = answers, into

    @property
    def name(self) -> str:
        """The relation that holds the counts for rules."""
        return self._into

    def at(self, answers: Answers) -> PathCounts:
        """The same counts as they are in a snapshot. Raises `UnknownRelationError` if it has none."""
        why = "counts are those of a database at one moment"
        arguments.instance("answers", answers, Answers, why, "give a snapshot, as in `counts.at(db.snapshot())`")
        found = PathCounts(answers, self._into)
        found._content()
        return found

    def __getitem__(self, pair: object) -> int:
        """How many paths lead from the first of two nodes to the second; 0 if none does.

        Raises `DataError` for anything but two values of the nodes' type.
        """
        schema, content = self._content()
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise DataError(
                f"{shown(pair)} is no pair of nodes",
                why="a count is that of the paths from one node to another",
                remedy="ask for two, as in `counts[a, b]`",
            )
        codes = gate.lookup_row(pair, Schema(self._into, schema.columns[1:3]), self._answers._evaluator.symbols)
        if codes is None:
            return 0
        src, dst = (np.array([code], np.int64) for code in codes)
        return int(big_counts.between(content, src, dst)[0])

    def __contains__(self, pair: object) -> bool:
        """Whether there is a path; errors as for `counts[pair]`."""
        return self[pair] > 0

    def __len__(self) -> int:
        """How many pairs have a path."""
        _, content = self._content()
        return content.count(content.begin(), content.seek([1]))

    def __iter__(self) -> Iterator[tuple[Any, Any, int]]:
        """(node, node, count), in the order of the nodes."""
        schema, columns, counts = self._sorted()
        ends = gate.to_rows(Schema(self._into, schema.columns[1:3]), columns, self._answers._evaluator.symbols)
        return ((a, b, n) for (a, b), n in zip(ends, counts.tolist(), strict=True))

    def arrow(self) -> pyarrow.Table:
        """All of them as an Arrow table: the columns of the edges, and the count.

        The count is int64 if all counts fit, else a decimal of 38 or of 76 digits, else text.
        """
        import pyarrow as pa

        schema, columns, counts = self._sorted()
        symbols = self._answers._evaluator.symbols
        table = gate.to_arrow(Schema(self._into, schema.columns[1:3]), columns, symbols)
        name = self._answers._evaluator.relations[self._into].schema.names[2]
        if counts.dtype == np.int64:
            return table.append_column(name, pa.array(counts, pa.int64()))
        digits = len(str(counts.max()))
        texts = pa.array([str(n) for n in counts.tolist()], pa.string())
        for most, kind in zip(DECIMAL_DIGITS, (pa.decimal128, pa.decimal256), strict=True):
            if digits <= most:
                return table.append_column(name, texts.cast(kind(most, 0)))
        return table.append_column(name, texts)

    def _content(self) -> tuple[Schema, Version]:
        """The schema of the limbs, and their content now."""
        name = big_counts_of(self._into)
        if name not in self._answers:
            raise UnknownRelationError(
                f"`{self._into}` holds no path counts",
                why="its rules were removed, or came after the snapshot",
                remedy="call `db.path_counts` again, or take another snapshot",
            )
        relation = self._answers._current(name)
        return relation.schema, relation.content

    def _sorted(self) -> tuple[Schema, list[big_counts.Ints], big_counts.Counts]:
        """The ends as code columns, and the counts, in the order of the values."""
        schema, content = self._content()
        src, dst, counts = big_counts.everything(content)
        if in_dictionary(schema.types[1]) and len(src) > 1:
            ranks = self._answers._evaluator.symbols.ranks()
            order = np.lexsort((ranks[dst], ranks[src]))
            src, dst, counts = src[order], dst[order], counts[order]
        return schema, [np.ascontiguousarray(src), np.ascontiguousarray(dst)], counts

    def __repr__(self) -> str:
        return f"lftj.PathCounts of `{self._into}`"
