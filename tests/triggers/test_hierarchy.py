"""The picture of the maps: layers, arrows, DOT and SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from hypothesis import given

from lftj.triggers.algebra import TriggerProgram
from lftj.triggers.calculus_algebra import tops
from lftj.triggers.calculus_reader import parsed
from lftj.triggers.compilation import compiled
from lftj.triggers.hierarchy import MapArrow, MapHierarchy
from lftj.triggers.m3f import text
from lftj.triggers.m3f_reader import parsed_all
from tests.conftest import examples
from tests.triggers.random_queries import SCHEMA, SETS, queries

ORDERS = parsed("q[] = Sum(p * r, O(k, r) and L(k, p))")
DOT = """\
digraph maps {
  rankdir=LR;
  node [shape=box, fontname=monospace];
  "q" [label="map q[] = O(k, r) * r * L(k, p) * p", style=bold];
  "m_O" [label="map m_O[k: number] = L(k, p) * p"];
  "m_L" [label="map m_L[k: number] = O(k, r) * r"];
  "m_O" -> "q" [label="O"];
  "m_L" -> "q" [label="L"];
}
"""


def test_orders_and_lines():
    picture = MapHierarchy(compiled(tops(ORDERS), ORDERS.relations))
    assert picture.dot() == DOT
    assert picture.layers() == [["m_O", "m_L"], ["q"]]
    assert picture.arrows() == [MapArrow("m_O", "q", ("O",)), MapArrow("m_L", "q", ("L",))]


def test_the_drawing_is_one_element_with_every_map_and_arrow():
    picture = MapHierarchy(compiled(tops(ORDERS), ORDERS.relations))
    drawing = ElementTree.fromstring(picture._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    assert drawing.tag == f"{space}svg"
    titles = [title.text for title in drawing.iter(f"{space}title")]
    assert titles == ["m_O[k: number] = L(k, p) * p", "m_L[k: number] = O(k, r) * r", "q[] = O(k, r) * r * L(k, p) * p"]
    assert len(drawing.findall(f"{space}path")) == 2
    boxes = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in drawing.iter(f"{space}rect")]
    width, height = float(drawing.get("width")), float(drawing.get("viewBox").split()[3])
    for x, y, across, down in boxes:
        assert 0 <= x <= x + across <= width
        assert 0 <= y <= y + down <= height


def test_names_with_characters_that_xml_does_not_have():
    written = text(compiled(tops(ORDERS), ORDERS.relations)).replace("O(", "`<O\x00`(")
    (program,) = parsed_all(written, "named.m3f")
    picture = MapHierarchy(program)
    drawing = ElementTree.fromstring(picture._repr_svg_())
    assert "<O\\x00 ⋈ L" in [shown.text for shown in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert r'"m_L" -> "q" [label="L"];' in picture.dot()
    assert all(line.isprintable() for line in picture.dot().splitlines())


def test_no_maps_are_an_empty_drawing():
    picture = MapHierarchy(TriggerProgram({}, {}, {}))
    assert ElementTree.fromstring(picture._repr_svg_()) is not None
    assert picture.layers() == []


@examples(50)
@given(queries())
def test_arrows_lead_from_earlier_layers_to_later_ones(query):
    picture = MapHierarchy(compiled({"q": query}, {**SCHEMA, **SETS}))
    layer = {name: number for number, names in enumerate(picture.layers()) for name in names}
    assert set(layer) == set(picture.program.maps)
    assert all(layer[arrow.source] < layer[arrow.target] for arrow in picture.arrows())
    ElementTree.fromstring(picture._repr_svg_())
