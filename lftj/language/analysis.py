"""What an editor asks of a program text: its findings, names, types, and what may stand at a place.

A broken program gives what it can: clauses that parse are read and checked without the others, and what a clause that
does not parse may have declared is not reported as missing. Relations have the types of the last text that was right,
where this one is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lftj.errors import Diagnostic, ProgramError
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.checker import check
from lftj.language.functors import FUNCTORS
from lftj.language.notation import NAME
from lftj.language.occurrences import RELATION, TYPE, VARIABLE, Occurrence, occurrences
from lftj.language.parse import parse_pieces
from lftj.language.signature import EACH, SAME
from lftj.language.source import Source
from lftj.language.visitors import nodes

_OPAQUE = re.compile(r'//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*(?:"|\Z|(?=\n))')


@dataclass
class Analysis:
    """A text, read and checked. `broken`: the offsets of the clauses that do not parse.

    `columns`: the columns of relations with their types, as far as they are known.
    """

    source: Source
    program: ast.Program
    findings: list[Diagnostic]
    broken: list[tuple[int, int]]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def occurrences(self) -> list[Occurrence]:
        """All names of the clauses that parse, in source order."""
        return occurrences(self.program, self.source)

    def at(self, offset: int) -> Occurrence | None:
        """The name at a place, or just before it; in a clause that does not parse, a relation or type of that name."""
        for occurrence in self.occurrences:
            if occurrence.start <= offset <= occurrence.end:
                return occurrence
        for word in NAME.finditer(self.source.text, self.clause(offset)[0]):
            if word.start() > offset:
                break
            if offset <= word.end() and not self.is_opaque(offset):
                known = next((kind for kind in (RELATION, TYPE) if (kind, word[0]) in self._by_name), None)
                return None if known is None else Occurrence(known, word[0], *word.span(), -1)
        return None

    def all_of(self, occurrence: Occurrence) -> list[Occurrence]:
        """Every place of what stands at one."""
        return [other for other in self._by_name.get((occurrence.kind, occurrence.name), ()) if other.same(occurrence)]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Occurrence]]:
        found: dict[tuple[str, str], list[Occurrence]] = {}
        for occurrence in self.occurrences:
            found.setdefault((occurrence.kind, occurrence.name), []).append(occurrence)
        return found

    def definitions(self, occurrence: Occurrence) -> list[Occurrence]:
        """Where something is defined: its declaration, else its rules; of a variable, its first place in the body."""
        places = self.all_of(occurrence)
        if occurrence.kind == VARIABLE:
            rule = self.program.items[occurrence.item]
            assert isinstance(rule, ast.Rule)
            body = [place for node in rule.body for place in [self.source.bounds(node.span)[0]]]
            return [place for place in places if body and place.start >= body[0]][:1] or places[:1]
        declared = [p for p in places if p.defines and not isinstance(self.program.items[p.item], ast.Rule)]
        return declared or [place for place in places if place.defines]

    @cached_property
    def declarations(self) -> dict[str, ast.Declaration]:
        """The declarations, by relation."""
        return {item.name: item for item in self.program.items if isinstance(item, ast.Declaration)}

    @cached_property
    def rules(self) -> dict[str, list[ast.Rule]]:
        """The facts and rules of each relation that has any."""
        found: dict[str, list[ast.Rule]] = {}
        for item in self.program.items:
            if isinstance(item, ast.Rule):
                for name in dict.fromkeys(head.name for head in item.heads):
                    found.setdefault(name, []).append(item)
        return found

    def relations(self) -> list[str]:
        """The relations that the text declares or derives."""
        return [
            name
            for (kind, name), places in self._by_name.items()
            if kind == RELATION and any(place.defines for place in places)
        ]

    def types(self) -> dict[str, str]:
        """The types that the text names, with what each stands for."""
        return {item.name: item.base for item in self.program.items if isinstance(item, ast.TypeDeclaration)}

    def variable_type(self, occurrence: Occurrence) -> str:
        """The type of a variable, by where it stands in its rule; empty if that does not tell."""
        rule = self.program.items[occurrence.item]
        for node in nodes((*rule.heads, *rule.body)) if isinstance(rule, ast.Rule) else ():
            if isinstance(node, ast.Atom | ast.Assignment):
                given = list(zip(node.args, self.columns.get(node.name, {}).values(), strict=False))
            elif isinstance(node, ast.Comparison) and node.op == "=":
                given = [(node.left, self._value_type(node.right)), (node.right, self._value_type(node.left))]
            else:
                continue
            for term, type_ in given:
                if isinstance(term, ast.Variable) and term.name == occurrence.name and type_:
                    return type_
        return ""

    def _value_type(self, term: ast.Term) -> str:
        """The type of a term on its own; empty if it has none, or takes more than a look."""
        match term:
            case ast.Lookup(name):
                return next(reversed(self.columns.get(name, {}).values()), "")
            case ast.Aggregate(op):
                return AGGREGATES[op].result
            case ast.Constant(kind=kind):
                return kind
            case ast.Functor(name) if name in FUNCTORS and FUNCTORS[name].result not in (SAME, EACH):
                return FUNCTORS[name].result
        return ""

    def comment_on(self, occurrence: Occurrence) -> str:
        """The comment lines right above a place, and the comment at the end of its line, without their marks."""
        line, _ = self.source.position(occurrence.start)
        above: list[str] = []
        for number in range(line - 1, 0, -1):
            text = self.source.line_text(number).strip()
            if not text.startswith("//"):
                break
            above.insert(0, text.lstrip("/").strip())
        behind = re.search(r"//(.*)$", re.sub(r'"[^"]*"', '""', self.source.line_text(line)))
        return "\n".join([*above, *([behind[1].strip()] if behind else [])])

    # What may be written at a place

    def clause(self, offset: int) -> tuple[int, int]:
        """The offsets of the clause, or of what is to become one, that a place is in or at the end of."""
        for start, end in self.source.segments():
            if start <= offset < end or (offset == end and self.source.text[end - 1] != "."):
                return start, end
        return offset, offset

    def is_opaque(self, offset: int) -> bool:
        """Whether a place is in a comment or a string."""
        for found in _OPAQUE.finditer(self.source.text):
            closed = found[0][:2] != "//" and len(found[0]) > 1 and found[0].endswith(("*/", '"'))
            if found.start() < offset < found.end() or (offset == found.end() and not closed):
                return True
        return False

    def variables_of_clause(self, offset: int) -> list[str]:
        """The variables of the clause at a place, whether it parses or not, without the word that is being written."""
        start, end = self.clause(offset)
        text = _OPAQUE.sub(lambda found: " " * len(found[0]), self.source.text[start:end])
        words: dict[str, None] = {}
        for word in re.finditer(r"(?<![\w?.])[A-Za-z_?][\w?]*(?!\s*[(\[\w?])", text):
            if not start + word.start() <= offset <= start + word.end():
                words[word[0]] = None
        return list(words)


def analyse(text: str, name: str, before: Analysis | None = None) -> Analysis:
    """Read and check a text. `before`: what was found of an earlier state of it, which may know more types."""
    program, findings, broken = parse_pieces(text, name)
    columns = {} if before is None else dict(before.columns)
    try:
        checked = check(program)
    except ProgramError as error:
        found = list(error.diagnostics)
    else:
        found = list(checked.warnings)
        columns = {name: {c.name: c.type for c in s.columns} for name, s in checked.schemas.items() if name[:1] != "@"}
    pieces = " ".join(text[start:end] for start, end in broken)
    mentioned = set(NAME.findall(pieces))
    findings += [finding for finding in found if not (broken and _names(finding) & mentioned)]
    analysis = Analysis(Source(text, name), program, findings, broken)
    analysis.columns = _known_columns(analysis, columns)
    return analysis


def _names(finding: Diagnostic) -> set[str]:
    """The names that a finding is about."""
    return {finding.predicate, *re.findall(r"`([\w?]+)`", finding.what)}


def _known_columns(analysis: Analysis, columns: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The columns of the relations that are there: as declared, else as they were inferred."""
    known = {name: columns[name] for name in analysis.relations() if name in columns}
    for name, item in analysis.declarations.items():
        known[name] = {attribute.name: attribute.type for attribute in item.attributes}
    return known
