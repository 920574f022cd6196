"""Which features matter: influence, and the score that is lost without each one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mosesplug.results.views.importance import Importance, measure_importance
from mosesplug.results.views.run import open_run
from mosesplug.tuning.weights import Weights
from tests.results.runs import REFERENCE, make_run
from tests.store.toys import Hypothesis

# LM0 prefers the reference, TM0 is constant in each list. S_same repeats LM0, S_bad misleads.
LISTS = [
    [
        each
        for sentence, reference in enumerate(REFERENCE)
        for each in (
            Hypothesis(sentence, b"x " * 6, (0.0, sentence), (("S_bad", 1.0),)),
            Hypothesis(sentence, reference, (2.0, sentence), (("S_same", 2.0),)),
        )
    ]
]


def measure(directory: Path, weights: Weights, top: int = 5) -> Importance:
    make_run(directory, lists=LISTS)
    with open_run(directory) as run:
        *_, found = measure_importance(run, weights, top=top)
    return found


def test_losses_with_weights_kept_and_learned_again(tmp_path: Path) -> None:
    found = measure(tmp_path, Weights((0.75, 0.25)))
    assert (found.score, found.learned_score, found.metric) == (1.0, 1.0, "BLEU")
    lm, tm = found.features
    assert (lm.feature, lm.weight, lm.spread, lm.influence) == ("LM0_0", 0.75, 1.0, 0.75)
    assert (tm.feature, tm.spread, tm.influence) == ("TM0_0", 0.0, 0.0)
    # Without LM0 both hypotheses are equal, and the first is chosen.
    assert (lm.kept_loss, lm.learned_loss) == (1.0, 1.0)
    assert (tm.kept_loss, tm.learned_loss) == (0.0, 0.0)


def test_sparse_features_together_and_one_by_one(tmp_path: Path) -> None:
    found = measure(tmp_path, Weights((0.1, 0.9), {"S_same": 1.0, "S_bad": 3.0}))
    rows = {each.feature: each for each in found.features}
    assert list(rows) == ["S_bad", "S_same", "(2 sparse features)", "LM0_0", "TM0_0"]
    spreads = [(each.spread, each.influence) for each in found.features]
    # Together, the sparse features add 3 and 2 to the scores in each list.
    expected = [(0.5, 1.5), (1.0, 1.0), (0.5, 0.5), (1.0, 0.1), (0.0, 0.0)]
    assert spreads == [pytest.approx(each) for each in expected]
    # The misleading feature wins: the score is better without it.
    assert found.score == 0.0
    assert rows["S_bad"].kept_loss == -1.0
    assert rows["S_same"].kept_loss == 0.0
    assert rows["(2 sparse features)"].kept_loss == -1.0
    # MERT finds a weight of LM0 that outweighs it, with or without sparse features.
    assert found.learned_score == 1.0
    assert {each.learned_loss for each in found.features if each.feature != "LM0_0"} == {0.0}
    assert rows["LM0_0"].learned_loss == 1.0
    assert found.untried == 0


def test_only_the_largest_sparse_features_are_tried(tmp_path: Path) -> None:
    found = measure(tmp_path, Weights((0.1, 0.9), {"S_same": 1.0, "S_bad": 3.0}), top=1)
    names = [each.feature for each in found.features]
    assert names == ["S_bad", "(2 sparse features)", "LM0_0", "TM0_0"]
    assert found.untried == 1
    assert np.isfinite([each.kept_loss for each in found.features]).all()
