"""Reading, scoring and storing one n-best list, together and apart."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.nbest.files import read_nbest, read_nbest_blocks
from formats.references import read_references
from mosesplug.metrics import metric
from mosesplug.store import NBestStore
from tests.benchmarks.conftest import Workload

ROUNDS = {"rounds": 7, "iterations": 1, "warmup_rounds": 1}


@pytest.mark.parametrize("threads", [1, 2])
def test_read_score_store(benchmark: Any, workload: Workload, tmp_path: Path, threads: int) -> None:
    """The whole of what an iteration does with its list."""
    bleu = metric("BLEU", "case:true")
    lines = read_references(workload.references)
    prepared = bleu.prepare(lines)
    fresh = itertools.count()

    def ingest() -> int:
        with NBestStore.open(tmp_path / str(next(fresh)), writable=True) as store:
            report = store.add_iteration(
                1,
                read_nbest_blocks(workload.lists[0]),
                metric=bleu,
                references=prepared,
                n_sentences=len(lines[0]),
                record={},
                threads=threads,
            )
        return report.hypotheses

    assert benchmark.pedantic(ingest, **ROUNDS) > 0


def test_read(benchmark: Any, workload: Workload) -> None:
    """Parsing alone, gunzip included."""
    assert len(benchmark.pedantic(read_nbest, (workload.lists[0],), **ROUNDS)) > 0


@pytest.mark.parametrize("threads", [1, 2])
def test_score(benchmark: Any, workload: Workload, threads: int) -> None:
    """BLEU statistics alone."""
    bleu = metric("BLEU", "case:true")
    prepared = bleu.prepare(read_references(workload.references))
    read = read_nbest(workload.lists[0])
    arguments = (prepared, read.sentence_ids, read.buffer, read.text_starts, read.text_ends)
    stats = benchmark.pedantic(bleu.statistics, arguments, {"threads": threads}, **ROUNDS)
    assert np.all(stats >= 0)


def test_merge_seven_lists(benchmark: Any, workload: Workload, tmp_path: Path) -> None:
    """The merged view of seven iterations."""
    bleu = metric("BLEU", "case:true")
    lines = read_references(workload.references)
    prepared = bleu.prepare(lines)
    with NBestStore.open(tmp_path / "seven", writable=True) as store:
        for number, path in enumerate(workload.lists, start=1):
            store.add_iteration(
                number,
                read_nbest_blocks(path),
                metric=bleu,
                references=prepared,
                n_sentences=len(lines[0]),
                record={},
                threads=2,
            )
        assert benchmark.pedantic(store.tuning_set, **ROUNDS).n_hyps > 0
