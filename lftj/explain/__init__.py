"""Plans and maintenance in words.

`explanation` (how each rule is evaluated: `Database.explain`) · `maintenance` (how each head follows changes) ·
`bytes_held` (what is held, in bytes: `Database.memory`).
"""
