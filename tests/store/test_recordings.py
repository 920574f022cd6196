"""Lists that Moses wrote, stored and read again."""

from __future__ import annotations

import gzip
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from formats.nbest.files import read_nbest, read_nbest_blocks
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet

N_SENTENCES = 250
"""The first sentences of the recorded lists, which have 1,014."""
N_LISTS = 7


@pytest.fixture(scope="module")
def lists(multi30k: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The first sentences of the seven recorded lists."""
    paths = []
    for iteration in range(1, N_LISTS + 1):
        with gzip.open(multi30k / f"mert-work/run{iteration}.best100.out.gz") as file:
            own = takewhile(lambda line: int(line.partition(b" ")[0]) < N_SENTENCES, file)
            paths.append(tmp_path_factory.mktemp("list") / f"run{iteration}")
            paths[-1].write_bytes(b"".join(own))
    return paths


@pytest.fixture(scope="module")
def stored(multi30k: Path, lists: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of these lists."""
    path = tmp_path_factory.mktemp("store")
    metric = Bleu()
    reference = multi30k.joinpath("text/dev.en").read_bytes().splitlines()
    references = metric.prepare([reference[:N_SENTENCES]])
    with NBestStore.open(path, writable=True) as store:
        for iteration, each in enumerate(lists, start=1):
            store.add_iteration(
                iteration,
                read_nbest_blocks(each, block_bytes=1 << 20),
                metric=metric,
                references=references,
                n_sentences=N_SENTENCES,
                record={},
                threads=2,
            )
    return path


def distinct(merged: TuningSet) -> int:
    """Distinct pairs of features and statistics of each sentence."""
    owner = np.repeat(merged.sentence_ids, np.diff(merged.offsets)).astype("<i8")
    rows = np.concatenate(
        [
            np.ascontiguousarray(part).view(np.uint8).reshape(merged.n_hyps, -1)
            for part in (owner, merged.dense + np.float32(0.0), merged.stats)
        ],
        axis=1,
    )
    return len(np.unique(rows.view(np.dtype((np.void, rows.shape[1])))))


def extracted(path: Path) -> list[tuple[bytes, bytes]]:
    """Sentence and values of each line of a file that Moses' extractor wrote, for these lists."""
    rows = []
    sentence = b""
    with gzip.open(path) as file:
        for line in file:
            if b"_TXT_BEGIN_" in line:
                sentence = line.split()[1]
                if int(sentence) == N_SENTENCES:
                    break
            elif b"_TXT_END_" not in line:
                rows.append((sentence, line))
    return rows


def test_the_union_of_two_lists_equals_moses(stored: Path, multi30k: Path) -> None:
    pairs: set[object] = set()
    for iteration in (1, 2):
        features, scores = (
            extracted(multi30k / f"scores/run{iteration}.{kind}.dat.gz")
            for kind in ("features", "scores")
        )
        pairs.update(zip(features, scores, strict=True))
    with NBestStore.open(stored) as store:
        assert distinct(store.tuning_set(range(1, 3))) == len(pairs)


def test_the_union_of_seven_lists(stored: Path, lists: list[Path]) -> None:
    lines: set[bytes] = set()
    for path in lists:
        # All but the score; Moses spells equal numbers alike.
        lines.update(line.rpartition(b"|||")[0] for line in path.read_bytes().split(b"\n"))
    with NBestStore.open(stored) as store:
        records = store.iterations()
        merged = store.tuning_set()
    count = lists[0].read_bytes().count(b"\n")
    assert records[0].hypotheses == records[0].new_hypotheses == count > 60 * N_SENTENCES
    assert merged.n_hyps == sum(record.new_hypotheses for record in records)
    assert merged.n_hyps == len(lines - {b""})


def test_stored_lists_equal_the_lists_read(stored: Path, lists: list[Path]) -> None:
    with NBestStore.open(stored) as store:
        own = store.iteration_set(4)
        truth = read_nbest(lists[3])
        np.testing.assert_array_equal(own.tuning_set.dense, truth.dense)
        np.testing.assert_array_equal(own.scores, truth.scores)
        offsets = own.tuning_set.offsets
        np.testing.assert_array_equal(
            np.repeat(np.arange(N_SENTENCES), np.diff(offsets)), truth.sentence_ids
        )
        for sentence in range(0, N_SENTENCES, 25):
            one = store.iteration_list(4, sentence)
            rows = range(offsets[sentence], offsets[sentence + 1])
            assert one.texts == tuple(map(truth.text, rows))
            assert one.extras == tuple(map(truth.extra, rows))


def test_batches_are_parts_of_the_whole(stored: Path) -> None:
    chosen = np.random.default_rng(5).permutation(N_SENTENCES)[:40]
    with NBestStore.open(stored) as store:
        for iterations in (None, range(3, 6), [7, 2], 5):
            whole = store.tuning_set(iterations).take_sentences(chosen)
            batch = store.batch(chosen, iterations)
            for name in ("sentence_ids", "offsets", "dense", "stats", "lengths"):
                np.testing.assert_array_equal(getattr(batch, name), getattr(whole, name))


def test_sparse_features_survive_a_round_trip(multi30k: Path, tmp_path: Path) -> None:
    (path,) = multi30k.joinpath("sparse").glob("*best*.gz")
    truth = read_nbest(path)
    n_sentences = int(truth.sentence_ids[-1]) + 1
    metric = Bleu()
    references = metric.prepare(
        [multi30k.joinpath("text/dev.en").read_bytes().splitlines()[:n_sentences]]
    )
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in (1, 2):
            report = store.add_iteration(
                iteration, read_nbest_blocks(path, block_bytes=1 << 16), metric=metric,
                references=references, n_sentences=n_sentences, record={},
            )  # fmt: skip
        assert report.new_hypotheses == 0
        own = store.iteration_set(2).tuning_set
    assert own.sparse is not None
    assert own.space.n_sparse == len(truth.sparse_names) > 100
    for row in range(0, own.n_hyps, 7):
        mine = slice(own.sparse.indptr[row], own.sparse.indptr[row + 1])
        read = slice(truth.sparse_indptr[row], truth.sparse_indptr[row + 1])
        names = [own.space.sparse[i] for i in own.sparse.indices[mine]]
        assert dict(zip(names, own.sparse.data[mine], strict=True)) == dict(
            zip(
                (truth.sparse_names[i] for i in truth.sparse_indices[read]),
                truth.sparse_data[read],
                strict=True,
            )
        )
