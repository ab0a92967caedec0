"""Benchmarks of lftj: workloads, data, rivals, the runner that writes `results/*.jsonl`, and the report made from them.

    python -m bench.run                     every workload on every graph it is feasible on, all engines
    python -m bench.run -w triangle -g wiki-Vote -e lftj,csr
    python -m bench.grouped                 counts and sums per group maintained; .floatsums, .extremes, .complement,
                                            .ratings: other whole rules
    python -m bench.replay                  an order book and wide tables, one change a transaction; --code DIR: by the
                                            code of another checkout
    python -m bench.triggers                TPC-H as SQL views, order books, single rows: aggregates kept by triggers
    python -m bench.trigger_kernel          the kernel of triggers alone: events a second, growth with the data
    python -m bench.report                  the tables of the README and of docs/, and plots, from the committed results
    python -m bench.steps                   the step bounds of the triangle join
    python -m bench.storage                 bulk build, single-row inserts, bytes per row
    python -m bench.points                  prepared questions with few answers over a million rows
    python -m bench.start                   import, first run, loading a file

One registry, `workloads.py`, serves the benchmark at full size and the tests at size "tiny".
"""

import os

# On a new machine commits follow nothing until what that takes was compiled in the background: no figure is of that.
os.environ.setdefault("LFTJ_BACKGROUND", "0")
