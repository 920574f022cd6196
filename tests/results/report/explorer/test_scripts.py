"""Test the page's scripts against Python, in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.metrics import metric
from mosesplug.metrics.error_rates import display_score
from mosesplug.metrics.outside import RATIO, OutsideMetric
from mosesplug.metrics.protocol import score_sentences
from mosesplug.metrics.registry import built_in_names
from mosesplug.metrics.registry import find_formula as find_counted
from mosesplug.results.report.explorer import page
from mosesplug.results.report.explorer.formulas import find_formula
from mosesplug.results.report.explorer.run_data import gather_explorer
from mosesplug.results.views.run import StoredRun, open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.store import NBestStore
from mosesplug.tuning.workdir.stores import find_store
from tests.results.report.explorer.explored import make_explored_run
from tests.results.runs import gather_report
from tests.waiting import LIMIT

SCRIPTS = Path(page.__file__).parent / "scripts"

PROGRAM = """
import { readFileSync } from "node:fs";
const scripts = process.argv[1];
const load = (name) => import(`file://${scripts}/${name}.js`);
const names = ["metrics", "data", "model_scores", "scorer", "session", "format", "words", "state"];
const [metrics, data, models, scorer, sessions, format, words, state, conditions] =
  await Promise.all([...names, "conditions"].map(load));
const task = JSON.parse(readFileSync(0, "utf8"));
const answer = { scores: [], sentences: [], lengths: [], runs: [] };
for (const { formula, rows } of task.metrics) {
  answer.scores.push(rows.map((row) => metrics.scoreTotals(formula, row)));
  answer.lengths.push(metrics.findLengths(formula, rows[0]));
  answer.sentences.push(rows.map((row) => metrics.scoreSentence(formula, row)));
}
for (const { document, weights, probes } of task.runs) {
  const lists = await data.RunLists.read(document);
  const run = new sessions.RunSession(document, lists);
  const result = run.pointWeights(run.points.length - 1);
  const decisions = weights.map(({ dense, factor }) => {
    const own = { ...result, dense, factor };
    const { choice, score } = run.decide(own);
    return { choice: [...choice], score: format.formatScore(score) };
  });
  const surfaces = probes.map((at, feature) => {
    const { weights, scores, choice, totals } = run.present;
    const slopes = feature < lists.features.length ? lists.features[feature]
      : models.computeSparseShares(lists, weights);
    const value = feature < lists.features.length ? weights.dense[feature] : weights.factor;
    const line = { slopes, scores, choice, totals, at: value, low: -3, high: 3 };
    const { ends, scores: heights } = scorer.computeSurface(lists, line);
    return at.map((x) => heights[ends.findLastIndex((end, k) => end <= x && k < heights.length)]);
  });
  answer.runs.push({ decisions, surfaces, texts: lists.texts(0), points: run.points.map((_, k) =>
    format.formatScore(run.decide(run.pointWeights(k)).score)) });
}
answer.fixed = task.fixed.map(([value, digits]) => format.formatFixed(value, digits));
answer.words = words.compareWords("a c d", "a b c").map(({ kind, word }) => `${kind} ${word}`);
const runs = [{ weights: [0.1, -2], base: 0 }, { point: 2, weights: [1], factor: -1 }];
const kept = { tab: "sentences", search: "a&b=c", filter: "score<0.2 loss>=1",
  sort: "-loss", page: 2, sentence: 3, hypothesis: 5, against: 1, changed: true, other: 1, runs };
answer.state = [kept, state.decodeState(`#${state.encodeState(kept)}`, 2)];
answer.broken = state.decodeState("#weights=1,x&run=-1&sentence=1e9&factor=Infinity&odd=1", 1);
const rows = [{ score: 0.2, length: 9 }, { score: NaN, length: 0 }, { score: -1, length: 30 }];
answer.conditions = task.conditions.map((text) => {
  const { test, error } = conditions.parseConditions(text, ["score", "length"]);
  return [rows.map(test), error];
});
const long = ["b", "d"].map((word) => `a ${Array(5000).fill(word).join(" ")} c`);
answer.long = ["added", "missing", "same"].map((kind) =>
  words.compareWords(...long).filter((change) => change.kind === kind).length);
console.log(JSON.stringify(answer));
"""

CONDITIONS = (
    "",
    "score<=0.2",
    "Length >= 9, score>-1.5",
    "score<0.2 length=30",
    "score<",
    "words>3",
)

METRICS = [
    *(metric(name) for name in built_in_names()),
    *(metric("CHRF", "beta:2,smooth:0.5"), metric("CHRF", "words:2,beta:2")),
    metric("METEOR", "alpha:0.85,beta:0.2,gamma:0.6,exact:0.9,stem:0.6"),
    *(metric("BLEU:0.7+TER:0.2+WER:0.1"), metric("CHRF:0.5+METEOR:0.5", "words:2")),
    *(OutsideMetric("COMET"), OutsideMetric("ERR", RATIO, True, (0, 1))),
    OutsideMetric("OURS", find_counted("BLEU"), columns=tuple(range(9))),
]


def draw_rows(rng: np.random.Generator, n_statistics: int) -> NDArray[np.float64]:
    """Statistics as sums have them, and those of empty sentences."""
    rows = rng.integers(0, 60, size=(40, n_statistics)) * rng.integers(0, 2, size=(40, 1))
    rows[::3] = np.sort(rows[::3], axis=1)[:, ::-1]
    return rows.astype(np.float64)


def decode(run: StoredRun, vector: NDArray[np.float64]) -> tuple[list[int], float]:
    """The choice of weights in the merged lists, and its score."""
    merged = run.store.tuning_set()
    rows = merged.first_best(vector)
    stats = merged.stats[rows].astype(np.float64)
    if (weights := run.store.sentence_weights) is not None:
        stats *= weights[np.diff(merged.offsets) > 0, None]
    totals = stats.sum(axis=0)
    return rows.tolist(), display_score(run.signature, float(run.metric.score(totals)))


def make_task(run: StoredRun, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the scripts are to compute for a run, and what Python does."""
    report = gather_report(run, ParallelText())
    document = gather_explorer(run, ParallelText(), report, "run", None).document
    result = run.vector
    weights = [(rng.integers(-2, 3, size=3) / 4, float(rng.integers(-2, 3))) for _ in range(8)]
    # Weights that move one by one: equal sums of tenths differ in their last bits.
    dense, factor = weights[-1]
    for step in range(60):
        if step % 4 < 3:
            dense = dense.copy()
            dense[step % 4] = rng.integers(-3, 4) / 10
        else:
            factor = float(rng.integers(-3, 4) / 10)
        weights.append((dense, factor))
    choices = [decode(run, np.append(dense, factor * result[3:])) for dense, factor in weights]
    # Model scores are exact there, so that ties are ties, and no two hypotheses cross.
    places = (2 * rng.integers(-1400, 1400, size=(4, 8)) + 1) / 1024
    surfaces = []
    for feature, own in enumerate(places):
        moved = np.repeat(result[None], len(own), axis=0)
        if feature < 3:
            moved[:, feature] = own
        else:  # the factor of the sparse features
            moved[:, 3:] *= own[:, None]
        surfaces.append([decode(run, vector)[1] for vector in moved])
    asked = {
        "document": document,
        "weights": [{"dense": dense.tolist(), "factor": factor} for dense, factor in weights],
        "probes": places.tolist(),
    }
    expected = {
        "choices": [choice for choice, _ in choices],
        "scores": [f"{score:.4f}" for _, score in choices],
        "surfaces": surfaces,
        "points": [f"{point['score']:.4f}" for point in document["points"]],
    }
    return asked, expected


def draw_numbers(rng: np.random.Generator) -> list[tuple[float, int]]:
    """Numbers to print, among them ties between two decimals."""
    ties = [(number / 32, 4) for number in range(-40, 41)] + [(0.5, 0), (1.5, 0), (2.5, 0)]
    return ties + [(value, 4) for value in rng.normal(size=50).tolist()] + [(-1e-5, 4), (0.0, 4)]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Python computes, and under ``js`` what the scripts do."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js to run the page's scripts in")
    rng = np.random.default_rng(5)
    rows = [draw_rows(rng, one.n_statistics) for one in METRICS]
    asked, expected = [], []
    for name in ("BLEU", "WER", "BLEU,TER"):
        directory = tmp_path_factory.mktemp("run") / "work"
        path = make_explored_run(directory, name=name)
        if name == "WER":
            with NBestStore.open(find_store(path), writable=True) as store:
                store.keep_sentence_weights(rng.integers(0, 5, size=store.n_sentences) / 2)
        with open_run(path) as run:
            one, other = make_task(run, rng)
        asked.append(one)
        expected.append(other)
    numbers = draw_numbers(rng)
    formulas = [
        {"formula": find_formula(one), "rows": own.tolist()}
        for one, own in zip(METRICS, rows, strict=True)
    ]
    done = subprocess.run(
        [node, "--input-type=module", "--eval", PROGRAM, str(SCRIPTS)],
        input=json.dumps(
            {"metrics": formulas, "runs": asked, "fixed": numbers, "conditions": CONDITIONS}
        ),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    return {"rows": rows, "runs": expected, "fixed": numbers, "js": answers}


def test_scores_of_all_metrics(answer: dict[str, Any]) -> None:
    js = answer["js"]
    for one, rows, scores, sentences in zip(
        METRICS, answer["rows"], js["scores"], js["sentences"], strict=True
    ):
        np.testing.assert_allclose(scores, one.score(rows), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(sentences, score_sentences(one, rows), rtol=1e-14, atol=1e-14)


def test_lengths_of_output_and_references(answer: dict[str, Any]) -> None:
    for one, rows, lengths in zip(METRICS, answer["rows"], answer["js"]["lengths"], strict=True):
        named = dict(zip(one.statistics_names, rows[0], strict=True))
        length = named.get("length", named.get("total1"))
        if length is not None and "reference_length" in named:
            assert lengths == [length, named["reference_length"]]


def test_choices_and_corpus_scores_with_ties(answer: dict[str, Any]) -> None:
    for expected, found in zip(answer["runs"], answer["js"]["runs"], strict=True):
        choices = [decision["choice"] for decision in found["decisions"]]
        # The list of the last sentence is empty.
        assert {choice.pop() for choice in choices} == {-1}
        assert choices == expected["choices"]
        assert [decision["score"] for decision in found["decisions"]] == expected["scores"]
        assert found["points"] == expected["points"]


def test_error_surfaces_are_those_of_decoding(answer: dict[str, Any]) -> None:
    for expected, found in zip(answer["runs"], answer["js"]["runs"], strict=True):
        np.testing.assert_allclose(found["surfaces"], expected["surfaces"], atol=1e-12)


def test_texts_have_no_control_characters(answer: dict[str, Any]) -> None:
    texts = answer["js"]["runs"][0]["texts"]
    assert texts[3] == "the \\x1b[31m red \\u202e house \ufffd is old"


def test_numbers_are_those_of_python(answer: dict[str, Any]) -> None:
    assert answer["js"]["fixed"] == [f"{value:.{digits}f}" for value, digits in answer["fixed"]]


def test_differences_of_words(answer: dict[str, Any]) -> None:
    assert answer["js"]["words"] == ["same a", "missing b", "same c", "added d"]
    assert answer["js"]["long"] == [5000, 5000, 2]


def test_conditions(answer: dict[str, Any]) -> None:
    tests, errors = zip(*answer["js"]["conditions"], strict=True)
    assert tests[:4] == (
        [True, True, True],
        [True, False, True],
        [True, False, True],
        [False, False, True],
    )
    # What is not valid is explained, and accepts all.
    assert tests[4:] == ([True, True, True], [True, True, True])
    assert errors[:4] == (None,) * 4
    assert [error.split(". ")[0] for error in errors[4:]] == [
        "Not a condition: score<",
        "Not a condition: words>3",
    ]


def test_state_survives_the_address(answer: dict[str, Any]) -> None:
    kept, found = answer["js"]["state"]
    assert kept == found
    assert answer["js"]["broken"] == {"runs": [{}]}


def test_types_of_scripts() -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("there is no TypeScript compiler to check the types of the page's scripts")
    options = (
        *("--allowJs", "--checkJs", "--noEmit", "--strict", "--noUnusedLocals"),
        *("--target", "es2023", "--module", "es2022", "--moduleResolution", "bundler"),
        *("--lib", "es2023,dom,dom.iterable"),
    )
    command = [compiler, *options, *map(str, sorted(SCRIPTS.glob("*.js")))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout
