"""The registry's entry of one optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.problem import Problem, Progress, Solution

if TYPE_CHECKING:
    from mosesplug.optimizers.online.learner import Learner

__all__ = ["Algorithm"]


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
