"""Recursion: components of rules that derive one another, evaluated round by round and kept up to date.

    variants.py    what a clause becomes when one of its atoms ranges over changed rows only, or its head is known
    deltajoin.py   a variant, planned once and run many times
    joins.py       the variants of a component's clauses
    content.py     rows with their rounds, and how they grow and shrink
    component.py   a component while it is worked on: the relations as they are so far
    closure.py     transitive closures, which are run in one form
    evaluation.py  evaluation from scratch: semi-naive, every derived row with the round it came in
    retraction.py  which rows lose their support when others go
    maintain.py    the next content after a change: suspects, rows that return, rows that are new
    best.py        minimum and maximum: one row per key, which gives way to a better one
    strategy.py    whether a component is maintained or evaluated again

Every derived row has a derivation whose rows all have smaller rounds (rows of lower strata, and facts, have round 0),
so no row is supported by itself. Design section 7; `spec/rounds_model.py` is its executable form. Sources: B. Motik et
al., incremental maintenance by the backward/forward algorithm; the rounds stand in for its well-founded proofs.
"""
