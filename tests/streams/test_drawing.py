"""Circuits as text and as drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from lftj import streams

INCREMENTAL = """\
circuit paths, of changes, after 0 ticks
s0 = z⁻¹ (s11)                 distinct (4.7)
s1 = input edge
s2 = π (s1)                    linear (3.3)
s3 = I (s2)                    bilinear (3.4)
s4 = ⋈ (s1, s3)                bilinear (3.4)
s5 = z⁻¹ (s10)                 bilinear (3.4)
s6 = ⋈ (s5, s2)                bilinear (3.4)
s7 = + (s4, s6)                bilinear (3.4)
s8 = two = π (s7)              linear (3.3)
s9 = H (s0, s8)  → distance2   distinct (4.7)
s10 = I (s1)                   bilinear (3.4)
s11 = I (s8)                   distinct (4.7)"""


def circuit() -> streams.Circuit:
    made = streams.Circuit("paths")
    edge = made.input("edge", a=int, b=int)
    two = edge.join(edge.rename(a="b", b="c"), on="b").select("a", "c").named("two")
    made.output("distance2", two.distinct())
    return made


def nested() -> streams.Circuit:
    made = circuit()
    edge = streams.Stream(made._graph, made._graph.inputs["edge"])
    with made.nested("reach <&>") as inner:
        edges = inner.enter(edge)
        loop = inner.placeholder("loop", a=int, b=int)
        step = loop.delay().rename(b="via").join(edges.rename(a="via"), on="via").select("a", "b")
        reach = (edges + step).distinct()
        inner.connect(loop, reach)
        found = inner.leave(reach)
    made.output("reach", found)
    return made.incremental()


def test_text_names_every_operator_and_its_proposition() -> None:
    assert str(circuit().incremental()) == INCREMENTAL
    assert "why" not in str(circuit())


def test_text_tells_of_the_last_step() -> None:
    made = nested()
    made.step({"edge": [(1, 2), (2, 3)]})
    lines = str(made).splitlines()
    assert any(line.startswith("s1 = input edge") and "2 rows" in line for line in lines)
    assert any("distinctΔ²" in line and "3 rows" in line for line in lines)
    assert made.explain() == str(made)


def test_drawings_are_svg() -> None:
    """Well formed, boxes inside of the frame, every operator in it, names escaped; with and without a step."""
    made = nested()
    for _ in range(2):
        root = ElementTree.fromstring(made.svg())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        boxes = root.findall(".//{*}rect")
        texts = [element.text for element in root.findall(".//{*}text")]
        assert len(boxes) == len(made._graph.order()) + 9
        assert any(text and "reach <&>" in text for text in texts)
        for box in boxes:
            x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width
            assert 0 <= y <= y + h <= height
        made.step({"edge": [(1, 2), (2, 3)]})
    assert any(text == "2" for text in texts)
    assert made._repr_svg_() == made.svg()


def test_a_drawing_is_as_wide_as_its_title_and_names_every_output() -> None:
    """An output whose name began with `o`, and all but the last name of a stream, were left out."""
    made = streams.Circuit("a circuit that has a name which is longer than it is wide")
    edge = made.input("e", a=int)
    for name, stream in {"orders": edge.distinct(), "y": edge, "z": edge}.items():
        made.output(name, stream)
    root = ElementTree.fromstring(made.svg())
    title, *boxes = root.findall(".//{*}text")
    assert [box.text for box in boxes] == ["input e  → y  → z", "distinct  → orders"]
    assert title.text == root.attrib["aria-label"] == repr(made)
    assert float(root.attrib["width"]) >= float(title.attrib["x"]) + 6.6 * len(title.text)


def test_names_with_characters_that_xml_does_not_have() -> None:
    """Spelled, also where the text is for a terminal: each operator has one line."""
    made = streams.Circuit("a\x00b")
    edge = made.input("edge", a=int).named("<\x01>\n\ud800")
    with made.nested("\ufffe\x1b[1m") as inner:
        loop = inner.placeholder("\x0b", a=int)
        found = (inner.enter(edge) + loop.delay()).distinct()
        inner.connect(loop, found)
        made.output("o", inner.leave(found))
    root = ElementTree.fromstring(made._repr_svg_())
    texts = [element.text or "" for element in root.findall(".//{*}text")]
    spelled = ("a\\x00b", "<\\x01>\\n\\ud800", "\\ufffe\\x1b[1m", "\\x0b")
    for name in spelled:
        assert any(name in text for text in texts)
        assert name in str(made)
    assert "a\\x00b" in root.attrib["aria-label"]
    assert all(line.isprintable() for line in str(made).splitlines())


def page(delta: streams.WeightedRows) -> ElementTree.Element:
    return ElementTree.fromstring(delta._repr_html_().replace("<br>", " "))


def test_a_delta_is_a_table_in_a_notebook() -> None:
    delta = streams.zset([(1, "<b>"), (2, "x")], [3, -1200], columns={"a": int, "<name>": str})
    root = page(delta)
    cells = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    assert cells == [
        ["", "a number", "<name> symbol", "_weight number"],
        ["+", "1", "<b>", "3"],
        ["\N{MINUS SIGN}", "2", "x", "-1200"],
    ]
    assert root.findtext("p/code") == "zset(a:number, <name>:symbol)  2 rows"
    many = page(streams.zset([(i,) for i in range(15)]))
    assert (len(list(many.iter("tr"))), "... 5 more" in [p.text for p in many.iter("p")]) == (11, True)
    assert not list(page(streams.zset([], columns={"a": int})).iter("tr"))
