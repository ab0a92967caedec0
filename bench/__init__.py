"""Benchmarks of lftj: workloads, data, rivals, the runner that writes `results/*.jsonl`, and the report made from them.

    python -m bench.run                     every workload on every feasible graph, all engines; appends to
    bench/results/ python -m bench.run -w triangle -g wiki-Vote -e lftj,csr
    python -m bench.report                  tables of README.md and plots, from the committed results
    python -m bench.steps                   the step bounds of the triangle join

One registry, `workloads.py`, serves the benchmark at full size and the tests at size "tiny".
"""
