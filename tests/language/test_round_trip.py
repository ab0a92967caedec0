"""parse(to_text(p)) == p, for programs made by a generator and for hand-picked corners of precedence and lexing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.language import ast, parse, to_text
from lftj.language.functors import FUNCTORS, RESERVED, RESERVED_VARIABLES
from tests.conftest import examples

_IDENT = st.from_regex(r"[A-Za-z_?][A-Za-z0-9_?]{0,4}", fullmatch=True)
variable_names = _IDENT.filter(lambda name: name not in RESERVED_VARIABLES)
relation_names = _IDENT.filter(lambda name: name not in RESERVED)
integers = st.one_of(st.integers(-9, 9), st.integers(-(2**70), 2**70))
floats = st.floats(allow_nan=False, allow_infinity=False)

UNSUPPORTED_TERMS = {
    "[x, y]": "record constructor",
    "$Cons(x, y)": "algebraic data type constructor `$Cons`",
    "@f(x)": "user-defined functor `@f`",
    "autoinc()": "counter `autoinc()`",
    "range(1, 5)": "multi-valued functor `range`",
    "nil": "record `nil`",
}


@st.composite
def constants(draw: st.DrawFn) -> ast.Constant:
    kind = draw(st.sampled_from(["number", "unsigned", "float", "symbol"]))
    if kind == "symbol":
        return ast.Constant(draw(st.text(max_size=8)), kind)
    return ast.Constant(draw(floats if kind == "float" else integers), kind)


leaves = st.one_of(
    st.builds(ast.Variable, variable_names),
    st.just(ast.Wildcard()),
    constants(),
    st.sampled_from(sorted(UNSUPPORTED_TERMS)).map(lambda text: ast.Unsupported(UNSUPPORTED_TERMS[text], text)),
)


def _functors(children: st.SearchStrategy[ast.Term]) -> st.SearchStrategy[ast.Term]:
    @st.composite
    def build(draw: st.DrawFn) -> ast.Term:
        signature = FUNCTORS[draw(st.sampled_from(sorted(FUNCTORS)))]
        count = draw(st.integers(1, 3)) if signature.variadic else len(signature.parameters)
        return ast.Functor(signature.name, tuple(draw(children) for _ in range(count)))

    return build()


def _compound_terms(children: st.SearchStrategy[ast.Term]) -> st.SearchStrategy[ast.Term]:
    some = st.lists(children, max_size=2).map(tuple)
    literal = st.builds(ast.Atom, relation_names, some) | st.builds(ast.Comparison, st.just("<"), children, children)
    body = st.lists(literal, min_size=1, max_size=2).map(tuple)
    bodies = body | st.tuples(body, body).map(lambda two: (ast.Disjunction(two),))
    folds = st.builds(
        ast.Aggregate, st.sampled_from(["sum", "min", "max", "mean", "cat", "quantile_disc(0.25)"]), children, bodies
    )
    counts = st.builds(ast.Aggregate, st.just("count"), st.none(), bodies)
    lookups = st.builds(ast.Lookup, relation_names, some)
    return st.one_of(_functors(children), _functors(children), lookups, folds, counts)


terms = st.recursive(leaves, _compound_terms, max_leaves=8)
atoms = st.builds(ast.Atom, relation_names, st.lists(terms, max_size=3).map(tuple))
comparisons = st.builds(
    ast.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "contains", "match"]), terms, terms
)


def _compound(children: st.SearchStrategy[ast.Literal]) -> st.SearchStrategy[ast.Literal]:
    conjunctions = st.lists(children, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ast.Negation, children),
        st.lists(children, min_size=2, max_size=3).map(lambda some: ast.Negation(ast.Disjunction((tuple(some),)))),
        st.builds(ast.Disjunction, st.lists(conjunctions, min_size=2, max_size=3).map(tuple)),
    )


literals = st.recursive(st.one_of(atoms, comparisons), _compound, max_leaves=6)
assignments = st.builds(ast.Assignment, relation_names, st.lists(terms, max_size=2).map(tuple), terms)
rules = st.builds(
    ast.Rule,
    st.lists(st.one_of(atoms, atoms, assignments), min_size=1, max_size=2).map(tuple),
    st.lists(literals, max_size=3).map(tuple),
)
attributes = st.builds(ast.Attribute, _IDENT, _IDENT)
declarations = st.builds(
    ast.Declaration,
    relation_names,
    st.lists(attributes, max_size=3).map(tuple),
    st.lists(st.sampled_from(["brie", "inline", "eqrel", "btree_delete", "no_magic"]), max_size=2).map(tuple),
)
functional = st.builds(
    lambda name, some: ast.Declaration(name, tuple(some), functional=True),
    relation_names,
    st.lists(attributes, min_size=1, max_size=3),
)
types = st.builds(ast.TypeDeclaration, _IDENT, _IDENT, st.booleans())
directives = st.builds(
    ast.Directive,
    st.sampled_from(["input", "output", "printsize"]),
    relation_names,
    st.lists(st.tuples(_IDENT, st.text(max_size=5)), max_size=2).map(tuple),
)
unsupported_items = st.sampled_from(
    [
        ast.Unsupported("component `C` (`.comp`)", ".comp C<T> : D { p(x) :- q(x). }"),
        ast.Unsupported("`.pragma`", '.pragma "a" "b"'),
        ast.Unsupported("query plan (`.plan`)", ".plan 0:(1,2)"),
        ast.Unsupported("union type `A`", ".type A = B | C", ("A",)),
        ast.Unsupported("subsumption (`<=` between heads)", "p(x) <= p(y) :- x < y."),
    ]
)
items = st.one_of(rules, rules, declarations, functional, types, directives, unsupported_items)
programs = st.lists(items, max_size=5).map(lambda made: ast.Program(tuple(made)))


@examples(300)
@given(programs)
def test_text_of_a_program_parses_to_the_same_program(program: ast.Program) -> None:
    assert parse(to_text(program)) == program


@examples(200)
@given(terms)
def test_terms_survive(term: ast.Term) -> None:
    program = ast.Program((ast.Rule((ast.Atom("p", (term,)),), ()),))
    assert parse(to_text(program)) == program


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("p(1 + 2 * 3).", "p(1 + 2 * 3)."),
        ("p((1 + 2) * 3).", "p((1 + 2) * 3)."),
        ("p(1 - (2 - 3)).", "p(1 - (2 - 3))."),
        ("p((1 - 2) - 3).", "p(1 - 2 - 3)."),
        ("p(2 ^ 3 ^ 2).", "p(2 ^ 3 ^ 2)."),
        ("p((2 ^ 3) ^ 2).", "p((2 ^ 3) ^ 2)."),
        ("p(-2 ^ 2).", "p(-2 ^ 2)."),
        ("p((-2) ^ 2).", "p((-2) ^ 2)."),
        ("p(-(2)).", "p(-(2))."),
        ("p(- 2).", "p(-2)."),
        ("p(--2).", "p(-(-2))."),
        ("p(2 ^ -x * 3).", "p(2 ^ -x * 3)."),
        ("p(-x * y).", "p(-x * y)."),
        ("p(-(x * y)).", "p(-(x * y))."),
        ("p(bnot x band y).", "p(bnot x band y)."),
        ("p(bnot (x band y)).", "p(bnot (x band y))."),
        ("p(lnot lnot x).", "p(lnot lnot x)."),
        ("p(x bor y bxor z band 1 bshl 2 + 3).", "p(x bor y bxor z band 1 bshl 2 + 3)."),
        ("p(x lor y lxor z land w).", "p(x lor y lxor z land w)."),
        ("p((x lor y) land w).", "p((x lor y) land w)."),
        ("p(0x1F, 0b101, 7u, 0xFFu, 1.50, 1e3, 1e300).", "p(31, 5, 7u, 255u, 1.5, 1000.0, 1.0e+300)."),
        (r'p("tab\t quote\" back\\ nul\x00 \u00e9").', r'p("tab\t quote\" back\\ nul\x00 é").'),
        ('p("two\nlines").', 'p("two\\nlines").'),
        ("p( ).", "p()."),
        ("p(_, _x, ?y).", "p(_, _x, ?y)."),
        ("a(x), b(x) :- c(x).", "a(x), b(x) :- c(x)."),
        ("p(x) :- a(x) ; b(x), c(x).", "p(x) :- a(x); b(x), c(x)."),
        ("p(x) :- (a(x) ; b(x)), c(x).", "p(x) :- (a(x); b(x)), c(x)."),
        ("p(x) :- (a(x), b(x)).", "p(x) :- a(x), b(x)."),
        ("p(x) :- ((a(x) ; b(x)) ; c(x)).", "p(x) :- (a(x); b(x)); c(x)."),
        ("p(x) :- !(a(x), b(x)).", "p(x) :- !(a(x), b(x))."),
        ("p[] = s :- agg<<s = sum(v)>> a(v); b(v).", "p[] = s :- s = sum v : { a(v); b(v) }."),
        ("p(agg) :- q(agg), agg < 3.", "p(agg) :- q(agg), agg < 3."),
        ("p(x) :- x=count:a(_).", "p(x) :- x = count : { a(_) }."),
        ("p(x) :- x = sum -y * 2 + max(y, 1) : { a(y) }.", "p(x) :- x = sum (-y * 2 + max(y, 1)) : { a(y) }."),
        ('p(x) :- x = cat "a, ) :" : { a(_) } , b(x).', 'p(x) :- x = cat ("a, ) :") : { a(_) }, b(x).'),
        ("p(x) :- x = sum f[y, 1] : { a(y) }, g[x] = 2.", "p(x) :- x = sum (f[y, 1]) : { a(y) }, g[x] = 2."),
        ("p(x) :- x = max sum(y, z) : { a(y) }.", "p(x) :- x = max (sum(y, z)) : { a(y) }."),
        (".decl p(x:number)->y:float brie", ".decl p(x:number) -> y:float brie"),
        ("p(x) :- !(a(x) ; b(x)).", "p(x) :- !(a(x); b(x))."),
        ("p(x) :- !x = 1, !match(x, x), !!a(x).", "p(x) :- !(x = 1), !match(x, x), !!a(x)."),
        ("p() :- true, false.", "p() :- 1 = 1, 1 != 1."),
        ("p(x) :- (x) = ((1)).", "p(x) :- x = 1."),
        (".decl a, b(x:number)", ".decl a(x:number)\n.decl b(x:number)"),
        (".decl a(x:number) input output", ".decl a(x:number)\n.input a\n.output a"),
        (".decl a(x:number) choice-domain x, (x,  y)", ".decl a(x:number) choice-domain x, (x, y)"),
        (".decl a(x:number)input(1).", ".decl a(x:number)\ninput(1)."),
        (".input a, b(IO=file, n=5)", '.input a(IO="file", n="5")\n.input b(IO="file", n="5")'),
        (".number_type A .symbol_type B .type C", ".type A <: number\n.type B <: symbol\n.type C <: symbol"),
        *[
            (s, s)
            for s in ("p(x) :- q(x), sum = 1, mean = min(sum, max), sum > mean.", "p(count, sum) :- q(sum, count).")
        ],
        ("// note\np(1). /* and\nmore */ p(2). // end", "p(1).\np(2)."),
        ("p(1).q(2).", "p(1).\nq(2)."),
        ("p(x) :- x = 1.", "p(x) :- x = 1."),
        ("", ""),
    ],
)
def test_printing(written: str, printed: str) -> None:
    program = parse(written)
    assert to_text(program) == (printed + "\n" if printed else "")
    assert parse(to_text(program)) == program


@pytest.mark.parametrize(
    ("term", "functor"),
    [("1 + 2 * 3", "+"), ("-x ^ 2", "neg"), ("2 ^ -x * 3", "*"), ("a band b bshl 1", "band"), ("1 - 2 - 3", "-")],
)
def test_precedence_of_the_outermost_operator(term: str, functor: str) -> None:
    rule = parse(f"p({term}).").items[0]
    assert isinstance(rule, ast.Rule)
    outer = rule.heads[0].args[0]
    assert isinstance(outer, ast.Functor)
    assert outer.name == functor


def test_spans_do_not_take_part_in_equality_but_are_exact() -> None:
    program = parse("p(x) :-\n  edge(x, y), y < x + 10.", "f.dl")
    rule = program.items[0]
    assert isinstance(rule, ast.Rule)
    places = [literal.span for literal in rule.body]
    assert [(s.source, s.line, s.column, s.end_line, s.end_column) for s in places] == [
        ("f.dl", 2, 3, 2, 13),
        ("f.dl", 2, 15, 2, 25),
    ]
    assert places[0].line_text == "  edge(x, y), y < x + 10."
    assert program == parse("p(x) :- edge(x, y), y < x + 10.")
