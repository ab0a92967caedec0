"""What the language server says of a program, in Markdown and as plain data; `language_server.py` has the protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lftj.cli.outcome import worded
from lftj.errors import Diagnostic
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.analysis import Analysis
from lftj.language.functors import CONSTRAINTS, FUNCTORS, RESERVED, RESERVED_VARIABLES
from lftj.language.notation import NAME
from lftj.language.occurrences import AGGREGATE, RELATION, TYPE, VARIABLE, Occurrence
from lftj.language.text import head_source
from lftj.language.types import BASE_TYPES
from lftj.values.faults import counted

DIRECTIVES = {
    ".decl": "Declares a relation, "
    "`.decl edge(a:number, b:number)`; with a value for each key, `.decl f(k:symbol) -> v:float`.",
    ".type": "Names a type: `.type Node = number`, or a subtype: `.type Node <: number`.",
    ".input": "Reads a relation from a file: `.input edge`, which is `edge.facts` in the folder of the facts.",
    ".output": "Writes a relation to a file: `.output tri`, which is `tri.csv`.",
    ".printsize": "Prints how many rows a relation has.",
}
# A larger input file is not counted for a hover.
_COUNTED_BYTES = 32_000_000


def message(finding: Diagnostic) -> str:
    """A finding as an editor shows it."""
    return worded(f"{finding.what}\nwhy: {finding.why}\ndo: {finding.remedy}")


# --- hover ------------------------------------------------------------------------------------------------------------


def hover(analysis: Analysis, name: Occurrence, folders: Iterable[Path]) -> str:
    """What there is to say of a name; empty if nothing. `folders`: where its input file may be."""
    if name.kind == RELATION:
        return _relation(analysis, name, folders)
    if name.kind == VARIABLE:
        type_ = analysis.variable_type(name)
        return _code(f"{name.name}:{type_}") if type_ else _code(name.name)
    if name.kind == TYPE:
        return _type(analysis, name)
    return aggregate_text(name.name) if name.kind == AGGREGATE else functor_text(name.name)


def _code(text: str) -> str:
    return f"```lftj\n{text}\n```"


def signature(analysis: Analysis, relation: str) -> str:
    """A relation with its columns, as a declaration has them."""
    columns = [f"{column}:{type_}" for column, type_ in analysis.columns.get(relation, {}).items()]
    declared = analysis.declarations.get(relation)
    heads = (head for rule in analysis.rules.get(relation, ()) for head in rule.heads if head.name == relation)
    functional = declared.functional if declared else isinstance(next(heads, None), ast.Assignment)
    value = f" -> {columns.pop()}" if functional and columns else ""
    return f"{relation}({', '.join(columns)}){value}" if columns or value else relation


def _relation(analysis: Analysis, name: Occurrence, folders: Iterable[Path]) -> str:
    rules = analysis.rules.get(name.name, [])
    facts = sum(not rule.body for rule in rules)
    lines = [_code(f"{'.decl ' if name.name in analysis.declarations else ''}{signature(analysis, name.name)}")]
    defined = analysis.definitions(name)
    if defined and (comment := analysis.comment_on(defined[0])):
        lines.append(comment)
    counts = [(facts, "fact"), (len(rules) - facts, "rule")]
    said = ", ".join(counted(number, word) for number, word in counts if number)
    lines += [said] if said else []
    return "\n\n".join(lines + list(_input_files(analysis, name.name, list(folders))))


def _input_files(analysis: Analysis, relation: str, folders: list[Path]) -> Iterator[str]:
    """The file that `.input` names, with its lines, if it is there."""
    for item in analysis.program.items:
        if isinstance(item, ast.Directive) and item.kind == "input" and item.relation == relation:
            filename = dict(item.options).get("filename", f"{relation}.facts")
            path = next((folder / filename for folder in folders if (folder / filename).is_file()), None)
            if path is None:
                yield f"`{filename}` is not there"
                continue
            size = path.stat().st_size
            text = path.suffix in (".facts", ".csv", ".tsv", ".txt") and size <= _COUNTED_BYTES
            yield f"`{filename}`: {_lines(path):,} lines" if text else f"`{filename}`: {size:,} bytes"


def _lines(path: Path) -> int:
    content = path.read_bytes()
    return content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def _type(analysis: Analysis, name: Occurrence) -> str:
    for item in analysis.program.items:
        if isinstance(item, ast.TypeDeclaration) and item.name == name.name:
            return _code(f".type {item.name} {'<:' if item.subtype else '='} {item.base}")
    return _code(name.name)


def aggregate_text(name: str) -> str:
    """What is known of an aggregate."""
    spec = AGGREGATES[name]
    part = "(0.5)" if spec.by_counts else ""
    return f"{_code(f'y = {name}{part} x : {{ ... }}' if spec.operand else f'y = {name} : {{ ... }}')}\n\n{spec.doc}"


def functor_text(name: str) -> str:
    """What is known of a functor or a test; empty of anything else."""
    known = FUNCTORS.get(name) or CONSTRAINTS.get(name)
    if known is None:
        return ""
    head = str(known) if name in FUNCTORS else f"{name}({', '.join(CONSTRAINTS[name].parameters)})"
    return f"{_code(head)}\n\n{known.doc}\n\n{_code(known.example)}"


# --- rename -----------------------------------------------------------------------------------------------------------


def can_be_renamed(analysis: Analysis, name: Occurrence) -> bool:
    """Whether a name is the program's own."""
    return name.kind in (RELATION, VARIABLE) or (name.kind == TYPE and name.name in analysis.types())


def rename_refusal(analysis: Analysis, name: Occurrence, new: str) -> str:
    """Why a name cannot become another; empty if it can."""
    if not can_be_renamed(analysis, name):
        return f"`{name.name}` is a word of the language, which cannot be renamed"
    if not NAME.fullmatch(new):
        return f"`{new}` is no name: names are letters, digits, `_` and `?`, and do not begin with a digit"
    reserved = RESERVED_VARIABLES if name.kind == VARIABLE else RESERVED if name.kind == RELATION else BASE_TYPES
    if new in reserved:
        return f"`{new}` has a meaning of its own, and cannot name a {name.kind}"
    taken = (o for o in analysis.occurrences if o.same(Occurrence(name.kind, new, 0, 0, name.item)))
    if new != name.name and next(taken, None) is not None:
        where = "in this rule" if name.kind == VARIABLE else "in this program"
        return f"there is another {name.kind} `{new}` {where}"
    for start, end in analysis.broken:
        if name.kind != VARIABLE and name.name in NAME.findall(analysis.source.text[start:end]):
            clause = analysis.source.text[start:end]
            line, _ = analysis.source.position(start + len(clause) - len(clause.lstrip()))
            return f"the clause of line {line} names `{name.name}` and does not parse: correct it first"
    return ""


# --- completion -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completion:
    """What may stand at a place. Items of lower `rank` are shown first."""

    label: str
    kind: str
    detail: str = ""
    documentation: str = ""
    rank: int = 0


def completions(analysis: Analysis, offset: int) -> tuple[int, list[Completion]]:
    """Where the word begins that is being written, and what may stand in its place."""
    text = analysis.source.text
    word = re.search(r"[A-Za-z_?][\w?]*\Z", text[:offset])
    start = word.start() if word else offset
    clause, _ = analysis.clause(offset)
    before = text[clause:start].lstrip()
    if analysis.is_opaque(offset):
        return start, []
    if before == "." or (not before and text.endswith(".", 0, offset) and not _ends_clause(text, offset)):
        directives = [Completion(word, "keyword", documentation=doc) for word, doc in DIRECTIVES.items()]
        return start - (before == "."), directives
    if re.match(r"\.(input|output|printsize)\b", before):
        return start, [] if "(" in before else list(_relations(analysis))
    if re.match(r"\.(decl|type)\b", before):
        return start, list(_types(analysis)) if re.search(r"(:|=|<:)\s*\Z", before) else []
    if before.startswith("."):
        return start, []
    variables = [Completion(name, "variable") for name in analysis.variables_of_clause(offset)]
    by_label = {item.label: item for item in (*variables, *_relations(analysis), *_words())}
    return start, list(by_label.values())


def _ends_clause(text: str, offset: int) -> bool:
    """Whether the dot before a place ends a clause: something stands before it in its line."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset - 1]
    return bool(line.strip())


def _relations(analysis: Analysis) -> Iterator[Completion]:
    for name in analysis.relations():
        places = analysis.definitions(Occurrence(RELATION, name, 0, 0, 0))
        comment = analysis.comment_on(places[0])
        yield Completion(name, "relation", signature(analysis, name), comment, rank=1)


def _types(analysis: Analysis) -> Iterator[Completion]:
    yield from (Completion(name, "type", rank=1) for name in BASE_TYPES)
    yield from (Completion(name, "type", base) for name, base in analysis.types().items())


def _words() -> Iterator[Completion]:
    for name, spec in AGGREGATES.items():
        yield Completion(
            name, "functor", spec.doc, "\n\n".join(filter(None, [aggregate_text(name), functor_text(name)])), rank=2
        )
    for name, known in {**FUNCTORS, **CONSTRAINTS}.items():
        if name.isidentifier() and name != "neg" and name not in AGGREGATES:
            yield Completion(name, "functor", str(known), functor_text(name), rank=3)


# --- symbols ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declaration or a rule, from `start` to `end`; its name is `width` characters wide."""

    name: str
    kind: str
    start: int
    end: int
    width: int
    detail: str = ""


def symbols(analysis: Analysis) -> Iterator[Symbol]:
    """What a program declares, and its rules; its facts only of relations that nothing else defines."""
    seen: set[str] = set()
    for item in analysis.program.items:
        start, end = analysis.source.bounds(item.span)
        match item:
            case ast.Declaration(name):
                yield Symbol(name, "relation", start, end, end - start, signature(analysis, name))
            case ast.TypeDeclaration(name, base):
                yield Symbol(name, "type", start, end, end - start, base)
            case ast.Rule(heads, body):
                name = heads[0].name
                if body or not (name in analysis.declarations or name in seen):
                    seen.add(name)
                    width = len(name)
                    yield Symbol(", ".join(map(head_source, heads)), "rule", start, end, width)
