"""Programs of the calculus and of M3F that can be printed and cannot run: maps refuse them, and say what to do.

Catches: an assertion of the kernel's instructions, codes that are added up or ordered though they are no integers.
"""

from __future__ import annotations

import pytest

from lftj.errors import ProgramError
from lftj.triggers.calculus_algebra import tops
from lftj.triggers.calculus_reader import parsed
from lftj.triggers.compilation import compiled
from lftj.triggers.m3f import text
from lftj.triggers.m3f_reader import parsed as parsed_m3f
from lftj.triggers.maps import Maps

ON_TEXT = "relation R(a: symbol)\nmap q[] = R(a)\ntop q\non +R(a): q[] += "


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("q[] = Sum(max(z, 1), R(x, z))", "`max(z, 1)` is no sum or product of integers"),
        ("q[] = Sum(1, R(x) and S(y) and max(x, y) > 3)", "`max(x, y)` is no sum or product of integers"),
        ("q[] = Sum(x + 2 * max(x, 3), R(x))", "`max(x, 3)` is no sum or product of integers"),
        (
            'relation R(x: symbol)\nq[] = Sum(1, R(x) and x = "a")',
            'an event is a row of codes, and the text `"a"` has no code',
        ),
        (
            "relation R(x: symbol)\nrelation S(y: symbol)\nq[] = Sum(1, R(x) and S(y) and x < y)",
            "`x` is a text, and codes of texts have no order",
        ),
    ],
)
def test_what_maps_cannot_compute_is_refused(written: str, why: str) -> None:
    program = parsed(written)
    made = compiled(tops(program), program.relations)
    assert parsed_m3f(text(made)) == made
    with pytest.raises(ProgramError) as caught:
        Maps(made)
    first = caught.value.diagnostics[0]
    assert (first.what, first.why) == ("triggers cannot run a statement of `q`", why)
    assert "write the sum as a rule" in first.remedy


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ("a", "`a` is symbol, and numbers, decimals and durations are added up"),
        ('"2.5":float', '`"2.5":float` is float, and numbers, decimals and durations are added up'),
        ('{z ^= "s"}', 'an event is a row of codes, and the text `"s"` has no code'),
    ],
)
def test_statements_of_m3f_that_cannot_run(values: str, why: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Maps(parsed_m3f(ON_TEXT + values))
    assert str(caught.value) == (
        "<triggers>: error: triggers cannot run a statement of `q`\n"
        f"    on +R(a): q[] += {values}\n"
        f"  why: {why}\n"
        "  do: write the sum as a rule, which computes such things before a row becomes an event"
    )
