"""Groundness: every variable of a clause gets its values from an atom, or from an equality whose other side is bound.

An argument of an atom that is a bare variable binds it; an equality `x = term` (either way round) binds `x` once all
variables of the term are bound, so chains such as `p(y), x = y + 1, z = x` are fine. Expressions are computed, never
solved: neither `p(x + 1)` nor `x + 1 = y` binds x. Negated atoms and comparisons bind nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lftj.language import ast
from lftj.language.diagnostics import Findings
from lftj.language.normal_form import Conjunction
from lftj.language.visitors import Node, nodes, open_variables, parts, scopes, subterms


def bound_variables(body: Conjunction) -> set[str]:
    """The variables that the atoms and equalities of a conjunction bind."""
    bound = {arg.name for atom in body.atoms for arg in atom.args if isinstance(arg, ast.Variable)}
    waiting = [compare for compare in body.compares if compare.op == "="]
    while True:
        still = []
        for compare in waiting:
            for target, source in ((compare.left, compare.right), (compare.right, compare.left)):
                if isinstance(target, ast.Variable) and _computable(source, bound):
                    bound.add(target.name)
                    break
            else:
                still.append(compare)
        if len(still) == len(waiting):
            return bound
        waiting = still


def _computable(term: ast.Term, bound: set[str]) -> bool:
    return all(
        part.name in bound if isinstance(part, ast.Variable) else not isinstance(part, ast.Wildcard | ast.Unsupported)
        for part in subterms(term)
    )


def check_bound(
    rule: ast.Rule,
    heads: Sequence[ast.Atom],
    bodies: Sequence[Conjunction],
    findings: Findings,
    reported: set[str] | None = None,
) -> set[str]:
    """Report the variables that some alternative of a body leaves unbound, and wildcards where a value is due.

    `heads`: one for each alternative, whose lookups and aggregates are variables of that alternative only; none if no
    head asks for values. `reported`: names of variables that need no further finding; the unbound ones are added to it,
    and it is returned.
    """
    _check_wildcards(heads, bodies, findings)
    bound = [bound_variables(body) for body in bodies]
    reported = set() if reported is None else reported
    for at, (body, has) in enumerate(zip(bodies, bound, strict=True)):
        for variable in _variables(heads[at : at + 1], body):
            name = variable.name
            if name in has or name in reported:
                continue
            reported.add(name)
            in_body = any(part.name == name for part in _variables((), body))
            if not (rule.body or body.atoms):
                findings.error(
                    f"variable `{name}` in a fact",
                    variable.span,
                    why="a fact states one row, so its arguments are constants",
                    remedy=f'write a constant (`"{name}"` is a text), or bind `{name}` in a body after `:-`',
                    predicate=rule.heads[0].name,
                )
            elif any(name in other for other in bound):
                findings.error(
                    f"variable `{name}` is not bound in every alternative of the body",
                    variable.span,
                    why="each side of `;` must bind the variables that the rest of the rule uses",
                    remedy=f"bind `{name}` in every alternative",
                )
            elif any(
                part.name == name for atom in body.negated for part in atom.args if isinstance(part, ast.Variable)
            ):
                findings.error(
                    f"variable `{name}` is not bound by any atom that holds",
                    variable.span,
                    why="a negated atom says which values are not there, so it gives none to its variables",
                    remedy=f"use `{name}` as an argument of an atom that is not negated, or write `_` for any value",
                )
            elif in_body:
                findings.error(
                    f"variable `{name}` is not bound by any atom",
                    variable.span,
                    why="a condition or an expression needs the values of its variables before it can be computed",
                    remedy=f"use `{name}` as an argument of an atom, or set it by an equality such as `{name} = 1`",
                )
            else:
                findings.error(
                    f"variable `{name}` occurs in the head but in no atom of the body",
                    variable.span,
                    why="a rule can only derive values that its body binds",
                    remedy=f"bind `{name}` in an atom of the body, or drop it from the head",
                    predicate=rule.heads[0].name,
                )
    return reported


def _check_wildcards(heads: Sequence[ast.Atom], bodies: Sequence[Conjunction], findings: Findings) -> None:
    for head in heads:
        for arg in head.args:
            for part in subterms(arg):
                if isinstance(part, ast.Wildcard):
                    findings.error(
                        "a wildcard in the head",
                        part.span,
                        why="`_` stands for any value, and a derived row needs a definite one",
                        remedy="name a variable that the body binds",
                        predicate=head.name,
                    )
    for body in bodies:
        computed = [term for compare in body.compares for term in (compare.left, compare.right)]
        computed += [arg for atom in (*body.atoms, *body.negated) for arg in atom.args if isinstance(arg, ast.Functor)]
        for term in computed:
            for part in subterms(term):
                if isinstance(part, ast.Wildcard):
                    findings.error(
                        "a wildcard in an expression or comparison",
                        part.span,
                        why="`_` has no value to compute with",
                        remedy="use a named variable that an atom binds",
                    )


def _variables(heads: Sequence[ast.Atom], body: Conjunction) -> Iterator[ast.Variable]:
    """The variables of heads and body in order of passes: heads, atoms, negated atoms, comparisons."""
    for atom in (*heads, *body.atoms, *body.negated):
        for arg in atom.args:
            for part in subterms(arg):
                if isinstance(part, ast.Variable):
                    yield part
    for compare in body.compares:
        for term in (compare.left, compare.right):
            for part in subterms(term):
                if isinstance(part, ast.Variable):
                    yield part


def check_single_use(rule: ast.Rule, unbound: set[str], findings: Findings) -> None:
    """Warn of a variable that occurs once in its scope, often a slip of the pen, unless its name starts with `_`.

    The `unbound` ones have their findings already.
    """
    _check_scope(rule, (*rule.heads, *rule.body), unbound, findings)


def _check_scope(rule: ast.Rule, roots: Iterable[Node], outside: set[str], findings: Findings) -> None:
    roots = tuple(roots)
    inner = list(scopes(roots))
    own = {variable.name for variable in open_variables(roots)} - outside
    uses: dict[str, list[ast.Variable]] = {}
    for variable in (node for node in nodes(roots) if isinstance(node, ast.Variable)):
        if variable.name in own:
            uses.setdefault(variable.name, []).append(variable)
    for name, places in uses.items():
        if len(places) == 1 and not name.startswith("_"):
            findings.warning(
                f"variable `{name}` occurs only once",
                places[0].span,
                why="it joins nothing; a second use may be misspelt",
                remedy=f"write `_`, or `_{name}` if the name is worth keeping",
                predicate=rule.heads[0].name,
            )
    for scope in inner:
        _check_scope(rule, parts(scope), outside | own, findings)
