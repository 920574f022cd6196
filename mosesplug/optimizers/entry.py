"""An optimizer as others see it: a function, its settings, and what it can learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.problem import Problem, Progress, Solution

__all__ = ["Algorithm"]


@dataclass(frozen=True)
class Algorithm:
    """An optimizer as others see it.

    Attributes:
        name: what ``--algorithm`` takes.
        family: the group that ``mosesplug algorithms`` lists it in.
        summary: what it does, in one sentence of at most 60 characters.
        source: the paper.
        options: frozen dataclass of its settings, every field with a default.
        optimize: ``(problem, initial, rng, options, progress) -> Solution``.
        learner: of an online learner, what makes it from its options; None for a batch optimizer.
        restarts: whether it starts from random points and from weights of earlier iterations, too.
        graphs: how it learns from search graphs: by a ``source`` or a ``search`` of its problem;
            None if it learns from lists only.
        needs_bleu: whether it can tune by no other metric than BLEU.
        tunes_sparse: whether it tunes sparse features unless told which features are active.
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
