"""SQL: statements over the relations of a database, parsed by sqlglot (`pip install "lftj[sql]"`).

`running` (`Database.sql`, `Transaction.sql`) · `statements` (parsing), `dialect` with `extensible_parser`,
`syntax_errors`, `nesting`, `incomplete` and `parameters` · `session` (one statement after the other) in a `room` ·
`kept_statements` (those that come again) · `ddl`, `create_table` (`create`, `drop`) with `table_definition`,
`constraints` and `defaults` · `insert`, `on_conflict`, `update_delete` with `change_target`, `given_rows`,
`row_changes` (rows that statements give and change) · `question` (queries of statements), `one_off`, `results` (those
that answer) · `view_rules`, `view_parts` (views, and names of parts of them) · `catalogue` (tables and views as SQL
sees them) · `places` (places in the text, refusals) · `scope` (what translators of queries and of expressions tell each
other) · `sql_expressions` (values and conditions) with `scalars`, `sql_functions`, `sql_intervals`, `predicates`,
`conversions` (casts, where types meet), `constants`, `cases` (alternatives that exclude one another), `listed_values`

Queries: `queries` (`translated`) · `select` · `from_clause`, `outer_joins` · `grouping`, `aggregate_heads`,
`joined_texts`, `written_quantiles`, `grouping_sets` · `subqueries` · `set_operations` · `values`, `series` ·
`with_clause`, `recursive_query` · `windowed_select`, `written_windows`, `window_checks` (`over`) · `ordering`, `limits`
· `query_scope` (columns, parameters of subqueries) · `branches` (bodies of rules) · `heads` (rules and names) · `view`
(what comes of it)
"""
