"""Prints constraints for pip by which it installs the oldest versions that pyproject.toml admits.

python -m tests.least_versions
"""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

EXTRAS = ("bench", "lsp", "sql")


def least_versions() -> list[str]:
    """`name==version` of each package that lftj needs, and its extras."""
    path = Path(__file__).resolve().parent.parent / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    needed = chain(project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS))
    return sorted({re.sub(r">=([^,]*).*", r"==\1", requirement) for requirement in needed})


if __name__ == "__main__":
    print("\n".join(least_versions()))
