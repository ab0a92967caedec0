"""Parts and entries as LLVM sees them: modules, and how they are put together."""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import Any, NamedTuple

from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime import rtsys

# Of the variables in which numba keeps what a function needs of Python.
ENVIRONMENT = "_ZN08NumbaEnv"


class Shared(NamedTuple):
    """A shared kernel as other entries call it: where it is, and for arguments of which types."""

    module: str
    kernel: str
    args: Any

    @property
    def symbol(self) -> str:
        """The name of its machine code, which is the same in all processes, as numba's are not."""
        types = hashlib.sha256(str(self.args).encode()).hexdigest()[:16]
        return f"lftj.{self.module}.{self.kernel}.{types}"

    def load(self) -> None:
        """See that its machine code is there: load it from the cache, or compile it."""
        kernel = getattr(import_module(self.module), self.kernel)
        kernel.compile(self.args)
        engine = kernel.targetctx.codegen()._engine
        if not engine.is_symbol_defined(self.symbol):
            # A call of it would end the process.
            raise RuntimeError(
                f"the cache of kernels does not fit together: {self.symbol} is missing; delete the cache"
            )


class Part(JITCodeLibrary):
    """The code of one kernel as entries link it: never optimised or made machine code by itself.

    `function`: its name · `shared`: what others call its machine code by, if they are not to have a copy.
    """

    shared: Shared | None = None
    function = ""

    def add_linking_library(self, library: Any) -> None:
        """The kernel calls what is in `library`."""
        self._linking_libraries.append(library)

    def add_llvm_module(self, module: Any) -> None:
        """Add `module` as it is; it is optimised where it is linked."""
        self._final_module.link_in(module)


class Entry(JITCodeLibrary):
    """The code of a kernel, of all that it calls, and of the wrapper that Python calls."""

    _symbols: dict[str, str]

    def link(self, part: Part) -> list[Shared]:
        """Link `part` and whatever it reaches, each once, so that what is inlined everywhere vanishes.

        Returns the shared kernels that it reaches, which are called where they are.
        """
        module = self._final_module
        called: dict[str, Shared] = {}
        seen: set[Any] = set()
        todo: list[Any] = [part]
        while todo:
            library = todo.pop()
            # Kernels count no references: numba's runtime is nothing to them.
            if library in seen or library is rtsys.library:
                continue
            seen.add(library)
            if isinstance(library, Part) and library.shared and library is not part:
                called[library.function] = library.shared
            elif isinstance(library, Part):
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
        self._symbols = {function: shared.symbol for function, shared in called.items()}
        if part.shared:
            module.get_function(part.function).linkage = llvm.Linkage.external
            self._symbols[part.function] = part.shared.symbol
        return list(called.values())

    def _optimize_final_module(self) -> None:
        """Once: numba optimises twice to drop reference counts, of which kernels have none."""
        for function, symbol in self._symbols.items():
            self._final_module.get_function(function).name = symbol
        for function in self._final_module.functions:
            # What nothing else can call is passed no more than it uses, and inlined where it is called once. All are:
            # one that others could call would be taken for one of its name in another entry, which is called otherwise.
            if function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = llvm.Linkage.internal
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def serialize_using_object_code(self) -> Any:
        """Machine code, and in the place of LLVM's code the names of what Python looks for in it."""
        names = [
            f.name for f in self._final_module.functions if f.linkage == llvm.Linkage.external and not f.is_declaration
        ]
        stub = llvm.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in names))
        return self.name, "object", (self._get_compiled_object(), stub.as_bitcode())
