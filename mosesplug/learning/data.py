"""Read the data to learn from: n-best lists, search graphs, or a run's store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.pipes import InputFile, wrap_files
from formats.text import StrPath, read_lines
from formats.weights.any_format import read_weights
from mosesplug.errors import DataError, Message, UsageError, count_noun
from mosesplug.features import FeatureSpace
from mosesplug.learning.domains import LearningDomains
from mosesplug.learning.inputs import (
    NOTHING_GIVEN,
    GivenData,
    LearningData,
    make_list_data,
)
from mosesplug.learning.lengths import find_recorded_length, spell_exponent
from mosesplug.learning.lists.binning import learn_bins
from mosesplug.learning.lists.blocks import names_values
from mosesplug.learning.lists.merging import NO_REFERENCES, References, load_lists
from mosesplug.learning.lists.outside import arrange_held_out, find_metric_of, make_named_metrics
from mosesplug.learning.lists.stored import read_store
from mosesplug.learning.made_features import take_recorded_bins
from mosesplug.learning.watched import find_watched
from mosesplug.learning.weights import StartingWeights, read_initial_weights, read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.metrics.protocol import needs_outside, needs_references
from mosesplug.metrics.scored import bind_source, find_scorers, require_scorer
from mosesplug.optimizers import Progress
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.domains import add_copies
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.features import (
    arrange_held_out_features,
)
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lengths import WORDS
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.sentences.domains import read_domains
from mosesplug.settings.sentences.source import check_source, read_source_lengths
from mosesplug.settings.sentences.weights import describe_weights, read_sentence_weights
from mosesplug.tuning_set import SparseRows, TuningSet


def read_data(
    settings: LearningSettings,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
    *,
    defers_scores: bool = False,
) -> LearningData:
    """Read the n-best lists, search graphs or store that settings name.

    Args:
        settings: see ``LearningSettings``.
        given: data in the place of those that settings name.
        defers_scores: with a score budget, whether the caller has commands score the hypotheses.

    Raises:
        UsageError: settings that cannot be used with this data: an unknown feature, iterations that
            a run does not have, a metric that a store or an algorithm does not support, a
            vocabulary of templates without a word of the source.
    """
    _check_start(settings)
    if settings.score_budget is not None and not defers_scores:
        raise UsageError(
            "{--score-budget} limits one optimization, not a cross-validation: leave it out"
        )
    if (file := settings.lists.templates) is not None and (source := settings.lists.source):
        file.templates.check_sources(read_lines(source), str(source))
    if settings.graphs:
        settings.selection.reject_counts()
    if given.learning_data is not None:
        data = given.learning_data
    elif settings.store is not None:
        data = read_store(settings, settings.store, progress, given)
    else:
        outside = make_named_metrics(settings.lists)
        metric = given.metric or find_metric_of(settings.metric, settings.metric_settings, outside)
        require_scorer(metric, settings.score_budget)
        references: References | None = given.references or settings.references
        watched = find_watched(settings.report_metric, settings.metric_settings, outside, metric)
        if references is None:
            if needing := [each.name for each in (metric, *watched) if needs_references(each)]:
                raise UsageError(
                    f"no reference is given, which {needing[0]} needs: use {{--refs}} FILE"
                )
            references = NO_REFERENCES
        if settings.graphs:
            # Here and not above: it loads Numba kernels that lists do not need.
            from mosesplug.learning.graphs import read_graph_data

            data = read_graph_data(settings, references, metric, progress, given)
        else:
            data = _read_lists(settings, references, metric, watched, progress, given)
    data = data.select_features(
        settings.selection,
        settings.ranges,
        settings.bounds,
        settings.length_range,
        tunes_sparse=find_algorithm(settings.algorithm).tunes_sparse,
    )
    data = _add_sentence_weights(_add_source(data, settings, given), settings)
    return _add_domains(data, settings, given)


def _check_start(settings: LearningSettings) -> None:
    """Reject starting weights of divided scores if scores are not to be divided.

    Raises:
        UsageError: the file of the weights records a length exponent, and settings have none.
    """
    path = settings.init_file
    if path is None or settings.length_range is not None or not path.is_file():
        return
    length = find_recorded_length(read_weights(path))
    if length is None or length.low == 0.0:
        return
    by = "" if length.by == WORDS else f" {{--length-by}} {length.by}"
    remedy = f"Give {{--length-exponent}} {length}{by}, or 0 to divide nothing"
    if settings.graphs or settings.sharding is not None or settings.domains is not None:
        remedy = "Remove the record from a copy of the file, or give other weights"
    raise UsageError(
        f"{path}: these weights belong to scores divided by the length to the power of "
        f"{spell_exponent(length)}, which {{--init}} does not take over. {remedy}."
    )


def _add_source(data: LearningData, settings: LearningSettings, given: GivenData) -> LearningData:
    """Return the data with the lengths of the source sentences, if these are given."""
    lengths = given.source
    if lengths is None and settings.lists.source is not None:
        lengths = read_source_lengths(settings.lists.source)
    if lengths is None:
        return data
    lists = data.problem.tuning_set
    check_source(lengths, data.sentences if settings.graphs else lists.sentence_ids)
    return replace(data, problem=replace(data.problem, source_lengths=lengths))


def _add_sentence_weights(data: LearningData, settings: LearningSettings) -> LearningData:
    """Return the data with the sentence weights of the settings, or else of the run."""
    lists = data.problem.tuning_set
    notes: tuple[str, ...]
    if settings.sentence_weights is not None:
        sentence_weights = read_sentence_weights(settings.sentence_weights)
        weights = sentence_weights.take(lists.sentence_ids)
        n_weights = len(sentence_weights.values)
        notes = _note_unused("sentence-weights", "weight", n_weights, lists.sentence_ids)
    elif lists.sentence_weights is not None:
        weights = lists.sentence_weights
        notes = ("sentences have the weights of the run; {--sentence-weights} gives others",)
    else:
        return data
    own = weights[data.sentences]
    if len(own) and not own.any():
        raise DataError(
            "{--sentence-weights} has weight 0 for all sentences of the lists. Give some a weight "
            "above 0"
        )
    problem = replace(data.problem, tuning_set=lists.weigh(weights))
    if settings.graphs:
        problem = data.restrict(problem, np.arange(lists.n_sentences))
    return replace(
        data,
        problem=problem,
        sentences=data.sentences[own > 0.0],
        description=f"{data.description}, {describe_weights(own)}",
        notes=(*data.notes, *notes),
    )


def _add_domains(data: LearningData, settings: LearningSettings, given: GivenData) -> LearningData:
    """Return the data with copies of features for each domain, if there are domains."""
    domains = given.domains
    if domains is None and settings.domains is not None:
        domains = read_domains(settings.domains)
    if domains is None:
        return data
    numbers = domains.take(data.problem.tuning_set.sentence_ids)
    tunes_sparse = find_algorithm(settings.algorithm).tunes_sparse
    problem, copies = add_copies(data.problem, domains.names, numbers, sparse=tunes_sparse)
    padding = np.zeros(len(copies.space) - len(copies.base))
    minima, maxima = problem.box
    weights = np.concatenate([data.start.weights, padding])
    labels = len(domains.of_sentence)
    unused = _note_unused("domains", "label", labels, problem.tuning_set.sentence_ids)
    return replace(
        data,
        problem=problem,
        start=StartingWeights(weights, minima, maxima),
        domains=LearningDomains(domains, copies),
        description=f"{data.description} in {len(domains.names)} domains",
        notes=(*data.notes, *unused),
    )


def _note_unused(
    option: str, noun: str, n_values: int, sentence_ids: NDArray[np.int64]
) -> tuple[Message, ...]:
    """Return a note if there are values of sentences after the last of the lists."""
    if (unused := n_values - int(sentence_ids.max(initial=-1)) - 1) <= 0:
        return ()
    return (
        Message(
            f"{{--{option}}} has {noun}s for {count_noun(unused, 'more sentence')} than the lists."
            " Check that they belong together"
        ),
    )


def read_held_out_lists(
    settings: LearningSettings,
    data: LearningData,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
) -> LearningData | None:
    """Read the held-out lists, if any, into the feature space of ``data``."""
    problem = data.problem
    watched = [watched_metric.metric for watched_metric in data.watched_metrics]
    files = wrap_files(given.heldout_lists or settings.heldout_nbest)
    references: References | None = given.heldout_references or settings.heldout_refs
    if not files:
        return None
    if references is None:
        if any(needs_references(scorer) for scorer in (problem.metric, *watched)):
            raise UsageError("the held-out lists have no references: use {--heldout-refs} FILE")
        references = NO_REFERENCES
    options = replace(_list_settings(settings, given), derive=data.derived)
    metrics = [_bind_held_out(scorer, options, settings) for scorer in (problem.metric, *watched)]
    own = settings.heldout_scores
    if own or any(needs_outside(scorer) for scorer in (problem.metric, *watched)):
        own = arrange_held_out(options.scores, own)
    added = arrange_held_out_features(
        options.add_feature,
        settings.heldout_add_feature,
    )
    if options.templates is not None and settings.heldout_source is None:
        raise UsageError(
            "{--templates} needs the source of the held-out lists, too: add {--heldout-source} FILE"
        )
    options = replace(
        options, scores=own, add_feature=added, source=settings.heldout_source or options.source
    )
    if given.has_bare_heldout:
        options = replace(options, ids=False)

    def loaded(done: int) -> None:
        progress(done, len(files), "held-out lists")

    return _load_other_lists(
        files,
        references,
        metrics,
        options,
        data,
        "held-out lists",
        loaded,
        defers_scores=settings.score_budget is not None,
    )


def read_monitored_lists(
    settings: LearningSettings, data: LearningData, given: GivenData = NOTHING_GIVEN
) -> dict[str, LearningData]:
    """Read the lists of monitors into the feature space of ``data``, by name."""
    watched = [watched_metric.metric for watched_metric in data.watched_metrics]
    options = replace(_list_settings(settings, given), derive=data.derived)
    return {
        f"monitor {monitor.name}": _load_other_lists(
            wrap_files([monitor.input]),
            monitor.references,
            (data.problem.metric, *watched),
            options,
            data,
            f"{{--monitor-nbest {monitor.name}}}",
        )
        for monitor in settings.monitor_nbest
    }


def _load_other_lists(
    files: Sequence[StrPath | InputFile | NBestList],
    references: References,
    metrics: Sequence[Metric],
    options: ListSettings,
    data: LearningData,
    what: str,
    loaded: Callable[[int], None] = lambda done: None,
    *,
    defers_scores: bool = False,
) -> LearningData:
    """Read lists that are only scored into the feature space of ``data``."""
    space, problem = data.space, data.problem
    lists = load_lists(
        files,
        references,
        metrics[0],
        options,
        watched=metrics[1:],
        dense=[name for name, _ in space.groups] if names_values(files[0], options) else None,
        is_held_out=True,
        defers_scores=defers_scores,
        threads=problem.threads,
        loaded=loaded,
    )
    return replace(
        data,
        problem=replace(problem, tuning_set=_move_to_space(lists.tuning_set, space)),
        sentences=np.flatnonzero(np.diff(lists.tuning_set.offsets)).astype(np.int64),
        watched_metrics=lists.watched_metrics,
        deferred=lists.deferred,
        notes=tuple(f"{what}: {note}" for note in lists.notes),
    )


def _bind_held_out(metric: Metric, lists: ListSettings, settings: LearningSettings) -> Metric:
    """Return a metric whose commands read the source of the held-out lists."""
    if not find_scorers(metric):
        return metric
    if lists.source is not None and settings.heldout_source is None:
        raise UsageError(
            "{--score-command} needs the source of the held-out lists, too: add "
            "{--heldout-source} FILE"
        )
    source = settings.heldout_source
    return bind_source(metric, None if source is None else read_lines(source))


def _read_lists(
    settings: LearningSettings,
    references: References,
    metric: Metric,
    watched: Sequence[Metric],
    progress: Progress,
    given: GivenData,
) -> LearningData:
    files = wrap_files(given.lists or settings.nbest)
    options = _list_settings(settings, given)
    if given.has_bare_references:
        options = replace(options, ids=False)
    file = None
    if given.start is None and settings.init is not None:
        file = read_initial_weights(settings.init, settings.sparse_init)
        options = take_recorded_bins(file, options)
    options = learn_bins(files, options)

    def find_start(space: FeatureSpace) -> StartingWeights:
        return read_starting_weights(space, file) if given.start is None else given.start(space)

    lists = load_lists(
        files,
        references,
        metric,
        options,
        watched=watched,
        defers_scores=settings.score_budget is not None,
        threads=settings.threads,
        loaded=lambda done: progress(done, len(files), "lists"),
        check=find_start if given.start is None else lambda space: None,
    )
    data = make_list_data(
        lists.tuning_set,
        metric,
        find_start(lists.tuning_set.space),
        lists.signature,
        lists.hypotheses,
        settings.threads,
        lists.watched_metrics,
        lists.notes,
    )
    data = replace(data, derived=options.derive, deferred=lists.deferred)
    return data.note_missing(lists.tuning_set.n_sentences, "hypotheses", "lists")


def _list_settings(settings: LearningSettings, given: GivenData) -> ListSettings:
    """Return how lists are read; names of a caller outweigh those of the settings."""
    lists = settings.lists
    return replace(
        lists,
        names=lists.names if given.names is None else tuple(given.names),
        dense=lists.dense if given.dense is None else tuple(given.dense),
    )


def _move_to_space(lists: TuningSet, space: FeatureSpace) -> TuningSet:
    """Return lists in another feature space, without sparse features that it lacks."""
    if lists.space.groups != space.groups:
        raise DataError(
            f"the held-out lists have the features {' '.join(lists.space.names)[:200]}, but the "
            f"lists to learn from have {' '.join(space.names)[:200]}. Use lists of one system."
        )
    if not space.n_sparse:
        return replace(lists, space=space, sparse=None)
    rows = lists.sparse or SparseRows.empty(lists.n_hyps)
    known = {name: column for column, name in enumerate(space.sparse)}
    columns = np.array([known.get(name, -1) for name in lists.space.sparse], dtype=np.int32)
    return replace(lists, space=space, sparse=rows.move(columns))
