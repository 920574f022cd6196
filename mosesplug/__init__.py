"""mosesplug tunes the log-linear weights of machine translation systems.

The names in ``__all__`` are the public API; everything else may change. A name loads the modules
that it needs when it is first used, so that ``import mosesplug`` itself is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formats.errors import FormatError
    from mosesplug.api.analysis import Analysis, analyze
    from mosesplug.api.checking import check
    from mosesplug.api.fit import Fit
    from mosesplug.api.installation import Plugin, WarmUpReport, list_plugins, warm_up
    from mosesplug.api.nbest import NBest, read_nbest, write_nbest
    from mosesplug.api.optimize import algorithms, cross_validate, optimize
    from mosesplug.api.reranking import mbr, rerank
    from mosesplug.api.run import Run, open_run, report
    from mosesplug.api.scoring import compare, score
    from mosesplug.api.statistics import StatisticsMetric
    from mosesplug.api.table import Table
    from mosesplug.api.tune import tune
    from mosesplug.api.tuner import Request, Tuner
    from mosesplug.api.weights import WeightTable
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
    "Analysis",
    "DataError",
    "DecoderError",
    "Fit",
    "FormatError",
    "MosesplugError",
    "NBest",
    "OptimizerError",
    "Plugin",
    "Request",
    "Run",
    "StatisticsMetric",
    "StoreError",
    "Table",
    "Tuner",
    "UsageError",
    "WarmUpReport",
    "WeightTable",
    "__version__",
    "algorithms",
    "analyze",
    "check",
    "compare",
    "cross_validate",
    "list_plugins",
    "mbr",
    "open_run",
    "optimize",
    "read_nbest",
    "report",
    "rerank",
    "score",
    "tune",
    "warm_up",
    "write_nbest",
]

_MODULES = {
    "Analysis": "mosesplug.api.analysis",
    "DataError": "mosesplug.errors",
    "DecoderError": "mosesplug.errors",
    "Fit": "mosesplug.api.fit",
    "FormatError": "formats.errors",
    "MosesplugError": "mosesplug.errors",
    "NBest": "mosesplug.api.nbest",
    "OptimizerError": "mosesplug.errors",
    "Plugin": "mosesplug.api.installation",
    "Request": "mosesplug.api.tuner",
    "Run": "mosesplug.api.run",
    "StatisticsMetric": "mosesplug.api.statistics",
    "StoreError": "mosesplug.errors",
    "Table": "mosesplug.api.table",
    "Tuner": "mosesplug.api.tuner",
    "UsageError": "mosesplug.errors",
    "WarmUpReport": "mosesplug.api.installation",
    "WeightTable": "mosesplug.api.weights",
    "algorithms": "mosesplug.api.optimize",
    "analyze": "mosesplug.api.analysis",
    "check": "mosesplug.api.checking",
    "compare": "mosesplug.api.scoring",
    "cross_validate": "mosesplug.api.optimize",
    "list_plugins": "mosesplug.api.installation",
    "mbr": "mosesplug.api.reranking",
    "open_run": "mosesplug.api.run",
    "optimize": "mosesplug.api.optimize",
    "read_nbest": "mosesplug.api.nbest",
    "report": "mosesplug.api.run",
    "rerank": "mosesplug.api.reranking",
    "score": "mosesplug.api.scoring",
    "tune": "mosesplug.api.tune",
    "warm_up": "mosesplug.api.installation",
    "write_nbest": "mosesplug.api.nbest",
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
