"""Read n-best lists from files, score them and merge them, as a tuning run does.

A temporary store removes the duplicates. Some formats name every value: which of these features are
dense follows from the names of given weights, or from the lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.references import read_references
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.features import FeatureSpace
from mosesplug.learning.deferred_scoring import DeferredScoring
from mosesplug.learning.lists.blocks import (
    find_dense_features,
    make_steps,
    read_list_blocks,
    read_lists_ahead,
)
from mosesplug.learning.lists.references import check_reference_count, match_references
from mosesplug.learning.watched import WatchedMetric, join_metrics, split_statistics
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics.interpolated import InterpolatedReferences
from mosesplug.metrics.scored import disable_scorers
from mosesplug.scratch import ScratchDirectory
from mosesplug.settings.lists import NO_SETTINGS, ListSettings
from mosesplug.store import NBestStore
from mosesplug.store.writing import AHEAD_BYTES
from mosesplug.tuning.text_signs.comparison import choose_lines, find_text_signs
from mosesplug.tuning.text_signs.view import views_of_signatures
from mosesplug.tuning_set import TuningSet

_NUMBERS = re.compile("[_0-9]+")

References = StrPath | Sequence[Sequence[bytes]]
"""The reference or the prefix of several, or their lines, ``[reference][line]``."""

NO_REFERENCES: References = ()
"""For metrics that use none."""


@dataclass(frozen=True)
class MergedLists:
    """Merged lists of several files.

    Attributes:
        tuning_set: distinct hypotheses with the metric's statistics.
        signature: the metric with its settings and the number of references.
        hypotheses: number of hypotheses read, duplicates included.
        watched_metrics: metrics that are reported beside it, with their statistics.
        notes: what to check about the texts and the references.
        deferred: computes the statistics of commands, which are 0 in the lists; None if the lists
            have them.
    """

    tuning_set: TuningSet
    signature: str
    hypotheses: int
    watched_metrics: tuple[WatchedMetric, ...] = ()
    notes: tuple[str, ...] = ()
    deferred: DeferredScoring | None = None


@dataclass(frozen=True)
class StoredLists:
    """n-best lists of several files in a store, one iteration for each file.

    Attributes:
        references: ``[reference][line]``, a line for each sentence.
        prepared_references: the references as the metric compiled them.
        hypotheses: number of hypotheses read, duplicates included.
        ids: the sentence ids that are texts, by their numbers; empty if they are integers.
    """

    store: NBestStore
    references: Sequence[Sequence[bytes]]
    prepared_references: PreparedReferences
    hypotheses: int
    ids: tuple[str, ...] = ()


def load_lists(
    files: Sequence[StrPath | NBestList],
    references: References,
    metric: Metric,
    settings: ListSettings = NO_SETTINGS,
    *,
    watched: Sequence[Metric] = (),
    dense: Sequence[str] | None = None,
    is_held_out: bool = False,
    defers_scores: bool = False,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
    check: Callable[[FeatureSpace], object] = lambda space: None,
) -> MergedLists:
    """Read, score and merge n-best lists.

    Args:
        files: n-best lists of the same sentences, one for each iteration or shard: files, or lists
            that have been read.
        references: the reference, the prefix of several, or their lines; ``NO_REFERENCES`` for
            metrics that use none.
        dense: names of the dense features of lists that name every value; None: those that
            ``find_dense_features`` returns.
        defers_scores: leave the scores of commands to ``MergedLists.deferred``.
        loaded: called with the number of files that have been read.
        check: called with the dense features of the lists when the first hypotheses are read; it
            raises for what does not fit, before anything else is read or compiled.
    """
    joined = join_metrics(metric, watched)
    with store_lists(
        files,
        references,
        disable_scorers(joined) if defers_scores else joined,
        settings,
        dense=dense,
        is_held_out=is_held_out,
        threads=threads,
        loaded=loaded,
        check=check,
    ) as stored:
        prepared = stored.prepared_references
        deferred = None
        if defers_scores:
            sentences = range(stored.store.n_sentences)
            texts = [text for number in sentences for text in stored.store.hypotheses(number)]
            deferred = DeferredScoring(metric, tuple(watched), prepared, texts, threads)
        if watched and isinstance(prepared, InterpolatedReferences):
            # The signature is that of the objective, without the metrics that are only reported.
            prepared = prepared.parts[0]
        lists, watched_metrics = split_statistics(stored.store.tuning_set(), metric, watched)
        notes = note_text_signs(stored.store, stored.references, prepared.signature)
        return MergedLists(
            lists, prepared.signature, stored.hypotheses, watched_metrics, notes, deferred
        )


@contextmanager
def store_lists(
    files: Sequence[StrPath | NBestList],
    references: References,
    metric: Metric,
    settings: ListSettings = NO_SETTINGS,
    *,
    dense: Sequence[str] | None = None,
    is_held_out: bool = False,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
    check: Callable[[FeatureSpace], object] = lambda space: None,
) -> Iterator[StoredLists]:
    """Read and score n-best lists into a temporary store; see ``load_lists``."""
    dense = find_dense_features(files, settings) if dense is None else dense
    name = name_references(references)
    lines, ids = match_references(files, settings, read_lines_of(references), name)
    prepared = metric.prepare(lines)
    hypotheses = 0
    with (
        ScratchDirectory() as directory,
        NBestStore.open(Path(directory) / "lists", writable=True) as store,
    ):
        steps = make_steps(settings, ids, is_held_out=is_held_out)
        lists = read_list_blocks(files, settings, dense=dense, ids=ids, steps=steps)
        lists = read_lists_ahead(lists, AHEAD_BYTES)
        for number, blocks in enumerate(lists, start=1):
            report = store.add_iteration(
                number,
                _check_first(blocks, check) if number == 1 else blocks,
                metric=metric,
                references=prepared,
                n_sentences=prepared.n_sentences if prepared.n_references else None,
                record={},
                threads=threads,
                ahead_bytes=AHEAD_BYTES,
            )
            hypotheses += report.hypotheses
            loaded(number)
        # Only when all lists are read, all ids are known.
        check_reference_count(ids, lines, name)
        yield StoredLists(store, lines, prepared, hypotheses, ids.names)


def _check_first(
    blocks: Iterator[NBestList], check: Callable[[FeatureSpace], object]
) -> Iterator[NBestList]:
    """Yield the blocks; call ``check`` with the first one's dense features, if any."""
    for number, block in enumerate(blocks):
        if number == 0 and block.groups:
            check(FeatureSpace(block.groups))
        yield block


def read_lines_of(references: References) -> Sequence[Sequence[bytes]]:
    """Return references as ``[reference][line]``; see ``read_references``."""
    if isinstance(references, str | PathLike):
        return read_references(references)
    return references


def name_references(references: References) -> str:
    """Return how a message calls references."""
    return f"{references}" if isinstance(references, str | PathLike) else "the list of references"


def select_dense_features(
    path: StrPath, weights: WeightFile, settings: ListSettings = NO_SETTINGS
) -> tuple[str, ...] | None:
    """Return the dense features of a list by the names of its weights.

    See ``find_dense_features``.

    Raises:
        FormatError: the list cannot be read, has none of the features of these weights, or has one
            without a weight that is spelled nearly like a weight without a feature.
    """
    listed = find_dense_features([path], settings)
    names = weights.value_names
    if settings.dense is not None or listed is None or not names:
        return listed  # numbers without names are in the order of the list
    if not set(names) & set(listed):
        raise FormatError(
            f"its features are {', '.join(listed)[:200]}, but the weights belong to "
            f"{', '.join(names)[:200]}",
            path=path,
            remedy=f"Give the weights of the system that made the list, not {weights.path}",
        )
    _reject_misspelled(path, listed, weights)
    # Features that steps add, or that the weights record and the list lacks, are not of the list.
    return tuple(name for name in names if name in listed or not weights.changes.makes(name))


def _reject_misspelled(path: StrPath, listed: Sequence[str], weights: WeightFile) -> None:
    """Check that no weight of a list that names every value looks misspelled.

    Names that differ by their numbers only are of different features.
    """
    from difflib import get_close_matches  # few lists name every value

    unweighted = [name for name in listed if name not in weights.single_values]
    for name, value in weights.single_values.items():
        if not value or name in listed or weights.changes.makes(name):
            continue
        bare = _NUMBERS.sub("", name)
        others = [name for name in unweighted if _NUMBERS.sub("", name) != bare]
        for similar in get_close_matches(name, others, n=1, cutoff=0.85):
            raise FormatError(
                f"a weight of {name}, which is no feature of {path}, and none of {similar}, "
                "which is one",
                path=weights.path,
                remedy=f"Rename it to {similar}, or set it to 0",
            )


def note_text_signs(
    store: NBestStore, references: Sequence[Sequence[bytes]], signature: str
) -> tuple[str, ...]:
    """Return what to check about the first hypotheses and the references.

    Args:
        references: ``[reference][line]``, a line for each sentence of the store.
    """
    views = views_of_signatures([signature])
    if not views or not references:
        return ()
    texts: dict[int, bytes] = {}
    for sentence in choose_lines(store.n_sentences):
        # Each file may have lists of other sentences.
        hypotheses = store.hypotheses(sentence, 1) or store.hypotheses(sentence)
        if hypotheses:
            texts[sentence] = hypotheses[0]
    lines = [[reference[sentence] for sentence in texts] for reference in references]
    signs = find_text_signs(lines, [*texts.values()], views, rewriting="lists")
    return tuple(sign.message for sign in signs)
