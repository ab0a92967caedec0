"""Bad rows that `--on-error quarantine` leaves out: reported in a file beside the output, or on stderr."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lftj.arguments import file_name
from lftj.cli.outcome import say

if TYPE_CHECKING:
    from lftj.io.rejects import Rejects

_REJECT_FIELDS = ("source", "line", "column", "text", "reason")


def tell_rejects(rejects: dict[str, Rejects], inputs: Sequence[str], folder: Path | None) -> None:
    """Report the bad rows of each of `inputs`: in `<relation>.rejects`, or on stderr if there is no folder for it.

    A file of that name from an earlier run goes.
    """
    for name in dict.fromkeys(inputs):
        path = None if folder is None else folder / file_name(f"{name}.rejects")
        if name not in rejects:
            if path is not None:
                path.unlink(missing_ok=True)
            continue
        count, table = len(rejects[name]), _as_table(rejects[name])
        left_out = f"lftj: {count:,} bad {'row' if count == 1 else 'rows'} of `{name}` left out"
        if path is None:
            say(f"{left_out}:\n{table.rstrip()}")
            continue
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        beside.write_text(table, encoding="utf-8", errors="backslashreplace")
        os.replace(beside, path)
        say(f"{left_out}; see {path}")


def _as_table(rejects: Rejects) -> str:
    text = io.StringIO()
    table = csv.writer(text, "excel-tab", lineterminator="\n")
    table.writerow(_REJECT_FIELDS)
    table.writerows([getattr(reject, field) for field in _REJECT_FIELDS] for reject in rejects)
    return text.getvalue()
