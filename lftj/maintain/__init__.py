"""Maintenance: how derived relations follow the changes of a commit.

`commit` (the next state, and the change of every relation) · `strategy` (how a head follows a change) · `derive` (a
head evaluated; stale heads on demand) · `cost` (what following or evaluating takes) · `report` (what a commit says of a
head) · `alias` (a head that is another relation) · `rounds` (recursive components) · `paths` (path counts) ·
`clause_delta` (a clause followed by joins of what changed) · `clause_trace`, `text_trace`, `trace_layout` (a clause
followed by its trace) · `head_trace`, `recording` (what is kept of a head, and how it is made).
"""
