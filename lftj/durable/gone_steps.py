"""Steps of a program that made only what is gone: a checkpoint leaves them out.

    declare t   view v of t   drop v   view w of t   remove the rules of w   view w of t
    declare t                                                                view w of t        what is left

Views that come and go would make a file grow, and slow to open. A step is left out together with what took away what it
gave, where the log has no entries from before: the relations that later entries change are made by what is left. The
shorter program is tried first, and taken only if it is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lftj.durable.entry import LogEntry
from lftj.durable.hashes import intact
from lftj.durable.program_log import Step, after
from lftj.errors import Error
from lftj.language.clause import INTERNAL, owner
from lftj.program.state import State

if TYPE_CHECKING:
    from lftj.durable.container import Container
    from lftj.durable.in_file import InFile

# What a step is to a relation that it names.
MADE, HEAD, TOLD, READ = "made", "head", "told", "read"


class _StepsOf:
    """A relation that is there: the step that made it, those with directives for it, or parts, and with rules."""

    def __init__(self, made: int) -> None:
        self.made, self.told, self.rules = made, set[int](), set[int]()


def steps_after(container: Container, seq: int) -> int:
    """How many steps the entries after number `seq` have."""
    sql = """select seq, time, entry, hash from log
             where seq > ? and instr(entry, cast('"steps"' as blob)) > 0"""
    with container.lock, container.failing("read"):
        rows = container.connection.execute(sql, (seq,)).fetchall()
    return sum(len(LogEntry.decoded(intact(body, hash, "log", n, time)).steps) for n, time, body, hash in rows)


def without_gone(steps: Sequence[Step]) -> list[Step]:
    """The steps without those that made only relations that were dropped, and rules that were removed.

    The first one stays: it is the program that the file was made with.
    """
    there: dict[str, _StepsOf] = {}
    types: dict[str, int] = {}  # the step by which each name of a type has its meaning
    needs: list[set[int]] = []  # by step: those that made what it names
    ends: dict[int, set[int]] = {}  # by step that takes something away: those that gave it
    for at, step in enumerate(steps):
        needs.append(set())
        if "drop" in step:
            ends[at] = {there.pop(owner(step["drop"])).made}
        elif "remove" in step:
            held = there[owner(step["remove"])]
            ends[at], held.rules = held.rules, set()
        else:
            named, used = _types(step)
            types |= dict.fromkeys(named, at)
            needs[at] |= {types[name] for name in used if name in types}
            for role, name in _names(step):
                if role != READ:
                    held = there.setdefault(name, _StepsOf(at))
                    if role != MADE:
                        (held.rules if role == HEAD else held.told).add(at)
                if name in there:
                    needs[at].add(there[name].made)
    kept = ({held.made} | held.told | held.rules for held in there.values())
    needed, frontier = set[int](), {0}.union(types.values(), *kept)
    while frontier:
        needed |= frontier
        frontier = set[int]().union(*(needs[at] for at in frontier)) - needed
    return [step for at, step in enumerate(steps) if at in needed or not needed.isdisjoint(ends.get(at, ()))]


def _names(step: Step) -> Iterator[tuple[str, str]]:
    """The relations that a step names, with what it makes of each; those that it reads come last."""
    if "paths" in step:
        read, head = step["paths"]
        yield HEAD, head
        yield READ, read
        return
    named = [(MADE, item["name"]) for item in step["rules"] if item["node"] == "Declaration"]
    named += [(TOLD, item["relation"]) for item in step["rules"] if item["node"] == "Directive"]
    named += [(HEAD, head["name"]) for item in step["rules"] for head in item.get("heads", ())]
    # Parts of views come with these; alone are only those of tables, in whose names there is no dot.
    public = [one for one in named if not one[1].startswith(INTERNAL)]
    yield from public or [(TOLD, owner(name)) for _, name in named]
    frontier: list[Any] = [step["rules"]]
    while frontier:
        part = frontier.pop()
        if isinstance(part, dict):
            if part.get("node") in ("Atom", "Lookup"):
                yield READ, owner(part["name"])
            frontier += part.values()
        elif isinstance(part, list):
            frontier += part


def _types(step: Step) -> tuple[set[str], set[str]]:
    """The names of types that a step gives a meaning to, and those that it uses, which may be such names."""
    items = step.get("rules", ())
    named = {item["name"]: item["base"] for item in items if item["node"] == "TypeDeclaration"}
    columns = [column for item in items if item["node"] == "Declaration" for column in item["attributes"]]
    return set(named), {name.removesuffix("?") for name in (*named.values(), *(c["type"] for c in columns))}


def gives(steps: Sequence[Step], state: State, empty: InFile) -> bool:
    """Whether steps give the program of a state; `empty`: a database to try that in."""
    made = State()
    try:
        for step in steps:
            made = after(made, step, empty._new, empty._symbols)
    except Error:
        return False
    return _program(made) == _program(state)


def _program(state: State) -> tuple[object, ...]:
    """What two states with one program have in common; names of parts of rules, and numbers of rules, may differ."""
    rules = {clause.rule: clause.text for clause in state.strata.clauses}
    options = (state.key_orders, state.maintain, state.granularity)
    return (
        {name: relation.schema for name, relation in state.relations.items() if not name.startswith(INTERNAL)},
        sorted(owner(name) for name in state.relations),
        sorted((owner(clause.head), clause.text) for clause in state.strata.clauses),
        sorted(map(str, state.directives)),
        state.types,
        *(sorted(f"{rules.get(rule)}: {value}" for rule, value in asked.items()) for asked in options),
    )
