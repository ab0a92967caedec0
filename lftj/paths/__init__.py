"""Path counts: how many paths lead from a node to another.

    big_counts.py   counts of any size as rows of int64
    count.py        counting from scratch, along a topological order
    cycle.py        the error that names a cycle

`lftj.program.declare_paths` adds their two heads, `lftj.maintain.paths` follows inserts and erases of edges (T + T S T
and T - T S T), and `lftj.results.path_counts.PathCounts` is what the user holds.
"""
