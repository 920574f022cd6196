"""Learn weights from arrays, n-best lists, search graphs or a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from formats.moses.ini import MosesIni
from mosesplug.api.fit import Fit
from mosesplug.api.initial_weights import InitialWeights
from mosesplug.api.keywords import LEARNING, LearningKeywords, check_names
from mosesplug.api.lists.sources import ListSource
from mosesplug.api.progress import Progress, log_formats, log_lines, log_warnings, open_progress
from mosesplug.api.tables.gains import Gains, ValidationTable
from mosesplug.api.task import make_task
from mosesplug.errors import Message
from mosesplug.learning.inputs import NOTHING_GIVEN, GivenData
from mosesplug.learning.optimize import bind_optimizer, validate
from mosesplug.learning.optimize import optimize as learn
from mosesplug.metrics import Metric
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.problem import Progress as ReportWork
from mosesplug.optimizers.problem import no_progress
from mosesplug.results.render.render import Medium, list_blocks
from mosesplug.results.report.learning_report import FitReport
from mosesplug.results.scores.gains import find_gaming, measure_fold_gains, measure_gains
from mosesplug.settings.algorithm_options import find_idle_options
from mosesplug.settings.learning import LearningSettings


class ValidationKeywords(LearningKeywords, total=False):
    """Keywords of ``cross_validate``; ``optimize`` names them in its signature."""

    references: Any
    metric: str | Metric | None
    algorithm: str
    initial: InitialWeights | None
    seed: int
    threads: int | None


class OptimizeKeywords(LearningKeywords, total=False):
    """Keywords of ``optimize``, which describes them."""

    heldout_lists: ListSource | Sequence[ListSource] | None
    heldout_references: Any
    heldout_add_features: Mapping[str, Any] | None
    heldout_scores: Mapping[str, Any] | None
    monitor_nbest: Mapping[str, tuple[str | PathLike[str], str | PathLike[str]]] | Sequence[str]
    folds: int | None
    score_budget: int | None


@dataclass(frozen=True)
class HeldOut:
    """A held-out set of its own, for ``optimize(..., held_out=HeldOut(...))``.

    Attributes:
        lists: its n-best lists, as ``lists`` of ``optimize``.
        references: their references.
        add_features: values of the added features for these lists.
        scores: scores by name of these lists.

    Example:
        >>> import mosesplug
        >>> fit = mosesplug.optimize(
        ...     "run1.best100.out.gz", references="dev.en", initial="run1.dense",
        ...     held_out=mosesplug.HeldOut("run1.best100.out.gz", "dev.en"),
        ... )
        >>> fit.held_out
        1.0
    """

    lists: ListSource | Sequence[ListSource]
    references: Any = None
    add_features: Mapping[str, Any] | None = None
    scores: Mapping[str, Any] | None = None

    def as_keywords(self) -> OptimizeKeywords:
        """Return the same set as keywords of ``optimize``."""
        return {
            "heldout_lists": self.lists,
            "heldout_references": self.references,
            "heldout_add_features": self.add_features,
            "heldout_scores": self.scores,
        }


@LEARNING.in_messages()
def optimize(
    lists: ListSource | Sequence[ListSource] | None = None,
    *,
    references: Any = None,
    metric: str | Metric | None = None,
    algorithm: str = "mert",
    initial: InitialWeights | None = None,
    held_out: float | HeldOut | None = None,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress = None,
    **more: Unpack[OptimizeKeywords],
) -> Fit:
    """Learn weights from hypotheses, without a decoder.

    Data are given in one of four ways: ``lists``; ``features`` with ``sentence_ids``; ``store``;
    or ``graphs``. The metric is computed from texts and ``references``, or its value is given for
    each hypothesis (``scores``, ``statistics``).

    Args:
        lists: n-best lists to merge: an ``NBest``, a file, or a data frame, or several of them; or
            nested lists. A data frame has a column of sentence ids (``id``, ``utt_id``,
            ``sentence``, ...), one of texts (``hyp``, ``text``, ...) and one of numbers for each
            feature; ``columns`` chooses some; its rows are sorted by sentence. Nested lists are
            ``[sentence][hypothesis]``, or a mapping of sentence ids to lists; a hypothesis is a
            text, ``(text, score, ...)``, or a mapping as ``{"text": "a b", "lm": -3.5}``.
        references: a file or the prefix of several; a text for each sentence; several sequences of
            texts, ``[reference][sentence]``; or a mapping of sentence ids to one or several texts,
            for features or lists in memory.
        metric: the name of a metric, or several with commas; an object with the protocol
            ``mosesplug.metrics.Metric``; with ``statistics``, a ``StatisticsMetric``. None: BLEU,
            or that of the store.
        algorithm: see ``algorithms``.
        initial: starting weights: a mapping of names to weights, a vector, or a file of any format.
            None: equal weights, or those that made the store or the graphs.
        held_out: share of the sentences to hold out, as 0.2; or a held-out set, ``HeldOut``.
        seed: seed of all random choices.
        threads: maximum number of threads; None: one for each core that this process may use.
        progress: None; True for a bar; or a function of (done, total, what).
        more: keywords of five kinds, by name.

    Other data than lists:
        features: feature values, ``[n_hyps, n_features]``: an array, a data frame, or a SciPy
            sparse matrix. They are converted to single precision, as in n-best lists.
        sentence_ids: ``[n_hyps]``, the sentence of each hypothesis; anything that can be a key, in
            any order. Integers are lines of the references, from 0. Other ids take references
            in the order of their first appearance.
        hypotheses: ``[n_hyps]``, the texts, tokens separated by blanks. Those of a sentence with
            the same text and features count once. With ``scores`` or ``statistics``, texts are
            optional, and every hypothesis counts.
        scores: ``[n_hyps]``, a number for each hypothesis, larger for better ones. The corpus score
            is the mean of the chosen hypotheses. Or scores by name, ``{"COMET": numbers}``, as
            ``--scores``: numbers or a file for the hypotheses of all lists, in their order;
            ``metric`` may name them, also in a sum with metrics of texts, as
            ``"COMET:0.7+CHRF:0.3"`` (None: the first). Two columns are a ratio of sums;
            ``{"TERX:error": ...}`` is an error rate. Hypotheses with the same text, features and
            scores then count once.
        statistics: ``[n_hyps, n_statistics]``, the statistics of each hypothesis; ``metric`` scores
            their sum.
        store: the working directory of a tuning run, or the store in it.
        iterations: those of the store: ``"2:5"``, ``"3"``, or ``"-5"`` for the newest five.
        graphs: search graphs, a directory or file for each decoding.
        hg_prune: edges to keep of each search graph for each word of the reference; None: all.

    How data are read:
        reading: the keywords of ``ListKeywords``, one by one or as ``**reading``. ``names`` and
            ``dense`` are also those of the columns of ``features``. MERT tunes dense features only,
            unless ``active`` names others.
        ids: whether lines of references begin with sentence ids, by which they are matched. None:
            the ids of the lists and the lines decide; what cannot be decided is an error. False:
            lines have the order of the sentences, and first words are words.

    What is learned:
        metric_settings: settings of a named metric, as ``"case:false"`` or a mapping.
        report_metrics: metrics that are reported and never optimized, as ``"TER"`` or
            ``"CHRF beta:3"``; see ``Fit.gains``.
            ``scores`` by name that the metric does not use are reported, too.
        sparse_initial: a file of starting weights of sparse features.
        options: settings of the algorithm by name.
        active: names of the features to tune, also ``"WT_*"``; None: all dense ones (some
            algorithms: all).
        sparse_min_count: tune only sparse features found in this many sentences or more.
        sparse_max: tune this many sparse features, the most common ones; 0: all.
        ranges: ranges of random starts, ``{"LM0": (-1, 1)}`` or ``["LM0:-1..1"]``.
        bounds: limits that the learned weights keep, by feature or group: ``{"LM0": (0, None),
            "TM0": ">0", "Words": 1.0}`` or ``["LM0:0..", "TM0:>0", "Words:=1"]``; a number fixes
            a weight.
        domains: the domain of each source sentence: a file with a label on each line, or the
            labels. Each domain then has the shared weights plus deviations of its own; see
            ``Fit.domains``.
        sentence_weights: the weight of each source sentence: a file with a number on each line,
            or the numbers. A sentence of weight 2 counts as two sentences.
        score_budget: most texts of each sentence that the command of ``metric`` scores; see
            ``--score-budget``. The printed fit says what that costs.
        source: the source sentences, a file or a sequence of texts, from which
            ``options={"cost_unit": "source"}`` takes lengths.
        length_exponent: range of the exponent ``x`` of scores ``w . h / length**x``, as ``"0:2"``,
            or ``"LM0,TM0:0:2"`` to divide some features; one number is a known exponent.
        length_by: the length: ``words``, or the name of a dense feature.

    Several runs and validation:
        folds: number of folds of a cross-validation before learning.
        runs: number of runs, with seeds ``seed``, ``seed + 1``, ...
        select: the weights of several runs: ``median``, ``best-heldout`` or ``average``.
        heldout_lists, heldout_references, heldout_add_features, heldout_scores: a held-out set, one
            by one; see ``HeldOut``.
        monitor_nbest: files of lists and of their references by name, ``{"news": ("news.nbest",
            "news.ref")}``; they are scored at the start and with the result (``Fit.gains``), and
            select nothing.

    Parallel learning:
        sharding: as ``{"shards": 4}``; the other settings are ``workers``, ``scheduler`` and
            ``directory``, and for online algorithms ``mixing``, ``keep``, ``asynchronous`` and
            ``async_order``.

    Returns:
        The weights with their scores.

    Raises:
        UsageError: arguments that do not fit together; the message names the argument.
        DataError: data that do not fit together, or are not finite.
        FormatError: a file has another format.
        OptimizerError: no usable weights were found.
        OSError: a file is missing.

    Example:
        >>> import mosesplug
        >>> fit = mosesplug.optimize(
        ...     features=[[-3.0, 2], [-3.5, 3], [-1.0, 1], [-0.5, 2]],
        ...     sentence_ids=[0, 0, 1, 1],
        ...     hypotheses=["a house", "the small house", "yes", "no no"],
        ...     references=["the small house", "yes"],
        ...     names=["LM", "Words"],
        ...     metric="WER",
        ... )
        >>> list(fit.weights)
        ['LM', 'Words']
        >>> fit.score >= fit.start_score
        True
    """
    check_names(more, OptimizeKeywords.__annotations__, optimize)
    keywords = {
        "lists": lists,
        "references": references,
        "metric": metric,
        "algorithm": algorithm,
        "initial": initial,
        "seed": seed,
        "threads": threads,
        **more,
    }
    if isinstance(held_out, HeldOut):
        keywords |= held_out.as_keywords()
    else:
        keywords["held_out"] = held_out
    with open_progress(progress) as report:
        task = make_task(**keywords)
        log_formats(task.data.lists, task.settings.lists)
        optimizer, idle = check_settings(task.settings)
        fit = fit_settings(
            task.settings,
            optimizer,
            task.data,
            report,
            idle=idle,
            columns=task.columns,
            config=task.config,
        )
    warnings = tuple(Message(warning, LEARNING) for warning in fit.warnings)
    log_warnings(warnings)
    log_lines(
        Message(block, LEARNING) if isinstance(block, str) else block
        for block in list_blocks(FitReport(fit.result, fit.settings, fit.gains), Medium())
    )
    return replace(fit, warnings=warnings)


@LEARNING.in_messages()
def cross_validate(
    lists: ListSource | Sequence[ListSource] | None = None,
    *,
    folds: int = 5,
    progress: Progress = None,
    **more: Unpack[ValidationKeywords],
) -> ValidationTable:
    """Score weights on sentences that they were not learned from.

    Each fold of the sentences is decided with weights learned from the other folds.

    Args:
        lists: as for ``optimize``.
        folds: number of folds.
        progress: as for ``optimize``.
        more: the other keywords of ``optimize``, except those of held-out sets and monitors;
            ``runs`` and ``select`` learn several times from the other folds, and take the weights
            of the median run or the average.

    Returns:
        The scores of each fold (``folds``), the score of all sentences together, each decided with
        weights that were learned without it (``held_out``), and that of the starting weights
        (``start``). ``gains`` compares the last two by the objective and by ``report_metrics``,
        with tests of significance. It prints as tables.

    Raises:
        UsageError, DataError, FormatError, OptimizerError, OSError: as for ``optimize``; there are
            more folds than sentences.

    Example:
        >>> import mosesplug
        >>> result = mosesplug.cross_validate("run1.best100.out.gz", references="dev.en", folds=2)
        >>> [fold.sentences for fold in result.folds]
        [2, 2]
        >>> result
        2-fold cross-validation of 4 sentences: ... held out, ... with the starting weights
        fold  sentences  learning  held_out
           1          2 ...
           2          2 ...
    """
    check_names(more, ValidationKeywords.__annotations__, cross_validate)
    with open_progress(progress) as report:
        task = make_task(lists=lists, folds=folds, **more)
        log_formats(task.data.lists, task.settings.lists)
        data, validation = validate(task.settings, folds, report, task.data)
        return ValidationTable.of_result(validation, measure_fold_gains(data, validation))


def algorithms() -> dict[str, str]:
    """Return what each algorithm does, by the name that ``optimize`` takes.

    Example:
        >>> import mosesplug
        >>> mosesplug.algorithms()["mert"]
        "Find the metric's optimum along lines, exactly."
    """
    from mosesplug.optimizers import algorithms as registered

    return {name: algorithm.summary for name, algorithm in registered().items()}


def check_settings(settings: LearningSettings) -> tuple[Optimizer, list[str]]:
    """Check options and input files of settings.

    Returns:
        The algorithm with its options, and warnings about options without effect.

    Raises:
        UsageError: an unknown algorithm or option, or an invalid value.
        OSError: a file is missing.
    """
    optimizer = bind_optimizer(settings)
    for path in settings.input_paths:
        path.stat()
    return optimizer, find_idle_options(optimizer, settings.options)


def fit_settings(
    settings: LearningSettings,
    optimizer: Optimizer,
    data: GivenData = NOTHING_GIVEN,
    progress: ReportWork = no_progress,
    *,
    idle: Sequence[str] = (),
    columns: NDArray[np.int64] | None = None,
    config: MosesIni | None = None,
) -> Fit:
    """Learn weights as settings say.

    Args:
        settings: what to learn from, and how.
        optimizer, idle: from ``check_settings``.
        data: data in the place of those that settings name.
        progress: called with the work done.
        columns, config: see ``Fit``.

    Raises:
        UsageError, FormatError, DataError, OptimizerError: see ``optimize``.
        OSError: a file is missing.
    """
    result = learn(settings, optimizer, progress, data)
    gains = measure_gains(result)
    gaming = find_gaming(gains)
    warnings = (*idle, *result.warnings, *([] if gaming is None else [gaming]))
    return Fit(settings, result, warnings, columns, config, Gains(gains))
