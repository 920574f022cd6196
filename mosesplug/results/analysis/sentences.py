"""Sentences in buckets: by length, by difference of length, and by score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.results.analysis.buckets import DIFFERENCES, LENGTHS, Buckets, score_buckets
from mosesplug.results.analysis.corpus import NumberedCorpus, NumberedText
from mosesplug.results.analysis.words import ALL

BucketKind = Literal["length", "difference", "score"]


@dataclass(frozen=True)
class SystemStatistics:
    """What one metric says of the sentences of all systems.

    Attributes:
        sentence_metric: name of the metric that scores single sentences.
        statistics: ``[n_sentences, n_statistics]`` of each run of each system.
        sentence_scores: float64 ``[n_sentences]`` of each run of each system, as people know them:
            rates for error rates.
        score: the corpus score of summed statistics, as people know it.
    """

    metric: str
    sentence_metric: str
    is_error_rate: bool
    statistics: tuple[tuple[NDArray[Any], ...], ...]
    sentence_scores: tuple[tuple[NDArray[np.float64], ...], ...]
    score: Callable[[NDArray[Any]], float]


@dataclass(frozen=True)
class SentenceBucket:
    """The sentences of one bucket, and a system's score of them.

    Attributes:
        kind: what the sentences are grouped by: ``length``, the mean length of the references;
            ``difference``, the length of the translation minus that of the reference with the
            closest length; ``score``, the sentence score.
        bucket: the label of the bucket, or ``all``.
        sentences: number of sentences, mean over the runs.
        score: corpus score of these sentences, mean over the runs that have some; NaN without.
    """

    kind: BucketKind
    bucket: str
    system: str
    sentences: float
    metric: str
    score: float


_Assignment = Sequence[Sequence[NDArray[np.int64]]]
"""The bucket of each sentence, int64 ``[n_sentences]``, of each run of each system."""


def bucket_by_length(
    corpus: NumberedCorpus, metrics: Sequence[SystemStatistics], buckets: Buckets = LENGTHS
) -> tuple[SentenceBucket, ...]:
    """Return scores of sentences by length of their references, then those of all."""
    lengths = np.mean([reference.lengths for reference in corpus.references], axis=0)
    places = buckets.assign(lengths)
    assignment = [[places] * len(runs) for runs in corpus.systems.values()]
    every = [[np.zeros_like(places)] * len(runs) for runs in corpus.systems.values()]
    names = list(corpus.systems)
    return (
        *_score_buckets("length", names, metrics, assignment, buckets.labels),
        *_score_buckets("length", names, metrics, every, (ALL,)),
    )


def bucket_by_difference(
    corpus: NumberedCorpus, metrics: Sequence[SystemStatistics], buckets: Buckets = DIFFERENCES
) -> tuple[SentenceBucket, ...]:
    """Return the scores of sentences by how much longer they are than their reference."""
    assignment = [
        [buckets.assign(_find_difference(corpus, run)) for run in runs]
        for runs in corpus.systems.values()
    ]
    names = list(corpus.systems)
    return _score_buckets("difference", names, metrics, assignment, buckets.labels)


def _find_difference(corpus: NumberedCorpus, run: NumberedText) -> NDArray[np.int64]:
    """Return the difference from the closest reference length.

    Of two equally close lengths, the shorter one counts.
    """
    differences = np.array([run.lengths - reference.lengths for reference in corpus.references])
    order = np.lexsort((-differences, np.abs(differences)), axis=0)
    closest: NDArray[np.int64] = np.take_along_axis(differences, order[:1], axis=0)[0]
    return closest


def bucket_by_score(
    systems: Sequence[str], metrics: Sequence[SystemStatistics], by: SystemStatistics
) -> tuple[SentenceBucket, ...]:
    """Return the scores of sentences by their sentence score.

    Args:
        by: the metric whose sentence scores are the buckets; see ``score_buckets``.
    """
    scores = np.concatenate([run for runs in by.sentence_scores for run in runs])
    buckets = score_buckets(scores, from_zero=by.is_error_rate)
    assignment = [[buckets.assign(run) for run in runs] for runs in by.sentence_scores]
    return _score_buckets("score", systems, metrics, assignment, buckets.labels)


def _score_buckets(
    kind: BucketKind,
    systems: Sequence[str],
    metrics: Sequence[SystemStatistics],
    assignment: _Assignment,
    labels: Sequence[str],
) -> tuple[SentenceBucket, ...]:
    """Score the sentences of each bucket that has some in any system."""
    sizes = [
        np.mean([np.bincount(run, minlength=len(labels)) for run in runs], axis=0)
        for runs in assignment
    ]
    buckets = []
    for place, label in enumerate(labels):
        if not any(size[place] for size in sizes):
            continue
        for number, system in enumerate(systems):
            for metric in metrics:
                runs = zip(metric.statistics[number], assignment[number], strict=True)
                chosen = [statistics[run == place] for statistics, run in runs]
                scores = [metric.score(part) for part in chosen if len(part)]
                buckets.append(
                    SentenceBucket(
                        kind=kind,
                        bucket=label,
                        system=system,
                        sentences=float(sizes[number][place]),
                        metric=metric.metric,
                        score=float(np.mean(scores)) if scores else float("nan"),
                    )
                )
    return tuple(buckets)
