"""Rule options: what the user asks for the rules of a head, beside what they say.

    key_orders     {"tri": ("y", "x", "z")}   the order in which its rules bind their variables
    maintain       {"tri": "recompute"}       as in `lftj.language.options`
    granularity    {"tri": "interval"}

They hold for rules of the program they are given with, and are kept by rule number; "auto" is the same as no option. An
option for a head overrides one that the builder gave with a rule. A rule with several heads is one rule: an option of
one of its heads holds for all. A head is maintained as a whole: one rule of it with "recompute" decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lftj import arguments
from lftj.errors import DataError, UnknownRelationError
from lftj.language.clause import CheckedProgram, Clause
from lftj.language.diagnostics import did_you_mean
from lftj.language.options import AUTO, VALUES, WHY, listed

_ORDERS = 'as in `key_orders={"tri": ("y", "x", "z")}`'
_NAMES = {"key_orders": "a key order", "maintain": "`maintain`", "granularity": "`granularity`"}


class RuleOptions(NamedTuple):
    """What a call of `rules` asks for, by head."""

    key_orders: Mapping[str, tuple[str, ...]]
    maintain: Mapping[str, str]
    granularity: Mapping[str, str]

    @classmethod
    def of(
        cls,
        key_orders: Mapping[str, tuple[str, ...] | list[str]] | None,
        maintain: Mapping[str, str] | None,
        granularity: Mapping[str, str] | None,
    ) -> RuleOptions:
        """From the keyword arguments of `rules`."""
        return cls(
            {
                head: arguments.names("key_orders", order, f"give the variables in order, {_ORDERS}")
                for head, order in arguments.by_name("key_orders", key_orders, f"give a dict, {_ORDERS}").items()
            },
            arguments.by_name("maintain", maintain, 'give a dict, as in `maintain={"tri": "delta"}`'),
            arguments.by_name("granularity", granularity, 'give a dict, as in `granularity={"tri": "node"}`'),
        )

    def check(self, clauses: Iterable[Clause]) -> None:
        """Raise `UnknownRelationError` for a head without a rule among `clauses`, `DataError` for what cannot be."""
        own: dict[str, list[Clause]] = {}
        for clause in clauses:
            own.setdefault(clause.head, []).append(clause)
        for option, by_head in self._asdict().items():
            for head, value in by_head.items():
                if head not in own:
                    raise UnknownRelationError(
                        f"{_NAMES[option]} is given for `{head}`, which no rule of this program derives",
                        why="it holds for rules of the program it is given with",
                        remedy=did_you_mean(head, own, "name the head of a rule of the same program"),
                    )
                if option == "key_orders":
                    for clause in own[head]:
                        check_order(clause, value)
                elif value not in VALUES[option]:
                    raise DataError(
                        f"{option} of `{head}`: {value!r} is unknown",
                        where=str(own[head][0].span),
                        why=WHY[option],
                        remedy=f"give {listed(VALUES[option])}",
                    )

    def orders_by_rule(self, checked: CheckedProgram) -> dict[int, tuple[str, ...]]:
        """The key orders by rule number."""
        return {c.rule: self.key_orders[c.head] for c in checked.clauses if c.head in self.key_orders}

    def by_rule(self, checked: CheckedProgram, option: str) -> dict[int, str]:
        """What is asked for as `option` ("maintain" or "granularity"), by rule number."""
        by_head: Mapping[str, str] = getattr(self, option)
        found = {rule: dict(given).get(option, AUTO) for rule, given in checked.options.items()}
        found |= {c.rule: by_head[c.head] for c in checked.clauses if c.head in by_head}
        return {rule: value for rule, value in found.items() if value != AUTO}


def check_order(clause: Clause, order: tuple[str, ...]) -> None:
    """Raise `DataError` unless `order` names every variable of the clause, each once."""
    # Arguments that are expressions became variables, which nobody has to name.
    names = {v.name for v in clause.variables() if not re.fullmatch(r"_e\d+", v.name) or v.name in order}
    if set(order) != names or len(order) != len(names):
        raise DataError(
            f"the key order ({', '.join(order)}) does not name each variable of the rule once",
            where=str(clause.span),
            why=f"the variables of `{clause.text}` are {', '.join(sorted(names))}",
            remedy="list all of them, outermost first",
        )
