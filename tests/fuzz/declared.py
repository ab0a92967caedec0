"""What declarations say beyond columns, put into a program that has none of it: constraints and primary keys.

empty                   a head that must stay empty; one that rules read, too
primary-key (columns)   of a base relation or a head, one column or several
facts in heads          any head but a constraint is given facts as well
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.fuzz.accepted import accepted
from tests.mixed.programs import Mixed, pick
from tests.plain.syntax import parse


def declared(mixed: Mixed, rng: Random) -> Mixed:
    """The program with some of these."""
    heads = [name for name in mixed.known if name not in mixed.base]
    plain = [name for name in mixed.known if name not in mixed.functional and len(mixed.known[name]) > 1]
    lines, base = list(mixed.lines), list(mixed.base)
    if heads and not pick(rng, range(6)):
        constraint = pick(rng, heads)
        with_it = list(lines)
        _qualify(with_it, constraint, "empty")
        if accepted("\n".join(with_it)):  # without facts it is empty
            lines, heads = with_it, [name for name in heads if name != constraint]
            plain = [name for name in plain if name != constraint]
    program = parse(mixed.text)
    nullable = program.nullable  # null tells no rows apart
    keyed = {
        name: [c for c in range(len(mixed.known[name])) if (name, c) not in nullable]
        for name in plain
        if name not in program.primary
    }
    keyed = {name: columns for name, columns in keyed.items() if columns}
    if keyed and not pick(rng, range(4)):
        name = pick(rng, sorted(keyed))
        columns = rng.sample(keyed[name], pick(rng, range(1, len(keyed[name]) + 1)))
        _qualify(lines, name, f"primary-key ({', '.join(f'c{column}' for column in columns)})")
    base += [name for name in heads if not pick(rng, range(8))]
    return replace(mixed, lines=lines, base=base)


def _qualify(lines: list[str], name: str, qualifier: str) -> None:
    at = next(i for i, line in enumerate(lines) if line.startswith(f".decl {name}("))
    lines[at] += f" {qualifier}"
