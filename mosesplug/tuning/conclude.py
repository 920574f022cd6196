"""The end of a run: which weights win, the tuned configuration, the summary."""

from __future__ import annotations

from collections.abc import Sequence

from formats.text import write_atomic
from mosesplug import __version__
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.configuration import Configuration
from mosesplug.tuning.events import Finished, Note
from mosesplug.tuning.files import date, write_config
from mosesplug.tuning.records import result_of, start_of
from mosesplug.tuning.start import columns
from mosesplug.tuning.steps import Context, write_after
from mosesplug.tuning.summary import Result, iterations_of
from mosesplug.tuning.weights import Weights

__all__ = ["conclude", "reason_to_stop"]


def reason_to_stop(configuration: Configuration, store: NBestStore) -> str:
    """Why the newest iteration is the last, or empty.

    It follows from the settings of now, so that a run that ended can be continued with others.
    """
    iterations = store.iterations()
    if not iterations or iterations[-1].result is None:
        return ""
    if result_of(iterations[-1]).largest_change < configuration.minimum_change:
        return f"no weight changed by {configuration.minimum_change:g} or more"
    if configuration.maximum_iterations and len(iterations) >= configuration.maximum_iterations:
        return f"the maximum of {configuration.maximum_iterations} iterations is reached"
    return ""


def conclude(context: Context, store: NBestStore, reason: str) -> Result:
    """Write ``moses.ini`` and ``summary.json``."""
    records = store.iterations()
    last = result_of(records[-1])
    # A kill may have come between the result and its files.
    write_after(context, len(records), last)
    weights, chosen, score = _choose(context, records)
    configuration, workspace = context.configuration, context.workspace
    # Sparse weights lie in the file of the iteration that decodes with them.
    sparse_file = workspace.run(chosen or len(records) + 1, "sparse-weights")
    write_config(
        configuration,
        configuration.config,
        workspace.tuned_config,
        context.show,
        weights,
        sparse_file if weights.sparse else None,
        chosen or len(records),
        score,
    )
    result = Result(
        weights=weights,
        chosen=chosen,
        score=score,
        names=columns(context.show).names,
        metric=configuration.metric.name,
        signature=context.references.signature,
        algorithm=context.algorithm.name,
        seed=context.seed,
        reason=reason,
        iterations=iterations_of(records),
    )
    write_atomic(workspace.summary, result.as_json(date(), __version__))
    context.watch(Finished(len(records), reason))
    return result


def _choose(context: Context, records: Sequence[IterationRecord]) -> tuple[Weights, int, float]:
    """The winning weights, the iteration that was decoded with them (0: none), their score.

    The best on the tuning set is chosen among weights whose own translations were scored: every
    iteration, the last included. The optimum of the last iteration was never decoded; where the
    run did not converge nobody knows its score, and it is not chosen blindly.
    """
    last = result_of(records[-1])
    if not context.configuration.return_best_dev:
        return last.weights, 0, last.optimum
    best = max(records, key=lambda record: record.first_best_score)
    if last.largest_change >= context.configuration.minimum_change:
        context.watch(
            Note(
                "the weights found last were never decoded: the best of those that were are"
                f" returned, the ones that iteration {best.iteration} was decoded with"
            )
        )
    return start_of(best).weights, best.iteration, best.first_best_score
