"""Recursion: components of rules that derive one another, evaluated round by round and kept up to date.

    variants.py           what a clause becomes when one of its atoms ranges over changed rows, or its head is known
    component_join.py     a variant, planned once and run many times
    component_joins.py    the variants of a component's clauses
    round_column.py       rows with their rounds, and how they grow and shrink
    fixpoint.py           a component while it is worked on: the relations as they are so far
    closure.py            transitive closures, which are run in one form
    semi_naive.py         evaluation from scratch: every derived row with the round it came in
    retraction.py         which rows lose their support when others go
    propagation.py        the next content after a change: suspects, rows that return, rows that are new
    min_max_fixpoint.py   minimum and maximum: one row per key, which gives way to a better one
    scratch_relation.py   the relation that holds changed rows while a join reads them

Every derived row has a derivation whose rows all have smaller rounds (rows of lower strata, and facts, have round 0),
so no row is supported by itself. Source: B. Motik et al., Incremental Update of Datalog Materialisation: the
Backward/Forward Algorithm (AAAI 2015); the rounds stand in for its well-founded proofs.
`lftj.maintain.rounds` decides whether a component is maintained or evaluated again.
"""
