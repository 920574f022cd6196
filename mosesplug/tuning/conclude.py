"""Select the weights of a finished run, and write ``moses.ini`` and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from formats.text import write_atomic
from formats.weights.files import format_sparse
from mosesplug.events import Note, RunFinished
from mosesplug.optimizers import Problem, corpus_score
from mosesplug.settings.configuration import Configuration
from mosesplug.store import IterationRecord
from mosesplug.tuning.context import Context
from mosesplug.tuning.domains import list_domain_weights
from mosesplug.tuning.graphs.learning import keeps_scale
from mosesplug.tuning.guarding import guard_result
from mosesplug.tuning.heldout import find_best
from mosesplug.tuning.iteration import write_result_files
from mosesplug.tuning.online.state import find_mean, select_result
from mosesplug.tuning.optimization import build_problem, find_window
from mosesplug.tuning.reporting import arrange_texts, read_chosen
from mosesplug.tuning.score_budget import score_left_out
from mosesplug.tuning.weights import Weights, average_weights
from mosesplug.tuning.workdir.iteration_files import format_date, result_path, write_config
from mosesplug.tuning.workdir.records import (
    HELD_OUT,
    Evaluation,
    IterationResult,
    read_evaluations,
    read_result,
    read_start,
)
from mosesplug.tuning.workdir.summary import Result, ScoredOn, summarize_iterations
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.version import __version__

_BEST = "best-heldout"


def conclude(context: Context, reason: str) -> Result:
    """Select the resulting weights, and write ``moses.ini`` and ``summary.json``."""
    records = context.store.iterations()
    last = read_result(records[-1])
    # A kill may have come between the result and its files.
    write_result_files(context, len(records), last)
    chosen = _choose(context, records)
    monitors = _score_monitors(context, records, chosen.weights)
    configuration, workspace = context.configuration, context.workspace
    left_out, score_before = None, None
    if chosen.scored_on == "lists":
        chosen, left_out, score_before = _score_lists(context, chosen)
    warnings = guard_result(context, chosen.weights)
    is_heldout = chosen.scored_on == "heldout"
    decoded = records[chosen.iteration - 1].first_best_score if chosen.iteration else None
    for path, weights, sparse_file in _list_results(context, chosen):
        write_config(
            configuration,
            configuration.config,
            path,
            context.show,
            weights,
            sparse_file,
            chosen.iteration or len(records),
            decoded if is_heldout else chosen.score,
            chosen.score if is_heldout else None,
        )
    result = Result(
        weights=chosen.weights,
        chosen_iteration=chosen.iteration,
        score=chosen.score,
        scored_on=chosen.scored_on,
        uses_graphs=context.learns_from_graphs,
        names=context.space.names,
        metric=configuration.metric.name,
        signature=context.references.signature,
        algorithm=context.optimizer.name,
        seed=context.seed,
        reason=reason,
        iterations=summarize_iterations(records),
        selection=chosen.how,
        is_online=configuration.online is not None,
        warnings=warnings,
        monitors=monitors.monitors,
        reported=chosen.reported,
        reported_monitors=monitors.reported,
        report_signatures=context.reporter.signatures,
        scored_at_end=None if left_out is None else len(left_out),
        score_before=score_before,
    )
    write_atomic(workspace.summary, result.as_json(format_date(), __version__))
    for text in () if context.ahead is None else context.ahead.describe():
        context.watch(Note(text))
    context.watch(RunFinished(len(records), reason))
    return result


@dataclass(frozen=True)
class _Chosen:
    """The selected weights.

    Attributes:
        weights: the dense and sparse weights.
        iteration: that was decoded with them on the tuning set, or 0.
        score: the score of these weights, or None if none is known.
        scored_on: which data the score was computed on.
        how: they were selected, a value of ``Select``.
        file_of: iteration whose ``sparse-weights`` file has them, or 0.
        reported: scores of the same translations by metrics that are reported only, by name.
    """

    weights: Weights
    iteration: int
    score: float | None
    scored_on: ScoredOn | None
    how: str
    file_of: int = 0
    reported: Mapping[str, float] = field(default_factory=dict)


def _list_results(context: Context, chosen: _Chosen) -> Iterator[tuple[Path, Weights, Path | None]]:
    """Yield each file of the result, its weights, and its file of sparse ones."""
    workspace, domains = context.workspace, context.domains
    path = result_path(context.configuration, workspace)
    if domains is None:
        yield (
            path,
            chosen.weights,
            _sparse_file(workspace, chosen) if chosen.weights.sparse else None,
        )
        return
    every = list_domain_weights(chosen.weights, context.space, domains.domains.names)
    for name, weights in every.items():
        prefix = "" if name is None else f"domain.{name}."
        beside = workspace.directory / f"{prefix}{workspace.tuned_sparse.name}"
        if weights.sparse:
            write_atomic(beside, format_sparse(weights.sparse))
        target = workspace.directory / f"{prefix}{path.name}"
        yield target, weights, beside if weights.sparse else None


def _sparse_file(workspace: Workspace, chosen: _Chosen) -> Path:
    if chosen.file_of:
        return workspace.run(chosen.file_of, "sparse-weights")
    write_atomic(workspace.tuned_sparse, format_sparse(chosen.weights.sparse))
    return workspace.tuned_sparse


def _choose(context: Context, records: Sequence[IterationRecord]) -> _Chosen:
    """Select the weights as the settings ask."""
    configuration = context.configuration
    last = read_result(records[-1])
    how: str = configuration.select or ("last" if configuration.held_out is None else _BEST)
    if configuration.online:
        how = select_result(configuration, context.optimizer)
    if how == _BEST:
        best = find_best(read_evaluations(records))
        if best is not None and best.weights is not None:
            return _best_heldout(context, records, best, best.weights)
        context.watch(
            Note(
                "the run was finished without this held-out text, so no weights are scored on it:"
                " the result has the last weights. To select by it, continue with more"
                " {--max-iterations} or {--epochs}",
                is_warning=True,
            )
        )
    if how == "best-dev":
        return _best_decoded(context, records, last)
    if how == "average":
        if configuration.online:
            mean = find_mean(last, context.optimizer)
        else:
            mean = _mean(context, records)
        if mean is not None:
            score = _score_in_lists(context, mean)
            return _Chosen(mean, 0, score, None if score is None else "lists", how)
    what: ScoredOn = "graphs" if context.learns_from_graphs else "lists"
    reported: Mapping[str, float] = {}
    if configuration.online:
        what, reported = "learning", last.reported
    return _Chosen(last.weights, 0, last.optimum, what, "last", len(records) + 1, reported)


def _score_lists(
    context: Context, chosen: _Chosen
) -> tuple[_Chosen, Mapping[int, bytes] | None, float | None]:
    """Complete the scores of a result that are those of merged lists.

    Returns:
        The result; with a score budget, the left-out texts that were scored for it, if they could
        be looked for, and the score without them.
    """
    has_budget, reporter = context.configuration.score_budget is not None, context.reporter
    if not (has_budget or reporter.metrics):
        return chosen, None, None
    count = len(context.store.iterations())
    problem, iterations = _merge_lists(context), find_window(context, count)
    lists, before = problem.tuning_set, chosen.score
    left_out: Mapping[int, bytes] | None = None
    if has_budget:
        score, left_out = score_left_out(context, problem, iterations, chosen.weights, before)
        chosen = replace(chosen, score=score)
    if reporter.metrics:
        vector = context.vector(chosen.weights, lists.space)
        texts = read_chosen(context.store, iterations, lists, vector) | dict(left_out or {})
        chosen = replace(chosen, reported=reporter.score(arrange_texts(texts)))
    return chosen, left_out, before if has_budget else None


def _score_monitors(
    context: Context, records: Sequence[IterationRecord], weights: Weights
) -> Evaluation:
    """Return the scores of all monitors with the resulting weights.

    A monitor whose score is unknown is translated.
    """
    known = Evaluation(len(records))
    if (held_out := context.held_out) is None:
        return known
    same = [one for one in read_evaluations(records) if one.weights == weights]
    # Online, the mean of the weights may have been translated instead.
    if context.configuration.online is None and weights == read_result(records[-1]).weights:
        # Its last evaluation is that of its result. It has none if the monitors are new.
        same += read_evaluations(records[-1:])[-1:]
    for one in same:
        known = known.join(replace(one, updates=known.updates))
    return held_out.score_monitors(weights, known)


def _score_in_lists(context: Context, weights: Weights) -> float | None:
    """Return the score of weights that nothing was decoded with on the merged lists.

    None for a run online, whose lists are those of changing weights, and for search graphs.
    """
    if context.configuration.online is not None or context.learns_from_graphs:
        return None
    problem = _merge_lists(context)
    return corpus_score(problem, context.vector(weights, problem.tuning_set.space))


def _merge_lists(context: Context) -> Problem:
    """Return the merged lists that the last iteration learned from."""
    problem = build_problem(context, len(context.store.iterations()))
    if context.domains is not None:
        problem, _ = context.domains.extend(problem)
    return problem


def _best_heldout(
    context: Context, records: Sequence[IterationRecord], best: Evaluation, weights: Weights
) -> _Chosen:
    """Return the best weights on the held-out set, which may be the starting ones."""
    if not best.updates:
        context.watch(
            Note(
                "no weights that were found translate the held-out text better than those that the"
                " run started with: these are returned",
                is_warning=True,
            )
        )
    decoded = (record.iteration for record in records if read_start(record).weights == weights)
    iteration = 0 if context.configuration.online else next(decoded, 0)
    reported = best.reported.get(HELD_OUT, {})
    return _Chosen(weights, iteration, best.score, "heldout", _BEST, iteration, reported)


def _mean(context: Context, records: Sequence[IterationRecord]) -> Weights:
    """Return the mean of all iterations' weights, normalized if their scale is free."""
    return average_weights(
        [read_result(record).weights for record in records],
        normalize=has_free_scale(context.configuration, context.fixed_weights),
    )


def has_free_scale(configuration: Configuration, fixed: Mapping[str, float]) -> bool:
    """Return whether scaling all tuned weights by one factor changes no translation.

    Args:
        configuration: the configuration of the run. Weights that are not active keep their values.
        fixed: weights of features that are not tuned, if the run learns from search graphs.
    """
    selection = configuration.optimization.selection
    return selection.active is None and not selection.dropped and not keeps_scale(fixed)


def _best_decoded(
    context: Context, records: Sequence[IterationRecord], last: IterationResult
) -> _Chosen:
    """Return the weights of the iteration with the best 1-best on the tuning set.

    Nothing was decoded with the optimum of the last iteration. Unless the run converged, its score
    is unknown, so it is not selected.
    """
    decoded = [record for record in records if context.is_decoded(record)]
    # Lists that were taken from search graphs score higher than those of the decoder. But the
    # first decoding alone would have the starting weights.
    candidates = decoded if len(decoded) > 1 else records
    best = max(candidates, key=lambda record: record.first_best_score)
    is_decoded = context.is_decoded(best)
    those = "those decoded" if is_decoded else "the lists taken from search graphs"
    scored_on: ScoredOn = "decoded" if is_decoded else "graphs"
    if last.largest_change >= context.configuration.minimum_change:
        is_start = best.iteration == 1
        which = f"weights of iteration {best.iteration}"
        if is_start:
            which = "starting weights"
        remedy = ". More iterations, or {--select last}, return learned weights" if is_start else ""
        context.watch(
            Note(
                "nothing was decoded with the weights of the last optimization: the result is the"
                f" {which}, which had the best score of {those}{remedy}",
                is_warning=is_start,
            )
        )
    weights = read_start(best).weights
    score, number, reported = best.first_best_score, best.iteration, read_result(best).reported
    return _Chosen(weights, number, score, scored_on, "best-dev", number, reported)
