"""Programs of triggers from text, and as text: what users call, through `lftj.triggers`."""

from __future__ import annotations

from lftj.arguments import instance
from lftj.triggers import calculus_reader, m3f, m3f_reader
from lftj.triggers.algebra import TriggerProgram
from lftj.triggers.calculus_algebra import tops
from lftj.triggers.compilation import compiled


def from_calculus(text: str, *, naive: bool = False) -> TriggerProgram:
    """The triggers that keep the queries of a text in the calculus of Cumulus.

    `naive`: as the naive viewlet transform makes them, a map for every event. Raises ProgramError where it is wrong.
    """
    calculus = calculus_reader.parsed(_text(text))
    return compiled(tops(calculus), calculus.relations, naive=naive)


def from_m3f(text: str) -> TriggerProgram:
    """A program that `to_m3f` or `lftj triggers` printed. Raises ProgramError where it is wrong."""
    return m3f_reader.parsed(_text(text))


def to_m3f(program: TriggerProgram) -> str:
    """A program as text: relations, maps, and what every event does to them."""
    why = "a program of triggers is written as M3F"
    return m3f.text(instance("program", program, TriggerProgram, why, "make one by `triggers.from_calculus(text)`"))


def _text(text: object) -> str:
    return instance("text", text, str, "a program is read from a text", 'read a file by `Path("q.calc").read_text()`')
