"""What all suites share: requirements with messages, and odd arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["require", "require_equal", "require_error", "run_checks", "unaligned"]

T = TypeVar("T")


def require(condition: bool, message: str) -> None:
    """Raise ``AssertionError`` with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def require_equal(found: Any, expected: Any, what: str) -> None:
    """Raise ``AssertionError`` unless two arrays have the same shape and values."""
    np.testing.assert_array_equal(found, expected, err_msg=what)


def require_error(
    kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object], what: str
) -> Exception:
    """Return the error that ``call`` raises.

    Raise ``AssertionError`` if it raises none or another one.

    Args:
        kind: the expected error.
        call: what must raise it.
        what: the case, for the message.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    expected = " or ".join(each.__name__ for each in kinds)
    try:
        call()
    except kinds as error:
        return error
    except Exception as error:
        raise AssertionError(
            f"{what} must raise {expected}, but raises {type(error).__name__}: {error}"
        ) from error
    raise AssertionError(f"{what} must raise {expected}, but raises nothing")


def run_checks(checks: Mapping[str, Callable[[T], None]], subject: T, name: str) -> None:
    """Run every check on a subject; the name of the one that fails begins its message."""
    for check_name, check in checks.items():
        try:
            check(subject)
        except AssertionError as error:
            raise AssertionError(f"{name}, check {check_name!r}: {error}") from error
        except Exception as error:
            raise AssertionError(
                f"{name}, check {check_name!r}: {type(error).__name__}: {error}"
            ) from error


def unaligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy that begins at an odd address."""
    copy = np.frombuffer(b"\0" + array.tobytes(), array.dtype, offset=1).reshape(array.shape)
    require(not copy.flags.aligned and not copy.flags.writeable, "the copy must be unaligned")
    return copy
