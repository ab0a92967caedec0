"""The engine: relations as they are stored, the evaluation of rules over them, and how the database changes.

`stored` (a relation and its key orders) · `change` (the difference of two contents) · `strata` (the rules in evaluation
order) · `state` (all that a change of the database changes) · `texts`, `textsteps` (functors over texts, and the parts
of a rule that computes some) · `evaluate` (one clause: plan, lower, run) · `undefined` (terms without a value) ·
`derive` (a head anew; stale heads on demand) · `answers` (queries) · `extend` (a program added to a state) · `wishes`
(what is asked for its rules) · `commit` (a transaction's next state, and the change of every relation) · `strategy`
(how a head follows a change) · `estimates` (what that takes) · `headtrace`, `recording`, `trace`, `texttrace`,
`tracelayout` (the traces it is maintained by).
"""
