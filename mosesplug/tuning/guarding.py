"""Where a run looks for signs that it goes wrong: before decoding, after it, and at the end.

What was found is told once and stands in ``summary.json``; with ``--strict`` it ends the run. All
of it follows from the store and the files given, so a run that was killed says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from formats.nbest.files import NBestList
from formats.references import read_references
from formats.text import read_lines
from mosesplug.errors import DataError, OptimizerError
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Note, Watcher
from mosesplug.tuning.guards import (
    Finding,
    list_findings,
    score_findings,
    source_findings,
    text_findings,
    weight_findings,
)
from mosesplug.tuning.online.first_lists import first_lists
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import result_of
from mosesplug.tuning.workdir.summary import summarize_iterations

__all__ = ["FirstLook", "guard_decoded", "guard_input", "guard_result", "guard_weights"]

_SENTENCES = 2000
"""Enough to compare texts by."""

_EARLY_SENTENCES = 50
"""Enough to see what is far from what sound systems show."""


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
        _tell(configuration, found, watch, "nothing is decoded, and nothing written", "")


def guard_decoded(
    context: Context,
    shards: float | None = None,
    start: Mapping[str, Any] | None = None,
) -> None:
    """Look at the newest lists and their score before anything is learnt, or accepted, from them.

    Args:
        context: of the run. Its newest iteration is to be looked at, and has no result yet.
        shards: instead, the score of an epoch whose lists are in the stores of shards.
        start: and the record of its beginning.

    Raises:
        DataError: something new is found, and ``strict`` refuses it.
    """
    scores = [*_scores(context.files.store), *(() if shards is None else (shards,))]
    number = len(scores)
    found = _of_first_lists(context, start or {}) if number == 1 else []
    found += score_findings(scores, context.data.configuration.max_drop)
    known = {each.name for each in _of_scores(context, scores[:-1])}
    new = [each for each in found if each.name not in known]
    _tell(context.data.configuration, new, context.files.watch, _kept(context, number))


def guard_weights(context: Context, weights: Weights) -> None:
    """Look at weights before they are accepted.

    Raises:
        OptimizerError: no decoder can use them.
        DataError: something new is found, and ``strict`` refuses it.
    """
    earlier = _found(context.files.store)
    number = len(earlier) + 1
    found = _of_weights(context, weights)
    for each in found:
        if each.fatal:
            raise OptimizerError(
                f"{context.optimizer.name} found no usable weights in iteration {number}"
                f" ({each.message}); its lists are kept: try another algorithm with --continue"
            )
    known = {each.name for used in earlier for each in _of_weights(context, used)}
    new = [each for each in found if each.name not in known]
    _tell(context.data.configuration, new, context.files.watch, _kept(context, number))


def guard_result(context: Context, weights: Weights) -> tuple[str, ...]:
    """Look at the weights of the result before they are written, and sum up what was found.

    Returns:
        What is to be read in the summary, in sentences.

    Raises:
        OptimizerError: no decoder can use the weights.
        DataError: something is found anywhere in the run, and ``strict`` refuses it.
    """
    found = _of_weights(context, weights)
    for each in found:
        if each.fatal:
            raise OptimizerError(
                f"the run ends with no usable weights ({each.message}); {_result(context)}; go on"
                " with --continue and other settings"
            )
    records = context.files.store.iterations()
    every = _of_first_lists(context, records[0].record) if records else []
    every += _of_scores(context, _scores(context.files.store))
    every += found
    said = {each.name: each for each in reversed(every)}  # of one sign, where it was first
    every = [each for each in every if said[each.name] == each]
    configuration = context.data.configuration
    if configuration.strict:
        # Also what was a warning when it was found, in a run that is continued.
        _tell(configuration, every, context.files.watch, _kept(context, len(records)))
    seen = {
        each.name for used in _found(context.files.store) for each in _of_weights(context, used)
    }
    _tell(configuration, [e for e in found if e.name not in seen], context.files.watch)
    return tuple(dict.fromkeys(each.message for each in every))


class FirstLook:
    """Looks at translations while the first epoch of an online run is still under way.

    Only what ends the run (``strict``) is looked for, as soon as there are enough of them; all else
    waits for the end of the epoch, where ``guard_decoded`` sees everything.
    """

    def __init__(self, context: Context) -> None:
        """Say whose translations they are."""
        configuration = context.data.configuration
        self._context = context
        self._waits = (
            configuration.strict
            and _is_text(configuration)
            and not context.files.store.iterations()
        )
        self._outputs: dict[int, bytes] = {}

    def __call__(self, lists: Sequence[NBestList]) -> None:
        """Look at lists that were just stored.

        Raises:
            DataError: something is found, and ``strict`` refuses it.
        """
        if not self._waits:
            return
        for each in lists:
            numbers, rows = np.unique(each.sentence_ids, return_index=True)
            pairs = zip(numbers.tolist(), rows.tolist(), strict=True)
            self._outputs |= {number: each.text(row) for number, row in pairs}
        if len(self._outputs) >= _EARLY_SENTENCES:
            self._waits = False
            found = _of_texts(self._context, self._outputs)
            kept = f"the lists of {len(self._outputs)} sentences are kept; {_result(self._context)}"
            _tell(self._context.data.configuration, found, self._context.files.watch, kept)


def _kept(context: Context, number: int) -> str:
    """What there is of a run that ends after decoding."""
    return f"the lists of iteration {number} are kept; {_result(context)}"


def _result(context: Context) -> str:
    """What becomes of the result."""
    place = context.files.workspace.tuned_config
    return f"{place} is as it was" if place.exists() else f"no {place.name} is written"


def _tell(
    configuration: Configuration,
    found: Iterable[Finding],
    watch: Watcher,
    what_is_kept: str = "",
    what_goes_on: str = "; --continue goes on",
) -> None:
    """Warn, or refuse all at once."""
    messages = list(dict.fromkeys(each.message for each in found))
    if configuration.strict and messages:
        raise DataError(
            f"--strict: {'. Also: '.join(messages)} ({what_is_kept}). Without --strict this is a"
            f" warning{what_goes_on}"
        )
    for message in messages:
        watch(Note(message, warning=True))


def _is_text(configuration: Configuration) -> bool:
    """Whether the input is lines of words."""
    return not configuration.decoding.decoder.input_type


def _of_first_lists(context: Context, start: Mapping[str, Any]) -> list[Finding]:
    """Signs in the first iteration's lists; those that explain others first."""
    lists = first_lists(context, start, _SENTENCES)
    texts = _of_texts(context, lists.outputs) if _is_text(context.data.configuration) else []
    return [*texts, *list_findings(*lists.parts)]


def _of_texts(context: Context, outputs: Mapping[int, bytes]) -> list[Finding]:
    """Signs in input, references and translations of some sentences."""
    numbers = sorted(outputs)
    source = read_lines(context.data.configuration.input)
    references = read_references(context.data.configuration.references)
    texts = (
        [source[i] for i in numbers],
        [[lines[i] for i in numbers] for lines in references],
        [outputs[i] for i in numbers],
    )
    cased = "case:lc" not in context.data.references.signature
    return [*source_findings(*texts), *text_findings(*texts, cased=cased)]


def _scores(store: NBestStore) -> list[float]:
    """Of the decoder's translations in all iterations, that without a result included."""
    records = store.iterations()
    found = [each.first_best_score for each in summarize_iterations(records)]
    if records and records[-1].result is None:
        found.append(records[-1].first_best_score)
    return found


def _of_scores(context: Context, scores: Sequence[float]) -> list[Finding]:
    """Signs in scores, as they were found one after the other."""
    drop = context.data.configuration.max_drop
    ends = range(1, len(scores) + 1)
    return [each for end in ends for each in score_findings(scores[:end], drop)]


def _found(store: NBestStore) -> list[Weights]:
    """The weights that all iterations found."""
    return [result_of(each).weights for each in store.iterations() if each.result is not None]


def _of_weights(context: Context, weights: Weights) -> list[Finding]:
    names = context.data.space.names
    values = np.array([*weights.dense, *weights.sparse.values()], dtype=np.float64)
    return weight_findings(values, (*names, *weights.sparse), len(weights.dense))
