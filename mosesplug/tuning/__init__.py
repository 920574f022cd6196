"""The tuning loop: decode, store, optimize and write weights until they settle."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosesplug.decoders.kinds import ModelFilter
    from mosesplug.settings.configuration import Configuration
    from mosesplug.settings.decoding import DecodingSettings
    from mosesplug.settings.optimizer import OptimizerSettings
    from mosesplug.tuning.loop import tune
    from mosesplug.tuning.workdir.summary import Result

__all__ = [
    "Configuration",
    "DecodingSettings",
    "ModelFilter",
    "OptimizerSettings",
    "Result",
    "tune",
]

# Loaded on first access: programs that need one module of this package must start fast,
# and the loop brings every optimizer.
_MODULES = {
    "Configuration": "mosesplug.settings.configuration",
    "DecodingSettings": "mosesplug.settings.decoding",
    "ModelFilter": "mosesplug.decoders.kinds",
    "OptimizerSettings": "mosesplug.settings.optimizer",
    "Result": "mosesplug.tuning.workdir.summary",
    "tune": "mosesplug.tuning.loop",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
