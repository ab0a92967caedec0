"""What a join's trace depends on, and how to find the parts of it that a change concerns.

A leapfrog triejoin is a run of steps; each step leaves one *record*: a prefix of the atom's own keys, the key it sought
from (the start of the closed interval it looked at), the other keys bound at that moment (the context) and how many
participants agreed. A change to that atom under that prefix concerns the step exactly when its key lies in the interval
(T. Veldhuizen, *Incremental Maintenance for Leapfrog Triejoin*, arXiv 1303.5313, section 4).

| paper                        | here                                                        | file       |
|------------------------------|-------------------------------------------------------------|------------|
| sensitivity interval, 4.1    | record, without the interval's end                          | records.py |
| sensitivity index, 4.1, 4.2  | packed records of a site (one participant of one depth)     | packing.py, index.py |
| stabbing query, 3.2          | a range of starts, behind the key before the changed one    | oracle.py  |
| tree surgery, 4.2.1          | the top level of each changed row                           | scantree/surgery.py |
| change oracle, 4.2.2         | tasks and states of a change, found lazily in key order | lftj/join/change_oracle.py |
| maintenance rule, 4.2.2      | repair and redo                                             | lftj/join/repair.py |

Deviations. The state (candidate, turn, agree) is stored with a record, so that only the part of a trace that differs is
redone, not whole intervals. The end of an interval is not stored: it is the least key at or after the start in the old
version of the very set the prefix names, which makes a stabbing query a range query and saves the field
(records.py). An interval tree, as in the paper, is in scantree/intervals.py for intervals whose ends are free;
bench/stabbing.py compares the two.

Imports point one way: this package uses `scantree` and is used by `lftj`. It knows nothing of rules, parsing or heads.
"""
