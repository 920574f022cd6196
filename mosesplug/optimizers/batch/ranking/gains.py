"""What a hypothesis is worth by itself to batch learners that rank."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.costs import Costs
from mosesplug.optimizers.problem import Problem

__all__ = ["SentenceBleu", "sentence_gains"]

SentenceBleu = Literal["moses", "nakov", "lin-och"]


def sentence_gains(problem: Problem, kind: SentenceBleu) -> NDArray[np.float64]:
    """Score of every hypothesis by itself, float64 ``[n_hyps]``.

    A smoothed sentence BLEU where the metric is BLEU or has it as a part; of other metrics, their
    score of the sentence.

    Args:
        problem: hypotheses and metric.
        kind: whose smoothed BLEU; see ``metrics.sentence_bleu``.
    """
    # Scores of single sentences are not searched for: nothing is drawn.
    return Costs(kind).gains(problem.tuning_set, problem.metric, {}, np.random.default_rng(0))
