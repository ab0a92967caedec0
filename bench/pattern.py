"""A conjunctive pattern, and what it is called in each engine's language.

A *pattern* is a list of atoms over variables with comparisons: `e(x,y), e(y,z), e(x,z), x < y`. Its answer is the set
of bindings of all its variables, so counting needs no duplicate removal and every engine counts the same thing. It is
written once, as the body of a rule, and rendered as a query (lftj), SQL (DuckDB) and Cypher (Kuzu). A relation of
arity 2 is a set of arcs; one of arity 3, `t(u, label, v)`, is a set of labelled arcs in Cypher and a three-column
table elsewhere.

Only what the workloads use is covered: variables in atoms (no constants, no wildcards, no variable twice in one
atom), and comparisons of a variable with a variable or an integer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_ATOM = re.compile(r"(\w+)\(([^()]*)\)")
_COMPARISON = re.compile(r"(\w+)\s*(<=|>=|!=|=|<|>)\s*(\w+)")


@dataclass(frozen=True)
class Atom:
    """`relation(variables)`."""

    relation: str
    variables: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(self.variables)})"


@dataclass(frozen=True)
class Comparison:
    """`left op right`, with `left` a variable and `right` a variable or an integer literal."""

    left: str
    op: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Pattern:
    """Atoms and comparisons, in the order written."""

    atoms: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """The pattern written as the body of a rule."""
        atoms = tuple(Atom(m[1], tuple(v.strip() for v in m[2].split(","))) for m in _ATOM.finditer(text))
        rest = _ATOM.sub("", text)
        comparisons = tuple(Comparison(m[1], m[2], m[3]) for m in _COMPARISON.finditer(rest))
        left_over = _COMPARISON.sub("", rest).replace(",", "").strip()
        if left_over or not atoms:
            raise ValueError(f"not a pattern: {text!r} (could not read {left_over!r})")
        return cls(atoms, comparisons)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All variables, in order of first appearance."""
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @cached_property
    def arities(self) -> dict[str, int]:
        """Arity of every relation."""
        return {atom.relation: len(atom.variables) for atom in self.atoms}

    def __str__(self) -> str:
        return ", ".join(str(part) for part in (*self.atoms, *self.comparisons))

    # lftj ---------------------------------------------------------------------------------------------------

    def declarations(self) -> str:
        """`.decl` lines of the relations."""
        return "\n".join(
            f".decl {name}({', '.join(f'c{i}:number' for i in range(arity))})" for name, arity in self.arities.items()
        )

    # SQL ----------------------------------------------------------------------------------------------------

    def sql(self) -> str:
        """A `SELECT` of all variables; tables have columns c0, c1, ..."""
        bound: dict[str, str] = {}
        conditions = []
        for i, atom in enumerate(self.atoms):
            for j, variable in enumerate(atom.variables):
                column = f"a{i}.c{j}"
                if variable in bound:
                    conditions.append(f"{bound[variable]} = {column}")
                else:
                    bound[variable] = column
        for c in self.comparisons:
            op = "<>" if c.op == "!=" else c.op
            conditions.append(f"{bound[c.left]} {op} {bound.get(c.right, c.right)}")
        select = ", ".join(f"{column} AS {variable}" for variable, column in bound.items())
        source = ", ".join(f"{atom.relation} a{i}" for i, atom in enumerate(self.atoms))
        return f"SELECT {select} FROM {source}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")

    def sql_count(self) -> str:
        """The number of rows of `sql()`, nothing materialised."""
        return re.sub(r"^SELECT .*? FROM", "SELECT count(*) FROM", self.sql())

    # Cypher -------------------------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> frozenset[str]:
        """Variables that stand in the middle of a ternary atom: edge labels to Cypher."""
        return frozenset(atom.variables[1] for atom in self.atoms if len(atom.variables) == 3)

    def cypher_gap(self) -> str | None:
        """Why Cypher cannot say this pattern over a graph of labelled arcs; None if it can."""
        if any(len(atom.variables) not in (2, 3) for atom in self.atoms):
            return "only arcs and labelled arcs are edges of a property graph"
        ends = {v for atom in self.atoms for v in (atom.variables[0], atom.variables[-1])}
        if ends & self.labels:
            return "a variable is both a vertex and an edge label: a ternary relation is no edge of a property graph"
        return None

    def cypher_count(self) -> str:
        """`MATCH ... RETURN count(*)`; vertices carry `id`, labelled arcs carry `label`."""
        edges, conditions = [], []
        bound: dict[str, str] = {}
        for i, atom in enumerate(self.atoms):
            edges.append(f"({atom.variables[0]}:V)-[r{i}:{atom.relation}]->({atom.variables[-1]}:V)")
            if len(atom.variables) == 3:
                label = atom.variables[1]
                if label in bound:
                    conditions.append(f"{bound[label]} = r{i}.label")
                bound.setdefault(label, f"r{i}.label")
        for variable in self.variables:
            bound.setdefault(variable, f"{variable}.id")
        for c in self.comparisons:
            op = "<>" if c.op == "!=" else c.op
            conditions.append(f"{bound[c.left]} {op} {bound.get(c.right, c.right)}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"MATCH {', '.join(edges)}{where} RETURN count(*)"
