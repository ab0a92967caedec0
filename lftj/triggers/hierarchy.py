"""The hierarchy of maps as a picture: which maps a map is kept from, and by events on which relations.

    MapHierarchy(program)            in a notebook the drawing; `.dot()` for Graphviz
    svg([(title, hierarchy), ...])   several as one drawing

Maps stand in layers, from those that read no other map to the tops on the right. An arrow from m to q, labelled R, says
that an event on R adds what it reads in m to q. The drawing is one SVG element without scripts or references.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lftj.html import escaped, printable
from lftj.triggers.algebra import MapDefinition, MapRead, TriggerProgram
from lftj.triggers.formulas import relations_of
from lftj.triggers.m3f import definition_text

# Pixels: of a letter, a box's height and margin, between layers and between boxes of a layer.
LETTER, HEIGHT, MARGIN, ACROSS, DOWN = 6.6, 44, 9, 90, 18
STYLE = "font-family:ui-monospace,monospace;font-size:11px"
# The most letters of a line in a box, and of a title; the whole text is shown when one points at it.
_LINE, _TITLE = 40, 120


@dataclass(frozen=True, slots=True)
class MapArrow:
    """Events on `relations` add what they read in the map `source` to `target`."""

    source: str
    target: str
    relations: tuple[str, ...]


@dataclass(slots=True)
class _MapBox:
    """Where a map is drawn."""

    lines: tuple[str, str]
    hint: str
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Of the box."""
        return max(map(len, self.lines)) * LETTER + 2 * MARGIN


class MapHierarchy:
    """The maps of a program and what they read."""

    def __init__(self, program: TriggerProgram) -> None:
        self.program = program

    def __repr__(self) -> str:
        return f"<MapHierarchy of {len(self.program.maps)} maps>"

    def arrows(self) -> list[MapArrow]:
        """From every map that is read to the maps that it serves."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for (_, relation), statements in self.program.statements.items():
            for statement in statements:
                for factor in statement.factors:
                    if isinstance(factor, MapRead):
                        found.setdefault((factor.name, statement.target), {})[relation] = None
        return [MapArrow(source, target, tuple(relations)) for (source, target), relations in found.items()]

    def layers(self) -> list[list[str]]:
        """The maps by how many relations they join, with the fewest first: a map reads only maps of earlier layers."""
        depth: dict[str, int] = {}
        # Every delta has a relation less: arrows never lead back.
        arrows = self.arrows()
        for _ in self.program.maps:
            for name in self.program.maps:
                depth[name] = 1 + max((depth.get(a.source, 0) for a in arrows if a.target == name), default=-1)
        rows: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
        for name, layer in depth.items():
            rows[layer].append(name)
        return rows

    def dot(self) -> str:
        """The hierarchy for Graphviz."""
        lines = ["digraph maps {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
        for name, definition in self.program.maps.items():
            shape = ", style=bold" if name in self.program.tops else ""
            lines.append(f"  {_quoted(name)} [label={_quoted(definition_text(definition))}{shape}];")
        for arrow in self.arrows():
            label = _quoted(", ".join(arrow.relations))
            lines.append(f"  {_quoted(arrow.source)} -> {_quoted(arrow.target)} [label={label}];")
        return "\n".join([*lines, "}"]) + "\n"

    def _repr_svg_(self) -> str:
        return svg([("", self)])

    def _laid_out(self, top: float) -> tuple[dict[str, _MapBox], float, float]:
        """The boxes with their places below `top`, the width of the whole and where it ends."""
        boxes: dict[str, _MapBox] = {}
        x, bottom = float(DOWN), top + 2 * DOWN
        for layer in self.layers():
            y = top + DOWN
            for name in layer:
                box = boxes[name] = _box_of(self.program.maps[name])
                box.x, box.y = x, y
                y += HEIGHT + DOWN
            bottom = max(bottom, y)
            x += max(boxes[name].width for name in layer) + ACROSS
        return boxes, x - ACROSS + DOWN if boxes else 2.0 * DOWN, bottom

    def _elements(self, boxes: dict[str, _MapBox]) -> list[str]:
        """The SVG elements of arrows and boxes."""
        arrows = [self._arrow(boxes[a.source], boxes[a.target], ", ".join(a.relations)) for a in self.arrows()]
        return [*arrows, *(self._box(name, box) for name, box in boxes.items())]

    def _box(self, name: str, box: _MapBox) -> str:
        top = name in self.program.tops
        stroke, weight = ("#0b6bcb", "600") if top else ("#1c2733", "400")
        first, second = box.lines
        return (
            f"<g><title>{escaped(box.hint)}</title>"
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{HEIGHT}" rx="4" fill="#f6f8fa" '
            f'stroke="{stroke}"/>'
            f'<text x="{box.x + MARGIN:.1f}" y="{box.y + 18:.1f}" fill="#1c2733" font-weight="{weight}">'
            f"{escaped(first)}</text>"
            f'<text x="{box.x + MARGIN:.1f}" y="{box.y + 34:.1f}" fill="#7b8794">{escaped(second)}</text></g>'
        )

    def _arrow(self, start: _MapBox, end: _MapBox, label: str) -> str:
        x0, y0, x1, y1 = start.x + start.width, start.y + HEIGHT / 2, end.x, end.y + HEIGHT / 2
        middle = (x0 + x1) / 2
        return (
            f'<path d="M{x0:.1f},{y0:.1f}C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}" fill="none" '
            f'stroke="#7b8794" marker-end="url(#map-tip)"/>'
            f'<text x="{x0 + 4:.1f}" y="{y0 - 4:.1f}" fill="#7b8794" font-size="9">{escaped(label)}</text>'
        )


def svg(pictures: Iterable[tuple[str, MapHierarchy]]) -> str:
    """Hierarchies as one drawing, one below the other, each under a title if it has one."""
    body: list[str] = []
    tops: list[str] = []
    width = bottom = 0.0
    for title, picture in pictures:
        if title:
            shown = _short(title, _TITLE)
            bottom += DOWN
            body.append(
                f"<g><title>{escaped(title)}</title>"
                f'<text x="{DOWN}" y="{bottom:.1f}" font-weight="600" fill="#1c2733">{escaped(shown)}</text></g>'
            )
            width = max(width, len(shown) * LETTER + 2 * DOWN)
        boxes, across, bottom = picture._laid_out(bottom)
        width = max(width, across)
        body += picture._elements(boxes)
        tops += picture.program.tops
    label = f"maps of {', '.join(tops)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {bottom:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{escaped(label)}" style="{STYLE}">'
        '<defs><marker id="map-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0L8,4L0,8z" fill="#7b8794"/></marker></defs>'
        f"{''.join(body)}</svg>"
    )


def _box_of(definition: MapDefinition) -> _MapBox:
    """A box with the map and its keys, and what it sums."""
    text = definition_text(definition).removeprefix("map ")
    keys = ", ".join(key.name for key in definition.keys)
    joined = " ⋈ ".join(relations_of(definition.body)) or "a constant"
    return _MapBox((_short(f"{definition.name}[{keys}]"), _short(joined)), text)


def _short(text: str, most: int = _LINE) -> str:
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _quoted(text: str) -> str:
    quoted = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
