"""AST to text: `parse(to_text(program)) == program` for every program.

One item per line; a rule with several conditions stays on one line. Strings are escaped, floats keep their point,
parentheses appear only where precedence needs them (`notation.py`). What the parser drops cannot come back: comments,
the base of an integer, redundant parentheses. An `Unsupported` item prints its source unchanged.
"""

from __future__ import annotations

from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES
from lftj.language.diagnostics import too_deep
from lftj.language.functors import CONSTRAINTS
from lftj.language.notation import (
    ATOMIC_LEVEL,
    comparison_text,
    functor_text,
    literal_level,
    literal_text,
    symbol_text,
)


def to_text(program: ast.Program) -> str:
    """The program as source text, one item per line, ending in a newline unless it is empty."""
    try:
        return "".join(f"{item_text(item)}\n" for item in program.items)
    except RecursionError:
        raise too_deep(program.source) from None


def item_text(item: ast.Item) -> str:
    """One item as source text."""
    match item:
        case ast.Declaration(name, attributes, qualifiers, functional=functional):
            columns = [f"{a.name}:{a.type}" for a in attributes]
            value = [f"-> {columns.pop()}"] if functional else []
            return " ".join([f".decl {name}({', '.join(columns)})", *value, *qualifiers])
        case ast.TypeDeclaration(name, base, subtype):
            return f".type {name} {'<:' if subtype else '='} {base}"
        case ast.Directive(kind, relation, options):
            written = ", ".join(f"{key}={symbol_text(value)}" for key, value in options)
            return f".{kind} {relation}({written})" if options else f".{kind} {relation}"
        case ast.Rule(heads, body):
            head = ", ".join(head_source(head) for head in heads)
            return f"{head} :- {_body_text(body)}." if body else f"{head}."
        case ast.Unsupported():
            return item.text


def head_source(head: ast.Head) -> str:
    """A head as source text."""
    if isinstance(head, ast.Atom):
        return literal_source(head)
    return f"{_keyed(head.name, head.keys)} = {term_source(head.value)}"


def _keyed(name: str, keys: tuple[ast.Term, ...]) -> str:
    return f"{name}[{', '.join(term_source(key) for key in keys)}]"


def _body_text(body: tuple[ast.Literal, ...]) -> str:
    if len(body) == 1 and isinstance(body[0], ast.Disjunction):
        return literal_source(body[0])[1:-1]
    return ", ".join(literal_source(literal) for literal in body)


def literal_source(literal: ast.Literal) -> str:
    """A condition of a body as source text; a disjunction is parenthesised."""
    match literal:
        case ast.Atom(name, args):
            return f"{name}({', '.join(term_source(arg) for arg in args)})"
        case ast.Comparison(op, left, right):
            return comparison_text(op, term_source(left), term_source(right))
        case ast.Negation(inner):
            text = literal_source(inner)
            bare = not isinstance(inner, ast.Comparison) or inner.op in CONSTRAINTS
            return f"!{text}" if bare else f"!({text})"
        case ast.Disjunction(alternatives):
            return f"({'; '.join(', '.join(literal_source(x) for x in conjunction) for conjunction in alternatives)})"
        case ast.Unsupported():
            return literal.text


def term_source(term: ast.Term) -> str:
    """A term as source text."""
    return _term(term)[0]


def _term(term: ast.Term) -> tuple[str, int]:
    """The text of a term and its precedence level."""
    match term:
        case ast.Variable(name):
            return name, ATOMIC_LEVEL
        case ast.Wildcard():
            return "_", ATOMIC_LEVEL
        case ast.Constant(value, kind):
            text = literal_text(value, kind)
            return text, literal_level(text)
        case ast.Parameter(name):
            return f"${name}", ATOMIC_LEVEL
        case ast.Functor(name, args):
            return functor_text(name, [_term(arg) for arg in args])
        case ast.Lookup(name, keys):
            return _keyed(name, keys), ATOMIC_LEVEL
        case ast.Aggregate(op, operand, body):
            return f"{' '.join([op, *_operand(operand)])} : {{ {_body_text(body)} }}", ATOMIC_LEVEL
        case ast.Unsupported():
            return term.text, ATOMIC_LEVEL


def _operand(operand: ast.Term | None) -> list[str]:
    """The operand of an aggregate, parenthesised unless it is a variable that is no aggregate's name."""
    if operand is None:
        return []
    text = term_source(operand)
    return [text if isinstance(operand, ast.Variable) and text not in AGGREGATES else f"({text})"]
