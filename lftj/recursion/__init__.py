"""Recursion: components of rules that derive one another, evaluated round by round and kept up to date.

    variants.py           what a clause becomes when one of its atoms ranges over changed rows, or its head is known
    variant_plans.py      the plans of a variant, for relations of about the present sizes
    component_joins.py    the variants of a component's clauses, planned once and run many times
    round_column.py       rows with their rounds, and how they grow and shrink
    fixpoint.py           a component while it is worked on: the relations as they are so far
    closure.py            transitive closures, which are run in one form
    semi_naive.py         evaluation from scratch: every derived row with the round it came in
    retraction.py         which rows lose their support when others go
    min_max_fixpoint.py   minimum and maximum: one row per key, which gives way to a better one

Every derived row has a derivation whose rows all have smaller rounds (rows of lower strata, and facts, have round 0),
so no row is supported by itself. Source: B. Motik et al., Incremental Update of Datalog Materialisation: the
Backward/Forward Algorithm (AAAI 2015); the rounds stand in for its well-founded proofs.
`lftj.maintain.rounds` decides whether a component is maintained or evaluated again, and has the steps of maintaining.
"""
