"""Every optimizer that learns from search graphs, in the loop."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu

from mosesplug.optimizers import algorithm, algorithms
from mosesplug.settings.decoding import GraphSettings
from mosesplug.tuning import tune
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_result
from tests.tuning.conftest import ToySystem, make_toy
from tests.tuning.forests import toy_decoder
from tests.tuning.graphs.forest_runs import open_store

pytestmark = pytest.mark.usefixtures("decoder_in_process")

LEARNERS = sorted(name for name, each in algorithms().items() if each.graphs)
FEW = {"mert": {"restarts": 1, "polish": 0}, "kbmira": {"epochs": 5}, "mira": {}}


@pytest.mark.parametrize("name", LEARNERS)
def test_raises_the_score(tmp_path: Path, name: str) -> None:
    options = FEW.get(name, {} if algorithm(name).learner is None else {"epochs": 8})
    toy = make_toy(tmp_path, 6)
    made = toy.configuration(
        flags="-sparse",
        decoding={"graphs": GraphSettings()},
        optimization={"algorithm": name, "options": options},
        maximum_iterations=1,
    )
    assert tune(made).uses_graphs
    with open_store(made.working_directory) as store:
        record = store.iterations()[0]
    found = read_result(record)
    assert found.optimum > record.first_best_score
    assert found.optimum == pytest.approx(_bleu(toy, found.weights), abs=1e-6)
    has_sparse = any(word.startswith("wt_") for word in found.weights.sparse)
    assert has_sparse == algorithm(name).tunes_sparse


def _bleu(toy: ToySystem, weights: Weights) -> float:
    """Return BLEU of the best hypotheses; the toy system's graphs hold them all."""

    def score(hypothesis: tuple[dict[str, list[float]], dict[str, int]]) -> float:
        dense, sparse = hypothesis
        values = (value for name, _ in toy_decoder().GROUPS for value in dense[name])
        total = sum(w * v for w, v in zip(weights.dense, values, strict=True))
        return total + sum(weights.sparse.get(name, 0.0) * n for name, n in sparse.items())

    translations = []
    for sentence in (toy.directory / "input").read_text().splitlines():
        found = toy_decoder().hypotheses(sentence)
        translations.append(max(found, key=lambda text: score(found[text])))
    references = [(toy.directory / f"reference{n}").read_text().splitlines() for n in (0, 1)]
    return sacrebleu.corpus_bleu(translations, references, tokenize="none", force=True).score / 100
