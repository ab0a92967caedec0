"""`lftj stream`: what it writes of values that JSON has no form for.

Catches: a traceback of Python's writer; a value that is written as no file of JSON holds it.
"""

from __future__ import annotations

import json
import math

from tests.cli.conftest import Shell

UUID = "123e4567-e89b-12d3-a456-426614174000"
TYPES = {
    "n": "number",
    "u": "unsigned?",
    "f": "float",
    "s": "symbol?",
    "b": "bool",
    "d": "date",
    "t": 'timestamp("Europe/Berlin")',
    "l": "duration",
    "m": "decimal(10,2)",
    "i": "uuid",
    "x": "bytes",
}
ROWS = [
    '{"n":-1,"u":null,"f":Infinity,"s":"ü","b":true,"d":"2024-05-31","t":"2024-05-31T12:30:00+02:00",'
    '"l":"1h30m","m":"1.50","i":"123e4567-e89b-12d3-a456-426614174000","x":"00ff"}',
    '{"n":2,"u":7,"f":-1.5,"s":null,"b":false,"d":"0001-01-01","t":"2024-01-31T12:30:00",'
    '"l":"-0.5s","m":2,"i":"123E4567E89B12D3A456426614174000","x":""}',
]
PROGRAM = f"""
from lftj import streams
circuit = streams.Circuit("all")
circuit.output("out", circuit.input("row", **{TYPES!r}))
"""


def test_values_are_written_as_files_of_json_hold_them(shell: Shell) -> None:
    """Dates, times, decimals, uuids and bytes raised a TypeError."""
    shell.write({"c.py": PROGRAM, "rows.ndjson": "\n".join(ROWS) + "\n"})
    arguments = ("stream", "c.py", "--input")
    found = shell(*arguments, "row=rows.ndjson")
    assert (found.code, found.err) == (0, "")
    lines = [json.loads(line) for line in found.out.splitlines()]
    marks = {"_output": "out", "_weight": 1}
    assert lines == [
        marks | dict(zip(TYPES, values, strict=True))
        for values in (
            (-1, None, math.inf, "ü", True, "2024-05-31", "2024-05-31T12:30:00+02:00", "1h30m", "1.50", UUID, "00ff"),
            (2, 7, -1.5, None, False, "0001-01-01", "2024-01-31T12:30:00+01:00", "-0.5s", "2.00", UUID, ""),
        )
    ]
    written = [{name: line[name] for name in TYPES} for line in lines]
    shell.write({"again.ndjson": "".join(json.dumps(line) + "\n" for line in written)})
    assert shell(*arguments, "row=again.ndjson").out == found.out


TWO = """
from lftj import streams
circuit = streams.Circuit()
circuit.output("out", circuit.input("bid", item=str).union(circuit.input("ask", item=str)))
"""


def test_without_an_input_there_is_nothing_to_do(shell: Shell) -> None:
    """Catches: a circuit that prints nothing and succeeds, since it was given nothing."""
    shell.write({"c.py": PROGRAM, "two.py": TWO})
    assert shell("stream", "c.py") == (
        2,
        "",
        "c.py: error: no input is given; its input is row\n"
        "  why: the circuit steps over the rows of its inputs\n"
        "  do: give --input row=FILE\n",
    )
    done = shell("stream", "two.py")
    assert done.code == 2
    assert done.err.startswith("two.py: error: no input is given; its inputs are bid and ask\n")
    assert done.err.endswith("  do: give --input bid=FILE --input ask=FILE\n")


def test_a_circuit_without_inputs_needs_none(shell: Shell) -> None:
    shell.write({"c.py": "from lftj import streams\ncircuit = streams.Circuit()\n"})
    assert shell("stream", "c.py").code == 0


def test_lines_of_json_have_two_names(shell: Shell) -> None:
    shell.write({"c.py": TWO, "bids.jsonl": '{"item": "tea"}\n'})
    assert (
        shell("stream", "c.py", "--input", "bid=bids.jsonl").out == '{"_output": "out", "_weight": 1, "item": "tea"}\n'
    )


def test_names_of_a_line_are_kept_apart_from_columns(shell: Shell) -> None:
    """A column `_weight` stood in the place of the weight, and one `_output` in that of the name."""
    made = 'circuit.output("out", circuit.input("row", _weight=int, __weight=int, _output=str))\n'
    row = '{"_weight": 3, "__weight": 4, "_output": "x"}\n'
    shell.write({"c.py": f"from lftj import streams\ncircuit = streams.Circuit()\n{made}", "rows.jsonl": row})
    found = shell("stream", "c.py", "--input", "row=rows.jsonl")
    assert found.out == '{"__output": "out", "___weight": 1, "_weight": 3, "__weight": 4, "_output": "x"}\n'


def test_rows_that_came_too_late_are_told(shell: Shell) -> None:
    """They left no trace."""
    shell.write(
        {
            "c.py": 'from lftj import streams\ncircuit = streams.Circuit("c")\n'
            'bid = circuit.input("bid", n=int, t=int)\ncircuit.output("out", bid.watermark("t", 5))\n',
            "bid.ndjson": "".join(f'{{"n": {n}, "t": {t}}}\n' for n, t in enumerate((10, 20, 14, 15, 30, 24, 25))),
        }
    )
    done = shell("stream", "c.py", "--input", "bid=bid.ndjson", "--rows", "1")
    assert (done.code, done.out.count("\n")) == (0, 5)
    assert done.err == "lftj: 2 rows came below the watermark of `bid.t` and changed nothing\n"
