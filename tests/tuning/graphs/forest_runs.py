"""Runs with search graphs in place of a decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from formats.graphs.hypergraph import hypergraph_names, write_hypergraph
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.nbest.block import NBestList
from formats.references import read_references
from formats.text import read_lines
from formats.weights.files import WeightGroup
from mosesplug.decoders.description import DecodedGraphs
from mosesplug.settings.online import OnlineSettings
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.tuning import Configuration
from mosesplug.tuning.graphs.decoder import share_store
from tests.tuning.forests import nodes_of, toy_decoder

Toy = Any

GROUPS = (
    WeightGroup("Distortion0", (0.3,)),
    WeightGroup("LM0", (0.5,)),
    WeightGroup("WordPenalty0", (-1.0,)),
    WeightGroup("TranslationModel0", (0.2, 0.2, 0.2)),
)


def decode_by_graphs(
    configuration: Configuration, place: Path, name: str = "forest"
) -> Configuration:
    """Return the configuration with stored search graphs in place of its decoder."""
    return replace(
        configuration,
        working_directory=configuration.working_directory.with_name(name),
        decoding=replace(configuration.decoding, decoder=DecodedGraphs(place)),
        online=None if configuration.online is None else OnlineSettings(),
    )


def list_rows(found: NBestList) -> list[tuple[Any, ...]]:
    """Return sentence, text and features of each hypothesis."""
    ends = found.sparse_indptr.tolist()
    return [
        (
            int(found.sentence_ids[row]),
            found.text(row),
            tuple(found.dense[row].tolist()),
            {
                found.sparse_names[found.sparse_indices[place]]: float(found.sparse_data[place])
                for place in range(ends[row], ends[row + 1])
            },
        )
        for row in range(len(found))
    ]


def configure_online(toy: Toy, name: str = "live", **more: Any) -> Configuration:
    """Return the configuration of an online run on the toy system, in batches of 4 sentences."""
    options = {"epochs": 2, "batch": 4}
    optimization = {"algorithm": "adagrad", "options": options, **more.pop("optimization", {})}
    regime = {"online": OnlineSettings("process"), "maximum_iterations": 0, "minimum_change": 0.0}
    return toy.configuration(name, optimization=optimization, **(regime | more))


def store_graphs(
    path: Path, toy: Toy, parts: int, after: Callable[[], object] = lambda: None
) -> Path:
    """Make a store of search graphs and return its path.

    Each of the iterations, ``parts`` of them, holds another part of the hypotheses. The map is
    small at first, so that it must grow. ``after`` is called after each iteration, with the store
    still open.
    """
    configuration = toy.configuration()
    sentences = read_lines(configuration.input)
    prefix = configuration.references
    references = configuration.metric.prepare(read_references(prefix, len(sentences)))
    with NBestStore.open(path, writable=True, map_size=1 << 17) as store:
        share_store(store, path)
        store.require({"input": fingerprint_files([configuration.input])})
        for part in range(parts):
            files = []
            for number, sentence in enumerate(sentences):
                begin, edges, end = nodes_of(sentence.decode())
                names = hypergraph_names([("UnknownWordPenalty0", 1), *toy_decoder().GROUPS])
                write_hypergraph(path / "graph", names, [begin, edges[part::parts], end])
                files.append((number, read_hypergraph(path / "graph")))
            groups = tuple(toy_decoder().GROUPS)
            fixed = ("UnknownWordPenalty0",)
            store.add_graphs(part + 1, files, groups=groups, fixed=fixed)
            store.add_iteration(
                part + 1,
                (),
                metric=configuration.metric,
                references=references,
                n_sentences=len(sentences),
                record={},
            )
            after()
    return path


def open_store(directory: Path) -> NBestStore:
    """Open the store of a run."""
    return NBestStore.open(directory / "nbests.lmdb")


def assert_same_graphs(one: Path, other: Path, n_sentences: int = 12) -> None:
    """Compare all graphs of two runs."""
    with open_store(one) as first, open_store(other) as second:
        assert first.space == second.space
        with first.graphs() as here, second.graphs() as there:
            for sentence in range(n_sentences):
                pairs = zip(here.of_sentence(sentence), there.of_sentence(sentence), strict=True)
                for a, b in pairs:
                    assert a.words == b.words
                    for field in fields(a):
                        np.testing.assert_array_equal(
                            getattr(a, field.name), getattr(b, field.name)
                        )
