"""What an engine is to the benchmark, and how one is measured.

An `Engine` goes through four stages: `compile` (whatever it does once per process, on tiny data, in a session of its
own), `load` (relations into its native form), `run` the first time (builds indexes it wants), `run` again and again.
`measure` times each stage; the cost of indexes is what the first run took above the median of the later ones. CPU
seconds are the figure (all threads of the process; every engine is told to use one), wall seconds are kept beside
them so that a disturbed run shows.

Memory is the high-water mark of the process from just before `load` on; the benchmark gives every measurement a
process of its own.
"""

from __future__ import annotations

import gc
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from bench.graphs import Rows
from bench.pattern import Pattern

Mode = Literal["count", "materialise"]
Relations = Mapping[str, Rows]
T = TypeVar("T")


class Engine(ABC):
    """One engine in one session. `name` is the key in results; `package` the distribution whose version is recorded."""

    name: str
    package: str

    @classmethod
    def refuses(cls, pattern: Pattern, mode: Mode) -> str | None:
        """Why this engine does not take part in `pattern` and `mode`; None if it does."""
        return None

    def compile(self, pattern: Pattern, relations: Relations, mode: Mode) -> None:
        """Do on the tiny `relations`, in a throw-away session, what is done once per process. Nothing by default."""
        return None

    @abstractmethod
    def load(self, pattern: Pattern, relations: Relations) -> None:
        """Take the relations in."""

    @abstractmethod
    def run(self, pattern: Pattern, mode: Mode) -> int:
        """Count the pattern's bindings, or store them under a new name; return how many there are."""

    def counters(self) -> dict[str, int]:
        """Counters of the last run (steps, seeks, ...), if the engine has any."""
        return {}


@dataclass
class Timing:
    """CPU and wall seconds of one call."""

    cpu: float
    wall: float


@dataclass
class Measurement:
    """All figures of one engine on one case. Times in seconds; `cpu` and `wall` hold the runs after the first."""

    count: int
    cpu: list[float]
    wall: list[float]
    compile_seconds: float
    load_seconds: float
    index_seconds: float
    first_seconds: float
    peak_mb: float
    counters: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with `min` and `median` of the CPU seconds."""
        return {**asdict(self), "min": min(self.cpu), "median": statistics.median(self.cpu)}


def timed(call: Callable[[], T]) -> tuple[T, Timing]:
    """The result of `call` and what it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return result, Timing(time.process_time() - cpu, time.perf_counter() - wall)


def measure(
    engine: Engine, pattern: Pattern, relations: Relations, tiny: Relations, mode: Mode, repeats: int
) -> Measurement:
    """Take `engine` through its stages on `relations`; `repeats` runs after the first one.

    All runs must return the same count.
    """
    _, compiled = timed(lambda: engine.compile(pattern, tiny, mode))
    gc.collect()
    reset_peak()
    before = status_mb("VmRSS")
    _, loaded = timed(lambda: engine.load(pattern, relations))
    count, first = timed(lambda: engine.run(pattern, mode))
    cpu, wall = [], []
    for _ in range(repeats):
        again, t = timed(lambda: engine.run(pattern, mode))
        if again != count:
            raise AssertionError(f"{engine.name} counted {count:,} and then {again:,}")
        cpu.append(t.cpu)
        wall.append(t.wall)
    if not cpu:
        cpu, wall = [first.cpu], [first.wall]
    return Measurement(
        count=count,
        cpu=cpu,
        wall=wall,
        compile_seconds=compiled.cpu,
        load_seconds=loaded.cpu,
        index_seconds=max(0.0, first.cpu - statistics.median(cpu)),
        first_seconds=first.cpu,
        peak_mb=status_mb("VmHWM") - before,
        counters=engine.counters(),
    )


def status_mb(key: str) -> float:
    """A field of /proc/self/status in MiB; 0 where there is no such file."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def reset_peak() -> None:
    """Set the process's memory high-water mark back to what it uses now (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
