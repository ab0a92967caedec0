"""scantree: sorted rows in versioned copy-on-write pages.

Files in the order a reader meets them: `memory` (the arena all pages live in), `layout` (how a version lies in it), `build` (bulk build), `update`
(the next version), `cursor` (positions, seeks, ranges), `delta` (what differs between two versions), `version` (the Python face), `check` (the
invariants, executable). Knows nothing of rules or joins.
"""
