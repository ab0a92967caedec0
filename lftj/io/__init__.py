"""Input and output: any source becomes columns of codes (`sources.read`), and columns become files (`write.write`).

`read_options` (how a source is to be read) · `file`, `find_files`, `remote` (from what the user names to files) ·
`formats` (the table of formats) · `read_text`, `lines`, `fields` (text) · `write_text`, `content` (text to write) ·
`json_text` (JSON) · `binary` (Parquet, Arrow), `batch_reader` (their batches) · `read_ahead` (what threads of Arrow
hold) · `typed`, `convert`, `rows`, `row_forms` (data frames, arrays, tuples, dicts) · `pandas_missing` (what is missing
in their columns) · `pick` (which column is which) · `staging`, `rejects` (rows until all are known to be good, and bad
ones) · `changes` (rows of a transaction) · `change_feed`, `feed_staging` (changes with an operation each) ·
`change_file` (transactions in a text) · `directive_files` (`.input`, `.output`).
"""
