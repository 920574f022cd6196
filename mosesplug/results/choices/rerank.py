"""Score n-best lists again, with other weights and additional features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.pipes import copy_pipes
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.learning.lists.blocks import read_file_blocks
from mosesplug.learning.lists.made_features import check_derived_features, check_unused_weights
from mosesplug.learning.lists.merging import select_dense_features
from mosesplug.learning.sparse_coverage import SparseCoverage
from mosesplug.learning.weights import score_hypotheses
from mosesplug.settings.lengths import LengthRange
from mosesplug.settings.lists import NO_SETTINGS, ListSettings


def score_again(
    lists: StrPath | NBestList,
    weights: WeightFile,
    settings: ListSettings = NO_SETTINGS,
    *,
    ids: SentenceIds | None = None,
    lengths: LengthRange | None = None,
    uses_all: bool = True,
) -> Iterator[NBestList]:
    """Yield the blocks of an n-best list with added features and new model scores.

    Args:
        weights: those of all dense features; sparse ones that are missing count as 0.
        settings: how the list is read, and which features are added to it. The dense features of a
            list that names every value are those that ``weights`` names, unless the settings name
            them.
        uses_all: whether each weight other than 0 must be that of a feature of the list.
        lengths: an exponent of the length that scores are divided by; None: they are not.

    Raises:
        FormatError: a file cannot be read, an added feature lacks values, or a weight other than 0
            is that of a dense feature that the list lacks. In lists that name every value, a
            missing one is 0.
        UsageError: two features have the same name, or the weights were learned with others.
    """
    (lists,) = copy_pipes([lists])
    dense = None
    if not isinstance(lists, NBestList):
        dense = select_dense_features(lists, weights, settings)
    check_derived_features(weights, settings)
    coverage = SparseCoverage.of_file(weights)
    for block in read_file_blocks(lists, settings, dense=dense, ids=ids):
        coverage.add(block.sparse_names)
        scores = score_hypotheses(block, weights, lengths)
        if uses_all and dense is None and settings.dense is None:
            check_unused_weights(weights, block.groups, block.sparse_names, block.path)
        yield replace(block, scores=scores)
    coverage.warn("the list" if isinstance(lists, NBestList) else str(lists))


def rank_sentences(block: NBestList) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each sentence with its rows, highest score first; ties keep their order."""
    bounds = np.flatnonzero(np.diff(block.sentence_ids, prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        order = np.argsort(-block.scores[first:last], kind="stable")
        yield int(block.sentence_ids[first]), first + order


def choose_least_risk(block: NBestList, rows: NDArray[np.int64], scale: float) -> int:
    """Return the position in ``rows`` of the hypothesis with most expected BLEU+1.

    This is minimum Bayes risk over a list (Kumar & Byrne 2004).

    Args:
        rows: int64, the rows of one sentence, the highest score first.
    """
    from mosesplug.forest.mbr import expected_bleu, find_best, softmax
    from mosesplug.forest.ngrams.table import count_bags

    found = count_bags([block.text(row).split() for row in rows.tolist()])
    return find_best(expected_bleu(found, softmax(scale * block.scores[rows])))
