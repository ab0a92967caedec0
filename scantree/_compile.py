"""How a kernel becomes machine code: as a *part* of the kernels that call it, and as an *entry* that Python calls.

numba makes of every function it meets, small helpers included, a whole program: wrappers for Python and C, a module
into which all callees are linked, optimised once more and made machine code, and all of that is written to disk. Of
the kernels that evaluation needs Python calls one in ten. So here a kernel that another kernel calls is a part: its
types are inferred, it is lowered to LLVM's language, and left at that. What Python calls is an entry: the parts it
reaches are linked into one module, once each, and that module is optimised and made machine code. A kernel may be
both. Only entries are kept on disk, as machine code alone: nothing is linked with them later.

**Operators.** To type `a + b` numba tries all overloads of `+` one after the other, those for texts, lists and sets
too, which is most of the time that inference takes. What an operator, or a function of numba's, makes of given types
never changes, so it is found out once (`_Typing`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from llvmlite import binding as llvm
from numba.core import compiler, event, sigutils
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.types import Dispatcher, Type, unliteral  # type: ignore[attr-defined]
from numba.core.typing import Context, make_concrete_template

# Of the variables in which numba keeps what a function needs of Python.
ENVIRONMENT = "_ZN08NumbaEnv"


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


class _Part(JITCodeLibrary):
    """The code of one kernel as entries link it: never optimised or made machine code by itself."""

    def add_linking_library(self, library: Any) -> None:
        """The kernel calls what is in `library`."""
        self._linking_libraries.append(library)

    def add_llvm_module(self, module: Any) -> None:
        """Add `module` as it is; it is optimised where it is linked."""
        self._final_module.link_in(module)


class _Entry(JITCodeLibrary):
    """The code of a kernel, of all that it calls, and of the wrapper that Python calls."""

    def link(self, part: _Part) -> None:
        """Link `part` and whatever it reaches, each once, so that what is inlined everywhere vanishes."""
        module = self._final_module
        seen: set[Any] = set()
        todo: list[Any] = [part]
        while todo:
            library = todo.pop()
            # Kernels count no references: numba's runtime is nothing to them.
            if library in seen or library is rtsys.library:
                continue
            seen.add(library)
            if isinstance(library, _Part):
                module.link_in(library._final_module, preserve=True)
                todo.extend(reversed(library._linking_libraries))
            else:
                module.link_in(library._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = llvm.Linkage.linkonce_odr
        for variable in module.global_variables:
            if variable.name.startswith(ENVIRONMENT):
                variable.linkage = llvm.Linkage.linkonce_odr

    def _optimize_final_module(self) -> None:
        """Once: numba optimises twice to drop reference counts, of which kernels have none."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def serialize_using_object_code(self) -> Any:
        """Machine code, and in the place of LLVM's code the names of what Python looks for in it."""
        names = [
            f.name for f in self._final_module.functions if f.linkage == llvm.Linkage.external and not f.is_declaration
        ]
        stub = llvm.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in names))
        return self.name, "object", (self._get_compiled_object(), stub.as_bitcode())


class _PartCompiler(_FunctionCompiler):
    """Compiles kernels to parts."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags = compiler.Flags()
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
            library=_Part(target.codegen(), self.py_func.__qualname__),
            pipeline_class=self.pipeline_class,
        )


class Kernel(CPUDispatcher):
    """A compiled kernel: `parts` and entries (`overloads`) by the types of the arguments."""

    def __init__(self, function: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(function, locals, targetoptions)
        self._compiler = _PartCompiler(function, self.targetdescr, self.targetoptions, self.locals, compiler.Compiler)
        self.parts: dict[Any, Any] = {}

    def part(self, args: Any) -> Any:
        """The part for arguments of these types."""
        if args not in self.parts:
            part = self._compiler.compile(args, None)
            self.targetctx.insert_user_function(part.library, part.fndesc, [part.library])
            self.parts[args] = part
        return self.parts[args]

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What type inference asks of a kernel that another kernel calls."""
        signature, args = self._compiler.fold_argument_types(args, kws)
        # One part for all numbers that callers pass: a literal would be a type of its own.
        part = self.part(tuple(unliteral(arg) for arg in args))
        name = self.py_func.__name__
        template = make_concrete_template(f"CallTemplate({name})", key=name, signatures=[part.signature])
        return template, signature, part.signature.args, {}

    def get_overload(self, sig: Any) -> Any:
        """What lowering finds the part by."""
        return self.part(tuple(sigutils.normalize_signature(sig)[0])).library

    def compile(self, sig: Any) -> Any:
        """The entry, which Python is about to call: from the cache, or made now."""
        with global_compiler_lock:
            args = tuple(sigutils.normalize_signature(sig)[0])
            if args not in self.overloads:
                entry = self._cache.load_overload(sig, self.targetctx)
                if entry is None:
                    told = {"dispatcher": self, "args": args, "return_type": None}
                    with event.trigger_event("numba:compile", data=told):
                        entry = self._entry(self.part(args))
                    self._cache.save_overload(sig, entry)
                self.add_overload(entry)
            return self.overloads[args].entry_point

    def _entry(self, part: Any) -> Any:
        """Make `part` and what it reaches machine code that Python can call."""
        target, described = part.target_context, part.fndesc
        library = _Entry(target.codegen(), described.qualname)
        library.enable_object_caching()
        library.link(part.library)
        with target.push_code_library(library):
            target.create_cpython_wrapper(library, described, part.environment, part.call_helper, release_gil=True)
        called = target.get_executable(library, described, part.environment)
        entry = part._replace(library=library, entry_point=called, type_annotation="")
        for environment in entry._find_referenced_environments():
            library.codegen.set_env(environment.env_name, environment)
        return entry

    def enable_caching(self) -> None:
        """Keep entries on disk."""
        self._cache = FunctionCache(self.py_func)
