"""When a run ends: weights or scores that stand still."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics import metric
from mosesplug.settings.build import make_plan
from mosesplug.settings.defaults import fill_defaults
from mosesplug.tuning import tune
from mosesplug.tuning.stopping import estimate_noise, find_last_gain

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any

BLEU = metric("BLEU")
ERROR_RATE = metric("PER")


def statistics(seed: int, sentences: int = 40) -> NDArray[np.int32]:
    """BLEU statistics of random sentences: matches and n-grams of each order, reference length."""
    rng = np.random.default_rng(seed)
    totals = rng.integers(8, 20, sentences)
    columns = []
    for order in range(4):
        columns += [rng.integers(1, totals - order), totals - order]
    return np.stack([*columns, totals + 1], axis=1).astype(np.int32)


def test_noise_is_the_spread_of_differences_without_one_sentence() -> None:
    first, second = statistics(1), statistics(2)
    rest = [np.arange(40) != left_out for left_out in range(40)]
    differences = [
        float(BLEU.score(second[kept].sum(axis=0)) - BLEU.score(first[kept].sum(axis=0)))
        for kept in rest
    ]
    mean = sum(differences) / 40
    variance = 39 / 40 * sum((each - mean) ** 2 for each in differences)
    assert estimate_noise(BLEU, first, second) == pytest.approx(variance**0.5, rel=1e-9)


def test_equal_translations_have_no_noise() -> None:
    assert estimate_noise(BLEU, statistics(1), statistics(1)) == 0.0
    assert estimate_noise(BLEU, statistics(1, 1), statistics(2, 1)) == 0.0


def per(errors: list[int]) -> NDArray[np.int32]:
    """Statistics of an error rate over sentences of ten words."""
    width = ERROR_RATE.n_statistics
    found = np.zeros((len(errors), width), dtype=np.int32)
    found[:, 0] = 10 - np.array(errors)
    found[:, 1:] = 10
    return found


@pytest.mark.parametrize(
    ("decoded", "expected"),
    [
        ([[5] * 16], 0),
        ([[5] * 16, [5] * 16], 0),
        ([[5] * 16, [4] * 16], 1),  # every sentence gains the same: no noise
        ([[5] * 16, [6] * 16, [4] * 16, [5] * 16], 2),
        # Two sentences gain and one loses, which may be chance.
        ([[5] * 16, [4, 4, 6] + [5] * 13], 0),
        # A slow rise counts when it has added up.
        ([[5] * 16, [4, 4, 6] + [5] * 13, [4] * 4 + [5] * 12], 2),
    ],
)
def test_a_gain_exceeds_the_noise(decoded: list[list[int]], expected: int) -> None:
    rows = [per(errors) for errors in decoded]
    scores = [float(ERROR_RATE.score(each.sum(axis=0))) for each in rows]
    assert find_last_gain(ERROR_RATE, scores, lambda position: rows[position]) == expected


def test_a_run_ends_when_decodings_score_no_higher(toy: Toy) -> None:
    settings = {"minimum_change": 0.0, "stop_after": 2}
    result = tune(toy.configuration(maximum_iterations=12, **settings))
    scores = [iteration.first_best_score for iteration in result.iterations]
    last = len(scores) - 2
    assert last < 10
    assert result.reason == (
        f"the last 2 decodings scored no higher than that of iteration {last}, beyond the noise"
    )
    again = toy.configuration(
        maximum_iterations=len(scores) + 1, minimum_change=0.0, existing="continue"
    )
    assert len(tune(again).iterations) == len(scores) + 1


def test_tune_stops_by_the_score_and_the_script_does_not() -> None:
    assert fill_defaults({})["stop-after"] == 3
    assert fill_defaults({"stop-after": 0})["stop-after"] == 0
    assert "stop-after" not in fill_defaults({"online": True})
    assert "stop-after" not in fill_defaults({"patience": 2})


def test_epochs_do_not_end_by_the_score() -> None:
    needed = dict.fromkeys(("input", "refs", "decoder", "config", "working-dir"), "x")
    with pytest.raises(UsageError, match="--stop-after and --online exclude each other"):
        make_plan(needed | {"stop-after": 3, "online": True})
