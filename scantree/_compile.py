"""How a kernel becomes machine code: as a *part* of the kernels that call it, and as an *entry* that Python calls.

numba makes of every function it meets, small helpers included, a whole program: wrappers for Python and C, a module
into which all callees are linked, optimised once more and made machine code, and all of that is written to disk. Of
the kernels that evaluation needs Python calls one in ten. So here a kernel that another kernel calls is a part: its
types are inferred, it is lowered to LLVM's language, and left at that. What Python calls is an entry: the parts it
reaches are linked into one module, once each, and that module is optimised and made machine code. A kernel may be
both. The walk, of which several entries would have a large copy, is *shared*: an entry that the others call. Only
entries are kept on disk, as machine code alone, with the names of the shared ones that they call.

What is needed to compile is imported when something is compiled (`_parts.py`, `_linking.py`, `_lowering.py`): a process
that finds all its entries in the cache does without.

An exception that a signal raises, Ctrl-C above all, would leave numba half imported, so that no kernel can be compiled
any more, or have llvmlite free something twice. Signals are for the main thread; so an entry is made in another, which
the main thread waits for, and ends well or badly whatever becomes of who waits. Whoever needs it next has it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from numba.core import event, sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral  # type: ignore[attr-defined]
from numba.core.typing import make_concrete_template

from scantree._compiling import compiling
from scantree.locks import LostLock, LostLockError
from scantree.own_thread import in_own_thread


def _see_whether_the_compiler_is_lost() -> None:
    """In a child that was just forked: another thread may have been compiling, which nobody ends here."""
    lock = global_compiler_lock._lock
    if isinstance(lock, LostLock):
        return
    if lock.acquire(blocking=False):
        lock.release()
    else:
        global_compiler_lock._lock = LostLock(LostLockError, "the compiler of kernels")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_see_whether_the_compiler_is_lost)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """While it compiles, numba makes millions of objects, and Python looks for garbage among them all the time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 200_000) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _OwnFolder(CompileResultCacheImpl._locator_classes[0]):
    """lftj's own cache folder, even if it cannot be written: it may have been filled when an image was made.

    numba would look for another folder, beside the source or in the user's home, where code of an older version may
    lie, and raise an error if it found none.
    """

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The folder, not made yet."""
        return cls(py_func, py_file)


class _InOwnFolder(CompileResultCacheImpl):
    _locator_classes = (_OwnFolder,)


class _Cache(FunctionCache):
    """numba's cache, which imports all that it could need to compile before it looks what there is."""

    _impl_class = _InOwnFolder

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """A cache that cannot be read or written (no permission, a full disk) costs time, and is no error."""
        try:
            yield
        except OSError:
            compiling.kept = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for these types, or None."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class Kernel(CPUDispatcher):
    """A compiled kernel: `parts` and entries (`overloads`) by the types of the arguments.

    `shared`: it is so large that other entries call its machine code rather than have a copy.
    """

    shared = False
    _compiler: Any

    def __init__(self, function: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(function, locals, targetoptions)
        self.parts: dict[Any, Any] = {}

    def part(self, args: Any) -> Any:
        """The part for arguments of these types."""
        if args not in self.parts:
            from scantree._linking import Shared
            from scantree._parts import PartCompiler

            if not isinstance(self._compiler, PartCompiler):
                self._compiler = PartCompiler(self.py_func, self.targetdescr, self.targetoptions, self.locals)
            part = self._compiler.compile(args, None)
            part.library.function = part.fndesc.llvm_func_name
            if self.shared:
                part.library.shared = Shared(self.py_func.__module__, self.py_func.__name__, args)
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
        args = tuple(sigutils.normalize_signature(sig)[0])
        if args not in self.overloads:
            if global_compiler_lock.is_locked():  # a function that the user compiles calls this one
                self._have(sig, args)
            else:
                in_own_thread("lftj kernels", partial(self._have, sig, args), daemon=False)
        return self.overloads[args].entry_point

    def _have(self, sig: Any, args: Any) -> None:
        """Load or make the entry."""
        with global_compiler_lock:
            if args not in self.overloads:
                entry = self._cache.load_overload(sig, self.targetctx)
                if entry is None:
                    told = {"dispatcher": self, "args": args, "return_type": None}
                    with event.trigger_event("numba:compile", data=told), _seldom_collected():
                        entry = self._entry(self.part(args))
                    self._cache.save_overload(sig, entry)
                self.add_overload(entry)

    def _entry(self, part: Any) -> Any:
        """Make `part` and what it reaches machine code that Python can call."""
        from scantree._linking import Entry

        target, described = part.target_context, part.fndesc
        library = Entry(target.codegen(), described.qualname)
        library.enable_object_caching()
        called = library.link(part.library)
        for shared in called:
            shared.load()
        with target.push_code_library(library):
            target.create_cpython_wrapper(library, described, part.environment, part.call_helper, release_gil=True)
        start = target.get_executable(library, described, part.environment)
        # What is called where it is must be there when this is loaded from the cache.
        load = [shared.load for shared in called]
        entry = part._replace(library=library, entry_point=start, type_annotation="", reload_init=load)
        for environment in entry._find_referenced_environments():
            library.codegen.set_env(environment.env_name, environment)
        return entry

    @property
    def is_compiled(self) -> bool:
        """Whether there is an entry at hand, or in the cache: kernels are called with arguments of one kind."""
        return bool(self.overloads) or Path(self._cache._cache_file._index_path).exists()

    def enable_caching(self) -> None:
        """Keep entries on disk."""
        self._cache = _Cache(self.py_func)
