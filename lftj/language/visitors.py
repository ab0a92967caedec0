"""Walks over a rule: its terms, atoms and variables, with or without what stands in scopes of their own.

A scope of its own is what an aggregate has in its braces (with its operand), and a negated conjunction: a variable
that occurs only there is local to it. `open_variables` are those of the scope itself, `all_names` those of every depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lftj.language import ast
from lftj.language.functors import OR_NULL

Literals = tuple[ast.Literal, ...]
Node = ast.Literal | ast.Term | ast.Head


def parts(node: Node) -> tuple[Node, ...]:
    """What a literal, a head or a term is made of, one step down, in source order."""
    match node:
        case ast.Atom() | ast.Functor() | ast.Assignment():
            return node.args
        case ast.Lookup():
            return node.keys
        case ast.Comparison():
            return (node.left, node.right)
        case ast.Negation():
            return (node.literal,)
        case ast.Disjunction():
            return tuple(literal for alternative in node.alternatives for literal in alternative)
        case ast.Aggregate():
            return (node.operand, *node.body) if node.operand is not None else node.body
    return ()


def nodes(roots: Iterable[Node]) -> Iterator[Node]:
    """Every literal and term among and below `roots`, whatever its depth, parents first."""
    waiting = [*roots][::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(parts(node))


def lets_null_match(node: Node) -> bool:
    """Whether a literal is no condition, but says that null matches null: `or_null(x)`."""
    return isinstance(node, ast.Comparison) and node.op == OR_NULL


def is_scope(node: Node) -> bool:
    """Whether the variables of a node are a scope of their own: an aggregate, or a negated conjunction."""
    if isinstance(node, ast.Negation) and isinstance(node.literal, ast.Disjunction):
        return any(len(alternative) > 1 for alternative in node.literal.alternatives)
    return isinstance(node, ast.Aggregate)


def open_variables(roots: Iterable[Node]) -> Iterator[ast.Variable]:
    """The variables of a scope, without those of scopes within it, with repetitions."""
    for node in roots:
        if isinstance(node, ast.Variable):
            yield node
        elif not is_scope(node):
            yield from open_variables(parts(node))


def scopes(roots: Iterable[Node]) -> Iterator[Node]:
    """The scopes directly within a scope."""
    for node in roots:
        if is_scope(node):
            yield node
        else:
            yield from scopes(parts(node))


def all_names(roots: Iterable[Node]) -> dict[str, ast.Variable]:
    """The variables at every depth, each at its first place."""
    found: dict[str, ast.Variable] = {}
    for node in nodes(roots):
        if isinstance(node, ast.Variable):
            found.setdefault(node.name, node)
    return found


def literals_of(body: Iterable[ast.Literal]) -> Iterator[ast.Literal]:
    """Every literal of a body, those within negations, disjunctions and aggregates included."""
    return (
        node
        for node in nodes(body)
        if isinstance(node, ast.Atom | ast.Comparison | ast.Negation | ast.Disjunction | ast.Unsupported)
    )


def atoms_of(rule: ast.Rule) -> Iterator[ast.Atom | ast.Lookup]:
    """Every atom that a rule reads, and every value it looks up, those in its heads' arguments included."""
    reads = (*(arg for head in rule.heads for arg in head.args), *rule.body)
    return (node for node in nodes(reads) if isinstance(node, ast.Atom | ast.Lookup))


def terms_of(rule: ast.Rule) -> Iterator[ast.Term]:
    """Every term of a rule, whatever its depth, in source order."""
    return (
        node
        for node in nodes((*rule.heads, *rule.body))
        if not isinstance(node, ast.Atom | ast.Comparison | ast.Negation | ast.Disjunction | ast.Assignment)
    )


def subterms(term: ast.Term) -> Iterator[ast.Term]:
    """A term and the terms it is made of. Terms in braces are not among them."""
    yield term
    for part in term.args if isinstance(term, ast.Functor) else term.keys if isinstance(term, ast.Lookup) else ():
        yield from subterms(part)
