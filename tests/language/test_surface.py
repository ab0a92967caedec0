"""What the package exports, what it imports, and how long it takes to start."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import lftj.language as lang
from lftj.language.functors import FUNCTORS
from lftj.language.signature import Signature
from lftj.language.stratify import components, cycle
from lftj.language.types import base_type, chain
from lftj.values.type_table import FAMILIES

HEAVY = ("numba", "numpy", "pyarrow", "pandas", "polars")


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_names() -> None:
    assert lang.__all__ == [
        "FUNCTORS", "Apply", "BodyAtom", "CheckedProgram", "Clause", "Compare", "Condition", "Directive", "Program",
        "Relation", "Signature", "Term", "Value", "Var", "agg", "any_of", "check", "check_query", "fn", "parse",
        "to_text", "unsigned", "variables",
    ]  # fmt: skip
    assert all(hasattr(lang, name) for name in lang.__all__)


def test_checking_a_program_imports_nothing_heavy() -> None:
    code = (
        "import sys, lftj.language as lang\n"
        "assert 'lark' not in sys.modules\n"
        "known = lang.check(lang.parse('.decl e(x:number) p(x) :- e(x), x < 2.')).schemas\n"
        "lang.check_query('p(x)', known)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert _run(code) == "[]"


def test_the_grammar_loads_fast_enough_for_a_command_line() -> None:
    code = (
        "import time, lark, lftj.language as lang\n"
        "start = time.process_time(); lang.parse('p(1).'); print(time.process_time() - start)"
    )
    # 0.045 s on a quiet core of the machine this was written on; the bound leaves room for a busy one
    assert min(float(_run(code)) for _ in range(3)) < 0.2


def test_parsing_is_linear_in_the_number_of_facts() -> None:
    text = "".join(f"edge({i}, {i + 1}).\n" for i in range(4000))
    lang.parse(text[:1000].rsplit("\n", 1)[0])
    start = time.process_time()
    program = lang.check(lang.parse(text))
    assert time.process_time() - start < 5
    assert len(program.facts["edge"]) == 4000


def test_the_table_of_functors_is_consistent() -> None:
    for name, signature in FUNCTORS.items():
        assert isinstance(signature, Signature)
        assert signature.name == name
        assert signature.doc.endswith(".")
        assert signature.parameters
        assert signature.result in {*signature.parameters, *FAMILIES}
        assert signature.accepts(len(signature.parameters))
        assert not signature.accepts(0)
        assert signature.accepts(7) == signature.variadic
    assert str(FUNCTORS["cat"]) == "cat(symbol, ...):symbol"
    assert FUNCTORS["substr"].parameter(5) == "number"


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({}, []),
        ({"a": ["b"], "b": []}, [("b",), ("a",)]),
        ({"a": ["b"], "b": ["a"], "c": ["a", "x"]}, [("a", "b"), ("c",)]),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, [("d",), ("b",), ("c",), ("a",)]),
        ({"a": ["a"]}, [("a",)]),
    ],
)
def test_components_are_bottom_up(graph: dict[str, list[str]], found: list[tuple[str, ...]]) -> None:
    assert components(graph) == found


def test_the_shortest_cycle_is_shown() -> None:
    graph = {"a": ["b", "c"], "b": ["d"], "c": ["a"], "d": ["a"]}
    (component,) = components(graph)
    assert cycle(component, graph) == ["a", "c", "a"]
    assert cycle(("x",), {"x": []}) == []


def test_type_names_resolve_through_chains() -> None:
    definitions = {"A": "B", "B": "number", "C": "D", "D": "C", "E": "nowhere"}
    assert base_type("A", definitions) == "number"
    assert chain("C", definitions) == ["C", "D", "C"]
    assert base_type("C", definitions) is None
    assert base_type("E", definitions) is None
    assert base_type("float", definitions) == "float"
