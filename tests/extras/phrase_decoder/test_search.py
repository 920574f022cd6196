"""The search against a decoder that tries every derivation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.moses.ini import read_moses_ini
from mosesplug.errors import DataError
from mosesplug.extras.phrase_decoder.model import Model, load_model
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.extras.phrase_decoder.n_best import PhraseDerivation, find_best_derivations
from mosesplug.extras.phrase_decoder.search import Limits, search
from mosesplug.extras.phrase_decoder.search_graph import PhraseGraph
from mosesplug.templates.declaration import Templates, read_ini_function
from mosesplug.templates.derivation import AlignedDerivation, Phrase, PhrasePair

Systems = Callable[..., Any]
Phrases = tuple[tuple[int, int, str], ...]
EVERYTHING: dict[str, Any] = {"stack": 0, "beam_threshold": 0.0}
SENTENCES = ("a b c", "c b a b", "a unknown b", "c c a b", "b")


def load(system: Any, *sentences: str, **arguments: Any) -> Model:
    """The model of a system, for the given sentences."""
    features = read_features(read_moses_ini(system.ini))
    return load_model(features, [s.encode().split() for s in sentences], **arguments)


def grouped(derivation: PhraseDerivation, model: Model) -> dict[str, list[float]]:
    """Feature values by name, the untuneable one left out."""
    return {
        feature.name: derivation.values[list(feature.columns)].tolist()
        for feature in model.features.features
        if any(feature.tuneable)
    }


def phrases_of(graph: PhraseGraph, derivation: PhraseDerivation) -> Phrases:
    """Source span and target of each phrase, in the order of the translation."""
    return tuple(
        (
            int(graph.start[edge]),
            int(graph.end[edge]),
            b" ".join(graph.model.target(int(graph.pair[edge]))).decode(),
        )
        for edge in derivation.edges
    )


@pytest.mark.parametrize("distortion_limit", [-1, 0, 1, 2])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_without_pruning_it_finds_the_best_of_all_derivations(
    random_system: Systems, order: int, distortion_limit: int
) -> None:
    system = random_system(
        10 * order + distortion_limit, order=order, distortion_limit=distortion_limit
    )
    model = load(system, *SENTENCES)
    for sentence in SENTENCES:
        limits = Limits(distortion_limit=distortion_limit, **EVERYTHING)
        graph = search(model, sentence.encode().split(), limits)
        (best,) = find_best_derivations(graph, 1, distinct=True)
        expected = max(system.derivations(sentence.split()), key=lambda d: d.score)
        assert graph.node_score[graph.goals[0]] == pytest.approx(expected.score, abs=1e-9)
        assert best.score == pytest.approx(expected.score, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_distinct_list_is_the_best_derivation_of_every_translation(
    random_system: Systems, seed: int
) -> None:
    system = random_system(seed, distortion_limit=2)
    model = load(system, *SENTENCES)
    for sentence in SENTENCES:
        expected: dict[tuple[str, ...], Any] = {}
        for derivation in system.derivations(sentence.split()):
            known = expected.get(derivation.words)
            if known is None or derivation.score > known.score:
                expected[derivation.words] = derivation
        graph = search(model, sentence.encode().split(), Limits(distortion_limit=2, **EVERYTHING))
        found = find_best_derivations(graph, 10**6, distinct=True)
        scores = [derivation.score for derivation in found]
        assert (np.diff(scores) <= 1e-9).all()
        assert len(found) == len(expected)
        for derivation in found:
            words = tuple(word.decode() for word in derivation.words)
            assert derivation.score == pytest.approx(expected[words].score, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_full_list_has_the_score_of_every_derivation(random_system: Systems, seed: int) -> None:
    system = random_system(seed)
    model = load(system, "c a b")
    graph = search(model, b"c a b".split(), Limits(**EVERYTHING))
    found = find_best_derivations(graph, 10**6, distinct=False)
    expected = sorted((d.score for d in system.derivations(["c", "a", "b"])), reverse=True)
    np.testing.assert_allclose([d.score for d in found], expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_features_are_those_of_the_definitions(random_system: Systems, seed: int) -> None:
    system = random_system(seed)
    sentence = "c a unknown b"
    model = load(system, sentence)
    graph = search(model, sentence.encode().split(), Limits(**EVERYTHING))
    for derivation in find_best_derivations(graph, 50, distinct=True):
        phrases = phrases_of(graph, derivation)
        expected = system.score(sentence.split(), phrases)
        for name, values in grouped(derivation, model).items():
            assert values == pytest.approx(expected.values[name], abs=1e-9), name
        assert derivation.score == pytest.approx(expected.score, abs=1e-9)


@pytest.mark.parametrize(
    "functions",
    [
        ("TargetNgramFeature name=TN n=1",),
        ("TargetBigramFeature name=TB",),
        ("TargetNgramFeature name=TN n=4", "TargetBigramFeature name=TB"),
        ("TargetNgramFeature name=TN n=3 lower-ngrams=0",),
        ("WordTranslationFeature name=WT simple=0 target-context=1 window=1",),
        (
            "WordTranslationFeature name=WT source-context=1 target-context=1 window=3",
            "TargetBigramFeature name=TB",
        ),
    ],
)
@pytest.mark.parametrize("order", [1, 2])
def test_features_of_earlier_target_words_are_exact(
    random_system: Systems, order: int, functions: tuple[str, ...]
) -> None:
    """The list is complete although the language model alone would recombine more."""
    system = random_system(order, order=order)
    lines = "".join(f"{line}\n" for line in functions)
    system.ini.write_text(system.ini.read_text().replace("[feature]\n", f"[feature]\n{lines}"))
    table = system.directory / "table"
    table.write_text("".join(map(align_last_words, table.read_text().splitlines(keepends=True))))
    templates = Templates("", tuple(read_ini_function(line, Path()) for line in functions))
    sentence = ("c", "unknown", "a", "b")

    def count(phrases: Phrases) -> dict[str, float]:
        aligned = (
            Phrase(
                start, PhrasePair(sentence[start : end + 1], words, last_words(end - start, words))
            )
            for start, end, words in ((i, j, tuple(target.split())) for i, j, target in phrases)
        )
        return templates.count(AlignedDerivation(sentence, tuple(aligned)))

    weights: dict[str, float] = {}
    rng = random.Random(order)
    expected: dict[tuple[str, ...], float] = {}
    for derivation in system.derivations(list(sentence)):
        more = sum(
            weights.setdefault(name, rng.uniform(-2.0, 2.0)) * value
            for name, value in sorted(count(derivation.phrases).items())
        )
        known = expected.get(derivation.words, -math.inf)
        expected[derivation.words] = max(known, derivation.score + more)
    features = read_features(read_moses_ini(system.ini), sparse_weights=weights)
    words = [word.encode() for word in sentence]
    model = load_model(features, [words])
    graph = search(model, words, Limits(**EVERYTHING))
    assert graph.node_score[graph.goals[0]] == pytest.approx(max(expected.values()), abs=1e-9)
    translations = find_best_derivations(graph, 10**6, distinct=True)
    assert len(translations) == len(expected)
    assert (np.diff([derivation.score for derivation in translations]) <= 1e-9).all()
    for translation in translations:
        text = tuple(word.decode() for word in translation.words)
        assert translation.score == pytest.approx(expected[text], abs=1e-9)
        assert translation.sparse == count(phrases_of(graph, translation))


def last_words(end: int, target: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The first words are aligned, and the last ones."""
    return tuple(sorted({(0, 0), (end, len(target) - 1)}))


def align_last_words(line: str) -> str:
    source, target, *_ = fields = line.split(" ||| ")
    points = last_words(len(source.split()) - 1, target.split())
    return " ||| ".join([*fields[:3], " ".join(f"{i}-{j}" for i, j in points), fields[4]])


@pytest.mark.parametrize("dropped", [("LexicalReordering",), ("LexicalReordering", "Distortion")])
def test_reordering_features_may_be_missing(
    random_system: Systems, dropped: tuple[str, ...]
) -> None:
    system = random_system(8, distortion_limit=2)
    lines = system.ini.read_text().splitlines()
    system.ini.write_text("\n".join(line for line in lines if not line.startswith(dropped)))
    for kind in dropped:
        name = f"{kind}0"
        system.weights[name] = [0.0] * len(system.weights[name])
    model = load(system, "c b a b")
    graph = search(model, b"c b a b".split(), Limits(distortion_limit=2, **EVERYTHING))
    found = find_best_derivations(graph, 10**6, distinct=True)
    expected: dict[tuple[str, ...], float] = {}
    for derivation in system.derivations(["c", "b", "a", "b"]):
        best = expected.get(derivation.words, derivation.score)
        expected[derivation.words] = max(best, derivation.score)
    assert len(found) == len(expected)
    for derivation in found:
        words = tuple(word.decode() for word in derivation.words)
        assert derivation.score == pytest.approx(expected[words], abs=1e-9)


def test_pruning_gives_smaller_graphs_and_no_better_scores(random_system: Systems) -> None:
    system = random_system(3)
    sentence = b"a b c a b c a".split()
    model = load(system, "a b c a b c a")
    full = search(model, sentence, Limits(distortion_limit=3, **EVERYTHING))
    best = full.node_score[full.goals[0]]
    sizes = [len(full.node_score)]
    for limits in (Limits(20, 0.0, 3), Limits(3, 0.0, 3), Limits(1, 0.0, 3), Limits(0, 1.0, 3)):
        graph = search(model, sentence, limits)
        sizes.append(len(graph.node_score))
        assert graph.node_score[graph.goals[0]] <= best + 1e-9
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3]


def test_edges_are_in_order_and_make_up_the_score_of_their_node(random_system: Systems) -> None:
    model = load(random_system(5), "a b c b")
    graph = search(model, b"a b c b".split(), Limits(stack=10))
    assert (graph.tail < graph.head).all()
    assert (np.diff(graph.head) >= 0).all()
    over = graph.node_score[graph.tail] + graph.score
    for node in range(1, len(graph.node_score)):
        edges = slice(graph.first_edge[node], graph.first_edge[node + 1])
        assert (np.diff(over[edges]) <= 1e-12).all()
        assert over[edges][0] == pytest.approx(graph.node_score[node])
    values = graph.edge_values(np.arange(len(graph.head)))
    np.testing.assert_allclose(values @ model.features.weights, graph.score, atol=1e-9)


def test_an_empty_sentence_has_one_empty_translation(random_system: Systems) -> None:
    model = load(random_system(1), "a")
    graph = search(model, [], Limits())
    (only,) = find_best_derivations(graph, 5, distinct=True)
    assert only.words == []
    assert only.score == 0.0
    assert not only.values.any()


def test_a_long_sentence_needs_a_distortion_limit(random_system: Systems) -> None:
    words = ["a", "b", "c"] * 40
    model = load(random_system(2), " ".join(words))
    sentence = [word.encode() for word in words]
    with pytest.raises(DataError, match="120 words with distortion limit -1"):
        search(model, sentence, Limits())
    with pytest.raises(DataError, match="600 words"):
        search(model, sentence * 5, Limits(distortion_limit=4))
    graph = search(model, sentence, Limits(stack=5, distortion_limit=4))
    (best,) = find_best_derivations(graph, 1, distinct=True)
    covered = sorted(
        position
        for edge in best.edges
        for position in range(int(graph.start[edge]), int(graph.end[edge]) + 1)
    )
    assert covered == list(range(120))


def test_the_table_limit_keeps_the_best_estimates(random_system: Systems) -> None:
    system = random_system(7)
    everything = load(system, "a b c", table_limit=0)
    limited = load(system, "a b c", table_limit=1)
    for source, pairs in everything.options.items():
        estimates = everything.estimate[pairs]
        assert (np.diff(estimates) <= 0).all()
        assert limited.options[source].tolist() == pairs[:1].tolist()


def test_the_longest_phrase_can_be_set(random_system: Systems) -> None:
    model = load(random_system(7), "a b c", longest_phrase=1)
    assert set(model.options) == {b"a", b"b", b"c"}
