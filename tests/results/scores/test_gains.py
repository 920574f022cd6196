"""Gains by the objective and by metrics that are only reported, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.nbest.files import read_nbest_blocks
from formats.references import read_references
from mosesplug.errors import UsageError
from mosesplug.learning.optimize import OptimizeResult, bind_optimizer, optimize
from mosesplug.metrics import metric
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.results.scores.gains import Gain, MetricGain, find_gaming, measure_gains
from mosesplug.results.scores.significance import approximate_randomization, paired_bootstrap
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationStart

SENTENCES, HYPOTHESES = 40, 6
WORDS = ["a", "b", "c", "d", "e", "f", "g"]


def learn_from(settings: LearningSettings) -> OptimizeResult:
    return optimize(settings, bind_optimizer(settings))


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list with features, and files of scores: ``good`` grows with ``lm``, ``bad`` falls."""
    path = tmp_path_factory.mktemp("gains")
    rng = np.random.default_rng(5)
    lines, good, bad, references = [], [], [], []
    for sentence in range(SENTENCES):
        references.append(" ".join(rng.choice(WORDS, 6)))
        for _ in range(HYPOTHESES):
            lm, tm = rng.normal(size=2)
            text = " ".join(rng.choice(WORDS, 6))
            lines.append(f"{sentence} ||| {text} ||| lm= {lm:.6f} tm= {tm:.6f} ||| 0")
            good.append(lm + 0.1 * rng.normal())
            bad.append(-lm)
    (path / "list").write_text("\n".join(lines) + "\n")
    (path / "refs").write_text("\n".join(references) + "\n")
    np.save(path / "good.npy", good)
    np.save(path / "bad.npy", bad)
    (path / "init").write_text("lm= 0.1\ntm= 0.9\n")
    return path


def learn(lists: Path, **values: object) -> OptimizeResult:
    given = {
        "nbest": [lists / "list"],
        "scores": [f"GOOD={lists}/good.npy", f"BAD={lists}/bad.npy"],
        "init": str(lists / "init"),
        **values,
    }
    return learn_from(make_learning_settings(given))


def choose(lists: Path, weights: np.ndarray) -> np.ndarray:
    """Return the rows of the 1-best hypotheses, by the text of the list."""
    features = [
        [float(word) for word in line.split("|||")[2].split() if "=" not in word]
        for line in (lists / "list").read_text().splitlines()
    ]
    scores = (np.float32(features) @ weights).reshape(SENTENCES, HYPOTHESES)
    return scores.argmax(axis=1) + HYPOTHESES * np.arange(SENTENCES)


def test_scores_that_are_not_optimized_are_watched(lists: Path) -> None:
    result = learn(lists)
    (gain,) = measure_gains(result)
    assert [each.metric for each in gain.metrics] == ["GOOD", "BAD"]
    assert [each.is_objective for each in gain.metrics] == [True, False]
    start, end = (
        choose(lists, weights)
        for weights in (np.array([0.1, 0.9]), result.learning.solution.weights)
    )
    for found, name in zip(gain.metrics, ("good", "bad"), strict=True):
        values = np.load(lists / f"{name}.npy")
        assert found.start == pytest.approx(values[start].mean(), abs=1e-12)
        assert found.end == pytest.approx(values[end].mean(), abs=1e-12)
        rows = [np.column_stack([values[each], np.ones(SENTENCES)]) for each in (start, end)]
        mean = OutsideMetric(found.metric)
        boot = paired_bootstrap(mean, rows[0], rows[1], 1000, np.random.default_rng(1))
        assert (found.p_bootstrap, found.interval) == (boot.p_value, (boot.low, boot.high))
        p = approximate_randomization(mean, rows[:1], rows[1:], 1000, np.random.default_rng(1))
        assert found.p_randomization == p


def test_watching_does_not_change_the_weights(lists: Path) -> None:
    alone = learn(lists, scores=[f"GOOD={lists}/good.npy"])
    beside = learn(lists, refs=lists / "refs", **{"report-metric": ["BLEU", "WER"]})
    assert alone.learning.solution.weights.tobytes() == beside.learning.solution.weights.tobytes()
    assert alone.data.signature == beside.data.signature
    words = learn(lists, scores=[], refs=lists / "refs", metric="BLEU")
    more = learn(lists, refs=lists / "refs", metric="BLEU")
    assert words.learning.solution.weights.tobytes() == more.learning.solution.weights.tobytes()
    assert more.data.problem.tuning_set.stats.dtype == np.int32
    assert words.data.signature == more.data.signature


def test_watched_metrics_of_texts_are_those_of_the_registry(lists: Path) -> None:
    result = learn(lists, refs=lists / "refs", **{"report-metric": ["WER"]})
    (gain,) = measure_gains(result)
    assert [each.metric for each in gain.metrics] == ["GOOD", "BAD", "WER"]
    texts = [line.split("|||")[1].split() for line in (lists / "list").read_text().splitlines()]
    references = [line.split() for line in (lists / "refs").read_text().splitlines()]
    rows = choose(lists, np.array([0.1, 0.9]))
    errors = sum(
        _distance(texts[row], reference) for row, reference in zip(rows, references, strict=True)
    )
    assert gain.metrics[2].is_error_rate
    assert gain.metrics[2].start == pytest.approx(errors / sum(map(len, references)))
    for each in gain.metrics:
        assert each.interval[0] < each.difference < each.interval[1]


def _distance(one: list[str], other: list[str]) -> int:
    """Return the edit distance (Wagner & Fischer 1974)."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, against in enumerate(other, start=1):
            found = min(row[j] + 1, row[j - 1] + 1, before + (word != against))
            before, row[j] = row[j], found
    return row[-1]


def test_gains_of_a_cross_validation_are_those_of_optimize(lists: Path) -> None:
    same = {"references": lists / "refs", "metric": "WER", "report_metrics": ["CER"], "threads": 1}
    fit = mosesplug.optimize(lists / "list", folds=4, **same)
    found = mosesplug.cross_validate(lists / "list", folds=4, **same)
    assert found.gains == fit.gains[-1:]
    assert [each.metric for each in found.gains[0].metrics] == ["WER", "CER"]
    objective = found.gains[0].objective
    assert objective.end == pytest.approx(1.0 - found.held_out)
    assert objective.start == pytest.approx(1.0 - found.start)
    assert "each with weights of the other folds" in repr(found)
    assert "each with weights of the other folds" in found._repr_html_()


def test_gains_on_folds_and_on_held_out_sentences(lists: Path) -> None:
    learned, folds = measure_gains(learn(lists, folds=4))
    assert (learned.data, learned.sentences) == ("learned from", SENTENCES)
    assert (folds.data, folds.sentences) == ("folds", SENTENCES)
    assert folds.objective.start == pytest.approx(learned.objective.start)
    validation = learn(lists, folds=4).learning.validation
    assert validation is not None
    assert folds.objective.end == pytest.approx(validation.held_out)

    result = learn(lists, **{"held-out": 0.25})
    learned, away = measure_gains(result)
    assert (learned.sentences, away.data, away.sentences) == (30, "held out", 10)
    assert away.objective.end == pytest.approx(result.learning.held_out)
    assert away.objective.start == pytest.approx(result.learning.start_held_out)

    result = learn(
        lists,
        **{
            "heldout-nbest": [lists / "list"],
            "heldout-scores": [f"GOOD={lists}/good.npy", f"BAD={lists}/bad.npy"],
        },
    )
    learned, away = measure_gains(result)
    assert (away.data, away.sentences) == ("held out", SENTENCES)
    assert [each.end for each in away.metrics] == [each.end for each in learned.metrics]


def test_nothing_to_report(lists: Path) -> None:
    assert measure_gains(learn(lists, scores=[f"GOOD={lists}/good.npy"])) == ()


def test_parts_of_a_sum_are_optimized_not_watched(lists: Path) -> None:
    result = learn(lists, metric="GOOD:0.5+BAD:0.5")
    assert result.data.watched_metrics == ()
    beside = learn(lists, metric="GOOD:0.5+BAD:0.5", **{"report-metric": ["BAD"]})
    assert [each.metric.name for each in beside.data.watched_metrics] == ["BAD"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["GOOD"], "--report-metric GOOD: it is the metric that is optimized"),
        (["WER", "WER"], "--report-metric WER is given twice"),
        (["NOSUCH"], "unknown metric 'NOSUCH'"),
        (["WER beta:3"], "unknown setting 'beta' of WER"),
    ],
)
def test_metrics_that_cannot_be_watched(lists: Path, names: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        learn(lists, refs=lists / "refs", **{"report-metric": names})


def test_a_watched_metric_needs_references(lists: Path) -> None:
    with pytest.raises(UsageError, match="which WER needs: use --refs FILE"):
        learn(lists, **{"report-metric": ["WER"]})


def test_settings_that_watched_metrics_share(lists: Path) -> None:
    values = {
        "metric": "BLEU",
        "metric-settings": "case:false,reflen:shortest",
        "report-metric": ["TER", "CHRF beta:3", "PER case:true", "WER:0.5+CER:0.5 blanks:remove"],
        "scores": [],
        "refs": lists / "refs",
    }
    watched = [one.metric for one in learn(lists, **values).data.watched_metrics]
    assert watched == [
        metric("TER", "case:false"),
        metric("CHRF", "beta:3,case:false"),
        metric("PER", "case:true"),
        metric("WER:0.5+CER:0.5", "blanks:remove,case:false"),
    ]


def _gain(objective: float, *watched: float) -> Gain:
    return Gain(
        "folds",
        5,
        tuple(
            MetricGain(f"M{n}", f"M{n}", n == 0, False, 0.5, 0.5 + change, (0.0, 0.1), 0.1, 0.1)
            for n, change in enumerate((objective, *watched))
        ),
    )


def test_an_objective_that_is_gamed() -> None:
    text = find_gaming([_gain(0.1, 0.1), _gain(0.1, -0.1, -0.2)])
    assert text is not None
    assert "M0 improves on sentences of other folds (0.5000 to 0.6000)" in text
    assert "M1 (0.5000 to 0.4000), M2 (0.5000 to 0.3000)" in text
    assert find_gaming([_gain(0.1, -0.1), _gain(0.1, 0.1, -0.2)]) is None
    assert find_gaming([_gain(-0.1, -0.1)]) is None
    assert find_gaming([_gain(0.1)]) is None
    assert find_gaming([]) is None


def test_gains_of_stored_lists(lists: Path, tmp_path: Path) -> None:
    """The lists of a run are scored by watched metrics from their stored texts."""
    bleu = metric("BLEU")
    prepared = bleu.prepare(read_references(lists / "refs"))
    with NBestStore.open(tmp_path / "store", writable=True) as store:
        store.add_iteration(
            1,
            read_nbest_blocks(lists / "list"),
            metric=bleu,
            references=prepared,
            n_sentences=SENTENCES,
            record=IterationStart(Weights((0.1, 0.9)), 1, {}, (), 0.0).as_record(),
        )
    values = {"from": tmp_path / "store", "metric": "BLEU", "report-metric": ["WER"]}
    with pytest.raises(UsageError, match="to report WER, use --refs FILE"):
        learn_from(make_learning_settings(values))
    result = learn_from(make_learning_settings({**values, "refs": lists / "refs"}))
    of_files = learn(
        lists, metric="BLEU", scores=[], refs=lists / "refs", **{"report-metric": ["WER"]}
    )
    assert measure_gains(result) == measure_gains(of_files)


def test_gains_of_the_python_api(lists: Path) -> None:
    fit = mosesplug.optimize(
        lists / "list",
        references=lists / "refs",
        scores={name.upper(): np.load(lists / f"{name}.npy") for name in ("good", "bad")},
        report_metrics=["WER"],
        initial=lists / "init",
    )
    assert fit.gains == measure_gains(
        learn(lists, refs=lists / "refs", **{"report-metric": ["WER"]})
    )
    assert any("every other metric gets worse" in each for each in fit.warnings) == (
        all(each.improvement < 0 for each in fit.gains[0].watched_metrics)
    )
