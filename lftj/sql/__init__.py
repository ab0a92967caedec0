"""SQL: statements over the relations of a database, parsed by sqlglot (`pip install "lftj[sql]"`).

`catalogue` (tables and views as SQL sees them)
"""
