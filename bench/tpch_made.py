"""TPC-H's eight tables, generated here: for tests, and for machines that have no generator of the specification.

    made(0.001, seed=32)      {"region": Arrow table, ..., "lineitem": Arrow table}

Numbers of rows, keys, dates, prices and what depends on what are as the specification says (1,500,000 orders at scale
1, of two thirds of the customers; 1 to 7 lines each; 4 suppliers a part). Texts are drawn from a few words only, and
with a preference for what the 22 queries ask for, so that each has an answer that is not null at scale 0.001 already.
The same scale and seed, the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Tables = dict[str, Any]

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
#: Nations and their regions, by key.
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
#: Nations that queries name come first: where there are ten suppliers, each has one.
FIRST = (7, 6, 2, 3, 20, 18, 8, 24, 23, 10)
COLOURS = ("green", "forest", "almond", "blue", "coral", "ivory", "khaki", "lace", "navy", "plum")
KINDS = ("ECONOMY", "PROMO", "MEDIUM", "STANDARD")
FINISHES = ("ANODIZED", "POLISHED", "BURNISHED")
METALS = ("STEEL", "BRASS", "TIN")
BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45", "Brand#14")
CONTAINERS = ("SM BOX", "MED BOX", "LG BOX", "SM CASE", "MED BAG", "LG CASE")
SIZES = (15, 3, 1, 5, 9, 14, 19, 23, 36, 45, 49, 50, 10)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
REMARKS = (
    "carefully packed",
    "quickly sent",
    "special handling requests",
    "furiously ironic deposits",
    "even accounts",
)
DAYS, TODAY = (8_035, 10_440), 9_298  # 1992-01-01 to 1998-08-02, and 1995-06-17: days since 1970
BULK = 97  # every so many orders one has seven lines of 45 and more


def made(scale: float, seed: int = 32) -> Tables:
    """The tables at a scale, of 0.001 or more."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    suppliers, parts, customers, orders = (int(scale * n) for n in (10_000, 200_000, 150_000, 1_500_000))
    nations = np.array([*FIRST, *(n for n in range(len(NATIONS)) if n not in FIRST)])
    made: Tables = {
        "region": _table(r_regionkey=np.arange(5), r_name=pa.array(REGIONS), r_comment=_some(rng, REMARKS, 5)),
        "nation": _table(
            n_nationkey=np.arange(25),
            n_name=pa.array([name for name, _ in NATIONS]),
            n_regionkey=np.array([region for _, region in NATIONS]),
            n_comment=_some(rng, REMARKS, 25),
        ),
    }
    key = np.arange(1, suppliers + 1)
    nation = nations[(key - 1) % 25]
    remarks = [*REMARKS, "Customer told of slow Complaints"]
    made["supplier"] = _table(
        s_suppkey=key,
        s_name=_named("Supplier", key),
        s_address=_named("street", rng.integers(1, 10_000, suppliers)),
        s_nationkey=nation,
        s_phone=_phones(rng, nation),
        s_acctbal=_money(rng.integers(-99_999, 1_000_000, suppliers)),
        s_comment=pa.array([remarks[-1] if k % 7 == 3 else remarks[k % 5] for k in key.tolist()]),
    )
    made |= _of_parts(rng, parts, suppliers)
    key = np.arange(1, customers + 1)
    nation = nations[rng.integers(0, 25, customers)]
    made["customer"] = _table(
        c_custkey=key,
        c_name=_named("Customer", key),
        c_address=_named("street", rng.integers(1, 10_000, customers)),
        c_nationkey=nation,
        c_phone=_phones(rng, nation),
        c_acctbal=_money(rng.integers(-99_999, 1_000_000, customers)),
        c_mktsegment=_some(rng, SEGMENTS, customers),
        c_comment=_some(rng, REMARKS, customers),
    )
    return made | _of_orders(rng, orders, customers, parts, suppliers)


def _of_parts(rng: np.random.Generator, parts: int, suppliers: int) -> Tables:
    import pyarrow as pa

    key = np.arange(1, parts + 1)
    brand = rng.integers(0, len(BRANDS), parts)
    part = _table(
        p_partkey=key,
        p_name=_joined(_some(rng, COLOURS, parts), _some(rng, COLOURS, parts)),
        p_mfgr=_named("Manufacturer", brand + 1),
        p_brand=pa.array(BRANDS).take(pa.array(brand)),
        p_type=_joined(*(_some(rng, words, parts) for words in (KINDS, FINISHES, METALS))),
        p_size=np.array(SIZES)[rng.integers(0, len(SIZES), parts)],
        p_container=_some(rng, CONTAINERS, parts),
        p_retailprice=_money(_price_of(key)),
        p_comment=_some(rng, REMARKS, parts),
    )
    of, which = np.repeat(key, 4), np.tile(np.arange(4), parts)
    supplied = _table(
        ps_partkey=of,
        ps_suppkey=_supplier_of(of, which, suppliers),
        ps_availqty=rng.integers(1, 10_000, 4 * parts),
        ps_supplycost=_money(rng.integers(100, 100_001, 4 * parts)),
        ps_comment=_some(rng, REMARKS, 4 * parts),
    )
    return {"part": part, "partsupp": supplied}


def _of_orders(rng: np.random.Generator, orders: int, customers: int, parts: int, suppliers: int) -> Tables:
    import pyarrow as pa

    number = np.arange(orders)
    key = number // 8 * 32 + number % 8 + 1
    buyers = np.arange(1, customers + 1)
    buyers = buyers[buyers % 3 > 0]
    day = rng.integers(DAYS[0], DAYS[1] - 151, orders)
    count = np.where(number % BULK == BULK - 1, 7, rng.integers(1, 8, orders))
    at = np.repeat(number, count)
    lines = len(at)
    part = rng.integers(1, parts + 1, lines)
    bulk = at % BULK == BULK - 1
    quantity = np.where(bulk, rng.integers(45, 51, lines), rng.integers(1, 51, lines))
    price = quantity * _price_of(part)
    discount, tax = rng.integers(0, 11, lines), rng.integers(0, 9, lines)
    shipped = day[at] + rng.integers(1, 122, lines)
    received = shipped + rng.integers(1, 31, lines)
    returned = np.where(received <= TODAY, rng.integers(0, 2, lines), 2)
    opened = shipped > TODAY
    still = np.bincount(at, opened, orders)
    total = np.bincount(at, price * (100 + tax) * (100 - discount) / 10_000.0, orders)
    lineitem = _table(
        l_orderkey=key[at],
        l_partkey=part,
        l_suppkey=_supplier_of(part, rng.integers(0, 4, lines), suppliers),
        l_linenumber=np.arange(lines) - np.repeat(np.cumsum(count) - count, count) + 1,
        l_quantity=_money(quantity * 100),
        l_extendedprice=_money(price),
        l_discount=_money(discount),
        l_tax=_money(tax),
        l_returnflag=pa.array(("R", "A", "N")).take(pa.array(returned)),
        l_linestatus=pa.array(("F", "O")).take(pa.array(opened.astype(np.int64))),
        l_shipdate=_dates(shipped),
        l_commitdate=_dates(day[at] + rng.integers(30, 91, lines)),
        l_receiptdate=_dates(received),
        l_shipinstruct=_some(rng, INSTRUCTIONS, lines),
        l_shipmode=_some(rng, MODES, lines),
        l_comment=_some(rng, REMARKS, lines),
    )
    placed = _table(
        o_orderkey=key,
        o_custkey=buyers[rng.integers(0, len(buyers), orders)],
        o_orderstatus=pa.array(("F", "O", "P")).take(pa.array(np.where(still == 0, 0, np.where(still == count, 1, 2)))),
        o_totalprice=_money(np.rint(total).astype(np.int64)),
        o_orderdate=_dates(day),
        o_orderpriority=_some(rng, PRIORITIES, orders),
        o_clerk=_named("Clerk", rng.integers(1, max(2, orders // 1_500), orders)),
        o_shippriority=np.zeros(orders, np.int64),
        o_comment=_some(rng, REMARKS, orders),
    )
    return {"orders": placed, "lineitem": lineitem}


def _price_of(part: Ints) -> Ints:
    """The retail price of a part, in cents."""
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)


def _supplier_of(part: Ints, which: Ints, suppliers: int) -> Ints:
    """The supplier number `which`, 0 to 3, of a part."""
    return (part + which * (suppliers // 4) + (part - 1) // suppliers) % suppliers + 1


# -- columns -----------------------------------------------------------------------------------------------------------


def _table(**columns: Any) -> Any:
    import pyarrow as pa

    numbers = {name: pa.array(c.astype(np.int32)) for name, c in columns.items() if isinstance(c, np.ndarray)}
    return pa.table({**columns, **numbers})


def _some(rng: np.random.Generator, words: Sequence[str], n: int) -> Any:
    import pyarrow as pa

    return pa.array(words).take(pa.array(rng.integers(0, len(words), n)))


def _joined(*columns: Any) -> Any:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*columns, " ")


def _named(kind: str, number: Ints) -> Any:
    import pyarrow as pa

    return pa.array([f"{kind}#{k:09}" for k in number.tolist()])


def _phones(rng: np.random.Generator, nation: Ints) -> Any:
    import pyarrow as pa

    rest = rng.integers(100, 1_000, (len(nation), 3)).tolist()
    return pa.array([f"{n + 10}-{a}-{b}-{c}" for n, (a, b, c) in zip(nation.tolist(), rest, strict=True)])


def _money(hundredths: Ints) -> Any:
    """Decimals of two places."""
    import pyarrow as pa

    wide = np.stack([hundredths, np.where(hundredths < 0, -1, 0)], axis=1).astype(np.int64)
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(hundredths), [None, pa.py_buffer(wide)])


def _dates(days: Ints) -> Any:
    import pyarrow as pa

    return pa.array(days.astype(np.int32)).view(pa.date32())
