"""Test learning from arrays, lists, files, graphs and stores against the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

import mosesplug
from mosesplug.api.optimize import OptimizeKeywords, ValidationKeywords
from mosesplug.cli.main import main
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.text_metric import TextMetric
from tests.api.problems import NAMES, Problem, make_problem
from tests.store.toys import ToyMetric

pytestmark = pytest.mark.usefixtures("few_restarts")

FAST = {"restarts": 2}
"""Options of MERT for a short search."""


@pytest.fixture
def problem() -> Problem:
    return make_problem()


def arrays(problem: Problem, order: Any = slice(None)) -> dict[str, Any]:
    """Return the arguments of a problem, its hypotheses in some order."""
    return {
        "features": problem.features[order],
        "sentence_ids": problem.sentence_ids[order],
        "hypotheses": np.array(problem.hypotheses, dtype=object)[order].tolist(),
        "references": problem.references,
        "names": NAMES,
    }


def run_command(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["optimize", *map(str, words)])
    assert not ended.value.code


@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "pro", "mira", "rampion", "xbleu"])
def test_arrays_lists_and_files_give_the_weights_of_the_command_line(
    algorithm: str, problem: Problem, tmp_path: Path
) -> None:
    lists, references = problem.write(tmp_path)
    words = ("--nbest", lists, "--refs", references, "--algorithm", algorithm, "--seed", 3)
    run_command(*words, "--threads", 1, "-o", tmp_path / "tuned", "--quiet")
    # Sentences in another order, their hypotheses in the same.
    order = np.argsort(-problem.sentence_ids, kind="stable")
    sources: list[dict[str, Any]] = [
        {"lists": lists, "references": references},
        {"lists": [mosesplug.read_nbest(lists)], "references": [problem.references]},
        arrays(problem),
        arrays(problem, order),
        arrays(problem) | {"features": csr_array(problem.features)},
    ]
    for number, source in enumerate(sources):
        fit = mosesplug.optimize(**source, algorithm=algorithm, seed=3, threads=1)
        fit.save(tmp_path / "own", "dense")
        assert (tmp_path / "own").read_bytes() == (tmp_path / "tuned").read_bytes(), number
    assert fit.result.data.description.startswith("12 sentences, 84 distinct hypotheses of 96")


@dataclass(frozen=True)
class Letters(TextMetric):
    """The share of x in a hypothesis, and of references."""

    name: ClassVar[str] = "LETTERS"
    version: ClassVar[str] = "1"
    statistics_names: ClassVar[tuple[str, ...]] = ("x", "letters")
    needs_references: ClassVar[bool] = False

    def count(self, hypothesis: bytes, references: Sequence[bytes]) -> Sequence[int]:
        return hypothesis.count(b"x"), len(hypothesis) + len(references)

    def score_totals(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(totals[..., 0] / np.maximum(totals[..., 1], 1))


def test_a_metric_of_hypotheses_alone(problem: Problem, tmp_path: Path) -> None:
    """References are not needed; if there are some, the metric gets them."""
    lists, references = problem.write(tmp_path)
    fit = mosesplug.optimize(lists, metric=Letters(), options=FAST)
    chosen = mosesplug.rerank(lists, fit.weights).texts
    share = sum(text.count("x") for text in chosen) / sum(map(len, chosen))
    assert fit.score == pytest.approx(share)
    others = ["x y"] * len(chosen)
    (scored,) = mosesplug.score(chosen, metrics=[Letters()], samples=0)
    assert scored.score == fit.score
    first, _ = mosesplug.compare({"a": chosen, "b": others}, metrics=[Letters()], trials=1)
    assert first.score == fit.score
    also = mosesplug.optimize(lists, references=references, metric=Letters(), options=FAST)
    assert also.start_score < fit.start_score
    with pytest.raises(UsageError, match=r"references is missing.*BLEU needs them"):
        mosesplug.optimize(lists, metric=find_metric("BLEU"))


def test_scores_of_a_fit_are_those_that_the_command_line_prints(
    problem: Problem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists, references = problem.write(tmp_path)
    run_command("--nbest", lists, "--refs", references, "--held-out", 0.25, "--restarts", 2)
    printed = capsys.readouterr().err
    fit = mosesplug.optimize(lists, references=references, held_out=0.25, options=FAST)
    assert f"{fit.start_score:.6f}" in printed
    assert f"{fit.score:.6f}" in printed
    assert f"{fit.held_out:.6f}" in printed
    assert f"{fit.start_held_out:.6f}" in printed
    assert fit.signature in printed
    assert fit.score > fit.start_score
    assert repr(fit).startswith("mert: BLEU 0.")
    assert "on 3 held-out sentences 0." in repr(fit)
    assert '<td style="text-align:left">LM0</td>' in fit._repr_html_()


def test_sparse_columns_are_those_of_lists(tmp_path: Path) -> None:
    problem = make_problem(2)
    lists, references = problem.write(tmp_path)
    lines = lists.read_text().splitlines()
    # First appearances in the order of the columns.
    tail = [[1.0, 0, 0], [0, 2, 0], [0, 0.5, -1]]
    spelled = ["S_a= 1", "S_b= 2", "S_b= 0.5 S_c= -1"]
    lines = [line.replace(" ||| 0", f" {spelled[n % 3]} ||| 0") for n, line in enumerate(lines)]
    lists.write_text("\n".join(lines) + "\n")
    run_command(
        *("--nbest", lists, "--refs", references, "--algorithm", "kbmira"),
        *("-o", tmp_path / "tuned", "--quiet"),
    )
    features = np.column_stack([problem.features, np.array([tail[n % 3] for n in range(96)])])
    fit = mosesplug.optimize(
        **arrays(problem)
        | {"features": csr_array(features), "names": [*NAMES, "S_a", "S_b", "S_c"]},
        dense=["LM0", "TM0", "Words"],
        algorithm="kbmira",
    )
    fit.save(tmp_path / "own")
    for name in ("own", "own.sparse"):
        other = name.replace("own", "tuned")
        assert (tmp_path / name).read_bytes() == (tmp_path / other).read_bytes()
    # The columns of the matrix may come in any order.
    mixed = [6, 0, 4, 1, 2, 5, 3]
    names = np.array([*NAMES, "S_a", "S_b", "S_c"])[mixed].tolist()
    again = mosesplug.optimize(
        **arrays(problem) | {"features": csr_array(features[:, mixed]), "names": names},
        dense=["LM0", "TM0", "Words"],
        algorithm="kbmira",
    )
    assert again.vector[np.argsort(mixed)] == pytest.approx(fit.vector, abs=1e-5)
    chosen = again.choose(features[:, mixed], problem.sentence_ids)
    assert chosen.tolist() == fit.choose(features, problem.sentence_ids).tolist()


class Frame:
    """The interface that data frames share with arrays."""

    def __init__(self, columns: list[str], values: Any) -> None:
        self.columns = columns
        self.shape = values.shape
        self._values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._values


def test_columns_of_a_data_frame_have_names(problem: Problem) -> None:
    frame = Frame(["LM0", "TM0", "TM0", "Words"], problem.features)
    common = arrays(problem) | {"features": frame, "names": None}
    fit = mosesplug.optimize(**common, options=FAST)
    assert list(fit.weights) == ["LM0", "TM0", "Words"]
    named = mosesplug.optimize(**arrays(problem), options=FAST)
    assert fit.vector.tolist() == named.vector.tolist()
    assert len(fit.choose(frame, problem.sentence_ids)) == 12


def test_any_sentence_ids(problem: Problem) -> None:
    fit = mosesplug.optimize(**arrays(problem), options=FAST)
    texts = [f"sentence {number}" for number in problem.sentence_ids]
    order = np.argsort(np.arange(96) % 8, kind="stable")  # interleaved: first appearance ascends
    named = arrays(problem) | {"sentence_ids": texts}
    assert mosesplug.optimize(**named, options=FAST).vector.tolist() == fit.vector.tolist()
    mixed = arrays(problem, order) | {"sentence_ids": [texts[row] for row in order]}
    assert mosesplug.optimize(**mixed, options=FAST).vector.tolist() == fit.vector.tolist()
    by_id = {f"sentence {number}": text for number, text in enumerate(problem.references)}
    mapped = mosesplug.optimize(**named | {"references": by_id}, options=FAST)
    assert mapped.vector.tolist() == fit.vector.tolist()
    # Integers may be floats, as in a data frame with gaps; their order is that of the numbers.
    backwards = np.argsort(-problem.sentence_ids, kind="stable")
    floats = arrays(problem, backwards)
    floats["sentence_ids"] = floats["sentence_ids"].astype(np.float64)
    assert mosesplug.optimize(**floats, options=FAST).vector.tolist() == fit.vector.tolist()
    # Integers without hypotheses keep their references.
    few = problem.sentence_ids >= 4
    some = mosesplug.optimize(**arrays(problem, few), options=FAST)
    assert some.result.learning.sentences == (8, 0)


def test_several_references(problem: Problem, tmp_path: Path) -> None:
    others = [line.replace("w1 ", "w2 ") for line in problem.references]
    for number, lines in enumerate((problem.references, others)):
        (tmp_path / f"dev.ref{number}").write_text("\n".join(lines) + "\n")
    forms: list[Any] = [
        [problem.references, others],
        tmp_path / "dev",
        str(tmp_path / "dev"),
        [tmp_path / "dev.ref0", tmp_path / "dev.ref1"],
        dict(enumerate(zip(problem.references, others, strict=True))),
    ]
    fits = [
        mosesplug.optimize(**arrays(problem) | {"references": form}, options=FAST) for form in forms
    ]
    assert len({tuple(fit.vector.tolist()) for fit in fits}) == 1
    assert all("nrefs:2" in fit.signature for fit in fits)


def test_starting_weights_in_any_form(problem: Problem, tmp_path: Path) -> None:
    values = [0.4, 0.3, -0.2, 0.1]
    (tmp_path / "init.dense").write_text("LM0= 0.4\nTM0= 0.3 -0.2\nWords= 0.1\n")
    mapping = {"Words": 0.1, "TM0": (0.3, -0.2), "LM0": 0.4}
    mosesplug.WeightTable.of_mapping(mapping).save(tmp_path / "init.json")
    forms: list[Any] = [
        mapping,
        {"LM0": 0.4, "TM0_0": 0.3, "TM0_1": -0.2, "Words_0": 0.1},
        values,
        np.array(values),
        tmp_path / "init.dense",
        str(tmp_path / "init.json"),
        mosesplug.WeightTable.of_mapping(mapping),
    ]
    for form in forms:
        fit = mosesplug.optimize(**arrays(problem), initial=form, options={"restarts": 0})
        assert fit.start.vector.tolist() == values


def test_a_configuration_of_starting_weights_is_the_template(
    problem: Problem, tmp_path: Path
) -> None:
    text = "[feature]\nA name=LM0\nB name=TM0 num-features=2\nC name=Words\n[weight]\n"
    (tmp_path / "moses.ini").write_text(f"{text}LM0= 1\nTM0= 1 1\nWords= 1\n[other]\n5\n")
    fit = mosesplug.optimize(**arrays(problem), initial=tmp_path / "moses.ini", options=FAST)
    fit.save(tmp_path / "tuned.ini")
    assert (tmp_path / "tuned.ini").read_text().startswith(text)
    read = mosesplug.WeightTable.read(tmp_path / "tuned.ini")
    assert read.vector.tolist() == fit.vector.tolist()


def test_settings_have_the_meaning_of_the_command_line(problem: Problem, tmp_path: Path) -> None:
    lists, references = problem.write(tmp_path)
    run_command(
        *("--nbest", lists, "--refs", references, "--metric", "CHRF", "--metric-settings"),
        *("beta:2", "--active", "LM0,Words", "--range", "LM0:0..2", "--runs", 2, "--select"),
        *("average", "--seed", 7, "-o", tmp_path / "tuned", "--quiet", "--restarts", 2),
    )
    fit = mosesplug.optimize(
        **arrays(problem),
        metric="CHRF",
        metric_settings={"beta": 2},
        active=["LM0", "Words"],
        ranges={"LM0": (0, 2)},
        runs=2,
        select="average",
        seed=7,
        options=FAST,
    )
    fit.save(tmp_path / "own")
    assert (tmp_path / "own").read_bytes() == (tmp_path / "tuned").read_bytes()
    assert [run.seed for run in fit.runs] == [7, 8]


def test_shards(problem: Problem, tmp_path: Path) -> None:
    lists, references = problem.write(tmp_path)
    words = ("--nbest", lists, "--refs", references, "--algorithm", "mira", "--shards", 2)
    run_command(*words, "--mixing", "average", "-o", tmp_path / "tuned", "--quiet")
    fit = mosesplug.optimize(
        **arrays(problem), algorithm="mira", sharding={"shards": 2, "mixing": "average"}
    )
    fit.save(tmp_path / "own")
    assert (tmp_path / "own").read_bytes() == (tmp_path / "tuned").read_bytes()


def test_held_out_lists(problem: Problem, tmp_path: Path) -> None:
    other = make_problem(5)
    lists, _ = other.write(tmp_path)
    held_out = mosesplug.read_nbest(lists)
    fit = mosesplug.optimize(
        **arrays(problem),
        heldout_lists=held_out,
        heldout_references=other.references,
        options=FAST,
    )
    chosen = [held_out.texts[row] for row in fit.choose(held_out)]
    score = mosesplug.score(chosen, other.references, metrics=["BLEU"])[0].score
    assert fit.held_out == pytest.approx(score, abs=1e-12)


def test_cross_validation_is_that_of_the_command_line(problem: Problem) -> None:
    fit = mosesplug.optimize(**arrays(problem), folds=3, options=FAST)
    found = mosesplug.cross_validate(**arrays(problem), folds=3, options=FAST)
    assert found == fit.validation
    assert repr(found).startswith("3-fold cross-validation of 12 sentences: 0.")
    assert found.table["sentences"].tolist() == [4, 4, 4]
    assert "<td class=n>4</td>" in found._repr_html_()
    with pytest.raises(UsageError, match="folds: expected an integer"):
        mosesplug.cross_validate(**arrays(problem), folds=2.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="12 sentences cannot be split into 13 folds"):
        mosesplug.cross_validate(**arrays(problem), folds=13)


def test_cross_validation_has_the_arguments_of_learning() -> None:
    learning = {*signature(mosesplug.optimize).parameters, *OptimizeKeywords.__annotations__}
    validating = {*signature(mosesplug.cross_validate).parameters}
    validating |= {*ValidationKeywords.__annotations__}
    of_one_fit = {name for name in learning if name.startswith(("held_out", "heldout", "monitor"))}
    of_one_fit.add("score_budget")
    assert learning - validating == of_one_fit
    with pytest.raises(UsageError, match="unknown keyword held_out"):
        mosesplug.cross_validate(held_out=0.2)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"unknown keyword algoritm. Did you mean algorithm\?"):
        mosesplug.optimize(algoritm="mert")  # type: ignore[call-arg]


def test_choices_are_the_maxima_of_the_model_score(problem: Problem) -> None:
    fit = mosesplug.optimize(**arrays(problem), options=FAST)
    scores = problem.features.astype(np.float32).astype(np.float64) @ fit.vector
    expected = [
        int(np.flatnonzero(problem.sentence_ids == n)[np.argmax(scores[problem.sentence_ids == n])])
        for n in range(12)
    ]
    assert fit.choose(problem.features, problem.sentence_ids).tolist() == expected
    assert fit.choose(csr_array(problem.features), problem.sentence_ids).tolist() == expected
    lists = mosesplug.NBest(problem.sentence_ids, problem.hypotheses, problem.features, names=NAMES)
    assert fit.choose(lists).tolist() == expected
    texts = [problem.hypotheses[row] for row in expected]
    assert fit.rerank(lists).texts == texts
    assert fit.score == mosesplug.score(texts, problem.references, metrics=["BLEU"])[0].score
    # Ids of another kind, in the order of their first appearance.
    letters = ["b"] * 48 + ["a"] * 48
    best = [int(np.argmax(scores[:48])), 48 + int(np.argmax(scores[48:]))]
    assert fit.choose(problem.features, letters).tolist() == best
    with pytest.raises(UsageError, match="features has 3 columns, but there are 4 weights"):
        fit.choose(problem.features[:, :3], problem.sentence_ids)
    with pytest.raises(UsageError, match="sentence_ids is missing"):
        fit.choose(problem.features)
    with pytest.raises(UsageError, match="sentence_ids are those of the NBest"):
        fit.choose(lists, problem.sentence_ids)


def test_progress_and_silence(problem: Problem, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int, str]] = []
    mosesplug.optimize(**arrays(problem), options=FAST, progress=lambda *work: seen.append(work))
    assert seen
    assert capfd.readouterr() == ("", "")


def test_warnings_are_returned(problem: Problem) -> None:
    fit = mosesplug.optimize(**arrays(problem), options={"restarts": 0, "neighbors": 2})
    assert fit.warnings[0].startswith("option neighbors of mert has no effect without interval")


def test_metric_objects(problem: Problem) -> None:
    by_name = mosesplug.optimize(**arrays(problem), metric="TER", options=FAST)
    by_object = mosesplug.optimize(**arrays(problem), metric=find_metric("TER"), options=FAST)
    assert by_object.vector.tolist() == by_name.vector.tolist()
    with pytest.raises(UsageError, match="metric_settings require a metric given by its name"):
        mosesplug.optimize(**arrays(problem), metric=find_metric("TER"), metric_settings="case:x")


def test_metrics_of_others(problem: Problem) -> None:
    metric = ToyMetric()
    fit = mosesplug.optimize(**arrays(problem), metric=metric, options=FAST)
    rows = fit.choose(problem.features, problem.sentence_ids)
    words = [(problem.hypotheses[row].split(), problem.sentence_ids[row]) for row in rows]
    right = sum(word in problem.references[n].split() for found, n in words for word in found)
    assert fit.score == pytest.approx(right / sum(len(found) for found, _ in words))
    assert fit.signature == "WORDS|weight:1"
    texts = [problem.hypotheses[row] for row in rows]
    assert mosesplug.score(texts, problem.references, [metric])[0].score == fit.score


def test_history_is_plain_data(problem: Problem) -> None:
    fit = mosesplug.optimize(**arrays(problem), algorithm="kbmira")
    assert fit.history
    json.dumps([dict(step) for step in fit.history], default=str)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": None}, "nothing to learn from: give lists, features, store or graphs"),
        ({"lists": "lists"}, "lists and features exclude each other"),
        ({"store": "tuning"}, "features and store exclude each other"),
        ({"sentence_ids": None}, "features requires sentence_ids"),
        ({"hypotheses": None}, "features requires hypotheses and references, or scores, or stat"),
        ({"references": None}, "references is missing: give references, or scores, or statistics"),
        ({"references": []}, "references: there is no reference translation"),
        ({"references": ["a", 1]}, "references must be a file, a text for each sentence, or sev"),
        ({"references": 5}, "references must be a file, a text for each sentence"),
        ({"references": [["a"], ["a", "b"]]}, r"references\[1\] has 2 sentences, and references\["),
        ({"references": ["a\nb"] * 12}, r"references\[0\] has a line break"),
        (
            {"references": ["a"] * 5},
            r"sentence_ids\[40\] is 5, but the references have 5 sentences",
        ),
        ({"references": {0: "a"}}, "references has no entry for the sentence id 1 of hypothesis 8"),
        (
            {"references": {n: ["a"] * (1 + n // 11) for n in range(12)}},
            r"references\[11\] has 2 texts, and that of 0 has 1",
        ),
        ({"sentence_ids": [0.5] * 96}, r"sentence_ids\[0\] is 0.5: give integers below 2"),
        ({"sentence_ids": [np.nan] * 96}, r"sentence_ids\[0\] is nan: give integers below 2"),
        (
            {"sentence_ids": [2**70] * 96},
            r"sentence_ids\[0\] is 11805916207174113.*: give integers",
        ),
        ({"sentence_ids": [np.inf] * 96}, r"sentence_ids\[0\] is inf: give integers"),
        ({"sentence_ids": ["a"] * 96}, "12 references for 1 sentence ids"),
        ({"initial": {"LM": 1}}, "initial, entry 0: there is no feature LM; known: LM0, TM0"),
        ({"initial": {"LM0": 1}}, "initial has no weight of TM0"),
        ({"initial": {"TM0": 1}}, r"initial\['TM0'\] has 1 weights for 2 values"),
        ({"initial": {"LM0": "x"}}, r"initial\['LM0'\] is 'x': give one or several numbers"),
        ({"initial": {"LM0": np.inf}}, r"initial\['LM0'\] is inf: give finite numbers"),
        ({"initial": [1, 2]}, "initial has 2 weights for 4 features: give one for each of LM0"),
        ({"initial": [1, 2, 3, np.nan]}, r"initial\[3\] is nan: give finite numbers"),
        ({"initial": [[1]]}, r"initial has the shape \(1, 1\)"),
        ({"algorithm": "merd"}, "unknown algorithm 'merd'"),
        ({"options": {"restart": 1}}, "unknown option 'restart' of mert. Did you mean restarts?"),
        ({"metric": "BLUE"}, "unknown metric 'BLUE'"),
        ({"metric": 5}, "metric is a int without score"),
        ({"metric_settings": "case"}, "metric setting 'case' is not of the form name:value"),
        ({"active": ["LM"]}, "active: there is no feature LM; known: LM0, TM0"),
        ({"held_out": 1.5}, "held_out must be at most 1, not 1.5"),
        ({"held_out": 1.0}, "held_out must be less than 1"),
        ({"folds": 2, "held_out": 0.5}, "held_out and folds exclude each other"),
        ({"iterations": "2"}, "iterations requires store"),
        ({"select": "average"}, "select requires runs"),
        ({"runs": 2, "select": "best-heldout"}, "select='best-heldout' requires held_out or"),
        ({"heldout_lists": "x"}, "heldout_lists and heldout_references require each other"),
        (
            {"algorithm": "pro", "sharding": {"shards": 2}},
            "pro cannot learn in shards or on workers",
        ),
        ({"seed": -1}, "seed must be at least 0"),
        ({"hg_prune": 5}, "hg_prune requires graphs"),
    ],
)
def test_errors_name_the_argument(changes: dict[str, Any], message: str, problem: Problem) -> None:
    with pytest.raises((UsageError, DataError), match=message) as caught:
        mosesplug.optimize(**arrays(problem) | changes)
    assert "\n" not in str(caught.value)


def test_missing_files(problem: Problem, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mosesplug.optimize(tmp_path / "lists", references=problem.references)
    with pytest.raises(mosesplug.FormatError, match="no such reference file"):
        mosesplug.optimize(**arrays(problem) | {"references": str(tmp_path / "dev")})


def test_lists_errors(problem: Problem) -> None:
    lists = mosesplug.NBest(problem.sentence_ids, problem.hypotheses, problem.features)
    with pytest.raises(UsageError, match="lists is empty"):
        mosesplug.optimize([], references=problem.references)
    with pytest.raises(UsageError, match=r"lists\[1\] is a int: give an NBest or a file"):
        mosesplug.optimize([lists, 5], references=problem.references)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="hypotheses and lists exclude each other"):
        mosesplug.optimize(lists, hypotheses=problem.hypotheses, references=problem.references)
    with pytest.raises(mosesplug.FormatError, match="sentence 5 does not exist: the input has 5"):
        mosesplug.optimize(lists, references=problem.references[:5])


def test_arguments_are_never_written(problem: Problem) -> None:
    locked = replace(problem, features=problem.features.astype(np.float32))
    locked.features.flags.writeable = False
    before = locked.features.copy()
    sparse = csr_array(locked.features)
    for features in (locked.features, sparse):
        mosesplug.optimize(**arrays(locked) | {"features": features}, algorithm="kbmira")
    assert (locked.features == before).all()
    assert (sparse.toarray() == before).all()
