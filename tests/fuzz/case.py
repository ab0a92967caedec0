"""A case: a random program, how it is kept, and a random history, all made of one seed; and a way to run it."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import lftj
from lftj.errors import ProgramError
from lftj.language.options import VALUES
from tests.fuzz.duckdb_oracle import DuckDB
from tests.fuzz.rewrites import AUX, rewritten
from tests.fuzz.sql_terms import Untranslated
from tests.mixed.programs import Mixed, make_program, make_rows, pick
from tests.mixed.twin import FAILURES, Twin, some_calls
from tests.plain.evaluate import evaluate, parse

Call = tuple[str, str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Case:
    """`text`: the program · `other`: the same after `rewritings` · `strategy`: of all heads · `history`: transactions.

    `noise`: rows that each transaction inserts and erases again · `in_file`: whether the database has a file, and is
    opened anew in between · `untranslated`: once it has run, why DuckDB did not evaluate it too; empty if it did.
    """

    seed: int
    mixed: Mixed
    other: str
    rewritings: tuple[str, ...]
    strategy: str
    history: tuple[tuple[Call, ...], ...] = field(default=())
    noise: bool = False
    in_file: bool = False
    untranslated: str = ""

    def script(self) -> str:
        """The case as a program that a person can run."""
        lines = [f"# seed {self.seed}, strategy {self.strategy}, {', '.join(self.rewritings) or 'as it is'}"]
        lines += ["import lftj", "db = lftj.Database()", f'db.rules("""\n{self.other}""")']
        for calls in self.history:
            lines.append("with db.transaction() as tx:")
            lines += [f"    tx.{verb}({name!r}, {rows!r})" for verb, name, rows in calls]
        return "\n".join([*lines, "# the program that it has to agree with:", *_commented(self.mixed.text)])


class Disagreement(AssertionError):
    """DuckDB has another answer."""


def _commented(text: str) -> list[str]:
    return [f"#   {line}" for line in text.splitlines()]


def strategies() -> list[str]:
    """What a head can be asked to be kept by."""
    return ["mixed", *VALUES["maintain"]]


def make_case(seed: int) -> Case:
    """The case of a seed. Its history is made while it runs for the first time: calls depend on what is there."""
    rng = Random(seed)
    mixed = make_program(rng)
    other, names = rewritten(mixed.text, rng) if pick(rng, range(3)) else (mixed.text, [])
    noise, in_file = not pick(rng, range(4)), not pick(rng, range(5))
    return Case(seed, mixed, other, tuple(names), pick(rng, strategies()), (), noise, in_file)


class _FuzzTwin(Twin):
    """A database of the rewritten program beside the meaning of the original one."""

    def __init__(self, case: Case, path: Path | None) -> None:
        self.case, self.path = case, path
        mixed = replace(case.mixed, sizes=dict(case.mixed.sizes))
        self.added: set[str] = set()
        super().__init__(mixed, case.strategy)
        self.untranslated = ""
        try:
            self.duckdb = DuckDB(self.program)
        except Untranslated as error:
            self.untranslated = str(error)

    def begin(self) -> None:
        """Set up the database."""
        sizes = {} if self.path is not None else self.mixed.sizes
        self.db = lftj.Database._sized(**sizes, **({} if self.path is None else {"path": self.path}))
        heads = self.mixed.maintain
        asked = heads if self.case.strategy == "mixed" else dict.fromkeys(heads, self.case.strategy)
        self.db.rules(self.case.other, maintain=asked, granularity=self.mixed.granularity)
        self.added = {name for name in self.db if name.startswith(AUX)}

    def again(self) -> None:
        """Close the file and open it."""
        if self.path is not None:
            self.db.close()
            self.db = lftj.Database._sized(path=self.path)

    def verify(self) -> None:
        for name, expected in self.contents.items():
            assert list(self.db[name]) == sorted(expected), name

    def ask_duckdb(self) -> None:
        """The database holds what DuckDB makes of the facts."""
        if self.untranslated:
            return
        try:
            expected = self.duckdb.evaluate(self.facts)
        except Untranslated as error:
            self.untranslated = str(error)
            return
        for name, rows in expected.items():
            found = set(self.db[name])
            if found != rows:
                raise Disagreement(f"{name}: DuckDB alone has {rows - found}, lftj alone {found - rows}")

    def differs(self, deltas: Any, after: Any) -> None:
        before = self.contents
        assert set(deltas) - self.added == {name for name in after if after[name] != before[name]}
        for name in after:
            assert set(deltas[name].inserted) == after[name] - before[name], name
            assert set(deltas[name].erased) == before[name] - after[name], name


def run(case: Case) -> Case:
    """Run a case; returns it with its history. Raises whatever is wrong: what is raised has it as `case`."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "fuzz.lftj" if case.in_file else None
        try:
            twin = _FuzzTwin(case, path)
        except (ProgramError, *FAILURES):
            if not case.rewritings:
                raise
            # A rewriting made what lftj does not take: a cycle, say.
            return replace(case, untranslated="programs that rewritings made wrong")
        done: list[tuple[Call, ...]] = []
        rng = Random(case.seed + 1)
        for i in range(len(case.history) or 6):
            calls = list(case.history[i]) if case.history else _calls(rng, twin, case)
            done.append(tuple(calls))
            try:
                twin.transact(calls, [False] * len(calls))
                if not i % 3:
                    twin.again()
                    twin.verify()
                # A query of DuckDB takes as long as a transaction: at the end, and in every third case once before.
                if i + 1 == (len(case.history) or 6) or i == case.seed % 18:
                    twin.ask_duckdb()
            except BaseException as error:
                error.case = replace(case, history=tuple(done))  # type: ignore[attr-defined]
                raise
        if path is not None:
            twin.db.close()
        return replace(case, history=tuple(done), untranslated=twin.untranslated)


def _calls(rng: Random, twin: Twin, case: Case) -> list[Call]:
    calls = some_calls(rng, twin, pick(rng, (2, 4, 12)))
    if not pick(rng, range(12)):
        calls = [("erase", name, sorted(rows)) for name, rows in twin.facts.items() if rows] or calls
    if case.noise:
        name = pick(rng, sorted(set(twin.mixed.base) - twin.mixed.functional))
        rows = [row for row in make_rows(rng, twin.program.kinds[name], 4) if row not in twin.facts[name]]
        if rows and not any(name == called for _, called, _ in calls):
            calls += [("insert", name, rows), ("erase", name, rows)]
    return calls


def smaller(case: Case, fails: Any) -> Case:
    """A smaller case that fails in the same way: fewer transactions, calls, rows, rules."""
    case = _fewer(case, fails)
    lines = case.other.splitlines()
    original = case.mixed.text.splitlines()
    for text in list(original):
        head = text.split("(")[0].split("[")[0].removeprefix(".decl ")
        if text.startswith(".decl") or head not in case.mixed.maintain or case.rewritings:
            continue
        kept = [line for line in lines if line != text]
        trial = replace(
            case, other="\n".join(kept), mixed=replace(case.mixed, lines=[x for x in original if x != text])
        )
        if _fails(trial, fails):
            case, lines, original = trial, kept, [x for x in original if x != text]
    return _fewer(case, fails)


def _fewer(case: Case, fails: Any) -> Case:
    changed = True
    while changed:
        changed = False
        for i in range(len(case.history)):
            shorter = (*case.history[:i], *case.history[i + 1 :])
            if shorter and _fails(trial := replace(case, history=shorter), fails):
                case, changed = trial, True
                break
        for i, calls in enumerate(case.history):
            for j, (verb, name, rows) in enumerate(calls):
                for cut in ([], *([*rows[:k], *rows[k + 1 :]] for k in range(len(rows)))):
                    if len(cut) == len(rows) or (not cut and len(calls) == 1):
                        continue
                    new = (*calls[:j], *([(verb, name, cut)] if cut else []), *calls[j + 1 :])
                    trial = replace(case, history=(*case.history[:i], tuple(new), *case.history[i + 1 :]))
                    if _fails(trial, fails):
                        case, changed = trial, True
                        break
                if changed:
                    break
            if changed:
                break
    return case


def _fails(case: Case, fails: Any) -> bool:
    try:
        evaluate(parse(case.mixed.text), {})
    except Exception:  # what is left of the program has no meaning any more
        return False
    return bool(fails(case))
