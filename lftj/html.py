"""What notebooks show: small pieces of HTML, one style for all of them, and every text of the user's escaped.

    shown(title, table(names, types, rows), more(3))        -> <div class="lftj"><style>...</style>...</div>

The style takes the notebook's own colours and only makes them fainter; green and red are of a middle tone. So it reads
in light and in dark themes. Nothing is loaded from anywhere.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

# What Python does not print and terminals show well: blanks, and joiners within words and emoji.
_SEEN = "\u00a0\u3000\u200c\u200d"
# What XML has no character for, so that no drawing may hold it.
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
INSERTED, ERASED = "inserted", "erased"
# Types whose values stand to the left, as in tables of text (`lftj.results.text_table`); "" is no type.
_TO_LEFT = ("symbol", "uuid", "bytes", "")
STYLE = """
.lftj table { border-collapse: collapse; margin: 0.3em 0; }
.lftj th, .lftj td { padding: 0.15em 0.7em; text-align: left; border-bottom: 1px solid rgba(128, 128, 128, 0.3); }
.lftj .number { text-align: right; font-variant-numeric: tabular-nums; }
.lftj .faint { opacity: 0.65; font-weight: normal; }
.lftj .inserted td { background: rgba(46, 160, 67, 0.2); }
.lftj .erased td { background: rgba(248, 81, 73, 0.2); }
.lftj .erased .value { text-decoration: line-through; }
.lftj pre { background: none; color: inherit; white-space: pre; overflow-x: auto; }
.lftj .error { border-left: 3px solid rgb(220, 80, 70); padding-left: 0.8em; }
"""


def escaped(text: str) -> str:
    """A text within an element or attribute of HTML or XML; characters that XML does not have are spelled."""
    return html.escape(_NOT_IN_XML.sub(lambda found: _spelled(found[0]), text))


def _spelled(char: str) -> str:
    """A character as Python writes it in a string."""
    return char.encode("unicode_escape").decode()


def shown(*pieces: str) -> str:
    """An output of a notebook that consists of these pieces."""
    return f'<div class="lftj"><style>{STYLE}</style>{"".join(pieces)}</div>'


def title(text: str, note: str = "") -> str:
    """A line that says what follows."""
    return f"<p><code>{escaped(text)}</code> {_faint(note)}</p>"


def _faint(text: str) -> str:
    """A text beside another, which says more."""
    return f'<span class="faint">{escaped(text)}</span>'


def cell(value: object, width: int = 32) -> str:
    """A value as one short line of text, for terminals as well: what does not print is spelled, a long text is cut."""
    text = repr(value) if isinstance(value, float) else str(value)
    text = printable(text)
    return text[: width - 1] + "…" if len(text) > width and isinstance(value, str | bytes) else text


def printable(text: str) -> str:
    """A text for a line of a terminal: line ends, sequences that a terminal obeys and the like are spelled."""
    if text.isprintable():
        return text
    kept = [c if c.isprintable() or c in _SEEN else _spelled(c) for c in text]
    return "".join(kept)


def table(
    names: Sequence[str],
    types: Sequence[str],
    rows: Iterable[Sequence[object]],
    kinds: Iterable[str] | None = None,
) -> str:
    """A table with the names and types of its columns. `kinds`: INSERTED or ERASED for each row, of a delta."""
    aligned = ["" if type.removesuffix("?") in _TO_LEFT else ' class="number"' for type in types]
    head = "".join(
        f"<th{place}>{escaped(name)}<br>{_faint(type)}</th>"
        for name, type, place in zip(names, types, aligned, strict=True)
    )
    body = []
    marks = iter(kinds or ())
    for row in rows:
        kind = next(marks, "")
        cells = "".join(f"<td{place}>{_value(value, kind)}</td>" for value, place in zip(row, aligned, strict=True))
        if kind:
            body.append(f'<tr class="{kind}"><td>{"+" if kind == INSERTED else "−"}</td>{cells}</tr>')
        else:
            body.append(f"<tr>{cells}</tr>")
    corner = "<th></th>" if kinds is not None else ""
    return f"<table><thead><tr>{corner}{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def plain_table(names: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> str:
    """A table of words; the columns named in `numbers` are of figures."""
    places = [' class="number"' if name in numbers else "" for name in names]
    lines = [
        "".join(f"<{tag}{place}>{escaped(str(held))}</{tag}>" for held, place in zip(row, places, strict=True))
        for tag, row in [("th", names), *(("td", row) for row in rows)]
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines[1:])
    return f"<table><thead><tr>{lines[0]}</tr></thead><tbody>{body}</tbody></table>"


def _value(value: object, kind: str) -> str:
    text = escaped(cell(value))
    return f'<span class="value">{text}</span>' if kind else text


def more(count: int) -> str:
    """How many rows are not shown; nothing if all are."""
    return f'<p class="faint">... {count:,} more</p>' if count > 0 else ""


def text(lines: str) -> str:
    """Text as it stands."""
    return f"<pre>{escaped(lines)}</pre>"


def error(lines: str) -> str:
    """The message of an error."""
    return f'<div class="error">{text(lines)}</div>'
