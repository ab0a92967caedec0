"""Relations, queries and databases as a user sees them: texts for terminal and notebook, equality, forms."""

from __future__ import annotations

import datetime as dt
import uuid

import numpy as np
import pytest

import lftj
from lftj import streams


def test_repr() -> None:
    db = lftj.Database(".decl person(id:number, name:symbol, weight:float)")
    db.load("person", [(10, "Ada", 0.5), (2, "line\nbreak", 1e300), (-7, "é" * 40, float("inf"))])
    assert repr(db["person"]) == (
        "person(id:number, name:symbol, weight:float)  3 rows\n"
        "  id  name                              weight\n"
        "  -7  " + "é" * 31 + "…     inf\n"
        "   2  line\\nbreak                       1e+300\n"
        "  10  Ada                                  0.5"
    )


def test_repr_of_many_rows_and_of_none() -> None:
    db = lftj.Database(".decl n(x:number) .decl empty(x:symbol, y:unsigned) .decl flag()")
    db.load("n", np.arange(1234)[:, None])
    assert repr(db["n"]) == (
        "n(x:number)  1,234 rows\n  x\n" + "".join(f"  {i}\n" for i in range(10)) + "  ... 1,224 more"
    )
    assert repr(db["empty"]) == "empty(x:symbol, y:unsigned)  0 rows\n  x  y"
    assert repr(db["flag"]) == "flag()  0 rows"
    db.rules("flag().")
    assert repr(db["flag"]) == "flag()  1 row"


def test_repr_fits_a_terminal() -> None:
    db = lftj.Database(".decl r(aaaaaaaaaaaa:symbol, bbbbbbbbbbbb:symbol, c:number)")
    db.load("r", [("x" * 50, "y" * 50, 1)])
    assert max(map(len, repr(db["r"]).splitlines())) <= 80


def test_repr_of_a_database() -> None:
    db = lftj.Database(".decl e(x:number, y:number)\np(x) :- e(x, _).")
    assert repr(db) == (
        "lftj.Database: 2 relations, 1 rule, 0.0 MB of pages\n"
        "  e(x:number, y:number)  0 rows\n"
        "  p(x:number)  not evaluated"
    )
    db.load("e", [(1, 2), (3, 4)])
    assert len(db["p"]) == 2
    assert repr(db).splitlines()[1:] == ["  e(x:number, y:number)  2 rows", "  p(x:number)  2 rows"]


def test_of_values_only_texts_are_cut() -> None:
    """The last digits tell uuids apart."""
    db = lftj.Database(".decl r(u:uuid, b:bytes, n:number)")
    ids = [uuid.UUID(int=n) for n in (1, 2)]
    db.load("r", [(id, bytes(99), 1) for id in ids])
    lines = repr(db["r"]).splitlines()[2:]
    assert [line.split()[0] for line in lines] == [str(id) for id in ids]
    assert all(line.split()[1] == str(bytes(99))[:31] + "…" for line in lines)
    assert all(str(id) in db["r"]._repr_html_() for id in ids)


def test_texts_stand_to_the_left_in_a_notebook_too() -> None:
    db = lftj.Database(".decl r(a:symbol, b:symbol?, c:uuid?, d:bytes, e:bool, f:number?)")
    heads = [piece.partition(">")[0] for piece in db["r"]._repr_html_().split("<th")[2:]]
    assert heads == ["", "", "", "", ' class="number"', ' class="number"']


def test_html_escapes() -> None:
    db = lftj.Database(".decl s(x:symbol)")
    db.load("s", [("<b>&\"'",)])
    assert (
        db["s"]
        ._repr_html_()
        .endswith(
            '</style><p><code>s</code> <span class="faint">1 row</span></p>'
            '<table><thead><tr><th>x<br><span class="faint">symbol</span></th></tr></thead>'
            "<tbody><tr><td>&lt;b&gt;&amp;&quot;&#x27;</td></tr></tbody></table></div>"
        )
    )
    db.load("s", [(str(i),) for i in range(11)])
    assert db["s"]._repr_html_().endswith('</table><p class="faint">... 2 more</p></div>')


def test_repr_of_a_query() -> None:
    db = lftj.Database(".decl e(x:number, y:number) e(1, 2).")
    query = db.query("e(x, y)")
    assert repr(query) == "Query('e(x, y)'), not evaluated yet"
    assert list(query) == [(1, 2)]
    assert repr(query) == "query(x:number, y:number)  1 row\n  x  y\n  1  2"
    assert query._repr_html_() == query.relation()._repr_html_()


def test_equality_and_membership() -> None:
    db = lftj.Database(".decl a(x:number, y:symbol) .decl b(x:number, y:symbol)")
    for name in ("a", "b"):
        db.load(name, [(2, "x"), (1, "y")])
    assert db["a"] == db["b"]
    assert db["a"] == {(1, "y"), (2, "x")}
    assert db["a"] != {(1, "y")}
    assert db.query("a(x, y)") == db["b"]
    assert db["a"] != 1
    assert (1, "y") in db["a"]
    assert (1, "unheard of") not in db["a"]
    with pytest.raises(lftj.DataError):
        (1,) in db["a"]  # noqa: B015
    with pytest.raises(TypeError):
        hash(db["a"])


def test_symbols_come_in_text_order() -> None:
    db = lftj.Database(".decl s(x:symbol, n:number)\nless(x, y) :- s(x, _), s(y, _), x < y.")
    db.load("s", [("b", 1), ("é", 2), ("a", 3), ("B", 4), ("", 5)])
    names = ["", "B", "a", "b", "é"]
    assert [row[0] for row in db["s"]] == names
    assert list(db["less"]) == [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    assert db["s"].df()["x"].tolist() == names
    assert db["s"].pl()["x"].to_list() == names
    assert db["s"].arrow()["x"].to_pylist() == names


def test_equality_is_of_values_and_not_of_what_clocks_show() -> None:
    """Python takes two instants for equal that the clocks of a zone show twice in autumn."""
    first, second = (dt.datetime(2024, 10, 27, hour, 30, tzinfo=dt.UTC) for hour in (0, 1))
    declared = '.decl a(t:timestamp("Europe/Berlin"), s:symbol?) .decl b(t:timestamp("Europe/Berlin"), s:symbol?)'
    db, other = lftj.Database(declared), lftj.Database(declared)
    db.load("a", [(first, "x"), (second, None)])
    db.load("b", [(first, None), (second, "x")])
    other.load("a", [(second, None), (first, "y")])
    other.load("b", [(second, None), (first, "x")])
    assert db["a"] != db["b"]
    assert db["a"] != other["a"]
    assert db["a"] == other["b"]
    one, two = (streams.zset([(at,)], [1], columns={"t": 'timestamp("Europe/Berlin")'}) for at in (first, second))
    assert one != two
    assert lftj.Database(".decl go() go().")["go"] == lftj.Database(".decl on() on().")["on"]


def test_ord_is_equal_for_equal_symbols() -> None:
    db = lftj.Database(".decl s(x:symbol)")
    db.load("s", [("b",), ("a",)])
    assert len({n for _, n in db.query("s(x), n = ord(x)")}) == 2
    assert db.query("s(x), s(y), ord(x) = ord(y)").count() == 2


# Rules with texts are evaluated in parts ------------------------------------------------------------------------


def texts() -> lftj.Database:
    db = lftj.Database(".decl s(x:symbol, y:symbol) .decl q(u:symbol, v:symbol)")
    db.load("s", [("a", "b"), ("ab", "b"), ("", "abb")])
    db.load("q", [("a", ""), ("", "ab"), ("b", "b")])
    return db


def test_min_of_one_text_is_the_text() -> None:
    """It was its least character, and an error for the empty text."""
    assert set(texts().query("s(x, _), z = min(x), w = max(x)")) == {(x, x, x) for x in ("a", "ab", "")}


def test_a_count_with_texts() -> None:
    """It was the number of columns."""
    db = texts()
    assert db.query("s(x, y), z = cat(x, y)").count() == 3
    assert db.query('s(x, y), z = cat(x, y), z = "abb"').count() == 2
    assert db.query('s(x, y), z = strlen("a"), x = y').count() == 0


def test_an_atom_that_binds_an_argument_of_a_computed_text() -> None:
    """`s` was put off until after `x` was computed from `q`, but `z` needs its `y`: KeyError."""
    db = texts()
    db.rules("p(z) :- s(x, y), q(u, v), z = cat(x, y), x = cat(u, v).")
    assert set(db["p"]) == {("ab",), ("abb",)}


def test_texts_computed_in_two_steps_in_the_head() -> None:
    """The second step gave its column the name that the first one had taken."""
    db = texts()
    db.rules('p(cat(x, "1"), cat(w, "2")) :- s(x, y), w = cat(z, "!"), z = cat(x, y).')
    expected = {(x + "1", x + y + "!2") for x, y in (("a", "b"), ("ab", "b"), ("", "abb"))}
    assert set(db["p"]) == expected


def test_computed_texts_join() -> None:
    db = texts()
    assert set(db.query("s(x, y), q(u, v), y = cat(u, v)")) == {
        (x, y, u, v)
        for x, y in (("a", "b"), ("ab", "b"), ("", "abb"))
        for u, v in (("a", ""), ("", "ab"), ("b", "b"))
        if y == u + v
    }
