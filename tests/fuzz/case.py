"""A case: a random program, how it is kept, and a random history, all made of one seed; and a way to run it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from lftj.language.options import VALUES
from tests.fuzz import acyclic, extremes
from tests.fuzz.accepted import accepted
from tests.fuzz.declared import declared
from tests.fuzz.more_rules import more_rules
from tests.fuzz.nulls import admitting_null, sorted_rows, with_nulls
from tests.fuzz.questions import as_written, make_question, with_parameters
from tests.fuzz.retype import OTHERS, Retyping, computes, qualifies
from tests.fuzz.rewrites import rewritten
from tests.fuzz.twin import OUTSIDE, Call, FuzzTwin, rules_of, too_long
from tests.mixed import asked, programs, twin
from tests.mixed.programs import Mixed, pick
from tests.mixed.twin import Twin
from tests.recursion import programs as recursive_programs
from tests.recursion import twin as recursive_twin

Step = tuple[Call, ...]
STEPS = 6


@dataclass(frozen=True)
class Form:
    """Where programs of a kind and calls that change their facts come from."""

    make_program: Callable[[Random], Mixed]
    some_calls: Callable[[Random, Twin, int], list[Call]]


FORMS = {
    "mixed": Form(programs.make_program, twin.some_calls),
    "recursive": Form(recursive_programs.make_program, recursive_twin.some_calls),  # type: ignore[arg-type]
    "extreme": Form(extremes.make_program, twin.some_calls),
    "acyclic": Form(acyclic.make_program, acyclic.some_calls),
    "overflowing": Form(asked.make_program, lambda rng, twin, most: asked.make_calls(rng, twin.facts)),
}


@dataclass(frozen=True)
class Case:
    """`form`: of `mixed`, the program · `other`: the same after `rewritings`, as the database gets it.

    `strategy`: of all heads · `history`: its steps · `noise`: rows that each transaction inserts and erases again ·
    `in_file`: whether the database has a file, and is opened anew in between · `type`: what the database has for texts
    · `untranslated`: once it has run, why DuckDB did not evaluate it too; empty if it did.
    """

    seed: int
    form: str
    mixed: Mixed
    other: str
    rewritings: tuple[str, ...]
    strategy: str
    history: tuple[Step, ...] = field(default=())
    noise: bool = False
    in_file: bool = False
    type: str = "symbol"
    untranslated: str = ""

    @property
    def maintain(self) -> dict[str, str]:
        """What is asked for each head."""
        heads = self.mixed.maintain
        return heads if self.strategy == "mixed" else dict.fromkeys(heads, self.strategy)

    def script(self) -> str:
        """The case as a program that a person can run."""
        lines = [f"# seed {self.seed}, {self.form}, strategy {self.strategy}"]
        lines += [f"# {', '.join(self.rewritings) or 'as it is'}{', in a file' if self.in_file else ''}"]
        lines += ["import contextlib, datetime, zoneinfo", "from decimal import Decimal", "from uuid import UUID"]
        lines += ["import lftj", "db = lftj.Database()"]
        lines += [f'db.rules("""\n{self.other}""", maintain={self.maintain}, granularity={self.mixed.granularity})']
        for calls in self.history:
            lines += [self._line("db", *call) for call in calls if call[0] in OUTSIDE]
            inside = [f"    {self._line('tx', *call)}" for call in calls if call[0] not in OUTSIDE]
            lines += ["with contextlib.suppress(InterruptedError), db.transaction() as tx:", *inside] if inside else []
        return "\n".join([*lines, "# the program that it has to agree with:", *_commented(self.mixed.text)])

    def _line(self, owner: str, verb: str, name: str, rows: list[tuple[object, ...]]) -> str:
        if verb in ("rules", "add_rules"):
            return f"{owner}.rules({rules_of(self.other, name)!r})"
        if verb == "raise":
            return "raise InterruptedError"
        if verb == "reopen":
            return "# the file is closed and opened"
        if verb == "more":
            return f"{owner}.rules({Retyping(self.type).program(name)!r})"
        if verb == "ask":
            text, values = with_parameters(name)
            given = {parameter: Retyping(self.type).value(value) for parameter, value in values.items()}
            return f"print(list({owner}.query({Retyping(self.type).program(text)!r}, **{given!r})))"
        given = Retyping(self.type).values(self.mixed.known[name], rows) if rows else rows
        if verb == "bad":
            return f"with contextlib.suppress(lftj.DataError): {owner}.insert({name!r}, {too_long(given)!r})"
        return f"{owner}.{verb}({', '.join([repr(name)] * bool(name) + [repr(given)] * bool(rows))})"


def _commented(text: str) -> list[str]:
    return [f"#   {line}" for line in text.splitlines()]


def strategies() -> list[str]:
    """What a head can be asked to be kept by."""
    return ["mixed", *VALUES["maintain"]]


def make_case(seed: int) -> Case:
    """The case of a seed. Its history is made while it runs for the first time: calls depend on what is there."""
    rng = Random(seed)
    form = pick(rng, (*["mixed"] * 5, *["acyclic"] * 3, "recursive", "recursive", "extreme", "overflowing"))
    mixed = FORMS[form].make_program(rng)
    mixed = mixed if pick(rng, range(3)) else admitting_null(mixed, rng)
    if form == "mixed" and pick(rng, (True, False)):
        mixed = declared(mixed, rng)
    other, names = rewritten(mixed.text, rng) if pick(rng, range(3)) else (mixed.text, [])
    if form == "acyclic" and not accepted(other):  # of a recursion by keys no part can be a relation of its own
        other, names = mixed.text, []
    noise, in_file = not pick(rng, range(4)), not pick(rng, range(5))
    type = pick(rng, ("symbol", pick(rng, OTHERS))) if qualifies(other) else "symbol"
    other = Retyping(type).program(other)
    return Case(seed, form, mixed, other, tuple(names), pick(rng, strategies()), (), noise, in_file, type)


def run(case: Case) -> Case:
    """Run a case; returns it with its history. Raises whatever is wrong: what is raised has it as `case`."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "fuzz.lftj" if case.in_file else None
        done: list[Step] = []
        rng = Random(case.seed + 1)
        steps = len(case.history) or STEPS
        try:
            twin = FuzzTwin(case.mixed, case.other, case.maintain, path, Retyping(case.type))
            for i in range(steps):
                done.append(case.history[i] if case.history else some_step(rng, twin, case))
                twin.step(done[-1])
                if not i % 3:
                    twin.again()
                    twin.verify()
                # DuckDB takes as long as a few transactions: at the end, and in every sixth case once before.
                if i + 1 == steps or i == case.seed % (6 * STEPS):
                    twin.ask_duckdb()
            twin.close()
        except BaseException as error:
            error.case = replace(case, history=tuple(done))  # type: ignore[attr-defined]
            raise
        return replace(case, history=tuple(done), untranslated=twin.untranslated)


# Random steps -----------------------------------------------------------------------------------------------------


def some_step(rng: Random, twin: FuzzTwin, case: Case) -> Step:
    """Facts that change, and seldom whatever else users do."""
    calls = _changed_facts(rng, twin, case)

    def anywhere(*call: str) -> None:
        calls.insert(rng.randint(0, len(calls)), (*call, []))  # type: ignore[arg-type]

    heads = [name for name in twin.contents if name not in twin.removed and rules_of(twin.other, name)]
    if heads and not pick(rng, range(10)):
        head = pick(rng, heads)
        anywhere("remove_rules", head)
        if pick(rng, (True, False)):
            calls.append(("rules", head, []))
    for head in sorted(twin.removed):
        if pick(rng, (True, False)):
            anywhere(pick(rng, ("rules", "add_rules")), head)
    if not pick(rng, range(12)):
        anywhere("preview", "")
    if not pick(rng, range(15)):
        calls.append(("raise", "", []))
    plain = sorted(set(twin.mixed.base) - twin.mixed.functional)
    if not pick(rng, range(8)):
        name = pick(rng, plain)
        rows = [row for called in _changed_facts(rng, twin, case) if called[1] == name for row in called[2]]
        calls += [("load", name, rows)] if rows else []
    if not pick(rng, range(10)):
        anywhere("snapshot", "")
    if not pick(rng, range(10)):
        anywhere("reopen", pick(rng, ("", "traces", "lost")))
    if not pick(rng, range(12)) and calls:
        calls.append(("bad", *pick(rng, [call[1:] for call in calls if call[2]])))
    if not pick(rng, range(6)):
        text = more_rules(rng, twin.mixed, [name for name in heads if name not in twin.mixed.functional])
        fits = case.type == "symbol" or not computes(text)
        if fits and accepted(f"{twin.other}\n{twin.retyping.program(text)}"):
            anywhere("more", text)
    if not pick(rng, range(6)):
        question = make_question(rng, twin.mixed)
        if case.type == "symbol" or not computes(question):
            for call in [("ask", form) for form in (question, as_written(question)) if twin.is_taken(form)][:1]:
                anywhere(*call)
    return tuple(calls)


def _changed_facts(rng: Random, twin: FuzzTwin, case: Case) -> list[Call]:
    calls = list(FORMS[case.form].some_calls(rng, twin, pick(rng, (2, 4, 12))))
    if twin.program.nullable:
        some = partial(with_nulls, twin.program, rng=rng, alternatives=";" in twin.mixed.text)
        calls = [(verb, name, rows if verb == "erase" else some(name, rows)) for verb, name, rows in calls]
    if not pick(rng, range(12)):
        calls = [("erase", name, sorted_rows(rows)) for name, rows in twin.facts.items() if rows] or calls
    if case.noise:
        name = pick(rng, sorted(set(twin.mixed.base) - twin.mixed.functional))
        rows = programs.make_rows(rng, twin.program.kinds[name], 4)
        rows = [row for row in rows if row not in twin.facts[name]]
        if rows and not any(name == called for _, called, _ in calls):
            calls += [("insert", name, rows), ("erase", name, rows)]
    return calls
