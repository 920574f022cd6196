"""Compile kernels: one typed decorator around Numba for all hot loops.

Kernels release the GIL, so threads run them in parallel. They are cached on disk, so they compile
only once (see ``kernel_cache``). They never write to their inputs unless their docstring says that
an argument is an output.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mosesplug.kernel_cache import has_home, is_own_cache, share_cache, use_private_cache

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "count_compiled",
    "finite_kernel",
    "fused_kernel",
    "inlined_kernel",
    "kernel",
    "lean_kernel",
    "load_compiler",
    "read_only",
]

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile ``function`` in nopython mode: ``nogil``, cached, IEEE arithmetic.

    Numba itself is imported when the first kernel is called: commands that call none start sooner.
    """
    return cast(Function, _Kernel(function, {}))


def finite_kernel(function: Function) -> Function:
    """Compile like ``kernel``, for arguments without NaN whose zeros need no sign.

    This lets minima and maxima use vector instructions; the results are those of ``kernel``.
    """
    return cast(Function, _Kernel(function, {"fastmath": {"nnan", "nsz"}}))


def lean_kernel(function: Function) -> Function:
    """Compile like ``kernel``, for functions that allocate no array and return none.

    Numba then counts no references to arrays, which takes longer than a short loop, and delays the
    loads of others. Views of arrays are cheap.
    """
    return cast(Function, _Kernel(function, {"_nrt": False}))


def fused_kernel(function: Function) -> Function:
    """Compile like ``lean_kernel`` and ``finite_kernel``; last bits may differ.

    One instruction may round a product and a sum together. That is faster, and exacter, but the
    last bits depend on the processor.
    """
    flags = {"_nrt": False, "fastmath": {"nnan", "nsz", "contract"}}
    return cast(Function, _Kernel(function, flags))


def inlined_kernel(function: Function) -> Function:
    """Return a kernel that is compiled as a part of each kernel that calls it.

    A kernel that others call is compiled alone, and again with each of its callers. One that has a
    single caller compiles in half the time if it is inlined.
    """
    made = _Kernel(function, {})
    made.targetoptions = {"inline": "always"}  # Numba looks for this name.
    return cast(Function, made)


def read_only(array: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Return a contiguous, aligned, read-only view of an array, as of a memory map.

    The array is copied only if necessary, as for another ``dtype``. With one kind of array, each
    kernel is compiled only once.
    """
    import numpy as np

    view = np.require(array, dtype, ["C", "A"]).view()
    view.flags.writeable = False
    return view


class _Kernel:
    """A function whose Numba dispatcher is made when it is first called.

    The caller is Python or another kernel.
    """

    def __init__(self, function: Callable[..., object], flags: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._flags = flags
        self._dispatcher: Any = None
        self.targetoptions: dict[str, str] = {}

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher; the same one for all threads."""
        with _making:
            if self._dispatcher is None:
                self._dispatcher = _once_for_all_integers(_compile(self.py_func, self._flags))
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The type of the name in other kernels."""
        return self.dispatcher._numba_type_

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


_making = threading.Lock()


def _compile(function: Callable[..., object], flags: dict[str, Any]) -> Any:
    """Return a Numba dispatcher for ``function``, cached if a directory is writable."""
    numba = _load_numba()
    # A wrapper for callers in C, which kernels do not have, takes a tenth of the compilation.
    options = {"nogil": True, "no_cfunc_wrapper": True, **flags}
    if not has_home() and not use_private_cache():
        return numba.njit(**options)(function)
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba can write to none of its directories.
        dispatcher = numba.njit(cache=use_private_cache(), **options)(function)
    modules = Path(function.__code__.co_filename).parent
    path = dispatcher._cache.cache_path
    # Whoever can write beside the modules could change the modules as well.
    if path is not None and Path(path) != modules / "__pycache__" and not is_own_cache(path):
        dispatcher = numba.njit(cache=use_private_cache(), **options)(function)
        path = dispatcher._cache.cache_path
    if path is not None:
        share_cache(dispatcher, modules)
    return dispatcher


_compiled: list[str] = []


def count_compiled() -> int:
    """Return the number of kernels that this process compiled, not read from a cache."""
    return len(_compiled)


@cache
def _load_numba() -> Any:
    """Import Numba, and let it compile without collecting garbage.

    The compiler makes objects by the million and few cycles: looking for them is a tenth of its
    time.
    """
    import numba
    from numba.core import event

    _postpone_blas()
    _shorten_shape_errors()
    _compile_nothing_at_forks()

    class Collector(event.Listener):
        """Stops the collector while anything is compiled."""

        def __init__(self) -> None:
            self._lock = threading.Lock()
            self._running = 0
            self._enabled = False

        def on_start(self, event: Any) -> None:
            with self._lock:
                if event.data["dispatcher"].py_func.__module__.startswith("mosesplug."):
                    _compiled.append(event.data["dispatcher"].py_func.__name__)
                if not self._running:
                    self._enabled = gc.isenabled()
                    gc.disable()
                self._running += 1

        def on_end(self, event: Any) -> None:
            with self._lock:
                self._running -= 1
                if not self._running and self._enabled:
                    gc.enable()

    register: Any = event.register
    register("numba:compile", Collector())
    return numba


def _compile_nothing_at_forks() -> None:
    """Let a fork wait until no thread compiles.

    The child would inherit the locks of that thread, but not the thread, and wait for ever.
    """
    from numba.core.compiler_lock import global_compiler_lock

    compiler: Any = global_compiler_lock

    def stop() -> None:
        compiler.acquire()  # first, since compiling makes dispatchers
        _making.acquire()

    def go_on() -> None:
        _making.release()
        compiler.release()

    os.register_at_fork(before=stop, after_in_parent=go_on, after_in_child=go_on)


def _postpone_blas() -> None:
    """Let Numba look for a BLAS when a kernel uses one, which none here does.

    It looks at the first kernel call and imports SciPy's linear algebra for that, a tenth of a
    second. The functions that use a BLAS look again.
    """
    if "numba.np.arraymath" in sys.modules:
        return  # too late: it has looked
    import numba.np.linalg

    linalg: Any = numba.np.linalg
    look = linalg.ensure_blas

    def answer_once() -> None:
        linalg.ensure_blas = look

    linalg.ensure_blas = answer_once


def _shorten_shape_errors() -> None:
    """Let errors of slice assignments name no shapes.

    Numba compiles code that formats the shapes, which takes seconds in every process that compiles
    such an assignment.
    """
    import numba.np.arrayobj
    from numba.extending import overload

    arrays: Any = numba.np.arrayobj
    if not hasattr(arrays, "raise_with_shape_context"):
        return  # another version of Numba

    def raise_error(source: Any, target: Any) -> None:
        raise NotImplementedError  # Numba compiles the overload.

    def implement(source: Any, target: Any) -> Callable[..., None]:
        def raise_error(source: Any, target: Any) -> None:
            raise ValueError("cannot assign slice from input of different size")

        return raise_error

    overload(raise_error)(implement)
    arrays.raise_with_shape_context = raise_error


def _once_for_all_integers(dispatcher: Any) -> Any:
    """Compile ``dispatcher`` once for all integer arguments of other kernels.

    Numba compiles a kernel four times if others call it with 0, with 1, with a variable, and with
    an element of an int32 array. LLVM inlines the kernel and finds constants and widths anyway.
    """
    template_for = dispatcher.get_call_template
    types = _load_numba().types

    def widen(argument: Any) -> Any:
        argument = types.unliteral(argument)
        return types.int64 if argument == types.int32 else argument

    def get_call_template(args: Sequence[Any], kws: dict[str, Any]) -> Any:
        return template_for(
            tuple(map(widen, args)), {name: widen(argument) for name, argument in kws.items()}
        )

    dispatcher.get_call_template = get_call_template
    return dispatcher


def load_compiler() -> None:
    """Initialize Numba, which takes a quarter of a second at the first kernel call.

    Programs call this while they wait for something else.
    """
    _nothing()


@kernel
def _nothing() -> None:
    """Do nothing."""
