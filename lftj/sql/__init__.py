"""SQL: statements over the relations of a database, parsed by sqlglot (`pip install "lftj[sql]"`).

`scope` (what translators of queries and of expressions tell each other) · `places` (places in the text, refusals)
"""
