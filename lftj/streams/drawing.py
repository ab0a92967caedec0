"""Drawings of circuits, as the paper draws them: operators in boxes, streams as arrows, delays on the way back.

Nodes stand in layers from left to right: each after what it reads, but for what comes back through a delay. A nested
circuit is drawn in a frame. Streams are labelled with the rows that passed at the last step, boxes with its time.
The drawing is one SVG element without scripts or references.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lftj.html import escaped, printable
from lftj.streams.graph import Graph, Node
from lftj.streams.nested import Leave, Nested
from lftj.streams.operators import Input

# Pixels: of a letter, a line, a box's margin, between layers and between boxes of a layer.
LETTER, LINE, MARGIN, ACROSS, DOWN = 6.6, 30, 9, 46, 16
STYLE = (
    "font-family:ui-monospace,monospace;font-size:11px;--ink:#1c2733;--paper:#f6f8fa;--accent:#0b6bcb;--soft:#7b8794"
)


@dataclass(slots=True)
class Box:
    """A node in a drawing: its place, size and what is written in it."""

    node: Node
    text: str
    width: float
    height: float = LINE
    x: float = 0.0
    y: float = 0.0
    inside: Drawing | None = None


@dataclass(slots=True)
class Drawing:
    """Boxes with their places, and the size of the whole."""

    boxes: dict[int, Box] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def svg(graph: Graph, title: str) -> str:
    """The drawing of a circuit."""
    drawing = laid_out(graph, _output_names(graph))
    title = printable(title)
    width = max(drawing.width, len(title) * LETTER) + 2 * ACROSS
    height = drawing.height + 2 * DOWN + LINE
    body = _elements(graph, drawing, ACROSS, DOWN + LINE)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{escaped(title)}" style="{STYLE}">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0L8,4L0,8z" fill="#7b8794"/></marker></defs>'
        f'<text x="{ACROSS}" y="20" style="font-weight:600" fill="#1c2733">{escaped(title)}</text>{"".join(body)}</svg>'
    )


def _output_names(graph: Graph) -> dict[int, list[str]]:
    """The names of the outputs that a node has, by its number."""
    names: dict[int, list[str]] = {}
    for name, node in graph.outputs.items():
        names.setdefault(node.number, []).append(name)
    return names


def laid_out(graph: Graph, names: Mapping[int, Sequence[str]]) -> Drawing:
    """The boxes of a circuit in layers; `names`: of its outputs, by the numbers of their nodes."""
    order = graph.order()
    layers: dict[int, int] = {}
    for node in order:
        reads = [] if node.operator.strict else node.inputs
        layers[node.number] = 1 + max((layers.get(read.number, 0) for read in reads), default=-1)
    # A strict node stands where what it delays is far enough to the left, if that is not behind its readers.
    rows: dict[int, list[Box]] = {}
    drawing = Drawing()
    for node in order:
        text = node.operator.label if not node.name else f"{node.name}: {node.operator.label}"
        text = printable(text + "".join(f"  → {name}" for name in names.get(node.number, ())))
        text = text if len(text) <= 44 else text[:43] + "…"
        box = Box(node, text, len(text) * LETTER + 2 * MARGIN)
        if isinstance(node.operator, Nested):
            box.inside = laid_out(node.operator.graph, {})  # its outputs are numbered
            box.width = max(box.width, box.inside.width + 2 * MARGIN)
            box.height = box.inside.height + LINE + 2 * MARGIN
        drawing.boxes[node.number] = box
        rows.setdefault(layers[node.number], []).append(box)
    x = 0.0
    for layer in sorted(rows):
        boxes = rows[layer]
        boxes.sort(key=lambda box: _centre(box, drawing))
        y = 0.0
        for box in boxes:
            box.x, box.y = x, max(y, 0.0)
            y = box.y + box.height + DOWN
        drawing.height = max(drawing.height, y - DOWN)
        x += max(box.width for box in boxes) + ACROSS
    drawing.width = max(0.0, x - ACROSS)
    return drawing


def _centre(box: Box, drawing: Drawing) -> float:
    """The mean height of what a box reads, so that arrows cross little."""
    reads = [] if box.node.operator.strict else box.node.inputs
    heights = [drawing.boxes[read.number].y for read in reads if read.number in drawing.boxes]
    return sum(heights) / len(heights) if heights else 0.0


def _elements(graph: Graph, drawing: Drawing, dx: float, dy: float) -> list[str]:
    """The SVG elements of a circuit whose upper left corner is at (dx, dy)."""
    made: list[str] = []
    seen = graph.seen
    for box in drawing.boxes.values():
        for read in box.node.inputs:
            if read.number in drawing.boxes:
                made.append(_arrow(drawing.boxes[read.number], box, dx, dy, _rows(seen, read)))
    for box in drawing.boxes.values():
        made += _box(box, dx, dy, seen)
        if box.inside is not None:
            assert isinstance(box.node.operator, Nested)
            made += _elements(box.node.operator.graph, box.inside, dx + box.x + MARGIN, dy + box.y + LINE)
    return made


def _rows(seen: Mapping[int, tuple[int, float]], node: Node) -> str:
    return f"{seen[node.number][0]:,}" if node.number in seen and not isinstance(node.operator, Nested) else ""


def _box(box: Box, dx: float, dy: float, seen: Mapping[int, tuple[int, float]]) -> list[str]:
    x, y = box.x + dx, box.y + dy
    strict, ends = box.node.operator.strict, isinstance(box.node.operator, Input | Leave)
    stroke = "#0b6bcb" if strict else "#1c2733"
    fill = "none" if box.inside is not None else "#e8f1fb" if ends else "#f6f8fa"
    dash = ' stroke-dasharray="5 3"' if box.inside is not None else ""
    place = str(box.node.span) if box.node.span.line else ""
    hint = "; ".join(filter(None, [box.node.operator.label, box.node.why, place]))
    made = [
        f"<g><title>{escaped(hint)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{12 if ends else 4}" fill="{fill}" stroke="{stroke}"{dash}/>'
        f'<text x="{x + MARGIN:.1f}" y="{y + 19:.1f}" fill="#1c2733">{escaped(box.text)}</text>'
    ]
    if box.node.number in seen and seen[box.node.number][1] >= 5e-5:
        time = f"{seen[box.node.number][1] * 1e3:.1f} ms"
        made.append(f'<text x="{x + MARGIN:.1f}" y="{y - 3:.1f}" fill="#7b8794" font-size="9">{time}</text>')
    return [*made, "</g>"]


def _arrow(start: Box, end: Box, dx: float, dy: float, label: str) -> str:
    x0, y0 = start.x + start.width + dx, start.y + min(start.height, LINE) / 2 + dy
    x1, y1 = end.x + dx, end.y + min(end.height, LINE) / 2 + dy
    if x1 > x0:
        middle = (x0 + x1) / 2
        path = f"M{x0:.1f},{y0:.1f}C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        at_x, at_y = x0 + 4, y0 - 3
    else:  # back through a delay: below both
        low = max(start.y + start.height, end.y + end.height) + dy + DOWN
        x0, y0 = start.x + start.width / 2 + dx, start.y + start.height + dy
        x1, y1 = end.x + end.width / 2 + dx, end.y + end.height + dy
        path = f"M{x0:.1f},{y0:.1f}C{x0:.1f},{low:.1f} {x1:.1f},{low:.1f} {x1:.1f},{y1:.1f}"
        at_x, at_y = x0 + 4, y0 + 10
    text = f'<text x="{at_x:.1f}" y="{at_y:.1f}" fill="#7b8794" font-size="9">{label}</text>' if label else ""
    return f'<path d="{path}" fill="none" stroke="#7b8794" marker-end="url(#tip)"/>{text}'


def text(graph: Graph, title: str, indent: str = "") -> str:
    """A circuit as lines: one per node, in the order in which they run, with the proposition that put it there."""
    order = graph.order()
    numbers = {node.number: i for i, node in enumerate(order)}
    names = _output_names(graph)
    left = []
    for node in order:
        read = ", ".join(f"s{numbers[read.number]}" for read in node.inputs if read.number in numbers)
        label = node.operator.label + (f" ({read})" if read else "")
        called = f"{node.name} = " if node.name else ""
        out = "".join(f"  → {name}" for name in names.get(node.number, ()))
        left.append(printable(f"{indent}s{numbers[node.number]} = {called}{label}{out}"))
    width = min(80, max((len(line) for line in left), default=0))
    lines = [printable(title)] if title else []
    for node, line in zip(order, left, strict=True):
        seen = graph.seen.get(node.number)
        figures = "" if seen is None else f"{seen[0]:>9,} rows {seen[1] * 1e3:8.2f} ms"
        lines.append(f"{line:<{width}}  {figures:<{27 if graph.seen else 0}} {node.why}".rstrip())
        if isinstance(node.operator, Nested):
            lines.append(text(node.operator.graph, "", indent + "    "))
    return "\n".join(lines)
