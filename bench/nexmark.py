"""Nexmark's events: persons, auctions and bids, 1 : 3 : 46, in the order of time. The same seed, the same events.

    Events(seed=7).batch(first, count)     {"person": batch, "auction": batch, "bid": batch} of events first, ...

Every value is a function of the seed and the number of its event, so that events are the same however they are cut into
batches. Ids are 1000, 1001, ... by kind. `date_time` is in milliseconds, with `rate` events a second; `disorder`
milliseconds at most are taken off it, at random. Every other bid is on a hot auction (the newest whose number is a
multiple of 100) and three in four come from a hot bidder; sellers likewise; all others are among the newest 100
auctions and 1,000 persons. Prices are log-uniform from 1 to 10^6, in cents. An auction runs for at most twice the time
in which 100 of them open. Taken from the generator of Apache Beam's and Flink's Nexmark; there bids and auctions may
also name a person or auction that comes a little later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

PERSONS, AUCTIONS, BIDS = 1, 3, 46
PERIOD = PERSONS + AUCTIONS + BIDS
RATE = 10_000
START = 1_436_918_400_000
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1_000, 10, 5
HOT, NEW_AUCTIONS, NEW_PERSONS = 100, 100, 1_000
CHANNELS = 10_000
NAMED = ("Google", "Facebook", "Baidu", "Apple")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")

COLUMNS: dict[str, dict[str, object]] = {
    "person": {
        "id": int, "name": str, "email": str, "credit_card": str, "city": str, "state": str, "date_time": int,
        "extra": str,
    },
    "auction": {
        "id": int, "item": str, "description": str, "initial_bid": int, "reserve": int, "date_time": int,
        "expires": int, "seller": int, "category": int, "extra": str,
    },
    "bid": {
        "auction": int, "bidder": int, "price": int, "channel": str, "url": str, "date_time": int, "extra": str,
    },
}  # fmt: skip

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzabcdef", np.uint8)
_DIGITS = np.frombuffer(b"0123456789012345", np.uint8)


class Events:
    """The events of a seed, `rate` of them a second. `disorder`: milliseconds by which the time of one is set back."""

    def __init__(self, seed: int = 7, *, rate: int = RATE, disorder: int = 0) -> None:
        import pyarrow as pa

        self.seed, self.rate, self.disorder = seed, rate, disorder
        self._longest = max(2, 2 * NEW_AUCTIONS * PERIOD * 1_000 // (AUCTIONS * rate))
        numbers = np.arange(len(NAMED) + CHANNELS)
        folders = _letters(self._random(numbers, 1), 16)
        self._channels = pa.array([*NAMED, *(f"channel-{i}" for i in range(CHANNELS))])
        self._urls = pa.array(
            [
                f"https://www.nexmark.com/{text[:5]}/{text[5:10]}/{text[10:15]}/item.htm?query=1"
                + ("" if i < len(NAMED) else f"&channel_id={(i * 7919) % 1_000_003}")
                for i, text in enumerate(folders.to_pylist())
            ]
        )
        self._names = pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])
        self._states, self._cities = pa.array(STATES), pa.array(CITIES)

    def batch(self, first: int, count: int) -> dict[str, Any]:
        """The record batches of events `first` to `first + count`, by stream. A stream without events has no rows."""
        number = np.arange(first, first + count)
        epoch, offset = np.divmod(number, PERIOD)
        time = START + number * 1_000 // self.rate
        if self.disorder:
            time = time - self._below(number, 2, self.disorder + 1)
        is_person, is_bid = offset < PERSONS, offset >= PERSONS + AUCTIONS
        is_auction = ~is_person & ~is_bid
        return {
            "person": self._persons(number[is_person], epoch[is_person], time[is_person]),
            "auction": self._auctions(number[is_auction], epoch[is_auction], offset[is_auction], time[is_auction]),
            "bid": self._bids(number[is_bid], epoch[is_bid], time[is_bid]),
        }

    def _persons(self, number: Ints, epoch: Ints, time: Ints) -> Any:
        import pyarrow as pa

        mail = pa.compute.binary_join_element_wise(_letters(self._random(number, 3), 8), "@example.com", "")
        return pa.record_batch(
            {
                "id": FIRST_ID + epoch,
                "name": self._names.take(pa.array(self._below(number, 4, len(self._names)))),
                "email": mail,
                "credit_card": _texts(_DIGITS[self._bytes(number, 5, 16) & 15]),
                "city": self._cities.take(pa.array(self._below(number, 6, len(CITIES)))),
                "state": self._states.take(pa.array(self._below(number, 7, len(STATES)))),
                "date_time": time,
                "extra": _texts(_LETTERS[self._bytes(number, 8, 16) & 31]),
            }
        )

    def _auctions(self, number: Ints, epoch: Ints, offset: Ints, time: Ints) -> Any:
        import pyarrow as pa

        auction = epoch * AUCTIONS + offset - PERSONS
        initial = self._price(number, 12)
        return pa.record_batch(
            {
                "id": FIRST_ID + auction,
                "item": _texts(_LETTERS[self._bytes(number, 10, 16) & 31]),
                "description": _texts(_LETTERS[self._bytes(number, 11, 32) & 31]),
                "initial_bid": initial,
                "reserve": initial + self._price(number, 13),
                "date_time": time,
                "expires": time + 1 + self._below(number, 14, self._longest),
                "seller": FIRST_ID + self._recent(number, 15, epoch, NEW_PERSONS, hot=3),
                "category": FIRST_CATEGORY + self._below(number, 17, CATEGORIES),
                "extra": _texts(_LETTERS[self._bytes(number, 18, 16) & 31]),
            }
        )

    def _bids(self, number: Ints, epoch: Ints, time: Ints) -> Any:
        import pyarrow as pa

        # Half of the bids come through one of the named channels, the others through one of the long tail.
        tail = self._below(number, 20, 2) * (len(NAMED) + self._below(number, 21, CHANNELS))
        channel = pa.array(np.where(tail > 0, tail, self._below(number, 22, len(NAMED))))
        return pa.record_batch(
            {
                "auction": FIRST_ID + self._recent(number, 23, epoch * AUCTIONS + AUCTIONS - 1, NEW_AUCTIONS, hot=2),
                "bidder": FIRST_ID + self._recent(number, 25, epoch, NEW_PERSONS, hot=3),
                "price": self._price(number, 27),
                "channel": self._channels.take(channel),
                "url": self._urls.take(channel),
                "date_time": time,
                "extra": _texts(_LETTERS[self._bytes(number, 28, 16) & 31]),
            }
        )

    # -- random numbers -----------------------------------------------------------------------------------------------

    def _random(self, number: Ints, salt: int) -> Words:
        """64 random bits for each event (splitmix64 of its number, the seed and `salt`)."""
        with np.errstate(over="ignore"):
            word = number.astype(np.uint64) * np.uint64(64) + np.uint64(salt)
            word += np.uint64((self.seed * 0xA0761D6478BD642F) & (2**64 - 1))
            word *= np.uint64(0x9E3779B97F4A7C15)
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return word ^ (word >> np.uint64(31))

    def _below(self, number: Ints, salt: int, bound: int) -> Ints:
        """A number from 0 to bound - 1 for each event."""
        return ((self._random(number, salt) >> np.uint64(32)) % np.uint64(bound)).astype(np.int64)

    def _bytes(self, number: Ints, salt: int, width: int) -> npt.NDArray[np.uint8]:
        """`width` random bytes for each event; a multiple of 8."""
        words = np.stack([self._random(number, salt + 32 * i) for i in range(width // 8)], axis=1)
        found: npt.NDArray[np.uint8] = words.view(np.uint8).reshape(len(number), width)
        return found

    def _price(self, number: Ints, salt: int) -> Ints:
        share = (self._random(number, salt) >> np.uint64(11)).astype(np.float64) / 2.0**53
        cents: Ints = np.rint(np.power(10.0, share * 6) * 100).astype(np.int64)
        return cents

    def _recent(self, number: Ints, salt: int, newest: Ints, among: int, *, hot: int) -> Ints:
        """One of the `among` newest, or the hot one: `hot` times in `hot` + 1, of 2 every other time."""
        times = 2 if hot == 2 else hot + 1
        cold = newest - self._below(number, salt, among) % np.minimum(newest + 1, among)
        made: Ints = np.where(self._below(number, salt + 1, times) > 0, newest // HOT * HOT, cold)
        return made


def _letters(words: Words, width: int) -> Any:
    """Texts of `width` letters out of random words, as an Arrow array; letters repeat after eight."""
    return _texts(_LETTERS[np.tile(words[:, None].view(np.uint8), (1, -(-width // 8)))[:, :width] & 31])


def _texts(letters: npt.NDArray[np.uint8]) -> Any:
    """Rows of `letters` uint8[n, width] as an Arrow array of texts."""
    import pyarrow as pa

    n, width = letters.shape
    ends = np.arange(n + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(letters)))
