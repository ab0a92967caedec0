"""The symbol table against a dict, through every way in; its order; and that a refused column leaves no text behind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lftj.values import symbols as module
from lftj.values.symbols import UNKNOWN, SymbolTable, stage
from lftj.values.value_type import Misfit
from tests.conftest import examples

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
        assert ranks.dtype == np.int64
        assert sorted(self.model) == sorted(self.model, key=lambda text: ranks[self.model[text]])
        assert len(set(ranks.tolist())) == len(self.model)

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
TestSymbolTable.settings = TestSymbolTableInBulk.settings = examples(60, stateful_step_count=20)


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
    assert np.argsort(table.ranks()).tolist() == [2, 1, 0]


def _in_order(table):
    texts = table.texts().to_pylist()
    assert [texts[code] for code in np.argsort(table.ranks())] == sorted(texts)


ARRIVALS = {
    "ascending": lambda i: f"order-{i:06}",
    "descending": lambda i: f"order-{999_999 - i:06}",
    "at both ends": lambda i: f"{'za'[i % 2]}{i:06}" if i % 2 == 0 else f"!{999_999 - i:06}",
    "two series by turns": lambda i: f"{'ab'[i % 2]}-{i:06}",
    "anywhere": lambda i: f"{i * 7919 % 1_000_003:07}",
}


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_one_more_text_does_not_rank_all_texts_anew(arrival):
    table = SymbolTable()
    table.encode([f"{name}{i:05}" for name in ("b", "order-", "p") for i in range(1_000)])
    table.ranks()
    assert table._ranks.rebuilt == 1
    for i in range(1_500):
        known = table.ranks().tolist()
        table.intern_one(ARRIVALS[arrival](i))
        assert table.ranks()[:-1].tolist() == known or table._ranks.rebuilt > 1
    _in_order(table)
    assert table._ranks.rebuilt == 1
    table.check()


def test_a_gap_that_is_used_up_ranks_all_texts_anew_and_leaves_old_ranks_as_they_were():
    table = SymbolTable()
    table.encode([f"{i:04}" for i in range(500)])
    held, copies, low, high = [], [], 0, 1 << 40
    for i in range(40):  # each between the two before
        between = (low + high) // 2
        low, high = (between, high) if i % 2 else (low, between)
        text = f"0000{between:041b}"
        held.append(table.ranks())
        copies.append(held[-1].copy())
        table.intern_one(text)
        _in_order(table)
    assert table._ranks.rebuilt > 1
    assert all((old == copy).all() for old, copy in zip(held, copies, strict=True))
    table.check()


def test_many_texts_at_once_are_ranked_by_one_sort():
    table = SymbolTable()
    table.encode([f"{i:05}" for i in range(1_000)])
    table.ranks()
    table.encode([f"{i:05}x" for i in range(1_000)])
    _in_order(table)
    assert table._ranks.rebuilt == 2
    assert table._ranks._ordered is None


def test_numpy_fixed_width_strings():
    table = SymbolTable()
    assert table.encode(np.array(["b", "", "b"])).tolist() == [0, 1, 0]


def test_numpy_strings_are_whole_after_a_nul() -> None:
    table, texts = SymbolTable(), ["b\0c", "b\0d", "\0b", "b"]
    assert table.decode(table.encode(np.array(texts))).to_pylist() == texts


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
    assert staged.texts.to_pylist() == ["a"]


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


def test_null_has_an_order_in_columns_of_a_type_without_it() -> None:
    symbols = SymbolTable()
    codes = np.append(symbols.intern(["b", "a"]), np.iinfo(np.int64).min)
    b, a, null = symbols.order(codes, "symbol").tolist()
    assert null < a < b
