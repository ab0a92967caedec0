"""What users of streams read when something is wrong: every message on its full text, as tests/language/messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import streams
from lftj.streams.stream import Stream

World = tuple[streams.Circuit, Stream, Stream]


def world() -> World:
    circuit = streams.Circuit("bids")
    bid = circuit.input("bid", item=int, price=float)
    return circuit, bid, circuit.input("item", item=int, name=str)


def cycle(circuit: streams.Circuit, bid: Stream, delay: bool) -> None:
    back = circuit.placeholder("back", item=int, price=float)
    circuit.connect(back, (bid + (back.delay() if delay else back)).distinct().named("all bids"))


def endless(circuit: streams.Circuit, bid: Stream) -> None:
    with circuit.nested("count up", limit=10) as inner:
        x = inner.placeholder("x", item=int)
        more = inner.enter(bid.select("item")) + x.delay().map(item="item + 1")
        inner.connect(x, more.distinct())
        circuit.output("o", inner.leave(more))
    circuit.step({"bid": [(1, 0.5)]})


def unconnected(circuit: streams.Circuit) -> None:
    circuit.output("o", circuit.placeholder("later", x=int))
    circuit.step()


def connected_twice(circuit: streams.Circuit, bid: Stream) -> None:
    back = circuit.placeholder("back", item=int, price=float)
    circuit.connect(back, bid)
    circuit.connect(back, bid)


def overflow(circuit: streams.Circuit, bid: Stream) -> None:
    circuit.output("o", bid.join(bid.rename(price="other"), on="item"))
    circuit.step({"bid": streams.zset([(1, 0.5)], [2**40], columns={"item": int, "price": float})})


def undefined(circuit: streams.Circuit, bid: Stream) -> None:
    circuit.output("o", bid.map(share="10 / item"))
    circuit.step({"bid": [(0, 1.5)]})


def least_key(circuit: streams.Circuit) -> None:
    left, right = circuit.input("left", k="number?", x=int), circuit.input("right", k=int)
    circuit.output("o", left.full_join(right, on="k", fill={"x": 0}))
    circuit.step({"right": [(-(2**63),)]})


def large_sum(circuit: streams.Circuit, item: Stream) -> None:
    """Two outputs, and one that the sum is not for."""
    made = item.group_by("name").aggregate(total=streams.sum("item"))
    for name, stream in {"all": made, "total": made.select("total"), "items": item}.items():
        circuit.output(name, stream, whole=name == "total")
    circuit.incremental().step({"item": [(2**62, "x"), (2**62 + 1, "x"), (1, "y")]})


def late(circuit: streams.Circuit, bid: Stream) -> None:
    circuit.output("o", bid)
    circuit.step({"bid": [(1, 0.5)]})
    circuit.output("p", bid)


MESSAGES: dict[str, tuple[Callable[[streams.Circuit, Stream, Stream], Any], str]] = {
    "an unknown column": (
        lambda c, bid, item: bid.select("prize"),
        ("the stream has no column 'prize'\n  why: its columns are item, price\n  do: did you mean `price`?"),
    ),
    "an unknown column of a join": (
        lambda c, bid, item: bid.join(item, on="id"),
        ("the stream has no column 'id'\n  why: its columns are item, price\n  do: give one of these names"),
    ),
    "an unknown column of an expression": (
        lambda c, bid, item: bid.filter("cost > 5"),
        ("the stream has no column 'cost'\n  why: its columns are item, price\n  do: give one of these names"),
    ),
    "an unknown column of what is computed": (
        lambda c, bid, item: bid.map("item", twice="prices * 2"),
        ("the stream has no column 'prices'\n  why: its columns are item, price\n  do: did you mean `price`?"),
    ),
    "an unknown column of an aggregate": (
        lambda c, bid, item: bid.group_by("item").aggregate(n=streams.sum("prices")),
        ("the stream has no column 'prices'\n  why: its columns are item, price\n  do: did you mean `price`?"),
    ),
    "an unknown key of a group": (
        lambda c, bid, item: bid.group_by("items"),
        ("the stream has no column 'items'\n  why: its columns are item, price\n  do: did you mean `item`?"),
    ),
    "an expression that does not parse": (
        lambda c, bid, item: bid.map(x="price +"),
        (
            "<expression>:1:12: error: syntax error: expected a term, found the end of the text\n"
            "    x = price +\n"
            "               ^\n"
            "  why: `x = price +` is not complete\n"
            "  do: write a term here, or correct what stands before it"
        ),
    ),
    "a condition that does not parse": (
        lambda c, bid, item: bid.filter("price >"),
        (
            "<expression>:1:8: error: syntax error: expected a term, found the end of the text\n"
            "    price >\n"
            "           ^\n"
            "  why: `price >` is not complete\n"
            "  do: write a term here, or correct what stands before it"
        ),
    ),
    "types that do not go together, in the second line": (
        lambda c, bid, item: bid.filter('item > 1,\nprice < "x"'),
        (
            '<expression>:2:1: error: type conflict: `price` is float and `"x"` is symbol\n'
            '    price < "x"\n'
            "    ^^^^^^^^^^^\n"
            "  `price` is float, as column `price` of `row`: the stream\n"
            "  why: `<` compares two values of one type\n"
            "  do: convert one side with `to_number`, `to_unsigned`, `to_float` or `to_string`"
        ),
    ),
    "types that do not go together, in the second column": (
        lambda c, bid, item: bid.map(a="item", b="item + 1", twice='price + "x"'),
        (
            '<expression>:1:17: error: type conflict: `+` takes number, unsigned or float, and `"x"` is symbol\n'
            '    twice = price + "x"\n'
            "                    ^^^\n"
            "  why: values of different types are not converted silently\n"
            "  do: convert it with `to_number`, `to_unsigned` or `to_float`"
        ),
    ),
    "a column that has the name of a word": (
        lambda c, bid, item: bid.rename(price="count").filter("count > 5.0"),
        (
            "no expression can name the column 'count'\n"
            "  why: the word has a meaning of its own in rules\n"
            '  do: rename the column before: `.rename(count="other")`'
        ),
    ),
    "a cycle without a delay": (
        lambda c, bid, item: cycle(c, bid, delay=False),
        (
            "FILE: error: a cycle without a delay: loop back <- all bids <- + <- loop back\n"
            '    back = circuit.placeholder("back", item=int, price=float)\n'
            "  why: a stream would depend on its own value at the same tick, which has no meaning\n"
            "  do: put `.delay()` on the stream that comes back, or use `circuit.nested()` for a fixpoint"
        ),
    ),
    "a weight beyond int64": (
        lambda c, bid, item: overflow(c, bid),
        (
            "output `o`: a weight is beyond 64 bits\n"
            "  why: weights of equal rows add up, and those of joined rows multiply; the step was not made\n"
            "  do: give smaller weights, or make the stream a set by `distinct()` before it is joined"
        ),
    ),
    "streams of different circuits": (
        lambda c, bid, item: bid.union(streams.Circuit().input("bid", item=int, price=float)),
        (
            "the two streams are of different circuits\n"
            "  why: they have clocks of their own, and a value of one has no tick in the other\n"
            "  do: take both from one circuit; `nested.enter(stream)` brings a stream into a nested one"
        ),
    ),
    "no stream": (
        lambda c, bid, item: bid.union(5),
        ("5 is no stream\n  why: operators take streams of the same circuit\n  do: make one with `circuit.input(...)`"),
    ),
    "columns of different types": (
        lambda c, bid, item: bid + item,
        (
            "the two streams have columns of different types\n"
            "  why: they are number, float and number, symbol, and rows of both become rows of one stream\n"
            "  do: bring both to the same columns with `select` or `map`"
        ),
    ),
    "a key of two types": (
        lambda c, bid, item: bid.join(item, on={"price": "name"}),
        (
            "`price` is of type float, `name` of type symbol\n"
            "  why: rows are joined where these columns are equal\n"
            "  do: bring both to one type with `map`"
        ),
    ),
    "a name on both sides": (
        lambda c, bid, item: bid.join(bid, on="item"),
        (
            "both streams have a column `price` that is no key\n"
            "  why: columns of a joined row are known by their names\n"
            '  do: rename one before the join: `.rename(price="...")`, or select without it'
        ),
    ),
    "keys in brackets within brackets": (
        lambda c, bid, item: bid.join(item, on=[["item"]]),
        (
            "['item'] is no name of a column\n"
            "  why: columns are named one by one, and those of the stream are item, price\n"
            "  do: give 'item', without brackets around"
        ),
    ),
    "no fill": (
        lambda c, bid, item: bid.left_join(item, on="item", fill={}),
        (
            "a row without a match has no value for `name`\n"
            "  why: null is none of the values of symbol\n"
            '  do: say what stands for it: `fill={"name": ...}`'
        ),
    ),
    "a fill of no column": (
        lambda c, bid, item: bid.left_join(item, on="item", fill={"names": "", "name": ""}),
        ("the stream has no column 'names'\n  why: its columns are item, price, name\n  do: did you mean `name`?"),
    ),
    "a fill of another type": (
        lambda c, bid, item: bid.left_join(item, on="item", fill={"name": 5}),
        ("5 cannot stand in column `name`\n  why: it is an int, not a symbol\n  do: give a value of type symbol"),
    ),
    "a name of a column of a zset that is no text": (
        lambda c, bid, item: streams.zset([(1,)], columns={5: int}),
        ('5 cannot name a column\n  why: its name is a text\n  do: give a name, such as "price"'),
    ),
    "a fill of another type for a key": (
        lambda c, bid, item: bid.left_join(item, on="item", fill={"item": "x", "name": ""}),
        ("'x' cannot stand in column `item`\n  why: it is a str, not a number\n  do: give a value of type number"),
    ),
    "a fill of another type for a key of both": (
        lambda c, bid, item: bid.full_join(item, on="item", fill={"item": 0.5, "price": 0.0, "name": ""}),
        ("0.5 cannot stand in column `item`\n  why: it is a float, not a number\n  do: give a value of type number"),
    ),
    "no type": (
        lambda c, bid, item: c.input("other", x=list),
        (
            "column `x`: <class 'list'> is no type of a column\n"
            "  why: the types are number, unsigned, float, symbol, bool, date, timestamp, duration, decimal, uuid, "
            "bytes\n"
            '  do: give int, float, str or another class of values, or a name such as "decimal(10,2)"'
        ),
    ),
    "no name": (
        lambda c, bid, item: c.input("two words", x=int),
        (
            "FILE: 'two words' cannot name a stream\n"
            "  why: the program can be written as rule text, where a name has a form\n"
            "  do: a name is made of ASCII letters, digits, `_` and `?`, and starts with no digit"
        ),
    ),
    "an input twice": (
        lambda c, bid, item: c.input("bid", x=int),
        ("the circuit has an input `bid` already\n  why: inputs have names of their own\n  do: rename one"),
    ),
    "an unknown input": (
        lambda c, bid, item: c.step({"bids": []}),
        ("the circuit has no input 'bids'\n  why: its inputs are bid, item\n  do: did you mean `bid`?"),
    ),
    "inputs that are no dict": (
        lambda c, bid, item: c.step([(1, 0.5)]),
        (
            "`inputs` cannot be [(1, 0.5)]\n"
            "  why: it is a dict, by the names of inputs\n"
            '  do: give `inputs={"bid": ...}`'
        ),
    ),
    "rows of another shape": (
        lambda c, bid, item: c.step({"bid": [(1, 0.5, 2)]}),
        (
            "list, row 0 (from 0): 1 bad row: (1, 0.5, 2) has 3 values where 2 are due\n"
            "  why: `bid` takes rows of 2\n"
            "  do: give every row all its values"
        ),
    ),
    "values of another type": (
        lambda c, bid, item: c.step({"bid": [(1, 0.5), ("x", 0.5), ("y", 2.5)]}),
        (
            "list, row 1 (from 0): 2 bad rows; the first: column `item` of `bid`: 'x' is a str, not a number\n"
            "  why: a number is an integer from -9223372036854775808 to 9223372036854775807\n"
            "  do: convert it to int first or declare the column `symbol`"
        ),
    ),
    "rows of another type": (
        lambda c, bid, item: c.step({"bid": streams.zset([(1, "x")])}),
        (
            "rows of zset(c0:number, c1:symbol) cannot be rows of bid(item:number, price:float)\n"
            "  why: the types of the columns differ, or their number\n"
            "  do: give rows of the stream's types; `columns=` of `zset` says what the values are"
        ),
    ),
    "rows whose types null does not tell": (
        lambda c, bid, item: streams.zset([(1, None), (2, 0.5)]),
        (
            "the type of column `c1` of `zset` cannot be told from null\n"
            "  why: without `columns=` types are those of the first row's values, or of the columns of a frame\n"
            "  do: name the columns and their types, as in `columns={'c0': 'number', 'c1': 'number?'}`"
        ),
    ),
    "a frame with a column of nulls": (
        lambda c, bid, item: streams.zset(pa.table({"at": pa.array([None]), "n": [1]})),
        (
            "the type of column `at` of `zset` cannot be told from null\n"
            "  why: without `columns=` types are those of the first row's values, or of the columns of a frame\n"
            "  do: name the columns and their types, as in `columns={'at': 'number?', 'n': 'number'}`"
        ),
    ),
    "a list of columns to group by": (
        lambda c, bid, item: bid.group_by(["item", "price"]),
        (
            "['item', 'price'] is no name of a column\n"
            "  why: columns are named one by one, and those of the stream are item, price\n"
            "  do: give 'item', 'price', without brackets around"
        ),
    ),
    "weights of another number": (
        lambda c, bid, item: streams.zset([(1,), (2,)], [1]),
        (
            "2 rows, but weights of shape (1,) and type int64\n"
            "  why: every row has a weight, an integer\n"
            "  do: give as many weights as rows"
        ),
    ),
    "weights that are no integers": (
        lambda c, bid, item: streams.zset([(1,)], ["x"]),
        (
            "the weights are no 64-bit integers\n"
            "  why: 'str' object cannot be interpreted as an integer\n"
            "  do: give an integer from -2**63 to 2**63 - 1 for each row"
        ),
    ),
    "a nested circuit without an end": (
        lambda c, bid, item: endless(c, bid),
        (
            "output `o`: the nested circuit `count up` did not come to rest in 10 ticks\n"
            "  why: each tick still changed something; the step was not made\n"
            "  do: look at the loop: does it add rows without end? else raise `limit=`"
        ),
    ),
    "a limit that is none": (
        lambda c, bid, item: c.nested("n", limit=0).__enter__(),
        (
            "`limit` cannot be 0\n"
            "  why: it is how often a nested circuit may tick\n"
            "  do: give an integer from 1, or leave it out"
        ),
    ),
    "a limit that says whether": (
        lambda c, bid, item: c.nested("n", limit=True).__enter__(),
        (
            "`limit` cannot be True\n"
            "  why: it is how often a nested circuit may tick\n"
            "  do: give an integer from 1, or leave it out"
        ),
    ),
    "a nested circuit whose name is a number": (
        lambda c, bid, item: c.nested(5).__enter__(),
        ('`name` cannot be 5\n  why: errors and progress call the circuit by it\n  do: give a text, such as "bids"'),
    ),
    "a circuit whose name is a number": (
        lambda c, bid, item: streams.Circuit(5),
        ('`name` cannot be 5\n  why: errors and progress call the circuit by it\n  do: give a text, such as "bids"'),
    ),
    "an apply that says how much": (
        lambda c, bid, item: bid.apply(lambda x: x, "item", flat=5, twice=int),
        (
            "`flat` cannot be 5\n"
            "  why: it says whether or not\n"
            "  do: give `flat=True` or `flat=False`, or leave it out to decide"
        ),
    ),
    "a circuit of changes that says how much": (
        lambda c, bid, item: c.incremental(forget=5),
        (
            "`forget` cannot be 5\n"
            "  why: it says whether or not\n"
            "  do: give `forget=True` or `forget=False`, or leave it out to decide"
        ),
    ),
    "a run that says how far": (
        lambda c, bid, item: next(c.run({"bid": []}, follow=5)),
        (
            "`follow` cannot be 5\n"
            "  why: it says whether or not\n"
            "  do: give `follow=True` or `follow=False`, or leave it out to decide"
        ),
    ),
    "a placeholder that is nothing yet": (
        lambda c, bid, item: unconnected(c),
        (
            "FILE: error: the placeholder `later` is not connected\n"
            '    circuit.output("o", circuit.placeholder("later", x=int))\n'
            "  why: an output depends on it, and it has no values\n"
            "  do: say what it is: `circuit.connect(placeholder, stream)`"
        ),
    ),
    "a placeholder twice": (
        lambda c, bid, item: connected_twice(c, bid),
        (
            "Stream(item:number, price:float) of loop back is no open placeholder\n"
            "  why: a stream is defined once\n"
            "  do: make one with `circuit.placeholder(...)`, and connect it once"
        ),
    ),
    "no aggregate": (
        lambda c, bid, item: bid.group_by("item").aggregate(n=5),
        (
            "column `n`: 5 is no aggregate\n"
            "  why: a column of a group is an aggregate over its rows\n"
            '  do: give streams.count(), streams.sum("x"), or another one that `dir(streams)` lists'
        ),
    ),
    "a sum of texts": (
        lambda c, bid, item: item.group_by("item").aggregate(n=streams.sum("name")),
        (
            "column `n`: `name` is of type symbol\n"
            "  why: `sum` takes number, unsigned, float, duration or decimal\n"
            "  do: use min, max, quantile_disc or count_distinct, or an expression of such a type"
        ),
    ),
    "no number of rows": (
        lambda c, bid, item: bid.group_by("item").top(0, "price"),
        ("0 is no number of rows\n  why: the first k rows are asked for\n  do: give an integer from 1"),
    ),
    "an order that is none": (
        lambda c, bid, item: bid.group_by("item").top(1, 5),
        ('`by` cannot be 5\n  why: it names the columns that order rows\n  do: give "price", "-price" or ["a", "-b"]'),
    ),
    "a term without a value": (
        lambda c, bid, item: undefined(c, bid),
        (
            "output `o`: `share = 10 / item` has no value for some row\n"
            "  why: a division by zero, a result out of range or a text that is no number; the step was not made\n"
            "  do: filter such rows first"
        ),
    ),
    "a key that stands for null": (
        lambda c, bid, item: least_key(c),
        (
            "output `o`: `k = k, x = 0` brings -9223372036854775808 to a column that admits null\n"
            "  why: it is the code of null there; the step was not made\n"
            "  do: filter such rows first, or keep null away from the column"
        ),
    ),
    "a sum beyond its type": (
        lambda c, bid, item: large_sum(c, item),
        (
            "outputs `all` and `total`: `total = sum item` has no value for name = 'x'\n"
            "  why: it is beyond its type, or adds inf and -inf; the step was not made\n"
            "  do: leave such rows out, or make a column of whole numbers one of floats"
        ),
    ),
    "an output twice": (
        lambda c, bid, item: [c.output("o", stream) for stream in (bid, item)],
        ("the circuit has an output `o` already\n  why: outputs have names of their own\n  do: rename one"),
    ),
    "an output too late": (
        lambda c, bid, item: late(c, bid),
        (
            "output `p` comes too late: the circuit has stepped\n"
            "  why: what it remembers belongs to the operators it had\n"
            "  do: add inputs and outputs before the first step"
        ),
    ),
    "rules that are no text": (
        lambda c, bid, item: streams.from_rules(5),
        (
            "`rules` cannot be 5\n"
            "  why: it is the text of rules, or a lftj.Program\n"
            '  do: give rules, as in `from_rules("p(x) :- e(x).")`'
        ),
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_text_of_a_message(name: str) -> None:
    """`FILE` is this file and the line of the call."""
    function, text = MESSAGES[name]
    with pytest.raises(lftj.Error) as caught:
        function(*world())
    shown = re.sub(r"\S*test_messages\.py:\d+", "FILE", str(caught.value))
    assert shown == text


def test_a_cycle_with_a_delay_is_none() -> None:
    circuit, bid, _ = world()
    cycle(circuit, bid, delay=True)


def test_after_an_error_the_circuit_goes_on() -> None:
    """A refused cycle leaves its placeholder open, a refused input no input."""
    circuit, bid, item = world()
    back = circuit.placeholder("back", item=int, price=float)
    for wrong in (lambda: circuit.connect(back, back + bid), lambda: circuit.connect(back, item), lambda: bid + item):
        with pytest.raises(lftj.Error):
            wrong()
    circuit.connect(back, bid + back.delay())
    circuit.output("o", back)
    assert [dict(circuit.step({"bid": [(1, 0.5)]})["o"]) for _ in range(2)] == [{(1, 0.5): 1}, {(1, 0.5): 2}]
