"""Metrics that a command computes: the same as scores from a file, and what each text costs."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import DataError, UsageError
from mosesplug.learning.data import read_data, read_held_out_lists
from mosesplug.learning.optimize import OptimizeResult, bind_optimizer, optimize, validate
from mosesplug.optimizers import Solution, corpus_score
from mosesplug.results.scores.gains import measure_gains
from mosesplug.settings.learning import make_learning_settings

SCORER = Path(__file__).parents[2] / "decoders" / "stand_in_scorer.py"
COMMAND = f"SHARE={sys.executable} -IS {SCORER} log"
N_SENTENCES, N_HYPOTHESES = 9, 6


@pytest.fixture(autouse=True)
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Random lists with references, and a file with what the command would answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOSESPLUG_CACHE_DIR", str(tmp_path / "cache"))
    rng = np.random.default_rng(5)
    lines, scores, references = [], [], []
    for sentence in range(N_SENTENCES):
        reference = rng.integers(20, size=8).tolist()
        references.append(" ".join(f"w{word}" for word in reference))
        for _ in range(N_HYPOTHESES):
            words = rng.integers(20, size=int(rng.integers(3, 9))).tolist()
            a, b = rng.normal(size=2).round(4)
            text = " ".join(f"w{word}" for word in words)
            lines.append(f"{sentence} ||| {text} ||| A= {a} B= {b} ||| 0\n")
            scores.append(sum(word in reference for word in words) / len(words))
    Path("lists").write_text("".join(lines))
    Path("shares").write_text("".join(f"{score!r}\n" for score in scores))
    Path("refs").write_text("".join(f"{line}\n" for line in references))
    Path("source").write_text("".join(f"source {k}\n" for k in range(N_SENTENCES)))
    Path("other").write_text("".join(f"other {k}\n" for k in range(N_SENTENCES)))
    return tmp_path


def solution(result: OptimizeResult) -> Solution:
    return result.learning.solution


def signature(result: OptimizeResult) -> str:
    return result.data.signature


def learn(**values: Any) -> OptimizeResult:
    settings = make_learning_settings({"nbest": ["lists"], **({"refs": "refs"} | values)})
    return optimize(settings, bind_optimizer(settings))


@pytest.mark.parametrize("metric", ["SHARE", "SHARE:0.7+BLEU:0.3"])
@pytest.mark.parametrize("algorithm", ["mert", "kbmira"])
def test_weights_are_those_of_a_file(metric: str, algorithm: str) -> None:
    shared = {"metric": metric, "algorithm": algorithm, "report-metric": ["TER"]}
    by_file = learn(scores=["SHARE=shares"], **shared)
    by_command = learn(**{"score-command": [COMMAND]}, **shared)
    assert solution(by_command).weights.tobytes() == solution(by_file).weights.tobytes()
    assert solution(by_command).score == solution(by_file).score


@pytest.mark.parametrize("algorithm", ["mert", "kbmira"])
def test_weights_are_those_of_the_metric_whose_statistics_it_writes(algorithm: str) -> None:
    built_in = learn(algorithm=algorithm, metric="BLEU")
    counted = learn(**{"algorithm": algorithm, "score-command": [f"OWN={COMMAND[6:]} bleu:BLEU"]})
    for result in (built_in, counted):
        assert solution(result).score == solution(built_in).score
        assert solution(result).weights.tobytes() == solution(built_in).weights.tobytes()
    lists, other = (result.data.problem.tuning_set for result in (built_in, counted))
    assert lists.stats.dtype == other.stats.dtype
    assert lists.stats.tobytes() == other.stats.tobytes()
    assert signature(counted) == "OWN|outside:BLEU|version:scorer 1|nrefs:1"


def test_reported_metrics_are_scored_once() -> None:
    by_command = learn(**{"score-command": [COMMAND], "metric": "BLEU", "source": "source"})
    assert signature(by_command).startswith("BLEU|")
    assert [watched.metric.name for watched in by_command.data.watched_metrics] == ["SHARE"]
    count = len(Path("log").read_text().splitlines())
    assert count <= N_SENTENCES * N_HYPOTHESES
    learn(**{"score-command": [COMMAND], "source": "source"})
    assert len(Path("log").read_text().splitlines()) == count


def test_held_out_lists_have_their_own_source() -> None:
    values: dict[str, Any] = {
        "nbest": ["lists"], "refs": "refs", "heldout-nbest": ["lists"], "heldout-refs": "refs",
        "score-command": [COMMAND], "source": "source",
    }  # fmt: skip
    settings = make_learning_settings(values)
    data = read_data(settings)
    with pytest.raises(UsageError, match=r"source of the held-out lists.*--heldout-source"):
        read_held_out_lists(settings, data)
    settings = make_learning_settings({**values, "heldout-source": "other"})
    held_out = read_held_out_lists(settings, data)
    assert held_out is not None
    one, other = data.problem.tuning_set.stats, held_out.problem.tuning_set.stats
    assert one.tobytes() == other.tobytes()
    sources = [line.split("\t")[1].split()[0] for line in Path("log").read_text().splitlines()]
    assert set(sources) == {"source", "other"}


def test_no_references_are_needed() -> None:
    settings = make_learning_settings({"nbest": ["lists"], "score-command": [COMMAND]})
    result = optimize(settings, bind_optimizer(settings))
    assert signature(result) == "SHARE|outside:mean|version:scorer 1|nrefs:0"


def test_error_rates() -> None:
    rate = learn(**{"score-command": [f"{COMMAND} ratio:error"]})
    assert signature(rate) == "SHARE|outside:ratio|rate:yes|version:scorer 1|nrefs:1"
    assert 0 < solution(rate).score < 1


def test_references_of_other_order_are_rejected_with_a_source() -> None:
    """Lines of the source have no ids that could say which sentence they belong to."""
    texts = Path("lists").read_text().splitlines()
    Path("lists").write_text("".join(f"utt-{line}\n" for line in texts))
    keyed = [f"utt-{k} {line}\n" for k, line in enumerate(Path("refs").read_text().splitlines())]
    Path("refs").write_text("".join(keyed))
    learn(source="source", score_command=[COMMAND])
    Path("refs").write_text("".join(reversed(keyed)))
    with pytest.raises(DataError, match=r"another order than in the lists, so that .* of source"):
        learn(source="source", score_command=[COMMAND])


def test_settings_are_checked() -> None:
    for text in ("SHARE", "=x", "SHARE=", "SHARE=:error"):
        with pytest.raises(UsageError, match=r"--score-command.*write NAME=COMMAND"):
            learn(**{"score-command": [text]})
    with pytest.raises(UsageError, match="No closing quotation"):
        learn(**{"score-command": ["SHARE='x"]})
    with pytest.raises(UsageError, match="names SHARE twice"):
        learn(**{"score-command": [COMMAND, COMMAND]})
    with pytest.raises(UsageError, match="both --scores and --score-command name SHARE"):
        learn(scores=["SHARE=shares"], **{"score-command": [COMMAND]})
    with pytest.raises(UsageError, match="scores texts, which --graphs does not have"):
        make_learning_settings({"graphs": ["."], "refs": "refs", "score-command": [COMMAND]})
    with pytest.raises(UsageError, match="requires"):
        learn(**{"score-batch": 3})
    for mark, meant in (("BLUE", "BLEU"), ("ter[x:1]:error", "TER"), ("eror", "error")):
        with pytest.raises(DataError, match=rf"ready\. The command ends with :.*mean {meant}\?\n"):
            learn(**{"score-command": [f"SHARE={sys.executable} -IS no-such.py:{mark}"]})
    with pytest.raises(DataError, match=r"before it was ready\n"):
        learn(**{"score-command": ["SHARE=false image:latest"]})
    Path("refs").write_text("a\nb\nc\n")
    with pytest.raises(DataError, match="reads 9 source sentences, but the references have 3"):
        learn(**{"score-command": [COMMAND], "source": "source"})


def test_the_example_of_comet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COMET's interface, with a model that needs no weights and prints as the real one does."""
    (tmp_path / "comet.py").write_text(
        "from types import SimpleNamespace\n"
        "class Model:\n"
        "    def predict(self, samples, batch_size, gpus):\n"
        "        print('Predicting')\n"
        "        assert all(set(sample) == {'src', 'mt', 'ref'} for sample in samples)\n"
        "        return SimpleNamespace(scores=[len(sample['mt']) / 100 for sample in samples])\n"
        "def download_model(name):\n"
        "    print('Downloading', name)\n"
        "    return name\n"
        "def load_from_checkpoint(path):\n"
        "    return Model()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    example = Path(__file__).parents[3] / "docs" / "examples" / "comet_command.py"
    command = f"COMET={sys.executable} {example}"
    settings = {"nbest": ["lists"], "refs": "refs", "source": "source", "score-batch": 10}
    data = read_data(make_learning_settings({**settings, "score-command": [command]}))
    assert data.signature == "COMET|outside:mean|version:Unbabel/wmt22-comet-da|nrefs:1"
    texts = [line.split(" ||| ")[1] for line in Path("lists").read_text().splitlines()]
    expected = [[len(text) / 100, 1.0] for text in texts]
    assert sorted(data.problem.tuning_set.stats.tolist()) == sorted(expected)


@pytest.mark.parametrize("metric", ["SHARE", "SHARE:0.7+BLEU:0.3"])
@pytest.mark.parametrize("algorithm", ["mert", "kbmira"])
def test_a_budget_of_whole_lists_changes_nothing(metric: str, algorithm: str) -> None:
    shared = {"metric": metric, "algorithm": algorithm, "report-metric": ["TER"]}
    plain = learn(scores=["SHARE=shares"], **shared)
    within = learn(**{"score-command": [COMMAND], "score-budget": N_HYPOTHESES}, **shared)
    assert solution(within).weights.tobytes() == solution(plain).weights.tobytes()
    assert solution(within).score == solution(plain).score
    tables = (result.data.problem.tuning_set for result in (plain, within))
    one, other = (lists.stats.tobytes() + lists.dense.tobytes() for lists in tables)
    assert one == other
    watched = (result.data.watched_metrics[-1].statistics.tobytes() for result in (plain, within))
    assert len(set(watched)) == 1


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_first_bests_of_the_result_are_scored(size: int) -> None:
    within = learn(**{"score-command": [COMMAND], "score-budget": size, "algorithm": "kbmira"})
    asked = [line.split("\t") for line in Path("log").read_text().splitlines()]
    counts = Counter(sentence for sentence, *_ in asked)
    assert set(counts.values()) <= set(range(1, size + 1))
    whole = learn(scores=["SHARE=shares"]).data.problem
    best = whole.tuning_set.first_best(solution(within).weights)
    texts = [line.split(" ||| ")[1] for line in Path("lists").read_text().splitlines()]
    known = {text for _, _, text in asked}
    unscored = sum(texts[row] not in known for row in best.tolist())
    (note,) = [note for note in within.notes if "score budget" in note]
    n_scored = within.data.problem.tuning_set.n_hyps
    assert note.startswith(f"{n_scored} of {N_SENTENCES * N_HYPOTHESES} hypotheses (")
    cost = within.budget
    assert cost is not None
    counts_of_cost = (cost.hypotheses, cost.scored, cost.texts, cost.unscored_first_bests)
    assert counts_of_cost == (whole.tuning_set.n_hyps, n_scored, len(asked), unscored)
    assert 0 < cost.scored_winners <= cost.winners
    if unscored:
        assert f"in {unscored} sentence" in note
    else:
        # What is reported is what decoding all lists gives.
        assert note.endswith("the new weights choose scored hypotheses only")
        assert solution(within).score == pytest.approx(
            corpus_score(whole, solution(within).weights), abs=1e-12
        )
    learn(**{"score-command": [COMMAND], "score-budget": size, "algorithm": "kbmira"})
    assert len(Path("log").read_text().splitlines()) == len(asked)


@pytest.mark.parametrize("select", ["median", "average"])
def test_a_budget_for_several_runs(select: str) -> None:
    shared = {"runs": 2, "select": select, "algorithm": "pro"}
    plain = learn(scores=["SHARE=shares"], **shared)
    within = learn(**{"score-command": [COMMAND], "score-budget": N_HYPOTHESES}, **shared)
    assert solution(within).weights.tobytes() == solution(plain).weights.tobytes()
    few = learn(**{"score-command": [COMMAND], "score-budget": 4}, **shared)
    assert few.budget is not None
    assert few.budget.texts <= 4 * N_SENTENCES
    assert few.budget.unscored_first_bests == 0
    # All 1-bests are scored, those of a run that was not chosen, too: its score is right.
    for run in few.learning.runs:
        total = corpus_score(plain.data.problem, run.solution.weights)
        assert run.solution.score == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("runs", [None, 2])
def test_a_budget_scores_what_weights_choose_of_held_out_lists(runs: int | None) -> None:
    """The scores are those of all held-out hypotheses; most of these are not scored."""
    shared: dict[str, Any] = {"algorithm": "pro", "runs": runs, "report-metric": ["TER"]}
    shared |= {"heldout-nbest": ["lists"], "heldout-refs": "refs"}
    source = {"source": "source", "heldout-source": "other"}
    command = {"score-command": [COMMAND]}
    plain = learn(scores=["SHARE=shares"], **shared, **{"heldout-scores": ["SHARE=shares"]})
    within = learn(**command, **source, **shared, **{"score-budget": N_HYPOTHESES})
    assert solution(within).weights.tobytes() == solution(plain).weights.tobytes()
    for name in ("held_out", "start_held_out"):
        scores = [getattr(result.learning, name) for result in (plain, within)]
        assert scores[1] == pytest.approx(scores[0], abs=1e-12)
    ends = [run.held_out for run in plain.learning.runs]
    assert [run.held_out for run in within.learning.runs] == pytest.approx(ends, abs=1e-12)
    asked = [line.split("\t")[1] for line in Path("log").read_text().splitlines()]
    n_held_out = sum(text.startswith("other") for text in asked)
    assert N_SENTENCES <= n_held_out <= (2 + (runs or 0)) * N_SENTENCES
    note = next(note for note in within.notes if "held-out hypotheses" in note)
    assert f"({n_held_out} texts) are scored" in note
    # Tests of significance, on the sentences held out, and of the other metric.
    one, other = (measure_gains(result)[1] for result in (plain, within))
    assert (one.data, one.sentences) == (other.data, other.sentences) == ("held out", N_SENTENCES)
    for own, same in zip(one.metrics, other.metrics, strict=True):
        assert (own.start, own.end) == pytest.approx((same.start, same.end), abs=1e-12)
        assert own.p_randomization == same.p_randomization


def test_a_budget_is_checked() -> None:
    values: dict[str, Any] = {"score-command": [COMMAND], "score-budget": 2}
    with pytest.raises(UsageError, match="BLEU: name a command's metric in --metric"):
        learn(**values, metric="BLEU")
    settings = make_learning_settings({"nbest": ["lists"], "refs": "refs", **values})
    with pytest.raises(UsageError, match="not a cross-validation: leave it out"):
        validate(settings, 3)
    for other in ({"folds": 3}, {"scores": ["X=shares"]}, {"length-exponent": "0:1"}):
        with pytest.raises(UsageError, match="exclude each other"):
            learn(**values, **other)
