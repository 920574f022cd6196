"""Weights of sentences in a run: its scores count them, and it resumes with the same ones only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mosesplug.errors import DataError, UsageError
from mosesplug.events import Note
from mosesplug.results.views.configuration import describe_outcome
from mosesplug.results.views.run import open_run
from mosesplug.store import NBestStore
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any

WEIGHTS = [0.0, 2.0, 0.5] * 4


def make(toy: Toy, weights: list[float] | None = None, **settings: Any) -> Any:
    optimization = {"algorithm": "kbmira", "options": {}}
    path = None
    if weights is not None:
        path = toy.directory / "weights"
        path.write_text("".join(f"{weight}\n" for weight in weights))
    return toy.configuration(**{"sentence_weights": path, "optimization": optimization, **settings})


def test_scores_of_a_run_are_weighted(toy: Toy, log: Log) -> None:
    configuration = make(toy, WEIGHTS)
    result = tune(configuration, log)
    metric = configuration.metric
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        for record in store.iterations():
            rows = store.first_best_statistics(record.iteration)
            assert record.first_best_score == pytest.approx(
                float(metric.score(np.array(WEIGHTS) @ rows))
            )
        number = len(store.iterations())
        lists = store.batch(np.arange(12), range(1, number + 1)).weigh(np.array(WEIGHTS))
        vector = result.iterations[-1].weights.vector(lists.space, {})
        totals = lists.weighted_stats[lists.first_best(vector)].sum(axis=0)
        # The optimizer works in single precision.
        assert result.iterations[-1].optimum == pytest.approx(float(metric.score(totals)), abs=1e-6)
    with open_run(toy.directory / "work") as run:
        assert describe_outcome(run).warnings[-1].startswith("This run weighted its sentences.")


def test_weights_of_1_are_the_same_as_none(toy: Toy, log: Log) -> None:
    plain = tune(make(toy), log)
    weighted = tune(make(toy, [1.0] * 12, existing="overwrite"), log)
    assert [each.weights for each in weighted.iterations] == [
        each.weights for each in plain.iterations
    ]


def test_a_run_continues_with_the_same_weights_only(toy: Toy, log: Log) -> None:
    first = make(toy, WEIGHTS, maximum_iterations=1)
    tune(first, log)
    more = {"maximum_iterations": 2, "existing": "continue"}
    for others in (None, [1.0] * 12):
        with pytest.raises(UsageError, match="a run with other weights of sentences"):
            tune(make(toy, others, **more), log)
    continued = tune(make(toy, WEIGHTS, **more), log)
    assert len(continued.iterations) == 2
    assert any(
        "sentence weights from 0.5 to 2 (4 sentences with" in line
        for line in (note.text for note in log.of(Note))
    )


def test_wrong_numbers_of_weights_are_found_before_decoding(toy: Toy, log: Log) -> None:
    with pytest.raises(DataError, match="has 3 weights for 12 source sentences"):
        tune(make(toy, [1.0, 2.0, 3.0]), log)
    assert not (toy.directory / "work" / "run1.best15.out.gz").exists()
