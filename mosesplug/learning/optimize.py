"""Learn weights from the data that settings name, and say what to check."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from mosesplug.arrays import Weights
from mosesplug.errors import Message, UsageError
from mosesplug.learning.cross_validation import CrossValidation, cross_validate
from mosesplug.learning.data import read_data, read_held_out_lists, read_monitored_lists
from mosesplug.learning.domains import DomainScore, LearnFunction, score_domains
from mosesplug.learning.inputs import NOTHING_GIVEN, GivenData, LearningData
from mosesplug.learning.length_exponent import learn_exponent
from mosesplug.learning.lists.stored import read_run_source
from mosesplug.learning.runs import LearningResult, learn_weights, make_learner, select_from_runs
from mosesplug.metrics import Metric
from mosesplug.metrics.protocol import score_sentences
from mosesplug.metrics.scored import BudgetCost
from mosesplug.optimizers import Optimizer, Problem, Progress
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.problem import no_progress
from mosesplug.optimizers.registry import Algorithm
from mosesplug.optimizers.selection import FeatureSelection, NamePatterns
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.template_file import TemplateFile
from mosesplug.tuning.warning_signs import find_list_signs, find_weight_signs
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True)
class OptimizeResult:
    """What ``optimize`` returns.

    Attributes:
        data: the data that weights were learned from, with the sentences of it that were held out.
        held_out: other lists to hold out; None without any.
        monitors: lists that are only scored, by ``monitor NAME``.
        learning: the weights and their scores.
        warnings: what a user should check about the data and the weights.
        notes: what a user should know about the result.
        seconds_loading, seconds_learning: wall-clock time of both steps.
        cpu_seconds: CPU time of learning in all threads.
        budget: what ``--score-budget`` left out; None without a budget.
    """

    data: LearningData
    held_out: LearningData | None
    monitors: Mapping[str, LearningData]
    learning: LearningResult
    warnings: list[str]
    notes: tuple[str, ...]
    seconds_loading: float
    seconds_learning: float
    cpu_seconds: float
    budget: BudgetCost | None = None

    def score_domains(self) -> list[DomainScore]:
        """Return each domain's scores, learned from and held out; empty without domains."""
        data, learning = self.data, self.learning
        if data.domains is None:
            return []
        start, end = data.start.weights, learning.solution.weights
        return [
            score
            for positions, held_out in (
                (learning.learned_sentences, False),
                (learning.held_out_sentences, True),
            )
            for score in score_domains(
                data.domains, data.take_sentences(positions), start, end, held_out=held_out
            )
        ]


def bind_optimizer(settings: LearningSettings) -> Optimizer:
    """Return the algorithm that settings name, with its own settings.

    Raises:
        UsageError: an unknown algorithm or option, an invalid value, bounds of weights that the
            algorithm cannot keep, or bold updates without search graphs.
    """
    algorithm = find_algorithm(settings.algorithm)
    optimizer = algorithm.bind(make_options(algorithm, settings.options))
    if settings.bounds:
        optimizer.algorithm.require_bounds()
    if settings.sentence_weights is not None:
        optimizer.require_sentence_weights()
    if (selection := settings.selection).counts:
        algorithm.require_sparse(selection.count_options, selection)
    if not settings.graphs:
        optimizer.require_lists()
    return optimizer


def optimize(
    settings: LearningSettings,
    optimizer: Optimizer,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
) -> OptimizeResult:
    """Learn weights from existing n-best lists or search graphs.

    Args:
        settings: what to learn from, and how.
        optimizer: from ``bind_optimizer``.
        given: data in the place of those that settings name.
    """
    began = time.perf_counter()
    if settings.score_budget is not None and given.domains is not None:
        raise UsageError("{--score-budget} and {--domains} exclude each other: give one")
    given = _add_run_source(settings, optimizer, given)
    data = read_data(settings, progress, given, defers_scores=True)
    useless: list[str] = []
    if (file := settings.lists.templates) is not None:
        useless = _check_templates(file, settings, data, optimizer.algorithm)
    held_out = read_held_out_lists(settings, data, progress, given)
    monitors = read_monitored_lists(settings, data, given)
    loaded, cpu = time.perf_counter(), time.process_time()
    hold_out, n_held_out = None, 0
    if held_out is not None:
        others = held_out.problem
        hold_out, n_held_out = lambda weights: others, len(held_out.sentences)

    def learn(data: LearningData) -> LearningResult:
        return learn_weights(
            data,
            _make_learner_of(data, optimizer, settings),
            settings.seed,
            held_out=hold_out,
            n_held_out=n_held_out,
            held_out_share=settings.held_out,
            folds=settings.folds,
            runs=settings.runs,
            select=settings.select,
            progress=progress,
        )

    cost, cost_notes = None, []
    if settings.score_budget is None:
        result = learn(data)
    else:
        # Has kernels.
        from mosesplug.learning.score_budget import ScoredLists, describe_cost, learn_within_budget

        lists = ScoredLists(data, settings.score_budget)
        held_out_lists = None if held_out is None else ScoredLists(held_out)
        if held_out_lists is not None:
            hold_out = held_out_lists.score_first_bests
        data, result = learn_within_budget(lists, settings.score_budget, learn)
        cost = lists.measure_cost(result.solution.weights)
        cost_notes = [describe_cost(cost)]
        if held_out_lists is not None:
            held_out = held_out_lists.take()
            cost_notes.append(held_out_lists.describe())
    return OptimizeResult(
        data,
        held_out,
        monitors,
        result,
        [
            *data.notes,
            *(() if held_out is None else held_out.notes),
            *useless,
            *find_warnings(data.problem.tuning_set, data.problem.metric, result, data.notes),
        ],
        (
            *result.solution.notes,
            *_explain_selection(data.problem, optimizer, settings.selection),
            *cost_notes,
        ),
        loaded - began,
        time.perf_counter() - loaded,
        time.process_time() - cpu,
        cost,
    )


def _check_templates(
    file: TemplateFile, settings: LearningSettings, data: LearningData, algorithm: Algorithm
) -> list[str]:
    """Check that templates have an effect; return warnings of those without features.

    Raises:
        UsageError: the algorithm would leave all their weights at 0.
    """
    space = data.problem.tuning_set.space
    if not data.start.weights[space.n_dense :].any():
        algorithm.require_sparse(f"{{--templates}} {file}", settings.selection)
    beginnings = {name.partition("_")[0] for name in space.sparse}
    dropped = NamePatterns(settings.lists.drop_feature)
    return [
        f"{file.templates.path}: [{template.name}]: no hypothesis has a feature of this template. "
        "Check its vocabulary"
        for template in file.templates.templates
        if template.name not in beginnings and not dropped.matches(f"{template.name}_")
    ]


def validate(
    settings: LearningSettings,
    folds: int,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
) -> tuple[LearningData, CrossValidation]:
    """Cross-validate the learning of weights.

    Arguments and errors are those of ``optimize``.

    Returns:
        The data, and the scores of the folds.
    """
    optimizer = bind_optimizer(settings)
    given = _add_run_source(settings, optimizer, given)
    data = read_data(settings, progress, given)
    learn = _make_learner_of(data, optimizer, settings)
    if settings.runs:
        learn = select_from_runs(learn, settings.runs, settings.select)
    return data, cross_validate(data, learn, folds, settings.seed, progress)


def _add_run_source(
    settings: LearningSettings, optimizer: Optimizer, given: GivenData
) -> GivenData:
    """Return the data, with the run's source lengths if an algorithm needs them.

    Raises:
        UsageError: they are needed and not known.
    """
    is_known = settings.lists.source is not None or given.source is not None
    if is_known or not optimizer.needs_source:
        return given
    lengths = None if settings.store is None else read_run_source(settings.store)
    optimizer.require_source(is_known=lengths is not None)
    return replace(given, source=lengths)


def _make_learner_of(
    data: LearningData, optimizer: Optimizer, settings: LearningSettings
) -> LearnFunction:
    """Return a function that finds the weights, and the length exponent if any."""
    nearby = optimizer.search_nearby()

    def make(start: Weights | None, is_nearby: bool) -> LearnFunction:
        own = nearby if is_nearby and nearby is not None else optimizer
        return make_learner(own, data.start.weights if start is None else start, settings.sharding)

    if data.lengths is not None and data.domains is None:
        return learn_exponent(make, data.lengths, has_restarts=nearby is not None)
    learn = make(None, False)
    return learn if data.domains is None else data.domains.center_weights(learn)


def _explain_selection(
    problem: Problem, optimizer: Optimizer, selection: FeatureSelection
) -> list[str]:
    """Return notes on sparse features that are not tuned."""
    space = problem.tuning_set.space
    fixed = () if problem.is_fixed is None else set(compress(space.labels, problem.is_fixed))
    note = optimizer.algorithm.explain_untuned(selection.count_sparse(space, fixed))
    notes = selection.describe_counts(problem.active, space)
    return notes if note is None else [*notes, note]


def find_warnings(
    lists: TuningSet, metric: Metric, result: LearningResult, notes: Sequence[str] = ()
) -> list[str]:
    """Return what to check about n-best lists and the weights learned from them.

    Args:
        notes: what is known to be wrong with the data, which may explain the rest.
    """
    weights, score = result.solution.weights, result.solution.score
    findings = [
        *find_list_signs(lists),
        *find_weight_signs(weights, lists.space.labels, lists.space.n_dense),
    ]
    messages = [finding.message for finding in findings if not finding.is_fatal]
    if result.is_start and score < 1.0:  # no score of a metric is higher
        if not _has_choice(lists, metric):
            why = f"{metric.name} scores all hypotheses of each sentence alike"
            remedy = "See whether these are the references of the lists"
        else:
            why = "the algorithm found none that score higher on this data"
            remedy = "Use more sentences or longer lists, or start elsewhere ({--init})"
        if notes:
            remedy = "See the warnings about the data first"
        problem = f"the learned weights are the starting weights: {why}. {remedy}"
        messages.insert(0, Message(problem))
    if unfinished := [step for step in result.solution.history if step.get("converged") is False]:
        gaps = [step["gap"] for step in unfinished if "gap" in step]
        times = "once" if len(unfinished) == 1 else f"{len(unfinished)} times"
        known = f"; the loss may be {max(gaps):.3g} above the minimum" if gaps else ""
        messages.append(
            f"the solver stopped before the minimum {times}{known}: regularize more, or allow "
            "more steps"
        )
    if score < result.start:
        messages.append(
            f"the score of the learned weights ({score:.6f}) is lower than that of the starting "
            f"weights ({result.start:.6f}): the algorithm optimizes another objective, or its "
            "options do not suit these lists"
        )
    return messages


def _has_choice(lists: TuningSet, metric: Metric) -> bool:
    """Return whether hypotheses of some sentence differ in score, or none are known."""
    if not lists.n_hyps:
        return True
    scores = score_sentences(metric, lists.stats)
    starts = lists.offsets[:-1][np.diff(lists.offsets) > 0]
    return bool((np.maximum.reduceat(scores, starts) > np.minimum.reduceat(scores, starts)).any())
