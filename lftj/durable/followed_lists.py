"""What heads are followed by, in a checkpoint: notes as JSON in its header, versions as pages, arrays as chunks.

    header     "followed": per head what it is followed by, its notes, and by name the numbers of its lists
               "followed_lists": of each list whose it is, and its bytes
    bodies     the lists, behind those of the relations: a lftj that does not know of them finds all that it reads

Nothing of it is an answer. What is damaged, or of other rules, is left out, and made again when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lftj.durable.chunks import Chunks, Ints
from lftj.durable.container import Container
from lftj.durable.segments import PageList, Segments
from scantree.version import Rows, Store, Version


class KeptParts(NamedTuple):
    """What a head is followed by, as it is at one moment.

    `by`: what it is · `noted`: as JSON · `versions` and `arrays`, by name: an array is rows int64[width, n], and what
    says where its chunks end.
    """

    by: str
    noted: Mapping[str, Any]
    versions: Mapping[str, Version]
    arrays: Mapping[str, tuple[Rows, Callable[[Rows], Ints]]]


class WrittenLists(NamedTuple):
    """`noted`: parts of a header · `bodies`: the lists · `used`: whose they are · `named`: their segments."""

    noted: dict[str, Any]
    bodies: list[bytes]
    used: set[str]
    named: set[int]


def write(segments: Segments, chunks: Chunks, followed: Mapping[str, KeptParts]) -> WrittenLists:
    """Write what is not in the file yet of what heads are followed by."""
    heads: dict[str, Any] = {}
    lists: list[list[Any]] = []
    written = WrittenLists({"followed": heads, "followed_lists": lists}, [], set(), set())

    def number(whose: str, listed: PageList) -> int:
        body = listed.encoded()
        lists.append([whose, len(body)])
        written.bodies.append(body)
        written.used.add(whose)
        written.named.update(listed.segments())
        return len(lists) - 1

    for head, one in followed.items():
        numbers = {}
        for name, version in one.versions.items():
            whose = f"{name} of {head}"
            numbers[name] = number(whose, segments.save(whose, version))
        for name, (rows, ends) in one.arrays.items():
            whose = f"{name} of {head}"
            numbers[name] = number(whose, chunks.save(whose, rows, ends(rows)))
        heads[head] = {"by": one.by, "noted": one.noted, "lists": numbers}
    chunks.forget(written.used)
    return written


class SavedParts:
    """What a checkpoint has of one head: `by`, `noted`, and by name the lists of its versions and arrays."""

    def __init__(self, head: str, kept: Mapping[str, Any], lists: Mapping[str, PageList], container: Container) -> None:
        self.head, self.by, self.noted, self.lists = head, kept["by"], kept["noted"], lists
        self._container = container
        self._found: list[Callable[[Segments, Chunks], None]] = []

    def version(self, name: str, store: Store) -> Version:
        """A version. Raises `DatabaseFileError` if it is damaged."""
        whose, listed = f"{name} of {self.head}", self.lists[name]
        version = listed.read(self._container, store)
        self._found.append(lambda segments, _: segments.adopt(whose, version, listed))
        return version

    def array(self, name: str) -> Rows:
        """An array, int64[width, n]. Raises `DatabaseFileError` if it is damaged."""
        whose, listed = f"{name} of {self.head}", self.lists[name]
        rows, hashes = Chunks.read(self._container, listed)
        self._found.append(lambda _, chunks: chunks.adopt(whose, hashes))
        return rows

    def adopt(self, segments: Segments, chunks: Chunks) -> None:
        """What was read is known to be in the file."""
        for adopt in self._found:
            adopt(segments, chunks)
