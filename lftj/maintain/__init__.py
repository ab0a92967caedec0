"""Maintenance: how derived relations follow the changes of a commit.

`commit` (the next state, and the change of every relation) · `strategy` (the seam: how a head follows a change) ·
`choose` (the list of strategies, and the choice) · `cost` (what following or evaluating takes) · `report` (what a
commit says of a head) · `commit_stats` (its figures) · `erased_in_vain` (erased rows that rules derive) · `refresh`
(stale heads on demand) · `recompute`, `alias` (a head that is another relation), `first` (the first rows of another),
`by_partition` (values of window functions; `copied_rows`: what it and `first` have in common), `scan`, `rounds`
(recursive components), `levels` (values along acyclic data), `paths` (path counts), `triggers`, `delta`, `trace` (a
strategy each) · `streams` (what comes and goes event by event) · `refused_calls` (what transactions say) ·
`derivations`, `prepare` (what deltas and traces keep of a head, and how it is made) · `clause_delta` (a clause
followed by joins of what changed) · `moved_bounds` (old and new rows of what is only compared, as pairs) ·
`whole_bounds` (ranges of numbers by floats) · `clause_trace`, `text_trace`, `trace_layout` (a clause followed by its
trace) · `kept_triggers`, `body_maps` (what triggers keep of a head, and of all heads of one body) · `step` (a commit
as strategies see it) · `journal` (log lines, counts, traces) · `background` (what commits need is compiled meanwhile)
· `all_kernels` (everything once, so that all is compiled).
"""
