"""Stored relations: what a database holds, one relation at a time.

`stored` (a relation: its facts, its content, its key orders and scans) · `change` (the difference of two contents) ·
`batch` (the rows of a transaction, applied to facts) · `lagging_order` (a key order that follows when it is asked for)
· `page_folds` (folds of pages by Python functions, remembered).
"""
