"""Path counts: how many paths lead from a node to another, kept up to date over an acyclic relation.

    declare.py   the two heads that a call of `Database.path_counts` adds, and what they may not be given
    limbs.py     counts of any size as rows of int64
    count.py     counting from scratch, along a topological order
    follow.py    following inserts and erases of edges: T + T S T and T - T S T
    cycle.py     the error that names a cycle

What the user holds is `lftj.pathcounts.PathCounts`.
"""
