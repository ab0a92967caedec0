"""Random programs with random histories, for as long as one likes: `make fuzz MINUTES=60`.

    python -m tests.fuzz [--minutes 5] [--seed N] [--one]

Every case is a program over the whole language with a history of whatever users do, kept by one of all strategies, as
it is or rewritten without changing what it means, with texts or with dates or any other type in their place, in memory
or in a file that is closed and opened in between. Contents and deltas are compared with the plain evaluator's, and
contents with DuckDB's where it is installed; the end says how many cases DuckDB evaluated, and why not the others.
Each begins with a seed, which is printed where it fails, with the case reduced to a small program. Exit code 1 if a
case failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from random import SystemRandom

from tests.fuzz.case import Case, make_case, run
from tests.fuzz.reduce import smaller

# Failing cases after which it ends.
ENOUGH = 5


def _failure(case: Case) -> BaseException | None:
    try:
        run(case)
    except Exception as error:
        return error
    return None


def _told_of_duckdb(seen: Counter[str], count: int) -> str:
    """How many cases DuckDB evaluated too, and why not the others. `seen`: the reasons, empty for those that it did."""
    text = f"of {count} cases DuckDB also evaluated {seen.pop('', 0)}"
    return f"{text}; not: {', '.join(f'{n} for {why}' for why, n in seen.most_common())}" if seen else text


def main(arguments: list[str] | None = None) -> int:
    """Run cases until the time is up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, help="of the first case; the next ones count on from it")
    parser.add_argument("--one", action="store_true", help="only the case of --seed")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("LFTJ_BACKGROUND", "0")
    seed = SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    print(f"fuzz: seeds from {seed} on, {asked.minutes:g} minutes", flush=True)
    end, count, failed = time.monotonic() + 60 * asked.minutes, 0, 0
    done, by_duckdb = Counter[str](), Counter[str]()
    while (time.monotonic() < end and not asked.one) or not count:
        case = make_case(seed + count)
        count += 1
        done.update((f"{case.form} program", case.strategy, *case.rewritings, *["in a file"] * case.in_file))
        done.update([case.type] * (case.type != "symbol"))
        done.update(["null"] * ("?" in case.other))
        try:
            by_duckdb[run(case).untranslated] += 1
            continue
        except Exception as found:
            error = found
        failed += 1
        print(f"fuzz: seed {case.seed} FAILED: {type(error).__name__}: {error}", flush=True)
        kind = type(error)
        small = smaller(getattr(error, "case", case), lambda trial, kind=kind: isinstance(_failure(trial), kind))
        traceback.print_exception(_failure(small) or error)
        print(small.script(), flush=True)
        if failed == ENOUGH:
            break
    print(f"fuzz: {count} cases, {failed} failed; {', '.join(f'{name} {n}' for name, n in done.most_common())}")
    print(f"fuzz: {_told_of_duckdb(by_duckdb, count - failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
