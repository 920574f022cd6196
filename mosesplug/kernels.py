"""Compile kernels: one typed decorator around Numba for all hot loops.

Kernels release the GIL, so threads run them in parallel. They are cached on disk, so they compile
only once. They never write to their inputs unless their docstring says that an argument is an
output.

The cache is in ``NUMBA_CACHE_DIR``, beside the modules or in the user's cache directory, as Numba
chooses. If none of them can be written, as in a read-only container, it is in a private directory
of the user under the temporary directory; if that is impossible, kernels are not cached.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["finite_kernel", "kernel", "load_compiler"]

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile ``function`` in Numba's nopython mode: ``nogil``, cached, IEEE arithmetic."""
    return cast(Function, _once_for_all_constants(_compile(function)))


def finite_kernel(function: Function) -> Function:
    """Compile like ``kernel``, for arguments without NaN whose zeros need no sign.

    This lets minima and maxima use vector instructions; the results are those of ``kernel``.
    """
    compiled = _compile(function, fastmath={"nnan", "nsz"})
    return cast(Function, _once_for_all_constants(compiled))


def _compile(function: Callable[..., object], **flags: Any) -> Any:
    """Return Numba's dispatcher for ``function``, cached if a directory can be written."""
    if not _has_home() and not _use_private_cache():
        return numba.njit(nogil=True, **flags)(function)
    try:
        return numba.njit(nogil=True, cache=True, **flags)(function)
    except RuntimeError:  # Numba can write to none of its directories.
        return numba.njit(nogil=True, cache=_use_private_cache(), **flags)(function)


@cache
def _has_home() -> bool:
    """Return whether the user's cache directory is known; else Numba creates one named ``~``."""
    config: Any = numba.config
    if config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME"):
        return True
    try:
        return Path.home().is_absolute()
    except RuntimeError:
        return False


@cache
def _use_private_cache() -> bool:
    """Let Numba cache kernels in a private temporary directory; log a warning if there is none."""
    config: Any = numba.config
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
    """Yield the system's temporary directories, as ``tempfile``, but not the current directory."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    yield from (place for place in (*named, "/tmp", "/var/tmp") if place)


def _is_private(directory: Path) -> bool:
    """Create the directory if it is missing; return whether only this user can write to it.

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
    """Compile ``dispatcher`` once for each argument type, not for each constant argument.

    Numba compiles a kernel three times if others call it with 0, with 1 and with a variable. LLVM
    inlines the kernel and finds the constants anyway.
    """
    template_for = dispatcher.get_call_template
    of_any_value: Callable[[Any], Any] = numba.types.unliteral

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
