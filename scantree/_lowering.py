"""What parts become in LLVM's language, where numba's general way says more than kernels need.

Much of what numba writes for kernels is a copy of an array's fields for each element that is read or written, which
LLVM removes, after numba wrote it and LLVM read it. Here an element is read or written by its address, computed from
the few fields that say where it is.

**An index counts from the front.** Of any number that may be negative numba asks whether it is, and adds the length: an
addition and a choice before most reads of memory. Kernels have no such numbers, and do without. Where indices are
checked (`NUMBA_BOUNDSCHECK=1`) a negative one is an `IndexError`, unlike numba's.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from numba.core import ir, types
from numba.core.cgutils import do_boundscheck
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types import BaseTuple  # type: ignore[attr-defined]
from numba.np.arrayobj import load_item, store_item


class _Lower(Lower):
    """numba's lowering, with a short way for elements of arrays and for operators on numbers."""

    _signatures: ClassVar[dict[Any, Any]] = {}

    def _is_element(self, array: Any, index: Any) -> bool:
        """Whether an index of this type names one element of such an array."""
        kinds = index.types if isinstance(index, BaseTuple) else (index,)
        return (
            isinstance(array, types.Array)
            and array.layout == "C"
            and array.ndim == len(kinds)
            and all(isinstance(kind, types.Integer) for kind in kinds)
        )

    def _address(self, array: Any, value: Any, kind: Any, index: Any) -> Any:
        """Where the element of `value` at `index` is."""
        builder = self.builder
        at = value.type.elements
        data, shape = len(at) - 3, len(at) - 2
        kinds = kind.types if isinstance(kind, BaseTuple) else (kind,)
        place = None
        for axis, one in enumerate(kinds):
            part = builder.extract_value(index, axis) if isinstance(kind, BaseTuple) else index
            part = self.context.cast(builder, part, one, types.intp)
            if self.context.enable_boundscheck:
                do_boundscheck(self.context, builder, part, builder.extract_value(value, [shape, axis]), axis)
            if place is not None:
                part = builder.add(builder.mul(place, builder.extract_value(value, [shape, axis])), part)
            place = part
        return builder.gep(builder.extract_value(value, data), [place])

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """`value[index]`."""
        array, kind = self.typeof(value.name), self.typeof(index.name)
        if not self._is_element(array, kind):
            return super().lower_getitem(resty, expr, value, index, signature)
        address = self._address(array, self.loadvar(value.name), kind, self.loadvar(index.name))
        item = load_item(self.context, self.builder, array, address)
        return self.context.cast(self.builder, item, array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """`target[index] = value`."""
        array, kind = self.typeof(target_var.name), self.typeof(index_var.name)
        if not self._is_element(array, kind) or not isinstance(signature.args[2], types.Number | types.Boolean):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.context.cast(
            self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), signature.args[2]
        )
        value = self.context.cast(self.builder, value, signature.args[2], array.dtype)
        address = self._address(array, self.loadvar(target_var.name), kind, self.loadvar(index_var.name))
        store_item(self.context, self.builder, array, value, address)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Any expression; of an array, an element at a constant index is one as any other."""
        if expr.op == "static_getitem" and expr.index_var is not None:
            array, kind = self.typeof(expr.value.name), self.typeof(expr.index_var.name)
            if self._is_element(array, kind):
                return self.lower_getitem(resty, expr, expr.value, expr.index_var, self.fndesc.calltypes[expr])
        return super().lower_expr(resty, expr)

    def lower_inst(self, inst: Any) -> Any:
        """Any statement; of an array, an element at a constant index is one as any other."""
        if isinstance(inst, ir.StaticSetItem):
            array, kind = self.typeof(inst.target.name), self.typeof(inst.index_var.name)
            if self._is_element(array, kind):
                return self.lower_setitem(inst.target, inst.index_var, inst.value, self.fndesc.calltypes[inst])
        return super().lower_inst(inst)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """`lhs op rhs`. What an operator makes of numbers of given types is found out once."""
        signature = self.fndesc.calltypes[expr]
        numbers = all(isinstance(kind, types.Number | types.Boolean) for kind in signature.args)
        if not numbers or op in (operator.pow, operator.ipow):
            return super().lower_binop(resty, expr, op)
        key = op, signature.args
        if key not in self._signatures:
            function = self.context.typing_context.resolve_value_type(op)
            found = function.get_call_type(self.context.typing_context, signature.args, {})
            self._signatures[key] = function, found
        function, found = self._signatures[key]
        sides = [
            self.context.cast(self.builder, self.loadvar(side.name), self.typeof(side.name), kind)
            for side, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        result = self.context.get_function(function, found)(self.builder, sides)
        return self.context.cast(self.builder, result, signature.return_type, resty)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """The pass that lowers parts."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> Any:
        """What lowers them."""
        return _Lower
