"""SQL: statements over the relations of a database, parsed by sqlglot (`pip install "lftj[sql]"`).

`catalogue` (tables and views as SQL sees them) · `places` (places in the text, refusals) · `scope` (what translators of
queries and of expressions tell each other)
"""
