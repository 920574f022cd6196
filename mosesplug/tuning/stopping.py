"""When a run ends."""

from __future__ import annotations

from mosesplug.tuning.context import Context
from mosesplug.tuning.heldout import count_since_best
from mosesplug.tuning.workdir.records import read_evaluations, read_result

__all__ = ["find_reason_to_stop"]


def find_reason_to_stop(context: Context) -> str:
    """Return why the newest iteration is the last, or an empty string.

    It depends on the current settings, so a finished run can be continued with others.
    """
    configuration = context.data.configuration
    iterations = context.files.store.iterations()
    if not iterations or iterations[-1].result is None:
        return ""
    if read_result(iterations[-1]).largest_change < configuration.minimum_change:
        return f"no weight changed by {configuration.minimum_change:g} or more"
    held_out = configuration.held_out
    if held_out is not None and held_out.patience:
        stale = count_since_best(read_evaluations(iterations))
        if stale >= held_out.patience == 1:
            return "the last translation of the held-out text was no better"
        if stale >= held_out.patience:
            return f"{stale} translations of the held-out text in a row were no better"
    epochs = context.optimizer.online.epochs if configuration.online else 0
    if epochs and len(iterations) >= epochs:
        return "the epoch is done" if epochs == 1 else f"all {epochs} epochs are done"
    if configuration.maximum_iterations and len(iterations) >= configuration.maximum_iterations:
        return f"the maximum of {configuration.maximum_iterations} iterations is reached"
    return ""
