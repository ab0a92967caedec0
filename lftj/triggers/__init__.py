"""Triggers: sums and counts over joins, kept by higher-order deltas (the viewlet transform, Cumulus).

calculus.py           formulae and terms of Cumulus; calculus_reader.py and calculus.lark from text
calculus_algebra.py   the calculus as algebra
algebra.py            formulas, maps, statements and programs, as data
formulas.py           variables of formulas, and their replacement
event_delta.py        what a row that comes or goes changes about a formula
normalise.py          polynomials, variable elimination, connected components
canonical.py          equal texts for definitions that are equal up to names
evaluation_order.py   the order in which the factors of a product are evaluated
extraction.py         what a product sums over relations becomes maps
worth_keeping.py      which components of a delta get a map, by estimates; fill_order.py in which order they are filled
from_clauses.py       from the clause of an aggregate to formulas, atoms.py of its atoms; one_body.py those of one body
derived_relations.py  what a formula reads of one relation, for batches of rows; events
head_rows.py          from what maps logged to rows of the head
compilation.py        from the definitions of maps to what every event does to them
m3f.py                programs as text (m3f_final.py what comes last), m3f_reader.py and m3f.lark back from it,
                      syntax_error.py where it goes wrong
hierarchy.py          the maps as a picture
key_ranges.py         reads that add up an interval of keys
kept_thresholds.py    sums over the rows for which a running sum passes a bound
twins.py              maps that share a table
lowered.py            statements as instructions; lowered_final.py those that come after an event
maps.py               the maps in memory, and events over them: event_kernel.py, table_kernel.py, order_kernel.py,
                      checked_arithmetic.py; row_kernel.py from one changed row to what changes about the head;
                      saved_maps.py the maps as arrays to save
"""
