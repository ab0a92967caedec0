"""The symbol table against a dict, through every way in; its order; and that a refused column leaves no text behind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lftj.values import symbols as module
from lftj.values.codes import Misfit
from lftj.values.symbols import UNKNOWN, SymbolTable, stage

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(
    ["", "a", "NA", "é", "\U0001f600", "\uffff"]
)
LAYOUTS = [
    pa.array,
    lambda texts: pa.array(texts, pa.large_string()),
    lambda texts: pa.array(texts, pa.string_view()),
    lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
    lambda texts: pa.chunked_array([texts[:2], texts[2:]], pa.string()),
    lambda texts: np.array(texts, object),
    list,
    tuple,
]


class Model(RuleBasedStateMachine):
    """One table, and a dict that numbers texts in the order in which they came."""

    def __init__(self):
        super().__init__()
        self.table, self.model = SymbolTable(), {}

    def _codes(self, texts):
        return [self.model.setdefault(text, len(self.model)) for text in texts]

    @rule(texts=st.lists(TEXT, min_size=1, max_size=6), layout=st.sampled_from(LAYOUTS))
    def encode(self, texts, layout):
        codes = self.table.encode(layout(texts) if layout is not pa.array else pa.array(texts, pa.string()))
        fresh = [text for text in dict.fromkeys(texts) if text not in self.model]
        assert {self.table.text(c) for c in codes} == set(texts)
        # In which order one column's new texts are numbered is the column's own affair.
        self.model |= {text: int(codes[texts.index(text)]) for text in fresh}
        assert sorted(self.model.values()) == list(range(len(self.model)))
        assert codes.tolist() == [self.model[text] for text in texts]

    @rule(texts=st.lists(TEXT, max_size=4))
    def intern(self, texts):
        assert self.table.intern(texts).tolist() == self._codes(texts)

    @rule(text=TEXT)
    def intern_one(self, text):
        assert [self.table.intern_one(text)] == self._codes([text])

    @rule(texts=st.lists(TEXT, max_size=4))
    def lookup(self, texts):
        expected = [self.model.get(text, UNKNOWN) for text in texts]
        assert self.table.lookup(texts).tolist() == expected == [self.table.code(text) for text in texts]
        assert self.table.lookup_array(pa.array(texts, pa.string())).tolist() == expected

    @rule(data=st.data())
    def few(self, data):
        texts = data.draw(st.lists(st.sampled_from(sorted(self.model)), max_size=5)) if self.model else []
        assert self.table.few(np.array([self.model[text] for text in texts], np.int64)) == texts

    @rule()
    def decode(self):
        codes = np.array(list(self.model.values()), np.int64)
        assert self.table.decode(codes).to_pylist() == list(self.model) == [self.table.text(code) for code in codes]

    @rule()
    def ranks(self):
        ranks = self.table.ranks()
        ordered = sorted(self.model)
        assert ranks.dtype == np.int64
        assert [ordered[ranks[code]] for code in self.model.values()] == list(self.model)

    @invariant()
    def same_size(self):
        assert len(self.table) == len(self.model)

    def teardown(self):
        self.table.check()


class ModelBig(Model):
    """The same, with no column small enough for the dict."""

    def __init__(self):
        super().__init__()
        self._small, module.SMALL = module.SMALL, 0

    def teardown(self):
        module.SMALL = self._small
        super().teardown()


TestSymbolTable = Model.TestCase
TestSymbolTableInBulk = ModelBig.TestCase
TestSymbolTable.settings = TestSymbolTableInBulk.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None
)


@given(st.lists(TEXT))
def test_ranks_are_the_order_of_code_points(texts):
    table = SymbolTable()
    codes = table.encode(pa.array(texts, pa.string()))
    ranks = table.ranks()[codes]
    assert [text for _, text in sorted(zip(ranks.tolist(), texts, strict=True))] == sorted(texts)


def test_ranks_are_kept_until_the_table_grows():
    table = SymbolTable()
    table.intern(["b", "a"])
    ranks = table.ranks()
    table.intern(["a"])
    assert table.ranks() is ranks
    table.intern(["0"])
    assert table.ranks().tolist() == [2, 1, 0]


def test_numpy_fixed_width_strings():
    table = SymbolTable()
    assert table.encode(np.array(["b", "", "b"])).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["new", None]),
        pa.array(["new", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["new", None])),
        np.array(["new", None], object),
        np.array(["new", b"x"], object),
        np.array(["new", "\ud800"], object),
    ],
)
def test_a_refused_column_leaves_nothing_behind(column):
    table = SymbolTable()
    with pytest.raises(Misfit):
        table.encode(column)
    assert len(table) == 0


def test_a_refused_list_leaves_nothing_behind():
    table = SymbolTable()
    with pytest.raises(Misfit):
        table.intern(["new", None])
    with pytest.raises(Misfit):
        table.intern_one(7)
    assert len(table) == 0
    assert table.code("new") == UNKNOWN


def test_dictionary_texts_that_no_row_uses_are_not_interned():
    column = pa.DictionaryArray.from_arrays(pa.array([2, 2]), pa.array(["unused", "also", "used"]))
    table = SymbolTable()
    assert table.encode(column).tolist() == [0, 0]
    assert table.texts().to_pylist() == ["used"]


def test_a_dictionary_may_hold_a_text_twice():
    staged = stage(pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"])))
    assert staged.indices.tolist() == [0, 0]
    assert staged.distinct.to_pylist() == ["a"]


def test_negative_codes_are_no_texts():
    table = SymbolTable()
    table.intern(["a"])
    with pytest.raises(IndexError):
        table.text(-1)
    with pytest.raises(IndexError):
        table.text(1)


def test_repr():
    table = SymbolTable()
    table.intern(["a", "b"])
    assert repr(table) == "SymbolTable(2 texts)"
