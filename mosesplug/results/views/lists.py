"""Analyses of a run's lists: oracle growth, coverage by rank, error surfaces."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.text import write_atomic
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.optimizers.problem import Problem
from mosesplug.results.report.data import Coverage, ErrorSurface
from mosesplug.results.views.run import StoredRun
from mosesplug.store import IterationRecord
from mosesplug.tuning_set import TuningSet

_SEED = 1
_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def _truncate(tuning_set: TuningSet, widths: NDArray[np.int64]) -> TuningSet:
    """Keep the first ``widths[i]`` hypotheses of list i, without features.

    Args:
        widths: int64 ``[n_sentences]``.
    """
    # Oracles depend on statistics only: copies of the features would be larger.
    lists = replace(tuning_set, dense=tuning_set.dense[:, :0], sparse=None)
    sizes = np.diff(lists.offsets)
    positions = np.arange(lists.n_hyps) - np.repeat(lists.offsets[:-1], sizes)
    return lists.take_hypotheses(np.flatnonzero(positions < np.repeat(widths, sizes)))


def score_oracle(tuning_set: TuningSet, metric: Metric) -> float:
    """Return the corpus score of the oracle that a greedy search finds.

    ``optimizers.oracles`` describes the search.
    """
    return corpus_oracles(tuning_set, metric, np.random.default_rng(_SEED)).score


def measure_oracle_growth(run: StoredRun) -> Iterator[float]:
    """Yield the oracle's score among all hypotheses up to each iteration.

    Scores that were computed before are read from the cache.
    """
    prints = dict(run.store.fingerprints)
    if (weights := run.store.sentence_weights) is not None:
        prints["sentence weights"] = hashlib.sha256(weights.tobytes()).hexdigest()
    cache = OracleCache(run.path, run.records, prints)
    known = np.zeros(run.n_sentences, dtype=np.int64)
    counted = 0
    try:
        for record in run.records:
            score = cache.find(record.iteration)
            if score is None:
                for iteration in range(counted + 1, record.iteration + 1):
                    known += _count_new(run, iteration)
                counted = record.iteration
                score = score_oracle(_truncate(run.merged, known), run.metric)
                cache.add(record.iteration, score)
            yield score
    finally:
        cache.write()


def _count_new(run: StoredRun, iteration: int) -> NDArray[np.int64]:
    """Return the number of new hypotheses of an iteration, int64 ``[n_sentences]``."""
    with run.store.snapshot() as snapshot:
        records = [snapshot.record(iteration, sentence) for sentence in range(run.n_sentences)]
        counts = [0 if record is None else record.n_new for record in records]
    return np.array(counts, dtype=np.int64)


def measure_coverage(run: StoredRun, iteration: int) -> Coverage:
    """Return the oracle's score among the first hypotheses of an iteration's lists."""
    lists = run.store.iteration_set(iteration).tuning_set
    longest = int(np.diff(lists.offsets).max(initial=1))
    ranks = [*(rank for rank in _RANKS if rank < longest), longest]
    scores = []
    for rank in ranks:
        part = _truncate(lists, np.full(lists.n_sentences, rank, dtype=np.int64))
        scores.append(score_oracle(part, run.metric))
    return Coverage(tuple(ranks), tuple(scores), run.records[iteration - 1].first_best_score)


def compute_error_surfaces(
    merged: TuningSet, metric: Metric, weights: NDArray[np.float64], names: Sequence[str]
) -> tuple[ErrorSurface, ...]:
    """Return the corpus score of merged lists as a function of each dense weight.

    Args:
        weights: float64 ``[len(merged.space)]``; one of them changes at a time.
    """
    n_dense = merged.space.n_dense
    active = np.arange(len(merged.space)) < n_dense
    space = Problem(merged, metric).candidates.lines(active, weights)
    surfaces = space.along_axes(np.arange(n_dense, dtype=np.int64), space.at(weights[:n_dense]))
    return tuple(
        _crop_surface(name, float(weight), np.array(thresholds), np.array(scores))
        for name, weight, (thresholds, scores) in zip(
            names, weights[:n_dense], surfaces, strict=True
        )
    )


def _crop_surface(
    name: str, weight: float, thresholds: NDArray[np.float64], scores: NDArray[np.float64]
) -> ErrorSurface:
    """Return the part of a surface around the run's result."""
    reach = max(2.0 * abs(weight), 0.2)
    inside = (thresholds > -reach) & (thresholds < reach)
    places = np.flatnonzero(inside)
    first = int(places[0]) if len(places) else int(np.searchsorted(thresholds, 0.0))
    last = int(places[-1]) + 1 if len(places) else first
    ends = np.concatenate([[-reach], thresholds[inside], [reach]]) + weight
    # Drop empty intervals between thresholds that coincide.
    kept = np.flatnonzero(np.diff(ends) > 1e-12)
    return ErrorSurface(name, weight, ends[[*kept, -1]], scores[first : last + 1][kept])


_FILE = "oracles.json"
_SEARCH = "greedy 1"
"""The search that finds the oracles. Another one would give other scores."""


class OracleCache:
    """Scores of the oracle of all lists up to each iteration of a store.

    The file only saves time. A reader that may not write there, or finds a damaged file, computes
    the scores anew.
    """

    def __init__(
        self, store: Path, records: Sequence[IterationRecord], fingerprints: object
    ) -> None:
        self._path = store / _FILE
        self._keys = _make_keys(records, fingerprints)
        known = self._read()
        self._scores = {key: known[key] for key in self._keys if key is not None and key in known}
        self._is_new = False

    def find(self, iteration: int) -> float | None:
        """Return the score up to an iteration, counted from 1; None if it is unknown."""
        key = self._keys[iteration - 1]
        return None if key is None else self._scores.get(key)

    def add(self, iteration: int, score: float) -> None:
        """Add the score up to an iteration."""
        key = self._keys[iteration - 1]
        if key is not None:
            self._scores[key] = score
            self._is_new = True

    def write(self) -> None:
        """Write the scores if there are new ones, and if this is allowed."""
        if self._is_new and not self._path.is_symlink():
            text = json.dumps(self._scores, indent=1) + "\n"
            with suppress(OSError):
                write_atomic(self._path, text.encode())

    def _read(self) -> dict[str, float]:
        # A link or a pipe may lie in the place of the file.
        if self._path.is_symlink() or not self._path.is_file():
            return {}
        with suppress(OSError, ValueError, AttributeError):
            scores = json.loads(self._path.read_bytes()).items()
            return {key: s for key, s in scores if isinstance(s, float) and math.isfinite(s)}
        return {}


def _make_keys(records: Sequence[IterationRecord], fingerprints: object) -> list[str | None]:
    """Return what identifies the lists up to each iteration; None if nothing does.

    Version 0.1 stored no dates.
    """
    digest = hashlib.sha256(f"{_SEARCH} {fingerprints}".encode("utf-8", "backslashreplace"))
    keys: list[str | None] = []
    for record in records:
        sizes = (record.n_sentences, record.n_lists, record.hypotheses, record.new_hypotheses)
        facts = f"{record.signature} {record.date} {sizes} {record.first_best_score!r}\n"
        digest.update(facts.encode("utf-8", "backslashreplace"))
        is_known = record.date is not None and (not keys or keys[-1] is not None)
        keys.append(digest.hexdigest() if is_known else None)
    return keys
