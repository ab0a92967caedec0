"""A checkpoint: the relations of a database at one moment, as lists of pages; and a state made of one.

    header     a line of JSON: the steps of the program, how many symbols there are, whose versions follow, which of
               them are the facts and the content of each relation, what was stale, the rules of each head as text, and
               what is known of columns (lftj/plan/statistics.py)
    bodies     the page lists of these versions, then the lists of what heads are followed by (followed_lists.py)

Contents come with what their rows carry (the rounds of recursion), so recursive heads are followed at once after a
start. A version that is two things (facts and content; an alias) is there once. Key orders, support and what else heads
are followed by are there where they are asked for (followed.py).

A head whose rules are not, word for word, those that its content was derived by is stale: it is evaluated again.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lftj.durable import ends, followed_lists
from lftj.durable.chunks import Chunks
from lftj.durable.container import Container
from lftj.durable.followed import Support
from lftj.durable.followed_lists import KeptParts, SavedParts
from lftj.durable.hashes import hash_of, intact
from lftj.durable.segments import PageList, Segments
from lftj.errors import DatabaseFileError
from lftj.maintain.derivations import support_store
from lftj.program.components import ComponentRounds
from lftj.program.state import State
from lftj.store.stored import StoredRelation
from scantree.version import Store, Version

if TYPE_CHECKING:
    from sqlite3 import Connection

DECLARED, ROUNDS = "declared", "rounds"
# What the role of a key order begins with; its columns follow, as in "order 1,0".
ORDER = "order "
SUPPORT = "support"


class Taken(NamedTuple):
    """What a checkpoint is made of: the state after entry `seq`, the steps of its program, the number of symbols.

    `dropped`: the entries as far as this one are dropped with it · `supports`: of heads, if what these are followed by
    is kept; key orders of the state have caught up then · `followed`: what they are followed by besides.
    """

    seq: int
    state: State
    steps: tuple[dict[str, Any], ...]
    symbols: int
    dropped: int
    supports: Mapping[str, Support] | None = None
    followed: Mapping[str, KeptParts] = {}


def _stores(relations: Iterable[StoredRelation]) -> dict[int, tuple[str, str]]:
    """Whose each store is."""
    found: dict[int, tuple[str, str]] = {}
    for relation in relations:
        found[id(relation.declared_store())] = relation.name, DECLARED
        if relation.has_rounds_store():
            found[id(relation.rounds_store())] = relation.name, ROUNDS
        for columns in list(relation.orders)[1:]:
            found[id(relation.order_store(columns))] = relation.name, _role_of(columns)
    return found


def write(container: Container, segments: Segments, chunks: Chunks, moment: Taken, rounds: ComponentRounds) -> set[int]:
    """Write what is not in the file yet, then the checkpoint; earlier ones, and old entries, go.

    Returns the segments that it names.
    """
    state, owners = moment.state, _stores(moment.state.relations.values())
    supports = moment.supports or {}
    numbers: dict[int, int] = {}
    versions: list[tuple[list[str], bytes]] = []
    used: set[str] = set()
    named: set[int] = set()

    def number(role: str, name: str, version: Version) -> int:
        if id(version) not in numbers:
            whose = f"{role} {name}"
            listed = segments.save(whose, version)
            used.add(whose)
            named.update(listed.segments())
            numbers[id(version)] = len(versions)
            versions.append(([whose, *owners[id(version.store)]], listed.encoded()))
        return numbers[id(version)]

    # A head without a value for some group keeps that beside its content: it is evaluated again.
    lost = state.strata.above(state.undefined)
    relations: dict[str, dict[str, int]] = {}
    for name, relation in state.relations.items():
        kept = {"facts": number("facts", name, relation.facts)}
        if name not in state.stale and name not in lost and id(relation.content.store) in owners:
            kept["content"] = number("content", name, relation.content)
            if moment.supports is not None:
                for columns in list(relation.orders)[1:]:
                    role = _role_of(columns)
                    kept[role] = number(role, name, relation.order(columns))
            if name in supports and (support := supports[name].version) is not None:
                owners[id(support.store)] = name, SUPPORT
                kept[SUPPORT] = number(SUPPORT, name, support)
        relations[name] = kept
    followed = {name: one for name, one in moment.followed.items() if "content" in relations[name]}
    lists = followed_lists.write(segments, chunks, followed)
    header = {
        "steps": moment.steps,
        "symbols": moment.symbols,
        "versions": [[*whose, len(body)] for whose, body in versions],
        "relations": relations,
        "traces": moment.supports is not None,
        "supports": {name: support.noted() for name, support in supports.items()},
        "rules": {head: rules_of(state, head) for head in state.strata.order},
        "rounds": {name: noted for name in relations if (noted := rounds.of([state.relations[name].content]))},
        "statistics": _noted_statistics(moment, relations),
        **lists.noted,
    }
    body = b"".join([json.dumps(header).encode(), b"\n", *(body for _, body in versions), *lists.bodies])

    def save(connection: Connection) -> None:
        row = (moment.seq, time.time(), body, hash_of(body, moment.seq))
        connection.execute("insert or replace into checkpoints values (?, ?, ?, ?)", row)
        connection.execute("delete from checkpoints where seq < ?", (moment.seq,))
        ends.drop(container, moment.dropped)  # steps of these are not all there any more

    with container.failing("write to"):
        container.transact(save)
    segments.forget(used | lists.used)
    return named | lists.named


def _noted_statistics(moment: Taken, relations: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """What is known of the columns of relations whose contents are there, where somebody has asked.

    With what heads are followed by, it is counted where it is outdated: planning how to follow a change asks for it.
    """
    found, counted = {}, moment.supports is not None
    for name, kept in relations.items():
        if "content" in kept and (noted := moment.state.relations[name].noted_statistics(counted=counted)) is not None:
            found[name] = noted
    return found


def rules_of(state: State, head: str) -> list[str]:
    """The rules of a head as text."""
    return [str(clause) for clause in state.strata.of(head)]


class SavedCheckpoint(NamedTuple):
    """A checkpoint as it is in the file: its number, its header, the lists of the pages of its versions.

    `followed_lists`: those of what heads are followed by.
    """

    seq: int
    header: dict[str, Any]
    lists: list[PageList]
    followed_lists: list[PageList]

    @classmethod
    def last(cls, container: Container) -> SavedCheckpoint | None:
        """The last one; None if there is none. `DatabaseFileError` if it is damaged or missing."""
        sql = "select seq, body, hash from checkpoints order by seq desc limit 1"
        found = container.connection.execute(sql).fetchone()
        seq, body, hash = found or (0, b"", b"")
        ends.check(container, ends.CHECKPOINTS, seq)
        if found is None:
            return None
        body = intact(body, hash, "checkpoints", seq)
        end = body.index(b"\n")
        header, at, lists = json.loads(body[:end]), end + 1, []
        sizes = [size for *_, size in (*header["versions"], *header.get("followed_lists", ()))]
        for size in sizes:
            lists.append(PageList.decoded(body[at : at + size]))
            at += size
        first = len(header["versions"])
        return cls(seq, header, lists[:first], lists[first:])

    def followed(self, container: Container) -> Iterator[SavedParts]:
        """What it has of heads besides their contents and support."""
        for head, kept in self.header.get("followed", {}).items():
            lists = {name: self.followed_lists[number] for name, number in kept["lists"].items()}
            yield SavedParts(head, kept, lists, container)

    def read(
        self, container: Container, segments: Segments, state: State, rounds: ComponentRounds
    ) -> tuple[State, dict[str, Version]]:
        """(`state`, which has the program's relations and rules, with what the checkpoint holds of them; supports)."""
        needed = {kept["facts"] for kept in self.header["relations"].values()}
        versions: list[Version | None] = []
        for (whose, owner, kind, _), listed in zip(self.header["versions"], self.lists, strict=True):
            version = None
            if owner in state.relations:
                try:
                    version = listed.read(container, _store(state.relations[owner], kind))
                    segments.adopt(whose, version, listed)
                except DatabaseFileError as error:
                    if len(versions) in needed:
                        raise
                    if is_made_again(kind):
                        versions.append(None)
                        continue
                    text = f"what `{owner}` derived is evaluated again: {error.what}"
                    warnings.warn(text, RuntimeWarning, stacklevel=6)
            versions.append(version)
        relations, lost, supports = dict(state.relations), set[str](), dict[str, Version]()
        heads = state.strata.by_head
        for name, relation in state.relations.items():
            kept = self.header["relations"].get(name)
            if kept is None:
                lost.add(name)
                continue
            facts = versions[kept["facts"]]
            assert facts is not None, "facts are there, or reading them raised"
            content = versions[kept["content"]] if "content" in kept else None
            same = name not in heads or self.header["rules"].get(name) == rules_of(state, name)
            if content is not None and same:
                relations[name] = relation.successor(content, facts)
                orders = {_columns_of(role): versions[i] for role, i in kept.items() if role.startswith(ORDER)}
                relations[name].adopt_orders({columns: v for columns, v in orders.items() if v is not None})
                if SUPPORT in kept and (support := versions[kept[SUPPORT]]) is not None:
                    supports[name] = support
                if name in self.header.get("statistics", ()):
                    relations[name].know_statistics(self.header["statistics"][name])
                if name in self.header["rounds"]:
                    top, as_written = self.header["rounds"][name]
                    rounds.note(content, top, as_written=as_written)
            else:
                relations[name] = relation.successor(relation.content if name in heads else facts, facts)
                lost.add(name)
        return state._replace(relations=relations, stale=state.strata.above(lost & heads.keys())), supports


def is_made_again(role: str) -> bool:
    """Whether a version in this role is no answer, and can be made of one."""
    return role == SUPPORT or role.startswith(ORDER)


def _role_of(columns: tuple[int, ...]) -> str:
    """The role of a key order."""
    return ORDER + ",".join(map(str, columns))


def _columns_of(role: str) -> tuple[int, ...]:
    return tuple(map(int, role.removeprefix(ORDER).split(",")))


def _store(relation: StoredRelation, kind: str) -> Store:
    if kind.startswith(ORDER):
        return relation.order_store(_columns_of(kind))
    if kind == SUPPORT:
        return support_store(relation)
    return relation.rounds_store() if kind == ROUNDS else relation.declared_store()
