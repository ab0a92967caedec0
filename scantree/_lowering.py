"""What parts become in LLVM's language, where numba's general way says more than kernels need.

A third of what numba writes for kernels takes tuples of arrays apart to pass them, array by array and field by field,
and puts them together again; another third is a copy of an array's fields for each element that is read or written.
All of that LLVM removes, after numba wrote it and LLVM read it. So here a tuple of arrays is passed as it is, and an
element is read or written by the address that numba would compute for it, from the few fields that say where it is.

The addresses are those of numba, negative indices included. Where indices are checked (`NUMBA_BOUNDSCHECK=1`), or are
anything but integers, numba's own code is used.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, ClassVar

from llvmlite.ir import Constant
from numba.core import ir, types
from numba.core.callconv import CPUCallConv
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.datamodel import ArgPacker
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types import BaseNamedTuple, BaseTuple  # type: ignore[attr-defined]
from numba.np.arrayobj import fix_integer_index, load_item, store_item


class _Whole:
    """How a value is passed that is passed as it is: a data model, as far as arguments go."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def get_argument_type(self) -> Any:
        """The type of the argument."""
        return self._model.get_value_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        """The argument for `value`."""
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        """The value of an argument."""
        return value


class _Models:
    """Data models by type, for arguments."""

    def __init__(self, models: Any) -> None:
        self._models = models

    def lookup(self, kind: Any) -> Any:
        """How values of type `kind` are passed. Functions of numba's own, which take no such tuples, see no change."""
        model = self._models.lookup(kind)
        arrays = isinstance(kind, BaseNamedTuple) and any(isinstance(part, types.Array) for part in kind)
        return _Whole(model) if arrays else model


class LoweringTarget(CPUContext):
    """numba's target, with all that it knows, but for how arguments are passed."""

    def __init__(self, shared: CPUContext) -> None:
        self.__dict__ = copy.copy(shared.__dict__)
        # Code of numba's that was compiled for itself passes arguments in its own way.
        self.cached_internal_func: dict[Any, Any] = {}

    @property
    def call_conv(self) -> Any:
        """How functions are called."""
        return CPUCallConv(self)

    def get_arg_packer(self, fe_args: Any) -> Any:
        """How arguments of these types are passed."""
        return ArgPacker(_Models(self.data_model_manager), fe_args)


class _Lower(Lower):
    """numba's lowering, with a short way for elements of arrays and for operators on numbers."""

    _signatures: ClassVar[dict[Any, Any]] = {}

    def _is_element(self, array: Any, index: Any) -> bool:
        """Whether an index of this type names one element of such an array, unchecked."""
        kinds = index.types if isinstance(index, BaseTuple) else (index,)
        return (
            isinstance(array, types.Array)
            and array.layout == "C"
            and array.ndim == len(kinds)
            and all(isinstance(kind, types.Integer) for kind in kinds)
            and not self.context.enable_boundscheck
        )

    def _address(self, array: Any, value: Any, kind: Any, index: Any) -> Any:
        """Where the element of `value` at `index` is."""
        builder = self.builder
        at = value.type.elements
        data, shape = len(at) - 3, len(at) - 2
        kinds = kind.types if isinstance(kind, BaseTuple) else (kind,)
        loc = None
        for axis, one in enumerate(kinds):
            part = builder.extract_value(index, axis) if isinstance(kind, BaseTuple) else index
            size = None
            if axis > 0 or one.signed:
                size = builder.extract_value(value, [shape, axis])
            if one.signed and isinstance(part, Constant) and part.constant >= 0:
                part = self.context.cast(builder, part, one, types.intp)
            else:
                part = fix_integer_index(self.context, builder, one, part, size)
            loc = part if loc is None else builder.add(builder.mul(loc, size), part)
        return builder.gep(builder.extract_value(value, data), [loc])

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
