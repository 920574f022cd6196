"""All optimizers by name. To add one, write its module and add one line here.

The command line, the conformance tests and the benchmarks take their algorithms from here. A module
is imported only when one of its algorithms is asked for, so that a program that runs one algorithm
starts fast.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from mosesplug.errors import UsageError, suggest
from mosesplug.optimizers.entry import Algorithm, Optimizer

__all__ = ["Algorithm", "Optimizer", "algorithm", "algorithms"]

_MODULES = {
    "mert": "batch.mert.mert",
    "kbmira": "batch.mira.optimizer",
    "pro": "batch.ranking.pro",
    "pro+mert": "batch.ranking.pro",
    "rank-all": "batch.ranking.rank_all",
    "cross-entropy": "batch.ranking.cross_entropy",
    "pareto": "batch.ranking.pareto",
    "summary-mert": "batch.ranking.summary_mert",
    "softmax": "batch.expected.softmax",
    "risk": "batch.expected.risk",
    "linear-bleu": "batch.expected.risk",
    "xbleu": "batch.expected.xbleu",
    "margin": "batch.margin.margin",
    "cutting-plane": "batch.margin.margin",
    "rampion": "batch.margin.rampion",
    "mse": "batch.margin.regression",
    "nelder-mead": "batch.direct.nelder_mead",
    "pso": "batch.direct.swarm",
    "xbleu-mert": "batch.direct.xbleu_mert",
    "perceptron": "online.perceptron",
    "mira": "online.mira",
    "arow": "online.arow",
    "rm-pa": "online.relative_margin",
    "rm-cp": "online.relative_margin",
    "oro": "online.oro.hinge",
    "oro-softmax": "online.oro.softmax",
    "o-oro": "online.oro.hinge",
    "o-oro-softmax": "online.oro.softmax",
    "pegasos": "online.pegasos",
    "sgd": "online.sgd",
    "adagrad": "online.adagrad",
    "rda": "online.rda",
}
"""The module below ``mosesplug.optimizers`` that has the algorithm in its ``ALGORITHMS``."""


class _Algorithms(Mapping[str, Algorithm]):
    def __getitem__(self, name: str) -> Algorithm:
        module = import_module(f"mosesplug.optimizers.{_MODULES[name]}")
        entries: tuple[Algorithm, ...] = module.ALGORITHMS
        return next(entry for entry in entries if entry.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)

    def __contains__(self, name: object) -> bool:
        return name in _MODULES


def algorithms() -> Mapping[str, Algorithm]:
    """Return all optimizers by name. Names alone import no optimizer."""
    return _Algorithms()


def algorithm(name: str) -> Algorithm:
    """Return the optimizer of that name.

    Raises:
        UsageError: unknown name; the message lists the known ones, and suggests one.
    """
    if name not in _MODULES:
        known = ", ".join(sorted(_MODULES))
        raise UsageError(f"unknown algorithm {name!r}; known: {known}{suggest(name, _MODULES)}")
    return algorithms()[name]


def _by_name(entry: Algorithm) -> tuple[Callable[[str], Algorithm], tuple[str]]:
    return algorithm, (entry.name,)


# Its functions cannot be pickled: a worker looks the algorithm up in its own registry.
copyreg.pickle(Algorithm, _by_name)
