"""Packed arguments: arrays that stay where they are for many calls of a kernel, as one array of their addresses.

At each call from Python numba looks at every argument, some 100 ns for an array: over 25 of them a kernel takes 3 µs
before it begins, more than it works for a commit of one row. So what stays is named once:

    packed = PackedArguments(mem, refs, heap)      holds the arrays
    kernel(packed.words, batch)           one argument for all three
    mem = words_at(words, 0)              in the kernel: the first of them, int64[n]

Of each array there are CELLS words: its address, and its lengths. Whoever replaces an array packs again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

CELLS = 3


class PackedArguments:
    """Contiguous arrays of one or two dimensions, and `words` int64[CELLS * n]: where they are."""

    __slots__ = ("_arrays", "words")

    def __init__(self, *arrays: npt.NDArray[Any]) -> None:
        self._arrays = arrays
        self.words = np.zeros(CELLS * len(arrays), np.int64)
        for i, array in enumerate(arrays):
            if not array.flags.c_contiguous or array.ndim > 2:
                raise ValueError(f"contiguous arrays of one or two dimensions expected; number {i} is not")
            self.words[CELLS * i : CELLS * i + 1 + array.ndim] = (array.ctypes.data, *array.shape)


if config.DISABLE_JIT:

    def _view(words: Any, i: int, kind: Any, dimensions: int) -> Any:
        """Array number `i` of those that are packed."""
        address, *lengths = (int(word) for word in words[CELLS * i : CELLS * i + 1 + dimensions])
        count = int(np.prod(lengths))
        if not count:
            return np.empty(lengths, kind)
        held = (np.ctypeslib.as_ctypes_type(kind) * count).from_address(address)
        return np.frombuffer(held, kind).reshape(lengths)

    def words_at(words: Any, i: Any) -> Any:
        """Array number `i` of those that are packed, int64[n]."""
        return _view(words, i, np.int64, 1)

    def table_at(words: Any, i: Any) -> Any:
        """Array number `i` of those that are packed, int64[n, m]."""
        return _view(words, i, np.int64, 2)

    def counts_at(words: Any, i: Any) -> Any:
        """Array number `i` of those that are packed, int32[n]."""
        return _view(words, i, np.int32, 1)

else:

    def _reader(element: Any, dimensions: int) -> Any:
        """What makes a kernel's array of the words about it."""
        kind: Any = types.Array(element, dimensions, "C")

        def at(typingctx: Any, words: Any, i: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                from numba.np import arrayobj  # only who compiles needs it

                word = ir.IntType(64)
                cells = context.make_array(signature.args[0])(context, builder, args[0]).data
                first = builder.mul(args[1], word(CELLS))
                address, *lengths = (
                    builder.load(builder.gep(cells, [builder.add(first, word(k))])) for k in range(1 + dimensions)
                )
                size = word(element.bitwidth // 8)
                strides = [*(builder.mul(length, size) for length in lengths[1:]), size]
                made = context.make_array(kind)(context, builder)
                arrayobj.populate_array(
                    made,
                    data=builder.inttoptr(address, made.data.type),
                    shape=cgutils.pack_array(builder, lengths),
                    strides=cgutils.pack_array(builder, strides),
                    itemsize=size,
                    meminfo=None,
                )
                return made._getvalue()

            return kind(words, types.int64), codegen

        return intrinsic(at)

    words_at = _reader(types.int64, 1)
    table_at = _reader(types.int64, 2)
    counts_at = _reader(types.int32, 1)
