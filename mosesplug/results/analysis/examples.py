"""Sentences whose scores differ most between two systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.results.analysis.sentences import SystemStatistics

_ROUNDING = 1e-12
"""Largest difference of means that the order of additions causes."""


@dataclass(frozen=True)
class Example:
    """A sentence as two systems translate it.

    Attributes:
        sentence: the sentence id, counted from 0.
        metric: name of the metric of the sentence scores.
        source: the source sentence; None if unknown.
        baseline_text, system_text: their translations; of several runs, that of the run whose
            score is closest to the mean.
        baseline_score, system_score: sentence scores, means over the runs; rates for error rates.
        difference: the system's score minus that of the baseline.
    """

    sentence: int
    metric: str
    source: bytes | None
    references: tuple[bytes, ...]
    baseline: str
    system: str
    better: str
    baseline_text: bytes
    system_text: bytes
    baseline_score: float
    system_score: float
    difference: float


Lines = Sequence[bytes]


def find_examples(
    references: Sequence[Lines],
    systems: Mapping[str, Sequence[Lines]],
    scores: SystemStatistics,
    *,
    source: Lines | None = None,
    most: int = 5,
) -> tuple[Example, ...]:
    """Return the sentences where a system gains, then loses most against the baseline.

    Sentences with the same translations and references as an earlier one are left out.

    Args:
        references: ``[reference][sentence]``.
        systems: ``[name][run][sentence]``, the baseline first.
        scores: the metric whose sentence scores are compared.
        most: number of sentences for each pair of systems, and system with the better score.
    """
    names = list(systems)
    means = [np.mean(runs, axis=0) for runs in scores.sentence_scores]
    typical = [
        np.argmin(np.abs(np.array(runs) - mean), axis=0)
        for runs, mean in zip(scores.sentence_scores, means, strict=True)
    ]
    texts = [
        [systems[name][run][line] for line, run in enumerate(chosen.tolist())]
        for name, chosen in zip(names, typical, strict=True)
    ]

    def describe(line: int, other: int, better: int) -> Example:
        return Example(
            sentence=line,
            metric=scores.sentence_metric,
            source=None if source is None else source[line],
            references=tuple(lines[line] for lines in references),
            baseline=names[0],
            system=names[other],
            better=names[better],
            baseline_text=texts[0][line],
            system_text=texts[other][line],
            baseline_score=float(means[0][line]),
            system_score=float(means[other][line]),
            difference=float(means[other][line] - means[0][line]),
        )

    examples: list[Example] = []
    for other in range(1, len(names)):
        gains = means[other] - means[0]
        if scores.is_error_rate:
            gains = -gains
        content = [*references, texts[0], texts[other]]
        examples += [describe(line, other, other) for line in _rank(gains, content, most)]
        examples += [describe(line, other, 0) for line in _rank(-gains, content, most)]
    return tuple(examples)


def _rank(gains: NDArray[np.float64], texts: Sequence[Lines], most: int) -> list[int]:
    """Return the sentences with the largest positive gains, without repetitions."""
    chosen: list[int] = []
    known: set[tuple[bytes, ...]] = set()
    for line in np.argsort(-gains, kind="stable").tolist():
        if len(chosen) == most or not gains[line] > _ROUNDING:
            break
        content = tuple(lines[line] for lines in texts)
        if content not in known:
            known.add(content)
            chosen.append(line)
    return chosen
