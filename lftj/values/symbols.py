"""The symbol table: the texts of a database, numbered in the order in which they came.

A text is first *staged* (a long column is reduced to its distinct texts and the index of each row among them; nothing
has changed yet), then *interned* (each text gets the next free code unless it has one), and stays for good: codes
0, 1, ... n-1 are dense, never reused and never reordered, so a code means the same text in every version and snapshot.
Equality and joins use codes; the order of two symbols is the order of their texts by unicode code point, which is the
byte order of their UTF-8, and comes from `ranks` (ranks.py).

    stage(["b", "a", "b"])  ->  texts ["b", "a"], indices [0, 1, 0]            table: {} still
    coded                   ->  [0, 1, 0]                                      table: 0 = "b", 1 = "a"
                                                                               ranks: [0, -2**61]

Forms of the same content: one Arrow string array, to decode; one dict, for single rows; and, from the first batch of
more than `SMALL` texts on, an index (text_index.py), which then holds the array. Each is extended lazily from the
others' additions when it is next needed: a database that only loads in bulk never pays for the dict. The empty table,
the empty text and a text with any character but a lone surrogate are legal; null is not a text.

Costs: staging and interning a column are linear in its bytes, however large the table is; `ranks` is O(log n) for one
more text, O(n log n) where many came. One writer at a time; readers may decode while it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lftj.errors import ForkError
from lftj.values import arrow_arrays, faults, ranks
from lftj.values.text_index import TextIndex
from lftj.values.type_table import from_stored, in_dictionary, to_stored, type_of
from lftj.values.value_type import SYMBOL, Misfit, ValueType
from scantree.locks import Lock

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = -1
# The code of null in columns of the dictionary.
NULL = ValueType.null
_SYMBOL = type_of("symbol")
# Up to so many texts the dict will do, and no index is made; so many may be missing in the dict that is still used.
SMALL = 2_000
# Up to so many the dict is quicker than an index that is there.
FEW = 64
# Rows up to which a staged column stays as it is: finding its distinct texts takes longer than interning all of them.
# And texts that become an array at a time.
SHORT = 20_000
# Rows of a longer one that are looked at first.
SAMPLED = 1_000


class StagedTexts(NamedTuple):
    """A column of texts before it is interned.

    `indices`: int64[rows] into `texts`; None: it is these texts · `missing`: the rows that are null, whatever text
    stands there; None if none is.
    """

    indices: NDArray[np.int64] | None
    texts: pa.Array
    missing: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.texts if self.indices is None else self.indices)

    def of_rows(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of the rows, from those of `texts`."""
        found = codes if self.indices is None else codes[self.indices]
        return found if self.missing is None else np.where(self.missing, NULL, found)

    def reduced(self) -> StagedTexts:
        """The same with distinct texts: what waits takes no more memory than it must."""
        return self if self.indices is not None else _reduced(self.texts)._replace(missing=self.missing)

    def with_nulls(self, rows: NDArray[np.int64]) -> StagedTexts:
        """The same with null in `rows`."""
        if not len(rows):
            return self
        missing = np.zeros(self.rows, bool)
        missing[rows] = True
        return self._replace(missing=missing)


class SymbolTable:
    """The texts of one database and their codes. Append-only."""

    def __init__(self) -> None:
        self._lock = Lock(ForkError, "the texts of the database")
        self._array: pa.Array | None = None  # the first len(_array) texts
        self._recent: list[str] = []  # the texts after those
        self._codes: dict[str, int] = {}  # the first len(_codes) texts
        self._index: TextIndex | None = None  # of the first len(_array) texts, if there is one
        self._ranks = ranks.Ranks()

    def __len__(self) -> int:
        return (0 if self._array is None else len(self._array)) + len(self._recent)

    def __repr__(self) -> str:
        return f"SymbolTable({len(self)} texts)"

    # --- one text ---

    def code(self, text: str) -> int:
        """The code of a text, or `UNKNOWN`; interns nothing."""
        if self._by_index(1):
            try:
                with self._lock:
                    return self._indexed().find_one(str(_SYMBOL.read(text)))
            except Misfit:
                return UNKNOWN
        return self._dict().get(text, UNKNOWN)

    def intern_one(self, text: str) -> int:
        """The code of a text; a new one if it had none. `Misfit` if it is no text."""
        checked = str(_SYMBOL.read(text))
        if self._by_index(1):
            return int(self.intern_array(_array_of([checked]))[0])
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

    # --- values of any type ---

    def intern_value(self, value: object, type: str) -> int:
        """The code of a value of a type, a new one if it is in the dictionary and had none; `Misfit` if it is none."""
        stored = to_stored(value, type)
        return self.intern_one(stored) if isinstance(stored, str) else stored

    def value(self, code: int, type: str) -> Any:
        """The Python value of a code of a type; None for null."""
        stored = self.text(code) if in_dictionary(type) and code >= 0 else code
        return from_stored(stored, type)

    def values(self, codes: NDArray[np.int64], type: str) -> list[Any]:
        """The Python values of codes of a type."""
        made = type_of(type)
        if not made.nullable:
            return self._values(codes, type)
        here = codes != made.null
        if here.all():
            return self._values(codes, type)
        found = iter(self._values(codes[here], type))
        return [next(found) if known else None for known in here.tolist()]

    def _values(self, codes: NDArray[np.int64], type: str) -> list[Any]:
        made = type_of(type)
        if not made.in_dictionary:
            return made.values(codes)
        texts = self.few(codes) if len(codes) <= FEW else self.decode(codes).to_pylist()
        return texts if made.family == SYMBOL else [made.shown(text) for text in texts]

    def order(self, codes: NDArray[np.int64], type: str) -> NDArray[np.int64]:
        """Numbers that compare as the values of the codes do; null's is its code."""
        if not in_dictionary(type):
            return codes
        # Columns of rows may hold null where the type of a variable does not: another condition keeps these apart.
        return np.where(codes < 0, codes, self.ranks()[np.maximum(codes, 0)] if len(self) else codes)

    # --- many texts ---

    def intern(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The codes of texts, new ones for those that had none; `Misfit` before anything is interned."""
        return self.intern_array(_array_of([str(_SYMBOL.read(text)) for text in texts]))

    def lookup(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """The codes of texts, `UNKNOWN` for those that have none; interns nothing."""
        if self._by_index(1):
            return self._find(_array_of([str(_SYMBOL.read(text)) for text in texts]))
        known = self._dict()
        return np.fromiter((known.get(text, UNKNOWN) for text in texts), np.int64)

    def encode(self, values: Any) -> NDArray[np.int64]:
        """Intern a whole column (see `stage`) and give its codes; `Misfit` before anything is interned."""
        staged = stage(values)
        return staged.of_rows(self.intern_array(staged.texts))

    def lookup_array(self, values: Any) -> NDArray[np.int64]:
        """The codes of a whole column, `UNKNOWN` where the table has no such text; interns nothing."""
        staged = stage(values)
        return staged.of_rows(self._find(staged.texts))

    def intern_array(self, texts: pa.Array) -> NDArray[np.int64]:
        """The codes of a large_string array without nulls, which may repeat; new ones for texts that had none."""
        with self._lock:
            if self._by_index(len(texts)):
                return self._added(self._indexed(), texts)
            known, given = self._dict(), texts.to_pylist()
            codes = list(map(known.get, given))
            if None in codes:
                for i, text in enumerate(given):
                    if codes[i] is None:
                        if text not in known:  # it may come twice
                            self._recent.append(text)
                            known[text] = len(known)
                        codes[i] = known[text]
            return np.array(codes, np.int64)

    def decode(self, codes: NDArray[np.int64]) -> pa.Array:
        """The texts of codes, as a large_string array."""
        return self.texts().take(arrow_arrays.numbers(codes))

    def few(self, codes: NDArray[np.int64]) -> list[str]:
        """The texts of a few codes. Unlike `decode` it does not gather a table that grew into one array first."""
        with self._lock:
            size = 0 if self._array is None else len(self._array)
            old = codes < size
            numbers = arrow_arrays.numbers(codes[old])
            known = iter(() if self._array is None else self._array.take(numbers).to_pylist())
            return [
                next(known) if is_old else self._recent[code - size]
                for is_old, code in zip(old.tolist(), codes.tolist(), strict=True)
            ]

    def texts(self) -> pa.Array:
        """All texts in code order, as one large_string array."""
        import pyarrow as pa

        with self._lock:
            if self._array is None:
                self._array = arrow_arrays.texts([])
            if self._recent:
                # In slices: Ctrl-C waits for each.
                starts = range(0, len(self._recent), SHORT)
                recent = [arrow_arrays.texts(self._recent[lo : lo + SHORT]) for lo in starts]
                if self._index is None:
                    self._array = pa.concat_arrays([self._array, *recent])
                else:
                    self._added(self._index, pa.concat_arrays(recent))
                self._recent = []
            return self._array

    def ranks(self) -> NDArray[np.int64]:
        """The rank of each code in text order: `ranks[c] < ranks[d]` exactly if text c < text d.

        They are not dense, and those that were handed out stay as they are when the table grows.
        """
        with self._lock:
            if more := len(self) - len(self._ranks):
                few = more * ranks.FEW <= len(self)
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
        if self._index is not None:
            assert self._index.find(self.texts()).tolist() == list(range(len(texts))), "the index has other numbers"
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

    def _by_index(self, count: int) -> bool:
        """Whether `count` texts are looked up in the index: they are many, or the dict is far behind it."""
        if self._index is None:
            return count > SMALL
        return count > FEW or len(self) - len(self._codes) > SMALL

    def _indexed(self) -> TextIndex:
        """The index, brought up to date."""
        texts = self.texts()
        if self._index is None:
            self._index = TextIndex()
            self._added(self._index, texts)
        return self._index

    def _added(self, index: TextIndex, texts: pa.Array) -> NDArray[np.int64]:
        """The codes of texts in the index, which holds the array afterwards."""
        try:
            codes = index.add(texts)
            self._array = index.texts()
        except BaseException:
            self._index = None  # it may hold what the table does not
            raise
        return codes

    def _find(self, texts: pa.Array) -> NDArray[np.int64]:
        with self._lock:
            if self._by_index(len(texts)):
                return self._indexed().find(texts)
            known = self._dict()
            return np.fromiter((known.get(text, UNKNOWN) for text in texts.to_pylist()), np.int64, len(texts))


def coded(parts: Sequence[StagedTexts], intern: Callable[[pa.Array], NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The codes of staged columns, all of whose texts are interned by one call."""
    if not parts:
        return []
    import pyarrow as pa  # here, since numbers need none of it

    codes = intern(parts[0].texts if len(parts) == 1 else pa.concat_arrays([part.texts for part in parts]))
    ends = np.cumsum([len(part.texts) for part in parts])
    return [part.of_rows(codes[end - len(part.texts) : end]) for part, end in zip(parts, ends, strict=True)]


def stage(values: Any) -> StagedTexts:
    """A column of texts, reduced to its distinct ones if it is long; `Misfit` if it holds null.

    `values` is an Arrow array of any text layout, a numpy array of str or objects, or a list or tuple of str.
    """
    import pyarrow as pa

    if isinstance(values, np.ndarray | list | tuple):
        values = _array_of(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.null_count:
        raise Misfit(faults.null("symbol"))
    if pa.types.is_dictionary(values.type):
        return _stage_dictionary(values)
    texts = values if pa.types.is_large_string(values.type) else values.cast(pa.large_string())
    return StagedTexts(None, texts) if len(texts) <= SHORT or _mostly_distinct(texts) else _reduced(texts)


def _mostly_distinct(texts: pa.Array) -> bool:
    """Whether a text comes less than twice, as far as a sample tells: interning all takes as long as finding that out.

    Of k rows, drawn from n of which each text has r, about k^2 (r - 1) / 2n have a text that was drawn before.
    """
    import pyarrow.compute as pc

    n = len(texts)
    sample = texts.take(arrow_arrays.numbers(np.arange(0, n, max(1, n // SAMPLED))))
    repeated = len(sample) - pc.count_distinct(sample).as_py()
    return bool(2 * repeated * n < len(sample) ** 2)


def _reduced(texts: pa.Array) -> StagedTexts:
    """Distinct texts, in the order in which they come, and which of them each row has."""
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(texts)
    return StagedTexts(arrow_arrays.values_of(encoded.indices).astype(np.int64), encoded.dictionary)


def _stage_dictionary(values: pa.Array) -> StagedTexts:
    """A dictionary may hold texts that no row uses (unused pandas categories) and, by its format, one text twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    indices = arrow_arrays.values_of(values.indices.cast(pa.int64()))
    used = np.zeros(len(values.dictionary), bool)
    used[indices] = True
    texts = values.dictionary.cast(pa.large_string()).filter(arrow_arrays.flags(used))
    if texts.null_count:  # a null hidden in the dictionary is a null of the rows that point at it
        raise Misfit(faults.null("symbol"))
    merged = pc.dictionary_encode(texts)
    place = np.cumsum(used) - 1
    return StagedTexts(arrow_arrays.values_of(merged.indices).astype(np.int64)[place[indices]], merged.dictionary)


def _array_of(values: Sequence[str] | NDArray[Any]) -> pa.Array:
    """A large_string array of Python or numpy strings; `Misfit` if one is no text (Arrow would take bytes)."""
    import pyarrow as pa

    of_texts = isinstance(values, np.ndarray) and values.dtype.kind == "U"
    # Arrow ends numpy's texts at their first NUL; a list of them is as fast.
    if isinstance(values, np.ndarray) and values.dtype.kind in "OU":
        values = values.tolist()
    if isinstance(values, list | tuple) and not of_texts and not set(map(type, values)) <= {str}:
        values = [str(_SYMBOL.read(value)) for value in values]
    try:
        return pa.array(values, pa.large_string())
    except UnicodeError:
        for value in values:
            _SYMBOL.read(value)
        raise
