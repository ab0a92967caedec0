"""Arguments of every kind, given to every public callable: the outcome is a result or an `lftj.Error`.

The sweep finds the callables by `inspect`, so a new method or parameter is swept when it is written. Each parameter in
turn gets each of `VALUES`, the others what they take. After an error the database is as before: its relations have the
same rows, and a transaction goes through. The tests below the sweep say what some of the errors look like.
"""

from __future__ import annotations

import inspect
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lftj
from lftj.database import Database
from lftj.errors import ArgumentError, CycleError, DataError, Diagnostic, ProgramError, Span, UnknownColumnError

VALUES = [None, 5, -1, math.nan, "x", "", b"x", [], [5], {}, {"x": 5}, {5: 5}, True, 2.5, object(), ...]
RULES = """
  .decl e(x:number, y:number)  .decl d(x:number, y:number)
  .decl price(item:symbol) -> cost:float
  .input e(filename="e.facts")  .output t
  t(x, z) :- e(x, y), e(y, z).
  e(1, 2). e(2, 3). d(1, 2). price["tea"] = 3.5.
"""
# What Python calls and libraries that read a relation as a stream, with parameters that nobody writes.
INTERNAL = {"__init__", "__new__", "__exit__", "__setattr__", "__delattr__", "__getattr__", "__arrow_c_stream__"}
KNOBS = {"page_rows", "directory_rows", "buffer_rows"}  # of tests, and not documented


class World:
    """A database with a relation of each kind, and one object of every public class over it."""

    def __init__(self) -> None:
        self.db = Database(RULES)
        self.counts = self.db.path_counts("d", into="paths")
        self.edge = lftj.Program().input("e", x=int, y=int)
        self.term, self.other = lftj.variables("x y")
        with self.db.transaction() as self.past:
            self.past.insert("e", [(7, 8)])
        lftj.monoid("largest", combine=max, identity=0)
        self.rows = self.content()
        self.state = self.db._state

    def content(self) -> dict[str, list[Any]]:
        """The rows of all relations."""
        return {name: list(self.db[name]) for name in self.db}

    @property
    def untouched(self) -> bool:
        """Whether nothing was committed or loaded: the state is one value, replaced as a whole."""
        return self.db._state is self.state

    def check(self) -> None:
        """A transaction goes through, and everything is as it was."""
        with self.db.transaction() as tx:
            tx.insert("e", [(100, 101), (101, 102)])
        assert list(tx.delta["t"].inserted) == [(100, 102)]
        with self.db.transaction() as tx:
            tx.erase("e", [(100, 101), (101, 102)])
        assert self.content() == self.rows
        self.state = self.db._state


SUBJECTS: dict[str, Callable[[World], object]] = {
    "lftj": lambda world: lftj,
    "database": lambda world: world.db,
    "snapshot": lambda world: world.db.snapshot(),
    "relation": lambda world: world.db["e"],
    "functional": lambda world: world.db["price"],
    "columns": lambda world: world.db["e"].columns,
    "query": lambda world: world.db.query("t(x, y)"),
    "explanation": lambda world: world.db.explain(),
    "transaction": lambda world: world.db.transaction(),
    "deltas": lambda world: world.past.delta,
    "delta": lambda world: world.past.delta["e"],
    "inserted": lambda world: world.past.delta["e"].inserted,
    "path counts": lambda world: world.counts,
    "program": lambda world: lftj.Program(),
    "declared": lambda world: lftj.Program().relation("f", x=int),
    "term": lambda world: world.term,
    "condition": lambda world: world.edge(world.term, world.other),
    "functor": lambda world: lftj.fn.cat,
    "constraint": lambda world: lftj.fn.contains,
    "aggregate": lambda world: lftj.agg.sum,
    "count": lambda world: lftj.agg.count,
}

# What a parameter takes, by its name, or by subject and name; a name that is not here gets each of `VALUES` alone.
GOOD: dict[str, Callable[[World], Any]] = {
    "name": lambda world: "e",
    "relation": lambda world: "e",
    "into": lambda world: "counted",
    "source": lambda world: [(5, 6)],
    "program": lambda world: ".decl new(x:number)",
    "text": lambda world: "e(x, y)",
    "callback": lambda world: lambda delta: None,
    "head": lambda world: "t",
    "monoid": lambda world: "sum",
    "combine": lambda world: max,
    "identity": lambda world: 0,
    "answers": lambda world: world.db,
    "row": lambda world: (1, 2),
    "key": lambda world: "tea",
    "pair": lambda world: (1, 2),
    "base": lambda world: int,
    "value": lambda world: 5,
    "names": lambda world: "x",
    "other": lambda world: 5,
    "directory": lambda world: ".",
    "program.name": lambda world: "g",
    "program.head": lambda world: world.edge(world.term, world.other),
    "program.body": lambda world: world.edge(world.term, world.other),
    "program.columns": lambda world: int,
    "declared.value": lambda world: int,
    "lftj.name": lambda world: "least",
    "transaction.name": lambda world: "e",
}


def callables(subject: object) -> dict[str, Callable[..., object]]:
    """By name: the public methods of an object, and what operators call; of the module, its functions and classes."""
    if subject is lftj:
        exported = {name: getattr(lftj, name) for name in lftj.__all__}
        return {
            name: value
            for name, value in exported.items()
            if inspect.isfunction(value) or value in (lftj.Database, lftj.Program)
        }
    found = {}
    for kind in type(subject).__mro__:
        for name, value in vars(kind).items():
            ours = kind.__module__.startswith(("lftj.", "collections.abc"))
            public = not name.startswith("_") or (name.startswith("__") and name not in INTERNAL)
            if ours and public and inspect.isfunction(value):
                found.setdefault(name, getattr(subject, name))
    return found


def cases(world: World, label: str) -> Iterator[tuple[str, str]]:
    """The names of a callable and of one of its parameters."""
    for name, function in callables(SUBJECTS[label](world)).items():
        for parameter in inspect.signature(function).parameters:
            if parameter not in KNOBS:
                yield name, parameter


def arguments(world: World, label: str, function: Callable[..., object], swept: str, value: object) -> Any:
    """What to call a function with: `value` for the parameter `swept`, what it takes for all others it needs."""
    given: list[object] = []
    named: dict[str, object] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        good = GOOD.get(f"{label}.{name}") or GOOD.get(name) or (lambda world: value)
        if name != swept and parameter.default is not parameter.empty:
            continue
        many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name != swept and many and f"{label}.{name}" not in GOOD:
            continue
        argument = value if name == swept else good(world)
        if parameter.kind is parameter.VAR_KEYWORD:
            named["column"] = argument
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
        subject = SUBJECTS[label](world)
        if label == "transaction":
            with world.db.transaction() as subject:
                function = callables(subject)[name]
                given, named = arguments(world, label, function, swept, value)
                function(*given, **named)
            return None
        function = callables(subject)[name]
        given, named = arguments(world, label, function, swept, value)
        result = function(*given, **named)
        if isinstance(result, lftj.Query | lftj.Relation):
            len(result)
        if label == "program":
            Database(subject)
    except lftj.Error as error:
        return error
    return None


@pytest.mark.parametrize("label", SUBJECTS)
def test_wrong_arguments_give_an_error_of_lftj(label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.facts").write_text("1\t2\n")
    world = World()
    refused, raw = 0, []
    for name, parameter in list(cases(world, label)):
        checked = False
        for value in VALUES:
            shown = f"{label}.{name}({parameter}={value!r})"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    error = outcome(world, label, name, parameter, value)
            except Exception as other:
                raw.append(f"{shown}: {type(other).__name__}: {other}")
                world = World()
                continue
            if error is None:
                world = world if world.untouched else World()
                continue
            refused += 1
            assert world.untouched, shown
            if not checked:
                world.check()
                checked = True
            if not (error.why and error.remedy):
                raw.append(f"{shown}: lacks why or what to do: {error}")
    assert not raw, "\n".join(raw)
    assert refused or label in ("query", "delta")


REFUSED: dict[str, Callable[[Database], object]] = {
    "`program` cannot be 5": lambda db: Database(5),  # type: ignore[arg-type]
    "`program` cannot be None": lambda db: db.rules(None),  # type: ignore[arg-type]
    "`program` cannot be 'shop.lftj'": lambda db: Database("shop.lftj"),
    "`program` cannot be ':memory:'": lambda db: Database(":memory:"),
    "`program` cannot be './rules/prog.dl'": lambda db: db.rules("./rules/prog.dl"),
    "`program` cannot be PosixPath('prog.dl')": lambda db: db.rules(Path("prog.dl")),  # type: ignore[arg-type]
    "`name` cannot be 5": lambda db: db[5],  # type: ignore[index]
    "`name` cannot be [5]": lambda db: db[[5]],  # type: ignore[index]
    "`name` cannot be 6": lambda db: db.load(6, [(1, 2)]),  # type: ignore[arg-type]
    "`text` cannot be None": lambda db: db.query(None),  # type: ignore[arg-type]
    "`timeout` cannot be 'x'": lambda db: db.query("e(x, y)", timeout="x"),  # type: ignore[arg-type]
    "`timeout` cannot be nan": lambda db: db.evaluate(timeout=math.nan),
    "`timeout` cannot be -1": lambda db: db.transaction(timeout=-1),
    "`order` cannot be 'xy'": lambda db: db.query("e(x, y)", order="xy"),  # type: ignore[arg-type]
    "`key_orders` cannot be 'xy'": lambda db: db.rules("", key_orders="xy"),  # type: ignore[arg-type]
    "`key_orders` cannot be 'zyx'": lambda db: db.rules("", key_orders={"t": "zyx"}),  # type: ignore[dict-item]
    "`maintain` cannot be 5": lambda db: db.rules("", maintain=5),  # type: ignore[arg-type]
    "`memory_limit` cannot be -1": lambda db: Database(memory_limit=-1),
    "`memory_limit` cannot be 'much'": lambda db: Database(memory_limit="much"),
    "`callback` cannot be 5": lambda db: db.on_commit("e", 5),  # type: ignore[arg-type]
    "`missing` cannot be 5": lambda db: db.transaction(missing=5),  # type: ignore[arg-type]
    "`directory` cannot be None": lambda db: db.read_inputs(None),  # type: ignore[arg-type]
    "`header` cannot be 'no'": lambda db: db.load("e", "e.csv", header="no"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_argument_of_another_kind_is_named(what: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        REFUSED[what](Database(RULES))
    assert caught.value.what == what
    assert isinstance(caught.value, TypeError)


def test_the_whole_text_of_one() -> None:
    with pytest.raises(ArgumentError) as caught:
        Database().evaluate(timeout="x")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "`timeout` cannot be 'x'\n"
        "  why: it is a time in seconds, a number of 0 or more\n"
        "  do: give `timeout=60` or `timeout=0.5`, or leave it out for no limit"
    )


def test_a_transaction_goes_on_after_a_wrong_argument() -> None:
    db = Database(RULES)
    with db.transaction() as tx:
        with pytest.raises(ArgumentError, match="`name` cannot be None"):
            tx.insert(None, [(5, 6)])  # type: ignore[arg-type]
        tx.insert("e", [(5, 6)])
    assert list(tx.delta["e"].inserted) == [(5, 6)]


@pytest.mark.parametrize(
    ("limit", "size"), [("1G", 10**9), ("512MB", 512 * 10**6), ("2GiB", 2 << 30), ("1.5 KiB", 1536), (4096, 4096)]
)
def test_a_memory_limit_in_words(limit: int | str, size: int) -> None:
    assert Database(memory_limit=limit)._arena.limit == size


def test_a_column_is_asked_for_by_name() -> None:
    columns = Database(RULES)["e"].columns
    assert columns == {"x": "number", "y": "number"}
    with pytest.raises(UnknownColumnError) as caught:
        columns[1]  # type: ignore[index]
    assert str(caught.value) == (
        "`e` has no column 1\n"
        "  why: its columns are x, y, and are known by their names\n"
        "  do: give one of these names; `list(r.columns)` numbers them"
    )
    assert isinstance(caught.value, KeyError)


@pytest.mark.parametrize("rules", ["", ".decl e(x:number) .input e"])
def test_inputs_are_read_from_a_folder_that_is_there(rules: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such folder to read facts from"):
        Database(rules).read_inputs(tmp_path / "nowhere")


@pytest.mark.parametrize("rules", ["", "p(1). .output p"])
def test_outputs_make_their_folder_and_not_those_above_it(rules: str, tmp_path: Path) -> None:
    Database(rules).write_outputs(tmp_path / "out")
    assert (tmp_path / "out").is_dir()
    with pytest.raises(DataError, match="the output folder cannot be made"):
        Database(rules).write_outputs(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="why: it is a file"):
        Database(rules).write_outputs(tmp_path / "file")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "error",
    [
        ArgumentError("what", why="why", remedy="remedy"),
        CycleError("what", cycle=(1, 2, 1), why="why", remedy="remedy"),
        ProgramError([Diagnostic("what", Span("t.dl", 1, 1), "why", "remedy")]),
    ],
)
def test_an_error_survives_pickling(error: lftj.Error) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
