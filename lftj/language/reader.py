"""Trees of the cover grammar to AST nodes.

The grammar accepts more than the language, any expression where a condition is due for instance, so that what is
wrong can be said in words: the reader keeps a list of findings and drops the clause in which one arose. Operator
chains are resolved here, by precedence climbing; constructs of Souffle that the engine does not evaluate become
`ast.Unsupported`, under the name by which the checker refuses them.

Degenerate cases: `true` and `false` as conditions are `1 = 1` and `1 != 1`; a negated conjunction is the negation of
a disjunction of one alternative; the braces of an aggregate may be left out around one atom. LogicBlox's form
`agg<<s = sum(v)>> body` is read as `s = sum v : { body }`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lftj.errors import Diagnostic, Span
from lftj.language import ast
from lftj.language.aggregate_specs import AGGREGATES, FRACTION_DIGITS, with_fraction, word_of
from lftj.language.functors import CONSTRAINTS, UNSUPPORTED_FUNCTORS
from lftj.language.notation import (
    BINARY_LEVEL,
    ESCAPES_SHOWN,
    POWER_LEVEL,
    UNARY_LEVEL,
    UnknownEscapeError,
    symbol_value,
)
from lftj.language.source import Source
from lftj.language.syntax import foreign
from lftj.values.decimal_type import DIGITS
from lftj.values.type_table import type_of
from lftj.values.value_type import Misfit

if TYPE_CHECKING:
    from lark import Token, Tree

_PREFIX = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}
_PREPROCESSOR = (
    "include",
    "define",
    "undef",
    "if",
    "ifdef",
    "ifndef",
    "else",
    "elif",
    "endif",
    "pragma",
    "error",
    "line",
)
# What `Database.query` is given by name besides parameters.
QUERY_OPTIONS = ("order", "timeout")
# The tokens of constants of other types, with the type and the text that it parses.
_TYPED: dict[str, tuple[str, Callable[[str], str]]] = {
    "DECIMAL": ("decimal", lambda token: token[:-1]),
    "TIMESTAMP": ("timestamp", lambda token: token[1:]),
    "DATE": ("date", lambda token: token[1:]),
    "DURATION": ("duration", lambda token: token[1:]),
    "UUID": ("uuid", lambda token: token[2:-1]),
    "BYTES": ("bytes", lambda token: token[3:-1]),
}
_MAX_DIGITS = 400  # far beyond 64 bits, and below the length that Python's int() refuses


class _Refused(Exception):
    """The clause at hand makes no sense; the finding is already recorded."""


class Reader:
    """Turns trees of one source into AST. `base`: offset of the piece being read; `findings`: what was wrong.

    `parameters`: it is a query that may hold parameters.
    """

    def __init__(self, source: Source, *, parameters: bool = False) -> None:
        self.source = source
        self.parameters = parameters
        self.base = 0
        self.findings: list[Diagnostic] = []

    def items(self, tree: Tree[Token]) -> list[ast.Item]:
        """The items of a `program` tree, without those that make no sense."""
        items: list[ast.Item] = []
        for child in tree.children:
            try:
                items += self._item(child)
            except _Refused:
                continue
            except RecursionError:
                span = self._span(child)
                remedy = "split it into several rules"
                self.findings.append(
                    Diagnostic(
                        "this clause is nested too deeply", span, why="it is deeper than Python's stack", remedy=remedy
                    )
                )
        return items

    def query(self, tree: Tree[Token]) -> tuple[ast.Literal, ...]:
        """The conjunction of a `query` tree; empty if it makes no sense."""
        try:
            return self._body(tree.children[0])
        except _Refused:
            return ()

    # Places

    def _bounds(self, node: Any) -> tuple[int, int]:
        place = node.meta if hasattr(node, "meta") else node
        return self.base + place.start_pos, self.base + place.end_pos

    def _span(self, node: Any) -> Span:
        return self.source.span(*self._bounds(node))

    def _text(self, node: Any) -> str:
        start, end = self._bounds(node)
        return self.source.text[start:end]

    def _refuse(self, what: str, node: Any, *, why: str, remedy: str) -> _Refused:
        self.findings.append(Diagnostic(what, self._span(node), why=why, remedy=remedy))
        return _Refused()

    def _unsupported(self, feature: str, node: Any, *defines: str) -> ast.Unsupported:
        return ast.Unsupported(feature, self._text(node), defines, self._span(node))

    # Items

    def _item(self, node: Any) -> list[ast.Item]:
        if not hasattr(node, "data"):
            return [self._refused_item(node)]
        kind = str(node.data)
        if kind in ("rule", "fact"):
            return [self._rule(node)]
        if kind == "decl":
            return self._decl(node)
        if kind == "directive":
            return self._directive(node)
        if kind == "type_decl":
            return [self._type_decl(node)]
        if kind == "component":
            return [self._unsupported(f"component `{_second_word(node.children[0])}` (`.comp`)", node)]
        return [self._unsupported("`debug_delta` relation", node, str(node.children[0]))]

    def _refused_item(self, token: Any) -> ast.Unsupported:
        """An item that is one token of the grammar."""
        kind, name = token.type, _second_word(token)
        if kind == "PREPROCESSOR":
            word = re.match(r"#\s*\w*", token)
            if word is None or word[0].lstrip("# ") not in _PREPROCESSOR:
                what, why = "`#` begins no comment", "it begins a line for the C preprocessor, as in Souffle"
                raise self._refuse(what, token, why=why, remedy="comments begin with `//`, or stand in `/* ... */`")
            return self._unsupported(f"preprocessor line (`{''.join(word[0].split())}`)", token)
        if kind == "LATTICE":
            return self._unsupported(f"lattice `{name}` (`.lattice`)", token, name)
        named = {
            "INIT": f"component instance `{name}` (`.init`)",
            "OVERRIDE": f"override of `{name}` (`.override`)",
            "FUNCTOR": f"user-defined functor `{name}` (`.functor`)",
            "PRAGMA": "`.pragma`",
            "PLAN": "query plan (`.plan`)",
            "INCLUDE": "`.include`",
            "ONCE": "`.once`",
        }
        return self._unsupported(named[kind], token)

    def _decl(self, node: Any) -> list[ast.Item]:
        names, attributes, value, *qualifiers = node.children
        written = [*(attributes.children if attributes else ()), *([value] if value else ())]
        columns = tuple(ast.Attribute(str(a.children[0]), _type_name(a.children[1:]), self._span(a)) for a in written)
        kept, directives = [], []
        for qualifier in qualifiers:
            word = " ".join(qualifier.split())
            if word in ("input", "output", "printsize"):
                directives.append((word, self._span(qualifier)))
            else:
                kept.append(word)
        declared: list[ast.Item] = []
        for name in names.children:
            span = self._span(name)
            declared.append(ast.Declaration(str(name), columns, tuple(kept), span, functional=value is not None))
            declared += [ast.Directive(kind, str(name), (), place) for kind, place in directives]
        return declared

    def _directive(self, node: Any) -> list[ast.Item]:
        kind = str(node.children[0])[1:]
        options = node.children[-1]
        if kind == "limitsize":
            return [self._unsupported("`.limitsize`", node)]
        pairs = []
        for option in options.children if options else ():
            if option is None:
                continue
            key, value = option.children
            pairs.append((str(key), self._string(value) if value.type == "STRING" else str(value)))
        return [ast.Directive(kind, str(name), tuple(pairs), self._span(name)) for name in node.children[1:-1]]

    def _type_decl(self, node: Any) -> ast.Item:
        keyword, name, definition = node.children
        span = self._span(name)
        if definition is None:  # Souffle's old forms
            return ast.TypeDeclaration(str(name), "number" if keyword == ".number_type" else "symbol", True, span)
        kind = str(definition.data)
        if kind in ("subtype", "alias") and len(definition.children) == 2:
            return ast.TypeDeclaration(str(name), _type_name(definition.children), kind == "subtype", span)
        feature = {"alias": "union type", "record_type": "record type", "sum_type": "algebraic data type"}[kind]
        return self._unsupported(f"{feature} `{name}`", node, str(name))

    # Rules

    def _rule(self, node: Any) -> ast.Item:
        heads, *fold, body = node.children if _data(node) == "rule" else (*node.children, None)
        start, end = self._bounds(node)
        if len(heads.children) == 1 and _data(heads.children[0]) == "comparison":
            left, op, right = heads.children[0].children
            if body is not None and op == "<=" and _data(left) == "call" and _data(right) == "call":
                return self._unsupported("subsumption (`<=` between heads)", node)
        read: list[ast.Head] = []
        for child in heads.children:
            head = self._head(child, fact=body is None)
            if isinstance(head, ast.Unsupported):
                return self._unsupported(head.feature, node)
            read.append(head)
        literals = self._body(body) if body is not None else ()
        if fold and fold[0] is not None:
            literals = (self._folded(fold[0], literals),)
        return ast.Rule(tuple(read), literals, self.source.span(start, end))

    def _folded(self, token: Any, body: tuple[ast.Literal, ...]) -> ast.Comparison:
        """`agg<<s = sum(v)>> body` as the comparison `s = sum v : { body }`."""
        result, op, operand = [*re.findall(r"[A-Za-z0-9_?]+", token), ""][1:4]
        span = self._span(token)
        if AGGREGATES[op].by_counts:
            raise self._refuse(
                f"`{op}` in `agg<<...>>`",
                token,
                why="this form has no place for its fraction",
                remedy=f"write `{result} = {op}(0.5) {operand or 'x'} : {{ ... }}`",
            )
        if bool(AGGREGATES[op].operand) != bool(operand):
            what = f"`{op}` takes no operand" if operand else f"`{op}` takes an operand"
            raise self._refuse(
                what,
                token,
                why="count counts rows, the others fold a value of each",
                remedy="write `count()`, and the others as in `sum(x)`",
            )
        term = ast.Variable(operand, span) if operand else None
        return ast.Comparison("=", ast.Variable(result, span), ast.Aggregate(op, term, body, span), span)

    def _head(self, node: Any, *, fact: bool) -> ast.Head | ast.Unsupported:
        """An atom, or `name[keys] = value`."""
        if _data(node) == "comparison":
            left, op, right = node.children
            if _data(left) == "bracket" and left.children[0] is not None and op == "=":
                name, keys = left.children
                return ast.Assignment(str(name), self._args(keys), self._term(right), self._span(node))
        elif _data(node) == "call":
            return self._atom(node)
        if fact and (other := foreign(self.source, self._bounds(node)[0])) is not None:
            self.findings.append(other)
            raise _Refused
        what = f"a {'fact' if fact else 'head'} must be an atom such as `p(x, y)`, not `{self._text(node)}`"
        why = "it names a relation, and gives each of its columns a term"
        remedy = "a rule is written `head :- body.`, and a fact `head.`; without columns an atom is `p()`"
        raise self._refuse(what, node, why=why, remedy=remedy)

    def _body(self, disj: Any) -> tuple[ast.Literal, ...]:
        alternatives = [tuple(self._conj(conj)) for conj in disj.children]
        if len(alternatives) == 1:
            return alternatives[0]
        return (ast.Disjunction(tuple(alternatives), self._span(disj)),)

    def _conj(self, conj: Any) -> list[ast.Literal]:
        literals: list[ast.Literal] = []
        for child in conj.children:
            literals += self._literal(child)
        return literals

    def _literal(self, node: Any) -> list[ast.Literal]:
        """The conditions that a node writes: several only for a parenthesised conjunction."""
        kind = _data(node)
        span = self._span(node)
        if kind == "comparison":
            left, op, right = node.children
            return [ast.Comparison(str(op), self._term(left), self._term(right), span)]
        if kind == "negation":
            inner = self._literal(node.children[0])
            if len(inner) == 1:
                return [ast.Negation(inner[0], span)]
            return [ast.Negation(ast.Disjunction((tuple(inner),), self._span(node.children[0])), span)]
        if kind == "paren":
            return list(self._body(node.children[0]))
        if kind == "call":
            name, args = node.children
            given = len(args.children) if args is not None else 0
            if str(name) in CONSTRAINTS and given == len(CONSTRAINTS[str(name)].parameters):
                terms = [self._term(arg) for arg in args.children]
                return [ast.Comparison(str(name), terms[0], terms[-1], span)]
            return [self._atom(node)]
        if kind == "NAME" and node in ("true", "false"):
            one = ast.Constant(1, "number", span)
            return [ast.Comparison("=" if node == "true" else "!=", one, one, span)]
        raise self._term_refused(node)

    def _term_refused(self, node: Any) -> _Refused:
        return self._refuse(
            f"`{self._text(node)}` is a term, not a condition",
            node,
            why="a body is made of atoms and comparisons",
            remedy="compare it with something, or use it as an argument of an atom",
        )

    def _atom(self, node: Any) -> ast.Atom | ast.Unsupported:
        name, args = node.children
        if name.type == "DOTTED_CALL":
            return self._unsupported(f"component relation `{name}`", node)
        if name.type != "NAME":
            raise self._term_refused(node)
        return ast.Atom(str(name), self._args(args), self._span(node))

    # Terms

    def _args(self, args: Any) -> tuple[ast.Term, ...]:
        return tuple(self._term(arg) for arg in args.children) if args is not None else ()

    def _term(self, node: Any) -> ast.Term:
        kind = _data(node)
        if kind == "NAME":
            if node == "_":
                return ast.Wildcard(self._span(node))
            if node == "nil":
                return self._unsupported("record `nil`", node)
            if node in ("true", "false"):
                return ast.Constant(node == "true", "bool", self._span(node))
            if node == "null":
                return ast.Constant(None, "", self._span(node))
            return ast.Variable(str(node), self._span(node))
        if kind in ("NUMBER", "UNSIGNED", "FLOAT", "STRING", *_TYPED):
            return self._constant(node)
        if kind in ("chain", "prefixed"):
            return _Chain(self, node).read()
        if kind == "call":
            return self._call(node)
        if kind == "paren":
            alternatives = node.children[0].children
            if len(alternatives) == 1 and len(alternatives[0].children) == 1:
                return self._term(alternatives[0].children[0])
        if kind == "aggregate":
            return self._aggregate(node)
        if kind == "bracket" and node.children[0] is not None:
            return ast.Lookup(str(node.children[0]), self._args(node.children[1]), self._span(node))
        if kind == "BRANCH" and (self.parameters or node[1:].lstrip()[:1].islower()):
            return self._parameter(node)
        if kind in ("paren", "comparison", "negation"):
            raise self._refuse(
                f"`{self._text(node)}` is a condition, and a value is expected here",
                node,
                why="a condition holds or does not, and a term is a value",
                remedy="conditions stand on their own in a body, separated by `,`",
            )
        return self._unsupported(self._feature(kind, node), node)

    def _parameter(self, token: Any) -> ast.Parameter:
        """`$name`. Of Souffle's constructors, which are written so in rules, names begin with a capital as a rule."""
        name = token[1:].strip()
        if not self.parameters:
            raise self._refuse(
                f"the parameter `${name}` stands outside of a query",
                token,
                why="a parameter gets its value when a query is asked, and a rule holds for all values",
                remedy="use a variable or a constant here, and ask the rule's head: "
                f'`db.query("p(${name}, x)", {name}=...)`',
            )
        if "." in name:
            raise self._refuse(
                f"`${name}` is no parameter",
                token,
                why="a parameter is `$` and one name, by which its value is given",
                remedy=f"write `${name.replace('.', '_')}`",
            )
        if name in QUERY_OPTIONS:
            raise self._refuse(
                f"a parameter cannot be named `${name}`",
                token,
                why=f"`{name}=` is an option of queries",
                remedy=f"give it another name, such as `${name}_`",
            )
        return ast.Parameter(name, self._span(token))

    def _feature(self, kind: str, node: Any) -> str:
        if kind == "ADDRESS":
            return "IP address constant"
        if kind == "COUNTER":
            return "counter `$`"
        if kind == "BRANCH":
            return f"algebraic data type constructor `{''.join(node.split())}`"
        if kind == "USER_AGGREGATE":
            name = re.match(r"@@[A-Za-z0-9_?]+", node)
            return f"user-defined aggregate `{name[0] if name else node}`"
        return "record constructor"

    def _aggregate(self, node: Any) -> ast.Aggregate:
        word, *operand, body = node.children
        (inner,) = body.children
        op = self._with_fraction(word) if AGGREGATES[word_of(word).strip()].by_counts else word
        literals = self._body(inner) if _data(inner) == "disj" else tuple(self._literal(inner))
        return ast.Aggregate(str(op), self._term(operand[0]) if operand else None, literals, self._span(node))

    def _with_fraction(self, token: Any) -> str:
        """The name of a quantile, with its parameter."""
        word, _, rest = token.partition("(")
        name, given = word.strip(), rest.removesuffix(")").strip()
        if not (op := with_fraction(name, given)):
            raise self._refuse(
                f"`{given}` is no fraction from 0 to 1" if given else f"`{name}` without a fraction",
                token,
                why=f"a quantile is at a fraction of the bindings, written with {FRACTION_DIGITS} digits at most",
                remedy=f"write `{name}(0.5)` for the middle, or `{name}(0.95)`",
            )
        return op

    def _call(self, node: Any) -> ast.Term:
        token, args = node.children
        name = str(token)
        if token.type == "BRANCH_CALL":
            return self._unsupported(f"algebraic data type constructor `{''.join(name.split())}`", node)
        if token.type == "USER_FUNCTOR":
            return self._unsupported(f"user-defined functor `{name}`", node)
        if name in UNSUPPORTED_FUNCTORS:
            return self._unsupported(UNSUPPORTED_FUNCTORS[name], node)
        return ast.Functor(name, self._args(args), self._span(node))

    def _constant(self, token: Any, sign: str = "", span: Span | None = None) -> ast.Constant:
        span = span or self._span(token)
        if token.type == "STRING":
            return ast.Constant(self._string(token), "symbol", span)
        if token.type in _TYPED:
            return self._typed(token, sign, span)
        if token.type == "FLOAT":
            value = float(sign + token)
            if value in (float("inf"), float("-inf")):
                raise self._refuse(
                    f"the float constant `{token}` is out of range",
                    token,
                    why="no 64-bit float is as large",
                    remedy="the largest float is about 1.8e308",
                )
            return ast.Constant(value, "float", span)
        if len(token) > _MAX_DIGITS:
            raise self._refuse(
                f"an integer constant of {len(token)} digits is out of range",
                token,
                why="it is longer than any integer of 64 bits",
                remedy="integers have 64 bits",
            )
        kind = "unsigned" if token.type == "UNSIGNED" else "number"
        digits = token.removesuffix("u") if kind == "unsigned" else str(token)
        base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
        return ast.Constant(int(sign + digits, base), kind, span)

    def _typed(self, token: Any, sign: str, span: Span) -> ast.Constant:
        """A constant such as `1.50d`, `@2024-05-31` or `@1h30m`."""
        text = sign + _TYPED[token.type][1](str(token))
        kind = _TYPED[token.type][0]
        if kind == "decimal":
            digits, _, behind = text.lstrip("-").partition(".")
            kind = f"decimal({max(1, len(digits.lstrip('0') + behind))},{len(behind)})"
        try:
            made = type_of(kind)
            return ast.Constant(made.constant_of(text), kind, span)
        except (Misfit, ValueError) as error:
            # There is no type for a decimal that is too long.
            reason = error.fault.reason if isinstance(error, Misfit) else f"has more than {DIGITS} digits"
            why = error.fault.why if isinstance(error, Misfit) else f"a decimal has up to {DIGITS} digits"
            raise self._refuse(f"the constant `{token}` {reason}", token, why=why, remedy="correct it") from None

    def _string(self, token: Any) -> str:
        """The text of a string literal, its escapes resolved."""
        try:
            return symbol_value(str(token))
        except UnknownEscapeError as error:
            raise self._refuse(
                f"unknown escape `{error}` in a string", token, why="a backslash begins an escape", remedy=ESCAPES_SHOWN
            ) from None


def _type_name(parts: Any) -> str:
    """A type as it is written, without spaces: its name and parameters."""
    name, parameters = parts
    return str(name) + "".join(str(parameters or "").split())


def _second_word(text: str) -> str:
    """The name in `.keyword name ...`."""
    match = re.match(r"\S+\s+([A-Za-z0-9_?]+)", text)
    return match[1] if match else ""


def _data(node: Any) -> str:
    """The rule of a tree, or the type of a token."""
    return str(node.data) if hasattr(node, "data") else str(node.type)


class _Chain:
    """Resolves a flat chain of operands and operators by precedence climbing."""

    def __init__(self, reader: Reader, node: Any) -> None:
        self.reader = reader
        self.parts: list[Any] = []
        for child in node.children if _data(node) == "chain" else [node]:
            self.parts += child.children if _data(child) == "prefixed" else [child]
        self.at = 0

    def read(self) -> ast.Term:
        """The term that the whole chain writes."""
        return self._binary(0)[0]

    def _binary(self, least: int) -> tuple[ast.Term, int, int]:
        """A term of operators of level `least` and above, with its bounds."""
        left, start, end = self._prefix()
        while self.at < len(self.parts):
            op = str(self.parts[self.at])
            level = BINARY_LEVEL[op]
            if level < least:
                break
            self.at += 1
            right, _, end = self._binary(level if level == POWER_LEVEL else level + 1)
            left = ast.Functor(op, (left, right), self.reader.source.span(start, end))
        return left, start, end

    def _prefix(self) -> tuple[ast.Term, int, int]:
        part = self.parts[self.at]
        self.at += 1
        start, end = self.reader._bounds(part)
        if _data(part) not in ("MINUS", "PREFIX_WORD"):
            return self.reader._term(part), start, end
        following = self.parts[self.at]
        power_follows = self.at + 1 < len(self.parts) and str(self.parts[self.at + 1]) == "^"
        if part == "-" and _data(following) in ("NUMBER", "UNSIGNED", "FLOAT", "DECIMAL") and not power_follows:
            self.at += 1
            end = self.reader._bounds(following)[1]
            return self.reader._constant(following, "-", self.reader.source.span(start, end)), start, end
        operand, _, end = self._binary(UNARY_LEVEL + 1)
        return ast.Functor(_PREFIX[str(part)], (operand,), self.reader.source.span(start, end)), start, end
