"""Optimize the weights of SRILM's n-best lists for word errors of the 1-best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from formats.text import StrPath, read_lines
from mosesplug.arrays import Bools, Floats
from mosesplug.errors import DataError
from mosesplug.extras.srilm.nbest_files import (
    WordRules,
    read_errors,
    read_nbest_file,
    read_scores,
    utterance_file,
    utterance_id,
)
from mosesplug.features import FeatureSpace
from mosesplug.metrics.edit.wer import Wer
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.optimizers import Problem, Solution, algorithm
from mosesplug.optimizers.bounds import Bounds
from mosesplug.settings.algorithm_options import make_options
from mosesplug.tuning_set import TuningSet

STANDARD = ("acoustic", "lm", "words")
"""The scores of every n-best list."""


@dataclass(frozen=True)
class Utterances:
    """The hypotheses of some utterances.

    Attributes:
        ids: the ids of the utterances, in the order of the files.
        words: those of each hypothesis, without noise.
        tuning_set: scores, less those of the first hypothesis of the utterance, as dense features;
            statistics are errors and reference words.
        directory: the directory of the first n-best list.
    """

    ids: tuple[str, ...]
    words: tuple[tuple[bytes, ...], ...]
    tuning_set: TuningSet
    directory: str

    @property
    def reference_words(self) -> float:
        """Number of words in the references."""
        stats, offsets = self.tuning_set.stats, self.tuning_set.offsets
        return float(stats[offsets[:-1], 1].sum())

    def errors(self, weights: Floats) -> float:
        """Return the errors of the 1-best hypotheses."""
        return float(self.tuning_set.stats[self.tuning_set.first_best(weights), 0].sum())

    def best_lines(self, weights: Floats) -> list[bytes]:
        """Return ``id word word`` of the 1-best hypotheses, with line ends."""
        rows = self.tuning_set.first_best(weights).tolist()
        names = [name.encode("utf-8", "surrogateescape") for name in self.ids]
        return [
            b" ".join([name, *self.words[row]]) + b"\n"
            for name, row in zip(names, rows, strict=True)
        ]


@dataclass(frozen=True)
class SearchSettings:
    """Settings of the search.

    Attributes:
        restarts: number of random starting points.
        low: float64 ``[n_scores]``, lower ends of the box of random starts; None: around the start.
        high: float64 ``[n_scores]``, its upper ends.
        non_negative: whether all weights must be at least 0.
    """

    restarts: int = 20
    low: Floats | None = None
    high: Floats | None = None
    non_negative: bool = False
    threads: int = 1


def read_utterances(
    file_list: StrPath,
    score_directories: Sequence[StrPath],
    references: Mapping[str, Sequence[bytes]] | None,
    errors: StrPath | None,
    rules: WordRules,
    most: int = 0,
) -> Utterances:
    """Read n-best lists with their further scores, and count errors.

    Args:
        score_directories: each has a file of scores for each utterance.
        references: the references by utterance; None requires ``errors``.
        errors: a directory with a file of error counts for each utterance, used instead of the
            references.
        rules: for the words of hypotheses and references.
        most: number of hypotheses of a list to read; 0: all.

    Raises:
        DataError: no list is named, an utterance is there twice, or has no reference.
    """
    names = [line.strip().decode("utf-8", "surrogateescape") for line in read_lines(file_list)]
    paths = [name for name in names if name]
    if not paths:
        raise DataError(f"{file_list}: names no n-best list: write one file name a line")
    ids = tuple(map(utterance_id, paths))
    if len(set(ids)) < len(ids):
        twice = next(name for place, name in enumerate(ids) if name in ids[:place])
        raise DataError(f"{file_list}: two n-best lists of the utterance {twice}: give one")
    scores, stats, words = [], [], []
    for path, name in zip(paths, ids, strict=True):
        found = read_nbest_file(path, most)
        columns = [np.array([each.scores for each in found])]
        for directory in score_directories:
            file = utterance_file(directory, name)
            columns.append(read_scores(file, len(found), may_have_more=most > 0)[:, None])
        values = np.concatenate(columns, axis=1)
        scores.append(values - values[0])
        kept = [tuple(rules.apply(each.words)) for each in found]
        words += kept
        if errors is not None:
            file = utterance_file(errors, name)
            stats.append(read_errors(file, len(found), may_have_more=most > 0))
        elif references is None or name not in references:
            raise DataError(f"{path}: no reference of the utterance {name}: add it to -refs")
        else:
            stats.append(_count_errors(kept, rules.apply(references[name])))
    offsets = np.cumsum([0, *map(len, scores)])
    titles = (*STANDARD, *map(str, score_directories))
    tuning_set = TuningSet(
        space=FeatureSpace(tuple((title, 1) for title in titles)),
        sentence_ids=np.arange(len(ids)),
        offsets=offsets.astype(np.int64),
        dense=np.concatenate(scores).astype(np.float32),
        sparse=None,
        stats=np.concatenate(stats),
        lengths=np.array([len(text) for text in words], dtype=np.int32),
    )
    return Utterances(ids, tuple(words), tuning_set, str(Path(paths[0]).parent))


def _count_errors(hypotheses: Sequence[Sequence[bytes]], reference: Sequence[bytes]) -> Floats:
    """Return errors and reference words of each hypothesis of an utterance."""
    metric = Wer()
    texts = [b" ".join(words) for words in hypotheses]
    ranges = HypothesisRanges.of_lines(texts, np.zeros(len(texts), dtype=np.int64))
    return metric.statistics(metric.prepare([[b" ".join(reference)]]), *ranges).astype(np.float64)


def optimize_weights(
    utterances: Utterances, initial: Floats, fixed: Bools, settings: SearchSettings, seed: int
) -> Solution:
    """Find the weights with the fewest errors of the 1-best hypotheses, by MERT.

    Args:
        initial: float64 ``[n_scores]``, starting weights.
        fixed: bool ``[n_scores]``, weights that keep their values.

    Raises:
        OptimizerError: all weights are fixed, or only weights of 0 were found.
    """
    size = len(initial)
    widest = float(np.abs(initial).max(initial=0.0)) or 1.0
    low = np.where(initial, np.minimum(0.0, 2.0 * initial), -widest)
    high = np.where(initial, np.maximum(0.0, 2.0 * initial), widest)
    if settings.low is not None and settings.high is not None:
        low, high = settings.low, settings.high
    scale = np.abs(initial).sum() if initial.any() and not fixed.any() else 1.0
    problem = Problem(
        utterances.tuning_set,
        Wer(),
        active=~fixed,
        minima=low / scale,
        maxima=high / scale,
        threads=settings.threads,
    )
    if settings.non_negative:
        limits = Bounds.none(size)
        problem = replace(problem, bounds=replace(limits, low=np.where(fixed, limits.low, 0.0)))
    tuner = algorithm("mert")
    options = make_options(tuner, {"restarts": settings.restarts})
    return tuner.bind(options).optimize(problem, initial, np.random.default_rng(seed))
