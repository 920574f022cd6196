"""Convert the arguments of ``optimize`` to settings and data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.moses.ini import MosesIni
from formats.nbest.block import NBestList
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.api.initial_weights import arrange_initial, make_weight_file
from mosesplug.api.keywords import make_added_features, make_learning_keywords
from mosesplug.api.lists.arrays import convert_features
from mosesplug.api.lists.learning import (
    ArrayLists,
    load_list_references,
    make_lists,
    score_lists,
    single_list,
    take_lists,
)
from mosesplug.api.lists.sources import convert_lists
from mosesplug.api.lists.statistics import StatisticsMetric, convert_named_scores
from mosesplug.api.weights import WeightTable
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.inputs import GivenData
from mosesplug.learning.lists.binning import learn_bins
from mosesplug.learning.made_features import take_recorded_bins
from mosesplug.learning.weights import StartingWeights, read_initial_weights, read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.protocol import needs_references
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.sentences.domains import make_domains
from mosesplug.settings.sentences.source import count_source_words

_LIST_KEYWORDS = ("format", "columns", "drop_feature", "rename", "word_scores")
"""Arguments that say how lists are read."""


@dataclass(frozen=True)
class Task:
    """The settings and the data of one call of ``optimize``.

    Attributes:
        settings: those that are values or paths.
        columns, config: as for ``Fit``.
    """

    settings: LearningSettings
    data: GivenData
    columns: NDArray[np.int64] | None = None
    config: MosesIni | None = None


def make_task(
    *,
    lists: Any = None,
    features: Any = None,
    sentence_ids: Any = None,
    hypotheses: Any = None,
    references: Any = None,
    scores: Any = None,
    statistics: Any = None,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    metric: str | Metric | None = None,
    initial: Any = None,
    heldout_lists: Any = None,
    heldout_references: Any = None,
    heldout_scores: Mapping[str, Any] | None = None,
    add_features: Mapping[str, Any] | None = None,
    heldout_add_features: Mapping[str, Any] | None = None,
    domains: StrPath | Sequence[str] | None = None,
    source: StrPath | Sequence[str] | None = None,
    **values: Any,
) -> Task:
    """Return the task that the arguments of ``optimize`` describe.

    ``values`` are its other settings.
    """
    lists = convert_lists(lists, values.get("columns"))
    heldout_lists = convert_lists(heldout_lists, values.get("columns"), "heldout_lists")
    origin = _find_source(lists=lists, features=features, **values)
    if scores is not None and statistics is not None:
        raise UsageError("scores and statistics exclude each other: give one of them")
    named = scores if isinstance(scores, Mapping) else None
    scores = None if named is not None else scores
    _check_metric(metric, values.get("metric_settings"), scores, statistics, references)
    _check_requirements(
        origin,
        {"sentence_ids": sentence_ids, "hypotheses": hypotheses, "dense": dense}
        | {name: values.get(name) or None for name in _LIST_KEYWORDS},
        is_scored=scores is not None or statistics is not None,
        is_named=named is not None,
        references=references,
    )
    if isinstance(domains, str | PathLike):
        values["domains"] = domains
    if isinstance(source, str | PathLike):
        values["source"] = source
    if domains is not None:
        _check_domains(heldout_lists=heldout_lists, **values)
    if isinstance(initial, str | PathLike):
        values["initial"] = initial
    if isinstance(metric, str):
        values["metric"] = metric
    settings = _add_features(
        make_learning_keywords(values), origin, add_features, heldout_add_features
    )
    if isinstance(metric, str) and statistics is not None:
        metric = find_metric(metric, settings.metric_settings)
    if named is not None:
        settings = _add_scores(settings, named, heldout_scores)
    elif heldout_scores is not None:
        raise UsageError("heldout_scores requires scores by name, as scores={'COMET': ...}")
    if references is None and origin != "store" and scores is None and statistics is None:
        name = settings.metric or "BLEU"
        if metric is None or isinstance(metric, str):
            is_needed = settings.needs_references
        else:
            name, is_needed = metric.name, needs_references(metric)
        if is_needed:
            raise UsageError(
                "references is missing: give references, or scores, or statistics. The metric "
                f"{name} needs them"
            )
    data_of_call = _find_held_out(settings, heldout_lists, heldout_references)
    if domains is not None and not isinstance(domains, str | PathLike):
        data_of_call = replace(data_of_call, domains=make_domains(domains))
    if source is not None and not isinstance(source, str | PathLike):
        lines = [str(text).encode() for text in source]
        data_of_call = replace(data_of_call, source=count_source_words(lines))

    arrays = None if features is None else convert_features(features, names, dense)
    columns = None if arrays is None else arrays.columns
    start, file = _make_start(initial, settings, columns)
    config = None if file is None else file.ini
    if file is None and isinstance(initial, WeightTable):
        file = initial.file
    if file is not None:
        settings = replace(settings, lists=take_recorded_bins(file, settings.lists))
    if scores is not None or statistics is not None:
        if data_of_call.heldout_lists:
            raise UsageError("heldout_lists requires references: hold out a share (held_out)")
        if settings.monitor_nbest:
            raise UsageError("monitor_nbest requires references: leave scores and statistics out")
        order = None
        if arrays is None:
            settings = _learn_bins(settings, take_lists(lists, "lists"), names, dense)
            block = single_list(lists, settings.lists, names, dense)
        else:
            if settings.lists.transform is not None:
                raise UsageError("transform is not used with scores or statistics: leave it out")
            block, _, order = make_lists(arrays, sentence_ids, hypotheses, None)
        measure = None if isinstance(metric, str) else metric
        data = score_lists(block, order, scores, statistics, measure, start, settings.threads)
        data = replace(data, derived=settings.lists.derive)
        data_of_call = replace(data_of_call, learning_data=data)
        return Task(settings, data_of_call, columns, config)

    data_of_call = replace(
        data_of_call,
        metric=None if isinstance(metric, str) else metric,
        names=None if names is None else tuple(names),
        dense=None if dense is None else tuple(dense),
        start=None if initial is None else start,
    )
    if arrays is not None:
        arranged = make_lists(arrays, sentence_ids, hypotheses, references, settings.lists.ids)
        data_of_call = replace(
            data_of_call,
            lists=(arranged.block,),
            references=arranged.references,
            has_bare_references=True,
        )
        return Task(_arrange_scores(settings, arranged), data_of_call, columns, config)
    if references is not None:
        own = lists if origin == "lists" else ()
        data_of_call = replace(
            data_of_call,
            references=load_list_references(references, own),
            has_bare_references=isinstance(references, Mapping),
        )
    if origin == "lists":
        data_of_call = replace(data_of_call, lists=take_lists(lists, "lists"))
    elif origin == "graphs" and initial is not None and settings.init is None:
        # A table, such as that of another fit, may have more features than the graphs.
        is_exact = isinstance(initial, Mapping) and not isinstance(initial, WeightTable)
        wanted = tuple(initial) if is_exact else ()
        data_of_call = replace(
            data_of_call, graph_start=make_weight_file(initial), graph_names=wanted
        )
    return Task(settings, data_of_call, config=config)


def _learn_bins(
    settings: LearningSettings,
    lists: Sequence[NBestList | StrPath],
    names: Sequence[str] | None,
    dense: Sequence[str] | None,
) -> LearningSettings:
    """Return settings with the bounds of bins; names of the call come first."""
    named = replace(
        settings.lists,
        names=None if names is None else tuple(names),
        dense=None if dense is None else tuple(dense),
    )
    derived = learn_bins(lists, named).derive
    return replace(settings, lists=replace(settings.lists, derive=derived))


def _add_features(
    settings: LearningSettings,
    source: str,
    features: Mapping[str, Any] | None,
    held_out: Mapping[str, Any] | None,
) -> LearningSettings:
    """Return settings with added features by name."""
    others = {"add_features": features, "heldout_add_features": held_out}
    for name, value in (others | {"derive": settings.lists.derive}).items():
        if value and source != "lists":
            raise UsageError(f"{name} and {source} exclude each other: add columns to features")
    lists = replace(settings.lists, add_feature=make_added_features(features))
    away = make_added_features(held_out, "heldout_add_features")
    return replace(settings, lists=lists, heldout_add_feature=away)


def _add_scores(
    settings: LearningSettings, named: Mapping[str, Any], held_out: Mapping[str, Any] | None
) -> LearningSettings:
    """Return settings with scores by name."""
    sources = convert_named_scores(named)
    others = () if held_out is None else convert_named_scores(held_out, "heldout_scores")
    lists = replace(settings.lists, scores=sources)
    return replace(settings, lists=lists, heldout_scores=others)


def _arrange_scores(settings: LearningSettings, arranged_lists: ArrayLists) -> LearningSettings:
    """Return settings whose scores are in the order of lists that were made of arrays."""
    arranged = []
    for source in settings.lists.scores:
        if source.values is not None:
            if len(source.values) != len(arranged_lists.order):
                raise UsageError(
                    f"scores[{source.name!r}] has {len(source.values)} rows: give a number for "
                    f"each of {len(arranged_lists.order)} hypotheses"
                )
            source = replace(source, values=source.values[arranged_lists.order])
        arranged.append(source)
    return replace(settings, lists=replace(settings.lists, scores=tuple(arranged)))


def _find_source(**arguments: Any) -> str:
    """Return which argument has the data."""
    known = ("lists", "features", "store", "graphs")
    sources = [name for name in known if arguments.get(name) is not None]
    if not sources:
        raise UsageError("nothing to learn from: give lists, features, store or graphs")
    if sources[0] == "lists" and hasattr(arguments["lists"], "shape"):
        raise UsageError("lists is an array: give it as features=, with sentence_ids=")
    if len(sources) > 1:
        raise UsageError(f"{sources[0]} and {sources[1]} exclude each other: give one of them")
    return sources[0]


def _check_requirements(
    source: str,
    arrays: Mapping[str, object],
    *,
    references: object,
    is_scored: bool,
    is_named: bool,
) -> None:
    """Check that what belongs to the source of the data is there, and nothing else."""
    allowed = {
        "features": ("sentence_ids", "hypotheses", "dense"),
        "lists": ("dense", *_LIST_KEYWORDS),
    }
    for name, value in arrays.items():
        if value is not None and name not in allowed.get(source, ()):
            raise UsageError(f"{name} and {source} exclude each other")
    if source == "features" and arrays["sentence_ids"] is None:
        raise UsageError("features requires sentence_ids: the sentence of each hypothesis")
    if is_scored:
        if source in ("store", "graphs"):
            raise UsageError(f"scores and statistics require lists or features, not {source}")
        return
    if is_named:
        if source == "graphs":
            raise UsageError("scores require lists, features or a store, not graphs")
        return
    if source == "features" and arrays["hypotheses"] is None:
        raise UsageError("features requires hypotheses and references, or scores, or statistics")
    if isinstance(references, Mapping) and source not in ("features", "lists"):
        raise UsageError("references by sentence id require features, or lists in memory")


def _check_domains(**arguments: Any) -> None:
    """Check that nothing is given that weights of domains exclude."""
    for name in ("graphs", "bounds", "length_exponent", "heldout_lists", "monitor_nbest"):
        if arguments.get(name):
            raise UsageError(f"domains and {name} exclude each other: give one of them")


def _check_metric(
    metric: object, settings: object, scores: object, statistics: object, references: object
) -> None:
    """Check that the metric fits what it is computed from."""
    if (scores is not None or statistics is not None) and references is not None:
        raise UsageError("references are not used with scores or statistics: leave them out")
    if scores is not None and metric is not None:
        raise UsageError("metric is not used with scores, whose mean is the corpus score")
    if isinstance(metric, StatisticsMetric) and statistics is None:
        raise UsageError(f"the metric {metric.name} requires statistics=")
    if metric is None or isinstance(metric, str):
        return
    if settings:
        raise UsageError("metric_settings require a metric given by its name")
    if lacking := [
        attribute for attribute in ("score", "signature") if not hasattr(metric, attribute)
    ]:
        raise UsageError(
            f"metric is a {type(metric).__name__} without {lacking[0]}: give a name, or an object "
            "with the protocol mosesplug.metrics.Metric"
        )


def _make_start(
    initial: Any, settings: LearningSettings, columns: NDArray[np.int64] | None
) -> tuple[Callable[[FeatureSpace], StartingWeights], WeightFile | None]:
    """Return a function that finds starting weights, and their file if there is one."""
    file: WeightFile | None = None
    if settings.init is not None and not settings.graphs:
        # Read once: it may be a pipe.
        file = read_initial_weights(settings.init, settings.sparse_init)

    def start(space: FeatureSpace) -> StartingWeights:
        if initial is None or file is not None:
            return read_starting_weights(space, file)
        return arrange_initial(initial, space, columns)

    return start, file


def _find_held_out(settings: LearningSettings, lists: Any, references: Any) -> GivenData:
    """Return the held-out lists."""
    if settings.select == "best-heldout" and not (settings.held_out or lists is not None):
        raise UsageError("select='best-heldout' requires held_out or heldout_lists")
    has_scores = bool(settings.heldout_scores)
    if lists is None and has_scores:
        raise UsageError("heldout_scores requires heldout_lists")
    if (lists is None) != (references is None) and not (has_scores and lists is not None):
        raise UsageError("heldout_lists and heldout_references require each other")
    if lists is None:
        return GivenData()
    others: dict[str, object] = {"held_out": settings.held_out, "folds": settings.folds}
    for name, value in (others | {"graphs": settings.graphs}).items():
        if value:
            raise UsageError(f"heldout_lists and {name} exclude each other: use one of them")
    return GivenData(
        heldout_lists=take_lists(lists, "heldout_lists"),
        heldout_references=(
            None
            if references is None
            else load_list_references(references, lists, "heldout_references")
        ),
        has_bare_heldout=isinstance(references, Mapping),
    )
