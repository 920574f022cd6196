"""Tell search errors from model errors, by derivations of the references.

A derivation of a reference that scores higher than the 1-best is an error of the search, which lost
it. One that scores lower is an error of the model, which prefers another translation. Forced
decoding finds such derivations, and so does a wider search (Neubig & Watanabe 2016, sections 2.4
and 8.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import hypergraph_names
from formats.nbest.files import read_nbest_blocks
from formats.references import read_references
from mosesplug.errors import DataError, OptionName, UsageError
from mosesplug.forest.intersection import intersect_references
from mosesplug.forest.k_best import k_best, translations
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES
from mosesplug.forest.viterbi import viterbi
from mosesplug.learning.weighted_graphs import WeightedGraph
from mosesplug.results.analysis.error_counts import ErrorKind, SearchErrors, SentenceErrors
from mosesplug.results.choices.graphs import name_graph, open_graphs
from mosesplug.results.views.run import StoredRun, choose_run, open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.sentence_ids import arrange_lines
from mosesplug.tuning.graphs.decoder import find_graph_store
from mosesplug.tuning.workdir.workspace import Workspace

ROUNDING = 1e-5
"""Difference of printed scores, relative to their size, that decoders' rounding causes."""

_WEIGHTS_DIFFER = 1e-6

TOP = 100


def exceeds(score: float, other: float) -> bool:
    """Return whether a score is higher than another one by more than rounding."""
    return score - other > ROUNDING * max(1.0, abs(score), abs(other))


def find_search_errors(
    places: Sequence[Path],
    references: Path,
    *,
    ids: bool | None = None,
    iteration: int | None = None,
    wider: Sequence[Path] = (),
    weights: str | None = None,
    sparse_weights: Path | None = None,
    top: int | None = None,
) -> SearchErrors:
    """Find the references in the lists or graphs of a run, or in graphs in files.

    Args:
        places: a run with forced decoding or with search graphs; or directories or files of graphs.
        references: a file, or the prefix of several.
        ids: whether lines begin with sentence ids; None: if they look so.
        iteration: an iteration of a run; None for the last.
        wider: graphs of a search that keeps more: a run, directories or files.
        weights, sparse_weights: weights of the graphs; None for those that they were made with.
        top: length of the lists of graphs in which references are ranked; None for ``TOP``.

    Raises:
        UsageError: an argument does not apply, or the weights are missing or differ.
        FormatError, StoreError, DataError: a file or a store cannot be read or does not fit.
    """
    if len(places) == 1 and (store := find_graph_store(choose_run(places[0]))) is not None:
        with open_run(store) as run:
            if iteration is not None:
                run.record(iteration)
            number = run.records[-1].iteration if iteration is None else iteration
            forced = _find_forced(run, number)
            has_graphs = any(record.n_graphs for record in run.records)
            if forced is not None:
                graph_options = {
                    "wider": wider, "weights": weights, "sparse-weights": sparse_weights, "top": top
                }  # fmt: skip
                if own := [name for name, value in graph_options.items() if value]:
                    raise UsageError(
                        f"{OptionName(own[0])} requires search graphs: the lists of a run with"
                        " forced decoding have the scores of their decoder"
                    )
                text = ParallelText.read(None, references, run.store, ids)
                return find_list_errors(run, text, number, forced)
            if not has_graphs:
                raise UsageError(
                    f"iteration {number} of {places[0]} has neither forced decoding nor search"
                    " graphs: tune with {--forced-decoding}, or with {--forest}"
                )
    graphs, has_weights = open_graphs(places, weights, sparse_weights, iteration)
    wide, wide_has_weights = None, True
    if wider:
        wide, wide_has_weights = open_graphs(wider, weights, sparse_weights)
    if not (has_weights and wide_has_weights):
        raise UsageError("there are no weights: give {--weights} FILE")
    lines = arrange_lines(read_references(references), (), f"{references}", ids)
    return find_graph_errors(graphs, lines, wide, top=TOP if top is None else top)


def find_graph_errors(
    graphs: Iterable[WeightedGraph],
    references: Sequence[Sequence[bytes]],
    wider: Iterable[WeightedGraph] | None = None,
    *,
    top: int = TOP,
) -> SearchErrors:
    """Find the references in search graphs.

    Args:
        graphs: the graphs, by ascending sentence.
        references: ``references[k][sentence]``.
        wider: graphs of the same sentences from a search that keeps more, with the same weights.
        top: length of the lists in which references are ranked.

    Raises:
        DataError: a sentence has no reference or no wider graph, or a graph cannot be searched.
        UsageError: the weights of the two searches differ.
    """
    rows = []
    pairs = ((graph, None) for graph in graphs) if wider is None else _pair_graphs(graphs, wider)
    for graph, other in pairs:
        if graph.sentence >= len(references[0]):
            raise DataError(
                f"{graph.source} belongs to sentence {graph.sentence}, but the references have "
                f"only {len(references[0])} lines (the first is sentence 0)"
            )
        texts = [tuple(lines[graph.sentence].split()) for lines in references]
        rows.append(_judge_graph(graph, other, texts, top))
    return SearchErrors(tuple(rows), tells_reach=wider is not None)


def _pair_graphs(
    graphs: Iterable[WeightedGraph], wider: Iterable[WeightedGraph]
) -> Iterator[tuple[WeightedGraph, WeightedGraph]]:
    """Yield both graphs of each sentence."""
    for pair in zip_longest(graphs, wider):
        both = [graph for graph in pair if graph is not None]
        first = min(graph.sentence for graph in both)
        if [graph.sentence for graph in both] != [first, first]:
            raise DataError(
                f"only one of the two searches has a search graph of sentence {first}: give graphs"
                " of the same sentences"
            )
        _check_weights(*both)
        yield both[0], both[1]


def _check_weights(graph: WeightedGraph, wider: WeightedGraph) -> None:
    """Check that two graphs have the same weights."""
    own, other = _name_weights(graph), _name_weights(wider)
    for name in sorted({*own, *other}):
        one, two = own.get(name, 0.0), other.get(name, 0.0)
        if abs(one - two) > _WEIGHTS_DIFFER * max(1.0, abs(one)):
            raise UsageError(
                f"the weight of {name} is {one:g} in {graph.source}, but {two:g} in"
                f" {wider.source}: decode both with the same weights, or give {{--weights}}"
            )


def _name_weights(graph: WeightedGraph) -> dict[str, float]:
    space = graph.features.space
    names = (*hypergraph_names(space.groups), *space.sparse)
    return dict(zip(names, graph.weights.tolist(), strict=True))


def _judge_graph(
    graph: WeightedGraph,
    wider: WeightedGraph | None,
    texts: Sequence[tuple[bytes, ...]],
    top: int,
) -> SentenceErrors:
    with name_graph(graph):
        listed = k_best(graph.graph, graph.scores, top, distinct=True)
    words = (
        tuple(word for word in text if word not in BOUNDARIES)
        for text in translations(graph.graph, listed)
    )
    rank = next((place for place, text in enumerate(words, start=1) if text in texts), None)
    own, best = _score_references(graph, texts), float(listed.scores[0])
    scores = [own]
    gain = None
    if wider is not None:
        with name_graph(wider):
            wider_best = viterbi(wider.graph, wider.scores).score
        gain = wider_best - best if exceeds(wider_best, best) else 0.0
        scores.append(_score_references(wider, texts))
    known = [score for score in scores if score is not None]
    kind: ErrorKind
    if rank == 1:
        kind = "no error"
    elif not known:
        kind = "not in the graph" if wider is None else "unreachable"
    elif exceeds(max(known), best):
        kind = "search error"
    else:
        kind = "pruned" if own is None else "ranked low"
    return SentenceErrors(str(graph.sentence), kind, rank, max(known, default=None), best, gain)


def _score_references(graph: WeightedGraph, texts: Sequence[tuple[bytes, ...]]) -> float | None:
    """Return the score of the best derivation of a reference; None without any."""
    product = intersect_references(graph.graph, texts)
    if product is None:
        return None
    return float(graph.scores[product.best(graph.scores)].sum())


def find_list_errors(
    run: StoredRun, text: ParallelText, iteration: int, path: Path
) -> SearchErrors:
    """Compare the lists of an iteration with what its forced decoding found.

    Args:
        run: a run with forced decoding.
        text: the references.
        path: the list of forced decoding, ``runN.forced.best.out.gz``.

    Raises:
        DataError: lists have no scores, or the references are those of another text.
        FormatError: the list of forced decoding cannot be read.
    """
    text.check_length(run.n_sentences)
    forced = np.zeros(run.n_sentences, dtype=np.int64)
    for block in read_nbest_blocks(path):
        if len(block) and block.sentence_ids[-1] >= run.n_sentences:
            raise DataError(
                f"{path} has sentence {block.sentence_ids[-1]}, but the run has"
                f" {run.n_sentences} sentences"
            )
        forced += np.bincount(block.sentence_ids, minlength=run.n_sentences)
    rows = []
    for sentence, n_forced in enumerate(forced.tolist()):
        listed = run.store.iteration_list(iteration, sentence)
        if np.isnan(listed.scores).any():
            raise DataError(
                f"the lists in {run.path} have no model scores, which tell errors of the search"
                " from those of the model"
            )
        texts = {tuple(lines[sentence].split()) for lines in text.references}
        is_reference = [tuple(hypothesis.split()) in texts for hypothesis in listed.texts]
        if not all(is_reference[len(is_reference) - n_forced :]):
            raise DataError(
                f"forced decoding in {path} found other references for sentence"
                f" {run.name_sentence(sentence)}: give the references of the run"
            )
        rows.append(_judge_list(run.name_sentence(sentence), listed.scores, is_reference, n_forced))
    return SearchErrors(tuple(rows), tells_reach=True)


def _judge_list(
    name: str, scores: NDArray[np.float64], is_reference: Sequence[bool], n_forced: int
) -> SentenceErrors:
    """Judge a list whose last hypotheses are those of forced decoding."""
    size = len(scores) - n_forced
    rank = next((place + 1 for place in range(size) if is_reference[place]), None)
    references = [float(scores[place]) for place in range(len(scores)) if is_reference[place]]
    score = max(references, default=None)
    best = float(scores[0]) if size else None
    kind: ErrorKind
    if rank == 1:
        kind = "no error"
    elif score is None:
        kind = "unreachable"
    elif best is None or exceeds(score, best):
        kind = "search error"
    elif rank is not None:
        kind = "ranked low"
    else:
        kind = "pruned" if exceeds(score, float(scores[size - 1])) else "below the list"
    return SentenceErrors(name, kind, rank, score, best)


def _find_forced(run: StoredRun, iteration: int) -> Path | None:
    """Return the list of forced decoding of an iteration; None if missing."""
    path = Workspace(run.path.parent, 0).run(iteration, "forced.best.out.gz")
    return path if path.is_file() else None
