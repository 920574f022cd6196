"""How every hot loop of mosesplug is compiled: one typed decorator around Numba.

Kernels release the GIL, so threads run them in parallel, and are cached on disk, so that compile
time is paid once. They never write to their inputs unless their docstring says that an argument
is an output.
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
    """``kernel`` for arguments without NaN, where the sign of zero is of no interest.

    That is all that stands between a minimum or maximum and its vector instructions; results are
    those of ``kernel``.
    """
    compiled = numba.njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})(function)
    return cast(Function, _once_for_all_constants(compiled))


def _once_for_all_constants(dispatcher: Any) -> Any:
    """``dispatcher``, compiled once for an argument's type, not for each constant passed to it.

    Numba compiles a kernel that others call with 0, with 1 and with a variable three times. The
    optimizer, which inlines it, finds the constants anyway.
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
    """Do now what Numba does before the first call of any kernel: a quarter of a second.

    For programs that wait for something else meanwhile.
    """
    _nothing()


@kernel
def _nothing() -> None:
    """Nothing at all."""
