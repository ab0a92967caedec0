"""docs/functors.md says what the tables of functors and aggregates say.

python -m tests.language.test_reference_page        writes the tables of the page anew
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.functors import CONSTRAINTS, FUNCTORS
from lftj.language.signature import EACH, SAME
from lftj.language.types import ANY, BASE_TYPES

PAGE = Path(__file__).parents[2] / "docs" / "functors.md"


def types(domain: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in BASE_TYPES if name in domain)


def functors() -> list[str]:
    lines = ["| functor | types | gives | example |", "| --- | --- | --- | --- |"]
    for f in FUNCTORS.values():
        shapes = f.shapes()
        letter = SAME if SAME in f.parameters else EACH
        of = (
            f" ({letter}: {types(f.domain)})"
            if letter in shapes[0].replace(",", "").split() and f.domain != ANY
            else ""
        )
        meant = "; ".join(f"`{shape}`{of if i == 0 else ''}" for i, shape in enumerate(shapes))
        lines.append(f"| `{f.name}` | {meant} | {f.doc} | `{f.example}` |")
    return lines


def text_constraints() -> list[str]:
    lines = ["| test | holds if | example |", "| --- | --- | --- |"]
    lines += [f"| `{c.name}({', '.join(c.parameters)})` | {c.doc} | `{c.example}` |" for c in CONSTRAINTS.values()]
    return lines


def aggregates() -> list[str]:
    lines = ["| aggregate | folds | result | gives | of no binding |", "| --- | --- | --- | --- | --- |"]
    for a in AGGREGATES.values():
        folds = "bindings" if not a.operand else "any type" if a.operand == ANY else types(a.operand)
        result = f"`{a.result}`" if a.result else "the type of its operand"
        empty = "no row" if a.empty is None else str(a.empty)
        lines.append(f"| `{a.name}{'(p)' * a.by_counts}` | {folds} | {result} | {a.doc} | {empty} |")
    return lines


TABLES = {"functor": functors, "test": text_constraints, "aggregate": aggregates}


def table_in(text: str, first: str) -> str:
    found = re.search(rf"^\| {first} \|.*\n(?:\|.*\n)+", text, re.MULTILINE)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("first", TABLES)
def test_the_page_has_the_table(first: str) -> None:
    assert table_in(PAGE.read_text(encoding="utf-8"), first).splitlines() == TABLES[first]()


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    for first, made in TABLES.items():
        page = page.replace(table_in(page, first), "\n".join(made()) + "\n")
    PAGE.write_text(page, encoding="utf-8")
    sys.exit(0)
