"""Compile kernels: one typed decorator around Numba for all hot loops.

Kernels release the GIL, so threads run them in parallel. They are cached on disk, so they compile
only once. They never write to their inputs unless their docstring says that an argument is an
output.

The cache is in ``NUMBA_CACHE_DIR``, beside the modules or in the user's cache directory, as Numba
chooses. If none of them can be written, as in a read-only container, it is in a private directory
of the user under the temporary directory; if that is impossible, kernels are not cached. Kernels
beside the modules are read even if nothing can be written there: whoever installs the package may
compile for all users. Damaged files of the cache are replaced, and a full disk costs time only.
Processes that want the same kernel at the same time compile it once.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import logging
import os
import stat
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = [
    "count_compiled",
    "finite_kernel",
    "fused_kernel",
    "kernel",
    "lean_kernel",
    "load_compiler",
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


class _Kernel:
    """A function whose Numba dispatcher is made when it is first called.

    The caller is Python or another kernel.
    """

    def __init__(self, function: Callable[..., object], flags: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._flags = flags
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher; the same one for all threads."""
        with _making:
            if self._dispatcher is None:
                self._dispatcher = _once_for_all_constants(_compile(self.py_func, self._flags))
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
    if not _has_home() and not _use_private_cache():
        return numba.njit(**options)(function)
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba can write to none of its directories.
        dispatcher = numba.njit(cache=_use_private_cache(), **options)(function)
    if dispatcher._cache.cache_path is not None:
        _extend_cache(dispatcher._cache, Path(function.__code__.co_filename).parent)
        _take_turns(dispatcher)
    return dispatcher


def _extend_cache(kept: Any, modules: Path) -> None:
    """Let Numba work with a cache that it cannot read or write.

    Numba compiles what it cannot read, and runs what it cannot write. The files of the cache are
    replaced as a whole, but a crash of the machine may leave them empty. What is not in this cache
    is read from the one beside the modules.
    """
    load, save = kept.load_overload, kept.save_overload

    def load_overload(signature: Any, context: Any) -> Any:
        try:
            found = load(signature, context)
        except Exception:  # unpickling damaged bytes raises any error
            found = None
            with contextlib.suppress(OSError):
                kept.flush()
        if found is None and Path(kept.cache_path) != modules / "__pycache__":
            with contextlib.suppress(Exception):
                found = _load_beside(modules, kept, signature, context)
        return found

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            _warn_unwritten(f"{error.strerror or error}: {kept.cache_path}")

    kept.load_overload, kept.save_overload = load_overload, save_overload


def _load_beside(modules: Path, kept: Any, signature: Any, context: Any) -> Any:
    """Load a compiled kernel from the cache beside the modules, or return None."""
    from numba.core import caching

    # The same names, stamps and keys as in the other directory.
    implementation = kept._impl
    stamp = implementation.locator.get_source_stamp()
    open_files: Any = caching.IndexDataCacheFile
    files = open_files(str(modules / "__pycache__"), implementation.filename_base, stamp)
    data = files.load(kept._index_key(signature, context.codegen()))
    return None if data is None else implementation.rebuild(context, data)


_PATIENCE = 60.0
"""Seconds after which a process compiles what another one has not finished."""


def _take_turns(dispatcher: Any) -> None:
    """Let one process compile what others want at the same time; they load it.

    Each kernel has a byte of a file in its cache directory, which the process that compiles it
    locks. The system unlocks the bytes of a process that dies, and forks do not inherit them.
    Without such locks, each process compiles.
    """
    from numba.core.compiler_lock import global_compiler_lock

    kept, compile_kernel = dispatcher._cache, dispatcher.compile
    load, byte = kept.load_overload, zlib.crc32(kept._impl.filename_base.encode())
    held: list[int] = []

    def load_overload(signature: Any, context: Any) -> Any:
        found = load(signature, context)
        if found is None and (file := _lock(kept, byte)) is not None:
            held.append(file)
            found = load(signature, context)
        return found

    def compile_alone(signature: Any) -> Any:
        with global_compiler_lock:  # one thread of a process compiles at a time
            try:
                return compile_kernel(signature)
            finally:
                while held:
                    with contextlib.suppress(OSError):
                        fcntl.lockf(held.pop(), fcntl.LOCK_UN, 1, byte)

    kept.load_overload, dispatcher.compile = load_overload, compile_alone


def _lock(kept: Any, byte: int) -> int | None:
    """Lock a byte of the file of locks in a cache; return the file, or None.

    None means that the byte stays unlocked. Kernels do not call each other in circles, so that
    processes do not wait for each other.
    """
    end = time.monotonic() + _PATIENCE
    with contextlib.suppress(OSError):
        kept._impl.locator.ensure_cache_path()
        file = _open_locks(kept.cache_path)
        while time.monotonic() < end:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                return file
            except BlockingIOError:
                time.sleep(0.02)
    return None


@cache
def _open_locks(directory: str) -> int:
    """Open the file of locks of a cache.

    The file stays open, since closing it unlocks all its bytes.
    """
    return os.open(Path(directory, "kernels.lock"), os.O_RDWR | os.O_CREAT, 0o666)


@cache
def _warn_unwritten(problem: str) -> None:
    logging.getLogger("mosesplug").warning(
        "warning: compiled code cannot be cached (%s), so the next command compiles it anew. Set "
        "NUMBA_CACHE_DIR to a directory with some space.",
        problem,
    )


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


@cache
def _has_home() -> bool:
    """Return whether the user's cache directory is known.

    If it is not, Numba creates one named ``~``.
    """
    config: Any = _load_numba().config
    if config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME"):
        return True
    try:
        return Path.home().is_absolute()
    except RuntimeError:
        return False


@cache
def _use_private_cache() -> bool:
    """Let Numba use a private temporary cache; warn and return False without one."""
    config: Any = _load_numba().config
    for place in _temporary_directories():
        directory = Path(place, f"mosesplug-kernels-{os.geteuid()}")
        if _is_private(directory):
            config.CACHE_DIR = str(directory)
            return True
    logging.getLogger("mosesplug").warning(
        "warning: no directory can be written to cache compiled code, so every command compiles "
        "it anew (10 seconds and more). Set NUMBA_CACHE_DIR to a writable directory."
    )
    return False


def _temporary_directories() -> Iterator[str]:
    """Yield the directories of ``tempfile``, except the current directory."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    yield from (place for place in (*named, "/tmp", "/var/tmp") if place)


def _is_private(directory: Path) -> bool:
    """Create a missing directory; return whether only this user can write to it.

    Numba executes what it finds in its cache, so the directory of another user is no cache.
    """
    user = os.geteuid()
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o077:
            return False
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


def _once_for_all_constants(dispatcher: Any) -> Any:
    """Compile ``dispatcher`` once per argument type, not per constant argument.

    Numba compiles a kernel three times if others call it with 0, with 1 and with a variable. LLVM
    inlines the kernel and finds the constants anyway.
    """
    template_for = dispatcher.get_call_template
    of_any_value: Callable[[Any], Any] = _load_numba().types.unliteral

    def get_call_template(args: Sequence[Any], kws: dict[str, Any]) -> Any:
        return template_for(
            tuple(of_any_value(given) for given in args),
            {name: of_any_value(given) for name, given in kws.items()},
        )

    dispatcher.get_call_template = get_call_template
    return dispatcher


def load_compiler() -> None:
    """Initialise Numba, which takes a quarter of a second at the first kernel call.

    Programs call this while they wait for something else.
    """
    _nothing()


@kernel
def _nothing() -> None:
    """Do nothing."""
