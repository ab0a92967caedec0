"""Small programs in Souffle's language over one set of facts, and what they derive, worked out by hand.

Each entry: a name, rules, and the rows of every relation asked for. The facts:

    e  1->2  1->3  2->3  3->4  4->4      n  1 2 3 4 5 9        z  nothing          flag  one row
    m  a 1 10 · a 2 10 · a 3 -4 · b 1 7                        s  "b" "a" "ab" ""
    w  a 0.1 · a 0.2 · a 0.3 · b 1e300 · b 1.0 · b -1e300      u  1 2^63 · 2 5 · 3 0
    price[a] = 3   price[b] = 5          stock[a] = 2   stock[c] = 1
"""

from __future__ import annotations

from typing import Any

DECLARED = """
.decl e(x:number, y:number)
.decl n(x:number)
.decl z(x:number)
.decl m(g:symbol, i:number, v:number)
.decl s(t:symbol)
.decl w(g:symbol, f:float)
.decl u(k:number, c:unsigned)
.decl flag()
.decl price(i:symbol) -> c:number
.decl stock(i:symbol) -> q:number
"""
FACTS = """
e(1,2). e(1,3). e(2,3). e(3,4). e(4,4).
n(1). n(2). n(3). n(4). n(5). n(9).
m("a",1,10). m("a",2,10). m("a",3,-4). m("b",1,7).
s("b"). s("a"). s("ab"). s("").
w("a",0.1). w("a",0.2). w("a",0.3). w("b",1e300). w("b",1.0). w("b",-1e300).
u(1,9223372036854775808). u(2,5). u(3,0).
flag().
price["a"] = 3. price["b"] = 5. stock["a"] = 2. stock["c"] = 1.
"""


def singles(*values: Any) -> set[tuple[Any, ...]]:
    return {(value,) for value in values}


PROGRAMS: dict[str, tuple[str, dict[str, set[tuple[Any, ...]]]]] = {
    # Negation
    "difference": ("p(x) :- n(x), !e(x, 4).", {"p": singles(1, 2, 5, 9)}),
    "wildcard in a negated atom": ("p(x) :- n(x), !e(x, _).", {"p": singles(5, 9)}),
    "wildcard in front": ("p(x) :- n(x), !e(_, x).", {"p": singles(1, 5, 9)}),
    "only wildcards": ("p(x) :- n(x), !z(_).\nq(x) :- n(x), !e(_, _).", {"p": singles(1, 2, 3, 4, 5, 9), "q": set()}),
    "constant in a negated atom": ("p(x) :- n(x), !e(1, x).", {"p": singles(1, 4, 5, 9)}),
    "repeated variable in a negated atom": ("p(x) :- e(_, x), !e(x, x).", {"p": singles(2, 3)}),
    "expression in a negated atom": ("p(x) :- n(x), !n(x + 1).", {"p": singles(5, 9)}),
    "nullary": (
        "p(x) :- n(x), x > 4, !flag().\nq() :- !flag().\nr() :- flag(), !z(1).",
        {"p": set(), "q": set(), "r": {()}},
    ),
    "open wedges": ("p(x, y, t) :- e(x, y), e(y, t), !e(x, t).", {"p": {(1, 3, 4), (2, 3, 4)}}),
    "several negations": ("p(x) :- n(x), !e(x, _), !z(x), !e(_, x).", {"p": singles(5, 9)}),
    "negated atom written first": ("p(x) :- !e(x, _), n(x).", {"p": singles(5, 9)}),
    "negation of a derived relation": (
        "q(x) :- e(x, _).\nq(y) :- e(_, y).\np(x) :- n(x), !q(x).",
        {"p": singles(5, 9)},
    ),
    "negation over three strata": (
        "q(x) :- n(x), !e(x, _).\nr(x) :- n(x), !q(x).\np(x) :- n(x), !r(x).",
        {"q": singles(5, 9), "r": singles(1, 2, 3, 4), "p": singles(5, 9)},
    ),
    "twice negated": ("p(x) :- n(x), !!e(x, 4).", {"p": singles(3, 4)}),
    "negated comparison": ("p(x) :- n(x), !(x < 4).", {"p": singles(4, 5, 9)}),
    "negated contains": ('p(t) :- s(t), !contains("a", t).', {"p": singles("b", "")}),
    "negated conjunction, all bound": ("p(x, y) :- e(x, y), !(e(y, 4), n(x)).", {"p": {(1, 2)}}),
    "negated conjunction with a comparison": ("p(x) :- n(x), !(e(x, 3), x > 1).", {"p": singles(1, 3, 4, 5, 9)}),
    "negated conjunction with a variable of its own": ("p(x) :- n(x), !(e(x, y), e(y, 4)).", {"p": singles(5, 9)}),
    "... which a comparison ties": ("p(x) :- n(x), !(e(x, y), y > x + 1).", {"p": singles(2, 3, 4, 5, 9)}),
    "negated disjunction": ("p(x) :- n(x), !(e(x, 3) ; e(x, 4)).", {"p": singles(5, 9)}),
    "negation in a disjunction": ("p(x) :- n(x), (!e(x, _) ; x = 1).", {"p": singles(1, 5, 9)}),
    "negation beside an expression": ("p(y) :- n(x), y = x * 2, !n(y).", {"p": singles(6, 8, 10, 18)}),
    "two rules, one negating": ("p(x) :- z(x).\np(x) :- n(x), !e(x, _).", {"p": singles(5, 9)}),
    # Count
    "count of all": ("p(c) :- c = count : { e(_, _) }.", {"p": singles(5)}),
    "count of nothing": ("p(c) :- c = count : { z(_) }.", {"p": singles(0)}),
    "count without braces": ("p(c) :- c = count : e(_, _).", {"p": singles(5)}),
    "count per group": (
        "p(x, c) :- n(x), c = count : { e(x, _) }.",
        {"p": {(1, 2), (2, 1), (3, 1), (4, 1), (5, 0), (9, 0)}},
    ),
    "count of bindings, not of values": ("p(c) :- c = count : { m(g, _, 10) , s(g) }.", {"p": singles(2)}),
    "count over a join": ("p(c) :- c = count : { e(x, y), e(y, t) }.", {"p": singles(5)}),
    "count with a filter": ("p(c) :- c = count : { n(x), x > 2, x != 4 }.", {"p": singles(3)}),
    "count with a negation inside": ("p(c) :- c = count : { n(x), !e(x, _) }.", {"p": singles(2)}),
    "count of a constant atom": (
        "p(c) :- c = count : { e(1, 2) }.\nq(c) :- c = count : { e(2, 2) }.",
        {"p": singles(1), "q": singles(0)},
    ),
    "count compared": ("p(x) :- n(x), count : { e(x, _) } > 1.", {"p": singles(1)}),
    "count as a test": ("p(x) :- n(x), 0 = count : { e(x, _) }.", {"p": singles(5, 9)}),
    "count in an expression": ("p(x, 2 * c + 1) :- n(x), c = count : { e(_, x) }, c > 1.", {"p": {(3, 5), (4, 5)}}),
    "a group variable that only a comparison holds": (
        "p(x, c) :- n(x), c = count : { e(_, y), y < x }.",
        {"p": {(1, 0), (2, 0), (3, 1), (4, 3), (5, 5), (9, 5)}},
    ),
    "the same local name in two aggregates": (
        "p(a, b) :- a = count : { e(1, y) }, b = count : { e(y, 4) }.",
        {"p": {(2, 2)}},
    ),
    "repeated variable in braces": ("p(c) :- c = count : { e(x, x) }.", {"p": singles(1)}),
    "disjunction in braces": ("p(c) :- c = count : { e(x, 3) ; e(x, 4) }.", {"p": singles(4)}),
    # Sum
    "sum": ("p(t) :- t = sum v : { m(_, _, v) }.", {"p": singles(23)}),
    "sum adds every row": ('p(t) :- t = sum v : { m("a", _, v) }.', {"p": singles(16)}),
    "sum of distinct values through a relation": (
        "d(g, v) :- m(g, _, v).\np(g, t) :- s(g), t = sum v : { d(g, v) }.",
        {"p": {("a", 6), ("b", 7), ("ab", 0), ("", 0)}},
    ),
    "sum of nothing": ("p(t) :- t = sum x : { z(x) }.", {"p": singles(0)}),
    "sum of an expression": ("p(t) :- t = sum x * y : { e(x, y) }.", {"p": singles(2 + 3 + 6 + 12 + 16)}),
    "sum of a constant": ("p(t) :- t = sum 2 : { e(_, _) }.", {"p": singles(10)}),
    "sum over a join": (
        "p(x, t) :- n(x), t = sum y : { e(x, k), e(k, y) }, t > 0.",
        {"p": {(1, 7), (2, 4), (3, 4), (4, 4)}},
    ),
    "sum of unsigned": ("p(t) :- t = sum c : { u(_, c) }.", {"p": singles(2**63 + 5)}),
    "sum of floats": (
        "g(x) :- w(x, _).\np(x, t) :- g(x), t = sum f : { w(x, f) }.",
        {"p": {("a", 0.6), ("b", 1.0)}},
    ),
    "sum of an outer variable": ("p(x, t) :- n(x), x < 3, t = sum x : { e(x, _) }.", {"p": {(1, 2), (2, 2)}}),
    # Min and max
    "min and max": ("p(a, b) :- a = min v : { m(_, _, v) }, b = max v : { m(_, _, v) }.", {"p": {(-4, 10)}}),
    "min of nothing": ("p(a) :- a = min x : { z(x) }.\nq(a) :- a = max x : { z(x) }.", {"p": set(), "q": set()}),
    "max per group": ("p(x, b) :- n(x), b = max y : { e(x, y) }.", {"p": {(1, 3), (2, 3), (3, 4), (4, 4)}}),
    "max of an expression": ("p(b) :- b = max y - x : { e(x, y) }.", {"p": singles(2)}),
    "max over a join with a filter": ("p(x, b) :- n(x), b = max t : { e(x, y), e(y, t), t != 4 }.", {"p": {(1, 3)}}),
    "the row that holds the max": (
        "p(g, i) :- m(g, i, v), v = max t : { m(g, _, t) }.",
        {"p": {("a", 1), ("a", 2), ("b", 1)}},
    ),
    "min of symbols": ("p(a, b) :- a = min t : { s(t) }, b = max t : { s(t) }.", {"p": {("", "b")}}),
    "min of floats": ('p(a, b) :- a = min f : { w("b", f) }, b = max f : { w(_, f) }.', {"p": {(-1e300, 1e300)}}),
    "max of unsigned": ("p(b) :- b = max c : { u(_, c) }.", {"p": singles(2**63)}),
    "min compared with a variable": ("p(x) :- n(x), x > min y : { e(_, y) }.", {"p": singles(3, 4, 5, 9)}),
    "min functor beside min aggregate": (
        "p(t) :- n(x), t = min(x, 3), t < max y : { e(_, y) }, x > 4.",
        {"p": singles(3)},
    ),
    # Mean
    "mean of numbers": ('p(a) :- a = mean v : { m("a", _, v) }.', {"p": singles(16 / 3)}),
    "mean of floats": ('p(a) :- a = mean f : { w("b", f) }.', {"p": singles(1 / 3)}),
    "mean of nothing": ("p(a) :- a = mean x : { z(x) }.", {"p": set()}),
    # Concatenation, in key order
    "cat": (
        '.decl line(i:number) -> t:symbol\nline[10] = "b". line[2] = "c". line[-1] = "x".\n'
        "p(c) :- c = cat t : { line(i, t) }.\nq(c) :- c = cat t : { line(i, t), n(i) }.",
        {"p": singles("xcb"), "q": singles("c")},
    ),
    "cat per group": (
        '.decl line(g:number, i:number) -> t:symbol\nline[1, 3] = "b". line[1, 2] = "c". line[4, 0] = "x".\n'
        "p(x, c) :- n(x), c = cat t : { line(x, i, t) }.",
        {"p": {(1, "cb"), (4, "x")}},
    ),
    # Nested, stacked
    "aggregate of an aggregate's relation": (
        "d(x, c) :- n(x), c = count : { e(x, _) }.\np(b) :- b = max c : { d(_, c) }.\nq(t) :- t = sum c : { d(_, c) }.",
        {"p": singles(2), "q": singles(5)},
    ),
    "nested": ("p(b) :- b = max c : { n(x), c = count : { e(x, _) } }.", {"p": singles(2)}),
    "nested, both grouped": (
        "p(x, t) :- n(x), t = sum c : { e(x, y), c = count : { e(y, _) } }.",
        {"p": {(1, 2), (2, 1), (3, 1), (4, 1), (5, 0), (9, 0)}},
    ),
    "negation of an aggregate's relation": (
        "d(x) :- n(x), 1 < count : { e(_, x) }.\np(x) :- n(x), !d(x).",
        {"d": singles(3, 4), "p": singles(1, 2, 5, 9)},
    ),
    "aggregate over a negation's relation": (
        "d(x) :- n(x), !e(x, _).\np(t) :- t = sum x : { d(x) }.",
        {"p": singles(14)},
    ),
    "aggregate in one alternative": ("p(c) :- (c = count : { z(_) } ; c = count : { s(_) }).", {"p": singles(0, 4)}),
    # Functional predicates
    "lookup": ("p(t, price[t] * 2) :- s(t).", {"p": {("a", 6), ("b", 10)}}),
    "lookups of two": ("p(t, v) :- s(t), v = price[t] * stock[t].", {"p": {("a", 6)}}),
    "lookup that binds its key": ("p(t) :- price[t] > 3.", {"p": singles("b")}),
    "lookup equated": ("p(t, c) :- price[t] = c.", {"p": {("a", 3), ("b", 5)}}),
    "lookup in braces": ("p(v) :- v = sum price[t] * q : { stock(t, q) }.", {"p": singles(6)}),
    "functional atom in its other form": ("p(t) :- price(t, 5).", {"p": singles("b")}),
    "negated functional atom": ("p(t) :- s(t), !price(t, _).", {"p": singles("ab", "")}),
    "functional head": (
        ".decl total(t:symbol) -> v:number\ntotal[t] = price[t] + stock[t] :- s(t).\np(total[t]) :- s(t).",
        {"total": {("a", 5)}, "p": singles(5)},
    ),
    "two rules that agree": (
        ".decl f(x:number) -> y:number\nf[x] = 1 :- e(x, _).\nf[x] = 1 :- e(_, x).",
        {"f": {(1, 1), (2, 1), (3, 1), (4, 1)}},
    ),
    "aggregate as head": (
        ".decl deg(x:number) -> c:number\ndeg[x] = count : { e(x, _) }.",
        {"deg": {(1, 2), (2, 1), (3, 1), (4, 1)}},
    ),
    "sum as head": (
        ".decl by(g:symbol) -> t:number\nby[g] = sum v : { m(g, _, v) }.\np(g) :- by[g] > 10.",
        {"by": {("a", 16), ("b", 7)}, "p": singles("a")},
    ),
    "max as head": (
        ".decl top(g:symbol) -> v:number\ntop[g] = max v : { m(g, _, v) }.",
        {"top": {("a", 10), ("b", 7)}},
    ),
    "head without keys": (
        ".decl all() -> c:number\nall[] = c :- c = count : { e(_, _) }.\np(all[]) :- flag().",
        {"all": singles(5), "p": singles(5)},
    ),
    "lookup in the head over alternatives": ("p(price[i]) :- stock[i] = _ ; m(i, _, _).", {"p": singles(3, 5)}),
    "aggregate in the head over alternatives": (
        "p(x, count : { e(x, _) }) :- n(x), x < 2 ; e(_, x), !(z(_), n(x)).",
        {"p": {(1, 2), (2, 1), (3, 1), (4, 1)}},
    ),
    # Projection and existentials
    "projection": ("p(x) :- e(x, _).\nq(y) :- e(_, y), e(y, _).", {"p": singles(1, 2, 3, 4), "q": singles(2, 3, 4)}),
    "semi-join": ("p(x) :- n(x), e(x, y), e(y, t), s(_).", {"p": singles(1, 2, 3, 4)}),
    "is there any": ('p("yes") :- e(x, x).\nq("yes") :- e(x, y), e(y, x), x < y.', {"p": singles("yes"), "q": set()}),
    # Functors
    "integer division truncates": ("p(a, b) :- a = -7 / 2, b = -7 % 2.", {"p": {(-3, -1)}}),
    "arithmetic wraps": ("p(a) :- a = 9223372036854775807 + 1.", {"p": singles(-(2**63))}),
    "bits": ("p(6 band 3, 6 bor 3, 6 bxor 3, bnot 6) :- flag().", {"p": {(2, 7, 5, -7)}}),
    "texts": ('p(cat(t, "!"), strlen(t), substr(t, 0, 1)) :- s(t), strlen(t) > 1.', {"p": {("ab!", 2, "a")}}),
    "conversions": ('p(to_number("12") + 1, to_string(x), itof(x)) :- n(x), x > 5.', {"p": {(13, "9", 9.0)}}),
    "computed key joins": ("p(x, y) :- n(x), y = x + 1, e(x, y).", {"p": {(1, 2), (2, 3), (3, 4)}}),
}

# Rules that must be refused when they are given, and a word of the message.
REFUSED = {
    "negative cycle": ("p(x) :- n(x), !q(x).\nq(x) :- n(x), !p(x).", "p"),
    "negation of itself": ("p(x) :- n(x), !p(x).", "p"),
    "aggregate of itself": ("p(c) :- c = count : { p(_) }.", "p"),
    "ungrounded in a negated atom": ("p(x) :- n(x), !e(x, y).", "y"),
    "head variable only in a negated atom": ("p(y) :- n(x), !e(x, y).", "y"),
    "head variable only in braces": ("p(x, c) :- c = count : { e(x, _) }.", "x"),
    "sum of a symbol": ("p(t) :- t = sum x : { s(x) }.", "symbol"),
    "keys on what is no function": ("e[1] = 2.", "e"),
    "too many keys": ('p(price["a", "b"]) :- flag().', "price"),
}

# Changes after the facts that must fail and leave everything as it was: rules, relation, rows to insert.
FAILING: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "overflow of a sum": ("p(t) :- t = sum v : { m(_, _, v) }.", "m", [("c", 1, 2**63 - 10), ("c", 2, 2**63 - 10)]),
    "overflow of a sum downwards": (
        "p(t) :- t = sum v : { m(_, _, v) }.",
        "m",
        [("c", 1, -(2**63)), ("c", 2, -(2**63))],
    ),
    "overflow of an unsigned sum": ("p(t) :- t = sum c : { u(_, c) }.", "u", [(4, 2**63)]),
    "overflow in one group": ("p(g, t) :- s(g), t = sum v : { m(g, _, v) }.", "m", [("a", 7, 2**63 - 10)]),
    "second value of a fact": ("p(t) :- price[t] = _.", "price", [("a", 4)]),
    "second value of a head": (".decl f(x:number) -> y:number\nf[x] = y :- e(x, y), x > 1.", "e", [(2, 9)]),
    "fact against a head": (".decl f(x:number) -> y:number\nf[x] = 1 :- z(x).\nf[7] = 2.", "z", [(7,)]),
    "division by zero": ("p(10 / k) :- z(k).", "z", [(0,)]),
    "remainder by zero": ("p(k % (k - 3)) :- z(k).", "z", [(3,)]),
    "a text that is no number": ('p(to_number(t)) :- s(t), contains("0", t).', "s", [("0x",)]),
}
