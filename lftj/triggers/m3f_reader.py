"""M3F text to programs: lark parses by `m3f.lark`, this page makes maps and statements of the tree and checks them.

Variables get their types from what binds them: columns of relations, keys of maps, terms of lifts. Every finding has
its place in the text; what a statement reads must exist and have a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from lftj.errors import Diagnostic, ProgramError
from lftj.language.clause import Apply, Term, Value, Var, variables_of
from lftj.language.diagnostics import did_you_mean
from lftj.language.functors import FUNCTORS
from lftj.language.notation import UnknownEscapeError, symbol_value
from lftj.language.source import Source
from lftj.language.tables import lalr
from lftj.language.types import comparable
from lftj.triggers.algebra import (
    DELETION,
    EVENT,
    INSERTION,
    Add,
    AggSum,
    Cmp,
    Factor,
    Formula,
    Lift,
    MapDefinition,
    MapRead,
    Mul,
    Rel,
    Statement,
    TriggerProgram,
    Val,
)
from lftj.triggers.evaluation_order import reads
from lftj.triggers.formulas import binds, is_parameter, renamed, variables_of_all
from lftj.triggers.m3f import common_type, term_text
from lftj.triggers.m3f_final import final_of
from lftj.triggers.syntax_error import parse_tree
from lftj.values.schema import Column, Schema
from lftj.values.type_table import is_type, to_stored, type_of
from lftj.values.value_type import Misfit

if TYPE_CHECKING:
    from lark import Lark, Token


@cache
def _lark() -> Lark:
    import pkgutil

    grammar = pkgutil.get_data("lftj.triggers", "m3f.lark")
    assert grammar is not None, "every loader of packages reads their files"
    return lalr(grammar.decode("utf-8"), ["start"])


def parsed(text: str, source: str = "<m3f>") -> TriggerProgram:
    """The program that an M3F text writes. Raises ProgramError with the place of what is wrong."""
    place = Source(text, source)
    first, *more = _by_program(place)
    reader = _ProgramReader(place)
    if more:
        raise reader.error(
            more[0][0],
            "a second program begins here",
            "`lftj triggers` prints one for each head, and reads them all; here one is read",
            "give the text of one of them",
        )
    return reader.program(first)


def parsed_all(text: str, source: str = "<m3f>") -> list[TriggerProgram]:
    """The programs that an M3F text writes one after the other, as `parsed` reads one."""
    place = Source(text, source)
    return [_ProgramReader(place).program(items) for items in _by_program(place)]


def _by_program(place: Source) -> list[list[Any]]:
    """The items of each program of a text: those of the next one declare what is declared before, behind its end."""
    parts: list[list[Any]] = [[]]
    declares, names = ("relation", "map"), [set[tuple[str, str]]()]
    tree: Any = parse_tree(_lark(), place, "a program is relations, maps, `top` and `on` lines")
    for item in tree.children:
        if item.data in declares and parts[-1] and parts[-1][-1].data not in declares:
            parts.append([])
            names.append(set())
        parts[-1].append(item)
        if item.data in declares:
            names[-1].add((item.data, str(item.children[0].children[0])))
    several = len(set().union(*names)) < sum(map(len, names))
    return parts if several else [[item for part in parts for item in part]]


# The types of the variables of a formula or statement, by name.
_Types = dict[str, str]


class _ProgramReader:
    """What was read so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.relations: dict[str, Schema] = {}
        self.maps: dict[str, MapDefinition] = {}
        self.keys: dict[str, tuple[Var, ...]] = {}

    def program(self, items: Sequence[Any]) -> TriggerProgram:
        for item in items:
            if item.data == "relation":
                self.relation(item)
            elif item.data == "map":
                name = self.name(item.children[0])
                if name in self.keys:
                    raise self.error(item, f"map `{name}` is defined twice", "a map has one definition", "drop one")
                self.keys[name] = tuple(Var(column.name, column.type) for column in self.columns(item.children[1]))
        for item in items:
            if item.data == "map":
                self.map(item)
        statements: dict[tuple[int, str], list[Statement]] = {}
        tops: list[str] = []
        for item in items:
            if item.data == "on":
                event, found = self.on(item)
                statements.setdefault(event, []).extend(found)
            elif item.data == "top":
                for child in item.children:
                    tops.append(self.name(child))
                    self.known(child, tops[-1], self.keys, "map")
        found_all = {event: tuple(found) for event, found in statements.items()}
        intervals, targets = ([item for item in items if item.data == kind] for kind in ("interval", "final"))
        final = final_of(intervals, targets, self.map_name)
        return TriggerProgram(self.relations, self.maps, found_all, tuple(tops), final)

    # --- items ---

    def relation(self, tree: Any) -> None:
        """A relation with its columns."""
        name_tree, columns, value = tree.children
        name = self.name(name_tree)
        found = self.columns(columns) + (self.columns(value) if value is not None else ())
        if name in self.relations:
            raise self.error(tree, f"relation `{name}` is declared twice", "a relation has one schema", "drop one")
        self.relations[name] = Schema(name, found, functional=value is not None)

    def columns(self, tree: Any) -> tuple[Column, ...]:
        """Names with types."""
        if tree is None:
            return ()
        trees = tree.children if tree.data == "columns" else [tree]
        return tuple(Column(self.name(column.children[0]), self.type(column.children[1])) for column in trees)

    def map(self, tree: Any) -> None:
        """A map with what it holds."""
        name = self.name(tree.children[0])
        keys = self.keys[name]
        body = self.typed(self.formula(tree.children[2]), {key.name: key.type for key in keys}, tree)
        self.maps[name] = MapDefinition(name, keys, body)

    def on(self, tree: Any) -> tuple[tuple[int, str], list[Statement]]:
        """The statements of an event."""
        sign, name_tree, names, *statements = tree.children
        relation = self.name(name_tree)
        schema = self.known(name_tree, relation, self.relations, "relation")
        given = [self.name(child) for child in names.children] if names is not None else []
        if len(given) != schema.arity or len(set(given)) != len(given):
            raise self.error(
                tree,
                f"an event of `{relation}` has {schema.arity} values, and {len(given)} distinct names are due",
                f"its rows are {schema}",
                "name every column once",
            )
        parameters = {
            name: Var(f"{EVENT}{i}", type) for i, (name, type) in enumerate(zip(given, schema.types, strict=True))
        }
        event = (INSERTION if sign == "+" else DELETION, relation)
        return event, [self.statement(statement, parameters) for statement in statements]

    def statement(self, tree: Any, parameters: dict[str, Var]) -> Statement:
        """`target[keys] += factors`."""
        target_tree, keys_tree, change, product = tree.children
        target = self.name(target_tree)
        due, keys = self.known(target_tree, target, self.keys, "map"), self.args(keys_tree)
        self.same_length(tree, f"`{target}`", len(due), len(keys))
        whole = self.formula(product)
        factors = whole.parts if isinstance(whole, Mul) and product.data == "product" else (whole,)
        if change == "-=":
            factors = (Val(Value(-1, "number")), *factors)
        types = {var.name: var.type for var in parameters.values()}
        body = self.typed(renamed(Mul(factors), parameters), types, tree)
        assert isinstance(body, Mul)
        for factor in body.parts:
            if not isinstance(factor, Factor):
                raise self.error(
                    tree,
                    "a statement reads maps, not relations and sums",
                    "it is a product of entries of maps, values, comparisons and lifts",
                    "make a map of what it sums, and read that",
                )
        read = MapRead(target, tuple(parameters.get(key.name, key) if isinstance(key, Var) else key for key in keys))
        typed_read = self.typed(
            read, {**types, **{name: var.type for name, var in variables_of_all(body.parts).items()}}, tree
        )
        assert isinstance(typed_read, MapRead)
        made = Statement(target, typed_read.keys, body.parts)  # type: ignore[arg-type]
        self.check_bound(made, tree)
        self.check_types(made, {var.name: name for name, var in parameters.items()}, tree)
        return made

    def check_bound(self, statement: Statement, tree: Any) -> None:
        """What a factor or a key reads is bound by the factors before it."""
        known: set[str] = set()
        keys = [key for key in statement.keys if isinstance(key, Var)]
        for read, bound in (*((reads(factor), binds(factor)) for factor in statement.factors), (keys, frozenset())):
            for var in read:
                if var.name not in known and not is_parameter(var):
                    raise self.no_value(tree, var.name)
            known |= bound

    def check_types(self, statement: Statement, names: Mapping[str, str], tree: Any) -> None:
        """Keys have the types of their maps, and what is compared is of one type. `names`: of the event's values."""
        entries = [factor for factor in statement.factors if isinstance(factor, MapRead)]
        pairs: list[tuple[Term, Term, str]] = []
        for read in (*entries, MapRead(statement.target, statement.keys)):
            pairs += [
                (key, own, f" of `{read.name}`") for key, own in zip(read.keys, self.keys[read.name], strict=True)
            ]
        pairs += [(factor.left, factor.right, "") for factor in statement.factors if isinstance(factor, Cmp)]
        for one, two, of in pairs:
            if not comparable(one.type, two.type):
                raise self.error(
                    tree,
                    f"type conflict: `{term_text(one, names)}` is {one.type}, "
                    f"`{term_text(two, names)}`{of} is {two.type}",
                    "values of different types are not compared, and a key is found by comparing",
                    "use one type",
                )

    # --- formulas, whose variables have no types yet ---

    def formula(self, tree: Any) -> Formula:
        """A formula as written."""
        children = tree.children
        match tree.data:
            case "product":
                return self.formula(children[0]) if len(children) == 1 else Mul(tuple(map(self.formula, children)))
            case "nested":
                return self.formula(children[0])
            case "single":
                return Mul((self.formula(children[0]),))
            case "add":
                return Add(tuple(map(self.formula, children)))
            case "rel":
                name = self.name(children[0])
                schema = self.known(children[0], name, self.relations, "relation")
                args = self.args(children[1])
                self.same_length(tree, f"`{name}`", schema.arity, len(args))
                return Rel(name, args)
            case "read":
                name = self.name(children[0])
                keys = self.known(children[0], name, self.keys, "map")
                args = self.args(children[1])
                self.same_length(tree, f"`{name}`", len(keys), len(args))
                return MapRead(name, args)
            case "aggsum":
                names = children[0].children if children[0] is not None else []
                return AggSum(tuple(Var(self.name(name), "") for name in names), self.formula(children[1]))
            case "compare":
                return Cmp(str(children[1]), self.term(children[0]), self.term(children[2]))
            case "lift":
                return Lift(Var(self.name(children[0]), ""), self.term(children[1]))
        term = self.term(children[0])
        # A bare 1 is the product of nothing, a bare 0 the sum of nothing.
        bare = not self.source.text.startswith("{", tree.meta.start_pos)
        if bare and term == Value(1, "number"):
            return Mul()
        if bare and term == Value(0, "number"):
            return Add()
        return Val(term)

    def args(self, tree: Any) -> tuple[Var | Value, ...]:
        """Variables and constants."""
        if tree is None:
            return ()
        terms = [self.term(child) for child in tree.children]
        return tuple(term for term in terms if isinstance(term, Var | Value))

    def term(self, tree: Any) -> Term:
        """A term as written; what has no type of its own has the type ""."""
        children = tree.children
        match tree.data:
            case "variable":
                return Var(self.name(children[0]), "")
            case "integer" | "text" | "null":
                return self.constant(tree)
            case "infix":
                return Apply(str(children[1]), (self.term(children[0]), self.term(children[2])), "")
            case "same":
                return self.term(children[0])
            case "typed":
                term, kind = self.term(children[0]), self.type(children[1])
                return Apply(term.op, term.args, kind) if isinstance(term, Apply) else term
        op = self.name(children[0])
        self.known(children[0], op, FUNCTORS, "functor")
        return Apply(op, tuple(self.term(child) for child in children[1].children) if children[1] else (), "")

    def constant(self, tree: Any) -> Value:
        """A constant that its type holds."""
        children, made = tree.children, Value(None, "")
        try:
            if tree.data == "integer":
                made = Value(int(children[0]), "number")
            elif tree.data == "null":
                made = Value(None, self.type(children[0]))
            else:
                name = self.type(children[1]) if children[1] is not None else "symbol"
                kind, text = type_of(name), symbol_value(str(children[0]))
                made = Value(kind.known(kind.parse(text)), name)
            to_stored(made.value, made.type)
        except Misfit as misfit:
            fault = misfit.fault
            raise self.error(tree, f"the constant {fault.reason}", fault.why, fault.remedy) from None
        except UnknownEscapeError as error:
            what = f"unknown escape `{error}`"
            raise self.error(tree, what, "a backslash begins an escape", "write `\\\\` for a backslash") from None
        return made

    # --- types ---

    def typed(self, formula: Formula, types: _Types, tree: Any) -> Formula:
        """The formula with the types of its variables. `types`: of those bound outside; it gets the others too."""
        found: list[Lift] = []
        self.bind(formula, types, found)
        while found:
            known = [lift for lift in found if all(var.name in types for var in variables_of(lift.term))]
            if not known:
                break
            for lift in known:
                types.setdefault(lift.var.name, self.typed_term(lift.term, types, tree).type)
                found.remove(lift)
        return self.resolve(formula, types, tree)

    def bind(self, formula: Formula, types: _Types, lifts: list[Lift]) -> None:
        """The types that relations and maps give; lifts are noted for later."""
        match formula:
            case Rel(name, args) | MapRead(name, args):
                columns = self.relations[name].types if isinstance(formula, Rel) else [k.type for k in self.keys[name]]
                for arg, kind in zip(args, columns, strict=True):
                    if isinstance(arg, Var):
                        types.setdefault(arg.name, kind)
            case Lift():
                lifts.append(formula)
            case Mul(parts) | Add(parts):
                for part in parts:
                    self.bind(part, types, lifts)
            case AggSum(_, body):
                self.bind(body, types, lifts)

    def resolve(self, formula: Formula, types: _Types, tree: Any) -> Formula:
        """The formula with typed terms."""

        def term(given: Term) -> Term:
            return self.typed_term(given, types, tree)

        def plain(given: Sequence[Var | Value]) -> tuple[Any, ...]:
            return tuple(term(arg) for arg in given)

        match formula:
            case Rel(name, args):
                return Rel(name, plain(args))
            case MapRead(name, keys):
                return MapRead(name, plain(keys))
            case Lift(var, value):
                return Lift(plain((var,))[0], term(value))
            case Cmp(op, left, right):
                return Cmp(op, term(left), term(right))
            case Val(value):
                return Val(term(value))
            case Mul(parts):
                return Mul(tuple(self.resolve(part, types, tree) for part in parts))
            case Add(parts):
                return Add(tuple(self.resolve(part, types, tree) for part in parts))
            case AggSum(keys, body):
                return AggSum(plain(keys), self.resolve(body, types, tree))

    def typed_term(self, term: Term, types: _Types, tree: Any) -> Term:
        """A term with the types of its variables, and of functors that have none written."""
        if isinstance(term, Var):
            if term.name not in types:
                raise self.no_value(tree, term.name)
            return Var(term.name, types[term.name])
        if isinstance(term, Apply):
            args = tuple(self.typed_term(arg, types, tree) for arg in term.args)
            kind = term.type or common_type(args)
            if not kind:
                raise self.error(
                    tree,
                    f"the type of `{term.op}` is not known",
                    "its arguments have different types",
                    f"write its type behind it: `({term.op}(..)):number`",
                )
            return Apply(term.op, args, kind)
        return term

    # --- places ---

    def name(self, tree: Any) -> str:
        """A name, without its backticks."""
        token = str(tree.children[0] if hasattr(tree, "children") else tree)
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def map_name(self, tree: Any) -> str:
        """The name of a map that exists."""
        name = self.name(tree)
        self.known(tree, name, self.keys, "map")
        return name

    def type(self, token: Token) -> str:
        """A type that exists."""
        if not is_type(str(token)):
            raise self.error(token, f"unknown type `{token}`", "a column has a type of lftj", "see docs/types.md")
        return str(token)

    def known(self, tree: Any, name: str, names: Any, kind: str) -> Any:
        """What a name stands for."""
        if name not in names:
            listed = ", ".join(f"`{known}`" for known in list(names)[:8]) or "none"
            raise self.error(
                tree,
                f"there is no {kind} `{name}`",
                f"the text declares no {kind} of that name" if kind != "functor" else "lftj has no such functor",
                did_you_mean(name, names, f"those that there are: {listed}"),
            )
        return names[name]

    def same_length(self, tree: Any, what: str, due: int, given: int) -> None:
        if due != given:
            raise self.error(
                tree, f"{what} takes {due} arguments, not {given}", "it has that many columns", "give each"
            )

    def no_value(self, tree: Any, name: str) -> ProgramError:
        """The error for a variable that is not bound."""
        return self.error(
            tree,
            f"variable `{name}` has no value",
            "no relation, map or lift beside it binds it",
            "bind it, or name it among the values of the event",
        )

    def error(self, tree: Any, what: str, why: str, remedy: str) -> ProgramError:
        """An error with the place of a tree or token."""
        at = tree if hasattr(tree, "start_pos") else tree.meta
        return ProgramError([Diagnostic(what, self.source.span(at.start_pos, at.end_pos), why=why, remedy=remedy)])
