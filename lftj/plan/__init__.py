"""Planning: from a checked clause to a `JoinPlan`.

`body` (what a clause asks for, with constants and repeated variables as variables of their own) -> `statistics` (what
the relations look like) -> `keyorder` (which order binds the variables) -> `joinplan` (depths, trie frames, orders of
relations) -> `lowering` (the arrays the kernel walks). `sampling` tries orders out where that is worth while;
`traceplan` says how the trace of a join is kept.
"""
