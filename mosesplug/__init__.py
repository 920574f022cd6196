"""mosesplug tunes the log-linear weights of machine translation systems.

The names in ``__all__`` are the public API; everything else may change. A name loads the modules
that it needs when it is first used, so that ``import mosesplug`` itself is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mosesplug.version import __version__

if TYPE_CHECKING:
    from formats.errors import FormatError
    from mosesplug.api.analysis import Analysis, analyze
    from mosesplug.api.checking import check
    from mosesplug.api.experiments import (
        forecast_experiment,
        read_experiment_table,
        run_experiment,
    )
    from mosesplug.api.fit import Fit
    from mosesplug.api.installation import Plugin, list_plugins
    from mosesplug.api.keywords import ListKeywords
    from mosesplug.api.lists.nbest import NBest, read_nbest, write_nbest
    from mosesplug.api.lists.statistics import StatisticsMetric
    from mosesplug.api.mbr import mbr
    from mosesplug.api.optimize import HeldOut, algorithms, cross_validate, optimize
    from mosesplug.api.requests import Request
    from mosesplug.api.reranking import rerank
    from mosesplug.api.run import Run, open_run, report
    from mosesplug.api.run_comparisons import Explanation, WeightEffect
    from mosesplug.api.run_page import RunPage
    from mosesplug.api.score_commands import command_metric
    from mosesplug.api.scoring import compare, score
    from mosesplug.api.search_errors import search_errors
    from mosesplug.api.tables.table import Table
    from mosesplug.api.tune import tune
    from mosesplug.api.tuner import Tuner
    from mosesplug.api.weights import WeightTable
    from mosesplug.errors import (
        DataError,
        DecoderError,
        MosesplugError,
        OptimizerError,
        StoreError,
        UsageError,
    )
    from mosesplug.extras.warm_up import WarmUpReport, warm_up


__all__ = [
    "Analysis",
    "DataError",
    "DecoderError",
    "Explanation",
    "Fit",
    "FormatError",
    "HeldOut",
    "ListKeywords",
    "MosesplugError",
    "NBest",
    "OptimizerError",
    "Plugin",
    "Request",
    "Run",
    "RunPage",
    "StatisticsMetric",
    "StoreError",
    "Table",
    "Tuner",
    "UsageError",
    "WarmUpReport",
    "WeightEffect",
    "WeightTable",
    "__version__",
    "algorithms",
    "analyze",
    "check",
    "command_metric",
    "compare",
    "cross_validate",
    "forecast_experiment",
    "list_plugins",
    "mbr",
    "open_run",
    "optimize",
    "read_experiment_table",
    "read_nbest",
    "report",
    "rerank",
    "run_experiment",
    "score",
    "search_errors",
    "tune",
    "warm_up",
    "write_nbest",
]

_MODULES = {
    "formats.errors": "FormatError",
    "mosesplug.api.analysis": "Analysis analyze",
    "mosesplug.api.checking": "check",
    "mosesplug.api.experiments": "forecast_experiment read_experiment_table run_experiment",
    "mosesplug.api.fit": "Fit",
    "mosesplug.api.installation": "Plugin list_plugins",
    "mosesplug.extras.warm_up": "WarmUpReport warm_up",
    "mosesplug.api.keywords": "ListKeywords",
    "mosesplug.api.lists.nbest": "NBest read_nbest write_nbest",
    "mosesplug.api.optimize": "HeldOut algorithms cross_validate optimize",
    "mosesplug.api.mbr": "mbr",
    "mosesplug.api.requests": "Request",
    "mosesplug.api.reranking": "rerank",
    "mosesplug.api.run": "Run open_run report",
    "mosesplug.api.run_comparisons": "Explanation WeightEffect",
    "mosesplug.api.run_page": "RunPage",
    "mosesplug.api.score_commands": "command_metric",
    "mosesplug.api.scoring": "compare score",
    "mosesplug.api.search_errors": "search_errors",
    "mosesplug.api.lists.statistics": "StatisticsMetric",
    "mosesplug.api.tables.table": "Table",
    "mosesplug.api.tune": "tune",
    "mosesplug.api.tuner": "Tuner",
    "mosesplug.api.weights": "WeightTable",
    "mosesplug.errors": (
        "DataError DecoderError MosesplugError OptimizerError StoreError UsageError"
    ),
}
"""The public names of each module, except the version."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
