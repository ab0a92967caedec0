"""The join, as kernels over arrays.

Evaluating: `trie` (the six operations) · `machine` (what rules compute and compare) · `walk` (all that a join reads and
writes) · `leapfrog` (one node) · `triejoin` (all of them, recording or not) · `run` (in slices) · `jumps`, `profile`.

Maintaining a trace: `place` (standing on a binding) · `concern` (what a change concerns) · `repair` (the part of a
leapfrog join that differs) · `redo` (subtrees that come or go) · `maintain` (all of it, in four stages).
"""
