"""Where things are kept between processes: `LFTJ_CACHE_DIR` if it is set, else the user's cache folder of lftj.

Machine code of kernels lies there (`_jit.py`), and what the language needs to parse (`lftj/language/tables.py`). All of
it can be deleted at any time.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """The folder, which need not exist."""
    if chosen := os.environ.get("LFTJ_CACHE_DIR"):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("lftj"))
