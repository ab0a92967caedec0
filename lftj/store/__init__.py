"""Stored relations: what a database holds, one relation at a time.

`stored` (a relation: its facts, its content, its key orders and scans) · `change` (what a transaction asks of a
relation, and the difference of two contents) · `copies` (bags, which say how often a row is there) · `primary_keys`
(their key order, upserts by them) · `page_folds` (folds of pages by Python functions, remembered).
"""
