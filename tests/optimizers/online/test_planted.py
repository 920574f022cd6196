"""Planted sparse weights are found again, by every gradient learner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.learning.lists.merging import load_lists
from mosesplug.metrics import metric
from mosesplug.metrics.bleu.sentence import sentence_bleu_lin_och
from mosesplug.optimizers.online.descent import (
    AdagradOptions,
    PegasosOptions,
    SgdOptions,
    adagrad_learner,
    pegasos_learner,
    sgd_learner,
)
from mosesplug.optimizers.online.dual_averaging import RdaOptions, rda_learner
from mosesplug.optimizers.online.epochs import Plan, StoredSource, run_epoch
from mosesplug.optimizers.online.learner import Learner
from tests.benchmarks.synthetic_sparse import Planted, plant, rank_correlation, write_lists
from tests.optimizers.problems import Accuracy


@pytest.fixture(scope="module")
def planted() -> Planted:
    return plant(n_sentences=400, n_hyps=50, n_features=1000, n_active=20)


@pytest.mark.parametrize(
    ("learner_of", "options", "n_epochs"),
    [
        (adagrad_learner, AdagradOptions(), 1),
        (adagrad_learner, AdagradOptions(loss="squared"), 1),
        (sgd_learner, SgdOptions(rate=0.2), 2),
        (pegasos_learner, PegasosOptions(), 4),
        (rda_learner, RdaOptions(), 2),
        (rda_learner, RdaOptions(rate=0.02, scaling="adagrad"), 1),
    ],
    ids=["adagrad", "adagrad squared", "sgd", "pegasos", "rda", "rda adagrad"],
)
def test_weights_of_frequent_features(
    planted: Planted, learner_of: Callable[[Any], Learner], options: Any, n_epochs: int
) -> None:
    learner = learner_of(options)
    active = np.ones(len(planted.weights), dtype=np.bool_)
    plan = Plan(seed=1, batch=options.batch, metric=Accuracy(), active=active)
    state = learner.init(np.zeros(len(active)))
    for epoch in range(1, n_epochs + 1):
        state = run_epoch(learner, state, StoredSource(planted.tuning_set), plan, epoch).state
    often = planted.seen >= 20
    assert often.sum() > 150
    weights = learner.weights(state)
    assert rank_correlation(weights[often], planted.weights[often]) > 0.9


def test_written_lists_hold_the_same_set(tmp_path: Path) -> None:
    planted = plant(n_sentences=4, n_hyps=30, n_features=50, n_active=6, seed=3)
    made = planted.tuning_set
    bleu = metric("BLEU", "case:true")
    read = load_lists(
        [write_lists(planted, tmp_path)[0]], tmp_path / "planted.ref", bleu
    ).tuning_set
    np.testing.assert_array_equal(read.dense, made.dense)
    columns = [made.space.columns[name] for name in read.space.names]
    weights = np.random.default_rng(4).standard_normal(len(made.space))
    np.testing.assert_allclose(read.model_scores(weights[columns]), made.model_scores(weights))
    worth = made.stats[:, 0]
    for start, end in zip(made.offsets[:-1], made.offsets[1:], strict=True):
        order = np.argsort(worth[start:end])
        assert (np.diff(sentence_bleu_lin_och(read.stats[start:end])[order]) >= 0.0).all()
