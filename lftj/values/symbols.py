"""The symbol table: the texts of a database, numbered in the order in which they came.

A text is first *staged* (a column is reduced to its distinct texts and the index of each row among them; nothing has
changed yet), then *interned* (each distinct text gets the next free code unless it has one), and stays for good: codes
0, 1, ... n-1 are dense, never reused and never reordered, so a code means the same text in every version and snapshot.
Equality and joins use codes; the order of two symbols is the order of their texts by unicode code point, which is the
byte order of their UTF-8, and comes from `ranks` (ranks.py).

    stage(["b", "a", "b"])  ->  distinct ["b", "a"], indices [0, 1, 0]         table: {} still
    intern(distinct)        ->  codes [0, 1]                                   table: 0 = "b", 1 = "a"
    codes[indices]          ->  [0, 1, 0]                                      ranks: [0, -2**61]

Two forms of the same content: one Arrow string array (bulk work, all in C++) and one dict (single rows). Each is
extended lazily from the other's additions when it is next needed: a database that only loads in bulk never pays for the
dict. The empty table, the empty text and a text with any character but a lone surrogate are legal; null is not a text.

Costs: staging a column is linear in its bytes; interning k distinct texts is O(k) by dict for small k, else O(k + n) in
C++; `ranks` is O(log n) for one more text, O(n log n) where many came. One writer at a time; readers may decode while
it writes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lftj.values.codes import Misfit, to_text
from lftj.values.ranks import FEW, Ranks

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = -1
# Up to so many texts the dict is quicker than hashing the whole table in Arrow (30 ms and more per million entries).
SMALL = 2_000


class StagedTexts(NamedTuple):
    """A column of texts before it is interned: `indices`, int64[rows], into `distinct`, each text once."""

    indices: NDArray[np.int64]
    distinct: pa.Array


class SymbolTable:
    """The texts of one database and their codes. Append-only."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._array: pa.Array | None = None  # the first len(_array) texts
        self._recent: list[str] = []  # the texts after those
        self._codes: dict[str, int] = {}  # the first len(_codes) texts
        self._ranks = Ranks()

    def __len__(self) -> int:
        return (0 if self._array is None else len(self._array)) + len(self._recent)

    def __repr__(self) -> str:
        return f"SymbolTable({len(self)} texts)"

    # --- one text ---

    def code(self, text: str) -> int:
        """The code of a text, or `UNKNOWN`; interns nothing."""
        return self._dict().get(text, UNKNOWN)

    def intern_one(self, text: str) -> int:
        """The code of a text; a new one if it had none. `Misfit` if it is no text."""
        checked = to_text(text)
        code = self._dict().get(checked, UNKNOWN)
        return code if code != UNKNOWN else self._append(checked)

    def text(self, code: int) -> str:
        """The text of a code."""
        if code < 0:
            raise IndexError(code)
        with self._lock:
            size = 0 if self._array is None else len(self._array)
            if code >= size:
                return self._recent[code - size]
            return str(self._array[int(code)].as_py())  # type: ignore[index]

    # --- many texts ---

    def intern(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The codes of texts, new ones for those that had none; `Misfit` before anything is interned."""
        checked = [to_text(text) for text in texts]
        if len(checked) > SMALL:
            staged = stage(_array_of(checked))
            return self.intern_distinct(staged.distinct)[staged.indices]
        return np.fromiter((self.intern_one(text) for text in checked), np.int64, len(checked))

    def lookup(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """The codes of texts, `UNKNOWN` for those that have none; interns nothing."""
        known = self._dict()
        return np.fromiter((known.get(text, UNKNOWN) for text in texts), np.int64)

    def encode(self, values: Any) -> NDArray[np.int64]:
        """Intern a whole column (see `stage`) and give its codes; `Misfit` before anything is interned."""
        staged = stage(values)
        return self.intern_distinct(staged.distinct)[staged.indices]

    def lookup_array(self, values: Any) -> NDArray[np.int64]:
        """The codes of a whole column, `UNKNOWN` where the table has no such text; interns nothing."""
        staged = stage(values)
        return self._find(staged.distinct)[staged.indices]

    def intern_distinct(self, distinct: pa.Array) -> NDArray[np.int64]:
        """The codes of distinct texts, as `stage` leaves them: the bulk step that changes the table."""
        import pyarrow as pa

        with self._lock:
            codes = self._find(distinct)
            new = np.flatnonzero(codes == UNKNOWN)
            if len(new):
                codes[new] = np.arange(len(self), len(self) + len(new))
                fresh = distinct if len(new) == len(distinct) else distinct.take(pa.array(new))
                if len(new) <= SMALL:
                    self._recent += fresh.to_pylist()
                else:
                    self._array = pa.concat_arrays([self.texts(), fresh])
            return codes

    def decode(self, codes: NDArray[np.int64]) -> pa.Array:
        """The texts of codes, as a large_string array."""
        import pyarrow as pa

        return self.texts().take(pa.array(codes))

    def few(self, codes: NDArray[np.int64]) -> list[str]:
        """The texts of a few codes. Unlike `decode` it does not gather a table that grew into one array first."""
        import pyarrow as pa

        with self._lock:
            size = 0 if self._array is None else len(self._array)
            old = codes < size
            known = iter(self._array.take(pa.array(codes[old])).to_pylist() if self._array is not None else ())
            return [
                next(known) if is_old else self._recent[code - size]
                for is_old, code in zip(old.tolist(), codes.tolist(), strict=True)
            ]

    def texts(self) -> pa.Array:
        """All texts in code order, as one large_string array."""
        import pyarrow as pa

        with self._lock:
            if self._array is None:
                self._array = pa.array([], pa.large_string())
            if self._recent:
                self._array = pa.concat_arrays([self._array, pa.array(self._recent, pa.large_string())])
                self._recent = []
            return self._array

    def ranks(self) -> NDArray[np.int64]:
        """The rank of each code in text order: `ranks[c] < ranks[d]` exactly if text c < text d.

        They are not dense, and those that were handed out stay as they are when the table grows.
        """
        with self._lock:
            if more := len(self) - len(self._ranks):
                few = more * FEW <= len(self)
                if not (few and self._ranks.add(self._dict())):
                    self._ranks.rank_all(self.texts())
            return self._ranks.array

    def check(self) -> None:
        """The redundant forms agree and the texts are distinct."""
        texts = self.texts().to_pylist()
        assert len(set(texts)) == len(texts), "a text has two codes"
        assert self._codes == {text: code for code, text in enumerate(texts[: len(self._codes)])}, (
            "the dict names other codes"
        )
        if len(self._ranks) == len(texts):
            ranked = [texts[c] for c in np.argsort(self._ranks.array)]
            assert sorted(texts) == ranked, "ranks are not the order of the texts"

    # --- the two forms ---

    def _append(self, text: str) -> int:
        with self._lock:
            code = self._dict().get(text, UNKNOWN)
            if code != UNKNOWN:  # another thread, between the look and the lock
                return code
            code = len(self)
            self._recent.append(text)
            self._codes[text] = code
            return code

    def _dict(self) -> dict[str, int]:
        """The dict form, brought up to date."""
        known = self._codes
        with self._lock:
            if len(known) != len(self):
                behind = len(known)
                size = 0 if self._array is None else len(self._array)
                if self._array is not None and behind < size:
                    known.update(zip(self._array[behind:].to_pylist(), range(behind, size), strict=True))
                    behind = size
                known.update(zip(self._recent[behind - size :], range(behind, len(self)), strict=True))
        return known

    def _find(self, distinct: pa.Array) -> NDArray[np.int64]:
        if not len(self):
            return np.full(len(distinct), UNKNOWN, np.int64)
        if len(distinct) <= SMALL:
            return self.lookup(distinct.to_pylist())
        import pyarrow.compute as pc

        found = pc.fill_null(pc.index_in(distinct, value_set=self.texts()), UNKNOWN)
        codes: NDArray[np.int64] = found.to_numpy().astype(np.int64)
        return codes


def stage(values: Any) -> StagedTexts:
    """Reduce a column of texts to its distinct texts and the index of each row among them; `Misfit` if it holds null.

    `values` is an Arrow array of any text layout, a numpy array of str or objects, or a list or tuple of str.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from lftj.values import faults

    if isinstance(values, np.ndarray | list | tuple):
        values = _array_of(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.null_count:
        raise Misfit(faults.null("symbol"))
    if pa.types.is_dictionary(values.type):
        return _stage_dictionary(values)
    encoded = pc.dictionary_encode(values.cast(pa.large_string()))
    return StagedTexts(encoded.indices.to_numpy().astype(np.int64), encoded.dictionary)


def _stage_dictionary(values: pa.Array) -> StagedTexts:
    """A dictionary may hold texts that no row uses (unused pandas categories) and, by its format, one text twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from lftj.values import faults

    indices = values.indices.cast(pa.int64()).to_numpy()
    used = np.zeros(len(values.dictionary), bool)
    used[indices] = True
    texts = values.dictionary.cast(pa.large_string()).filter(pa.array(used))
    if texts.null_count:  # a null hidden in the dictionary is a null of the rows that point at it
        raise Misfit(faults.null("symbol"))
    merged = pc.dictionary_encode(texts)
    place = np.cumsum(used) - 1
    return StagedTexts(merged.indices.to_numpy().astype(np.int64)[place[indices]], merged.dictionary)


def _array_of(values: Sequence[str] | NDArray[Any]) -> pa.Array:
    """A large_string array of Python or numpy strings; `Misfit` if one is no text (Arrow would take bytes)."""
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        values = values.tolist()
    if isinstance(values, list | tuple) and not set(map(type, values)) <= {str}:
        values = [to_text(value) for value in values]
    try:
        return pa.array(values, pa.large_string())
    except UnicodeError:
        for value in values:
            to_text(value)
        raise
