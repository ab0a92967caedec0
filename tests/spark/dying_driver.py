"""Drivers that die, forked from the test: what a fresh process would import for seconds is loaded."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from spark_bridge.partition import FAULTS


def exit_code(work: Callable[[], int | None], faults: Path) -> int:
    """The exit code of a process of its own that does this: what it returns, 1 if it raises, -9 if it is killed.

    `faults`: the folder that says where it is to die.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12: threads, those of libraries, which are idle
        child = os.fork()
    if child == 0:
        code = 1
        try:
            warnings.simplefilter("ignore")
            os.environ[FAULTS] = str(faults)
            code = work() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
