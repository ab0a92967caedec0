"""Planning: from a checked clause to a `JoinPlan`.

`body` (what a clause asks for, with constants and repeated variables as variables of their own) -> `statistics` (what
the relations look like) -> `keyorder` (which order binds the variables) -> `joinplan` (depths, trie frames, orders of
relations) -> `lowering` (the arrays the kernel walks). `starts` and `trials` race more orders of long bodies,
`sampling` tries orders of large joins on a sample; `groups_first` has groups counted in another order; `traceplan`
says how the trace of a join is kept.
"""
