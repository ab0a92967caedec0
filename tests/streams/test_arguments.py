"""Arguments of every kind, given to every public callable of streams: the outcome is a result or an `lftj.Error`.

As tests/test_arguments.py does for databases: callables are found by `inspect`; each parameter in turn gets each of
`VALUES`, the others what they take. Afterwards the circuit steps as before.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj import streams
from lftj.streams.circuit import NestedCircuit
from lftj.streams.group_aggregates import GroupAggregate
from lftj.streams.group_by import Groups

VALUES = [None, 5, -1, math.nan, "x", "", b"x", [], [5], [["x"]], {}, {"x": 5}, {5: 5}, True, 2.5, object(), ...]
# What Python itself calls, libraries, and other parts of lftj.
INTERNAL = {
    "__arrow_c_stream__",
    "coded",
    "changes_graph",
    "__init__",
    "__new__",
    "__setattr__",
    "__delattr__",
    "__getattr__",
    "__hash__",
    "__init_subclass__",
}


class World:
    """A circuit with a stream of each kind, and one object of every public class."""

    def __init__(self) -> None:
        self.circuit = streams.Circuit()
        self.bid = self.circuit.input("bid", a=int, b=float, c=str)
        self.other = self.circuit.input("other", a=int, d=str)
        self.open = self.circuit.placeholder("open", a=int, b=float, c=str)
        self.circuit.output("all", self.bid.distinct())
        self.inner = NestedCircuit(self.circuit._graph, "inner", 10)
        self.entered = self.inner.enter(self.bid)
        self.rows = streams.zset([(1, 2.5, "x")], columns={"a": int, "b": float, "c": str})

    def check(self) -> None:
        """It steps."""
        self.circuit._graph.outputs.pop("made", None)
        self.circuit._graph.expose("all", self.circuit._graph.outputs["all"])
        assert self.circuit.incremental().step({"bid": self.rows})["all"] == {(1, 2.5, "x"): 1}


SUBJECTS: dict[str, Callable[[World], object]] = {
    "streams": lambda world: streams,
    "circuit": lambda world: world.circuit,
    "incremental": lambda world: world.circuit.incremental(),
    "stream": lambda world: world.bid,
    "groups": lambda world: world.bid.group_by("a"),
    "nested": lambda world: world.inner,
    "rows": lambda world: world.rows,
}

# What a parameter takes, by its name, or by subject and name.
GOOD: dict[str, Callable[[World], Any]] = {
    "name": lambda world: "fresh",
    "stream": lambda world: world.bid,
    "start": lambda world: world.bid,
    "step": lambda world: lambda x: x.distinct(),
    "nested.stream": lambda world: world.bid,
    "placeholder": lambda world: world.open,
    "other": lambda world: world.other,
    "on": lambda world: "a",
    "fill": lambda world: {"b": 0.5, "c": "", "d": ""},
    "condition": lambda world: "a > 1",
    "column": lambda world: "a",
    "by": lambda world: "b",
    "k": lambda world: 2,
    "rules": lambda world: ".decl e(x:number)  p(x) :- e(x).",
    "rows": lambda world: [(1, 2)],
    "columns": lambda world: {"a": int, "b": int},
    "streams.columns": lambda world: {"a": int, "b": int},
    "of": lambda world: "a",
    "inputs": lambda world: {"bid": [(1, 2.5, "x")]},
    "sources": lambda world: {"bid": [[(1, 2.5, "x")]]},
    "aggregates": lambda world: streams.count(),
    "names": lambda world: "a",
    "stream.names": lambda world: "a",
    "kept": lambda world: "a",
    "computed": lambda world: "a + 1",
    "weights": lambda world: [1],
}


def callables(subject: object) -> dict[str, Callable[..., object]]:
    """By name: the public methods of an object, and what operators call; of the module, its functions and classes."""
    if subject is streams:
        return {name: getattr(streams, name) for name in streams.__all__ if name not in ("Stream", "WeightedRows")}
    found = {}
    for kind in type(subject).__mro__:
        for name, value in vars(kind).items():
            public = name not in INTERNAL and (not name.startswith("_") or name.startswith("__"))
            if kind.__module__.startswith("lftj.") and public and inspect.isfunction(value):
                found.setdefault(name, getattr(subject, name))
    return found


def cases(world: World, label: str) -> Iterator[tuple[str, str]]:
    """The names of a callable and of one of its parameters."""
    for name, function in callables(SUBJECTS[label](world)).items():
        for parameter in inspect.signature(function).parameters:
            yield name, parameter


def arguments(world: World, label: str, function: Callable[..., object], swept: str, value: object) -> Any:
    """What to call a function with: `value` for the parameter `swept`, what it takes for all others it needs."""
    given: list[object] = []
    named: dict[str, object] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        good = GOOD.get(f"{label}.{name}") or GOOD.get(name) or (lambda world: value)
        many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name != swept and (parameter.default is not parameter.empty or many):
            continue
        argument = value if name == swept else good(world)
        if parameter.kind is parameter.VAR_KEYWORD:
            named["a"] = argument
        elif parameter.kind is parameter.KEYWORD_ONLY or (
            name == swept
            and parameter.default is not parameter.empty
            and parameter.kind is not parameter.POSITIONAL_ONLY
        ):
            named[name] = argument
        else:
            given.append(argument)
    return given, named


def outcome(world: World, label: str, name: str, swept: str, value: object) -> lftj.Error | None:
    """Call, and use what it gives; the error, if that is what comes of it. Anything else that is raised is raised."""
    try:
        function = callables(SUBJECTS[label](world))[name]
        given, named = arguments(world, label, function, swept, value)
        result = function(*given, **named)
        if isinstance(result, streams.Stream):
            world.circuit.output("made", result)
            world.circuit.step({"bid": [(1, 2.5, "x")]})
        elif isinstance(result, Groups):
            result.aggregate(n=streams.count())
        elif isinstance(result, GroupAggregate):
            world.circuit.output("made", world.bid.group_by("a").aggregate(n=result))
            world.circuit.step({"bid": [(1, 2.5, "x")]})
        elif hasattr(result, "__next__"):
            next(result, None)
        elif hasattr(result, "__enter__"):
            with result:
                pass
    except lftj.Error as error:
        return error
    return None


@pytest.mark.parametrize("label", SUBJECTS)
def test_wrong_arguments_give_an_error_of_lftj(label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused, raw = 0, []
    for name, parameter in list(cases(World(), label)):
        for value in VALUES:
            shown = f"{label}.{name}({parameter}={value!r})"
            world = World()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    error = outcome(world, label, name, parameter, value)
            except Exception as other:
                raw.append(f"{shown}: {type(other).__name__}: {other}")
                continue
            if error is not None:
                refused += 1
                world.check()
    assert not raw, "\n".join(raw)
    assert refused or label in ("rows",)
