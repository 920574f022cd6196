"""Costs per source word: lengths from a file, a sequence or a run's input, and without any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.errors import DataError, UsageError
from mosesplug.optimizers import algorithm
from mosesplug.settings.sentences.source import count_source_words
from tests.optimizers.problems import planted_bleu

PLAIN = {"epochs": 2, "averaging": "last", "cost": "lin-och"}
COSTS_AS_MARGINS = {"margin": "cost"}
LEARNERS = {
    "mira": {},
    "rm-pa": {},
    "rm-cp": {},
    "arow": {"update": "closed-form"},
    "oro": COSTS_AS_MARGINS,
    "o-oro": COSTS_AS_MARGINS,
    "rank-mira": COSTS_AS_MARGINS,
    "sgd": {"loss": "expected-error"},
}
BATCH_LEARNERS = ("margin", "cutting-plane", "rampion", "mse")


def test_tags_of_markup_are_no_words() -> None:
    lines = [b'das <np translation="a house"> kleine Haus </np>', b"a < b", b""]
    assert count_source_words(lines).tolist() == [3, 3, 0]


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_of_costs_uses_the_lengths(name: str) -> None:
    """Sentences of one word have the costs of sentences; longer ones have other costs."""
    problem, _ = planted_bleu(5, n_sentences=8)
    row, start = algorithm(name), np.full(len(problem.tuning_set.space), 0.1)

    def learn(unit: str, words: int) -> list[float]:
        own = replace(problem, source_lengths=np.full(8, words, dtype=np.int64))
        options = row.options(**PLAIN, **LEARNERS[name], cost_unit=unit)
        return row.optimize(own, start, np.random.default_rng(1), options).weights.tolist()

    assert learn("source", 1) == learn("sentence", 9)
    assert learn("source", 9) != learn("source", 1)


@pytest.mark.parametrize("cost", ["lin-och", "corpus", "pseudo-corpus"])
@pytest.mark.parametrize("name", BATCH_LEARNERS)
def test_batch_learners_use_the_lengths(name: str, cost: str) -> None:
    problem, _ = planted_bleu(5, n_sentences=8)
    row, start = algorithm(name), np.full(len(problem.tuning_set.space), 0.1)

    def learn(unit: str, words: list[int]) -> list[float]:
        own = replace(problem, source_lengths=np.array(words, dtype=np.int64))
        options = row.options(cost=cost, cost_unit=unit)
        return row.optimize(own, start, np.random.default_rng(1), options).weights.tolist()

    sentences = learn("sentence", [9] * 8)
    assert learn("source", [1] * 8) == sentences
    assert learn("source", [1, 9] * 4) != sentences
    assert learn("reference", [9] * 8) != sentences
    with pytest.raises(UsageError, match=f"{name}: cost_unit=source needs the source sentences"):
        row.bind(row.options(cost_unit="source")).require_source(is_known=False)


def test_gains_by_hand() -> None:
    """BLEU+1 times the words of the source; an empty source counts as one word."""
    problem, _ = planted_bleu(5, n_sentences=3)
    words = np.array([2, 0, 5])
    own = replace(problem, source_lengths=words)
    start, rng = np.full(len(problem.tuning_set.space), 0.1), np.random.default_rng(1)
    options = algorithm("rampion").options(cost_unit="source")
    owners = np.repeat([2.0, 1.0, 5.0], np.diff(problem.tuning_set.offsets))
    scores = problem.metric.sentence_scores(problem.tuning_set.stats.astype(float), "lin-och")
    np.testing.assert_array_equal(options.gains(own, start, rng), owners * scores)
    np.testing.assert_array_equal(options.sizes(own), [2.0, 1.0, 5.0])


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    lines = []
    for sentence in range(4):
        for wrong in range(5):
            words = ["a", "b", "c", "d", f"e{sentence}"][wrong:] + ["x"] * wrong
            values = f"A= {-wrong + rng.normal():.3f} B= {rng.normal():.3f}"
            lines.append(f"{sentence} ||| {' '.join(words)} ||| {values} ||| 0\n")
    Path("lists").write_text("".join(lines))
    Path("refs").write_text("".join(f"a b c d e{number}\n" for number in range(4)))
    Path("source").write_text("v w x y z\n" * 4)
    return tmp_path


def test_file_and_sequence_give_the_same_weights(lists: Path) -> None:
    reading = {"references": "refs", "algorithm": "rm-pa", "options": {"cost_unit": "source"}}
    by_file = mosesplug.optimize("lists", source="source", **reading)
    by_texts = mosesplug.optimize("lists", source=["v w x y z"] * 4, **reading)
    assert dict(by_file.weights) == dict(by_texts.weights)
    sentence = mosesplug.optimize("lists", references="refs", algorithm="rm-pa")
    assert dict(sentence.weights) != dict(by_file.weights)


def test_missing_and_short_sources_are_refused(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reading = {"references": "refs", "algorithm": "mira", "options": {"cost_unit": "source"}}
    with pytest.raises(UsageError, match="mira: cost_unit=source needs the source sentences"):
        mosesplug.optimize("lists", **reading)
    with pytest.raises(DataError, match="source has 3 sentences, but the data have sentence 3"):
        mosesplug.optimize("lists", source=["a b"] * 3, **reading)
    command = "optimize --nbest lists --refs refs --algorithm mira --option cost_unit=source"
    with pytest.raises(SystemExit) as end:
        main(command.split())
    assert end.value.code == 2
    assert "--source FILE" in capsys.readouterr().err
