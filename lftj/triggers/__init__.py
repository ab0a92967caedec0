"""Triggers: sums and counts over joins, kept by higher-order deltas (the viewlet transform, Cumulus).

algebra.py    formulas, maps, statements and programs, as data
"""
