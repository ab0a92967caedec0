"""AST to text: `parse(to_text(program)) == program` for every program.

One item per line; a rule with several conditions stays on one line. Strings are escaped, floats keep their point,
parentheses appear only where precedence needs them (`notation.py`). What the parser drops cannot come back: comments,
the base of an integer, redundant parentheses. An `Unsupported` item prints its source unchanged.
"""

from __future__ import annotations

from lftj.language import ast
from lftj.language.findings import too_deep
from lftj.language.functors import CONSTRAINTS
from lftj.language.notation import ATOMIC_LEVEL, comparison_text, functor_text, literal_level, literal_text, symbol_text


def to_text(program: ast.Program) -> str:
    """The program as source text, one item per line, ending in a newline unless it is empty."""
    try:
        return "".join(f"{item_text(item)}\n" for item in program.items)
    except RecursionError:
        raise too_deep(program.source) from None


def item_text(item: ast.Item) -> str:
    """One item as source text."""
    match item:
        case ast.Declaration(name, attributes, qualifiers):
            columns = ", ".join(f"{a.name}:{a.type}" for a in attributes)
            return " ".join([f".decl {name}({columns})", *qualifiers])
        case ast.TypeDeclaration(name, base, subtype):
            return f".type {name} {'<:' if subtype else '='} {base}"
        case ast.Directive(kind, relation, options):
            written = ", ".join(f"{key}={symbol_text(value)}" for key, value in options)
            return f".{kind} {relation}({written})" if options else f".{kind} {relation}"
        case ast.Rule(heads, body):
            head = ", ".join(literal_source(atom) for atom in heads)
            return f"{head} :- {_body_text(body)}." if body else f"{head}."
        case ast.Unsupported():
            return item.text


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
        case ast.Functor(name, args):
            return functor_text(name, [_term(arg) for arg in args])
        case ast.Unsupported():
            return term.text, ATOMIC_LEVEL
