"""`lftj functors`: the table of functors and tests, from the one that the checker goes by."""

from __future__ import annotations

import json
from typing import Any

from lftj.cli.outcome import Code
from lftj.language.functors import CONSTRAINTS, FUNCTORS, SAME, Constraint, Signature
from lftj.language.types import ANY


def show_functors(*, as_json: bool) -> int:
    """Print all functors: name, types, what it gives and an example that holds."""
    rows = [_functor(signature) for signature in FUNCTORS.values()]
    rows += [_test(constraint) for constraint in CONSTRAINTS.values()]
    print(json.dumps(rows, indent=2) if as_json else "\n".join(_lines(rows)))
    return Code.DONE


def _functor(signature: Signature) -> dict[str, Any]:
    parameters = [f"{kind}, ..." if signature.variadic else kind for kind in signature.parameters]
    return {
        "name": signature.name,
        "types": f"{', '.join(parameters)} -> {signature.result}",
        "T": sorted(signature.domain) if SAME in signature.parameters and signature.domain != ANY else None,
        "does": signature.doc,
        "example": signature.example,
    }


def _test(constraint: Constraint) -> dict[str, Any]:
    return {
        "name": constraint.name,
        "types": "symbol, symbol",
        "T": None,
        "does": constraint.doc,
        "example": constraint.example,
    }


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        of = f"  (T: {', '.join(row['T'])})" if row["T"] else ""
        lines += [f"{row['name']:11}  {row['types']}{of}", f"{'':11}  {row['does']}", f"{'':11}  {row['example']}"]
    return lines
