"""Merged extractor files against dictionaries filled row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.text import read_lines
from mosesplug.errors import DataError, UsageError
from mosesplug.moses_tools.extractor_files import DistinctBy, load_extractor_files

Row = tuple[tuple[int, int], frozenset[tuple[str, int]], tuple[int, int]]
"""Dense values, sparse features, statistics."""

NAMES = ("LM0_0", "TM0_0", "TM0_1")
ROWS: st.SearchStrategy[Row] = st.tuples(
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
    st.dictionaries(st.sampled_from("pqr"), st.integers(1, 2), max_size=2).map(
        lambda features: frozenset((f"X_{name}", value) for name, value in features.items())
    ),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
ITERATIONS = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.lists(ROWS, min_size=1, max_size=4)), min_size=1),
    min_size=1,
    max_size=3,
)


def write(folder: Path, number: int, blocks: list[tuple[int, list[Row]]]) -> tuple[Path, Path]:
    """One iteration's files; blocks as ``(sentence, rows)``, in any order."""
    rows = [row for _, block in blocks for row in block]
    offsets = np.cumsum([0, *(len(block) for _, block in blocks)])
    ids = np.array([sentence for sentence, _ in blocks])
    dense = np.array([(*row[0], number % 1) for row in rows], dtype=np.float32)
    features = [sorted(row[1]) for row in rows]
    names = sorted({name for row in features for name, _ in row})
    sparse = SparseColumns(
        names,
        np.cumsum([0, *map(len, features)]),
        np.array([names.index(name) for row in features for name, _ in row], dtype=np.int32),
        np.array([value for row in features for _, value in row], dtype=np.float32),
    )
    paths = folder / f"run{number}.features.dat", folder / f"run{number}.scores.dat"
    write_features(paths[0], NAMES, ids, offsets, dense, sparse)
    stats = np.array([row[2] for row in rows], dtype=np.int32)
    write_scores(paths[1], "BLEU", ids, offsets, stats)
    return paths


def read(files: list[tuple[Path, Path]], distinct_by: DistinctBy) -> dict[int, list[Row]]:
    """The merged rows by sentence, sentences in order."""
    merged = load_extractor_files(
        [features for features, _ in files],
        [scores for _, scores in files],
        distinct_by=distinct_by,
    )
    assert merged.metric == "BLEU"
    assert merged.names == NAMES
    lists = merged.tuning_set
    assert lists.space.groups == (("LM0", 1), ("TM0", 2))
    assert lists.stats.dtype == np.int32
    found: dict[int, list[Row]] = {}
    for i, sentence in enumerate(lists.sentence_ids.tolist()):
        found[sentence] = []
        for row in range(lists.offsets[i], lists.offsets[i + 1]):
            features: frozenset[tuple[str, int]] = frozenset()
            if lists.sparse is not None:
                part = slice(lists.sparse.indptr[row], lists.sparse.indptr[row + 1])
                features = frozenset(
                    (lists.space.sparse[column], int(value))
                    for column, value in zip(
                        lists.sparse.indices[part], lists.sparse.data[part], strict=True
                    )
                )
            a, b, _ = lists.dense[row].tolist()
            c, d = lists.stats[row].tolist()
            found[sentence].append(((a, b), features, (c, d)))
    return found


@given(ITERATIONS, st.sampled_from(["features and statistics", "features", "nothing"]))
def test_merged_by_sentence(
    tmp_path_factory: pytest.TempPathFactory,
    iterations: list[list[tuple[int, list[Row]]]],
    distinct_by: DistinctBy,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    files = [write(folder, number, blocks) for number, blocks in enumerate(iterations)]
    expected: dict[int, dict[object, Row]] = {}
    for blocks in iterations:
        for sentence, rows in blocks:
            kept = expected.setdefault(sentence, {})
            for row in rows:
                keys = {"features and statistics": row, "features": row[:2], "nothing": len(kept)}
                kept.setdefault(keys[distinct_by], row)
    found = read(files, distinct_by)
    assert list(found) == list(expected)
    assert found == {sentence: list(kept.values()) for sentence, kept in expected.items()}


def test_statistics_that_are_not_counts_are_rejected(tmp_path: Path) -> None:
    features, scores = write(tmp_path, 1, [(0, [((0, 1), frozenset(), (1, 2))])])
    write_scores(scores, "TER", np.array([0]), np.array([0, 1]), np.array([[0.5, 2]], np.float32))
    merged = load_extractor_files([features], [scores])
    assert merged.tuning_set.stats.tolist() == [[0.5, 2]]
    assert merged.tuning_set.stats.dtype == np.float32
    assert merged.tuning_set.sparse is None


def test_files_that_do_not_go_together(tmp_path: Path) -> None:
    row: Row = ((0, 1), frozenset(), (1, 2))
    one = write(tmp_path, 1, [(0, [row])])
    two = write(tmp_path, 2, [(0, [row, row])])
    other = write(tmp_path, 3, [(0, [row])])
    text = b"\n".join(read_lines(other[0])).replace(b"LM0", b"LM1") + b"\n"
    other[0].write_bytes(text)
    ter = tmp_path / "ter"
    write_scores(ter, "TER", np.array([0]), np.array([0, 1]), np.array([[1, 2]], np.int32))
    with pytest.raises(UsageError, match="1 feature files and 2 score files"):
        load_extractor_files([one[0]], [one[1], two[1]])
    with pytest.raises(UsageError, match="0 feature files"):
        load_extractor_files([], [])
    with pytest.raises(FormatError, match="differ from those of"):
        load_extractor_files([one[0]], [two[1]])
    with pytest.raises(DataError, match="have different features"):
        load_extractor_files([one[0], other[0]], [one[1], other[1]])
    with pytest.raises(DataError, match="of TER, but"):
        load_extractor_files([one[0], one[0]], [one[1], ter])


def test_recorded_lists(multi30k: Path) -> None:
    """Two iterations have as many different rows as their lines are different."""
    scores = multi30k / "scores"
    features = [scores / f"run{n}.features.dat.gz" for n in (1, 2)]
    statistics = [scores / f"run{n}.scores.dat.gz" for n in (1, 2)]
    merged = load_extractor_files(features, statistics)
    lines: set[tuple[bytes, bytes, bytes]] = set()
    for pair in zip(features, statistics, strict=True):
        sentence = b""
        for feature, score in zip(*map(read_lines, pair), strict=True):
            if feature.startswith(b"FEATURES"):
                sentence = feature.split()[1] if b"BEGIN" in feature else b""
            else:
                lines.add((sentence, feature, score))
    assert merged.tuning_set.n_hyps == len(lines)
    assert merged.hypotheses == 69868 + 71227
    assert merged.tuning_set.n_sentences == 1014
