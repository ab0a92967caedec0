"""pandas at the jobs of `bench.jobs`: the frames change, and the answers are computed anew.

Amounts are whole cents here, as columns of decimals are objects of Python. What a change of prices leaves as it was
(the stages of the parts) is computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import compute

from bench.job_changes import Change, Job, Tables

Frames = dict[str, pd.DataFrame]
DAYS_3, HOUR = pd.Timedelta(days=3), "h"


def fraud_rings(t: Frames, kept: dict[str, Any]) -> Frames:
    """Rings of payments, suspect ones, and what their members moved."""
    p = t["payment"]
    two = p.merge(p, left_on="payee", right_on="payer", suffixes=("", "_j"))
    two = two[
        (two["at"] < two["at_j"])
        & (two["at_j"] <= two["at"] + DAYS_3)
        & (two["amount_j"] <= two["amount"])
        & (two["amount_j"] * 10 >= two["amount"] * 9)
    ]
    passed = pd.DataFrame({"i": two["id"], "j": two["id_j"]})
    three = passed.merge(passed.rename(columns={"i": "j", "j": "k"}), on="j")
    three = three.merge(p.add_suffix("_i"), left_on="i", right_on="id_i")
    three = three.merge(p.add_suffix("_j"), left_on="j", right_on="id_j")
    three = three.merge(p.add_suffix("_k"), left_on="k", right_on="id_k")
    three = three[(three["payee_k"] == three["payer_i"]) & (three["at_k"] <= three["at_i"] + DAYS_3)]
    hand = t["login"].merge(t["login"], on="device")[["account_x", "account_y"]].drop_duplicates()
    hand.columns = ["a", "b"]
    linked = closed(hand)
    known = pd.MultiIndex.from_frame(linked)
    sides = (("payer_i", "payee_i"), ("payee_i", "payee_j"), ("payer_i", "payee_j"))
    hits = [pd.MultiIndex.from_frame(three[list(side)]).isin(known) for side in sides]
    suspect = three[(three["payer_i"] != three["payee_j"]) & (hits[0] | hits[1] | hits[2])][["i", "j", "k"]]
    member = p[p["id"].isin(pd.unique(suspect.to_numpy().ravel()))]["payer"]
    moved = p[p["payer"].isin(member)].groupby("payer", as_index=False)["amount"].sum()
    return {"ring": three[["i", "j", "k"]], "suspect": suspect, "moved": moved}


def closed(pairs: pd.DataFrame) -> pd.DataFrame:
    """The transitive closure of pairs (a, b)."""
    found = new = pairs
    while len(new):
        step = new.merge(pairs.rename(columns={"a": "b", "b": "c"}), on="b")[["a", "c"]].rename(columns={"c": "b"})
        grown = pd.concat([found, step]).drop_duplicates(ignore_index=True)
        new, found = grown.iloc[len(found) :], grown
    return found


def bill_of_materials(t: Frames, kept: dict[str, Any]) -> Frames:
    """The own costs, and stage by stage those of the pieces."""
    own, uses = t["own"].set_index("part")["cost"].sort_index(), t["uses"]
    if not kept:
        height = pd.Series(0, own.index)
        while True:
            higher = (uses["piece"].map(height) + 1).groupby(uses["part"]).max().reindex(own.index, fill_value=0)
            if higher.equals(height):
                break
            height = higher
        kept["stages"] = [uses[uses["part"].map(height) == h] for h in range(1, height.max() + 1)]
    total = own.copy()
    for stage in kept["stages"]:
        below = (stage["times"] * total.loc[stage["piece"]].to_numpy()).groupby(stage["part"]).sum()
        total.loc[below.index] += below
    found = total.rename_axis("part").reset_index()
    return {"total": found, "quote": found[~found["part"].isin(uses["piece"])]}


def access_rights(t: Frames, kept: dict[str, Any]) -> Frames:
    """The groups of each user, the folders within each, grants without denials."""
    under = closed(t["part"].set_axis(["a", "b"], axis=1)).set_axis(["team", "h"], axis=1)
    above = t["member"].merge(under, on="team")[["who", "h"]].rename(columns={"h": "team"})
    belongs = pd.concat([t["member"], above]).drop_duplicates()
    inside = t["inside"].set_axis(["a", "b"], axis=1)
    every = pd.unique(inside.to_numpy().ravel())
    within = pd.concat([closed(inside), pd.DataFrame({"a": every, "b": every})]).set_axis(["f", "folder"], axis=1)

    def reached(rights: pd.DataFrame) -> pd.DataFrame:
        return belongs.merge(rights.merge(within, on="folder"), on="team")[["who", "f"]].drop_duplicates()

    granted, denied = reached(t["grant"]), reached(t["deny"])
    both = granted.merge(denied, how="left", indicator=True)
    return {"may": both[both["_merge"] == "left_only"][["who", "f"]]}


def change_feed(t: Frames, kept: dict[str, Any]) -> Frames:
    """The five views."""
    orders = t["orders"]
    stands = orders[orders["status"] != "cancelled"]
    spent = stands.groupby("customer", as_index=False)["cents"].sum()
    sent = orders[orders["status"] == "sent"].merge(t["category"], on="product")
    return {
        "by_status": orders.groupby("status", as_index=False).size(),
        "spent": spent,
        "good": spent[spent["cents"] > 30_000][["customer"]],
        "sold": sent.groupby("name", as_index=False)["cents"].sum(),
        "dearest": stands.groupby("product", as_index=False)["cents"].max(),
    }


def time_buckets(t: Frames, kept: dict[str, Any]) -> Frames:
    """Counts by the hour."""
    request = t["request"]
    hour = request["at"].dt.floor(HOUR)
    hits = hour.value_counts().rename_axis("h").rename("n").reset_index()
    failures = hour[request["status"] >= 500].value_counts().rename_axis("h").rename("n").reset_index()
    both = failures.merge(hits, on="h")
    return {"hits": hits, "failures": failures, "bad": both[both["n_x"] * 50 > both["n_y"]][["h"]]}


COMPUTE: dict[str, Callable[[Frames, dict[str, Any]], Frames]] = {
    function.__name__: function
    for function in (fraud_rings, bill_of_materials, access_rights, change_feed, time_buckets)
}


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A table as a frame: decimals as whole cents."""
    for at, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            cents = compute.multiply(table[field.name], pa.scalar(Decimal(100), pa.decimal128(3, 0)))
            table = table.set_column(at, field.name, cents.cast(pa.int64()))
    return table.to_pandas()


class PandasJob:
    """Frames; rows that come are appended when they are needed."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._frames: Frames = {}
        self._come: dict[str, list[pd.DataFrame]] = {}
        self._kept: dict[str, Any] = {}
        self._found: Frames = {}

    def load(self, tables: Tables) -> None:
        """Make the frames."""
        self._frames = {name: frame_of(table) for name, table in tables.items()}

    def answer(self) -> None:
        """Compute the answers anew."""
        for name in list(self._come):
            self._append(name)
        self._found = COMPUTE[self._job.name](self._frames, self._kept)

    def apply(self, change: Change) -> None:
        """Erase and insert."""
        for name, table in change.gone.items():
            self._append(name)
            rows, frame = frame_of(table), self._frames[name]
            if len(rows) == 1:
                goes = (frame[list(rows.columns)] == rows.iloc[0]).all(axis=1)
            else:
                goes = frame[rows.columns[0]].isin(rows.iloc[:, 0])
            self._frames[name] = frame[~goes]
        for name, table in change.come.items():
            self._come.setdefault(name, []).append(frame_of(table))

    def answers(self) -> dict[str, Any]:
        """The answers."""
        names = self._job.answers
        return {name: pa.Table.from_pandas(self._found[name], preserve_index=False) for name in names}

    def _append(self, name: str) -> None:
        if name in self._come:
            self._frames[name] = pd.concat([self._frames[name], *self._come.pop(name)], ignore_index=True)
