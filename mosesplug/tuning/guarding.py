"""Where a run looks for signs that it goes wrong: before decoding, after it, and at the end.

What was found is told once and stands in ``summary.json``; with ``--strict`` it ends the run. All
of it follows from the store and the files given, so a run that was killed says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from formats.references import read_references
from formats.text import read_lines
from mosesplug.errors import DataError, OptimizerError
from mosesplug.store import NBestStore
from mosesplug.tuning.configuration import Configuration
from mosesplug.tuning.events import Note, Watcher
from mosesplug.tuning.guards import (
    Finding,
    list_findings,
    score_findings,
    source_findings,
    text_findings,
    weight_findings,
)
from mosesplug.tuning.records import result_of, start_of
from mosesplug.tuning.start import columns
from mosesplug.tuning.steps import Context
from mosesplug.tuning.summary import iterations_of
from mosesplug.tuning.weights import Weights

__all__ = ["guard_decoded", "guard_input", "guard_result", "guard_weights"]

_SENTENCES = 2000
"""Enough to compare texts by."""


def guard_input(
    configuration: Configuration, references: Sequence[Sequence[bytes]], watch: Watcher
) -> None:
    """Look at the text before anything is decoded, if it may end the run.

    Else what is found waits for the translations, which tell more.

    Raises:
        DataError: something is found, and ``strict`` refuses it.
    """
    if configuration.strict and _is_text(configuration):
        found = source_findings(read_lines(configuration.input), references)
        _tell(configuration, found, watch, "nothing was decoded")


def guard_decoded(context: Context, store: NBestStore) -> None:
    """Look at the newest lists and their score before anything is learnt from them.

    Raises:
        DataError: something new is found, and ``strict`` refuses it.
    """
    number = len(store.iterations())
    found = _of_scores(context, store, number)
    if number == 1:
        found += _of_first_lists(context, store)
    known = {each.name for n in range(1, number) for each in _of_scores(context, store, n)}
    new = [each for each in found if each.name not in known]
    _tell(context.configuration, new, context.watch, f"the lists of iteration {number} are kept")


def guard_weights(context: Context, store: NBestStore, weights: Weights) -> None:
    """Look at weights before they are accepted.

    Raises:
        OptimizerError: no decoder can use them.
        DataError: something new is found, and ``strict`` refuses it.
    """
    number = len(store.iterations())
    found = _of_weights(context, weights)
    for each in found:
        if each.fatal:
            raise OptimizerError(
                f"{context.algorithm.name} found no usable weights in iteration {number}"
                f" ({each.message}); its lists are kept: try another algorithm with --continue"
            )
    earlier = (start_of(record).weights for record in store.iterations()[1:])
    known = {each.name for used in earlier for each in _of_weights(context, used)}
    new = [each for each in found if each.name not in known]
    _tell(context.configuration, new, context.watch, f"the lists of iteration {number} are kept")


def guard_result(context: Context, store: NBestStore, weights: Weights) -> tuple[str, ...]:
    """Look at the weights of the result before they are written, and sum up what was found.

    Returns:
        What is to be read in the summary, in sentences.

    Raises:
        OptimizerError: no decoder can use the weights.
        DataError: something is found in them, and ``strict`` refuses it.
    """
    found = _of_weights(context, weights)
    for each in found:
        if each.fatal:
            raise OptimizerError(
                f"the run ends with no usable weights ({each.message}); {_last_good(context)}"
            )
    configuration = context.configuration
    if configuration.strict:
        _tell(configuration, found, context.watch, _last_good(context))
    every = _of_first_lists(context, store)
    for number in range(1, len(store.iterations()) + 1):
        every += _of_scores(context, store, number)
    every += found
    said = {each.name: each.message for each in reversed(every)}
    if configuration.online is not None:
        # Nothing has been told yet: learning did not wait for it.
        _tell(configuration, [e for e in every if said[e.name] == e.message], context.watch, "")
    elif found:
        last = [result_of(r).weights for r in store.iterations()]
        seen = {each.name for used in last for each in _of_weights(context, used)}
        _tell(configuration, [e for e in found if e.name not in seen], context.watch, "")
    return tuple(dict.fromkeys(said[each.name] for each in every))


def _last_good(context: Context) -> str:
    place = context.workspace.tuned_config
    kept = f"{place} is as it was" if place.exists() else f"no {place.name} is written"
    return f"{kept}; go on with --continue and other settings"


def _tell(
    configuration: Configuration, found: Iterable[Finding], watch: Watcher, what_is_kept: str
) -> None:
    """Warn, or refuse."""
    for each in found:
        if configuration.strict:
            kept = f" ({what_is_kept})" if what_is_kept else ""
            raise DataError(
                f"--strict: {each.message}{kept}. Without --strict this is a warning; --continue"
                " goes on"
            )
        watch(Note(each.message, warning=True))


def _is_text(configuration: Configuration) -> bool:
    """Whether the input is lines of words."""
    return not configuration.decoding.decoder.input_type


def _of_first_lists(context: Context, store: NBestStore) -> list[Finding]:
    """Signs in the first iteration's lists; of shards, whose lists are elsewhere, none."""
    records = store.iterations()
    if not records or not records[0].n_lists:
        return []
    lists = store.tuning_set(1, metric=context.configuration.metric, references=context.references)
    found = list_findings(lists)
    if not _is_text(context.configuration):
        return found
    filled = np.flatnonzero(np.diff(lists.offsets))[:_SENTENCES].tolist()
    source = read_lines(context.configuration.input)
    references = read_references(context.configuration.references)
    texts = (
        [source[i] for i in filled],
        [[lines[i] for i in filled] for lines in references],
        [store.hypotheses(i, 1)[0] for i in filled],
    )
    cased = "case:lc" not in context.references.signature
    return [*found, *source_findings(*texts), *text_findings(*texts, cased=cased)]


def _of_scores(context: Context, store: NBestStore, number: int) -> list[Finding]:
    """Signs in the scores of the first ``number`` iterations."""
    records = store.iterations()[:number]
    done = {each.number: each.first_best_score for each in iterations_of(records)}
    scores = [done.get(record.iteration, record.first_best_score) for record in records]
    return score_findings(scores, context.configuration.max_drop)


def _of_weights(context: Context, weights: Weights) -> list[Finding]:
    names = columns(context.show).names
    values = np.array([*weights.dense, *weights.sparse.values()], dtype=np.float64)
    return weight_findings(values, (*names, *weights.sparse), len(weights.dense))
