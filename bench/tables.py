"""Tables in Markdown, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Sequence


class Table:
    """Markdown rows under a header; the first `left` columns and a remark are left-aligned, the others right."""

    def __init__(self, *header: str, left: int = 1) -> None:
        marks = ["---" if i < left or name == "remark" else "---:" for i, name in enumerate(header)]
        self.lines = [_row(header), _row(marks)]

    def add(self, *cells: str) -> None:
        """One row."""
        self.lines.append(_row(cells))

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def short(value: float | None) -> str:
    """A figure with three digits that count; a dash if there is none."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
