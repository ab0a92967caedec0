"""`lftj functors`: the table of functors and tests, from the one that the checker goes by."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from lftj.cli.outcome import Code
from lftj.language.functors import CONSTRAINTS, FUNCTORS, Constraint
from lftj.language.signature import EACH, SAME, Signature
from lftj.language.types import ANY

# Of what is described of a functor.
WIDTH = 106


def show_functors(*, as_json: bool) -> int:
    """Print all functors: name, types, what it gives and an example that holds."""
    rows = [_functor(signature) for signature in FUNCTORS.values()]
    rows += [_test(constraint) for constraint in CONSTRAINTS.values()]
    print(json.dumps(rows, indent=2) if as_json else "\n".join(_lines(rows)))
    return Code.DONE


def _functor(signature: Signature) -> dict[str, Any]:
    return {
        "name": signature.name,
        "types": signature.shapes()[0],
        "also": signature.shapes()[1:],
        "T": sorted(signature.domain) if _has_domain(signature) else None,
        "does": signature.doc,
        "example": signature.example,
    }


def _has_domain(signature: Signature) -> bool:
    """Whether `T`, or `any`, stands for some of the types only."""
    named = {word.strip(",") for word in signature.shapes()[0].split()}
    return bool({SAME, EACH} & named) and signature.domain != ANY


def _test(constraint: Constraint) -> dict[str, Any]:
    return {
        "name": constraint.name,
        "types": ", ".join(["symbol"] * 2 if len(constraint.parameters) > 1 else ["any"]),
        "also": [],
        "T": None,
        "does": constraint.doc,
        "example": constraint.example,
    }


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH + 13, subsequent_indent=" " * 13)


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        letter = SAME if SAME in row["types"].replace(",", "").split() else EACH
        of = f"  ({letter}: {', '.join(row['T'])})" if row["T"] else ""
        lines += [*_wrapped(f"{row['name']:11}  {row['types']}{of}"), *(f"{'':11}  {shape}" for shape in row["also"])]
        described = [*textwrap.wrap(row["does"], WIDTH), row["example"]]
        lines += [f"{'':11}  {line}" for line in described]
    return lines
