"""SQL: statements over the relations of a database, parsed by sqlglot (`pip install "lftj[sql]"`).

`running` (`Database.sql`, `Transaction.sql`) · `statements` (parsing, parameters, syntax errors) · `session` (one
statement after the other) · `ddl` (`create`, `drop`) · `dml` (`insert`, `delete`, `update`) · `one_off`, `results`
(queries that are asked once) · `view_parts` (names of parts of views) · `catalogue` (tables and views as SQL sees
them) · `places` (places in the text, refusals) · `scope` (what translators of queries and of expressions tell each
other) · `expressions` (values and conditions) with `scalars`, `functions`, `intervals`, `predicates`, `conversions`
(casts, where types meet), `constants`, `cases` (alternatives that exclude one another)
"""
