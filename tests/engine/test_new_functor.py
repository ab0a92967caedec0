"""A new functor over texts is one `Signature`: checked, built, printed, split off joins, evaluated, maintained."""

from __future__ import annotations

import pytest

import lftj
from lftj.errors import EvaluationError
from lftj.join import expression_vm
from lftj.language.functors import FUNCTORS
from lftj.language.signature import SAME, Signature
from lftj.language.types import INTEGRAL, NUMBER, SYMBOL


def initial(text: str) -> str:
    if not text:
        raise ValueError("the text is empty")
    return text[0].upper()


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """`initial`, which has no value of the empty text, and `both`, another name of an operation on numbers."""
    toy = Signature(
        "initial",
        (SYMBOL,),
        SYMBOL,
        "The first letter.",
        'initial("ann") = "A"',
        text=initial,
        partial=frozenset({SYMBOL}),
    )
    monkeypatch.setitem(FUNCTORS, "initial", toy)
    bits = Signature("both", (SAME, SAME), SAME, "Bitwise and.", "both(6, 3) = 2", INTEGRAL, opcode="BAND")
    monkeypatch.setitem(FUNCTORS, "both", bits)


pytestmark = pytest.mark.usefixtures("toys")


def test_it_is_evaluated_and_follows_changes() -> None:
    db = lftj.Database("""
        .decl name(n:symbol)
        .decl code(n:number)
        letter(initial(n)) :- name(n).
        low(both(n, 3)) :- code(n).
    """)
    db.load("name", [("ann",), ("bo",)])
    db.load("code", [(6,), (8,)])
    assert list(db["letter"]) == [("A",), ("B",)]
    assert list(db["low"]) == [(0,), (2,)]
    with db.transaction() as tx:
        tx.insert("name", [("cy",), ("al",)])
        tx.erase("name", [("bo",)])
    assert list(tx.delta["letter"].inserted) == [("C",)]
    assert list(tx.delta["letter"].erased) == [("B",)]


def test_a_row_without_a_value_is_an_error() -> None:
    db = lftj.Database(".decl name(n:symbol) letter(initial(n)) :- name(n).")
    db.load("name", [("ann",), ("",)])
    with pytest.raises(EvaluationError, match=r'has no value: `initial\(""\)`') as error:
        list(db["letter"])
    assert "the text is empty; nothing was changed" in str(error.value)


def test_it_is_built_and_printed() -> None:
    program = lftj.Program()
    name = program.input("name", n=str)
    (letter,) = program.relations("letter")
    (n,) = lftj.variables("n")
    program.rule(letter(lftj.fn.initial(n)), name(n))
    assert "letter(initial(n)) :- name(n)." in program.to_text()
    assert repr(lftj.fn.initial) == "<functor initial(symbol):symbol: The first letter.>"


def test_it_is_computed_in_recursion() -> None:
    db = lftj.Database(".decl name(n:symbol) up(n) :- name(n). up(initial(n)) :- up(n).")
    db.load("name", [("ann",)])
    assert list(db["up"]) == [("A",), ("ann",)]


def test_every_functor_says_how_it_is_evaluated() -> None:
    converting = {"ord", "itof", "itou", "utoi", "utof", "ftoi", "ftou", "in_zone"}
    found = {f.name for f in FUNCTORS.values() if not f.opcode and not f.overloads and f.text is None}
    assert found == converting
    assert all(isinstance(getattr(expression_vm, f.opcode), int) for f in FUNCTORS.values() if f.opcode)
    assert not any(f.computes_text(NUMBER) for f in FUNCTORS.values() if f.text is None)
