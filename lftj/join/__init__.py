"""The join, as kernels over arrays.

Evaluating: `trie` (the six operations) · `expression_vm` (what rules compute and compare) ·
`join_state` (all that a join reads and writes) · `leapfrog` (one node) · `triejoin` (all of them, recording or not) ·
`run` (in slices) · `blocks`, `block_memo` (counting without enumerating) · `first_key_index`, `profile`.

Without a walk: `row_table` (rows by their keys) · `dense_groups` (sums and extremes of groups, unsorted).

Maintaining a trace: `reposition` (standing on a binding) · `change_oracle` (what a change concerns) · `repair` (the
part of a leapfrog join that differs) · `subtree` (subtrees that come or go) · `trace_update` (all of it, in four
stages).
"""
