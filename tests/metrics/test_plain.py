"""Counts and scores in plain Python are those of the kernels, byte for byte."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.metrics import chrf, plain
from mosesplug.metrics.bleu import corpus as bleu
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.chrf import Chrf
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter.sacrebleu import TerSacrebleu

WORD = st.sampled_from(
    [b"a", b"b", b"A", b"cd", b"\xc3\xa4", b"\xed\xa0\x80", b"\xf0\x90", b"\t", b""]
)
LINE = st.lists(WORD, max_size=9).map(b" ".join)
SENTENCES = st.lists(st.tuples(LINE, LINE, LINE), min_size=1, max_size=6)
METRICS = [
    Bleu(),
    Bleu(lowercase=True, reference_length="average"),
    Chrf(beta=2.0),
    Chrf(lowercase=True, smooth=1.0),
    TerSacrebleu(),
    TerSacrebleu(lowercase=True),
]


@contextmanager
def in_plain_python() -> Iterator[None]:
    """Let metrics do everything without kernels."""
    with pytest.MonkeyPatch.context() as monkeypatch, plain.kernels_only(False):
        monkeypatch.setattr(bleu, "_allowance", plain.Allowance(math.inf))
        monkeypatch.setattr(chrf, "_allowance", plain.Allowance(math.inf))
        yield


def count(
    metric: Metric, hypotheses: Sequence[bytes], references: Sequence[Sequence[bytes]]
) -> NDArray[np.int32]:
    ends = np.cumsum([len(line) for line in hypotheses])
    starts = np.concatenate([[0], ends[:-1]])
    buffer = np.frombuffer(b"".join(hypotheses), dtype=np.uint8)
    prepared = metric.prepare(references)
    return metric.statistics(prepared, np.arange(len(hypotheses)), buffer, starts, ends)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.signature())
@given(sentences=SENTENCES)
@example(sentences=[(bytes(range(256)), bytes(range(255, 0, -1)), b"a"), (b"  a  a ", b"", b" a")])
def test_statistics_and_scores(metric: Metric, sentences: list[tuple[bytes, bytes, bytes]]) -> None:
    hypotheses, *references = zip(*sentences, strict=True)
    for n_references in (1, 2):
        check_both_ways(metric, hypotheses, references[:n_references])


def check_both_ways(
    metric: Metric, hypotheses: Sequence[bytes], references: Sequence[Sequence[bytes]]
) -> None:
    """Check that kernels and plain Python count and score the same."""
    found, scores = [], []
    for way in (nullcontext, in_plain_python):
        with way():
            statistics = count(metric, hypotheses, references)
            scores.append(metric.score(np.cumsum(statistics, axis=0)).tobytes())
            if isinstance(metric, Bleu):
                scores.extend(
                    metric.sentence_scores(statistics.astype(np.float64), smoothing).tobytes()
                    for smoothing in ("lin-och", "moses", "nakov")
                )
        found.append((statistics.dtype, statistics.tolist()))
    assert found[0] == found[1]
    assert scores[: len(scores) // 2] == scores[len(scores) // 2 :]


@pytest.mark.parametrize(
    ("rows", "width"), [(bleu.score_rows, 9), (lambda totals: Chrf().score(totals), 20)]
)
def test_scores_of_many_sums(
    rows: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    width: int,
) -> None:
    """Exponentials, roots and quotients of ordinary counts are the same to the last bit."""
    totals = np.random.default_rng(3).integers(1, 20_000, (3000, width)).astype(np.float64)
    kernels = rows(totals)
    with in_plain_python():
        assert rows(totals).tobytes() == kernels.tobytes()


def test_an_allowance_ends_for_good() -> None:
    allowance = plain.Allowance(10)
    assert not allowance.take(1)
    with plain.kernels_only(False):
        assert [allowance.take(amount) for amount in (4, 6, 1, 0)] == [True, True, False, False]
        assert not plain.Allowance(5).take(6)
    assert chrf.HYPOTHESES == plain.HYPOTHESES > 0
