"""Gather everything that a report shows from a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics import Metric
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.interpolated import find_columns
from mosesplug.metrics.protocol import needs_references, score_sentences
from mosesplug.metrics.registry import metric_of_text, outside_of_signature
from mosesplug.metrics.scored import bind_source
from mosesplug.results.report.data import (
    TUNING_SET,
    ReportData,
    SentenceFacts,
    WatchedScores,
)
from mosesplug.results.views.configuration import describe_configuration, describe_outcome
from mosesplug.results.views.lattice import describe_lattice
from mosesplug.results.views.list_statistics import (
    describe_iteration,
    list_reported_scores,
    measure_features,
    view_batches,
)
from mosesplug.results.views.lists import (
    compute_error_surfaces,
    measure_coverage,
    measure_oracle_growth,
)
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text
from mosesplug.settings.report import ReportSettings
from mosesplug.settings.reported import find_reported
from mosesplug.tuning.reporting import (
    arrange_texts,
    read_first_bests,
    score_statistics,
    score_texts,
)

STEPS = ("iterations", "lists", "oracles", "features", "surfaces", "sentences", "search graphs")
"""The steps of gathering, in order."""

_SPARSE = 40
_LONGEST_NAME = 60


def gather_report_steps(
    run: StoredRun,
    text: ParallelText,
    examples: int = ReportSettings.examples,
    lattice: int | None = None,
    watched: Sequence[str | Metric] = (),
) -> Iterator[ReportData]:
    """Yield the data of a report, more complete after each of ``STEPS``.

    Args:
        examples: number of the worst and of the best sentences to show.
        lattice: the sentence whose search graph is shown; None selects a small one.
        watched: metrics that the run did not optimize, or parts of its weighted sum; texts as for
            ``metric_of_text``.

    Raises:
        UsageError: metrics that cannot be reported; see ``_measure_watched``.
        DataError: ``text`` does not belong to the run, or sentence ``lattice`` has no graph.
        StoreError: the store cannot be read.
    """
    text.check_length(run.n_sentences)
    data = _describe_run(run)
    yield data
    if not run.has_lists:
        if watched:
            name = watched[0] if isinstance(watched[0], str) else watched[0].name
            raise UsageError(
                f"{{--report-metric}} {name}: the lists of this run are {run.where_lists_are}"
            )
        return
    measured = _measure_watched(run, watched, text)
    names = [scores.metric for scores in measured]
    recorded = [
        scores for scores in data.watched_scores if scores.text or scores.metric not in names
    ]
    data = replace(data, watched_scores=(*recorded, *measured))
    yield data
    data = _add_coverage(run, _add_oracles(run, data))
    yield data
    data = _add_features(run, data)
    yield data
    data = _add_surfaces(run, data)
    yield data
    worst, best = _find_worst_and_best(run, text, examples)
    data = replace(data, worst=worst, best=best)
    yield data
    yield replace(data, lattice=describe_lattice(run, lattice))


def gather_figure(run: StoredRun, figure: str, lattice: int | None = None) -> ReportData:
    """Gather only those data of a report that one figure needs.

    Args:
        figure: a name in ``report.figures.FIGURES``.
        lattice: as for ``gather_report_steps``.

    Raises:
        DataError: sentence ``lattice`` has no graph.
        StoreError: the store cannot be read.
    """
    data = _describe_run(run)
    if not run.has_lists or figure in _WITHOUT_LISTS:
        return data
    if figure in _PARTS:
        return _PARTS[figure](run, data)
    return replace(data, lattice=describe_lattice(run, lattice))


def _describe_run(run: StoredRun) -> ReportData:
    """Return what is known without reading lists."""
    sparse = sorted(run.weights.normalize().sparse.items(), key=lambda item: -abs(item[1]))
    active = [(mark_invalid_utf8(name), weight) for name, weight in sparse if weight != 0.0]
    return ReportData(
        store=str(run.path),
        metric=run.metric.name,
        sentence_metric=run.metric.sentence_metric,
        signature=run.signature,
        facts=describe_configuration(run),
        outcome=describe_outcome(run),
        iterations=tuple(describe_iteration(run, record) for record in run.records),
        names=_shorten_names(run.names),
        watched_scores=tuple(_list_recorded(run)),
        sparse=tuple((_shorten(name), weight) for name, weight in active[:_SPARSE]),
        n_sparse=len(active),
        where_lists_are=run.where_lists_are,
    )


def _shorten_names(names: Sequence[str]) -> tuple[str, ...]:
    """Cut long names: to draw one of 100,000 letters takes a minute."""
    short = tuple(map(_shorten, names))
    if len(set(short)) == len(names):
        return short
    return tuple(f"{name} ({number})" for number, name in enumerate(short))


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _add_oracles(run: StoredRun, data: ReportData) -> ReportData:
    oracles = zip(data.iterations, measure_oracle_growth(run), strict=True)
    facts = tuple(replace(iteration, oracle=oracle) for iteration, oracle in oracles)
    return replace(data, iterations=facts)


def _add_coverage(run: StoredRun, data: ReportData) -> ReportData:
    return replace(data, coverage=measure_coverage(run, run.records[-1].iteration))


def _add_features(run: StoredRun, data: ReportData) -> ReportData:
    batches = view_batches(run.merged)
    features = measure_features(batches, run.metric, run.vector, data.names)
    return replace(data, features=features)


def _add_surfaces(run: StoredRun, data: ReportData) -> ReportData:
    return replace(
        data, surfaces=compute_error_surfaces(run.merged, run.metric, run.vector, data.names)
    )


_WITHOUT_LISTS = frozenset({"weights", "growth", "times"})

_PARTS: Mapping[str, Callable[[StoredRun, ReportData], ReportData]] = MappingProxyType(
    {
        "scores": _add_oracles,
        "coverage": _add_coverage,
        "features": _add_features,
        "surfaces": _add_surfaces,
    }
)
"""What each figure needs; the others show a search graph."""


def _find_worst_and_best(
    run: StoredRun, text: ParallelText, count: int
) -> tuple[tuple[SentenceFacts, ...], tuple[SentenceFacts, ...]]:
    """Return the sentences whose 1-best scores lowest, and those with the highest.

    Args:
        count: number of sentences of each kind; no sentence is returned twice.
    """
    merged = run.merged
    scores = score_sentences(run.metric, merged.stats)
    first_best = merged.first_best(run.vector)
    filled = np.flatnonzero(np.diff(merged.offsets) > 0)
    order = np.argsort(scores[first_best], kind="stable")
    count = min(count, len(order) // 2)

    def describe(place: int) -> SentenceFacts:
        sentence, row = int(filled[place]), int(first_best[place])
        start, end = merged.offsets[sentence], merged.offsets[sentence + 1]
        return _describe_sentence(run, text, sentence, scores[start:end], row - int(start))

    worst = [describe(place) for place in order[:count].tolist()]
    best = [describe(place) for place in order[::-1][:count].tolist()]
    return tuple(worst), tuple(best)


def _describe_sentence(
    run: StoredRun,
    text: ParallelText,
    sentence: int,
    scores: NDArray[np.float64],
    first_best: int,
) -> SentenceFacts:
    hypotheses = run.store.hypotheses(sentence)
    oracle = int(np.argmax(scores))
    return SentenceFacts(
        number=sentence,
        source=text.source_sentence(sentence),
        references=text.reference_sentences(sentence),
        first_best=decode_text(hypotheses[first_best]),
        chosen_score=float(scores[first_best]),
        oracle=decode_text(hypotheses[oracle]),
        oracle_score=float(scores[oracle]),
    )


def _measure_watched(
    run: StoredRun, watched: Sequence[str | Metric], text: ParallelText
) -> tuple[WatchedScores, ...]:
    """Return the corpus scores of the first hypotheses of each iteration's lists.

    Raises:
        UsageError: an unknown metric, the run's own metric, one given twice, or no references.
        StoreError: the store cannot be read.
        DataError: a command that scores failed, or its answer cannot be used.
    """
    known, weights = outside_of_signature(run.signature), run.store.sentence_weights
    numbers = [record.iteration for record in run.records]
    scores = []
    translations: list[HypothesisRanges] = []
    find = partial(metric_of_text, outside=known)
    for reported in find_reported(watched, run.metric, find):
        metric = reported.metric
        columns = find_columns(metric, run.metric)
        if columns is not None:  # parts of a weighted sum need no texts
            every = np.arange(run.n_sentences)
            rows = [run.store.first_best_statistics(number)[:, columns] for number in numbers]
            values = [score_statistics(metric, own, every, weights) for own in rows]
        else:
            if needs_references(metric) and not text.references:
                raise UsageError(f"to report {metric.name}, use {{--refs}} FILE")
            metric = bind_source(metric, text.source or None)
            prepared = metric.prepare(text.references)
            # Read for such metrics only.
            translations = translations or [
                arrange_texts(read_first_bests(run.store, number, run.n_sentences))
                for number in numbers
            ]
            values = [score_texts(metric, prepared, texts, weights) for texts in translations]
        scores.append(_show_watched(reported.text, metric.signature(), values))
    return tuple(scores)


def _list_recorded(run: StoredRun) -> Iterator[WatchedScores]:
    """Yield the scores that the run has recorded, of each metric and text."""
    last: dict[tuple[str, str], dict[int, float]] = {}
    for row in list_reported_scores(run):
        text = "" if row.text == TUNING_SET else row.text
        last.setdefault((row.metric, text), {})[row.iteration] = row.score
    for (name, text), scores in last.items():
        values = [scores.get(record.iteration) for record in run.records]
        yield _show_watched(name, run.report_signatures.get(name, name), values, text)


def _show_watched(
    name: str, signature: str, scores: Sequence[float | None], text: str = ""
) -> WatchedScores:
    shown = tuple(None if score is None else display_score(signature, score) for score in scores)
    return WatchedScores(name, is_error_rate(signature), shown, text)
