"""Extraction against Moses' own procedure, told in plain loops, and against recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.extractor.data import FeatureData, ScoreData
from formats.nbest.files import read_nbest
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.moses_tools.extraction import (
    find_occurrences,
    remove_duplicates,
    score_n_best_list,
    write_extracted,
)
from mosesplug.moses_tools.extractor_files import Iteration, merge
from mosesplug.moses_tools.scoring import Scorer


def iteration(blocks: list[tuple[int, list[tuple[int, int]]]]) -> Iteration:
    """Sentences with rows of one feature and one statistic, and a sparse feature a row."""
    rows = [row for _, block in blocks for row in block]
    n = len(rows)
    ids = np.array([sentence for sentence, _ in blocks])
    offsets = np.cumsum([0, *(len(block) for _, block in blocks)])
    values = np.array(rows, dtype=np.float32).reshape(n, 2)
    features = FeatureData(
        *(ids, offsets, ("A_0",), values[:, :1].copy(), ("X_1", "X_2")),
        np.arange(n + 1),
        np.arange(n, dtype=np.int32) % 2,
        np.arange(1, n + 1, dtype=np.float32),
    )
    return Iteration(features, ScoreData("BLEU", ids, offsets, values[:, 1:].copy()), "f", "s")


def moses_order(rows: list[tuple[int, int]]) -> list[int]:
    """Which rows Moses' removal leaves: a duplicate changes places with the end of the list."""
    order = list(range(len(rows)))
    end = len(rows) - 1
    k = 0
    while k <= end:
        if any(rows[order[k]] == rows[order[j]] for j in range(k)):
            order[k], order[end] = order[end], order[k]
            end -= 1
        else:
            k += 1
    return order[: end + 1]


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=9)


@given(st.lists(st.tuples(st.integers(0, 3), ROWS), min_size=1, max_size=5))
def test_duplicates_leave_in_moses_order(blocks: list[tuple[int, list[tuple[int, int]]]]) -> None:
    n_rows = sum(len(block) for _, block in blocks)
    iterations = [iteration(blocks)]
    merged = merge(iterations)
    occurrences = find_occurrences(merged, iterations, np.arange(n_rows))
    found = merged.take(*remove_duplicates(merged, *occurrences)).tuning_set
    assert found.sparse is not None
    at = 0
    for i, sentence in enumerate(found.sentence_ids.tolist()):
        rows = [row for owner, block in blocks if owner == sentence for row in block]
        numbers = [  # the sparse value of a row is its number in the file, from 1
            sum(len(block) for _, block in blocks[:b]) + r + 1
            for b, (owner, block) in enumerate(blocks)
            if owner == sentence
            for r in range(len(block))
        ]
        left = moses_order(rows)
        mine = slice(int(found.offsets[i]), int(found.offsets[i + 1]))
        values = np.column_stack([found.dense[mine], found.stats[mine]]).tolist()
        assert values == [list(rows[k]) for k in left]
        assert found.sparse.data[mine].tolist() == [numbers[k] for k in left]
        at += len(left)
    assert len(found.dense) == len(found.stats) == len(found.sparse.indptr) - 1 == at


def test_a_row_that_occurs_again_is_a_duplicate() -> None:
    """Rows of three lists, of which the second repeats a row of the first, and the third both."""
    iterations = [iteration([(4, [(1, 0), (2, 0)]), (6, [(1, 0)])]), iteration([(4, [(3, 0)])])]
    merged = merge(iterations)
    kept, offsets = find_occurrences(merged, iterations, np.array([0, 1, 2, 1, 3, 0, 3, 2]))
    assert kept.tolist() == [0, 1, 1, 2, 0, 2, 3, 3]
    assert offsets.tolist() == [0, 6, 8]
    found = merged.take(*remove_duplicates(merged, kept, offsets)).tuning_set
    rows = [(1, 0), (2, 0), (2, 0), (3, 0), (1, 0), (3, 0)]
    assert found.dense[:3, 0].tolist() == [rows[k][0] for k in moses_order(rows)]
    assert (found.dense[3:].tolist(), found.offsets.tolist()) == ([[1]], [0, 3, 4])


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def statistics(scorer: Scorer, *lines: bytes) -> list[list[int]]:
    ids = np.arange(len(lines))
    found: list[list[int]] = scorer.statistics(HypothesisRanges.of_lines(lines, ids)).tolist()
    return found


def test_factors_and_filter(tmp_path: Path) -> None:
    """The filter comes first, then the factors; both change references and hypotheses."""
    reference = put(tmp_path / "ref", "the|DT house|NN\n")
    plain = Scorer.load("PER", "", [reference])
    assert statistics(plain, b"the|X house|NN") == [[1, 2, 2]]
    words = Scorer.load("PER", "", [reference], factors="0")
    assert statistics(words, b"the|X house|NN") == [[2, 2, 2]]
    tags = Scorer.load("PER", "", [reference], factors="1", filter_command="sed s/X/DT/")
    assert statistics(tags, b"a|X a|NN") == [[2, 2, 2]]
    with pytest.raises(DataError, match="factor 2 is selected"):
        Scorer.load("PER", "", [reference], factors="2")


def test_each_metric_may_have_its_own_text(tmp_path: Path) -> None:
    reference = put(tmp_path / "ref", "the|DT house|NN\n")
    both = Scorer.load("PER,WER", "", [reference], factors="0,1", filter_command="cat,sed s/X/DT/")
    assert statistics(both, b"the|X home|NN") == [[1, 2, 2, 0, 2]]
    assert both.metric.name == "PER,WER"
    with pytest.raises(UsageError, match="has 1 parts, but the metric has 2"):
        Scorer.load("PER,WER", "", [reference], factors="0")


def test_a_list_with_other_sentences_than_the_references(tmp_path: Path) -> None:
    scorer = Scorer.load("BLEU", "", [put(tmp_path / "ref", "a b\n")])
    good = put(tmp_path / "good", "0 ||| a b ||| A= 1 ||| 1\n")
    assert score_n_best_list(read_nbest(good), scorer).scores.stats.tolist() == [
        [2, 2, 1, 1, 0, 0, 0, 0, 2]
    ]
    bad = put(tmp_path / "bad", "0 ||| a b ||| A= 1 ||| 1\n1 ||| a ||| A= 1 ||| 1\n")
    with pytest.raises(FormatError, match=r"no reference for sentence 1.*have 1 lines") as caught:
        score_n_best_list(read_nbest(bad), scorer)
    assert caught.value.line == 2


def test_binary_files_hold_no_sparse_features(tmp_path: Path) -> None:
    merged = merge([iteration([(0, [(1, 2)])])])
    with pytest.raises(DataError, match="sparse features such as X_1"):
        write_extracted(merged, tmp_path / "f", tmp_path / "s", binary=True)
    assert list(tmp_path.iterdir()) == []
