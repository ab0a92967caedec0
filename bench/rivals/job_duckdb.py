"""DuckDB, one thread, at the jobs of `bench.jobs`: the tables change, and the answers are selected anew."""

from __future__ import annotations

from typing import Any

from bench.job_changes import Change, Job, Tables

#: By job, the answers and what they need, in their order.
SQL: dict[str, dict[str, str]] = {
    "fraud_rings": {
        "passed": """
            SELECT i.id AS i, j.id AS j FROM payment i JOIN payment j ON j.payer = i.payee
            WHERE i.at < j.at AND j.at <= i.at + INTERVAL 3 DAYS AND j.amount <= i.amount
              AND j.amount * 10 >= i.amount * 9""",
        "ring": """
            SELECT p.i, p.j, q.j AS k FROM passed p JOIN passed q ON q.i = p.j
            JOIN payment x ON x.id = p.i JOIN payment y ON y.id = q.j
            WHERE y.payee = x.payer AND y.at <= x.at + INTERVAL 3 DAYS""",
        "linked": """
            WITH RECURSIVE hand(a, b) AS (
                SELECT DISTINCT x.account, y.account FROM login x JOIN login y USING (device)),
            linked(a, b) AS (FROM hand UNION SELECT l.a, h.b FROM linked l JOIN hand h ON h.a = l.b) FROM linked""",
        "suspect": """
            SELECT r.i, r.j, r.k FROM ring r JOIN payment x ON x.id = r.i JOIN payment y ON y.id = r.j
            WHERE x.payer <> y.payee AND (
                EXISTS (FROM linked WHERE a = x.payer AND b = x.payee) OR
                EXISTS (FROM linked WHERE a = x.payee AND b = y.payee) OR
                EXISTS (FROM linked WHERE a = x.payer AND b = y.payee))""",
        "member": """
            SELECT DISTINCT payer AS x FROM payment
            WHERE id IN (SELECT i FROM suspect UNION SELECT j FROM suspect UNION SELECT k FROM suspect)""",
        "moved": "SELECT payer, sum(amount) FROM payment WHERE payer IN (SELECT x FROM member) GROUP BY payer",
    },
    "bill_of_materials": {
        "total": """
            WITH RECURSIVE made(root, part, n) AS (
                SELECT part, part, 1::BIGINT FROM own
                UNION ALL SELECT root, piece, n * times FROM made JOIN uses USING (part))
            SELECT root AS part, sum(n * cost)::DECIMAL(18, 2) AS cost FROM made JOIN own USING (part) GROUP BY root""",
        "quote": "SELECT part, cost FROM total WHERE part NOT IN (SELECT piece FROM uses)",
    },
    "access_rights": {
        "under": """
            WITH RECURSIVE under(g, h) AS (
                SELECT team, "of" FROM part UNION SELECT g, "of" FROM under JOIN part ON team = h) FROM under""",
        "belongs": "SELECT who, team AS g FROM member UNION SELECT who, h FROM member JOIN under ON g = team",
        "within": """
            WITH RECURSIVE within(f, h) AS (
                (SELECT folder, folder FROM inside UNION SELECT parent, parent FROM inside)
                UNION SELECT f, parent FROM within JOIN inside ON folder = h) FROM within""",
        "denied": """
            SELECT DISTINCT who, f FROM belongs JOIN deny ON team = g JOIN within ON h = folder""",
        "may": """
            SELECT DISTINCT who, f FROM belongs JOIN "grant" ON team = g JOIN within ON h = folder
            ANTI JOIN denied USING (who, f)""",
    },
    "change_feed": {
        "by_status": "SELECT status, count(*) FROM orders GROUP BY status",
        "spent": """
            SELECT customer, sum(cents)::BIGINT AS cents FROM orders WHERE status <> 'cancelled' GROUP BY customer""",
        "good": "SELECT customer FROM spent WHERE cents > 30000",
        "sold": """
            SELECT name, sum(cents)::BIGINT FROM orders JOIN category USING (product)
            WHERE status = 'sent' GROUP BY name""",
        "dearest": "SELECT product, max(cents) FROM orders WHERE status <> 'cancelled' GROUP BY product",
    },
    "time_buckets": {
        "hits": 'SELECT time_bucket(INTERVAL 1 HOUR, "at") AS h, count(*) AS n FROM request GROUP BY h',
        "failures": """
            SELECT time_bucket(INTERVAL 1 HOUR, "at") AS h, count(*) AS n FROM request WHERE status >= 500
            GROUP BY h""",
        "bad": "SELECT h FROM failures f JOIN hits USING (h) WHERE f.n * 50 > hits.n",
    },
}


class DuckDBJob:
    """Tables in memory."""

    def __init__(self, job: Job) -> None:
        import duckdb

        self._job = job
        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def load(self, tables: Tables) -> None:
        """Make the tables."""
        for name, table in tables.items():
            self._run(f'CREATE TABLE "{name}" AS FROM incoming', table)

    def answer(self) -> None:
        """Evaluate the answers anew."""
        for name, query in SQL[self._job.name].items():
            self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS {query}')

    def apply(self, change: Change) -> None:
        """Erase and insert."""
        for name, table in change.gone.items():
            same = " AND ".join(f'"{name}"."{c}" = incoming."{c}"' for c in table.column_names)
            self._run(f'DELETE FROM "{name}" USING incoming WHERE {same}', table)
        for name, table in change.come.items():
            self._run(f'INSERT INTO "{name}" FROM incoming', table)

    def answers(self) -> dict[str, Any]:
        """The answers."""
        return {name: self._connection.sql(f'FROM "{name}"').to_arrow_table() for name in self._job.answers}

    def _run(self, statement: str, table: Any) -> None:
        self._connection.register("incoming", table)
        self._connection.execute(statement)
        self._connection.unregister("incoming")
