"""The mark of a file, by which the write-ahead log that a crash leaves beside it is known to be its own.

SQLite reads whatever log lies beside a file, also where the file was replaced by a backup since, and then pages of one
database take the place of those of another. The mark is a row of the table `meta`:

    id         random: new whenever a process begins to write to the file, and in every copy that `backup` makes
    salt       the first salt of the log that is written from then on; SQLite adds one whenever it begins that anew.
               None: not known yet; -1: no log is the file's, which is a copy
    follows    the id of the mark that the file had before

It is in the file itself before anything else is written to the log. So a log is the file's own if its salt is that of
the mark in the file alone, or comes soon after it. Or, where the process ended before the mark was in the file as a
whole, if the mark in the log is that of the file, or follows it, and the log has not begun anew since: all is there.

Source: "The WAL-Mode File Format", sqlite.org/walformat.html.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

# Times that a log begins anew before its salt is noted again, at most; and those after which it is no more known.
RENEWED, KNOWN = 1 << 12, 1 << 14
NO_LOG = -1


class Mark(NamedTuple):
    """A mark; `follows` "": none."""

    id: str
    salt: int | None = None
    follows: str = ""

    @classmethod
    def new(cls, before: Mark | None = None) -> Mark:
        """Another mark, that of a file with the mark `before`."""
        return cls(secrets.token_hex(8), None, "" if before is None else before.id)

    @classmethod
    def of_copy(cls) -> Mark:
        """The mark of a copy of a file."""
        return cls.new()._replace(salt=NO_LOG)

    @classmethod
    def read(cls, text: str) -> Mark:
        """The mark that was written as such a text."""
        id, salt, follows = text.split(" ")
        return cls(id, int(salt) if salt else None, follows)

    def __str__(self) -> str:
        return f"{self.id} {'' if self.salt is None else self.salt} {self.follows}"

    def knows(self, salt: int) -> bool:
        """Whether a log with this salt is that of the mark, as it was then or begun anew since."""
        return self.salt not in (None, NO_LOG) and (salt - self.salt) % (1 << 32) < KNOWN

    def in_log_of(self, before: Mark, salt: int) -> bool:
        """Whether this mark, which is in a log with that salt, was made there over a file with the mark `before`.

        They have the same id where the log was being taken over into the file, as far as before its salt was known.
        """
        same = self.id == before.id and before.salt != NO_LOG
        return (same or self.follows == before.id) and self.salt in (None, salt)
