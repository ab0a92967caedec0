"""Random programs whose sums leave the range of their type now and then, for groups that rules ask for or not.

Keys are few texts, values few numbers, most of them large; rules nest sums, deny them, join and test their values.
"""

from __future__ import annotations

from typing import Any

from tests.mixed.programs import Draw, Mixed, pick

BASE = {"e": ("symbol", "number"), "g": ("symbol", "symbol"), "r": ("symbol",), "w": ("symbol", "float")}
BASE |= {"u": ("symbol", "unsigned")}
KEYS = ("a", "b", "c")
VALUES: dict[str, tuple[Any, ...]] = {
    "symbol": KEYS,
    "number": (1, 2, -1, 2**62, 2**63 - 1, -(2**63)),
    "unsigned": (1, 2, 2**63, 2**64 - 1),
    "float": (0.5, 1.0, 1e308, 1.5e308, -1e308, float("inf"), float("-inf")),
}
# Each with the type of its value; `X` is a key, the other names are made new.
SUMS = (
    ("sum V : { e(X, V) }", "number"),
    ("sum V : { e(X, V) }", "number"),
    ("sum V : { g(X, Y), e(Y, V) }", "number"),
    ("sum V + W : { e(X, V), e(X, W), V < W }", "number"),
    ("sum V : { e(_, V) }", "number"),
    ("sum V : { (e(X, V) ; g(X, Y), e(Y, V)), r(Y) }", "number"),
    ("sum V : { u(X, V) }", "unsigned"),
    ("sum V : { w(X, V) }", "float"),
    ("mean V : { w(X, V) }", "float"),
    ("mean V : { e(X, V) }", "float"),
    ("sum V : { e(X, V), !r(X) }", "number"),
)
# `A` is a sum of another key, `Y`, and `S` its value, of type number.
NESTED = (
    ("sum S : { g(X, Y), S = A }", "number"),
    ("max S : { g(X, Y), S = A }", "number"),
    ("count : { g(X, Y), S = A, S > 1 }", "number"),
    ("count : { g(X, Y), A > 1 }", "number"),
    ("count : { g(X, Y), !(e(Y, V), V < A) }", "number"),
    ("mean S : { g(X, Y), r(Y), S = A }", "float"),
    ("count : { e(X, S), g(X, Y), S = A }", "number"),
)
FREE = ("sum V : { e(X, V) }", "sum V : { g(X, Y), e(Y, V) }", "sum S : { g(X, Y), S = A }", "mean V : { w(X, V) }")
START = ("r(X)", "g(X, Y)", "g(X, Y), r(Y)", "g(X, X)", "e(X, V)", "r(X), !g(X, X)", "g(X, Y), X != Y", "e(X, V), r(X)")


class Names:
    """Variables of one rule."""

    def __init__(self) -> None:
        self.made = 0

    def filled(self, draw: Draw, text: str, **known: str) -> str:
        """`text` with its capital letters replaced: by what is known, or else by new variables."""
        for letter in "XYVWST":
            if letter in text:
                if letter not in known:
                    self.made += 1
                    known[letter] = f"v{self.made}"
                text = text.replace(letter, known[letter])
        if "A" in text:
            inner, _ = number_sum(draw)
            text = text.replace("A", self.filled(draw, inner, X=known.get("Y", known.get("X", ""))))
        return text


def number_sum(draw: Draw) -> tuple[str, str]:
    return pick(draw, [some for some in SUMS if some[1] == "number"])


def add_rule(draw: Draw, mixed: Mixed, name: str) -> None:
    """A rule of any form over the base relations, and a guard over another head."""
    names = Names()
    if not pick(draw, range(6)):
        text = names.filled(draw, pick(draw, FREE), X="x")
        mixed.declare(name, ("symbol", "float" if text.startswith("mean") else "number"), functional=True)
        mixed.lines.append(f"{name}[x] = {text}.")
        return
    literals = [names.filled(draw, pick(draw, START), X="x")]
    bound: list[tuple[str, str]] = []
    for _ in range(pick(draw, (1, 1, 2))):
        form, kind = pick(draw, (*SUMS, *NESTED))
        text = names.filled(draw, form, X="x")
        use = pick(draw, ("bind", "bind", "bind", "test", "deny", "value"))
        if use == "test":
            literals.append(f"{text} {pick(draw, ('<', '>', '!='))} {0.5 if kind == 'float' else 1}")
            continue
        value = f"t{len(bound)}"
        if use == "deny":
            literals.append(f"!(g(x, {value}k), {value} = {text}, {value} > {0.5 if kind == 'float' else 1})")
            bound.append((f"{value}no", ""))
            continue
        literals.append(f"{value} = {text}")
        bound.append((value, kind))
        if use == "value" and kind == "number":
            after = pick(
                draw, ("e(x, T)", "e(S, T)", "!e(x, T)", "W = count : { e(S, T) }", "T < V, e(x, V)", "W = T - 1")
            )
            literals.append(names.filled(draw, after, T=value))
    others = [other for other in mixed.known if other not in BASE]
    if others and not pick(draw, range(3)):
        other = pick(draw, others)
        literals.append(f"{pick(draw, ('', '!'))}{other}({', '.join(['x'] + ['_'] * (len(mixed.known[other]) - 1))})")
    if pick(draw, (True, False)):
        draw.shuffle(literals)
    usable = [(value, kind) for value, kind in bound if kind]
    shown = [pick(draw, usable)] if usable and pick(draw, (True, False)) else []
    functional = bool(shown) and not pick(draw, range(3))
    mixed.declare(name, ("symbol", *(kind for _, kind in shown)), functional=functional)
    head = f"{name}[x] = {shown[0][0]}" if functional else f"{name}({', '.join(['x', *(v for v, _ in shown)])})"
    mixed.lines.append(f"{head} :- {', '.join(literals)}.")


def make_program(draw: Draw) -> Mixed:
    """One to three rules."""
    mixed = Mixed()
    for name, schema in BASE.items():
        mixed.declare(name, schema)
    mixed.base = sorted(BASE)
    for i in range(pick(draw, (1, 1, 2, 3))):
        add_rule(draw, mixed, f"p{i}")
        mixed.maintain[f"p{i}"] = pick(draw, ("trace", "delta", "triggers", "recompute", "auto"))
        mixed.granularity[f"p{i}"] = pick(draw, ("node", "interval", "auto"))
    mixed.sizes = {"page_rows": 2, "directory_rows": 2}
    return mixed


def make_calls(draw: Draw, facts: dict[str, set[tuple[Any, ...]]]) -> list[tuple[str, str, list[tuple[Any, ...]]]]:
    """One to three calls of a transaction."""
    calls = []
    for _ in range(pick(draw, (1, 1, 2, 3))):
        name = pick(draw, sorted(BASE))
        if facts[name] and not pick(draw, range(3)):
            calls.append(
                ("erase", name, [pick(draw, sorted(facts[name], key=repr)) for _ in range(pick(draw, (1, 2)))])
            )
            continue
        rows = [tuple(pick(draw, VALUES[kind]) for kind in BASE[name]) for _ in range(pick(draw, (1, 1, 2, 3)))]
        calls.append(("insert", name, rows))
    return calls
