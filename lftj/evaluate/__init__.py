"""Evaluation from scratch: one clause, or one aggregate, over relations as they are.

`evaluator` (plan a clause, lower the plan, walk it, collect rows) · `by_columns` (what needs no walk: columns, and rows
that are looked up by keys; `column_reading` says which) · `factorised` (groups that are counted, and not enumerated) ·
`term_columns` (terms over columns) · `column_functions` (numbers, decimals and dates, a column at a time) ·
`text_steps` (clauses that compute texts) · `aggregate` (heads that fold their bindings) · `accumulators` (count, sum,
mean) · `group_scan` (min, max, cat, `quantiles`) · `undefined_terms`, `undefined_groups` (rows without a value, and
when that is an error) · `key_conflicts` (functional predicates with two values for a key) · `empty_relations` (those
that must stay empty) · `first_of_order` (the first rows in an order) · `window_values` (window functions).
"""
