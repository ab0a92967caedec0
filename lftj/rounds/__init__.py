"""Recursion: components of rules that derive one another, evaluated round by round and kept up to date.

    variants.py    what a clause becomes when one of its atoms ranges over changed rows only, or its head is known
    deltajoin.py   a variant, planned once and run many times
    content.py     rows with their rounds, and how they grow and shrink
    component.py   evaluation from scratch: semi-naive, every derived row with the round it came in
    maintain.py    the next content after a change: suspects, checks, rows that return, rows that are new

Every derived row has a derivation whose rows all have smaller rounds (rows of lower strata, and facts, have round 0),
so no row is supported by itself. Design section 7; `spec/rounds_model.py` is its executable form. Sources: B. Motik et
al., incremental maintenance by the backward/forward algorithm; the rounds stand in for its well-founded proofs.
"""
