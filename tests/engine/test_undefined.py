"""Terms without a value: which rows are in error, whatever the key order, and whatever way the rule is evaluated.

A row of the plain reference is a binding of all atoms. Equalities bind what they can; every comparison is then true,
false or without a value. The rule is in error if for some binding none is false and one has no value. A rule that
raises nothing where it should, raises where a condition protects it, or tells of another row in another key order, is
caught here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, note

import lftj
from lftj.errors import EvaluationError
from lftj.language.checker import check
from lftj.language.clause import Clause, Compare, Value, Var
from lftj.language.parse import parse
from tests.conftest import examples
from tests.engine import programs
from tests.plain import syntax
from tests.plain.checked import holds, value_of
from tests.plain.evaluate import Contents, Undefined, World, solve

pytestmark = pytest.mark.filterwarnings("ignore:.*occurs only once")

DECLARED = ".decl e(x:number, y:number)\n.decl f(x:number)\n.decl g(x:number, y:number)\n.decl s(x:number, n:symbol)\n"
EDGES = [(1, 2), (1, 0), (2, 0), (2, 2), (3, 4), (0, 3)]


def argument(arg: Var | Value | None) -> syntax.Term:
    if isinstance(arg, Var):
        return syntax.Var(arg.name)
    return syntax.Wild() if arg is None else syntax.Const(arg.value)


def bindings(clause: Clause, relations: Contents) -> Iterator[dict[str, Any]]:
    """Every choice of a row for each atom so that they agree."""
    world = World()
    for name, rows in relations.items():
        world.put(name, rows)
    atoms = [syntax.Atom(atom.predicate, tuple(map(argument, atom.args))) for atom in clause.atoms]
    return solve(tuple(atoms), {}, world)


def bind(compare: Compare, binding: dict[str, Any]) -> None:
    """Bind the variable that an equality defines, if the other side is bound and has a value."""
    for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
        if compare.op == "=" and isinstance(side, Var) and side.name not in binding:
            with suppress(Undefined, KeyError):
                binding[side.name] = value_of(other, binding)


def plain(clause: Clause, relations: Contents) -> set[Any] | None:
    """The rows of a clause; None if it is in error."""
    found, wrong = set(), False
    for given_by_atoms in bindings(clause, relations):
        binding, before = dict(given_by_atoms), -1
        while len(binding) > before:
            before = len(binding)
            for compare in clause.compares:
                bind(compare, binding)
        verdicts: list[bool | None] = []
        for compare in clause.compares:
            try:
                verdicts.append(holds(compare, binding))
            except (Undefined, KeyError):
                verdicts.append(None)
        if False in verdicts:
            continue
        try:
            row = tuple(value_of(term, binding) for term in clause.head_args)
        except (Undefined, KeyError):
            wrong = True
            continue
        wrong = wrong or None in verdicts
        found.add(row)
    return None if wrong else found


def found(ask: Any) -> tuple[set[Any] | None, str]:
    try:
        return set(ask()), ""
    except EvaluationError as error:
        return None, str(error)


BODIES = (
    "e(x, y), y != 0, z = 10 / y, z > 1",
    "e(x, y), f(x), z = 10 / y",
    "e(x, y), z = 10 / y, f(z), g(z, _)",
    "e(x, y), g(y, w), w > 1, z = x / y",
    "e(x, y), g(v, w), z = x / (y - w), z < v",
    "e(x, y), f(w), x > 6 / y, w > 6 % x",
    "e(x, y), f(z), z > 1 / 0",
    "e(x, y), z = 6 / y, w = 6 / z, w < 4, f(w)",
    "e(x, y), z = 6 / y, z = x + 1, f(x)",
    "f(x), g(y, _), x ^ (y - 2) != 3",
    "e(x, y), z = itof(x) / itof(y), ftoi(z) > 0",
    "s(x, n), y = to_number(n), f(y), x != 2",
    "s(x, n), y = to_number(n), z = 6 / y, e(z, x)",
    's(x, n), match(n, "a"), e(x, y), y < 2',
    's(x, n), w = cat(n, "1"), y = to_number(w), s(z, w), y > z',
    "e(x, y), f(x), s(6 / y, n), strlen(n) > 0",
)
TEXTS = ("a", "0", "1", "2", "(", "x1", "")


def data(rng: Random) -> dict[str, list[Any]]:
    small = range(-1, 4)
    pairs = [(rng.choice(small), rng.choice(small)) for _ in range(rng.choice((3, 6, 10)))]
    more = [(rng.choice(small), rng.choice(small)) for _ in range(rng.choice((1, 3, 6)))]
    texts = [(rng.choice(small), rng.choice(TEXTS)) for _ in range(rng.choice((1, 3, 6)))]
    return {"e": pairs, "g": more, "f": [(x,) for x in rng.sample(small, rng.choice((0, 1, 2, 4)))], "s": texts}


@given(programs.seeds)
@examples(150, 12)
def test_errors_are_those_of_the_reference_in_every_key_order(rng: Random) -> None:
    rows, body = data(rng), rng.choice(BODIES)
    db = lftj.Database._sized(DECLARED, page_rows=2, directory_rows=2)
    for name, part in rows.items():
        db.load(name, part)
    note(f"{body} over {rows}")
    names = sorted(set("xyzwvn") & set(body.replace("strlen", "").replace("match", "").replace("to_number", "")))
    head = ", ".join(f"v{i}:{'symbol' if name == 'n' else 'number'}" for i, name in enumerate(names[:2]))
    text = f"p({', '.join(names[:2])}) :- {body}."
    if "itof" in body or "cat" in body:
        names, text, head = ["x"], f"p(x) :- {body}.", "v0:number"
    program = check(parse(f"{DECLARED}.decl p({head})\n{text}"))
    relations = {name: {tuple(row) for row in part} for name, part in rows.items()}
    expected = plain(program.clauses[0], relations)
    said = set()
    variables = [v.name for v in program.clauses[0].variables()]
    for order in rng.sample(
        list(itertools.permutations(variables)), min(4, len(list(itertools.permutations(variables))))
    ):
        db = lftj.Database._sized(DECLARED, page_rows=2, directory_rows=2)
        for name, part in rows.items():
            db.load(name, part)
        db.rules(f".decl p({head})\n{text}")
        try:
            answers, error = found(lambda db=db, order=order: db.query(body, order=order))  # type: ignore[misc]
        except lftj.ProgramError:
            continue
        assert (answers is None) == (expected is None), (order, error)
        said.add(error)
        if expected is not None:
            assert found(lambda db=db: db["p"])[0] == expected  # type: ignore[misc]
            query = db.query(body, order=order)
            assert query.count() == len(answers or ())
    assert len(said) <= 1, said


@given(programs.seeds)
@examples(60, 5)
def test_errors_come_and_go_with_changes(rng: Random) -> None:
    """A trace that cut a branch where a term has no value must notice when the rest of the body gets its rows."""
    rows, body = data(rng), rng.choice(BODIES)
    text = f"p(x) :- {body}."
    note(f"{text} over {rows}")
    db = lftj.Database._sized(DECLARED + text, page_rows=2, directory_rows=2)
    clause = check(parse(DECLARED + text)).clauses[0]
    facts: dict[str, set[Any]] = {name: set() for name in rows}
    for _ in range(8):
        db._evaluator.state = db._evaluator.state._replace(maintain={clause.rule: "trace"})
        name = rng.choice(sorted(rows))
        changed = data(rng)[name][:2] + rng.sample(rows[name], min(1, len(rows[name])))
        insert = rng.random() < 0.7
        after = {n: set(part) for n, part in facts.items()}
        (after[name].update if insert else after[name].difference_update)(map(tuple, changed))
        note(f"{'insert' if insert else 'erase'} {name} {changed}")
        expected = plain(clause, after)  # type: ignore[arg-type]
        try:
            with db.transaction() as tx:
                (tx.insert if insert else tx.erase)(name, changed)
        except EvaluationError:
            assert expected is None
        else:
            assert expected is not None
            facts = after
            assert set(db["p"]) == expected


# One by one -----------------------------------------------------------------------------------------------------


def database(text: str = "", **rows: Any) -> lftj.Database:
    db = lftj.Database(DECLARED + text)
    db.load("e", EDGES)
    for name, part in rows.items():
        db.load(name, part)
    return db


def test_a_condition_protects_wherever_it_stands() -> None:
    """The filter on `y` protected the division only in some key orders."""
    db = database("p(x, z) :- e(x, y), z = 12 / y, z > 1, y != 0.", f=[(1,), (3,)])
    assert list(db["p"]) == [(0, 4), (1, 6), (2, 6), (3, 3)]
    for order in itertools.permutations("xyz"):
        assert len(list(db.query("e(x, y), f(x), z = 12 / y, x = 3", order=order))) == 1


def test_the_least_row_is_told_of_the_first_term() -> None:
    for order in itertools.permutations("xyz"):
        with pytest.raises(EvaluationError, match="with x = 1, y = 0: division by zero"):
            list(database().query("e(x, y), z = x / y", order=order))


def test_a_first_witness_hides_no_error() -> None:
    db = database("p(x) :- e(x, y), z = 6 / y, z > 0.")
    with pytest.raises(EvaluationError, match="with x = 1, y = 0: division by zero"):
        list(db["p"])


def test_an_atom_that_comes_later_brings_the_error_to_light() -> None:
    db = database("p(x, z) :- e(x, y), f(x), z = 12 / y.")
    for x in (3, 0, 77):  # the third time the head is followed
        with db.transaction() as tx:
            tx.insert("f", [(x,)])
    assert "p" in db._kept.heads
    with pytest.raises(EvaluationError, match="with x = 2, y = 0"), db.transaction() as tx:
        tx.insert("f", [(2,)])
    assert list(db["p"]) == [(0, 4), (3, 3)]


def test_a_bad_pattern_is_an_error_of_the_row() -> None:
    db = database('p(x) :- s(x, n), match(n, "ab"), x > 1.', s=[(1, "(")])
    assert list(db["p"]) == []
    db.load("s", [(2, "(")])
    with pytest.raises(EvaluationError) as caught:
        list(db["p"])
    assert 'with x = 2, n = \'(\': a functor of the rule has no value: `match("(", "ab")`' in str(caught.value)
    assert "is not a regular expression" in caught.value.why
