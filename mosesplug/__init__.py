"""mosesplug tunes the log-linear weights of machine translation systems.

The names in ``__all__`` are the public API; everything else may change. A name loads the modules
that it needs when it is first used, so that ``import mosesplug`` itself is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formats.errors import FormatError
    from mosesplug.api.algorithms import algorithms
    from mosesplug.errors import (
        DataError,
        DecoderError,
        MosesplugError,
        OptimizerError,
        StoreError,
        UsageError,
    )

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "DecoderError",
    "FormatError",
    "MosesplugError",
    "OptimizerError",
    "StoreError",
    "UsageError",
    "__version__",
    "algorithms",
]

_MODULES = {
    "DataError": "mosesplug.errors",
    "DecoderError": "mosesplug.errors",
    "FormatError": "formats.errors",
    "MosesplugError": "mosesplug.errors",
    "OptimizerError": "mosesplug.errors",
    "StoreError": "mosesplug.errors",
    "UsageError": "mosesplug.errors",
    "algorithms": "mosesplug.api.algorithms",
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
