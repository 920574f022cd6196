"""How large and how varied lists are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mosesplug.inspection.run import Run

__all__ = ["ListFacts", "list_facts"]


@dataclass(frozen=True)
class ListFacts:
    """The lists of one iteration.

    Attributes:
        sentences: that have a list.
        hypotheses: positions of all lists.
        shortest, mean, longest: hypotheses of a list.
        distinct: share of the positions whose words no earlier position of the list has.
        diversity: mean over the lists of distinct bigrams over all bigrams (distinct-2, Li et al.
            2016): 1 if no two hypotheses share a bigram.
        words: mean length of a hypothesis.
    """

    sentences: int
    hypotheses: int
    shortest: int
    mean: float
    longest: int
    distinct: float
    diversity: float
    words: float


def list_facts(run: Run, iteration: int) -> Iterator[ListFacts]:
    """What is known of an iteration's lists, again after each sentence; the last is of all."""
    sizes: list[int] = []
    distinct = words = 0
    shares: list[float] = []
    for sentence in range(run.n_sentences):
        texts = run.store.iteration_list(iteration, sentence).texts
        if not texts:
            continue
        sizes.append(len(texts))
        distinct += len(set(texts))
        split = [text.split() for text in texts]
        words += sum(map(len, split))
        bigrams = [pair for tokens in split for pair in pairwise(tokens)]
        if bigrams:
            shares.append(len(set(bigrams)) / len(bigrams))
        total = sum(sizes)
        yield ListFacts(
            sentences=len(sizes),
            hypotheses=total,
            shortest=min(sizes),
            mean=total / len(sizes),
            longest=max(sizes),
            distinct=distinct / total,
            diversity=float(np.mean(shares)) if shares else 0.0,
            words=words / total,
        )
