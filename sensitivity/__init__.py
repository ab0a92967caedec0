"""What a join's trace depends on, and how to find the parts of it that a change concerns.

A leapfrog triejoin is a run of steps; each step leaves one *record*: a prefix of the atom's own keys, the closed key
interval `[c, h]` it looked at, the other keys bound at that moment (the context) and how many participants agreed. A
change to that atom under that prefix concerns the step exactly when its key lies in the interval (T. Veldhuizen,
*Incremental Maintenance for Leapfrog Triejoin*, arXiv 1303.5313, section 4).

Three things live here once rules are maintained under updates: the records of a trace, the index over them (an
interval tree ordered by interval start with a max-scan over interval ends, built on `scantree`), and the change
oracle, which turns the tree surgeries of a delta into the join nodes to look at again.

Imports point one way: this package uses `scantree` and is used by `lftj`. It knows nothing of rules, parsing or heads.
"""
