"""Souffle's options that lftj does not have: each is refused by name, with what to do instead. None is ignored."""

from __future__ import annotations

_NO_COMPILER = ("lftj compiles no program: its kernels are made once per machine", "leave it out")
_NO_CODE = ("lftj generates no C++", 'leave it out; from Python, `import lftj` and `lftj.Database("...")`')
_NO_PREPROCESSOR = ("there is no preprocessor", "write one file, with the macros expanded")
_NO_TRANSFORMER = ("rules are evaluated as they are written", "leave it out; `--key-order` steers the join of a rule")
_NO_PROFILER = ("there is no profile file", "use --stats, or `lftj explain --run`")
_NO_WARNING_CLASSES = ("warnings have no classes", "use -w to switch all of them off")
_NO_REPORT = ("there is no such report", "use `lftj check`, or `lftj explain`")

# (long name, short name or "", (why, remedy))
_REFUSED = (
    ("include-dir", "I", _NO_PREPROCESSOR),
    ("macro", "M", _NO_PREPROCESSOR),
    ("preprocessor", "", _NO_PREPROCESSOR),
    ("no-preprocessor", "", ("there is no preprocessor", "leave it out")),
    ("compile", "c", _NO_COMPILER),
    ("compile-many", "C", _NO_COMPILER),
    ("dl-program", "o", _NO_COMPILER),
    ("generate", "g", _NO_CODE),
    ("generate-many", "G", _NO_CODE),
    ("generate-namespace", "N", _NO_CODE),
    ("swig", "s", _NO_CODE),
    ("library-dir", "L", ("there are no user-defined functors", "leave it out")),
    ("libraries", "l", ("there are no user-defined functors", "leave it out")),
    ("inline-exclude", "", _NO_TRANSFORMER),
    ("magic-transform", "m", _NO_TRANSFORMER),
    ("magic-transform-exclude", "", _NO_TRANSFORMER),
    ("disable-transformers", "z", _NO_TRANSFORMER),
    ("auto-schedule", "a", _NO_TRANSFORMER),
    ("profile-use", "u", _NO_TRANSFORMER),
    ("pragma", "P", ("pragmas are not supported", "give options on the command line")),
    ("legacy", "", ("there is no legacy mode", "leave it out")),
    ("warn", "W", _NO_WARNING_CLASSES),
    ("wno", "", _NO_WARNING_CLASSES),
    ("profile", "p", _NO_PROFILER),
    ("live-profile", "", _NO_PROFILER),
    ("profile-frequency", "", _NO_PROFILER),
    ("emit-statistics", "", _NO_PROFILER),
    ("index-stats", "", _NO_PROFILER),
    ("provenance", "t", ("provenance is not supported yet", "leave it out")),
    ("verbose", "v", ("there is no verbose mode", "use --stats")),
    ("debug-report", "r", _NO_REPORT),
    ("debug", "d", _NO_REPORT),
    ("show", "", _NO_REPORT),
    ("parse-errors", "", _NO_REPORT),
    ("engine", "e", ("there is one engine", "leave it out")),
)

_BY_OPTION = {f"--{name}": reason for name, _, reason in _REFUSED} | {f"-{s}": r for _, s, r in _REFUSED if s}


def refusal(option: str) -> tuple[str, str] | None:
    """Why lftj does not have an option of Souffle, and what to do; None if Souffle does not have it either."""
    return _BY_OPTION.get(option)
