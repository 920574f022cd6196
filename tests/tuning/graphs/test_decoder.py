"""Search graphs in the place of a decoder: the same lists, so the same weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.moses.ini import read_moses_ini
from formats.nbest.files import read_nbest
from formats.text import read_lines
from formats.weights.files import WeightGroup, read_dense, read_show_weights, read_sparse
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.description import DecodedGraphs
from mosesplug.errors import DataError, DecoderError
from mosesplug.metrics import metric
from mosesplug.settings.online import HeldOutSet, Monitor
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.graphs.decoder import ForestDecoder, ForestRecipe, open_shared_store
from mosesplug.tuning.graphs.features import read_configured_features
from mosesplug.tuning.graphs.files import DecodedText
from mosesplug.tuning.graphs.forest import open_forest
from tests.tuning.forests import nodes_of, write_toy_graphs
from tests.tuning.graphs.forest_runs import (
    GROUPS,
    configure_online,
    decode_by_graphs,
    list_rows,
    store_graphs,
)

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any


def test_a_run_is_that_of_the_decoder(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    live = toy.configuration("live", maximum_iterations=2)
    one, other = tune(live), tune(decode_by_graphs(live, graphs))
    assert other.weights == one.weights
    assert [each.first_best_score for each in other.iterations] == [
        each.first_best_score for each in one.iterations
    ]
    for number in (1, 2):
        places = [toy.directory / name / f"run{number}" for name in ("live", "forest")]
        lists = [list_rows(read_nbest(f"{place}.best15.out.gz")) for place in places]
        assert lists[0] == lists[1]
        assert Path(f"{places[0]}.out").read_bytes() == Path(f"{places[1]}.out").read_bytes()
    tuned = read_moses_ini(toy.directory / "forest" / "moses.ini")
    assert tuned.weights == read_moses_ini(toy.directory / "live" / "moses.ini").weights
    features = toy.directory / "forest" / "features.list"
    live_features = read_show_weights(toy.directory / "live" / "features.list")
    assert read_show_weights(features) == live_features


def test_one_file_with_the_graphs_of_all_sentences(toy: Toy) -> None:
    """Moses' extended search graph, whose features have no names and three decimals."""
    lines = []
    for number, sentence in enumerate(read_lines(toy.directory / "input")):
        lines.append(f"{number} hyp=0 stack=0 forward=1 fscore=0.000")
        _, edges, _ = nodes_of(sentence.decode())
        for hypothesis, edge in enumerate(edges, start=1):
            unknown, *values = edge.dense  # [feature] names it last
            core = ",".join(f"{value:.3f}" for value in (*values, unknown))
            words = b" ".join(word for word in edge.target if isinstance(word, bytes)).decode()
            lines.append(
                f"{number} hyp={hypothesis} stack=1 back=0 score=0 transition=0 forward=-1"
                f' fscore=0 covered=0-0 scores="core=({core}) " out="x|{words}"'
            )
    path = toy.directory / "graphs.all"
    path.write_text("\n".join([*lines, ""]))
    live = toy.configuration("live", maximum_iterations=1)
    tune(live)
    tune(decode_by_graphs(live, path))
    first, other = (
        read_nbest(toy.directory / name / "run1.best15.out.gz") for name in ("live", "forest")
    )
    assert len(first) == len(other) == 12 * 15
    assert {first.text(row) for row in range(12 * 15)} == {
        other.text(row) for row in range(12 * 15)
    }
    assert np.abs(np.sort(first.scores) - np.sort(other.scores)).max() < 2e-3


def test_sparse_features(toy: Toy) -> None:
    (toy.directory / "start.sparse").write_text("wt_hund 0.6\nwt_never 0.3\n")
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs", sparse=True)
    live = toy.configuration(
        "live",
        flags="-sparse",
        optimization={"algorithm": "kbmira", "options": {"epochs": 3}},
        sparse_weights=toy.directory / "start.sparse",
        maximum_iterations=2,
    )
    forest = decode_by_graphs(live, graphs)
    one, other = tune(live), tune(forest)
    assert other.weights.dense == pytest.approx(one.weights.dense, rel=1e-6)
    assert set(other.weights.sparse) == set(one.weights.sparse)
    lists = [
        list_rows(read_nbest(toy.directory / name / "run2.best15.out.gz"))
        for name in ("live", "forest")
    ]
    assert lists[0] == lists[1]
    sparse = [read_sparse(toy.directory / n / "run2.sparse-weights") for n in ("live", "forest")]
    assert sparse[0] == pytest.approx(sparse[1])


def test_an_online_run_is_that_of_the_decoder(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    live = configure_online(toy)
    one, other = tune(live), tune(decode_by_graphs(live, graphs))
    assert other.weights == one.weights
    assert [each.curve for each in other.iterations] == [each.curve for each in one.iterations]


def test_shards_are_those_of_the_decoder(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    live = configure_online(toy, optimization={"sharding": Sharding(2, "average"), "threads": 2})
    assert tune(decode_by_graphs(live, graphs)).weights == tune(live).weights


def test_stale_weights_are_those_of_the_decoder(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    sharding = Sharding(2, asynchronous=True, async_order="fixed")
    live = configure_online(toy, optimization={"sharding": sharding, "threads": 2})
    assert tune(decode_by_graphs(live, graphs)).weights == tune(live).weights


def test_held_out_text_and_monitors_by_their_own_graphs(toy: Toy) -> None:
    """Monitors without graphs are translated by the program of the held-out set."""
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    (toy.directory / "other").write_bytes((toy.directory / "input").read_bytes()[:200] + b" hund\n")
    lines = (toy.directory / "other").read_bytes()
    (toy.directory / "other.ref").write_bytes(lines)
    others = write_toy_graphs(toy.directory / "other", toy.directory / "others")
    text = toy.directory / "other", toy.directory / "other.ref"
    live = configure_online(toy, held_out=HeldOutSet(*text, every=2))
    one = tune(live)
    scores = [iteration.heldout for iteration in one.iterations]
    assert len(scores[0]) > 1
    for name, decoder in (
        ("graphs", DecodedGraphs(others)),
        ("program", live.decoding.decoder),
    ):
        forest = decode_by_graphs(live, graphs, f"judged by {name}")
        monitors = (Monitor("same", *text, decoder if name == "graphs" else None),)
        held_out = HeldOutSet(*text, every=2, decoder=decoder)
        other = tune(replace(forest, held_out=held_out, monitors=monitors))
        assert other.weights == one.weights
        assert scores == [own.heldout for own in other.iterations]
        assert scores == [own.monitors["same"] for own in other.iterations]


def test_monitors_by_graphs_of_a_run_with_a_program(toy: Toy) -> None:
    """Each has its own graphs, or none; those of another text are rejected."""
    text = toy.directory / "input", toy.directory / "reference"
    graphs = DecodedGraphs(write_toy_graphs(text[0], toy.directory / "graphs"))
    (toy.directory / "other").write_bytes(b"hund\n")
    (toy.directory / "other.ref").write_bytes(b"dog\n")
    other = toy.directory / "other", toy.directory / "other.ref"
    monitors = (Monitor("stored", *text, graphs), Monitor("decoded", *text), Monitor("one", *other))
    plain = toy.configuration("live", maximum_iterations=1)
    result = tune(replace(plain, monitors=monitors))
    assert list(result.monitors) == ["stored", "decoded", "one"]
    assert result.monitors["stored"] == result.monitors["decoded"]
    wrong = Monitor("one", *other, graphs)
    with pytest.raises(DataError, match=r"but .*other has only 1"):
        tune(replace(plain, monitors=(wrong,), existing="continue"))


class Killed(BaseException):
    """An unexpected exception."""


@pytest.mark.parametrize("regime", ["batch", "online"])
def test_an_interrupted_run_ends_with_the_same_bytes(
    toy: Toy, regime: str, left_by_run: Callable[[Path], dict[str, bytes]]
) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    live = configure_online(toy) if regime == "online" else toy.configuration("live")
    tune(decode_by_graphs(live, graphs, "whole"))
    parts = decode_by_graphs(live, graphs, "parts")
    for cut in (4, 15, 24):
        left = iter(range(cut))

        def watch(event: object, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Killed

        with contextlib.suppress(Killed):
            tune(parts, watch)
        parts = replace(parts, existing="continue")
    tune(parts)
    whole, found = (left_by_run(toy.directory / name) for name in ("whole", "parts"))
    assert found.keys() == whole.keys()
    assert [name for name in whole if found[name] != whole[name]] == []


def test_the_runs_own_store_can_grow_between_two_batches(toy: Toy) -> None:
    path = toy.directory / "store"
    recipe = ForestRecipe(path, {"UnknownWordPenalty0": 1.0}, 9, "graphs", 2, is_growing=True)
    decoder = ForestDecoder(recipe)
    sentences = [(number, b"") for number in range(12)]
    sizes: list[int] = []

    def decode() -> None:
        lists = decoder.decode(sentences, ModelWeights(GROUPS))
        assert [len(found) for found in lists] == [9] * 12
        sizes.append((path / "data.mdb").stat().st_size)

    store_graphs(path, toy, 4, decode)
    assert len(sizes) == 4
    assert sizes[0] < 1 << 17 < sizes[-1]


def test_graphs_of_several_iterations_count_together(toy: Toy) -> None:
    weights = ModelWeights(GROUPS)
    sentences = [(number, b"") for number in (3, 0, 11)]
    found = []
    for parts, threads in ((1, 1), (1, 3), (3, 2)):
        store = store_graphs(toy.directory / f"in{parts}{threads}", toy, parts)
        recipe = ForestRecipe(store, {"UnknownWordPenalty0": 1.0}, 9, "graphs", threads)
        with ForestDecoder(recipe) as decoder:
            lists = decoder.decode(sentences, weights)
            assert [list_rows(each) for each in decoder.decode(sentences[:1], weights)] == [
                list_rows(lists[0])
            ]
            with pytest.raises(DecoderError, match="LM0 Distortion0"):
                decoder.decode(sentences, ModelWeights((GROUPS[1], GROUPS[0], *GROUPS[2:])))
        assert [int(each.sentence_ids[0]) for each in lists] == [3, 0, 11]
        assert [len(each) for each in lists] == [9, 9, 9]
        found.append([list_rows(each) for each in lists])
    assert found[0] == found[1] == found[2]


def test_files_are_read_once(toy: Toy, log: Log) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    configuration = decode_by_graphs(toy.configuration(maximum_iterations=1), graphs)
    note = f"reading the search graphs in {graphs}"
    tune(configuration, log)
    tune(replace(configuration, existing="overwrite"), log)
    assert sum(getattr(event, "text", "") == note for event in log.events) == 1
    (graphs / "7.gz").write_bytes((graphs / "8.gz").read_bytes() + b"")
    tune(replace(configuration, existing="overwrite"), log)
    assert sum(getattr(event, "text", "") == note for event in log.events) == 2


def test_sentences_without_graph(toy: Toy, log: Log) -> None:
    text = toy.directory / "input"
    lines = text.read_bytes().splitlines()
    lines[4] = b""
    text.write_bytes(b"\n".join([*lines, b""]))
    graphs = write_toy_graphs(
        text, toy.directory / "graphs", wanted=[n for n in range(12) if n != 4]
    )
    tune(decode_by_graphs(toy.configuration(maximum_iterations=1), graphs), log)
    assert any("1 of 12 sentences have no n-best list" in str(event) for event in log.events)
    out = (toy.directory / "forest" / "run1.out").read_bytes().splitlines()
    assert len(out) == 12
    assert [number for number, line in enumerate(out) if not line] == [4]


def test_features_of_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    path.write_text(
        "[feature]\nUnknownWordPenalty\nWordPenalty\n"
        "PhraseDictionaryMemory name=TM0 num-features=4 tuneable-components=true,0,1,false\n"
        "Other name=Fixed0 num-features=2 tuneable=false\nWordTranslation name=WT\n"
        "[weight]\nTM0= 0.1 0.2 0.3 0.4\nWordPenalty0= -1\nFixed0= 5 6\nWT_a~b= 3\nLM0= 0.5\n"
    )
    found = read_configured_features(path)
    assert found.groups == (
        WeightGroup("WordPenalty0", (-1.0,)),
        WeightGroup("TM0", (0.1, None, 0.3, None)),
        WeightGroup("LM0", (0.5,)),
    )
    assert found.fixed_weights == {
        "UnknownWordPenalty0": 1.0, "TM0_2": 0.2, "TM0_4": 0.4, "Fixed0_1": 5.0, "Fixed0_2": 6.0,
    }  # fmt: skip
    assert found.names == ("WordPenalty0", "TM0_1", "TM0_3", "LM0")
    assert found.columns == (("WordPenalty0", 1), ("TM0", 2), ("LM0", 1))
    assert found.untuneable == ("UnknownWordPenalty0", "Fixed0")
    assert found.sparse == ("WT",)
    show = found.announce((("LM0", 1), ("TM0", 2), ("WordPenalty0", 1)), tmp_path)
    assert show.names == ("LM0", "TM0", "TM0", "WordPenalty0")
    assert np.allclose(show.values, (0.5, 0.1, 0.3, -1.0))


def test_recorded_lists(multi30k: Path, tmp_path: Path) -> None:
    """Moses' own graphs give Moses' own lists, at the weights that both were made with."""
    recorded = read_nbest(multi30k / "forest" / "first60.best100.gz")
    (tmp_path / "graphs").mkdir()
    for number in range(6):
        name = f"{number}.gz"
        (tmp_path / "graphs" / name).symlink_to(multi30k / "forest" / "hypergraph" / name)
    texts = {}
    for language in ("de", "en"):
        texts[language] = read_lines(multi30k / "text" / f"dev.{language}")[:6]
        (tmp_path / language).write_bytes(b"\n".join([*texts[language], b""]))
    bleu = metric("BLEU")
    text = DecodedText(tmp_path / "de", texts["de"], bleu, bleu.prepare([texts["en"]]))
    with open_forest(
        tmp_path / "graphs",
        tmp_path / "cache",
        multi30k / "model" / "moses.ini",
        text,
        nbest=100,
        threads=2,
        watch=lambda event: None,
    ).decoder as decoder:
        used = dict(read_dense(multi30k / "forest" / "init.dense"))
        groups = read_configured_features(multi30k / "model" / "moses.ini").groups
        order = [WeightGroup(group.name, used[group.name]) for group in groups]
        lists = decoder.decode(list(enumerate(texts["de"])), ModelWeights(tuple(order)))
    names = [name for name, width in lists[0].groups for _ in range(width)]
    theirs = [name for name, width in recorded.groups for _ in range(width)]
    columns = np.concatenate([np.flatnonzero(np.array(names) == n) for n in dict.fromkeys(theirs)])
    for number, found in enumerate(lists):
        own = {found.text(row): row for row in range(len(found))}
        rows_of = np.flatnonzero(recorded.sentence_ids == number)
        ranks = [own[recorded.text(row)] for row in rows_of]
        assert np.abs(found.dense[ranks][:, columns] - recorded.dense[rows_of]).max() < 1e-3
        assert np.abs(found.scores[ranks] - recorded.scores[rows_of]).max() < 1e-2
        assert ranks[0] == 0


def test_a_closed_store_is_reopened(toy: Toy) -> None:
    store = store_graphs(toy.directory / "store", toy, 1)
    first = open_shared_store(store)
    assert open_shared_store(store) is first
    first.close()
    second = open_shared_store(store)
    assert second is not first
    assert second.iterations()[0].n_graphs == 12


def test_the_store_is_closed_with_its_last_user(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    tune(decode_by_graphs(toy.configuration(maximum_iterations=1), graphs))
    with NBestStore.open(toy.directory / "forest" / "forest.lmdb", writable=True) as store:
        assert store.iterations()[0].n_graphs == 12
