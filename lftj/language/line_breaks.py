"""The lines of one item in the standard form (`formatting.py`): in one line what fits, opened up what does not.

What is opened up has one entry to a line. The lines have no line ends; a string or a comment of several lines, which
stays as it is, is within one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lftj.language.entries import Bracketed, ListEntry, Listing, Node, listing, nested, nesting
from lftj.language.pieces import LINE_COMMENT, Piece
from lftj.language.spacing import blanks

WIDTH = 100
INDENT = 4


def item_lines(pieces: Sequence[Piece], kind: str) -> list[str]:
    """The lines of an item of `kind`, which begins and ends with a token."""
    return _ItemLines(blanks(pieces, kind)).item(pieces)


def width(line: str) -> int:
    """The columns that a line takes, or the last one of several that stay as they are."""
    return len(line) - (line.rfind("\n") + 1)


def with_comments(line: str, comments: Sequence[str]) -> str:
    """A line and the comments behind it, apart by two blanks if they go on to its end."""
    return "".join([line, *(f"  {comment}" if comment.startswith("//") else f" {comment}" for comment in comments)])


class _ItemLines:
    """Lays out one item. `blanks`: the offsets of its pieces that have a blank before them."""

    def __init__(self, blanks: frozenset[int]) -> None:
        self.blanks = blanks

    def item(self, pieces: Sequence[Piece]) -> list[str]:
        arrow = _arrow(pieces)
        if arrow is None:
            return self._broken(nested(pieces), 0, 0, 0)
        dot = pieces[-1]
        head, body = nested(pieces[:arrow]), listing(pieces[arrow:-1])
        flat_head, flat_body = self._flat(head), self._flat_listing(body)
        if flat_head is not None and flat_body is not None:
            whole = f"{flat_head} {flat_body}{dot.text}"
            if len(whole) <= WIDTH:
                return [whole]
        lines = self._broken(head, 0, 0, 0)
        lines[-1] = with_comments(lines[-1], body.opening)
        return lines + self._listed(body, INDENT, dot.text)

    def _blank(self, node: Node) -> str:
        return " " if (node if isinstance(node, Piece) else node.open).start in self.blanks else ""

    # In one line; None if comments or line ends stand against it

    def _flat(self, nodes: Sequence[Node]) -> str | None:
        parts: list[str] = []
        for node in nodes:
            text = self._flat_node(node)
            if text is None:
                return None
            parts += [self._blank(node) if parts else "", text]
        return "".join(parts)

    def _flat_node(self, node: Node) -> str | None:
        if isinstance(node, Piece):
            return None if node.kind == LINE_COMMENT or "\n" in node.text else node.text
        inside = self._flat_listing(node.inside)
        if inside is None:
            return None
        blank = " " if node.open.kind == "_LBRACE" else ""
        return f"{node.open.text}{blank}{inside}{blank}{node.close.text}"

    def _flat_listing(self, body: Listing) -> str | None:
        if body.opening or body.closing or any(e.above or e.behind for entries in body.alternatives for e in entries):
            return None
        return _joined("; ", [self._flat_entries(entries) for entries in body.alternatives])

    def _flat_entries(self, entries: Sequence[ListEntry]) -> str | None:
        return _joined(", ", [self._flat(entry.nodes) for entry in entries])

    # In several lines

    def _broken(self, nodes: Sequence[Node], column: int, indent: int, tail: int) -> list[str]:
        """The nodes from `column` on: the first line without what stands before it, the others with their indent.

        `tail` is the width of what is to follow in the last line. Brackets that fit with what follows them up to the
        next ones stay closed.
        """
        lines = [""]
        before: Node | None = None
        for at, node in enumerate(nodes):
            blank = "" if before is None else self._blank(node)
            if isinstance(before, Piece) and before.kind == LINE_COMMENT:
                lines.append(" " * (indent + INDENT))
                column, blank = 0, ""
            elif isinstance(node, Piece) and node.kind == LINE_COMMENT:
                blank = "  "
            if isinstance(node, Piece):
                lines[-1] += blank + node.text
                column = 0 if "\n" in node.text else column
            elif self._fits(node, column + width(lines[-1]) + len(blank), nodes[at + 1 :], tail):
                lines[-1] += blank + str(self._flat_node(node))
            else:
                lines[-1] = with_comments(lines[-1] + blank + node.open.text, node.inside.opening)
                lines += self._listed(node.inside, indent + INDENT, "")
                lines.append(" " * indent + node.close.text)
                column = 0
            before = node
        return lines

    def _fits(self, node: Bracketed, column: int, following: Sequence[Node], tail: int) -> bool:
        """Whether brackets fit from `column` on, with what follows up to the next ones."""
        flat = self._flat_node(node)
        if flat is None:
            return False
        if not flat[1:-1]:
            return True
        end = column + len(flat)
        for other in following:
            if isinstance(other, Bracketed):
                empty = self._flat_node(other) == other.open.text + other.close.text
                if not empty:  # else there is nothing to open up
                    return end + len(self._blank(other)) < WIDTH
                end += 2
            elif other.kind == LINE_COMMENT:
                return end <= WIDTH
            else:
                end += len(self._blank(other) + other.text)
        return end + tail <= WIDTH

    def _listed(self, body: Listing, indent: int, end: str) -> list[str]:
        """A listing in lines of their own, the last entry followed by `end`."""
        margin = " " * indent
        flat = [self._alternative(entries, indent) for entries in body.alternatives]
        if len(flat) == 1 or None in flat:
            body = _with_comments_behind(body, closes=not end)
            flat = [self._alternative(entries, indent) for entries in body.alternatives]
        if len(flat) > 1 and None not in flat:
            lines = list(_one_to_a_line(body, [str(text) for text in flat], margin, end))
        else:
            lines = []
            for number, entries in enumerate(body.alternatives, 1):
                lines += [f"{margin};"] * (number > 1)
                lines += self._entries(entries, indent, end if number == len(body.alternatives) else "")
        return lines + [margin + comment for comment in body.closing]

    def _entries(self, entries: Sequence[ListEntry], indent: int, end: str) -> list[str]:
        """Entries, each in lines of its own."""
        lines: list[str] = []
        margin = " " * indent
        for number, entry in enumerate(entries, 1):
            lines += [margin + comment for comment in entry.above]
            if entry.nodes:
                mark = "," if number < len(entries) else end
                first, *others = self._broken(entry.nodes, indent, indent, len(mark))
                lines += [margin + first, *others]
                lines[-1] = with_comments(lines[-1] + mark, entry.behind)
        return lines

    def _alternative(self, entries: Sequence[ListEntry], indent: int) -> str | None:
        """An alternative in one line, if it fits and has no comments but above and behind it."""
        if any(entry.above for entry in entries[1:]) or any(entry.behind for entry in entries[:-1]):
            return None
        flat = self._flat_entries(entries)
        return flat if flat is not None and indent + len(flat) < WIDTH else None


def _with_comments_behind(body: Listing, *, closes: bool) -> Listing:
    """A listing whose alternatives end their lines, and so do the comments at their ends: they stand behind these then.

    `closes`: so does the last alternative, as the closing bracket has a line of its own.
    """
    alternatives: list[list[ListEntry]] = []
    for number, (*others, last) in enumerate(body.alternatives, 1):
        comment = last.nodes[-1] if len(last.nodes) > 1 and not last.behind else None
        if isinstance(comment, Piece) and comment.is_comment and (closes or number < len(body.alternatives)):
            last = replace(last, nodes=last.nodes[:-1], behind=[comment.text])
        alternatives.append([*others, last])
    return replace(body, alternatives=alternatives)


def _one_to_a_line(body: Listing, flat: Sequence[str], margin: str, end: str) -> Iterator[str]:
    for number, (entries, text) in enumerate(zip(body.alternatives, flat, strict=True), 1):
        yield from (margin + comment for comment in entries[0].above)
        yield with_comments(margin + text + (end if number == len(flat) else ";"), entries[-1].behind)


def _arrow(pieces: Sequence[Piece]) -> int | None:
    """Where the body of a rule begins: after `:-`, and after LogicBlox's `agg<<...>>`; None if there is none."""
    depth = 0
    for at, piece in enumerate(pieces, 1):
        depth += nesting(piece)
        if piece.kind == "_IF" and not depth:
            following = next((i for i in range(at, len(pieces)) if not pieces[i].is_comment), at)
            return following + 1 if pieces[following].kind == "AGG" else at
    return None


def _joined(separator: str, parts: Sequence[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return separator.join(known) if len(known) == len(parts) else None
