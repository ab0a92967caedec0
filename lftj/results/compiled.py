"""A compiled query: its text, checked once, and what is kept to ask it again with other values.

    db.query("may($who, a, r)", who="ann")       text -> Compiled, kept by the database -> Query

A *parameter*, `$name`, stands wherever a constant may stand. Its type is inferred as that of a variable is. A value
given for it is checked against that type and becomes a code, which a register of the join holds: it is never a part of
any text.

Compiled queries are kept by their text. One is valid while the relations it reads are there with the columns that they
had; else the text is compiled anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lftj.errors import ArgumentError
from lftj.evaluate.kept_walk import KeptWalk
from lftj.language.clause import Clause, Parameter, parameters_of
from lftj.language.null import cases_of_query
from lftj.language.reader import QUERY_OPTIONS
from lftj.store.stored import StoredRelation
from lftj.values import gate
from lftj.values.codes import is_missing
from lftj.values.faults import shown, stands_for_null
from lftj.values.schema import Column, Schema
from lftj.values.symbols import SymbolTable
from lftj.values.type_table import in_dictionary, is_nullable, type_of, with_null
from lftj.values.value_type import Misfit


class Compiled:
    """A checked query. `schema`: of its answers · `parameters`: in the order of the text · `reads`: relations.

    `text`, `order`: what it was made of · `cases`: the clauses that have its answers, each at most one of them.
    """

    __slots__ = (
        "_interned",
        "_null",
        "_schemas",
        "cases",
        "clause",
        "order",
        "parameters",
        "reads",
        "schema",
        "text",
        "walk",
    )

    def __init__(self, text: str, clause: Clause, order: tuple[str, ...] | None, schemas: Mapping[str, Schema]) -> None:
        self.text, self.clause, self.order = text, clause, order
        names = [str(term) for term in clause.head_args]
        columns = [Column(n, t.type) for n, t in zip(names, clause.head_args, strict=True)]
        self.schema = Schema("query", tuple(columns))
        self.reads = tuple(clause.reads)
        self._schemas = tuple((name, schemas[name]) for name in self.reads)
        in_atoms = [arg for atom in (*clause.atoms, *clause.negated) for arg in atom.args]
        elsewhere = [term for compare in clause.compares for term in (compare.left, compare.right)]
        found = sorted(parameters_of((*in_atoms, *elsewhere)), key=lambda p: (p.span.line, p.span.column))
        self.parameters: dict[str, Parameter] = {}
        for parameter in found:
            self.parameters.setdefault(parameter.name, parameter)
        # A text that no row has needs no code to be looked for; it does where it is computed with or a part of answers.
        self._interned = frozenset(parameter.name for parameter in parameters_of(elsewhere))
        # Of the parameters that are looked for in a column with null, its code, which is no value there.
        self._null: dict[str, int] = {}
        for atom in (*clause.atoms, *clause.negated):
            types = schemas[atom.predicate].types if atom.predicate in schemas else ()
            for arg, type in zip(atom.args, types, strict=False):
                if isinstance(arg, Parameter) and is_nullable(type) and not in_dictionary(type):
                    self._null[arg.name] = type_of(type).null
        self.cases = cases_of_query(clause, schemas.__getitem__)
        self.walk = KeptWalk(clause, order)

    def valid(self, relations: Mapping[str, StoredRelation]) -> bool:
        """Whether the relations it reads are there, with the columns that they had."""
        for name, schema in self._schemas:
            relation = relations.get(name)
            if relation is None or (relation.schema is not schema and relation.schema != schema):
                return False
        return True

    def check(self, given: Mapping[str, Any], symbols: SymbolTable) -> None:
        """Raise `ArgumentError` if the values given for the parameters are not all, others or misfits."""
        self._codes(given, symbols, frozenset())

    def codes(self, given: Mapping[str, Any], symbols: SymbolTable) -> Mapping[str, int]:
        """The codes of the values given for the parameters; `ArgumentError` as `check`."""
        return self._codes(given, symbols, self._interned)

    def _codes(self, given: Mapping[str, Any], symbols: SymbolTable, interned: frozenset[str]) -> dict[str, int]:
        if given.keys() != self.parameters.keys():
            raise self._other_names(given)
        codes = {}
        for name, parameter in self.parameters.items():
            find = gate.encode_value if name in interned else gate.lookup_value
            try:
                codes[name] = find(given[name], parameter.type, symbols)
            except Misfit as misfit:
                raise self._misfit(parameter, given[name], misfit) from None
        for name, null in self._null.items():
            if codes[name] == null:
                parameter = self.parameters[name]
                taken = Misfit(stands_for_null(type_of(with_null(parameter.type))))
                raise self._misfit(parameter, given[name], taken)
        return codes

    def _misfit(self, parameter: Parameter, value: Any, misfit: Misfit) -> ArgumentError:
        if is_missing(value):
            return ArgumentError(
                f"`${parameter.name}` cannot be null",
                where=f"{parameter.span}: in `{self.clause.text}`",
                why="null equals nothing, so that a query with it has no answers",
                remedy=f"give `{parameter.name}=` {type_of(parameter.type).article}, or ask with `is_null`",
            )
        fault, reason = misfit.fault, f", as {parameter.reason}" if parameter.reason else ""
        return ArgumentError(
            f"`${parameter.name}` cannot be {shown(value)}, which {fault.reason}",
            where=f"{parameter.span}: in `{self.clause.text}`",
            why=f"it is {type_of(parameter.type).article} here{reason}; {fault.why}",
            remedy=f"give `{parameter.name}=` {type_of(parameter.type).article}",
        )

    def _other_names(self, given: Mapping[str, Any]) -> ArgumentError:
        """What is wrong with the names of the values that were given."""
        from lftj.language.diagnostics import did_you_mean

        missing = [name for name in self.parameters if name not in given]
        unknown = [name for name in given if name not in self.parameters]
        named = ", ".join(f"`${name}`" for name in self.parameters)
        where = f"in `{self.clause.text}`"
        if unknown and unknown[0] in QUERY_OPTIONS:  # to `db.query` it would not have been a value
            return ArgumentError(
                f"the query has no parameter `${unknown[0]}`",
                where=where,
                why=f"`{unknown[0]}=` is an option of a query, and a prepared one has it for all its calls",
                remedy=f"give `{unknown[0]}=` to `prepare_query`",
            )
        if unknown:
            has = f"has the parameters {named}" if len(self.parameters) > 1 else f"has the parameter {named}"
            return ArgumentError(
                f"the query has no parameter `${unknown[0]}`",
                where=where,
                why=f"it {has}" if self.parameters else "its text has no `$`",
                remedy=did_you_mean(
                    unknown[0],
                    (*(missing or self.parameters), *QUERY_OPTIONS),
                    f"leave `{unknown[0]}=` out, or write `${unknown[0]}` where its value is to stand",
                ),
            )
        values = ", ".join(f"`{name}=...`" for name in missing)
        return ArgumentError(
            f"the parameter `${missing[0]}` has no value",
            where=where,
            why="every parameter of a query is given its value with each question",
            remedy=f"give {values}",
        )
