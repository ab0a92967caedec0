"""Missing values in columns of pandas: NaN, where a column of floats or objects has no value.

    [1.5, NaN] as float64       a null in row 1
    ["x", NaN] as object        the same
    [NaN, NaN] as float64       nulls only, of any type: pandas makes every column without values a float64
    [1.0, NaN] as float64       refused for integers; `whole_numbers_fault` says that the missing value made them floats

None, NA and NaT of pandas are null in every source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lftj.values.faults import Fault
from lftj.values.type_table import type_of

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_SHOWN = 5


def with_nulls(series: Any) -> NDArray[Any] | pa.Array:
    """The values of a pandas column of a numpy dtype, null where it has NaN."""
    values: NDArray[Any] = series.to_numpy()
    if values.dtype.kind not in "fO":
        return values
    import pandas as pd

    missing = pd.isna(values)  # an index of several levels has no such method
    if not missing.any():
        return values
    if values.dtype.kind == "O":
        values = values.copy()  # the frame is the user's
        values[missing] = None
        return values
    import pyarrow as pa

    return pa.nulls(len(values)) if missing.all() else pa.array(values, mask=missing)


def whole_numbers_fault(values: NDArray[Any], type: str) -> Fault | None:
    """Why a column of floats is not read as `type`, if it holds integers and pandas made them floats; else None."""
    made = type_of(type)
    if values.dtype.kind != "f" or not made.fits_numpy(np.dtype(np.int64)):
        return None
    missing = np.isnan(values)
    there = values[~missing]
    if not missing.any() or not np.isfinite(there).all() or (there != np.trunc(there)).any():
        return None
    keep = 'give its `.astype("Int64")`, which keeps missing values'
    drop = 'drop these rows (`dropna`) or fill them in (`fillna`), and give the `.astype("int64")` of the column'
    return Fault(
        f"has no value in {_rows(np.flatnonzero(missing))}, and so is a {values.dtype}, not {made.article}",
        "pandas turns integers into floats where one is missing, and floats are not turned back silently",
        keep if made.nullable else f"{drop}; or declare it `{made.plain}?`, and {keep}",
    )


def _rows(places: NDArray[np.int64]) -> str:
    """The first of some rows, by number."""
    shown = ", ".join(map(str, places[:ROWS_SHOWN]))
    if len(places) > ROWS_SHOWN:
        return f"rows {shown}, ... (from 0; {len(places)} in all)"
    return f"row{'s' if len(places) > 1 else ''} {shown} (from 0)"
