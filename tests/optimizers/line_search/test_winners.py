"""Test which hypotheses a budget takes, against a choice of one hypothesis at a time."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.optimizers.line_search.winners import (
    choose_within_budget,
    find_winners,
    number_texts,
)
from mosesplug.testing.problems import Accuracy, tuning_set


@pytest.mark.parametrize("seed", range(5))
def test_a_budget_takes_texts_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [6, 0, 9, 1, 4]
    n_hyps = sum(sizes)
    lists = tuning_set(sizes, rng.normal(size=(n_hyps, 3)), np.zeros(n_hyps))
    owners = np.repeat(np.arange(len(sizes)), sizes)
    words = [b"%d" % word for word in rng.integers(5, size=n_hyps)]
    texts = number_texts(owners, words)
    vectors = [rng.normal(size=3) for _ in range(2)]
    free_texts = rng.choice(texts, size=2)
    is_free = np.isin(texts, free_texts)
    needed, ranks = rng.random(n_hyps) < 0.2, rng.permutation(n_hyps)
    budgets = np.array([2, 3, 1, 1, 0])
    choice = choose_within_budget(
        lists,
        Accuracy(),
        vectors,
        needed=needed,
        ranks=ranks,
        texts=texts,
        is_free=is_free,
        budgets=budgets,
    )
    wins = find_winners(lists, Accuracy(), vectors)
    assert choice.wins.tolist() == wins.tolist()
    expected = {(owners[row], words[row]) for row in np.flatnonzero(is_free)}
    for sentence, budget in enumerate(budgets.tolist()):
        rows = np.flatnonzero(owners == sentence).tolist()
        rows.sort(key=lambda row: (not needed[row], not wins[row], ranks[row]))
        for row in rows:
            if (sentence, words[row]) not in expected and budget:
                expected.add((sentence, words[row]))
                budget -= 1
    keys = zip(owners.tolist(), words, strict=True)
    assert choice.rows.tolist() == [key in expected for key in keys]
