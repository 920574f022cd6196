"""Gather what the page shows of a run: its weights, curves and lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import Message
from mosesplug.escapes import escape_controls, mark_invalid_utf8
from mosesplug.metrics.error_rates import display_difference, display_score, is_error_rate
from mosesplug.metrics.protocol import Metric
from mosesplug.results.report.data import ReportData
from mosesplug.results.report.explorer.formulas import find_formula
from mosesplug.results.report.explorer.lists import (
    PackedLists,
    RunLists,
    join_lines,
    pack_lists,
    spread_sentences,
)
from mosesplug.results.report.explorer.packing import PackedArray, pack_array
from mosesplug.results.scores.significance import paired_bootstrap
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText
from mosesplug.tuning_set import TuningSet

_SAMPLES, _SEED = 1000, 1
"""Number of bootstrap samples, and seed, of the confidence intervals of gains."""


@dataclass(frozen=True)
class VisitedWeights:
    """Weights that a run visited.

    Attributes:
        label: ``iteration 3``, or ``result``.
        vector: float64 ``[n_features]``, divided by the L1 norm of the dense ones.
        score: the corpus score of the merged lists at these weights, as people read it.
    """

    label: str
    vector: NDArray[np.float64]
    score: float


@dataclass(frozen=True)
class ExplorerRun:
    """A run as the page shows it.

    Attributes:
        name: its name on the page.
        metric: the metric that it optimizes.
        n_sentences: number of its sentences.
        document: what the scripts read (see ``scripts/data.js``).
        choices: ``[n_sentences, n_stats]``, the statistics of the 1-best hypotheses with the
            weights of its result, in the merged lists; None without lists.
        fingerprint: of its references; None if the store has none.
        sentence_weights: ``[n_sentences]``, how often each sentence counts; None: once.
    """

    name: str
    metric: Metric
    n_sentences: int
    document: dict[str, Any]
    choices: NDArray[Any] | None
    fingerprint: str | None
    sentence_weights: NDArray[np.float64] | None


def gather_explorer(
    run: StoredRun,
    text: ParallelText,
    data: ReportData,
    name: str,
    most: float | None = None,
    sentences: int | None = None,
) -> ExplorerRun:
    """Return a run as the page shows it.

    Args:
        run: the run.
        text: its source and references; empty where they are unknown.
        data: its report.
        name: its name on the page.
        most: largest number of bytes of its lists in the page; None: unlimited.
        sentences: the number of sentences whose lists the page may hold, evenly spread; None: all.

    Raises:
        UsageError: the hypotheses that scores need take more bytes.
        StoreError: the store cannot be read.
    """
    document = _describe_run(run, data, name)
    choices = None
    if run.has_lists:
        merged = run.merged
        held = spread_sentences(run.n_sentences, sentences)
        lists = RunLists.read(run, held)
        weights = [
            (f"iteration {r.iteration}", run.decoding_weights(r.iteration)) for r in run.records
        ]
        weights.append(("result", run.weights))
        vectors = [vector.normalize().vector(run.space) for _, vector in weights]
        packed = pack_lists(lists, vectors, most)
        labels = [label for label, _ in weights]
        points = list(_score_points(run, merged, labels, vectors))
        document |= _describe_lists(run, lists, packed, points)
        document["sentences"] = None if len(held) == run.n_sentences else held.tolist()
        document["texts"] = {key: array.document for key, array in _pack_texts(run, text).items()}
        choices = _choose(merged, vectors[-1], run.n_sentences)
    fingerprint = run.store.fingerprints.get("references")
    counts = run.store.sentence_weights
    return ExplorerRun(name, run.metric, run.n_sentences, document, choices, fingerprint, counts)


def _describe_run(run: StoredRun, data: ReportData, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "metric": run.metric_name,
        "signature": run.signature,
        "sentenceMetric": data.sentence_metric,
        "isRate": is_error_rate(run.signature),
        "formula": find_formula(run.metric),
        "nSentences": run.n_sentences,
        "ids": [escape_controls(mark_invalid_utf8(word)) for word in run.store.sentence_ids],
        "features": list(run.names),
        "spreads": [feature.spread for feature in data.features],
        "groups": [[mark_invalid_utf8(group), width] for group, width in run.space.groups],
        "iterations": _list_iterations(run, data),
        "whereListsAre": "" if run.has_lists else str(Message(run.where_lists_are)),
    }


def _list_iterations(run: StoredRun, data: ReportData) -> list[dict[str, Any]]:
    """Return the curves of the page, with error rates as rates."""

    def show(score: float | None) -> float | None:
        return None if score is None else display_score(run.signature, score)

    gains = _measure_gains(run)
    return [
        {
            "number": facts.number,
            "score": show(facts.score),
            "optimum": show(facts.optimum),
            "oracle": show(facts.oracle),
            "heldOut": show(facts.held_out),
            "monitors": [[name, show(score)] for name, score in facts.monitors.items()],
            "watched": [
                [
                    f"{watched.metric}{' (less is better)' if watched.is_error_rate else ''}",
                    watched.text or "decoded",
                    watched.scores[place],
                ]
                for watched in data.watched_scores
            ],
            "hypotheses": facts.hypotheses,
            "new": facts.new_hypotheses,
            "decoding": facts.seconds_decoding,
            "optimizing": facts.seconds_optimizing,
            "weights": list(facts.weights),
            "gain": gain,
        }
        for place, (facts, gain) in enumerate(zip(data.iterations, gains, strict=True))
    ]


def _measure_gains(run: StoredRun) -> list[tuple[float, float, float] | None]:
    """Return each iteration's gain over the first one, with its interval.

    The interval is that of the paired bootstrap (Koehn 2004), 95 %, as people read scores.
    """
    if not run.has_lists:
        return [None] * len(run.records)
    metric, signature = run.metric, run.signature
    rows = [run.store.first_best_statistics(record.iteration) for record in run.records]
    if (weights := run.store.sentence_weights) is not None:
        rows = [weights[:, None] * own for own in rows]
    scores = [float(metric.score(own.sum(axis=0, dtype=np.float64))) for own in rows]
    gains: list[tuple[float, float, float] | None] = [(0.0, 0.0, 0.0)]
    for own, score in zip(rows[1:], scores[1:], strict=True):
        random = np.random.default_rng(_SEED)
        tested = paired_bootstrap(metric, rows[0], own, _SAMPLES, random)
        low, high = display_difference(signature, (tested.low, tested.high))
        gain = display_score(signature, score) - display_score(signature, scores[0])
        gains.append((gain, low, high))
    return gains


def _score_points(
    run: StoredRun,
    merged: TuningSet,
    labels: Sequence[str],
    vectors: Sequence[NDArray[np.float64]],
) -> Iterator[VisitedWeights]:
    for label, vector in zip(labels, vectors, strict=True):
        totals = merged.weighted_stats[merged.first_best(vector)].sum(axis=0, dtype=np.float64)
        score = display_score(run.signature, float(run.metric.score(totals)))
        yield VisitedWeights(label, vector, score)


def _choose(merged: TuningSet, vector: NDArray[np.float64], n_sentences: int) -> NDArray[Any]:
    """Return the weighted statistics of each 1-best; those of an empty list are 0."""
    stats = merged.weighted_stats
    choices = np.zeros((n_sentences, stats.shape[1]), dtype=stats.dtype)
    choices[np.diff(merged.offsets) > 0] = stats[merged.first_best(vector)]
    return choices


def _describe_lists(
    run: StoredRun, lists: RunLists, packed: PackedLists, points: Sequence[VisitedWeights]
) -> dict[str, Any]:
    n_dense, columns = run.space.n_dense, packed.sparse_columns
    return {
        "all": lists.merged.n_hyps,
        "held": len(packed.rows),
        "points": [
            {
                "label": point.label,
                "weights": point.vector[:n_dense].tolist(),
                "sparse": point.vector[n_dense:][columns].tolist(),
                "score": point.score,
            }
            for point in points
        ],
        "sparseNames": [mark_invalid_utf8(run.space.sparse[column]) for column in columns.tolist()],
        "arrays": {key: array.document for key, array in packed.arrays.items()},
    }


def _pack_texts(run: StoredRun, text: ParallelText) -> dict[str, PackedArray]:
    """Return the source and the references, each as its lines."""
    files = {"source": text.source} if text.source else {}
    files |= {f"reference{place}": lines for place, lines in enumerate(text.references)}
    return {
        key: pack_array(np.frombuffer(join_lines(lines), dtype=np.uint8))
        for key, lines in files.items()
    }
