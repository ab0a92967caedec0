"""Text to AST: lark parses by `grammar.lark`, `reader.py` turns its tree into `ast.Program`.

    text --lark--> tree of the cover grammar --Reader--> ast.Program        parse(to_text(program)) == program

A text that does not parse as a whole is cut into clauses (`source.segments`) and every clause is tried alone: all
syntax errors of a program are reported together, in one `ProgramError`. An empty text is an empty program; an empty
query is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from lftj.errors import Diagnostic, ProgramError
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.reader import Reader
from lftj.language.source import Source
from lftj.language.syntax import syntax_error
from lftj.language.tables import lalr

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


_END = r"(?![A-Za-z0-9_?])"  # of a word
# So many texts of at most such a length are kept parsed: the partitions of a program read the same, and databases too.
KEPT_TEXTS, KEPT_LENGTH = 64, 10_000


def _words(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(names)})"


def _folding() -> str:
    """The pattern of the words of the aggregates with an operand, and what stands in the parentheses behind one."""
    names = (name + r"(?:\s*\([^()]*\))?+" * spec.by_counts for name, spec in AGGREGATES.items() if spec.operand)
    return rf"{_words(names)}(?:(?<=\))|{_END})"


def _aggregate() -> str:
    """The pattern of the word of an aggregate, told from a name by what follows: an operand and a `:`.

    What is nested in an operand is skipped to a depth of 12, and strings anywhere; no word of another aggregate may
    stand between the two, unless in parentheses. A word before several arguments, `max(x, y)`, is a functor's.
    """
    words, end, name = _folding(), _END, r"[A-Za-z0-9_?]"
    text, nested = r'"(?:\\.|[^"\\])*"', "(?!)"
    for _ in range(12):
        nested = rf'[(\[{{](?:[^()\[\]{{}}"]|{text}|{nested})*+[)\]}}]'
    operators = rf"(?!\s*(?:bshru|bshr|bshl|band|bor|bxor|land|lor|lxor){end})"
    functor = rf'(?!\s*\((?:[^()\[\]{{}}",]|{text}|{nested})*+,)'
    other = rf"(?!(?<!{name}){_words(AGGREGATES)}{end}{functor})"
    time = r"@\d+-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[+-]\d\d:\d\d)?"  # the colons in it are its own
    # A declaration `mean(k:number) -> v:float` is none.
    operand = rf'(?:\d\.\d|{time}|{other}(?!->)[^,.;:{{}}()\[\]"]|{text}|(?!{{){nested})*+'
    return rf'{words}{functor}{operators}(?=\s*[A-Za-z0-9_?("@\[-])(?={operand}:\s*[A-Za-z0-9_?{{])'


@cache
def _lark(*, aggregates: bool) -> Lark:
    """The parser, made or read from its file once per process, on first use.

    Without `aggregates`, for a text that has none of their words: the pattern of these is compiled again for every set
    of tokens that may come next, which takes longer than all the others.
    """
    import pkgutil

    grammar = pkgutil.get_data("lftj.language", "grammar.lark")
    assert grammar is not None, "every loader of packages reads their files"
    text = grammar.decode("utf-8").replace("%AGGREGATE%", _aggregate() if aggregates else "(?!)sum")
    counting = _words(name for name, spec in AGGREGATES.items() if not spec.operand)
    text = text.replace("%COUNT%", counting).replace("%WORDS%", _words(AGGREGATES))
    return lalr(text, ["program", "query"])


def parse(text: str, source: str = "<rules>") -> ast.Program:
    """The program that `text` writes; `source` is the name that errors give as its place.

    Raises ProgramError with every syntax error of the text. Whether the program makes sense is the checker's
    business.
    """
    return _parsed(text, source) if len(text) <= KEPT_LENGTH else _parsed.__wrapped__(text, source)


@lru_cache(KEPT_TEXTS)
def _parsed(text: str, source: str) -> ast.Program:
    program, findings, _ = parse_pieces(text, source)
    if findings:
        raise ProgramError(findings)
    return program


def parse_pieces(text: str, source: str) -> tuple[ast.Program, list[Diagnostic], list[tuple[int, int]]]:
    """What can be read of a text: the items of the clauses that parse, all syntax errors, the offsets of the others."""
    place = Source(text, source)
    reader = Reader(place)
    items: list[ast.Item] = []
    broken: list[tuple[int, int]] = []
    whole = _tree(place, 0, len(text), "program")
    if not isinstance(whole, Diagnostic):
        items = reader.items(whole)
    else:
        for start, end in place.segments():
            tree = _tree(place, start, end, "program")
            if isinstance(tree, Diagnostic):
                reader.findings.append(tree)
                rest, following = _rest(place, start, end)
                broken.append((start, rest))
                items += following
            else:
                reader.base = start
                items += reader.items(tree)
        if not reader.findings:  # every piece parses alone: the cut hid the error
            reader.findings.append(whole)
    findings = sorted(reader.findings, key=lambda found: (found.span.line, found.span.column))
    return ast.Program(tuple(items), source), findings, broken


def _rest(place: Source, start: int, end: int) -> tuple[int, list[ast.Item]]:
    """What a clause without its dot took into its broken piece: where the first line begins from which all parses."""
    for line in re.compile(r"(?<=\n)[A-Za-z_?.]").finditer(place.text, start + 1, end):
        tree = _tree(place, line.start(), end, "program")
        if not isinstance(tree, Diagnostic):
            reader = Reader(place)  # of its own: what it finds is not reported beside the broken clause
            reader.base = line.start()
            return line.start(), reader.items(tree)
    return end, []


def parse_query(text: str, source: str = "<query>", *, parameters: bool = False) -> tuple[ast.Literal, ...]:
    """The conjunction that `text` writes, with or without a final `.`; a disjunction is one literal of it.

    `parameters`: it may hold some, `$name`.
    """
    place = Source(text, source)
    tree = _tree(place, 0, len(text), "query")
    if isinstance(tree, Diagnostic):
        raise ProgramError([tree])
    reader = Reader(place, parameters=parameters)
    body = reader.query(tree)
    if reader.findings:
        raise ProgramError(reader.findings)
    return body


def scanned(text: str) -> tuple[list[Token], Tree[Token]]:
    """All tokens of a text that parses, those that the tree leaves out too, and its tree. Raises lark's errors."""
    parser = _lark(aggregates=_folds(text)).parse_interactive(text, start="program")
    tokens = list(parser.exhaust_lexer())
    tree: Tree[Token] = parser.feed_eof()  # type: ignore[no-untyped-call]
    return tokens, tree


def _folds(text: str) -> bool:
    """Whether a text has the word of an aggregate."""
    return re.search(_folding(), text) is not None


def _tree(place: Source, start: int, end: int, rule: str) -> Tree[Token] | Diagnostic:
    """The tree of a piece of a text, or the finding that says why there is none."""
    from lark import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    text = place.text[start:end]
    try:
        return _lark(aggregates=_folds(text)).parse(text, start=rule)
    except UnexpectedInput as error:
        at = stop = len(text.rstrip())
        expected: set[str] = set()
        if isinstance(error, UnexpectedCharacters):
            position: Any = error.pos_in_stream  # an int here; lark's annotations speak of the base class
            at, stop, expected = position, position + 1, set(error.allowed or ())
        elif isinstance(error, UnexpectedToken):
            expected = set(error.accepts or error.expected)
            if error.token.type != "$END" and error.token.start_pos is not None and error.token.end_pos is not None:
                at, stop = error.token.start_pos, error.token.end_pos
        begin = len(text) - len(text.lstrip())
        return syntax_error(place, start + at, start + stop, expected, start + begin)
