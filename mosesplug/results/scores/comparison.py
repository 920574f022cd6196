"""Compare systems with a baseline: scores, intervals and significance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from formats.pipes import wrap_files
from mosesplug.arrays import SentenceValues
from mosesplug.errors import Message, UsageError
from mosesplug.metrics.error_rates import display_difference, display_score
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.protocol import Metric, needs_texts
from mosesplug.results.render.record import Change, Count, Score, Share, Shown, Text
from mosesplug.results.scores.alignments import EditCounts, count_edits
from mosesplug.results.scores.decodings import RunDecoding, find_decodings
from mosesplug.results.scores.scores import Translation, read_translation
from mosesplug.results.scores.scoring import MetricScore, PreparedMetric
from mosesplug.results.scores.significance import (
    approximate_randomization,
    estimate_variation,
    paired_bootstrap,
)
from mosesplug.settings.paths import require_path
from mosesplug.settings.sentences.weights import describe_weights
from mosesplug.tuning.text_signs.comparison import find_text_signs
from mosesplug.tuning.text_signs.view import views_of_signatures


@dataclass(frozen=True)
class System:
    """A system: its name, and the translations of each of its runs.

    Attributes:
        outside: scores from outside of each run, float64 ``[n_sentences, k]``; empty without any.
        notes: what a reader of the scores must know about the translations.
        sentence_weights: those of each run, float64 ``[n_sentences]``, or None: 1 each; empty if
            they are 1 in all runs.
    """

    name: str
    translations: tuple[Translation, ...]
    outside: tuple[NDArray[np.float64], ...] = ()
    notes: tuple[str, ...] = ()
    sentence_weights: tuple[SentenceValues | None, ...] = ()

    @classmethod
    def of_decodings(
        cls, name: str, decodings: Sequence[RunDecoding], notes: Sequence[str] = ()
    ) -> System:
        """Return a system of translations that were found."""
        return cls(
            name,
            tuple(decoding.translation for decoding in decodings),
            notes=tuple(notes),
            sentence_weights=tuple(decoding.sentence_weights for decoding in decodings),
        )


def parse_systems(words: Sequence[str], *, decode: bool = False) -> list[System]:
    """Return the systems that words name: ``FILE[,FILE...]`` or ``NAME=FILE[,...]``.

    A working directory stands for the translations of its tuning set, see ``find_decodings``.

    Args:
        decode: decode the tuning set of runs where it was not decoded with the result.

    Raises:
        UsageError: a file is missing, or two systems have the same name.
        DataError: a working directory holds no translations.
        DecoderError: the decoder failed.
    """
    systems: list[System] = []
    for word in words:
        named = re.fullmatch(r"([^=/]+)=(.+)", word)
        name, files = (named[1], named[2]) if named and not Path(word).exists() else (word, word)
        paths = [Path(files)] if Path(files).exists() else [Path(file) for file in files.split(",")]
        decodings: list[RunDecoding] = []
        for path in paths:
            require_path(path, "SYSTEM")
            is_run = path.is_dir()
            decodings += (
                find_decodings(path, decode=decode)
                if is_run
                else map(RunDecoding, wrap_files([path]))
            )
        notes = [
            Message(f"{decoding.note}. {{--decode}} decodes with the result")
            if decoding.has_result
            else decoding.note
            for decoding in decodings
            if decoding.note
        ]
        systems.append(System.of_decodings(name, decodings, notes))
    names = [system.name for system in systems]
    if len(set(names)) < len(names):
        raise UsageError("two systems have the same name: name them with NAME=FILE")
    return systems


@dataclass(frozen=True)
class SystemScore:
    """The score of one system by one metric, and its difference from the baseline.

    Error rates are given as rates. Fields that compare are None for the baseline.

    Attributes:
        score: mean corpus score of the runs.
        interval: 95 % bootstrap interval.
        s_sel: standard deviation over texts drawn from this one.
        s_opt: standard deviation over the runs; NaN for a single run.
        difference: score minus that of the baseline.
        difference_interval: its 95 % interval by the paired bootstrap; None if a system has several
            runs.
        p_bootstrap: p-value of the paired bootstrap; None if a system has several runs.
        wins: share of bootstrap samples in which the system is better, a tie counting half.
        p_randomization: p-value of approximate randomization.
        edits: substitutions, deletions and insertions, for error rates of an alignment, if they
            were counted; of several runs, the first counts.
    """

    JSON_KEYS: ClassVar = (
        "metric system runs score interval s_sel s_opt difference difference_interval p_bootstrap "
        "wins p_randomization signature edits?"
    )

    metric: Text
    system: Text
    runs: Count
    score: Score
    interval: Annotated[tuple[float, float], Shown(".4f", "95 % interval")]
    s_sel: Score
    s_opt: Score
    difference: Change | None
    difference_interval: Annotated[
        tuple[float, float] | None, Shown("+.4f", "interval of difference")
    ]
    p_bootstrap: Annotated[float | None, Shown(".4f", "p(boot)")]
    wins: Share | None
    p_randomization: Annotated[float | None, Shown(".4f", "p(AR)")]
    signature: str
    edits: EditCounts | None = None


def compare_systems(
    systems: Sequence[System],
    metric: PreparedMetric,
    *,
    samples: int = 1000,
    trials: int = 10_000,
    seed: int = 1,
) -> list[SystemScore]:
    """Score the systems by one metric, and test their differences from the first.

    Args:
        samples: bootstrap samples, at least 1.
        trials: trials of approximate randomization.
        seed: seed of all draws. Each test starts with it, so that all systems are compared on the
            same draws.

    Raises:
        FormatError: a translation cannot be read, or does not fit the references.
    """
    names = [system.name for system in systems]
    statistics = measure_systems(systems, metric)
    weights, _ = find_shared_weights(systems)
    if weights is not None:
        statistics = [[weights[:, None] * run for run in runs] for runs in statistics]
    return compare_statistics(
        names,
        statistics,
        metric.metric,
        metric.references.signature,
        samples=samples,
        trials=trials,
        seed=seed,
    )


def find_shared_weights(systems: Sequence[System]) -> tuple[SentenceValues | None, str]:
    """Return the weights by which scores count sentences, and a note that says so.

    They are those of the runs among the systems, for all systems; None and an empty note without
    any. If runs have different ones, each sentence counts once.
    """
    weighted = [
        (own, system.name)
        for system in systems
        for own in system.sentence_weights
        if own is not None
    ]
    if not weighted:
        return None, ""
    weights, name = weighted[0]
    if any(not np.array_equal(own, weights) for own, _ in weighted[1:]):
        return None, "the runs have different sentence weights: here each sentence counts once"
    return weights, (
        f"scores are weighted as the run {name} is: {describe_weights(weights)}. Edits and "
        "analyses count each sentence once"
    )


def compare_statistics(
    names: Sequence[str],
    statistics: Sequence[Sequence[NDArray[Any]]],
    metric: Metric,
    signature: str,
    *,
    samples: int = 1000,
    trials: int = 10_000,
    seed: int = 1,
) -> list[SystemScore]:
    """Compare systems with measured translations, as ``compare_systems`` does.

    Args:
        statistics: of each run of each system, as ``measure_systems`` returns them.
        signature: that of the metric with the references.
    """
    scores: list[SystemScore] = []
    for name, runs in zip(names, statistics, strict=True):
        baseline = (scores[0], statistics[0]) if scores else None
        scores.append(_score_system(name, runs, metric, signature, baseline, samples, trials, seed))
    return scores


def measure_systems(systems: Sequence[System], metric: PreparedMetric) -> list[list[NDArray[Any]]]:
    """Return statistics of each run of each system, ``[n_sentences, n_statistics]``.

    Raises:
        FormatError: a translation cannot be read, or does not fit the references.
    """
    return [
        [_measure_run(system, run, metric) for run in range(len(system.translations))]
        for system in systems
    ]


def count_system_edits(
    scores: Iterable[SystemScore],
    systems: Sequence[System],
    metrics: Sequence[PreparedMetric],
    references: Sequence[Sequence[bytes]],
    most: int,
) -> list[SystemScore]:
    """Return scores with the edits of each system by each metric that counts some.

    Args:
        systems, metrics: those of the scores.
        references: ``[reference][line]``.
        most: number of aligned sentences.
    """
    measured = {metric.references.signature: metric.metric for metric in metrics}
    texts = {
        system.name: read_translation(system.translations[0], len(references[0])).lines()
        for system in systems
    }
    counted = []
    for score in scores:
        metric, lines = measured[score.signature], texts[score.system]
        counted.append(replace(score, edits=count_edits(metric, references, lines, most)))
    return counted


def find_system_warnings(
    systems: Sequence[System], references: Sequence[Sequence[bytes]], signatures: Sequence[str]
) -> tuple[str, ...]:
    """Return what to check about the texts of systems.

    Args:
        systems: the systems; of several runs, the first is checked.
        references: ``[reference][line]``.

    Raises:
        FormatError: a translation cannot be read, or does not fit the references.
    """
    views = views_of_signatures(signatures)
    if not views or not references:
        return ()
    warnings: list[str] = []
    for system in systems:
        lines = read_translation(system.translations[0], len(references[0])).lines()
        signs = find_text_signs(references, lines, views)
        warnings += [f"{system.name}: {sign.message}" for sign in signs]
    return tuple(warnings)


def _measure_run(system: System, run: int, metric: PreparedMetric) -> NDArray[Any]:
    outside = system.outside[run] if system.outside else None
    if needs_texts(metric.metric):
        texts = read_translation(system.translations[run], metric.n_sentences)
    else:
        count = 0 if outside is None else len(outside)
        texts = HypothesisRanges.of_lines([b""] * count, np.arange(count))
    return metric.statistics(texts, outside=outside)


def _score_system(
    name: str,
    runs: Sequence[NDArray[Any]],
    metric: Metric,
    signature: str,
    baseline: tuple[SystemScore, Sequence[NDArray[Any]]] | None,
    samples: int,
    trials: int,
    seed: int,
) -> SystemScore:
    variation = estimate_variation(metric, runs, samples, np.random.default_rng(seed))
    score = display_score(signature, variation.mean)
    ends = display_score(signature, variation.low), display_score(signature, variation.high)
    difference = difference_interval = p_randomization = p_bootstrap = wins = None
    if baseline is not None:
        first, base_runs = baseline
        difference = score - first.score
        p_randomization = approximate_randomization(
            metric, base_runs, runs, trials, np.random.default_rng(seed)
        )
        if len(runs) == len(base_runs) == 1:
            p_bootstrap, wins, lowest, highest = paired_bootstrap(
                metric, base_runs[0], runs[0], samples, np.random.default_rng(seed)
            )
            difference_interval = display_difference(signature, (lowest, highest))
    return SystemScore(
        metric=metric.name,
        system=name,
        runs=len(runs),
        score=score,
        interval=(min(ends), max(ends)),
        s_sel=variation.selection,
        s_opt=variation.optimizer,
        difference=difference,
        difference_interval=difference_interval,
        p_bootstrap=p_bootstrap,
        wins=wins,
        p_randomization=p_randomization,
        signature=signature,
    )


_Shown = TypeVar("_Shown", MetricScore, SystemScore)

_SCALED = ("score", "interval", "sentences", "s_sel", "s_opt", "difference", "difference_interval")
"""Fields that are scores, or differences of scores."""


def to_percent(scores: Iterable[_Shown]) -> list[_Shown]:
    """Return scores from 0 to 100, as sacrebleu prints them.

    Those of other programs keep their own scale.
    """
    scaled = []
    for score in scores:
        if "|outside:" not in score.signature:
            known = [field.name for field in fields(score) if field.name in _SCALED]
            score = replace(score, **{name: _scale(getattr(score, name)) for name in known})
        scaled.append(score)
    return scaled


def _scale(value: Any) -> Any:
    if value is None:
        return None
    return tuple(map(_scale, value)) if isinstance(value, tuple) else 100.0 * value
