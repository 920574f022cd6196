"""Choose translations by minimum Bayes risk.

They come from search graphs, a store of search graphs, or n-best lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.pipes import wrap_files
from formats.text import StrPath
from formats.utilities import UtilityReader
from formats.weights.any_format import WeightFile
from mosesplug.ahead import map_ahead
from mosesplug.errors import UsageError
from mosesplug.forest.mbr import (
    Criterion,
    Decision,
    decide_in_graph,
    expected_gains,
    expected_utilities,
    find_best,
)
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.learning.lengths import find_recorded_length
from mosesplug.learning.lists.blocks import names_values, read_file_blocks
from mosesplug.learning.lists.merging import select_dense_features
from mosesplug.learning.lists.transforming import pair_transformed
from mosesplug.learning.made_features import apply_recorded, check_unused_weights
from mosesplug.learning.sparse_coverage import SparseCoverage
from mosesplug.learning.weighted_graphs import WeightedGraph
from mosesplug.learning.weights import score_hypotheses
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.protocol import Metric, needs_outside, needs_texts
from mosesplug.metrics.scored import change_scored, find_scorers
from mosesplug.settings.lengths import LengthRange
from mosesplug.settings.lists import NO_SETTINGS, ListSettings
from mosesplug.settings.scores.files import ScoreSource

_AHEAD = 8
"""Sentences read ahead of each thread."""


MbrTask = tuple[int, Callable[[Criterion], Decision]]
"""A sentence, and a function that chooses its translation."""


def decide_translations(
    tasks: Iterable[MbrTask], criterion: Criterion, threads: int
) -> Iterator[tuple[int, Decision]]:
    """Yield each sentence with its decision, in the order of the tasks.

    Args:
        tasks: the sentences, of which only some are read ahead.
        threads: number of threads; the decisions do not depend on it.
    """

    def decide(task: MbrTask) -> tuple[int, Decision]:
        sentence, choose = task
        return sentence, choose(criterion)

    with ThreadPoolExecutor(threads) as pool:
        yield from map_ahead(pool, decide, tasks, _AHEAD * threads)


def read_graph_tasks(graphs: Iterable[WeightedGraph]) -> Iterator[MbrTask]:
    """Yield the task of each search graph."""
    for graph in graphs:
        yield graph.sentence, partial(_choose_in_graph, graph)


def read_list_tasks(
    path: StrPath,
    settings: ListSettings,
    weights: WeightFile | None,
    utility: ScoreSource | None = None,
    metric: Metric | None = None,
) -> Iterator[MbrTask]:
    """Read the n-best lists of a file.

    Args:
        settings: how it is read; ``transform`` changes the texts that are compared, not those that
            are chosen.
        weights: the weights; None for the scores in the lists.
        utility: a file of utilities instead of a criterion of n-grams; see ``formats.utilities``.
            Hypotheses of lists without scores then have the same probability.
        metric: the utility instead of a criterion of n-grams: the score of each hypothesis against
            each other one.

    Raises:
        FormatError: a file cannot be read or lacks a weight, or lists without scores are given
            without weights and utilities; or the utilities belong to another list.
        UsageError: the lists have no texts.
    """
    (path,) = wrap_files([path])
    reader = None if utility is None else UtilityReader(utility.paths[0])
    sign = -1.0 if utility is not None and utility.is_error_rate else 1.0
    dense: tuple[str, ...] | None = None
    lengths = None if weights is None else find_recorded_length(weights)
    if weights is not None:
        settings = apply_recorded(weights, settings)
        dense = select_dense_features(path, weights, settings)
    elif names_values(path, settings):
        dense = ()
    blocks = read_file_blocks(path, replace(settings, transform=None), dense=dense)
    coverage = None if weights is None else SparseCoverage.of_file(weights)
    for block, compared in pair_transformed(blocks, settings.transform):
        if not block.has_texts:
            raise UsageError(f"{path} has no texts to choose from by minimum Bayes risk")
        scores = block.scores
        if weights is not None and coverage is not None:
            coverage.add(block.sparse_names)
            scores = score_hypotheses(block, weights, lengths)
        elif (utility is not None or metric is not None) and np.isnan(scores).all():
            scores = np.zeros(len(block))
        elif not np.isfinite(scores).all():
            raise FormatError(
                "a hypothesis has no score",
                path=path,
                line=int(block.lines[int(np.argmin(np.isfinite(scores)))]),
                remedy="Give {--weights} to score it",
            )
        for first, last in pairwise(block.list_offsets.tolist()):
            texts = [block.text(row).split() for row in range(first, last)]
            changed = texts
            if compared is not block:
                changed = [compared.text(row).split() for row in range(first, last)]
            gains: Callable[[], NDArray[np.float64]] | None = None
            if metric is not None:
                whole = [compared.text(row) for row in range(first, last)]
                gains = partial(pairwise_scores, metric, whole, int(block.sentence_ids[first]))
            if reader is not None:
                taken = sign * reader.take(last - first, f"{path}:{block.lines[first]}")
                gains = partial(np.asarray, taken)
            sentence = int(block.sentence_ids[first])
            yield sentence, partial(_choose_in_list, texts, changed, scores[first:last], gains)
    if coverage is not None:
        coverage.warn(str(path))
    if reader is not None:
        reader.finish()


def _choose_in_graph(graph: WeightedGraph, criterion: Criterion) -> Decision:
    with name_sentence(graph.sentence):
        return decide_in_graph(graph.graph, graph.weights, criterion)


def _choose_in_list(
    texts: list[list[bytes]],
    compared: list[list[bytes]],
    scores: NDArray[np.float64],
    utilities: Callable[[], NDArray[np.float64]] | None,
    criterion: Criterion,
) -> Decision:
    """Choose one of ``texts`` by comparing those ``compared``."""
    order, _ = rank_by_risk(compared, scores, utilities, criterion)
    best = int(np.argmax(scores))
    return Decision(tuple(texts[order[0]]), texts[order[0]] == texts[best])


def rank_by_risk(
    texts: Sequence[Sequence[bytes]],
    scores: NDArray[np.float64],
    utilities: Callable[[], NDArray[np.float64]] | None,
    criterion: Criterion,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rank the hypotheses of a sentence by their expected gain.

    Args:
        texts: the words of each hypothesis, at least one.
        scores: float64 ``[n]``, finite; model scores.
        utilities: returns utilities, as for ``expected_utilities``; None: those of the criterion.

    Returns:
        int64 ``[n]``, the hypotheses by descending gain, of equal ones the highest score first; and
        float64 ``[n]``, the gain of each hypothesis.
    """
    by_score = np.argsort(-scores, kind="stable")
    if utilities is None:
        gains = np.empty(len(scores))
        ranked = [texts[row] for row in by_score.tolist()]
        gains[by_score] = expected_gains(ranked, scores[by_score], criterion)
    else:
        gains = expected_utilities(utilities(), scores, criterion.scale)
    # The first of equally good translations is chosen, also up to rounding.
    best = by_score[find_best(gains[by_score])]
    order = by_score[np.argsort(-gains[by_score], kind="stable")]
    return np.append(best, order[order != best]), gains


def check_utility(metric: Metric) -> None:
    """Check that a metric can compare two hypotheses.

    Raises:
        UsageError: it reads scores from outside, or a command gets hypotheses only.
    """
    if needs_outside(metric) or not needs_texts(metric):
        raise UsageError(
            f"{metric.name} needs scores from outside, which compare no two hypotheses: name a"
            " metric of texts"
        )
    for name, scorer in find_scorers(metric).items():
        if not scorer.reads_references:
            raise UsageError(
                f"{name} reads hypotheses without references, so it compares no two: give "
                "{--score-format json} or tsv"
            )


def pairwise_scores(
    metric: Metric, texts: Sequence[bytes], sentence: int = 0
) -> NDArray[np.float64]:
    """Return the sentence scores of all pairs of ``n`` texts, float64 ``[n, n]``.

    Row ``h`` has the scores of text ``h`` where the text of each column is the reference. Equal
    texts are compared once. ``sentence`` is the number of their source sentence.
    """
    metric = change_scored(metric, lambda scored: replace(scored, sentence=sentence))
    distinct = list(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(distinct)}
    n = len(distinct)
    numbers = np.arange(n)
    pairs = HypothesisRanges.of_lines(distinct, numbers).part(np.tile(numbers, n))
    # Hypotheses of the same reference follow each other, which prepares references once.
    pairs = pairs._replace(sentence_ids=np.repeat(numbers, n))
    rows = metric.statistics(metric.prepare([distinct]), *pairs)
    scores = metric.sentence_scores(rows.astype(np.float64)).reshape(n, n).T
    columns = [places[text] for text in texts]
    return np.asarray(scores[np.ix_(columns, columns)], dtype=np.float64)


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
    (lists,) = wrap_files([lists])
    settings = apply_recorded(weights, settings)
    dense = None
    if not isinstance(lists, NBestList):
        dense = select_dense_features(lists, weights, settings)
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
    for first, last in pairwise(block.list_offsets.tolist()):
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

    bags = count_bags([block.text(row).split() for row in rows.tolist()])
    return find_best(expected_bleu(bags, softmax(scale * block.scores[rows])))
