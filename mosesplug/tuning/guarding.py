"""Check a run for signs that it goes wrong.

The checks come before decoding, after it, and at the end.

Each sign is reported once and recorded in ``summary.json``; with ``--strict`` it ends the run. The
signs follow from the store and the input files, so a resumed run reports the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any

import numpy as np

from formats.nbest.block import NBestList
from formats.text import read_lines
from mosesplug.errors import DataError, Message, OptimizerError
from mosesplug.events import Note, Watcher
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.online.source import is_same_start
from mosesplug.tuning.references import read_run_references
from mosesplug.tuning.text_signs.comparison import find_source_signs, find_text_signs
from mosesplug.tuning.text_signs.view import views_of_signatures
from mosesplug.tuning.warning_signs import (
    WarningSign,
    find_list_signs,
    find_score_signs,
    find_weight_signs,
)
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import result_path
from mosesplug.tuning.workdir.records import read_list_figures, read_result
from mosesplug.tuning_set import TuningSet


@dataclass
class _FirstLists:
    """The lists of the first iteration.

    Attributes:
        parts: distinct hypotheses of each sentence, one part per store.
        outputs: the decoder's translations by sentence id.
    """

    parts: list[TuningSet] = field(default_factory=list)
    outputs: dict[int, bytes] = field(default_factory=dict)


def _read_first_lists(context: Context, start: Mapping[str, Any], n_texts: int) -> _FirstLists:
    """Read the lists of the first iteration.

    Args:
        start: the first iteration's start record. Epochs of shards with another one were dropped.
    """
    lists, store = _FirstLists(), context.store
    records = store.iterations()
    if records and records[0].n_lists:
        _add(lists, context, store, 1, n_texts)
        return lists
    wanted = {**start, "epoch": 1}
    for number in count(1):
        path = context.workspace.shard(number) / context.workspace.store.name
        if not path.is_dir():
            break
        with NBestStore.open(path) as shard:
            for record in shard.iterations():
                if is_same_start(record.record, wanted):
                    _add(lists, context, shard, record.iteration, n_texts)
    return lists


def _add(
    first_lists: _FirstLists, context: Context, store: NBestStore, iteration: int, n_texts: int
) -> None:
    """Add the lists of one store's iteration."""
    metric, references = context.configuration.metric, context.references
    lists = store.tuning_set(iteration, metric=metric, references=references)
    first_lists.parts.append(lists)
    filled = np.flatnonzero(np.diff(lists.offsets))
    for sentence in filled[: n_texts - len(first_lists.outputs)].tolist():
        first_lists.outputs[sentence] = store.hypotheses(sentence, iteration)[0]


_SENTENCES = 2000
"""How many sentences are compared."""

_EARLY_SENTENCES = 50
"""How many sentences are enough for ``--strict`` to end the run in its first epoch."""


def guard_input(
    configuration: Configuration, references: Sequence[Sequence[bytes]], watch: Watcher
) -> None:
    """Check input and references before decoding, if a sign would end the run.

    Otherwise they are checked with the translations, which tell more.

    Raises:
        DataError: there is a sign, and the run is strict.
    """
    if configuration.strict and configuration.source_text is not None:
        signs = find_source_signs(read_lines(configuration.source), references)
        _report(configuration, signs, watch, "nothing was decoded or written", "")


def guard_decoded(
    context: Context,
    shards: float | None = None,
    start: Mapping[str, Any] | None = None,
) -> None:
    """Check the newest n-best lists and their score before they are learned from.

    Args:
        context: the context of the run. Its newest iteration has no result yet.
        shards: instead, the score of an epoch whose lists are in the stores of shards.
        start: the record of its beginning, with ``shards``.

    Raises:
        DataError: there is a new sign, and the run is strict.
    """
    scores = [*_scores(context.store), *(() if shards is None else (shards,))]
    number = len(scores)
    signs = _first_list_signs(context, start or {}) if number == 1 else []
    if number == 1 and (note := _explain_untuned(context)) is not None:
        context.watch(Note(note))
    signs += _find_score_signs(context, scores)
    # Only then: earlier iterations are many.
    known = {sign.name for sign in _score_signs(context, scores[:-1])} if signs else set()
    new = [sign for sign in signs if sign.name not in known]
    _report(context.configuration, new, context.watch, _describe_kept_files(context, number))


def guard_weights(context: Context, weights: Weights) -> None:
    """Check the weights of an iteration before they are stored.

    Raises:
        OptimizerError: no decoder can use them.
        DataError: there is a new sign, and the run is strict.
    """
    store = context.store
    number = 1 + sum(sign.result is not None for sign in store.iterations())
    signs = _weight_signs(context, weights)
    for sign in signs:
        if sign.is_fatal:
            raise OptimizerError(
                f"{context.optimizer.name} found no usable weights in iteration {number}"
                f" ({Message(sign.message).template}); its lists are kept: try another algorithm "
                "with {--continue}"
            )
    earlier = _earlier_weights(store) if signs else []
    known = {sign.name for used in earlier for sign in _weight_signs(context, used)}
    new = [sign for sign in signs if sign.name not in known]
    _report(context.configuration, new, context.watch, _describe_kept_files(context, number))


def guard_result(context: Context, weights: Weights) -> tuple[str, ...]:
    """Check the resulting weights before they are written.

    Returns:
        The messages of all signs in the run, for the summary.

    Raises:
        OptimizerError: no decoder can use the weights.
        DataError: there is a sign anywhere in the run, and the run is strict.
    """
    signs = _weight_signs(context, weights)
    for sign in signs:
        if sign.is_fatal:
            raise OptimizerError(
                f"the run ends with no usable weights ({Message(sign.message).template});"
                f" {_describe_written_files(context)}; continue with {{--continue}} and other "
                "settings"
            )
    records = context.store.iterations()
    every = find_first_signs(context)
    every += _score_signs(context, _scores(context.store))
    every += signs
    firsts = {sign.name: sign for sign in reversed(every)}
    every = [sign for sign in every if firsts[sign.name] == sign]
    configuration = context.configuration
    if configuration.strict:
        # In a run that is continued, this includes earlier warnings.
        _report(configuration, every, context.watch, _describe_kept_files(context, len(records)))
    seen = {
        sign.name
        for used in _earlier_weights(context.store)
        for sign in _weight_signs(context, used)
    }
    _report(configuration, [e for e in signs if e.name not in seen], context.watch)
    return tuple(dict.fromkeys(sign.message for sign in every))


class FirstLook:
    """Checks translations during the first epoch of a strict online run.

    It looks for signs that end the run, as soon as there are enough translations. ``guard_decoded``
    checks everything at the end of the epoch.
    """

    def __init__(self, context: Context) -> None:
        configuration = context.configuration
        self._context = context
        self._waits = configuration.strict and not context.store.iterations()
        self._outputs: dict[int, bytes] = {}

    def __call__(self, lists: Sequence[NBestList]) -> None:
        """Check n-best lists that were just stored.

        Raises:
            DataError: there is a sign, and the run is strict.
        """
        if not self._waits:
            return
        for nbest in lists:
            numbers, rows = np.unique(nbest.sentence_ids, return_index=True)
            pairs = zip(numbers.tolist(), rows.tolist(), strict=True)
            self._outputs |= {number: nbest.text(row) for number, row in pairs}
        if len(self._outputs) >= _EARLY_SENTENCES:
            self._waits = False
            signs = _text_signs(self._context, self._outputs)
            kept = (
                f"the lists of {len(self._outputs)} sentences are kept;"
                f" {_describe_written_files(self._context)}"
            )
            _report(self._context.configuration, signs, self._context.watch, kept)


def _describe_kept_files(context: Context, number: int) -> str:
    return f"the lists of iteration {number} are kept; {_describe_written_files(context)}"


def _describe_written_files(context: Context) -> str:
    place = result_path(context.configuration, context.workspace)
    return f"{place} is as it was" if place.exists() else f"no {place.name} is written"


def _report(
    configuration: Configuration,
    signs: Iterable[WarningSign],
    watch: Watcher,
    what_is_kept: str = "",
    how_to_continue: str = "; continue with {--continue}",
) -> None:
    """Warn of signs; in a strict run, end it with one error for all."""
    messages = list(dict.fromkeys(Message(sign.message).template for sign in signs))
    if configuration.strict and messages:
        raise DataError(
            f"{{--strict}}: {'. Also: '.join(messages)} ({what_is_kept}). Without {{--strict}} this"
            f" is a warning{how_to_continue}"
        )
    for message in messages:
        watch(Note(message, is_warning=True))


def find_first_signs(context: Context) -> list[WarningSign]:
    """Return the signs in the lists of the first iteration.

    They may be kept without the lists.
    """
    if not (records := context.store.iterations()):
        return []
    result = None if records[0].result is None else read_result(records[0])
    if result is not None and result.signs is not None:
        return [WarningSign(name, message) for name, message in result.signs]
    return _first_list_signs(context, records[0].record)


def _first_list_signs(context: Context, start: Mapping[str, Any]) -> list[WarningSign]:
    """Return signs in the first iteration's lists, those that explain others first."""
    lists = _read_first_lists(context, start, _SENTENCES)
    return [*_text_signs(context, lists.outputs), *find_list_signs(*lists.parts)]


def _explain_untuned(context: Context) -> str | None:
    """Return a note on sparse features that the algorithm does not tune."""
    space, data = context.store.space, context
    if space is None:
        return None
    selection = data.configuration.optimization.selection
    count = selection.count_sparse(space, data.fixed_weights)
    return context.optimizer.algorithm.explain_untuned(count)


def _text_signs(context: Context, outputs: Mapping[int, bytes]) -> list[WarningSign]:
    """Signs in input, references and translations of some sentences."""
    configuration, signature = context.configuration, context.references.signature
    views = views_of_signatures([signature])
    if not views:
        return []
    numbers = sorted(outputs)
    references = [[lines[i] for i in numbers] for lines in read_run_references(configuration)]
    texts = [outputs[i] for i in numbers]
    if configuration.source_text is None:
        return find_text_signs(references, texts, views, rewriting="lists")
    source = [line for i, line in enumerate(read_lines(configuration.source)) if i in outputs]
    return [
        *find_source_signs(source, references, texts),
        *find_text_signs(references, texts, views, source=source, rewriting="lists"),
    ]


def _scores(store: NBestStore) -> list[float]:
    """Return scores of the decoder's 1-best in all iterations, finished or not."""
    return [read_list_figures(record).first_best_score for record in store.iterations()]


def _score_signs(context: Context, scores: Sequence[float]) -> list[WarningSign]:
    ends = range(1, len(scores) + 1)
    return [sign for end in ends for sign in _find_score_signs(context, scores[:end])]


def _find_score_signs(context: Context, scores: Sequence[float]) -> list[WarningSign]:
    options = [option.name for option in fields(context.optimizer.algorithm.options)]
    signature = context.references.signature
    return find_score_signs(scores, signature, context.configuration.max_drop, options)


def _earlier_weights(store: NBestStore) -> list[Weights]:
    return [
        read_result(record).weights for record in store.iterations() if record.result is not None
    ]


def _weight_signs(context: Context, weights: Weights) -> list[WarningSign]:
    names = context.space.labels
    values = np.array([*weights.dense, *weights.sparse.values()], dtype=np.float64)
    return find_weight_signs(values, (*names, *weights.sparse), len(weights.dense))
