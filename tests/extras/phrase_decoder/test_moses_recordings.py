"""The decoder against what Moses recorded, on the first sentences of a real system.

Moses sums in single precision and prints six digits: values may differ by one in the last of them.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.moses.ini import read_moses_ini
from formats.nbest.entry import NBestEntry
from formats.nbest.files import iter_nbest
from formats.weights.files import read_dense
from mosesplug.extras.phrase_decoder.model import Model, Tables, build_model, read_tables
from mosesplug.extras.phrase_decoder.model_file import read_features, show_weights
from mosesplug.extras.phrase_decoder.n_best import PhraseDerivation, find_best_derivations
from mosesplug.extras.phrase_decoder.phrase_table import source_phrases
from mosesplug.extras.phrase_decoder.search import Limits, search
from mosesplug.extras.phrase_decoder.search_graph import (
    PhraseGraph,
    hypergraph_nodes,
    write_graph,
    write_weights,
)

N_SENTENCES = 8
GRAPHS = (0, 6)
"""The sentences with the smallest graphs."""


@dataclass(frozen=True)
class Recording:
    """A list that Moses wrote, and our search graphs at the same weights."""

    entries: list[list[NBestEntry]]
    model: Model
    graphs: list[PhraseGraph]


def overwrite(groups: list[tuple[str, tuple[float, ...]]]) -> str:
    """Dense weights as the argument of -weight-overwrite."""
    return " ".join(f"{name}= {' '.join(map(repr, values))}" for name, values in groups)


@pytest.fixture(scope="module")
def sentences(multi30k: Path) -> list[list[bytes]]:
    """The first sentences of the tuning set."""
    lines = (multi30k / "text" / "dev.de").read_bytes().splitlines()[:N_SENTENCES]
    return [line.split() for line in lines]


@pytest.fixture(scope="module")
def tables(multi30k: Path, sentences: list[list[bytes]]) -> Tables:
    """The tables of the system; weights do not change them."""
    features = read_features(read_moses_ini(multi30k / "model" / "moses.ini"))
    return read_tables(features, source_phrases(sentences, longest=20))


def load(
    multi30k: Path, tables: Tables, sentences: list[list[bytes]], weights: str, list_name: str
) -> Recording:
    """Decode the sentences of a recorded list at its weights."""
    features = read_features(read_moses_ini(multi30k / "model" / "moses.ini"), weights)
    model = build_model(tables, features, sentences)
    limits = Limits(distortion_limit=6)
    entries: list[list[NBestEntry]] = [[] for _ in sentences]
    for entry in iter_nbest(multi30k / list_name):
        if entry.sentence_id >= N_SENTENCES:
            break
        entries[entry.sentence_id].append(entry)
    return Recording(entries, model, [search(model, words, limits) for words in sentences])


@pytest.fixture(scope="module")
def first_run(multi30k: Path, tables: Tables, sentences: list[list[bytes]]) -> Recording:
    """The first iteration of a tuning run: start weights, L1-normalized, in six decimals."""
    ini = read_moses_ini(multi30k / "model" / "moses.ini")
    tuned = [(name, values) for name, values in ini.weights.items() if "Unknown" not in name]
    norm = sum(abs(value) for _, values in tuned for value in values)
    weights = overwrite([(n, tuple(round(v / norm, 6) for v in values)) for n, values in tuned])
    return load(multi30k, tables, sentences, weights, "mert-work/run1.best100.out.gz")


@pytest.fixture(scope="module")
def tuned_run(multi30k: Path, tables: Tables, sentences: list[list[bytes]]) -> Recording:
    """The decoding at tuned weights that also wrote search graphs."""
    weights = overwrite(list(read_dense(multi30k / "forest" / "init.dense")))
    return load(multi30k, tables, sentences, weights, "forest/first60.best100.gz")


def values_of(entry: NBestEntry) -> NDArray[np.float64]:
    return np.array([value for _, values in entry.dense for value in values])


def reported(model: Model, derivation: PhraseDerivation) -> NDArray[np.float64]:
    """Feature values in the order of a list."""
    columns = [
        column
        for feature in model.features.in_output_order()
        if any(feature.tuneable)
        for column in feature.columns
    ]
    return derivation.values[columns]


def agree(found: NDArray[np.float64], printed: NDArray[np.float64]) -> bool:
    """Whether values are what was printed in six digits, give or take one in the last."""
    digits = np.floor(np.log10(np.maximum(np.abs(printed), 1e-4)))
    return bool((np.abs(found - printed) <= 1.01 * 10.0 ** (digits - 5)).all())


@pytest.mark.parametrize("name", ["first_run", "tuned_run"])
def test_every_recorded_hypothesis_has_a_derivation_with_its_features(
    name: str, request: pytest.FixtureRequest
) -> None:
    recording: Recording = request.getfixturevalue(name)
    other_derivation = 0
    for entries, graph in zip(recording.entries, recording.graphs, strict=True):
        best = {b" ".join(d.words): d for d in find_best_derivations(graph, 200, distinct=True)}
        assert len(entries) >= 10
        for entry in entries:
            if entry.text in best and agree(
                reported(recording.model, best[entry.text]), values_of(entry)
            ):
                assert best[entry.text].score == pytest.approx(entry.score, rel=2e-5)
                continue
            # Moses did not find the best derivation of these words; that which it found must be
            # among ours.
            other_derivation += 1
            assert entry.text in best
            assert best[entry.text].score > entry.score
            assert any(
                b" ".join(d.words) == entry.text
                and agree(reported(recording.model, d), values_of(entry))
                for size in (2_000, 20_000)
                for d in find_best_derivations(graph, size, distinct=False)
            ), entry
    assert other_derivation <= 2


@pytest.mark.parametrize("name", ["first_run", "tuned_run"])
def test_the_first_best_is_that_of_moses(name: str, request: pytest.FixtureRequest) -> None:
    recording: Recording = request.getfixturevalue(name)
    for entries, graph in zip(recording.entries, recording.graphs, strict=True):
        (best,) = find_best_derivations(graph, 1, distinct=True)
        assert b" ".join(best.words) == entries[0].text
        assert best.score == pytest.approx(entries[0].score, rel=2e-5)


def test_lists_are_at_least_as_long_as_those_of_moses(first_run: Recording) -> None:
    for entries, graph in zip(first_run.entries, first_run.graphs, strict=True):
        assert len(find_best_derivations(graph, 100, distinct=True)) == 100 >= len(entries)


def test_show_weights_matches_moses(multi30k: Path) -> None:
    features = read_features(read_moses_ini(multi30k / "model" / "moses.ini"))
    assert show_weights(features) == (multi30k / "mert-work" / "features.list").read_bytes()


EDGE = re.compile(rb"^\[\d+\] (.*?)  \|\|\| (.+?)  \|\|\| (\d+)$", re.MULTILINE)
Edges = dict[tuple[bytes, int, int], list[list[float]]]


def edges_of(text: bytes) -> Edges:
    """Feature values of the edges of a graph, by words, words covered and jump."""
    edges: Edges = defaultdict(list)
    for words, features, covered in EDGE.findall(text):
        values = dict(feature.split(b"=") for feature in features.split())
        row = [float(value) for value in values.values()]
        edges[words, int(covered), round(float(values[b"Distortion0"]))].append(row)
    return edges


def test_search_graphs_have_the_edges_of_those_of_moses(
    multi30k: Path, tuned_run: Recording, tmp_path: Path
) -> None:
    recorded = multi30k / "forest" / "hypergraph"
    write_weights(str(tmp_path), tuned_run.model.features)
    assert (tmp_path / "weights").read_bytes() == (recorded / "weights").read_bytes()
    for number in GRAPHS:
        write_graph(str(tmp_path), "gz", number, tuned_run.graphs[number])
        ours = gzip.decompress((tmp_path / f"{number}.gz").read_bytes())
        theirs = gzip.decompress((recorded / f"{number}.gz").read_bytes())
        ours_by_key, theirs_by_key = edges_of(ours), edges_of(theirs)
        total = found = 0
        for key, rows in theirs_by_key.items():
            candidates = np.array(ours_by_key.get(key, []))
            total += len(rows)
            for row in rows if len(candidates) else []:
                # Moses takes the difference of two sums in single precision.
                found += bool((np.abs(candidates - row).max(axis=1) < 1e-4).any())
        assert found == total, number


def test_search_graphs_are_about_as_large_as_those_of_moses(
    multi30k: Path, tuned_run: Recording
) -> None:
    for number in GRAPHS:
        graph = tuned_run.graphs[number]
        text = gzip.decompress((multi30k / f"forest/hypergraph/{number}.gz").read_bytes())
        n_nodes, n_edges = map(int, text.split(b"\n")[1].split())
        nodes = hypergraph_nodes(graph)
        assert 0.8 < len(nodes) / n_nodes < 1.25
        assert 1.0 <= sum(map(len, nodes)) / n_edges < 2.0
