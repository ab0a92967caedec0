"""`lftj doctor`: what lftj needs, part by part, and what to do about a part that is missing or poor.

    ok        as it should be
    note      works; something is missing that not everybody needs, or could be better
    problem   something that lftj needs does not work: exit code 1

Nothing is compiled or written, but for an empty file that tries whether the cache can be.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lftj import __version__, arguments
from lftj.cli.outcome import Code
from lftj.values.faults import counted
from scantree._cache import cache_root

OK, NOTE, PROBLEM = "ok", "note", "problem"
# What lftj imports, with the least version that it works with; tests compare this with pyproject.toml.
NEEDED = {
    "lark": "1.1.9",
    "numba": "0.62",
    "numpy": "2.2",
    "platformdirs": "4.0",
    "pyarrow": "21",
    "rich": "13.0",
    "sortedcontainers": "2.4",
    "typer": "0.19",
}
EXTRAS = {
    "bench": {
        "duckdb": "1.4",
        "kuzu": "0.8",
        "matplotlib": "3.9",
        "pandas": "2.2.2",
        "polars": "1.36.1",
        "sqlglot": "30.20",
    },
    "docs": {"mkdocs": "1.6"},
    "lsp": {"pygls": "2.0"},
    "sql": {"sqlglot": "30.20"},
    "spark": {"pandas": "2.2", "pyspark": "4.1"},
}
PYTHON = (3, 11)
JAVA = 17
LOW_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class PartReport:
    """What was found of one part. `remedy`: what to do; empty if nothing is to be done."""

    part: str
    status: str
    found: str
    remedy: str = ""


def examine(*, as_json: bool) -> int:
    """Print what is found of every part; 1 if one of them is a problem."""
    findings = [finding for part in _PARTS for finding in part()]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.part) for finding in findings)
        for finding in findings:
            print(f"{finding.status:7}  {finding.part:{width}}  {finding.found}")
            if finding.remedy:
                print(f"{'':{width + 11}}do: {finding.remedy}")
    return Code.PROGRAM if any(finding.status == PROBLEM for finding in findings) else Code.DONE


# --- programs and packages --------------------------------------------------------------------------------------------


def _lftj() -> Iterator[PartReport]:
    yield PartReport("lftj", OK, f"{__version__} in {Path(__file__).resolve().parent.parent}")


def _python() -> Iterator[PartReport]:
    shown = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < PYTHON:
        yield PartReport("Python", PROBLEM, shown, f"use Python {'.'.join(map(str, PYTHON))} or later")
    else:
        yield PartReport("Python", OK, shown)


def _packages() -> Iterator[PartReport]:
    for name, least in NEEDED.items():
        install = f"pip install '{name}>={least}'"
        try:
            importlib.import_module(name)
            found = version(name)
        except Exception as error:  # a broken build raises whatever it likes
            yield PartReport(name, PROBLEM, f"cannot be imported: {error}", install)
            continue
        if _numbers(found) < _numbers(least):
            yield PartReport(name, PROBLEM, f"{found} is too old", install)
        else:
            yield PartReport(name, OK, found)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version, as far as it has numbers."""
    return tuple(int(part) for part in re.match(r"[\d.]*", text)[0].split(".") if part)  # type: ignore[index]


def _extras() -> Iterator[PartReport]:
    for extra, least in EXTRAS.items():
        found = {name: _version(name) for name in least}
        missing = [name for name, held in found.items() if held is None]
        old = [f"{name} {held}" for name, held in found.items() if held and _numbers(held) < _numbers(least[name])]
        if missing or old:
            wrong = [f"without {', '.join(missing)}"] * bool(missing) + [f"{', '.join(old)} is too old"] * bool(old)
            remedy = f"pip install 'lftj[{extra}]', if you need it"
            yield PartReport(f"lftj[{extra}]", NOTE, "; ".join(wrong), remedy)
        else:
            yield PartReport(f"lftj[{extra}]", OK, ", ".join(f"{name} {held}" for name, held in found.items()))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _java() -> Iterator[PartReport]:
    """The Java that Spark would run; `spark_bridge` looks for the same."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    remedy = f"install Java {JAVA} or later, or set JAVA_HOME, if you need Spark"
    if program is None or not os.path.exists(program):
        yield PartReport("Java", NOTE, "none", remedy)
        return
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        yield PartReport("Java", NOTE, f"{program} does not run: {error}", remedy)
        return
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)', answer)
    recent = found is not None and int(found[2]) >= JAVA
    shown = f"{found[1] if found else 'of an unknown version'} ({program})"
    yield PartReport("Java", OK, shown) if recent else PartReport("Java", NOTE, shown, remedy)


# --- the cache --------------------------------------------------------------------------------------------------------


def _cache() -> Iterator[PartReport]:
    root = cache_root()
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) if root.is_dir() else 0
    shown = f"{root}, {_bytes(size)}"
    if _writable(root):
        yield PartReport("cache", OK, shown)
    else:
        remedy = "make it writable, or set LFTJ_CACHE_DIR to a folder that is; each process compiles what is not there"
        yield PartReport("cache", PROBLEM, f"{shown}, cannot be written", remedy)
    yield from _kernels(root)


def _writable(root: Path) -> bool:
    """Whether files can be made in a folder, or in the nearest folder above that is there."""
    folder = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _kernels(root: Path) -> Iterator[PartReport]:
    """Whether the kernels of this version are compiled, and what older ones take."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        yield PartReport("kernels", NOTE, "are interpreted: NUMBA_DISABLE_JIT is set", "unset it: it is for debugging")
        return
    try:
        from scantree._jit import CACHE_DIR, LONG
    except Exception as error:
        yield PartReport("kernels", PROBLEM, f"cannot be loaded: {error}", "repair numba and numpy, see above")
        return
    without_result = [name for name, number in LONG.items() if len(list(CACHE_DIR.glob(f"**/*.{name}-*.nbc"))) < number]
    if without_result:
        shown = f"{len(without_result)} of {len(LONG)} long ones are not compiled yet: first uses wait for them"
        yield PartReport("kernels", NOTE, shown, "`lftj warmup` compiles all of them now")
    else:
        yield PartReport("kernels", OK, "compiled")
    old = [folder for folder in root.glob("kernels-*") if folder != CACHE_DIR]
    if old:
        size = sum(path.stat().st_size for folder in old for path in folder.rglob("*") if path.is_file())
        shown = f"{_bytes(size)} in {counted(len(old), 'folder')} of other versions or modes"
        remedy = f"delete the folders `kernels-*` in the cache, except {CACHE_DIR.name}"
        yield PartReport("old kernels", NOTE, shown, remedy)


# --- the machine ------------------------------------------------------------------------------------------------------


def _machine() -> Iterator[PartReport]:
    yield PartReport("CPU", OK, f"{_cpu()}, {os.cpu_count()} cores, {arguments.cores()} of them for this process")
    yield PartReport("threads", OK, "1, unless --threads or `Database(threads=N)` asks for more")
    memory = _memory()
    if memory is None:
        yield PartReport("memory", NOTE, "not reported by this system")
        return
    free, total = memory
    shown = f"{_bytes(free)} free of {_bytes(total)}"
    if free < LOW_MEMORY:
        yield PartReport("memory", NOTE, shown, "close what you do not need, or give --memory-limit")
    else:
        yield PartReport("memory", OK, shown)


def _cpu() -> str:
    """The name of the processor."""
    try:
        named = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        named = None
    return named[1] if named else platform.processor() or platform.machine()


def _memory() -> tuple[int, int] | None:
    """Bytes that are free, and all; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        return sizes["MemAvailable"], sizes["MemTotal"]
    except (OSError, KeyError, ValueError):
        pass
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page
    except (AttributeError, OSError, ValueError):
        return None


def _bytes(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1000:.1f} kB"


_PARTS: tuple[Callable[[], Iterator[PartReport]], ...] = (_lftj, _python, _packages, _cache, _machine, _java, _extras)
