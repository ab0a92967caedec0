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
worth_keeping.py      which components of a delta get a map, by estimates
compilation.py        from the definitions of maps to what every event does to them
m3f.py                programs as text, m3f_reader.py and m3f.lark back from it, syntax_error.py where it goes wrong
hierarchy.py          the maps as a picture
"""
