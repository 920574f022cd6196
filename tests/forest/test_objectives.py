"""Objectives on graphs against every derivation, and their gradients against differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest.derivations import choose_oracles
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.objectives import ScoredGraph, risk, softmax_margin, xbleu
from mosesplug.metrics.bleu.linear import LinearBleu
from tests.forest.every_derivation import WORDS, every, made, random_graph
from tests.forest.ngrams.test_split import ngrams

WEIGHTS = np.array([1.2, -0.9, 0.4])
GAINS = LinearBleu(-0.02, np.array([0.05, 0.07, 0.11, 0.2]))


class Corpus:
    """Two graphs, each with two references, one of them near the best translation."""

    def __init__(self, seed: int, phrase_based: bool) -> None:
        rng = np.random.default_rng(seed)
        self.graphs = [random_graph(rng, phrase_based=phrase_based) for _ in range(2)]
        self.every = [every(graph) for graph in self.graphs]
        self.references: list[list[list[bytes]]] = []
        for graph, all_of_them in zip(self.graphs, self.every, strict=True):
            near = graph.translation(np.array(all_of_them.edges[rng.integers(8)]))
            far = [WORDS[k] for k in rng.integers(0, len(WORDS), len(near) + 1)]
            self.references.append([near[1:], far])
        self.scored = [
            ScoredGraph.of(graph, ReferenceNgramTree.of(references))
            for graph, references in zip(self.graphs, self.references, strict=True)
        ]

    def probabilities(self, sentence: int) -> NDArray[np.float64]:
        scores = self.graphs[sentence].edge_scores(WEIGHTS)
        return self.every[sentence].probabilities(scores)

    def translations(self, sentence: int) -> list[list[bytes]]:
        graph = self.graphs[sentence]
        return [graph.translation(np.array(edges)) for edges in self.every[sentence].edges]


@pytest.fixture(params=[(seed, kind) for seed in range(3) for kind in (True, False)])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return Corpus(*request.param)


def check_gradient(
    objective: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
) -> None:
    """Central differences of the value in each weight."""
    _, gradient = objective(WEIGHTS)
    step = 1e-5
    for column in range(len(WEIGHTS)):
        change = step * np.eye(len(WEIGHTS))[column]
        slope = (objective(WEIGHTS + change)[0] - objective(WEIGHTS - change)[0]) / (2 * step)
        assert gradient[column] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_risk(corpus: Corpus) -> None:
    expected = 0.0
    for sentence, references in enumerate(corpus.references):
        known = set().union(*(ngrams(reference, 4) for reference in references))
        errors = []
        for words in corpus.translations(sentence):
            gain = GAINS.word * len(words)
            for ngram, count in ngrams(words, 4).items():
                gain += GAINS.ngrams[len(ngram) - 1] * count * (ngram in known)
            errors.append(-gain)
        expected += corpus.probabilities(sentence) @ np.array(errors) / 2
    assert risk(corpus.scored, WEIGHTS, GAINS)[0] == pytest.approx(expected)
    check_gradient(lambda w: risk(corpus.scored, w, GAINS))


def test_xbleu(corpus: Corpus) -> None:
    statistics = np.zeros(9)
    for sentence, references in enumerate(corpus.references):
        counted = [ngrams(words, 4) for words in corpus.translations(sentence)]
        limits: Counter[tuple[bytes, ...]] = Counter()
        for reference in references:
            limits |= ngrams(reference, 4)
        probabilities = corpus.probabilities(sentence)
        for ngram in set().union(*counted):
            mean = probabilities @ np.array([counts[ngram] for counts in counted])
            statistics[2 * len(ngram) - 2] += min(mean, limits[ngram])
            statistics[2 * len(ngram) - 1] += mean
        statistics[8] += min(map(len, references))
    precisions = statistics[0:8:2] / statistics[1:8:2]
    expected = math.exp(np.log(precisions).mean() + min(0.0, 1 - statistics[8] / statistics[1]))
    found, _ = xbleu(corpus.scored, WEIGHTS)
    assert 0.0 < found < 1.0
    assert found == pytest.approx(expected, rel=1e-4)
    check_gradient(lambda w: xbleu(corpus.scored, w))


def test_xbleu_of_sharp_posteriors_is_bleu_of_the_best() -> None:
    """Without clipped n-grams the limit of large weights is plain BLEU."""
    from sacrebleu.metrics import BLEU

    edges = [
        Edge((b"the", b"cat", b"sat", b"on", b"a", b"mat"), 1, (1.0, 0.0, 0.0)),
        Edge((b"dogs",), 1, (0.0, 0.0, 0.0)),
    ]
    reference = b"one cat sat on a mat too".split()
    scored = ScoredGraph.of(made([edges]), ReferenceNgramTree.of([reference]))
    found, _ = xbleu([scored], 1e3 * WEIGHTS)
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    score = bleu.corpus_score(["the cat sat on a mat"], [[b" ".join(reference).decode()]]).score
    assert found == pytest.approx(score / 100)


def test_xbleu_without_matches_is_zero() -> None:
    graph = made([[Edge((b"a", b"b"), 1, (1.0, 0.0, 0.0)), Edge((b"c",), 1, (0.0, 1.0, 0.0))]])
    scored = ScoredGraph.of(graph, ReferenceNgramTree.of([[b"a", b"b", b"c", b"d"]]))
    value, gradient = xbleu([scored], WEIGHTS)
    assert value == 0.0
    assert not gradient.any()
    assert xbleu([], WEIGHTS)[0] == 0.0


def test_entropy(corpus: Corpus) -> None:
    nothing = LinearBleu(0.0, np.zeros(4))
    expected = 0.0
    for sentence in range(2):
        probabilities = corpus.probabilities(sentence)
        expected += probabilities @ np.log(probabilities) / 2
    found, _ = risk(corpus.scored, WEIGHTS, nothing, temperature=1.0)
    assert found == pytest.approx(expected)
    check_gradient(lambda w: risk(corpus.scored, w, nothing, temperature=1.0))


def test_values_do_not_depend_on_threads() -> None:
    corpora = [Corpus(seed, seed % 2 == 0) for seed in range(4)]
    scored = [graph for corpus in corpora for graph in corpus.scored]
    oracles = [choose_oracles(graph, graph.gains(GAINS), 0.1)[0] for graph in scored]
    for objective in (
        lambda threads: softmax_margin(scored, oracles, None, WEIGHTS, threads=threads),
        lambda threads: risk(scored, WEIGHTS, GAINS, threads=threads),
        lambda threads: xbleu(scored, WEIGHTS, threads=threads),
    ):
        (value, gradient), (other, other_gradient) = objective(1), objective(3)
        assert value == other
        assert gradient.tobytes() == other_gradient.tobytes()


def test_names_the_sentence_that_cannot_be_used() -> None:
    graph = made([[Edge((b"a",), 1, (1.0,))]])
    scored = ScoredGraph.of(graph, ReferenceNgramTree.of([[b"a"]]))
    every_edge = np.ones(scored.split.n_edges, dtype=np.bool_)
    with pytest.raises(DataError, match="sentence 1: no derivation"):
        softmax_margin([scored] * 2, [every_edge, ~every_edge], None, WEIGHTS[:1])
    with pytest.raises(ValueError, match="1 search graphs but 0 oracles"):
        softmax_margin([scored], [], None, WEIGHTS[:1])
