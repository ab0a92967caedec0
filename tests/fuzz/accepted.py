"""Whether lftj takes a program: generators leave it to say which of theirs are well formed."""

from __future__ import annotations

import warnings

import lftj
from lftj.errors import ConstraintError


def accepted(text: str) -> bool:
    """Whether a program is taken as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lftj.Database(text)
        except (lftj.ProgramError, ConstraintError):
            return False
    return True
