"""What all tests share: how hard hypothesis tries, where kernels are cached, and where the larger data lies.

Modes (see the Makefile): compiled, interpreted (`NUMBA_DISABLE_JIT=1`: the kernels are plain Python, some 200 times
slower, so hypothesis tries less and tests marked `jit_only` are left out), bounds-checked (`NUMBA_BOUNDSCHECK=1`).
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
BOUNDSCHECK = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
# Compiled and unchecked: the mode in which most random cases are tried.
FULL = JIT and not BOUNDSCHECK

# No deadlines: the first example of a test compiles kernels. In CI the examples are the same every time, so they find
# again what was found, and a quarter of them does; elsewhere they are new ones, and so are the programs of `make fuzz`.
IN_CI = bool(os.environ.get("CI"))
_COMMON = {
    "deadline": None,
    "print_blob": True,
    "derandomize": IN_CI,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("full", max_examples=25 if IN_CI else 100, **_COMMON)
settings.register_profile("tiny", max_examples=8, stateful_step_count=15, **_COMMON)
settings.register_profile("thorough", max_examples=1000, stateful_step_count=100, **_COMMON)
_profile = os.environ.get("HYPOTHESIS_PROFILE") or ("full" if FULL else "tiny")
settings.load_profile(_profile)
# `make thorough`: ten times the examples, and injected failures at every call.
THOROUGH = _profile == "thorough"


def examples(full: int, few: int | None = None, **more: Any) -> settings:
    """So many random cases of a test: `full` compiled and unchecked, in the slower modes `few`, or else a tenth."""
    number = full if FULL else -(-full // 10) if few is None else few
    if FULL and IN_CI:
        number = -(-number // 4)
    return settings(max_examples=10 * number if THOROUGH else number, **more)


# Before anything imports a kernel: compiled code of tests never mixes with the user's. The folder may be warm: code is
# kept in it by the hash of all kernels' sources and of the mode.
os.environ.setdefault("LFTJ_CACHE_DIR", str(ROOT / ".pytest_cache" / "lftj"))
os.environ["LFTJ_QUIET"] = "1"
# Which strategy a commit chooses must not depend on what is compiled.
os.environ["LFTJ_BACKGROUND"] = "0"

# A job that a shell started in the background ignores SIGINT, and so would the tests of Ctrl-C and the processes they
# start.
if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what needs compiled kernels where there are none, and let the others wrap."""
    if JIT:
        return
    for item in items:
        # numpy's scalars warn where compiled integers wrap and floats overflow, which is what kernels count on.
        item.add_marker(pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning"))
        if item.get_closest_marker("jit_only"):
            item.add_marker(pytest.mark.skip(reason="needs compiled kernels"))


@pytest.fixture(scope="module", autouse=True)
def only_young_objects_are_collected() -> None:
    """`gc.collect()` leaves out what is there before a file's tests: numba's objects, of which there are a million.

    Tests that look at memory call it all the time, and it took half a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def lagging_orders() -> Iterator[None]:
    """Key orders lag behind the content of relations as small as those of tests are."""
    from lftj.store import stored

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "MOST_BEHIND", 3)
        patch.setattr(stored, "BEHIND_PART", 1e9)
        yield


@pytest.fixture(scope="session", autouse=True)
def lagging_versions() -> Iterator[None]:
    """Two changes lag already, where they are known to be effective."""
    from scantree import lagging

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lagging, "LEAST", 2)
        yield


@pytest.fixture(scope="session", autouse=True)
def sorted_as_many_rows_are() -> Iterator[None]:
    """Rows are sorted as many are (packed, by digits, in memory that a thread keeps) from so few on as tests have."""
    from scantree import radix_sort, sort

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "FEW", 8)
        if JIT:  # interpreted, to count digits takes longer than the rest of a test
            patch.setattr(radix_sort, "SMALL", 16)
            patch.setattr(radix_sort, "ROOM", 64)
        yield


@pytest.fixture(scope="session", autouse=True)
def every_error_says_why_and_what_to_do() -> Iterator[None]:
    """Every error, and every finding, that a test meets has a why and a what to do; both parameters are required."""
    from lftj.errors import Diagnostic, Error

    error, finding = Error.__init__, Diagnostic.__init__

    def make_error(self: Error, what: str, *, why: str, remedy: str, where: str = "") -> None:
        assert all((why, remedy)), f"lacks why or what to do: {what}"
        error(self, what, why=why, remedy=remedy, where=where)

    def make_finding(self: Diagnostic, what: str, span: object, why: str, remedy: str, *rest: Any, **more: Any) -> None:
        assert all((why, remedy)), f"lacks why or what to do: {what}"
        finding(self, what, span, why, remedy, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Error, "__init__", make_error)
        patch.setattr(Diagnostic, "__init__", make_finding)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of larger data sets beside the checkout.

    The test is skipped where it is absent (a user's checkout).
    """
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the larger data sets in ../shared/data")
    return folder


@pytest.fixture(scope="session")
def shipped_data() -> Path:
    """The folder of data sets that ship with lftj."""
    return ROOT / "lftj" / "demo" / "data"
