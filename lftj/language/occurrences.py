"""Where the names of a program stand: relations, variables, types, and the words of functors and aggregates.

The syntax tree has the places of atoms and variables; those of the names within them follow from the text. A variable
belongs to its rule: one name is one variable there, also where braces make it another (renaming all of them changes no
meaning).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lftj.language import ast
from lftj.language.aggregate_specs import word_of
from lftj.language.functors import CONSTRAINTS
from lftj.language.source import Source
from lftj.language.visitors import Node, parts

RELATION, VARIABLE, TYPE = "relation", "variable", "type"
FUNCTOR, AGGREGATE = "functor", "aggregate"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in a text, at `text[start:end]`. `item`: the number of its item in the program.

    `defines`: it stands in a declaration, or as the head of a rule.
    """

    kind: str
    name: str
    start: int
    end: int
    item: int
    defines: bool = False

    def same(self, other: Occurrence) -> bool:
        """Whether two occurrences are of one thing."""
        of_one_rule = self.kind != VARIABLE or self.item == other.item
        return (self.kind, self.name) == (other.kind, other.name) and of_one_rule


def occurrences(program: ast.Program, source: Source) -> list[Occurrence]:
    """All names of a program, in source order, each place once."""
    found: dict[int, Occurrence] = {}
    types = {item.name for item in program.items if isinstance(item, ast.TypeDeclaration)}
    for number, item in enumerate(program.items):
        for occurrence in _Finder(source, number, types).item(item):
            found.setdefault(occurrence.start, occurrence)
    return [found[start] for start in sorted(found)]


class _Finder:
    """The names of one item."""

    def __init__(self, source: Source, number: int, types: set[str]) -> None:
        self.source, self.number, self.types = source, number, types

    def item(self, item: ast.Item) -> Iterator[Occurrence]:
        start, end = self.source.bounds(item.span)
        match item:
            case ast.Declaration():
                yield from self._at(RELATION, item.name, start, defines=True)
                for attribute in item.attributes:
                    first, last = self.source.bounds(attribute.span)
                    colon = self.source.text.find(":", first, last)
                    # A type may have parameters, and a mark behind it that admits null.
                    name = re.split(r"[(<]", attribute.type)[0].strip()
                    bare = name if name in self.types else name.rstrip("?")
                    yield from self._in(TYPE, bare, colon + 1, last)
            case ast.TypeDeclaration():
                yield from self._at(TYPE, item.name, start, defines=True)
                written = re.compile(r"\s*(?:=|<:)\s*").match(self.source.text, end)
                if written is not None:
                    yield from self._at(TYPE, item.base, written.end())
            case ast.Directive():
                yield from self._at(RELATION, item.relation, start)
            case ast.Rule():
                for head in item.heads:
                    yield from self._at(RELATION, head.name, self.source.bounds(head.span)[0], defines=True)
                    yield from self._below(head.args)
                yield from self._below(item.body)

    def _below(self, roots: Iterable[Node]) -> Iterator[Occurrence]:
        for node in roots:
            start, end = self.source.bounds(node.span)
            match node:
                case ast.Atom() | ast.Lookup():
                    yield from self._at(RELATION, node.name, start)
                case ast.Variable():
                    yield from self._search(VARIABLE, node.name, start, end)
                case ast.Functor():
                    yield from self._at(FUNCTOR, node.name, start)
                case ast.Aggregate():
                    yield from self._aggregate(node, start, end)
                case ast.Comparison() if node.op in CONSTRAINTS:
                    yield from self._at(FUNCTOR, node.op, start)
            yield from self._below(parts(node))

    def _aggregate(self, node: ast.Aggregate, start: int, end: int) -> Iterator[Occurrence]:
        """The word; of LogicBlox's form `agg<<s = sum(v)>>` also the operand, whose place is that of the whole."""
        if not self.source.text.startswith("agg", start) or node.op == "agg":
            yield from self._at(AGGREGATE, word_of(node.op), start)
        elif isinstance(node.operand, ast.Variable):
            bracket = self.source.text.find("(", start, end)
            yield from self._search(VARIABLE, node.operand.name, bracket, end)

    def _at(self, kind: str, name: str, start: int, *, defines: bool = False) -> Iterator[Occurrence]:
        """The occurrence of a name at a place, if it stands there."""
        if self.source.text.startswith(name, start):
            yield Occurrence(kind, name, start, start + len(name), self.number, defines)

    def _in(self, kind: str, name: str, start: int, end: int) -> Iterator[Occurrence]:
        """The occurrence of a name that follows blanks."""
        text = self.source.text[start:end]
        yield from self._at(kind, name, start + len(text) - len(text.lstrip()))

    def _search(self, kind: str, name: str, start: int, end: int) -> Iterator[Occurrence]:
        """The first occurrence of a name between two places."""
        found = re.compile(rf"(?<![\w?]){re.escape(name)}(?![\w?])").search(self.source.text, max(start, 0), end)
        if found is not None:
            yield Occurrence(kind, name, *found.span(), self.number)
