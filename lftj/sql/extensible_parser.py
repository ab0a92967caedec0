"""The class of sqlglot's parser of DuckDB's SQL that can be extended.

sqlglot may be compiled (`pip install "sqlglot[c]"`). Nothing can inherit from compiled classes, but their source is
installed beside them: the two modules of the parser are made of it once more, and work on the compiled trees.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import sqlglot.parser
import sqlglot.parsers.duckdb


def extensible_parser() -> type[sqlglot.parser.Parser]:
    """The class: that of sqlglot itself where it is not compiled, else one that is made of its source."""
    if not _is_compiled(sqlglot.parser):
        return sqlglot.parsers.duckdb.DuckDBParser
    base = _from_source(sqlglot.parser)
    compiled = sqlglot.parser
    # The other module finds its base class by `from sqlglot import parser` and `from sqlglot.parser import ...`.
    sys.modules["sqlglot.parser"] = sqlglot.parser = base
    try:
        made: type[sqlglot.parser.Parser] = _from_source(sqlglot.parsers.duckdb).DuckDBParser
    finally:
        sys.modules["sqlglot.parser"] = sqlglot.parser = compiled
    return made


def _is_compiled(module: ModuleType) -> bool:
    return Path(module.__file__ or "").suffix != ".py"


def _from_source(module: ModuleType) -> ModuleType:
    """The module made of its source."""
    name = module.__name__
    source = Path(sqlglot.__path__[0], *name.split(".")[1:]).with_suffix(".py")
    loader = SourceFileLoader(name, str(source))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    made = module_from_spec(spec)
    loader.exec_module(made)
    return made
