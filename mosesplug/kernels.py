"""Compile kernels: one typed decorator around Numba for all hot loops.

Kernels release the GIL, so threads run them in parallel. They are cached on disk, so they compile
only once. They never write to their inputs unless their docstring says that an argument is an
output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numba

__all__ = ["finite_kernel", "kernel", "load_compiler"]

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile ``function`` in Numba's nopython mode: ``nogil``, cached, IEEE arithmetic."""
    return cast(Function, _once_for_all_constants(numba.njit(nogil=True, cache=True)(function)))


def finite_kernel(function: Function) -> Function:
    """Compile like ``kernel``, for arguments without NaN whose zeros need no sign.

    This lets minima and maxima use vector instructions; the results are those of ``kernel``.
    """
    compiled = numba.njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})(function)
    return cast(Function, _once_for_all_constants(compiled))


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
