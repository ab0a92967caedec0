"""The engine: relations as they are stored, and the evaluation of rules over them.

`stored` (a relation and its key orders) · `textsteps` (parts of a rule that compute texts) · `evaluate` (one clause:
plan, lower, run) · `strata` (all rules of a database, bottom up, on demand).
"""
