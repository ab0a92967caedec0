"""Programs of SQL on the command line: run, check, explain, query, updates; what refuses them.

Catches: a table that is not filled from its file, rows of a view that are written once where they are there twice, an
error without a place, an exit code that says something else.
"""

from __future__ import annotations

import pytest

import lftj
from tests.cli.conftest import Shell

pytest.importorskip("sqlglot")

REPORT = """\
create table sale (item text, qty int);
create table item (name text primary key, price int);
insert into item values ('ink', 9);
create view total as select item, sum(qty) as n from sale group by item;
create view items as select item from sale;
select name, price from item order by price desc;
"""
FILES = {
    "report.sql": REPORT,
    "facts/sale.csv": "item,qty\ntea,2\njam,1\ntea,2\n",
    "facts/item.facts": "tea\t3\njam\t4\n",
}


def test_run_loads_tables_writes_views_and_answers(shell: Shell) -> None:
    shell.write(FILES)
    done = shell("run", "report.sql", "-F", "facts", "-D", "out")
    assert (done.code, done.err) == (0, "")
    assert done.out == "name  price\n----  -----\nink       9\njam       4\ntea       3\n"
    assert shell.read("out/total.csv") == "item,n\njam,1\ntea,4\n"
    assert shell.read("out/items.csv") == "item\njam\ntea\ntea\n"


def test_run_to_stdout(shell: Shell) -> None:
    shell.write(FILES)
    done = shell("run", "report.sql", "-F", "facts", "-D", "-")
    assert done.code == 0
    assert done.out.startswith(
        "---------------\ntotal\nitem\tn\n===============\njam\t1\ntea\t4\n===============\n"
        "---------------\nitems\nitem\n===============\njam\ntea\ntea\n===============\n"
    )


@pytest.mark.parametrize(
    ("values", "output"), [("('tea\t'), ('jam')", "-"), ("(''), (null)", "-"), ("(''), (null)", "out")]
)
def test_values_that_text_cannot_tell_are_told_by_a_query(shell: Shell, values: str, output: str) -> None:
    shell.write(
        {"report.sql": f"create table t (a text); insert into t values {values}; create view v as select a from t;"}
    )
    done = shell("run", "report.sql", "-D", output)
    assert done.code == 3
    assert (
        "  do: ask by `lftj query 'select ...' PROGRAM --format json`, or give another value in the view\n" in done.err
    )
    assert shell("query", "select * from v", "report.sql", "--format", "json").code == 0


def test_statements_behind_a_table_see_its_file(shell: Shell) -> None:
    shell.write({**FILES, "copy.sql": "create table sale (item text, qty int);\ncreate table s (q int);\n"})
    shell.write({"more.sql": "create table sale (item text, qty int); create table s (q int);\n"})
    shell.write({"more.sql": shell.read("more.sql") + "insert into s select qty from sale where item = 'tea';\n"})
    done = shell("query", "select sum(q) as q, count(*) as n from s", "more.sql", "-F", "facts", "--format", "csv")
    assert (done.code, done.out, done.err) == (0, "q,n\n4,2\n", "")


def test_updates_are_copies(shell: Shell) -> None:
    shell.write(FILES)
    changes = "+sale tea 1\n\n-sale tea 2\n-sale tea 2\n=item ink\n"
    done = shell("run", "report.sql", "-F", "facts", "-D", "out", "--updates", "-", stdin=changes)
    assert done.code == 3
    assert "1 value for `item`, which takes 2" in done.err
    assert done.out.splitlines()[:4] == ["-total tea 4", "+total tea 5", "-items tea 2", "+items tea 3"]


def test_what_follows_updates_is_written(shell: Shell) -> None:
    shell.write(FILES)
    done = shell("run", "report.sql", "-F", "facts", "-D", "out", "--updates", "-", stdin="-sale jam 1\n+sale ink 7\n")
    assert (done.code, done.err) == (0, "")
    assert shell.read("out/total.csv") == "item,n\nink,7\ntea,4\n"


def test_a_database_keeps_what_a_program_defines_and_loads(shell: Shell) -> None:
    shell.write(FILES)
    arguments = ("run", "report.sql", "-F", "facts", "-D", "out", "--database", "shop.lftj")
    done = shell(*arguments, "--updates", "-", stdin="+sale ink 7\n")
    assert (done.code, done.err) == (0, "")
    with lftj.Database(path="shop.lftj") as db:
        assert sorted(db["total"]) == [("ink", 7), ("jam", 1), ("tea", 4)]
        assert sorted(db["item"]) == [("ink", 9), ("jam", 4), ("tea", 3)]
    done = shell(*arguments)
    assert done.code == 2
    assert done.err.startswith("lftj: error: --database shop.lftj: it is not empty\n")
    with lftj.Database(path="shop.lftj") as db:
        assert len(db["total"]) == 3


def test_a_program_that_fails_leaves_its_database_empty(shell: Shell) -> None:
    shell.write({**FILES, "wrong.sql": f"{REPORT}insert into item values ('tea', 1);"})
    done = shell("run", "wrong.sql", "-F", "facts", "-D", "out", "--database", "shop.lftj")
    assert done.code == 3
    assert "tea" in done.err
    done = shell("run", "report.sql", "-F", "facts", "-D", "out", "--database", "shop.lftj")
    assert (done.code, done.err) == (0, "")


def test_check_tells_every_finding(shell: Shell) -> None:
    shell.write({"ok.sql": REPORT})
    assert shell("check", "ok.sql").err == "lftj: 1 program checked, no findings\n"
    wrong = "create table t (a blurb);\ninsert into t values (1);\ncreate view v as select b from s;\n"
    shell.write({"wrong.sql": f"{wrong}selec 1;"})
    done = shell("check", "wrong.sql")
    assert done.code == 1
    assert done.out.startswith("wrong.sql:4:1: error: syntax error at `selec`\n    selec 1;\n    ^^^^^\n")
    assert "did you mean `select`?" in done.out
    shell.write(
        {"wrong.sql": "create table t (a blurb);\ninsert into t values (1);\ncreate view v as select b from s;\n"}
    )
    done = shell("check", "wrong.sql")
    assert done.code == 1
    assert "wrong.sql:1:17: error: there is no type `blurb`" in done.out
    assert "wrong.sql:3:" in done.out
    assert "`t`" not in done.out
    assert done.err == "lftj: 1 program checked, 2 errors\n"


def test_explain_shows_a_view(shell: Shell) -> None:
    shell.write(FILES)
    done = shell("explain", "report.sql", "total", "-F", "facts", "--run")
    assert done.code == 0
    assert "total(" in done.out
    assert shell("explain", "report.sql", "nothing").code != 0


def test_query_asks_programs_of_rules_too(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(a:number, b:symbol)\n.input e\n", "facts/e.facts": "1\tx\n2\ty\n"})
    done = shell("query", "select b, a + 1 as n from e where a > 1", "p.dl", "-F", "facts", "--format", "json")
    assert (done.code, done.out) == (0, '[{"b": "y", "n": 3}]\n')
    done = shell("query", "select a from e where b = $b", "p.dl", "-F", "facts", "--format", "csv", "-p", "b=x")
    assert (done.code, done.out) == (0, "a\n1\n")
    done = shell("query", "select a from e", "p.dl", "-F", "facts", "-p", "c=x")
    assert done.code == 2
    assert "no query has a parameter `$c`" in done.err


def test_a_query_is_one_statement(shell: Shell) -> None:
    shell.write({"p.dl": ".decl e(a:number)\ne(1).\n"})
    assert shell("query", "select a from e;", "p.dl") == (0, "a\n-\n1\n", "")
    for form in ("table", "csv", "json", "arrow"):
        done = shell("query", "select a from e; select a + 1 as b from e", "p.dl", "--format", form)
        assert done == (
            2,
            "",
            "lftj: error: `select a from e; select a + 1 as b from e` holds 2 statements\n"
            "  why: a query has one answer, and the others would be lost\n"
            "  do: give each as a query of its own, as in `lftj query 'select ...' 'select ...' PROGRAM`\n",
        )


@pytest.mark.parametrize("query", ["total(x, n)", "total(x, _), sale(x, n), n > $least"])
def test_a_query_of_rules_is_told_to_ask_in_sql(shell: Shell, query: str) -> None:
    shell.write(FILES)
    given = ("-p", "least=1") if "$" in query else ()
    done = shell("query", query, "report.sql", "-F", "facts", *given)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"lftj: error: `{query}` asks as a rule does, and report.sql is a program of SQL\n"
        "  why: a program of SQL is asked in SQL\n"
        "  do: ask with `select`, as in `lftj query 'select * from total' report.sql`\n"
    )


def test_what_is_refused(shell: Shell) -> None:
    shell.write({**FILES, "facts/sale.tsv": "tea\t1\n"})
    done = shell("run", "report.sql", "-F", "facts", "-D", "out")
    assert done.code == 2
    assert "several files for the table `sale`: sale.csv, sale.tsv" in done.err
    done = shell("query", "insert into item values ('a', 1)", "report.sql")
    assert done.code == 2
    assert "changes the program" in done.err
    done = shell("watch", "report.sql", "-F", "facts")
    assert (done.code, done.out) == (2, "")
    assert "this is a program of SQL" in done.err
    shell.write({"bad/sale.csv": "item,qty\ntea,x\njam,1\n"})
    assert shell("run", "report.sql", "-F", "bad", "-D", "out").code == 3
    done = shell("run", "report.sql", "-F", "bad", "-D", "out", "--on-error", "quarantine")
    assert done.code == 0
    assert "1 bad row of `sale` left out" in done.err
    assert shell.read("out/total.csv") == "item,n\njam,1\n"


@pytest.mark.parametrize("name", ["../total", "a/b"])
def test_no_view_is_written_to_another_folder(shell: Shell, name: str) -> None:
    shell.write({"report.sql": f'create table t (a int); create view "{name}" as select a from t;'})
    done = shell("run", "report.sql", "-D", "out")
    assert done.code == 2
    assert f"the view `{name}` cannot be written to out" in done.err
    assert not (shell.folder / "total.csv").exists()
    assert shell("run", "report.sql", "-D", "-").code == 0


def test_constraints_hold_for_files(shell: Shell) -> None:
    program = """
        create table item (name text primary key, price int default 9 check (price > 0));
        create table sale (item text references item, qty int);
        create view total as select item, sum(qty) as n from sale group by item order by n desc limit 1;
        insert into sale values ('tea', 5);
        insert into item values ('tea', 4) on conflict do update set price = excluded.price;
    """
    shell.write({"shop.sql": program, "facts/item.csv": "name,price\ntea,3\n", "facts/sale.csv": "item,qty\ntea,2\n"})
    done = shell("run", "shop.sql", "-F", "facts", "-D", "out")
    assert (done.code, done.err, shell.read("out/total.csv")) == (0, "", "item,n\ntea,7\n")
    assert shell("check", "shop.sql").err == "lftj: 1 program checked, no findings\n"
    assert "@sale.foreign1" in shell("explain", "shop.sql", "-F", "facts").out
    assert shell("triggers", "shop.sql").code == 0
    shell.write({"facts/sale.csv": "item,qty\njam,2\n"})
    done = shell("run", "shop.sql", "-F", "facts", "-D", "out")
    assert done.code != 0
    assert "`sale` breaks `foreign key (item) references item`" in done.err


def test_a_report_that_is_not_written_leaves_its_database_empty(shell: Shell) -> None:
    run = ("run", "report.sql", "-F", "facts", "-D", "out", "--database", "shop.lftj")
    shell.write({**FILES, "out/total.csv/here": ""})
    for _ in range(2):
        done = shell(*run)
        assert (done.code, done.out) == (3, "")
        assert "total.csv: error: the file cannot be written" in done.err
    (shell.folder / "out" / "total.csv" / "here").unlink()
    (shell.folder / "out" / "total.csv").rmdir()
    assert shell(*run).code == 0


@pytest.mark.parametrize(
    ("file", "text", "remedy", "mended"),
    [
        ("sale.csv", "item,n\ntea,1\n", "else give it these names", "item,qty\ntea,1\n"),
        ("sale.csv", "item,3\n", "write a line with the names of all columns above it", "item,qty\nitem,3\n"),
        ("sale.csv", "name,n\ntea,1\n", "give it the names of the table's columns", "item,qty\ntea,1\n"),
        ("sale.csv", "a,tea,1\n", "name the columns in the file as the table does", "a,item,qty\na,tea,1\n"),
        ("sale.csv", "tea\t1\n", "put commas between the fields of a .csv file", "tea,1\n"),
        ("sale.tsv", "tea,1\n", "and tabs elsewhere", "tea\t1\n"),
        ("sale.csv", '"tea,1\n', "close the quote, or write a .tsv file", '"tea",1\n'),
    ],
)
def test_files_of_tables_are_refused_with_remedies_that_they_have(
    shell: Shell, file: str, text: str, remedy: str, mended: str
) -> None:
    shell.write({"report.sql": REPORT, f"facts/{file}": text})
    done = shell("run", "report.sql", "-F", "facts", "-D", "out")
    assert done.code == 3
    said = done.err.partition("\n  do: ")[2]
    assert remedy in said
    assert "=" not in said
    shell.write({f"facts/{file}": mended})
    assert shell("run", "report.sql", "-F", "facts", "-D", "out").code == 0


def test_columns_of_a_file_that_no_table_has_are_told_with_a_remedy(shell: Shell) -> None:
    shell.write({"report.sql": REPORT, "facts/sale.csv": "item,qty,more\ntea,1,2\n"})
    done = shell("run", "report.sql", "-F", "facts", "-D", "out")
    assert done.code == 0
    assert done.err.endswith("do: create the table with these columns, or leave them out of the file\n")
