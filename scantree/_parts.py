"""How a part is made: numba's way from Python to LLVM's language, without what kernels do not need.

**Operators.** To type `a + b` numba tries all overloads of `+` one after the other, those for texts, lists and sets
too, which is most of the time that inference takes. What an operator, or a function of numba's, makes of given types
never changes, so it is found out once (`_Typing`).

**Passes.** Kernels use no closures, comprehensions, `with` blocks, array expressions or object mode: the passes that
look for these are left out. What is left is done in half of the time.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numba.core import compiler
from numba.core.compiler_machinery import PassManager, _pass_registry
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.typed_passes import (
    IRLegalization,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.types import Array, Dispatcher, Type
from numba.core.typing import Context
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from scantree._linking import Part
from scantree._lowering import KernelLowering


class _Typing(Context):
    """numba's typing context, all of whose state it shares; it remembers what functions make of which types."""

    _known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, shared: Context) -> None:
        self.__dict__ = shared.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of `func` for arguments of types `args`."""
        if kws or isinstance(func, Dispatcher) or not all(isinstance(a, Type) for a in args):
            return super().resolve_function_type(func, args, kws)
        # By identity: lowering asks the very type what it was resolved to. Kept, so that no other one takes its place.
        key = id(func), tuple(args)
        if key not in self._known:
            signature = super().resolve_function_type(func, args, kws)
            if signature is None:
                return None
            self._known[key] = func, signature
        return self._known[key][1]

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        """None for arrays, of which an element at a constant index is one as any other."""
        return None if isinstance(value, Array) else super().resolve_static_getitem(value, index)

    def resolve_static_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """As `resolve_static_getitem`."""
        return None if isinstance(target, Array) else super().resolve_static_setitem(target, index, value)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of `target[index] = value`."""
        key = "setitem", target, index, value
        if key not in self._known:
            self._known[key] = super().resolve_setitem(target, index, value)
        return self._known[key]


class _Flags(compiler.Flags):
    """numba's flags, which it looks up thousands of times, compared by what is set."""

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._values == other._values


class _Passes(PassManager):
    """Runs the passes of a part, without telling anybody, checking them or timing them.

    Nor are variables looked at again after each: the passes that ask when they live see to that themselves.
    """

    def run(self, state: Any) -> None:
        """Run all passes over `state`."""
        for kind, _ in self.passes:
            one = _pass_registry.get(kind).pass_inst
            one.analysis = self._analysis
            one.run_pass(state)


class _PartPasses(compiler.CompilerBase):
    """What is done to a kernel."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline there is."""
        passes = _Passes("kernel")
        for one in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            RewriteSemanticConstants,
            DeadBranchPrune,
            GenericRewrites,
            ReconstructSSA,
            NopythonTypeInference,
            PreLowerStripPhis,
            IRLegalization,
            KernelLowering,
            NoPythonBackend,
        ):
            passes.add_pass(one, "")
        passes.finalize()
        return [passes]


class PartCompiler(_FunctionCompiler):
    """Compiles kernels to parts."""

    def __init__(self, function: Any, described: Any, options: Any, types: Any) -> None:
        super().__init__(function, described, options, types, _PartPasses)

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags = _Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        target = self.targetdescr.target_context
        return compiler.compile_extra(
            _Typing(self.targetdescr.typing_context),
            target,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=self._customize_flags(flags),
            locals=self.locals,
            library=Part(target.codegen(), self.py_func.__qualname__),
            pipeline_class=self.pipeline_class,
        )
