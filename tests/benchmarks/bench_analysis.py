"""The analysis of three systems on 10,000 sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mosesplug.results.analysis.analysis import analyze_systems, measure_metric, read_systems
from mosesplug.results.scores.comparison import System
from mosesplug.results.scores.scoring import prepare_metrics

N_SENTENCES = 10_000
ROUNDS = {"rounds": 3, "iterations": 1, "warmup_rounds": 1}


@pytest.fixture(scope="module")
def texts() -> list[list[bytes]]:
    """A reference, and three translations that have 60 to 70 % of its words."""
    rng = np.random.default_rng(1)
    words = [b"w%d" % number for number in range(30_000)]
    reference = [np.minimum(rng.zipf(1.3, rng.integers(5, 45)), 29_999) for _ in range(N_SENTENCES)]
    translations = [
        [np.where(rng.random(len(line)) < share, line, rng.permutation(line)) for line in reference]
        for share in (0.6, 0.65, 0.7)
    ]
    return [
        [b" ".join(words[word] for word in line) for line in text]
        for text in (reference, *translations)
    ]


@pytest.mark.parametrize("n_references", [1, 2])
def test_analysis(benchmark: Any, texts: list[list[bytes]], n_references: int) -> None:
    """Reading statistics and texts, then everything that the analysis shows."""
    references = [texts[0], texts[1]][:n_references]
    systems = [System(f"system{place}", (text,)) for place, text in enumerate(texts[1:])]
    (metric,) = prepare_metrics(["BLEU"], references)

    def analyze() -> int:
        found = analyze_systems(
            read_systems(systems, N_SENTENCES), references, [measure_metric(systems, metric)]
        )
        return found.n_sentences

    assert benchmark.pedantic(analyze, **ROUNDS) == N_SENTENCES
