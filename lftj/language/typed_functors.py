"""What operators mean for types other than numbers: dates, times, durations and decimals.

    date - date, timestamp - timestamp             a duration
    date + duration, date - duration               a date: of the duration the whole days, as in Python
    timestamp + duration, timestamp - duration     a timestamp; duration + timestamp, too
    duration + duration, - , * number, / number    a duration; `/` truncates towards zero
    decimal + decimal, -, %                        of one scale, which it keeps
    decimal * decimal                              the scales add up
    decimal * number                               a decimal of the same scale

What leaves the range of its type has no value: it never wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lftj.language.types import DATE, DECIMAL, DURATION, FLOAT, NUMBER, TIMESTAMP, decimal_of, scale_of
from lftj.values.decimal_type import DIGITS
from lftj.values.time_types import zone_of
from lftj.values.type_table import family_of

# The type of a result from the types of the arguments and the constants among them; `ValueError` says why not.
ResultOf = Callable[[Sequence[str], Sequence[object]], str]
FIRST, SECOND = "T", "second"


@dataclass(frozen=True, slots=True)
class Overload:
    """One meaning: for arguments of these families, a `result` (a type, or "T": that of the first) by `operation`.

    `operation`: its name in `lftj/join/expression_vm.py` · `same`: the arguments are of one type · `partial`: it may
    have no value.
    """

    parameters: tuple[str, ...]
    result: str | ResultOf
    operation: str
    same: bool = False
    partial: bool = False

    def __str__(self) -> str:
        named = {FIRST: self.parameters[0], SECOND: self.parameters[-1]}
        result = named.get(self.result, self.result) if isinstance(self.result, str) else DECIMAL
        return f"{', '.join(self.parameters)} -> {result}"

    def type(self, types: Sequence[str], constants: Sequence[object] = ()) -> str:
        """The type of its result."""
        if isinstance(self.result, str):
            return types[0] if self.result == FIRST else types[1] if self.result == SECOND else self.result
        return self.result(types, constants)


def _wide(types: Sequence[str], constants: Sequence[object]) -> str:
    return decimal_of(max(map(scale_of, types)))


def _product(types: Sequence[str], constants: Sequence[object]) -> str:
    scale = sum(map(scale_of, types))
    if scale > DIGITS:
        raise ValueError(f"their product has {scale} digits behind the point, and {DIGITS} are kept")
    return decimal_of(scale)


def scaled(types: Sequence[str], constants: Sequence[object]) -> str:
    """The type of `to_decimal(x, scale)` and `to_decimal_away(x, scale)`."""
    scale = constants[1]
    if not isinstance(scale, int) or not 0 <= scale <= DIGITS:
        raise ValueError(f"the digits behind the point are a constant from 0 to {DIGITS}")
    return decimal_of(scale)


def rounded(types: Sequence[str], constants: Sequence[object]) -> str:
    """The type of `round(x, digits)`."""
    digits = constants[1]
    if not isinstance(digits, int) or not -DIGITS <= digits <= DIGITS:
        raise ValueError(f"the digits behind the point are a constant from -{DIGITS} to {DIGITS}")
    return decimal_of(min(scale_of(types[0]), max(digits, 0))) if family_of(types[0]) == DECIMAL else FLOAT


def whole(types: Sequence[str], constants: Sequence[object]) -> str:
    """The type of `floor(x)` and `ceil(x)`."""
    return decimal_of(0) if family_of(types[0]) == DECIMAL else FLOAT


def zone(types: Sequence[str], constants: Sequence[object]) -> str:
    """The type of `in_zone(t, zone)`."""
    name = constants[1]
    if not isinstance(name, str) or zone_of(name) is None:
        raise ValueError('the zone is a constant text that names one, such as "Europe/Berlin"')
    return f'{TIMESTAMP}("{name}")'


PLUS = (
    Overload((DATE, DURATION), FIRST, "DATE_ADD", partial=True),
    Overload((TIMESTAMP, DURATION), FIRST, "TIME_ADD", partial=True),
    Overload((DURATION, TIMESTAMP), SECOND, "TIME_ADD", partial=True),
    Overload((DURATION, DURATION), DURATION, "DURATION_ADD", partial=True),
    Overload((DECIMAL, DECIMAL), _wide, "DECIMAL_ADD", same=True, partial=True),
)
MINUS = (
    Overload((DATE, DATE), DURATION, "DATE_DIFF"),
    Overload((TIMESTAMP, TIMESTAMP), DURATION, "SUB"),
    Overload((DATE, DURATION), FIRST, "DATE_SUB", partial=True),
    Overload((TIMESTAMP, DURATION), FIRST, "TIME_SUB", partial=True),
    Overload((DURATION, DURATION), DURATION, "DURATION_SUB", partial=True),
    Overload((DECIMAL, DECIMAL), _wide, "DECIMAL_SUB", same=True, partial=True),
)
TIMES = (
    Overload((DURATION, NUMBER), DURATION, "DURATION_MUL", partial=True),
    Overload((NUMBER, DURATION), DURATION, "DURATION_MUL", partial=True),
    Overload((DECIMAL, NUMBER), _product, "DECIMAL_MUL", partial=True),
    Overload((NUMBER, DECIMAL), _product, "DECIMAL_MUL", partial=True),
    Overload((DECIMAL, DECIMAL), _product, "DECIMAL_MUL", partial=True),
)
OVER = (Overload((DURATION, NUMBER), DURATION, "DURATION_DIV", partial=True),)
REST = (Overload((DECIMAL, DECIMAL), FIRST, "MOD", same=True, partial=True),)
