"""What is no SQL: where the text goes wrong, and which word was meant.

    create tabel t (a int)      `tabel` where a word of SQL is due: did you mean `table`?
    select a from t order a     `order` without `by`
    select (a from t            a parenthesis that is never closed
    select abs(1, 2) from t     more arguments than `abs` takes

A word is called misspelt if the statement has a meaning once a word of SQL that it resembles stands in its place: each
guess is parsed. So a suggestion is never one that does not help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from lftj.errors import Diagnostic, ProgramError, Span
from lftj.sql.dialect import CLOSES, OPENS
from lftj.sql.places import SqlText
from lftj.values.faults import counted

REMEDY = "see docs/sql.md for the statements that lftj understands; they are written as DuckDB writes them"
_BEGIN = re.compile(r"'|\"|/\*|--")
_WORDS = re.findall(
    r"\w+",
    """
    all and any as asc begin between by case cast check column conflict create cross current default delete desc
    distinct do drop else end escape except execute exists explain false fetch filter first foreign from full group
    having if ilike in inner insert intersect interval into is join key last lateral left like limit materialized
    natural not nothing null nulls offset on or order outer primary recursive references replace right rollback
    select set some table temporary then true truncate union unique update using values view when where with
    """,
)
# What stands behind a word wherever it begins a clause.
_FOLLOWED = {
    **dict.fromkeys(("order", "group"), "by"),
    **dict.fromkeys(("inner", "left", "right", "full", "cross", "natural"), "join"),
    "insert": "into",
    "delete": "from",
    "primary": "key",
    "foreign": "key",
}
# Statements about transactions that the parser does not know begin with these words, and no others do.
_OF_SAVEPOINTS = {"savepoint", "release"}
_OF_TRANSACTIONS = {"start", "end", "abort", "lock", *_OF_SAVEPOINTS}
# A shorter word is a name: `a` is not `as` misspelt.
_SHORTEST = 2
# What the parser says of a function with too many arguments, and of one with too few.
_TOO_MANY = re.compile(r"provided arguments \((\d+)\) .* supported arguments \((\d+)\)")
_TOO_FEW = re.compile(r"missing for <class '[\w.]*?(\w+)'>")
# So many words before and behind the place where the parser gave up are tried.
_BACK, _AHEAD = 6, 2
# How alike a word is that may have been meant; and how likely it is, on that scale, that one was left out.
_ALIKE, _LACKING = 0.6, 0.7

# Behind these, and behind a comma, no comma has a meaning.
_NO_ITEM = {TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, TokenType.FROM, TokenType.VALUES}
_NO_ITEM |= {TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.DISTINCT}
# What ends a value or a name: none can begin with it.
_NO_BEGIN = {TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.SEMICOLON}

# What a join begins with before `join`.
_SIDES = {TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.CROSS, TokenType.NATURAL}

# Functions to the parser that are written without parentheses, `power` by its name too.
_OPERATORS = (exp.Binary, exp.Case, exp.Cast, exp.If)

Parses = Callable[[str], bool]


def refused(what: str, span: Span, why: str, remedy: str = REMEDY) -> ProgramError:
    """The error to raise about a text that is no SQL."""
    error = ProgramError([Diagnostic(what, span, why=why, remedy=remedy)])
    error.what, error.where, error.why, error.remedy = what, str(span), why, remedy
    return error


def span_of(source: SqlText, token: Token) -> Span:
    """The place of a token."""
    line, begin = source.text.count("\n", 0, token.start) + 1, source.text.rfind("\n", 0, token.start)
    column = token.start - begin
    end = column + token.end + 1 - token.start
    return Span(source.name, line, column, line, end, source.text.split("\n")[line - 1])


def syntax_error(source: SqlText, error: ParseError, tokens: Sequence[Token], parses: Parses) -> ProgramError:
    """The error to raise about a statement that the parser refuses; `parses` tells whether a text is a statement."""
    found = error.errors[0] if error.errors else {}
    word, line, column = found.get("highlight") or "", found.get("line"), found.get("col")
    at = next((i for i, token in enumerate(tokens) if (token.line, token.col) == (line, column)), len(tokens) - 1)
    said = str(found.get("description") or error).strip().rstrip(".")
    wrong = _wrong_number_of_arguments(source, tokens, at, said) or misspelt(source, tokens, at, parses)
    if wrong is not None:
        return wrong
    if "SENTINEL" in said:  # the parser's word for the end
        said = f"{said.partition(' but got')[0]}, and the statement ends"
    why = f"the parser says: {said}"
    if _TOO_FEW.search(said):  # the parser names a class of its own for what it cannot finish
        why = "a value is missing here"
    elif "Unexpected token" in said and word:
        why = f"the statement cannot go on with `{word}` here"
    if line is None or column is None:
        return refused("syntax error", Span(source.name), why)
    lines = source.text.split("\n")
    # sqlglot gives the column of a token's last character.
    start = max(1, column - max(len(word.split("\n")[-1]), 1) + 1)
    span = Span(source.name, line, start, line, column + 1, lines[line - 1] if line <= len(lines) else "")
    return refused(f"syntax error at `{word}`" if word else "syntax error", span, why)


def not_a_statement(word: str, *, savepoint: bool) -> dict[str, str]:
    """What is wrong with a statement about transactions, or about a savepoint in one, why, and what to do."""
    why = "a transaction is a text, or a block of Python: it commits at its end, and an error undoes it"
    remedy = (
        "leave it out, or write `with db.transaction() as tx:` and call `tx.sql(...)` in it; "
        "`begin` and `commit` may stand around a whole text of `db.sql`"
    )
    if savepoint:
        remedy = (
            "write `with db.transaction() as tx:` and call `tx.sql(...)` in it: a text that fails has changed nothing, "
            "and the transaction may go on"
        )
    return {"what": f"`{word}` is not a statement of lftj", "why": why, "remedy": remedy}


def about_transactions(source: SqlText, tokens: Sequence[Token]) -> ProgramError | None:
    """The error about a statement on transactions that the parser does not know; None if it is another."""
    first = tokens[0]
    word = first.text.lower()
    if word not in _OF_TRANSACTIONS or _quoted(source, first):
        return None
    return refused(span=span_of(source, first), **not_a_statement(word, savepoint=word in _OF_SAVEPOINTS))


def out_of_place(source: SqlText, tokens: Sequence[Token]) -> ProgramError | None:
    """The error about something that the parser may pass over, or take for something else; None if there is none.

    It does without what closes `cast(`, `max(` and others: `delete from t where cast(a as int = 3` deleted rows. And
    `!` is `not` to it, where DuckDB takes `a ! in (1)` for a factorial.
    """
    for before, token in pairwise(tokens):
        kinds = before.token_type, token.token_type
        if token.token_type == TokenType.COMMA and before.token_type in _NO_ITEM:
            why = "a comma stands between two values, and one is missing here"
            return refused(
                "syntax error at `,`", span_of(source, token), why, "write the value, or leave the comma out"
            )
        between = source.text[before.end + 1 : token.start]
        if kinds == (TokenType.STRING, TokenType.STRING) and "\n" not in between:
            why = "two texts are one where they stand on lines of their own, and not beside one another"
            shown = source.text[token.start : token.end + 1]
            return refused(f"syntax error at `{shown}`", span_of(source, token), why, "write `||` between them")
        if token.token_type == TokenType.NOT and token.text == "!" and source.text[token.end + 1 :][:1] != "~":
            why = "it only has a meaning in `!=`"
            return refused("syntax error at `!`", span_of(source, token), why, "write `not`, or `<>`")
        if kinds == (TokenType.OR, TokenType.INTO):
            why = "`insert or` goes on with what is to be done with a row whose key is there"
            remedy = "write `insert into`, `insert or replace into` or `insert or ignore into`"
            return refused("syntax error at `into`", span_of(source, token), why, remedy)
    for at, token in enumerate(tokens):
        lacking = _lacking(source, tokens, at)
        if lacking is not None:
            return lacking
        if token.token_type == TokenType.UPDATE and _behind_conflict(tokens, at):
            why = "behind `on conflict` stands `do update` or `do nothing`"
            return refused("syntax error: `update` without `do`", span_of(source, token), why, "write `do update`")
    unfinished = _without_then(tokens)
    if unfinished is not None:
        why, remedy = "each `when` says what the value is `then`", "write `when ... then ...`"
        return refused("syntax error: `when` without `then`", span_of(source, unfinished), why, remedy)
    alone = _unclosed(tokens)
    if alone is not None:
        what = "a parenthesis that is never closed" if alone.text == "(" else "a parenthesis that nothing opened"
        return refused(f"syntax error: {what}", span_of(source, alone), "each `(` has one `)`", _closing(alone))
    return None


def _lacking(source: SqlText, tokens: Sequence[Token], at: int) -> ProgramError | None:
    """The error about a word that something is missing behind, or before, which the parser does without."""
    before = tokens[at - 1].token_type if at else None
    kind, *ahead = (token.token_type for token in tokens[at : at + 3])
    ends = not ahead or ahead[0] in _NO_BEGIN
    joins = len(ahead) == 2 and ahead[0] in _SIDES and ahead[1] in {*_SIDES, TokenType.JOIN, TokenType.OUTER}
    why = remedy = ""
    if kind == TokenType.PLUS and before in _NO_ITEM and ends:
        why, remedy = "a value is missing behind it", "write the value, or leave it out"
    elif kind == TokenType.OVER and before == TokenType.R_PAREN and ends:
        why, remedy = "behind it stands a window", "write `over (...)`, or `over w` with a window that has this name"
    elif kind == TokenType.PARTITION_BY and (ends or ahead[0] == TokenType.ORDER_BY):
        why, remedy = "nothing says what parts the rows", "name columns, or leave it out"
    elif kind == TokenType.ALIAS and (ends or ahead[0] == TokenType.NUMBER or joins) and ahead[:1] != [TokenType.FROM]:
        why, remedy = "a name stands behind it", "write the name, or leave it out"
    elif kind == TokenType.ALIAS and before in _NO_ITEM:
        why, remedy = "what is to have the name is missing before it", "write the value"
    elif [kind, *ahead[:1]] == [TokenType.DISTINCT, TokenType.ON] and ahead[1:] != [TokenType.L_PAREN]:
        why, remedy = "`on` has its columns in parentheses", "write `distinct on (a, ...)`"
    word = " ".join(tokens[at].text.lower().split())
    return refused(f"syntax error at `{word}`", span_of(source, tokens[at]), why, remedy) if why else None


def too_many_arguments(name: str, most: int, given: int) -> dict[str, str]:
    """What is wrong with a function that has more arguments than it takes, why, and what to do."""
    what = f"`{name}` takes {counted(most, 'argument')} at most, and has {given}"
    return {"what": what, "why": f"`{name}` has no use for more", "remedy": "leave the others out"}


def too_few_arguments(name: str, given: int) -> dict[str, str]:
    """What is wrong with a function that lacks an argument, why, and what to do."""
    what = f"`{name}` without an argument" if given == 0 else f"`{name}` with {counted(given, 'argument')} only"
    why = "it has no value without the arguments that are missing"
    return {"what": what, "why": why, "remedy": "write the arguments that it takes"}


def misspelt(source: SqlText, tokens: Sequence[Token], at: int, parses: Parses) -> ProgramError | None:
    """The error that names a word that was meant otherwise, near the token `at`; None if no guess helps."""
    guesses: list[tuple[float, Token, str]] = []
    for place in _near(at, len(tokens)):
        token = tokens[place]
        written = token.text.lower()
        if not token.text.isidentifier() or len(written) < _SHORTEST or _quoted(source, token):
            continue
        if written in _FOLLOWED:
            guesses.append((_LACKING, token, f"{written} {_FOLLOWED[written]}"))
        if written not in _WORDS:
            alike = get_close_matches(written, _WORDS, 3, _ALIKE)
            guesses += [(SequenceMatcher(None, word, written).ratio(), token, word) for word in alike]
    for _, token, meant in sorted(guesses, key=lambda guess: -guess[0]):
        if not parses(_with(source, tokens, token, meant)):
            continue
        if " " in meant:
            return refused(
                f"syntax error: `{token.text}` without `{_FOLLOWED[token.text.lower()]}`",
                span_of(source, token),
                f"`{meant}` is what begins such a part",
                f"write `{meant}`",
            )
        return refused(
            f"syntax error at `{token.text}`",
            span_of(source, token),
            f"a word of SQL is due here, and `{token.text}` is none that has a meaning in this place",
            f"did you mean `{meant}`?",
        )
    return None


def broken(source: SqlText, error: Exception) -> ProgramError:
    """The error to raise about a text that has no tokens."""
    at = _open_quote(source.text)
    if at is None:
        said = str(error).strip().splitlines()[0]
        return refused("syntax error", Span(source.name), f"the parser says: {said}")
    line, begin = source.text.count("\n", 0, at) + 1, source.text.rfind("\n", 0, at)
    text = source.text.split("\n")[line - 1]
    span = Span(source.name, line, at - begin, line, len(text) + 1, text)
    return refused("syntax error: this is never closed", span, "a quote, or a comment, that begins has to end")


def _wrong_number_of_arguments(source: SqlText, tokens: Sequence[Token], at: int, said: str) -> ProgramError | None:
    """The error about a function with more or fewer arguments than it takes; None if the parser says no such thing.

    The parser stops at the parenthesis that closes it, the token `at`.
    """
    many, few = _TOO_MANY.search(said), _TOO_FEW.search(said)
    call = _called(tokens, at)
    if call is None or not (many or few):
        return None
    function, given = call
    name = function.text.lower()
    if many:
        return refused(span=span_of(source, function), **too_many_arguments(name, int(many[2]), given))
    assert few is not None
    kind: type[Any] = getattr(exp, few[1], exp.Expr)
    names = kind.sql_names() if issubclass(kind, exp.Func) else ()
    if not names or (issubclass(kind, _OPERATORS) and name.upper() not in names):
        return None  # what is unfinished is an expression in the parentheses
    return refused(span=span_of(source, function), **too_few_arguments(name, given))


# --- tokens -----------------------------------------------------------------------------------------------------------


def _near(at: int, size: int) -> Iterator[int]:
    """Places of tokens, those nearest before the place of the error first."""
    yield from range(min(at, size - 1), max(-1, at - _BACK - 1), -1)
    yield from range(at + 1, min(size, at + _AHEAD + 1))


def _quoted(source: SqlText, token: Token) -> bool:
    return source.text[token.start] in "\"'"


def _with(source: SqlText, tokens: Sequence[Token], token: Token, word: str) -> str:
    """The statement with a word in the place of a token."""
    return f"{source.text[tokens[0].start : token.start]}{word}{source.text[token.end + 1 : tokens[-1].end + 1]}"


def _called(tokens: Sequence[Token], end: int) -> tuple[Token, int] | None:
    """The function whose parenthesis the token `end` closes, and how many arguments it has; None if it closes none."""
    if tokens[end].token_type != TokenType.R_PAREN:
        return None
    commas = depth = 0
    for at in range(end, 0, -1):
        kind = tokens[at].token_type
        depth += (kind in CLOSES) - (kind in OPENS)
        commas += kind == TokenType.COMMA and depth == 1
        if depth == 0:
            named = tokens[at - 1].text.isidentifier()
            return (tokens[at - 1], 0 if at + 1 == end else commas + 1) if named else None
    return None


def _without_then(tokens: Sequence[Token]) -> Token | None:
    """The `when` of a `case` that no `then` follows; None if there is none."""
    open_: list[Token | None] = []  # for each `case` around, its `when` that waits for `then`
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.CASE:
            open_.append(None)
        elif open_ and kind == TokenType.THEN:
            open_[-1] = None
        elif open_ and kind in (TokenType.WHEN, TokenType.ELSE, TokenType.END):
            if open_[-1] is not None:
                return open_[-1]
            if kind == TokenType.WHEN:
                open_[-1] = token
            elif kind == TokenType.END:
                open_.pop()
    return None


def _unclosed(tokens: Sequence[Token]) -> Token | None:
    """The parenthesis that has no partner; None if all have one."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type == TokenType.R_PAREN:
            if not opened:
                return token
            opened.pop()
    return opened[-1] if opened else None


def _behind_conflict(tokens: Sequence[Token], at: int) -> bool:
    """Whether `conflict`, or that and its columns in parentheses, stand right before the token `at`."""
    call = _called(tokens, at - 1) if at > 1 else None
    before = tokens[at - 1] if call is None else call[0]
    return at > 1 and before.token_type == TokenType.VAR and before.text.lower() == "conflict"


def _closing(token: Token) -> str:
    return "write the `)` where it ends" if token.text == "(" else "leave it out, or write the `(` where it begins"


def _open_quote(text: str) -> int | None:
    """Where the quote or comment begins that is never closed; None if there is none."""
    ends = {"'": "'", '"': '"', "/*": "*/", "--": "\n"}
    at = 0
    while found := _BEGIN.search(text, at):
        end = text.find(ends[found[0]], found.end())
        if end < 0:
            return None if found[0] == "--" else found.start()
        at = end + len(ends[found[0]])
    return None
