"""The registry's entry of one optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.problem import Problem, Progress, Solution, no_progress

if TYPE_CHECKING:
    from mosesplug.optimizers.online.learner import Learner

__all__ = ["Algorithm", "Optimizer"]


@dataclass(frozen=True)
class Algorithm:
    """An optimizer, its settings, and what it can learn from.

    The module of an algorithm lists its entries in ``ALGORITHMS``; ``registry`` names the module.

    Attributes:
        name: the value of ``--algorithm``.
        family: the group that ``mosesplug algorithms`` lists it in.
        summary: what it does, in one sentence of at most 60 characters.
        source: the paper.
        options: frozen dataclass of its settings. Every field has a default, and ``help`` and
            ``source`` in its metadata.
        optimize: ``(problem, initial, rng, options, progress) -> Solution``.
        learner: makes an online learner from the options; None for a batch optimizer.
        graphs: how it learns from search graphs: by the problem's ``source`` or its ``search``;
            None if it learns from lists only.
        restarts: whether it also starts from random points and from weights of earlier iterations.
        needs_bleu: whether BLEU is the only metric that it can tune.
        tunes_sparse: whether it tunes sparse features unless told which features are active.
        order_matters: whether its random choices depend on the order of sentences, so that
            another order gives other weights. (Where False, only rounding differs.)
    """

    name: str
    family: str
    summary: str
    source: str
    options: type[Any]
    optimize: Callable[[Problem, NDArray[np.float64], np.random.Generator, Any, Progress], Solution]
    learner: Callable[[Any], Learner] | None = None
    graphs: Literal["source", "search"] | None = None
    restarts: bool = False
    needs_bleu: bool = False
    tunes_sparse: bool = True
    order_matters: bool = False

    def bind(self, options: object) -> Optimizer:
        """Return the algorithm with its settings, an instance of ``self.options``."""
        return Optimizer(self, options)


@dataclass(frozen=True)
class Optimizer:
    """An algorithm with its settings. It can be pickled: the algorithm travels by its name.

    Attributes:
        algorithm: from the registry.
        options: an instance of ``algorithm.options``.
    """

    algorithm: Algorithm
    options: object

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return self.algorithm.name

    def optimize(
        self,
        problem: Problem,
        initial: NDArray[np.float64],
        rng: np.random.Generator,
        progress: Progress = no_progress,
    ) -> Solution:
        """Optimize weights from ``initial``, float64 ``[n_features]``."""
        return self.algorithm.optimize(problem, initial, rng, self.options, progress)

    @property
    def is_online(self) -> bool:
        """Whether the algorithm learns from mini-batches."""
        return isinstance(self.options, OnlineOptions)

    @property
    def online(self) -> OnlineOptions:
        """The settings that all online learners share.

        Raises:
            UsageError: the algorithm is a batch optimizer.
        """
        if not isinstance(self.options, OnlineOptions):
            raise UsageError(f"{self.name} does not learn from mini-batches")
        return self.options

    def learner(self) -> Learner:
        """Return a new online learner.

        Raises:
            UsageError: the algorithm is a batch optimizer, or its settings cannot be used.
        """
        if self.algorithm.learner is None:
            raise UsageError(
                f"{self.name} does not learn from mini-batches, so it can have no shards"
            )
        return self.algorithm.learner(self.options)
