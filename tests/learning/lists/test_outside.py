"""Scores from outside: read with lists, optimized, and equal to sums computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mosesplug
from formats.errors import FormatError
from mosesplug.errors import DataError, MosesplugError, StoreError, UsageError
from mosesplug.learning.lists.merging import NO_REFERENCES, load_lists
from mosesplug.learning.lists.outside import find_metric_of, make_outside_metrics
from mosesplug.learning.optimize import OptimizeResult, bind_optimizer, optimize
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.outside import MEAN, RATIO
from mosesplug.optimizers import algorithms
from mosesplug.results.choices.oracle_lists import open_oracle_lists, rank_lists
from mosesplug.results.choices.oracles import find_oracle
from mosesplug.results.views.importing import IterationSource, import_lists
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.scores.files import ScoreSource, parse_score_sources
from mosesplug.store import NBestStore

N_SENTENCES, N_HYPOTHESES = 9, 6
IDS = np.repeat(np.arange(N_SENTENCES), N_HYPOTHESES)
SHORT: dict[str, dict[str, object]] = {
    "mert": {"restarts": 2},
    "pro+mert": {"restarts": 2},
    "pso": {"particles": 20},
}


def learn_from(settings: LearningSettings) -> OptimizeResult:
    return optimize(settings, bind_optimizer(settings))


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Random lists with two features and references, and scores of their hypotheses as text."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(len(IDS), 2)).round(4)
    texts = [" ".join(f"w{w}" for w in rng.integers(9, size=3)) for _ in IDS]
    comet = (features @ [0.1, -0.05] + rng.normal(size=len(IDS)) * 0.1).round(5)
    words = rng.integers(3, 9, size=len(IDS))
    errors = np.clip(np.round(words * (0.5 - 1.5 * comet)), 0, None).astype(np.int64)
    rows = list(zip(IDS.tolist(), texts, features.tolist(), comet.tolist(), strict=True))
    (tmp_path / "lists").write_text(
        "".join(f"{i} ||| {text} ||| A= {a} B= {b} ||| 0\n" for i, text, (a, b), _ in rows)
    )
    (tmp_path / "comet").write_text("".join(f"{value}\n" for value in comet))
    (tmp_path / "named").write_text("".join(f"{i} ||| {t} ||| {c}\n" for i, t, _, c in rows))
    (tmp_path / "counts").write_text(
        "".join(f"{e} {w}\n" for e, w in zip(errors.tolist(), words.tolist(), strict=True))
    )
    (tmp_path / "refs").write_text("".join(f"w{i} w1 w2\n" for i in range(N_SENTENCES)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name: str) -> NDArray[np.float64]:
    return np.loadtxt(name)


def learn(**values: Any) -> OptimizeResult:
    values = {"nbest": ["lists"], "threads": 1} | values
    return learn_from(make_learning_settings(values))


def choose(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the row of the 1-best hypothesis of each sentence, from the file alone."""
    (rows,) = choose_at(weights[np.newaxis])
    return np.asarray(rows)


def choose_at(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of the 1-best hypotheses at each point, ``[n_points, n_sentences]``."""
    features = [
        [float(word) for word in line.split(" ||| ")[2].split() if "=" not in word]
        for line in Path("lists").read_text().splitlines()
    ]
    scores = points @ np.array(features, dtype=np.float32).astype(np.float64).T
    best = scores.reshape(len(points), N_SENTENCES, -1).argmax(axis=2)
    return np.asarray(np.arange(0, len(IDS), N_HYPOTHESES) + best)


def value(name: str, rows: NDArray[np.int64]) -> float:
    """Return the corpus score of the rows of a file of scores, computed by hand."""
    chosen = read(name)[rows]
    if chosen.ndim == 1:
        return sum(chosen.tolist()) / len(rows)
    return 1 - sum(chosen[:, 0].tolist()) / sum(chosen[:, 1].tolist())


SCORES = {"comet": "COMET=comet", "counts": "ERRORS=counts:error"}


@pytest.mark.parametrize("name", list(SCORES))
def test_mert_reaches_the_best_point_of_a_grid(lists: Path, name: str) -> None:
    found = learn(scores=[SCORES[name]]).learning
    angles = np.linspace(0, 2 * np.pi, 4_001)
    grid = np.column_stack([np.cos(angles), np.sin(angles)])
    best = max(value(name, rows) for rows in np.unique(choose_at(grid), axis=0))
    assert found.solution.score >= best - 1e-12
    assert found.solution.score == pytest.approx(
        value(name, choose(found.solution.weights)), abs=1e-12
    )
    assert found.start == pytest.approx(value(name, choose(np.array([0.5, 0.5]))), abs=1e-12)


@pytest.mark.parametrize("name", list(SCORES))
@pytest.mark.parametrize("algorithm", sorted(algorithms()))
def test_every_algorithm_learns_from_scores_or_refuses_them(
    lists: Path, algorithm: str, name: str
) -> None:
    values = {"scores": [SCORES[name]], "algorithm": algorithm, "option": SHORT.get(algorithm, {})}
    if algorithms()[algorithm].needs_bleu:
        with pytest.raises(MosesplugError, match="requires the metric BLEU, not"):
            learn(**values)
        return
    solution = learn(**values).learning.solution
    assert np.isfinite(solution.weights).all()
    assert solution.score == pytest.approx(value(name, choose(solution.weights)), abs=1e-12)
    assert solution.score > value(name, choose(-solution.weights))


def test_a_sum_of_scores_and_a_metric_of_texts(lists: Path) -> None:
    metric = "COMET:0.7+WER:0.3"
    found = learn(scores=["COMET=comet"], metric=metric, refs="refs").learning.solution
    rows = choose(found.weights)
    texts = [line.split(" ||| ")[1] for line in Path("lists").read_text().splitlines()]
    (wer,) = mosesplug.score([texts[row] for row in rows], "refs", "WER", samples=0)
    expected = 0.7 * value("comet", rows) + 0.3 * (1 - wer.score)
    assert found.score == pytest.approx(expected, abs=1e-12)
    with pytest.raises(UsageError, match=r"no reference is given: use --refs FILE for COMET:0.7"):
        learn(scores=["COMET=comet"], metric=metric)


@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "pro", "mira"])
def test_files_and_arrays_give_the_same_weights(lists: Path, algorithm: str) -> None:
    expected = learn(scores=["COMET=comet"], algorithm=algorithm, option=SHORT.get(algorithm, {}))
    weights = expected.learning.solution.weights.tolist()
    nbest = mosesplug.read_nbest("lists")
    scores = {"COMET": read("comet")}
    sources: list[dict[str, Any]] = [
        {"lists": "lists", "scores": scores},
        {"lists": nbest, "scores": {"COMET": "comet"}},
        {"features": nbest.dense, "sentence_ids": IDS, "scores": scores},
        {"features": nbest.dense, "sentence_ids": IDS, "scores": scores["COMET"]},
    ]
    for source in sources:
        fit = mosesplug.optimize(**source, algorithm=algorithm, options=SHORT.get(algorithm))
        assert fit.vector.tolist() == weights
        assert fit.score == expected.learning.solution.score
    names = [f"s{number:02}" for number in IDS.tolist()]
    fit = mosesplug.optimize(
        features=nbest.dense[::-1],
        sentence_ids=names[::-1],
        scores={"COMET": scores["COMET"][::-1]},
        names=["A", "B"],
    )
    best = learn(scores=["COMET=comet"]).learning.solution.score
    assert fit.score == pytest.approx(best, abs=1e-12)


def test_folds_and_held_out_lists(lists: Path) -> None:
    found = learn(scores=["COMET=comet"], folds=3).learning.validation
    assert found is not None
    held_out = learn(
        scores=["COMET=comet", "ERRORS=counts:error"],
        **{"heldout-nbest": ["lists"], "heldout-scores": ["ERRORS=counts", "COMET=comet"]},
    ).learning
    assert held_out.held_out == held_out.solution.score
    folds = mosesplug.cross_validate("lists", scores={"COMET": "comet"}, folds=3)
    assert (folds.folds, folds.held_out, folds.start) == (found.folds, found.held_out, found.start)
    for given, message in (
        ([], "the held-out lists have no scores of COMET: add --heldout-scores COMET=FILE"),
        (["X=comet"], "--heldout-scores names X, which --scores does not"),
        (["COMET=counts"], "counts has 2 numbers for each hypothesis, but comet has 1"),
    ):
        values = {"heldout-nbest": ["lists"], "heldout-refs": "refs", "heldout-scores": given}
        with pytest.raises(UsageError, match=message):
            learn(scores=["COMET=comet"], **{k: v for k, v in values.items() if v})


def merge(scores: str, *files: str) -> Any:
    sources = parse_score_sources([scores])
    settings = ListSettings(scores=sources)
    return load_lists(
        files, NO_REFERENCES, find_metric_of(None, "", make_outside_metrics(sources)), settings
    )


def test_hypotheses_with_other_scores_are_others(lists: Path) -> None:
    assert merge("C=comet,comet", "lists", "lists").tuning_set.n_hyps == len(IDS)
    changed = read("comet")
    changed[[3, 17]] += 1e-9
    np.save("changed.npy", changed)
    merged = merge("C=comet,changed.npy", "lists", "lists").tuning_set
    assert merged.n_hyps == len(IDS) + 2
    assert merged.stats.dtype == np.float64
    expected = sorted([*read("comet").tolist(), *changed[[3, 17]].tolist()])
    assert sorted(merged.stats[:, 0].tolist()) == expected


def test_lists_that_grow_without_references(lists: Path) -> None:
    lines = Path("lists").read_text().splitlines(keepends=True)
    Path("first").write_text("".join(lines[:12]))
    Path("rest").write_text("".join(lines[12:]))
    parts = merge("C=comet", "first", "rest").tuning_set
    whole = merge("C=comet", "lists").tuning_set
    assert parts.offsets.tolist() == whole.offsets.tolist()
    assert parts.stats.tolist() == whole.stats.tolist()


def import_scores(
    target: str, scores: str, *files: str, name: str | None = None, references: Path | None = None
) -> None:
    settings = ListSettings(scores=(scores,))
    metric = find_metric_of(
        name, "", make_outside_metrics(parse_score_sources([scores]), fingerprints=True)
    )
    sources = [IterationSource(Path(file)) for file in files]
    list(
        import_lists(
            sources, Path(target), metric=metric, references=references, source=None,
            settings=settings, threads=1,
        )
    )  # fmt: skip


def test_a_store_keeps_scores(lists: Path) -> None:
    import_scores("store", "COMET=comet,comet", "lists", "lists")
    expected = learn(scores=["COMET=comet"]).learning.solution
    found = learn_from(LearningSettings(store=Path("store"), threads=1)).learning.solution
    assert found.weights.tolist() == expected.weights.tolist()
    with NBestStore.open("store") as store:
        assert store.tuning_set().stats.tobytes() == (
            np.column_stack([read("comet"), np.ones(len(IDS))]).tobytes()
        )
        assert store.faults(2, 0) == []
        assert not store.verify_iteration(2).faults
        fingerprints = dict(store.fingerprints)
    import_scores("other", "COMET=counts:ratio", "lists")
    with NBestStore.open("other") as store:
        assert store.fingerprints["scores"] != fingerprints["scores"]
    # Scores of another file belong to another kind of statistics, which texts cannot give.
    metric = find_metric_of(
        None, "", make_outside_metrics(parse_score_sources(["COMET=named"]), fingerprints=True)
    )
    with (
        NBestStore.open("store", writable=True) as store,
        pytest.raises(StoreError, match=r"has no COMET\|outside:mean of iteration 1, and it holds"),
    ):
        store.tuning_set(metric=metric, references=metric.prepare([]))


def test_references_leave_stored_scores_as_they_are(lists: Path) -> None:
    import_scores("store", "COMET=comet", "lists")
    values: dict[str, Any] = {"from": "store", "threads": 1}
    alone = learn_from(make_learning_settings(values)).learning.solution
    found = learn_from(make_learning_settings({**values, "refs": "refs"})).learning.solution
    assert found.weights.tobytes() == alone.weights.tobytes()
    import_scores("both", "COMET=comet", "lists", name="COMET+BLEU", references=Path("refs"))
    with pytest.raises(UsageError, match="no scores to compute COMET,BLEU again: add --scores"):
        learn_from(make_learning_settings({"from": "both", "refs": "refs", "threads": 1}))


def test_stored_lists_find_scores_by_their_texts(lists: Path) -> None:
    # A text that occurs twice in a sentence has one score.
    known: dict[tuple[str, ...], str] = {}
    for line in Path("named").read_text().splitlines():
        *key, number = line.split(" ||| ")
        known.setdefault(tuple(key), number)
    lines = [" ||| ".join([*key, number]) for key, number in known.items()]
    Path("by-text").write_text("\n".join(reversed(lines)) + "\n99 ||| more ||| 1\n")
    sources, target, refs = [IterationSource(Path("lists"))], Path("store"), Path("refs")
    metric = find_metric("BLEU")
    list(import_lists(sources, target, metric=metric, references=refs, source=None, threads=1))
    values: dict[str, Any] = {"from": "store", "threads": 1}
    found = learn_from(make_learning_settings({**values, "scores": ["COMET=by-text"]}))
    solution = found.learning.solution
    order = [line.split(" ||| ")[:2] for line in Path("lists").read_text().splitlines()]
    comet = np.array([float(known[tuple(key)]) for key in order])
    expected = comet[choose(solution.weights)].mean()
    assert solution.score == pytest.approx(expected, abs=1e-12)
    for name, message in (
        ("comet", "comet:1: the scores of stored lists need sentence ids and texts"),
        ("refs-only", "refs-only has no score of "),
        ("twice", "twice:2: another score of"),
    ):
        Path("refs-only").write_text(lines[0] + "\n")
        Path("twice").write_text(f"{lines[0]}\n{lines[0]}1\n")
        with pytest.raises((FormatError, DataError), match=message):
            learn_from(make_learning_settings({**values, "scores": [f"COMET={name}"]}))


@pytest.mark.parametrize("method", ["sentence", "greedy"])
def test_oracles_are_the_best_scores(lists: Path, method: Any) -> None:
    settings = ListSettings(scores=("COMET=comet",))
    with open_oracle_lists([Path("lists")], settings=settings) as opened:
        ranked = rank_lists(opened.lists, None)
        found = find_oracle(method, ranked.lists, opened.metric, seed=1)
    best = read("comet").reshape(N_SENTENCES, -1).max(axis=1)
    assert found.score == pytest.approx(best.mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "lists:54: this hypothesis has no score: bad has only 53"),
        (lambda lines: [*lines, "0"], "bad:55: a score without a hypothesis: the lists have 54"),
        (lambda lines: ["nan", *lines[1:]], "bad:1: 'nan' is not a finite number"),
        (
            lambda lines: ["0 -1", *(f"{x} 1" for x in lines[1:])],
            "bad:1: the second number is below 0",
        ),
    ],
)
def test_scores_of_another_list(lists: Path, change: Any, message: str) -> None:
    Path("bad").write_text("\n".join(change(Path("comet").read_text().split())) + "\n")
    with pytest.raises(FormatError, match=message):
        learn(scores=["COMET=bad"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0 |||", "1 |||", "bad:3: the sentence is '1', but '0' in lists:3"),
        ("||| w", "||| v", "bad:3: the hypothesis is 'v"),
    ],
)
def test_scores_that_name_another_hypothesis(lists: Path, old: str, new: str, message: str) -> None:
    lines = Path("named").read_text().splitlines()
    Path("good").write_text("\n".join(lines) + "\n")
    lines[2] = lines[2].replace(old, new, 1)
    Path("bad").write_text("\n".join(lines) + "\n")
    learn(scores=["COMET=good"])
    with pytest.raises(FormatError, match=message):
        learn(scores=["COMET=bad"])


def test_sources_are_parsed() -> None:
    (one, other) = parse_score_sources(["A=x:y.txt,b:error:ratio", "B.1=c:mean"])
    assert (one.name, one.paths) == ("A", (Path("x:y.txt"), Path("b")))
    assert (one.is_error_rate, one.formula) == (True, RATIO)
    assert (other.is_error_rate, other.formula) == (False, MEAN)
    assert parse_score_sources([one]) == (one,)
    assert isinstance(one, ScoreSource)
    for text in ("A", "A=", "=x", "A=x,,y", "A=:error"):
        with pytest.raises(UsageError, match=f"--scores={text}: write NAME=FILE"):
            parse_score_sources([text])
    for text in ("A=x:BLEU:ratio", "A=x:error:error"):
        with pytest.raises(UsageError, match="two formulas, or with :error twice: keep one"):
            parse_score_sources([text])
    with pytest.raises(UsageError, match="--scores names A twice"):
        parse_score_sources(["A=x", "A=y"])
    with pytest.raises(
        UsageError, match=r"x:BLUE: No such file .* with :BLUE\. Did you mean BLEU\?"
    ):
        parse_score_sources(["A=x:BLUE"])


def test_lists_without_texts_need_scores(lists: Path) -> None:
    nbest = mosesplug.read_nbest("lists")
    for metric in ("BLEU", "COMET:0.5+BLEU:0.5"):
        with pytest.raises(FormatError, match="the list has no texts, which "):
            mosesplug.optimize(
                features=nbest.dense, sentence_ids=IDS, references="refs", metric=metric,
                scores={"COMET": "comet"},
            )  # fmt: skip
