"""Learn weights from arrays, n-best lists, search graphs or a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from formats.moses.ini import MosesIni
from formats.text import StrPath
from mosesplug.api.fit import Fit, Gains, ValidationTable
from mosesplug.api.keywords import name_keywords, spell_argument, spell_options
from mosesplug.api.list_sources import ListSource
from mosesplug.api.progress import Progress, log_formats, log_lines, log_warnings, open_progress
from mosesplug.api.task import make_task
from mosesplug.api.weights import InitialWeights
from mosesplug.learning.inputs import NOTHING_GIVEN, GivenData
from mosesplug.learning.optimize import bind_optimizer, validate
from mosesplug.learning.optimize import optimize as learn
from mosesplug.metrics import Metric
from mosesplug.optimizers.problem import Progress as ReportWork
from mosesplug.optimizers.problem import no_progress
from mosesplug.results.report.learning_report import list_result
from mosesplug.results.scores.gains import find_gaming, measure_fold_gains, measure_gains
from mosesplug.settings.algorithm_options import find_idle_options
from mosesplug.settings.learning import LearningSettings


def optimize(
    lists: ListSource | Sequence[ListSource] | None = None,
    *,
    features: Any = None,
    sentence_ids: Any = None,
    hypotheses: Sequence[str] | Sequence[bytes] | None = None,
    references: Any = None,
    scores: Any = None,
    statistics: Any = None,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    drop_feature: Sequence[str] = (),
    rename: Mapping[str, str] | Sequence[str] = (),
    word_scores: Literal["drop", "sum"] | None = None,
    ids: bool | None = None,
    add_features: Mapping[str, Any] | None = None,
    derive: Mapping[str, str] | Sequence[str] = (),
    transform: str | None = None,
    store: StrPath | None = None,
    iterations: str | None = None,
    graphs: StrPath | Sequence[StrPath] | None = None,
    hg_prune: int | None = None,
    metric: str | Metric | None = None,
    metric_settings: str | Mapping[str, object] = "",
    report_metrics: Sequence[str] = (),
    initial: InitialWeights | None = None,
    sparse_initial: StrPath | None = None,
    algorithm: str = "mert",
    options: Mapping[str, object] | None = None,
    active: Sequence[str] | None = None,
    ranges: Sequence[str] | Mapping[str, tuple[float, float]] = (),
    bounds: Sequence[str] | Mapping[str, Any] = (),
    domains: StrPath | Sequence[str] | None = None,
    length_exponent: float | str | None = None,
    length_by: str | None = None,
    seed: int = 1,
    held_out: float | None = None,
    heldout_lists: ListSource | Sequence[ListSource] | None = None,
    heldout_references: Any = None,
    heldout_add_features: Mapping[str, Any] | None = None,
    heldout_scores: Mapping[str, Any] | None = None,
    folds: int | None = None,
    runs: int | None = None,
    select: str = "median",
    threads: int | None = None,
    sharding: Mapping[str, object] | None = None,
    progress: Progress = None,
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
        features: feature values, ``[n_hyps, n_features]``: an array, a data frame, or a SciPy
            sparse matrix. They are converted to single precision, as in n-best lists.
        sentence_ids: ``[n_hyps]``, the sentence of each hypothesis; anything that can be a key, in
            any order. Integers are lines of the references, from 0. Other ids take references
            in the order of their first appearance.
        hypotheses: ``[n_hyps]``, the texts, tokens separated by blanks. Those of a sentence with
            the same text and features count once. With ``scores`` or ``statistics``, texts are
            optional, and every hypothesis counts.
        references: a file or the prefix of several; a text for each sentence; several sequences of
            texts, ``[reference][sentence]``; or a mapping of sentence ids to one or several texts,
            for features or lists in memory.
        scores: ``[n_hyps]``, a number for each hypothesis, larger for better ones. The corpus score
            is the mean of the chosen hypotheses. Or scores by name, ``{"COMET": numbers}``, as
            ``--scores``: numbers or a file for the hypotheses of all lists, in their order;
            ``metric`` may name them, also in a sum with metrics of texts, as
            ``"COMET:0.7+CHRF:0.3"`` (None: the first). Two columns are a ratio of sums;
            ``{"TERX:error": ...}`` is an error rate. Hypotheses with the same text, features and
            scores then count once.
        statistics: ``[n_hyps, n_statistics]``, the statistics of each hypothesis; ``metric`` scores
            their sum.
        names: name of each column of ``features``, or of each value of a file without labels;
            equal neighbors are values of one feature.
        dense: names of the dense columns of a sparse matrix, or of the dense features of lists that
            name every value. None: all if there are up to 50, else those with a value in at
            least half of the rows. MERT tunes dense features only, unless ``active`` names others.
        format, columns, drop_feature, rename, word_scores: how lists are read, as for
            ``read_nbest``.
        ids: whether lines of references begin with sentence ids, by which they are matched. None:
            the ids of the lists and the lines decide; what cannot be decided is an error. False:
            lines have the order of the sentences, and first words are words.
        add_features: additional features of ``lists`` by name: a value for each hypothesis, or
            several, in the order of the lists; or a file, or several, with a line for each.
        derive: features that are computed from dense ones, ``{"lm_norm": "lm/words"}``. They may
            use those derived before, ``words`` and ``chars`` of the hypothesis, numbers,
            ``+ - * / **``, ``log``, ``exp``, ``sqrt`` and ``abs``.
        transform: a shell command that reads hypotheses, one a line, and writes those to score;
            ``"bpe"`` joins subwords.
        store: the working directory of a tuning run, or the store in it.
        iterations: those of the store: ``"2:5"``, ``"3"``, or ``"-5"`` for the newest five.
        graphs: search graphs, a directory or file for each decoding.
        hg_prune: edges to keep of each search graph for each word of the reference; None: all.
        metric: the name of a metric, or several with commas; an object with the protocol
            ``mosesplug.metrics.Metric``; with ``statistics``, a ``StatisticsMetric``. None: BLEU,
            or that of the store.
        metric_settings: settings of a named metric, as ``"case:false"`` or a mapping.
        report_metrics: names of metrics that are reported and never optimized; see ``Fit.gains``.
            ``scores`` by name that the metric does not use are reported, too.
        initial: starting weights: a mapping of names to weights, a vector, or a file of any format.
            None: equal weights, or those that made the store or the graphs.
        sparse_initial: a file of starting weights of sparse features.
        algorithm: see ``algorithms``.
        options: settings of the algorithm by name.
        active: names of the features to tune; None: all dense ones (some algorithms: all).
        ranges: ranges of random starts, ``{"LM0": (-1, 1)}`` or ``["LM0:-1..1"]``.
        bounds: limits that the learned weights keep, by feature or group: ``{"LM0": (0, None),
            "TM0": ">0", "Words": 1.0}`` or ``["LM0:0..", "TM0:>0", "Words:=1"]``; a number fixes
            a weight.
        domains: the domain of each source sentence: a file with a label on each line, or the
            labels. Each domain then has the shared weights plus deviations of its own; see
            ``Fit.domains``.
        length_exponent: range of the exponent ``x`` of scores ``w . h / length**x``, as ``"0:2"``,
            or ``"LM0,TM0:0:2"`` to divide some features; one number is a known exponent.
        length_by: the length: ``words``, or the name of a dense feature.
        seed: seed of all random choices.
        held_out: share of the sentences to hold out, as 0.2.
        heldout_lists, heldout_references: lists of a held-out set, and their references.
        heldout_add_features: values of ``add_features`` for them.
        heldout_scores: scores by name of ``heldout_lists``, as ``scores``.
        folds: number of folds of a cross-validation before learning.
        runs: number of runs, with seeds ``seed``, ``seed + 1``, ...
        select: the weights of several runs: ``median``, ``best-heldout`` or ``average``.
        threads: maximum number of threads; None: one for each core that this process may use.
        sharding: parallel learning, as ``{"shards": 4}``; the other settings are ``workers``,
            ``scheduler`` and ``directory``, and for online algorithms ``mixing``, ``keep``,
            ``asynchronous`` and ``async_order``.
        progress: None; True for a bar; or a function of (done, total, what).

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
    keywords = dict(locals())
    progressing = open_progress(keywords.pop("progress"))
    with name_keywords(LearningSettings, spell_argument), progressing as report:
        task = make_task(**keywords)
        log_formats(task.data.lists, task.settings.lists)
        fit = fit_settings(
            task.settings, task.data, report, columns=task.columns, config=task.config
        )
    warnings = tuple(spell_options(warning, spell_argument) for warning in fit.warnings)
    log_warnings(warnings)
    report_lines = list_result(fit.result, fit.settings, fit.gains)
    log_lines(
        spell_options(block, spell_argument) if isinstance(block, str) else block
        for block in report_lines
    )
    return replace(fit, warnings=warnings)


def cross_validate(
    lists: ListSource | Sequence[ListSource] | None = None,
    *,
    features: Any = None,
    sentence_ids: Any = None,
    hypotheses: Sequence[str] | Sequence[bytes] | None = None,
    references: Any = None,
    scores: Any = None,
    statistics: Any = None,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    drop_feature: Sequence[str] = (),
    rename: Mapping[str, str] | Sequence[str] = (),
    word_scores: Literal["drop", "sum"] | None = None,
    ids: bool | None = None,
    add_features: Mapping[str, Any] | None = None,
    derive: Mapping[str, str] | Sequence[str] = (),
    transform: str | None = None,
    store: StrPath | None = None,
    iterations: str | None = None,
    graphs: StrPath | Sequence[StrPath] | None = None,
    hg_prune: int | None = None,
    metric: str | Metric | None = None,
    metric_settings: str | Mapping[str, object] = "",
    report_metrics: Sequence[str] = (),
    initial: InitialWeights | None = None,
    sparse_initial: StrPath | None = None,
    algorithm: str = "mert",
    options: Mapping[str, object] | None = None,
    active: Sequence[str] | None = None,
    ranges: Sequence[str] | Mapping[str, tuple[float, float]] = (),
    bounds: Sequence[str] | Mapping[str, Any] = (),
    domains: StrPath | Sequence[str] | None = None,
    length_exponent: float | str | None = None,
    length_by: str | None = None,
    seed: int = 1,
    threads: int | None = None,
    sharding: Mapping[str, object] | None = None,
    folds: int = 5,
    runs: int | None = None,
    select: str = "median",
    progress: Progress = None,
) -> ValidationTable:
    """Score weights on sentences that they were not learned from.

    Each fold of the sentences is decided with weights learned from the other folds.

    Args:
        folds: number of folds.
        runs, select: learn ``runs`` times from the other folds, and take the weights of the median
            run or the average.

    The other arguments are those of ``optimize``.

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
        >>> found = mosesplug.cross_validate("run1.best100.out.gz", references="dev.en", folds=2)
        >>> [fold.sentences for fold in found.folds]
        [2, 2]
        >>> found
        2-fold cross-validation of 4 sentences: ... held out, ... with the starting weights
        fold  sentences  learning  held_out
           1          2 ...
           2          2 ...
    """
    keywords = dict(locals())
    progressing = open_progress(keywords.pop("progress"))
    with name_keywords(LearningSettings, spell_argument), progressing as report:
        task = make_task(**keywords)
        log_formats(task.data.lists, task.settings.lists)
        data, found = validate(task.settings, folds, report, task.data)
        return ValidationTable.of_result(found, measure_fold_gains(data, found))


def algorithms() -> dict[str, str]:
    """Return what each algorithm does, by the name that ``optimize`` takes.

    Example:
        >>> import mosesplug
        >>> mosesplug.algorithms()["mert"]
        "Find the metric's optimum along lines, exactly."
    """
    from mosesplug.optimizers import algorithms as registered

    return {name: each.summary for name, each in registered().items()}


def check_settings(settings: LearningSettings) -> list[str]:
    """Check options and input files of settings; return warnings about options.

    Raises:
        UsageError: an unknown algorithm or option, or an invalid value.
        OSError: a file is missing.
    """
    idle = find_idle_options(bind_optimizer(settings), settings.options)
    for path in settings.input_paths:
        path.stat()
    return idle


def fit_settings(
    settings: LearningSettings,
    given: GivenData = NOTHING_GIVEN,
    progress: ReportWork = no_progress,
    *,
    columns: NDArray[np.int64] | None = None,
    config: MosesIni | None = None,
) -> Fit:
    """Learn weights as settings say.

    Args:
        settings: what to learn from, and how.
        given: data in the place of those that settings name.
        progress: called with the work done.
        columns, config: see ``Fit``.

    Raises:
        UsageError, FormatError, DataError, OptimizerError: see ``optimize``.
        OSError: a file is missing.
    """
    idle = check_settings(settings)
    result = learn(settings, progress, given)
    gains = measure_gains(result)
    gaming = find_gaming(gains)
    warnings = (*idle, *result.warnings, *([] if gaming is None else [gaming]))
    return Fit(settings, result, warnings, columns, config, Gains(gains))
