"""`lftj triggers FILE`: what events do to the maps of sums and counts, as M3F or as a picture.

prog.dl       every rule that triggers can keep: its count, and its sum, over the relations that it reads
views.sql     the same of the rules that its views become
query.calc    the queries of a text in the calculus of Cumulus (lftj/triggers/calculus.py)
prog.m3f      a program that was printed before, or several
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from lftj.cli.outcome import Code, UsageError, say
from lftj.cli.program_file import checked, is_sql, read_program
from lftj.errors import Diagnostic, ProgramError, Span
from lftj.language.clause import Clause
from lftj.triggers.algebra import TriggerProgram
from lftj.triggers.calculus_algebra import tops
from lftj.triggers.calculus_reader import parsed as parsed_calculus
from lftj.triggers.compilation import compiled
from lftj.triggers.from_clauses import DoesNotFit, formulas_of
from lftj.triggers.hierarchy import MapHierarchy, svg
from lftj.triggers.m3f import text
from lftj.triggers.m3f_reader import parsed_all
from lftj.values.schema import Schema

FORMS = ("m3f", "dot", "svg")
SUFFIXES = (".dl", ".sql", ".calc", ".m3f")


def print_triggers(named: str, *, form: str, naive: bool) -> int:
    """Print the programs of a file. `naive`: as the naive viewlet transform makes them."""
    if form not in FORMS:
        raise UsageError(f"unknown form {form!r}", why="--format names how it is printed", remedy=f"give {_or(FORMS)}")
    suffix = PurePath(named).suffix
    if suffix == ".calc":
        calculus = parsed_calculus(*read_program(named))
        found = [("", compiled(tops(calculus), calculus.relations, naive=naive))]
    elif suffix == ".m3f":
        found = [("", program) for program in parsed_all(*read_program(named))]
    elif suffix == ".dl" or is_sql(named):
        found = list(_of_rules(*_rules(named), naive=naive).items())
    else:
        raise UsageError(
            f"{named} is of an unknown kind",
            why="its suffix says whether it holds rules, SQL, the calculus or M3F",
            remedy=f"give a file whose name ends in {_or(SUFFIXES)}",
        )
    if not any(program.maps for _, program in found):
        raise ProgramError([_nothing_kept(named, suffix)])
    if form == "svg":  # one drawing, since a file holds one
        print(svg([("".join(about.splitlines()[:1]), MapHierarchy(program)) for about, program in found]))
        return Code.DONE
    for about, program in found:
        print("".join(f"{'#' if form == 'dot' else '//'} {line}\n" for line in about.splitlines()), end="")
        shown = MapHierarchy(program).dot() if form == "dot" else text(program)
        print(shown.rstrip("\n"))
    return Code.DONE


def _nothing_kept(named: str, suffix: str) -> Diagnostic:
    """The finding about a file of which triggers keep nothing."""
    if suffix in (".calc", ".m3f"):
        what = "query" if suffix == ".calc" else "map"
        written = "q[] = Sum(r, O(k, r))" if suffix == ".calc" else "map q[] = O(k, r) * r"
        why = f"the text has no {what}, and triggers keep maps of sums"
        return Diagnostic(
            f"there are no triggers of a text without a {what}", Span(named), why, f"add `{written}`, say"
        )
    what, written = "rule", "`n[x] = count : { edge(x, _) }.`"
    if is_sql(named):
        what, written = "view", "`select x, count(*) from edge group by x`"
    return Diagnostic(
        f"no {what} of the program is a sum, count or mean that triggers can keep",
        Span(named),
        why=f"triggers keep maps of sums, which are what such {what}s are made of",
        remedy=f"give a program with a {what} such as {written}; `lftj explain` says how the {what}s here are kept",
    )


def _rules(named: str) -> tuple[Iterable[Clause], Mapping[str, Schema]]:
    """The rules of a file, or those that its views become, and the schemas of relations."""
    if is_sql(named):
        from lftj.cli.sql_report import view_rules

        return view_rules(named)
    program = checked(named)
    return program.clauses, program.schemas


def _of_rules(clauses: Iterable[Clause], schemas: Mapping[str, Schema], *, naive: bool) -> dict[str, TriggerProgram]:
    """The programs of rules that triggers can keep, by rule and derived relations; the reason of others to stderr."""
    made: dict[str, TriggerProgram] = {}
    clauses = list(clauses)
    by_head = {clause.head: (clause,) for clause in clauses}
    for clause in clauses:
        if clause.aggregate is None:
            continue
        try:
            formulas = formulas_of(clause, schemas, by_head)
        except DoesNotFit as why:
            say(f"lftj: `{clause.head}` {why}")
            continue
        about = "\n".join([clause.text, *map(str, formulas.relations)])
        made[about] = compiled(formulas.tops(), formulas.schemas(), naive=naive)
    return made


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
