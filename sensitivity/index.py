"""The sensitivity index of one site: the packed records of a trace, sorted, in versioned pages.

A record is a row without values, its words the key. Recording leaves records in the order of the walk; `build` sorts
them in bulk. Maintenance takes out the records of steps that are gone and puts in those of new ones: `updated` gives
the next version, and the one before stays as it was until nobody holds it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scantree.build import sort_rows
from scantree.memory import Arena
from scantree.version import Store, Version
from sensitivity.packing import Packing

Ints = npt.NDArray[np.int64]


class SensitivityIndex:
    """An immutable set of records of one site, packed by `packing`."""

    __slots__ = ("packing", "version")

    def __init__(self, packing: Packing, version: Version) -> None:
        self.packing, self.version = packing, version

    @classmethod
    def build(
        cls, arena: Arena, packing: Packing, chunks: Sequence[Ints], *, page_rows: int = 256, dir_rows: int = 256
    ) -> SensitivityIndex:
        """The index of the records in `chunks`, each int64[n * words], record after record, in any order."""
        store = Store(arena, packing.words, page_rows=page_rows, dir_rows=dir_rows)
        flat = chunks[0] if len(chunks) == 1 else np.concatenate([np.empty(0, np.int64), *chunks])
        if packing.words == 1:
            # No two steps of a trace leave the same record, so sorting is all.
            return cls(packing, store.assemble([np.sort(flat)[None, :]]))
        return cls(packing, store.assemble([sort_rows(list(flat.reshape(-1, packing.words).T), packing.words)]))

    def __len__(self) -> int:
        return len(self.version)

    def memory(self) -> int:
        """Bytes of pages, directory and slack included."""
        return self.version.memory()

    def updated(self, removed: Ints, added: Ints) -> tuple[SensitivityIndex, int, int]:
        """(the index without the records `removed` and with `added`, records that went, records that came).

        Both int64[n * words]. A record in both stays.
        """
        words = self.packing.words
        batch = np.concatenate([removed, added]).reshape(-1, words).T
        ops = np.ones(batch.shape[1], np.int8)
        ops[: len(removed) // words] = -1
        version, changes = self.version.update(batch, ops)
        went, came = np.count_nonzero(changes.verdicts == 2), np.count_nonzero(changes.verdicts == 1)
        return (self if version is self.version else SensitivityIndex(self.packing, version)), int(went), int(came)

    def repacked(self, packing: Packing) -> SensitivityIndex:
        """The same records in another packing."""
        words = packing.pack(self.packing.unpack(self.version.columns()))
        shape = self.version.store.shape
        return SensitivityIndex.build(
            self.version.store.arena,
            packing,
            [np.ascontiguousarray(words.T).reshape(-1)],
            page_rows=1 << shape.page_bits,
            dir_rows=1 << shape.dir_bits,
        )

    def records(self) -> Ints:
        """All records, unpacked: int64[fields, n], fields being prefix, start, context, agree; in order."""
        return self.packing.unpack(self.version.columns())

    def check(self) -> None:
        """The pages are sound, and no record has bits outside its fields. For tests."""
        self.version.check()
        words = self.version.columns()
        assert np.array_equal(self.packing.pack(self.packing.unpack(words)), words), self.packing
