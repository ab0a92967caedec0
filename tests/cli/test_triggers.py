"""`lftj triggers`: rules, the calculus and M3F as programs of triggers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest

from lftj.cli import main
from lftj.errors import ProgramError
from lftj.triggers import from_m3f
from lftj.triggers.m3f_reader import parsed

QUERY = "q[] = Sum(p * r, O(k, r) and L(k, p))\n"
M3F = """\
relation O(k: number, r: number)
relation L(k: number, p: number)
map q[] = O(k, r) * r * L(k, p) * p
map m_O[k: number] = L(k, p) * p
map m_L[k: number] = O(k, r) * r
top q
on +O(k, r): q[] += r * m_O[k]
on +O(k, r): m_L[k] += r
on -O(k, r): q[] -= r * m_O[k]
on -O(k, r): m_L[k] -= r
on +L(k, p): q[] += p * m_L[k]
on +L(k, p): m_O[k] += p
on -L(k, p): q[] -= p * m_L[k]
on -L(k, p): m_O[k] -= p
"""
RULES = """\
.decl orders(k:number, d:number, r:number)
.decl lineitem(k:number, p:number)
.decl revenue(d:number, s:number)
revenue(d, s) :- orders(_, d, _), s = sum p * r : { orders(k, d, r), lineitem(k, p) }.
"""


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["triggers", *args])
    return code, *capsys.readouterr()


def test_the_calculus_is_printed_as_m3f_which_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calculus, m3f = tmp_path / "query.calc", tmp_path / "query.m3f"
    calculus.write_text(QUERY)
    assert run(capsys, str(calculus)) == (0, M3F, "")
    m3f.write_text(M3F)
    assert run(capsys, str(m3f)) == (0, M3F, "")


def test_the_naive_transform_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calculus = tmp_path / "query.calc"
    calculus.write_text("Q[] = Sum(a, R(a, b) and S(b, c))")
    code, out, _ = run(capsys, str(calculus), "--naive")
    assert code == 0
    assert len([line for line in out.splitlines() if line.startswith("map")]) == 5
    assert run(capsys, str(calculus), "--format", "dot")[1].startswith("digraph maps {")
    assert run(capsys, str(calculus), "--format", "svg")[1].startswith("<svg")


def test_the_pictures_of_several_rules_are_one_drawing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of SVG has one element; each rule has a title, since their maps have the same names."""
    rules = tmp_path / "prog.dl"
    rules.write_text(RULES + ".decl n(a:number)\nheld[a] = count : { n(a), a < 3 }.\n")
    code, out, err = run(capsys, str(rules), "--format", "svg")
    assert (code, err) == (0, "")
    drawing = ElementTree.fromstring(out)
    texts = [shown for shown in drawing.iter("{http://www.w3.org/2000/svg}text") if shown.get("font-weight") == "600"]
    titles = [shown for shown in texts if "=" in (shown.text or "")]
    assert [shown.text for shown in titles] == [
        "revenue(d, s) :- orders(_, d, _), s = sum (p * r) : { orders(k, d, r), lineitem(k, p) }.",
        "held[a] = count : { n(a), a < 3 }.",
    ]
    _, _, width, height = map(float, drawing.get("viewBox", "").split())
    edges = [0.0, *(float(shown.get("y", "")) for shown in titles), height]
    for box in drawing.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, across, down = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + across <= width
        assert any(above < y <= y + down < below for above, below in pairwise(edges))


NOTHING = {
    "a.calc": (
        "",
        "there are no triggers of a text without a query\n"
        "  why: the text has no query, and triggers keep maps of sums\n"
        "  do: add `q[] = Sum(r, O(k, r))`, say\n",
    ),
    "a.m3f": (
        "relation O(k: number, r: number)\n",
        "there are no triggers of a text without a map\n"
        "  why: the text has no map, and triggers keep maps of sums\n"
        "  do: add `map q[] = O(k, r) * r`, say\n",
    ),
    "a.dl": (
        ".decl edge(x:number, y:number)\np(x) :- edge(x, _).\n",
        "no rule of the program is a sum, count or mean that triggers can keep\n"
        "  why: triggers keep maps of sums, which are what such rules are made of\n"
        "  do: give a program with a rule such as `n[x] = count : { edge(x, _) }.`; `lftj explain` says how the rules "
        "here are kept\n",
    ),
    "a.sql": (
        "create table edge (x bigint, y bigint, primary key (x, y));\ncreate view p as select x, y from edge;\n",
        "no view of the program is a sum, count or mean that triggers can keep\n"
        "  why: triggers keep maps of sums, which are what such views are made of\n"
        "  do: give a program with a view such as `select x, count(*) from edge group by x`; `lftj explain` says how "
        "the views here are kept\n",
    ),
}


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("form", ["m3f", "dot", "svg"])
def test_of_a_file_without_maps_it_is_said_why_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, form: str
) -> None:
    if name == "a.sql":
        pytest.importorskip("sqlglot")
    text, said = NOTHING[name]
    (tmp_path / name).write_text(text)
    path = str(tmp_path / name)
    assert run(capsys, path, "--format", form) == (1, "", f"{path}: error: {said}")


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_proposed_for_a_file_without_maps_has_triggers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, said = NOTHING[name]
    proposed = said.rpartition("do: ")[2].split("`")[1]
    if name == "a.sql":
        pytest.importorskip("sqlglot")
        proposed = f"create view n as {proposed};"
    (tmp_path / name).write_text(f"{text}{proposed}\n")
    code, out, err = run(capsys, str(tmp_path / name))
    assert (code, err) == (0, "")
    assert "on +" in out or name == "a.m3f"


def test_rules_are_printed_by_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "prog.dl"
    rules.write_text(RULES)
    code, out, err = run(capsys, str(rules))
    assert (code, err) == (0, "")
    assert "revenue" in out.splitlines()[0]
    program = parsed(out)
    assert len(program.tops) == 2
    assert {relation for _, relation in program.statements} == set(program.relations)


def test_the_programs_of_several_heads_are_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second one was refused: its relations were "declared twice"."""
    rules, m3f = tmp_path / "prog.dl", tmp_path / "prog.m3f"
    rules.write_text(
        f"{RULES}orders_of[d] = count : {{ orders(_, d, _) }}. late[] = count : {{ lineitem(k, p), p > 9 }}."
    )
    out = run(capsys, str(rules))[1]
    m3f.write_text(out)
    lines = [line for line in out.splitlines(keepends=True) if not line.startswith("//")]
    assert lines.count("top count\n") == 2
    assert run(capsys, str(m3f)) == (0, "".join(lines), "")
    m3f.write_text("".join(lines))
    assert run(capsys, str(m3f)) == (0, "".join(lines), "")
    with pytest.raises(ProgramError, match="a second program begins here") as caught:
        from_m3f(out)
    assert caught.value.diagnostics[0].span.line == out[: out.index("relation", out.index("top"))].count("\n") + 1
    again = "relation R(a: number)\nrelation R(a: number)\nmap m[] = R(a)\n"
    m3f.write_text(again)
    assert "declared twice" in run(capsys, str(m3f))[2]


def test_views_of_sql_are_printed_by_their_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sqlglot")
    views = tmp_path / "views.sql"
    tables = """
        create table orders (k int primary key, d int not null);
        create table lineitem (k int not null, p int not null);
    """
    views.write_text(
        f"""{tables}
        create view revenue as select d, sum(p) as s from orders join lineitem using (k) group by d;
        create view dearest as select max(p) as p from lineitem;
        insert into orders values (1, 2);
        select * from revenue;
        """
    )
    code, out, err = run(capsys, str(views))
    assert code == 0
    assert out.splitlines()[0].startswith("// @revenue.sum1[d] = sum ")
    program = parsed(out)
    assert program.tops == ("count", "total")
    assert len(program.relations) == 2
    assert "max" in err
    assert "no count, sum or mean" in err
    views.write_text(f"{tables} create view v as select k from orders")
    code, out, err = run(capsys, str(views))
    assert (code, out) == (1, "")
    assert "no view of the program is" in err
    views.write_text(f"{tables} create view v as select nothing from orders")
    code, out, err = run(capsys, str(views))
    assert (code, out) == (1, "")
    assert "views.sql" in err


def test_what_cannot_be_printed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "prog.dl"
    rules.write_text(".decl e(a:number)\n.decl p(a:number)\np(x) :- e(x).\n")
    code, out, err = run(capsys, str(rules))
    assert (code, out) == (1, "")
    assert "no rule of the program is" in err
    other = tmp_path / "prog.txt"
    other.write_text("")
    code, _, err = run(capsys, str(other))
    assert code == 2
    assert ".dl, .sql, .calc or .m3f" in err
    code, _, err = run(capsys, str(rules), "--format", "png")
    assert code == 2
    assert "m3f, dot or svg" in err
    bad = tmp_path / "bad.calc"
    bad.write_text("q[] = Sum(u, R(x))")
    code, _, err = run(capsys, str(bad))
    assert code == 1
    assert "`u` is not bound" in err
    assert "bad.calc:1:11" in err
