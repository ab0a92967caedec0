"""What users hold: relations, deltas, queries, scans and path counts.

`tabular` (the forms in which rows leave lftj) · `relation` · `transaction_delta` (what a transaction changed) ·
`query`, `compiled`, `prepared` (a query asked once, checked once, asked many times) · `answers` (queries and relations
by name) · `not_pickled` (what pickling and copying them says) · `scans`, `monoids`, `text_order` (folds of key
intervals) · `path_counts` · `listing` (a database as it is shown) · `watching`, `commit_feed` (callbacks, the
commits to come) · `async_block` (`async with`) · `event_stream` (`Database.apply`) · `metrics` ·
`text_table` (columns in line)
"""
