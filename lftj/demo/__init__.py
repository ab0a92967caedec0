"""The demonstration, `lftj demo`: two real graphs that ship with lftj (`data/SOURCES.md` says where they are from)."""

from __future__ import annotations

__all__ = ["show"]


def show(*, quick: bool = False) -> int:
    """Run the tour and print it; 0. `quick` leaves out the questions that take more than a moment."""
    from lftj.demo.tour import Tour

    Tour().walk(quick=quick)
    return 0
