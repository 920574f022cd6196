"""features.dat and scores.dat, byte for byte against what Moses' extractor wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.nbest.files import read_nbest
from formats.text import read_bytes, read_lines


def test_features_by_hand(tmp_path: Path) -> None:
    sparse = SparseColumns(
        ("WT_ä~a", "PL_1,1"),
        np.array([0, 2, 2, 3]),
        np.array([1, 0, 0], dtype=np.int32),
        np.array([3, -0.5, 9e-6], dtype=np.float32),
    )
    path = tmp_path / "features.dat"
    write_features(
        path,
        ["LM0_0", "TM0_0"],
        np.array([0, 3, 7]),
        np.array([0, 2, 2, 3]),
        np.array([[-44.1007, 0], [1 / 3, 123456.75], [1e-5, -0.0]], dtype=np.float32),
        sparse,
    )
    assert path.read_text() == (
        "FEATURES_TXT_BEGIN_0 0 2 2 LM0_0 TM0_0 \n"
        "-44.1007 0 WT_ä~a=-0.5 PL_1,1=3 \n"
        "0.333333 123457 \n"
        "FEATURES_TXT_END_0\n"
        "FEATURES_TXT_BEGIN_0 7 1 2 LM0_0 TM0_0 \n"
        "1e-05 -0 \n"
        "FEATURES_TXT_END_0\n"
    )


def test_scores_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "scores.dat.gz"
    statistics = np.array([[7, 9], [8, 9]], dtype=np.int32)
    write_scores(path, "BLEU", np.array([5]), np.array([0, 2]), statistics, compress="gz")
    assert read_bytes(path) == b"SCORES_TXT_BEGIN_0 5 2 2 BLEU\n7 9 \n8 9 \nSCORES_TXT_END_0\n"


def parsed(
    path: Path,
) -> tuple[list[bytes], NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Title, sentences, offsets and values of a file without sparse features."""
    title: list[bytes] = []
    sentences: list[int] = []
    counts: list[int] = []
    rows: list[list[float]] = []
    for line in read_lines(path):
        if b"_BEGIN_" in line:
            _, sentence, count, *title = line.split()
            sentences.append(int(sentence))
            counts.append(int(count))
        elif b"_END_" not in line:
            rows.append([float(token) for token in line.split()])
    offsets = np.cumsum([0, *counts])
    return title, np.array(sentences), offsets, np.array(rows, dtype=np.float32)


@pytest.mark.parametrize("name", ["first100", "run1"])
def test_recorded_features(multi30k: Path, tmp_path: Path, name: str) -> None:
    recorded = multi30k / "scores" / f"{name}.features.dat.gz"
    title, sentences, offsets, dense = parsed(recorded)
    names = [name.decode() for name in title[1:]]
    write_features(tmp_path / "mine", names, sentences, offsets, dense)
    assert (tmp_path / "mine").read_bytes() == read_bytes(recorded)


@pytest.mark.parametrize("name", ["run1", "first100.TER", "first100.CDER"])
def test_recorded_scores(multi30k: Path, tmp_path: Path, name: str) -> None:
    recorded = multi30k / "scores" / f"{name}.scores.dat.gz"
    title, sentences, offsets, statistics = parsed(recorded)
    write_scores(tmp_path / "mine", title[1].decode(), sentences, offsets, statistics)
    assert (tmp_path / "mine").read_bytes() == read_bytes(recorded)


def test_recorded_sparse_features_from_their_list(multi30k: Path, tmp_path: Path) -> None:
    """Sentences of which the extractor dropped no hypothesis as a duplicate come out the same."""
    block = read_nbest(multi30k / "sparse" / "run.best100.out.gz")
    sentences, starts = np.unique(block.sentence_ids, return_index=True)
    names = [f"{name}_{i}" for name, width in block.groups for i in range(width)]
    write_features(
        tmp_path / "mine",
        names,
        sentences,
        np.append(starts, len(block)),
        block.dense,
        SparseColumns(
            block.sparse_names, block.sparse_indptr, block.sparse_indices, block.sparse_data
        ),
    )
    mine = read_bytes(tmp_path / "mine").split(b"FEATURES_TXT_END_0\n")
    recorded = read_bytes(multi30k / "sparse" / "features.dat.gz").split(b"FEATURES_TXT_END_0\n")
    assert len(mine) == len(recorded)
    same = [a == b for a, b in zip(mine, recorded, strict=True)]
    whole = [
        len(a.splitlines()) == len(b.splitlines()) for a, b in zip(mine, recorded, strict=True)
    ]
    assert same == whole
    assert sum(whole) > 10
