"""Views of SQL over many columns that may be null: rules, and CPU seconds to make one over an empty table.

    python -m bench.wide_views [-k 8,12,40] [-f arithmetic,case]

Each form is a value of one column; a view gives out that of k columns. Of k values with two or three cases each there
are 2^k or 3^k combinations; rules are to grow with k (lftj/sql/computed_columns.py). Each line goes to
`bench/results/wide_views.jsonl`. Exit code 1 if a view has more than `MOST` rules a column.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import lftj
from bench import results

WIDE = results.RESULTS / "wide_views.jsonl"
SIZES = (8, 12, 40)
MOST = 14
FORMS = {
    "arithmetic": "{c} + 1",
    "coalesce": "coalesce({c}, 0)",
    "case": "case when {c} > 0 then 1 else 0 end",
    "predicate": "{c} > 3",
    "cast": "cast({c} as varchar)",
    "scalar subquery": "(select max({c}) from t u where u.c0 = t.c0)",
}
GROUPED = {
    "sum": "sum({c})",
    "coalesced sum": "coalesce(sum({c}), 0)",
    "ratio of sums": "sum({c}) / count({c})",
}


def made(form: str, k: int) -> tuple[int, float]:
    """(rules, CPU seconds) of the view with the form of k columns."""
    columns = [f"c{i}" for i in range(k)]
    grouped = form in GROUPED
    shown = ", ".join((GROUPED if grouped else FORMS)[form].format(c=c) + f" as o{i}" for i, c in enumerate(columns))
    db = lftj.Database()
    db.sql(f"create table t (id int primary key, g int, {', '.join(f'{c} int' for c in columns)})")
    begun = time.process_time()
    db.sql(f"create view v as select {f'g, {shown} from t group by g' if grouped else f'id, {shown} from t'}")
    return len(db._state.strata.clauses), time.process_time() - begun


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the views, print and keep their figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.wide_views", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-k", "--columns", default=",".join(map(str, SIZES)))
    parser.add_argument("-f", "--forms", default=",".join((*FORMS, *GROUPED)))
    options = parser.parse_args(arguments)
    made("arithmetic", 2)  # compiles, and imports
    worst = 0.0
    for form in options.forms.split(","):
        for k in map(int, options.columns.split(",")):
            rules, seconds = made(form, k)
            worst = max(worst, rules / k)
            print(f"{form:16} {k:4} columns {rules:5} rules {seconds:7.2f} s", flush=True)
            results.append(WIDE, {"form": form, "columns": k, "rules": rules, "seconds": round(seconds, 3)})
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
