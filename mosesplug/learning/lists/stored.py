"""Read the merged lists of a tuning run, and score them again with another metric."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, StoreMismatch, UsageError
from mosesplug.learning.deferred_scoring import DeferredScoring
from mosesplug.learning.inputs import GivenData, LearningData, make_list_data
from mosesplug.learning.lists.merging import (
    NO_REFERENCES,
    References,
    name_references,
    note_text_signs,
    read_lines_of,
)
from mosesplug.learning.lists.outside import (
    find_metric_of,
    find_scores,
    make_named_metrics,
)
from mosesplug.learning.watched import (
    WatchedMetric,
    find_watched,
    join_metrics,
    narrow,
    split_statistics,
)
from mosesplug.learning.weights import read_starting_weights
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.interpolated import InterpolatedReferences, find_columns
from mosesplug.metrics.outside import OutsideMetric, compute_statistics
from mosesplug.metrics.protocol import needs_outside, needs_references, needs_texts
from mosesplug.metrics.registry import (
    metric_of_signature,
    outside_of_signature,
    sign_parts,
)
from mosesplug.metrics.scored import disable_scorers, require_scorer
from mosesplug.optimizers import Progress
from mosesplug.sentence_ids import arrange_lines
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.sentences.source import read_source_lengths
from mosesplug.settings.spellings import spell_range
from mosesplug.settings.toml import read_settings
from mosesplug.store import NBestStore
from mosesplug.store.fingerprints import fingerprint_files
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.stores import open_run_store
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.tuning_set import TuningSet


def select_iterations(text: str | None, count: int) -> list[int]:
    """Return iterations in ascending order.

    Args:
        text: ``2:5``, ``2:``, ``:5``, ``3``, or ``-5`` for the newest five; None: all.

    Raises:
        UsageError: another text, or iterations that the run does not have.
    """
    if text is None:
        return list(range(1, count + 1))
    match = re.fullmatch(
        r"(?P<newest>-[0-9]+)|(?P<one>[0-9]+)|(?P<a>[0-9]*):(?P<b>[0-9]*)", spell_range(text)
    )
    if match is None:
        raise UsageError(f"{{--iterations}} must be A:B, N, or -N for the newest N, not {text!r}")
    if match["newest"]:
        first, last = max(1, count + 1 + int(match["newest"])), count
    elif match["one"]:
        first = last = int(match["one"])
    else:
        first, last = int(match["a"] or 1), int(match["b"] or count)
    if not 1 <= first <= last <= count:
        raise UsageError(f"{{--iterations}} {text}: the store has iterations 1 to {count}")
    return list(range(first, last + 1))


def read_run_source(store: Path) -> NDArray[np.int64] | None:
    """Return the words of each source sentence of a run, int64 ``[n_sentences]``.

    None if ``find_run_source`` finds none.
    """
    source = find_run_source(store)
    return None if source is None else read_source_lengths(source)


def find_run_source(store: Path) -> Path | None:
    """Return the file with the source sentences of a run.

    None if its working directory has no settings, or its input is not text.

    Args:
        store: the store of the run, or its working directory.

    Raises:
        UsageError: the input of the run is missing, or another file than the run decoded.
        StoreError: there is no store, or it cannot be read.
    """
    with open_run_store(store) as (path, opened):
        file = Workspace(path.parent, 0).settings
        values = read_settings(file) if file.is_file() else {}
        if "input" not in values or values.get("input-type"):
            return None
        source = Path(values["input"])
        remedy = "Give the source sentences of the run: {--source} FILE"
        if not source.is_file():
            raise UsageError(f"{file}: the input of the run, {source}, is missing. {remedy}")
        try:
            opened.require({"input": fingerprint_files([source])})
        except StoreMismatch:
            raise UsageError(
                f"{file}: the input of the run, {source}, has changed since. {remedy}"
            ) from None
    return source


def read_store(
    settings: LearningSettings, store: Path, progress: Progress, given: GivenData
) -> LearningData:
    """Return the merged lists of the store of a run; see ``read_data``.

    With a score budget, commands score later: see ``LearningData.deferred``.
    """
    references: References | None = given.references or settings.references
    with open_run_store(store, with_lists=True) as (path, opened):
        records = opened.iterations()
        selected = select_iterations(settings.iterations, len(records))
        signature = records[-1].signature
        # The metric of the store may be a plug-in that is not installed: look it up if needed only.
        sources, outside = settings.lists.scores, _make_metrics_of_store(settings, path)
        if given.metric is not None:
            metric = given.metric
        elif outside:
            metric = find_metric_of(settings.metric, settings.metric_settings, outside)
        elif settings.metric is not None or settings.metric_settings:
            name = settings.metric or signature.partition("|")[0]
            known = outside_of_signature(signature)
            metric = find_metric(name, settings.metric_settings, known)
        else:
            metric = metric_of_signature(signature)
        if references is None and outside and not needs_references(metric):
            _require_same_references(outside, signature)
            references = NO_REFERENCES
        # References change nothing in stored scores from outside.
        is_scored_again = references is not None and (bool(sources) or needs_texts(metric))
        require_scorer(metric, settings.score_budget)
        lists = opened.tuning_set(selected)
        if not is_scored_again and metric != (stored := metric_of_signature(signature)):
            columns = find_columns(metric, stored)
            if columns is None:
                raise UsageError(
                    f"the store has statistics of {signature}: to optimize {metric.signature()}, "
                    "use {--refs} FILE to compute its statistics"
                )
            lists = replace(lists, stats=narrow(lists.stats[:, columns], metric))
            signature = sign_parts(metric, signature)
        watched = find_watched(settings.report_metric, settings.metric_settings, outside, metric)
        needing = [scorer.name for scorer in watched if needs_references(scorer)]
        if references is None and needing:
            raise UsageError(f"to report {needing[0]}, use {{--refs}} FILE")
        notes: tuple[str, ...] = ()
        deferred: DeferredScoring | None = None
        watched_metrics: tuple[WatchedMetric, ...] = ()
        if first := (metric, *watched) if is_scored_again else watched:
            references = references or NO_REFERENCES
            lines = arrange_lines(
                read_lines_of(references),
                opened.sentence_ids,
                name_references(references),
                settings.lists.ids,
                opened.first_hypotheses,
            )
            statistics, prepared, deferred = _score_again(
                opened, path, selected, lists, first, lines, references, settings, progress
            )
            scored, watched_metrics = split_statistics(
                replace(lists, stats=statistics), first[0], first[1:]
            )
            if is_scored_again:
                lists, signature = scored, prepared.signature
                notes = note_text_signs(opened, lines, signature)
            else:
                watched_metrics = (WatchedMetric(first[0], scored.stats), *watched_metrics)
        decoded_with = read_start(records[selected[0] - 1]).weights
        if given.start is not None:
            start = given.start(lists.space)
        else:
            start = read_starting_weights(
                lists.space,
                settings.init,
                settings.sparse_init,
                default=decoded_with.vector(lists.space) if any(decoded_with.dense) else None,
            )
    hypotheses = sum(records[number - 1].hypotheses for number in selected)
    data = make_list_data(
        lists, metric, start, signature, hypotheses, settings.threads, watched_metrics, notes
    )
    return replace(data, deferred=deferred)


def _make_metrics_of_store(settings: LearningSettings, store: Path) -> tuple[OutsideMetric, ...]:
    """Return the metrics of other programs, with the source and scores of the run."""
    lists = settings.lists
    if lists.score_commands.commands and lists.source is None:
        lists = replace(lists, source=find_run_source(store))
    cache = Workspace(store.parent, 0).scores
    return make_named_metrics(lists, cache=cache if cache.is_dir() else None)


def _require_same_references(outside: Sequence[OutsideMetric], signature: str) -> None:
    """Check that commands need no references where the run gave them some.

    Raises:
        UsageError: stored scores of one of them are those with references.
    """
    known = {metric.name for metric in outside_of_signature(signature)}
    for metric in outside:
        if metric.scorer is not None and metric.name in known:
            stored = sign_parts(metric, signature)
            n_references = stored.rpartition("|nrefs:")[2] if "|nrefs:" in stored else "0"
            if metric.scorer.reads_references and n_references != "0":
                raise UsageError(
                    f"the command of {metric.name} read references in this run ({stored}): use "
                    "{--refs} FILE"
                )


def _score_again(
    store: NBestStore,
    path: Path,
    selected: Sequence[int],
    lists: TuningSet,
    metrics: Sequence[Metric],
    lines: Sequence[Sequence[bytes]],
    references: References,
    settings: LearningSettings,
    progress: Progress,
) -> tuple[NDArray[Any], PreparedReferences, DeferredScoring | None]:
    """Return joined statistics of all metrics, references, and deferred scoring.

    The references are those of the first metric. With a score budget, scoring is deferred;
    without one, the last is None.
    """
    sources, threads, deferred = settings.lists.scores, settings.threads, None
    for metric in metrics:
        if needs_outside(metric) and not sources:
            raise UsageError(
                f"the store at {path} holds texts, but no scores to compute {metric.name} again:"
                " add {--scores} NAME=FILE or {--score-command} NAME=COMMAND, or leave out {--refs}"
            )
    joined = join_metrics(metrics[0], metrics[1:])
    prepared = joined.prepare(lines)
    n_sentences = store.iterations()[-1].n_sentences
    if prepared.n_references and prepared.n_sentences != n_sentences:
        raise DataError(
            f"{name_references(references)} has {prepared.n_sentences} lines, the store at {path} "
            f"has {n_sentences} sentences"
        )
    texts: list[bytes] = []
    for sentence in range(n_sentences):
        texts += store.hypotheses(sentence, selected)
        progress(sentence + 1, n_sentences, "sentences")
    needing = [metric.name for metric in metrics if needs_texts(metric)]
    if needing and texts and not any(texts):
        raise DataError(
            f"the store at {path} has lists without texts, which {needing[0]} compares with the "
            "references: use {--scores} NAME=FILE"
        )
    owners: NDArray[np.int64] = np.repeat(lists.sentence_ids, np.diff(lists.offsets))
    hypotheses = HypothesisRanges.of_lines(texts, owners)
    outside = None
    if needs_outside(joined):
        outside = find_scores(sources, owners, texts, store.sentence_ids)
    if settings.score_budget is not None:
        deferred = DeferredScoring(metrics[0], tuple(metrics[1:]), prepared, texts, threads)
        joined = disable_scorers(joined)
    statistics = compute_statistics(joined, prepared, *hypotheses, outside, threads=threads)
    if len(metrics) > 1 and isinstance(prepared, InterpolatedReferences):
        prepared = prepared.parts[0]
    return statistics, prepared, deferred
