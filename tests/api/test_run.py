"""Test the views of a run against lists that are known, also while it is being written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.metrics import metric
from mosesplug.results.render.render import Medium
from mosesplug.results.views.list_statistics import StoreListing, summarize_iterations
from mosesplug.results.views.run import open_run as open_stored_run
from mosesplug.store import NBestStore
from mosesplug.tuning.workdir.records import IterationStart, ListFigures
from tests.results.runs import GROUPS, LISTS, REFERENCE, WEIGHTS, make_run
from tests.store.toys import make_list

# iteration, sentence, rank and text of each distinct hypothesis of LISTS.
DISTINCT = [
    (1, 0, 1, "the house is red old"),
    (1, 0, 2, "the red house is old"),
    (1, 1, 1, "she sees one dog"),
    (1, 1, 2, "she sees a small dog"),
    (2, 1, 1, "she sees a small dog today"),
    (1, 2, 1, "they went home"),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory of two iterations."""
    return make_run(tmp_path / "work")


def finish(work: Path, iterations: int = 2) -> None:
    """Write the result of a run."""
    document = {
        "result": {"weights": {"LM0_0": 0.5, "TM0_0": 1.5}},
        "iterations": [{}] * iterations,
    }
    (work / "summary.json").write_text(json.dumps(document))


def test_iterations(work: Path) -> None:
    run = mosesplug.open_run(work)
    table = run.iterations
    assert table["iteration"].tolist() == [1, 2]
    assert table["hypotheses"].tolist() == [5, 4]
    assert table["new_hypotheses"].tolist() == [5, 1]
    assert table["optimum"].tolist() == [0.9, 0.9]
    with open_stored_run(work) as stored:
        scores = [record.first_best_score for record in stored.records]
    assert table["score"].tolist() == scores
    assert run.best["iteration"] == 1 + int(np.argmax(scores))
    assert run.metric == "BLEU"
    assert run.signature.startswith("BLEU|nrefs:1|")
    assert "2 iterations, BLEU" in repr(run)
    assert "not finished" in repr(run)
    shown = run._repr_html_()
    assert shown.count("<table") == 3
    assert "Held-out set and monitors" in shown
    assert "The newest weights" in shown


def test_printed_error_rates_are_rates(tmp_path: Path) -> None:
    """Scores are 1 minus the rate, which labels say; listings and summaries show rates."""
    run = mosesplug.open_run(make_run(tmp_path / "work", name="WER"))
    scores = run.iterations["score"].tolist()
    first, last = (f"{1.0 - score:.4f}" for score in (scores[0], scores[-1]))
    best = f"{1.0 - max(scores):.4f}"
    assert len({first, last}) == 2
    assert f"WER {first} to {last} (best {best})" in repr(run)
    assert "scores in tables are 1 - WER" in run._repr_html_()
    with open_stored_run(run.path) as stored:
        listing = StoreListing.of_run(stored, summarize_iterations(stored, oracles=False))
    head, *rows = next(iter(listing.blocks(Medium()))).plain
    assert [row[head.index("WER")] for row in rows] == [first, last]
    assert "1 - WER of the 1-bests" in repr(run.compare_weights(run.weights(1)))
    assert "1 - WER" in repr(run.explain(1, 1, 2))


def test_scores_are_those_of_the_report(work: Path) -> None:
    from mosesplug.results.views.texts import ParallelText
    from tests.results.runs import gather_report

    with open_stored_run(work) as stored:
        facts = gather_report(stored, ParallelText()).iterations
    run = mosesplug.open_run(work)
    table = run.scores()
    assert table["score"].tolist() == [each.score for each in facts]
    assert table["oracle"].tolist() == [each.oracle for each in facts]
    np.testing.assert_array_equal(table["held_out"], [np.nan, 0.4])
    assert table["seconds_decoding"].tolist() == [1.5, 1.5]
    without = run.scores(oracles=False)
    assert np.isnan(without["oracle"]).all()
    assert without["score"].tolist() == table["score"].tolist()


def test_weights(work: Path, tmp_path: Path) -> None:
    run = mosesplug.open_run(work)
    assert dict(run.weights(1)) == {"LM0": 0.5, "TM0": 0.5}
    assert dict(run.weights(2)) == {"LM0": 0.2, "TM0": 0.6}
    assert dict(run.weights()) == {"LM0": 0.25, "TM0": 0.75}
    finish(work)
    assert dict(run.weights()) == {"LM0": 0.5, "TM0": 1.5}
    run.weights().save(tmp_path / "weights.json")
    assert mosesplug.WeightTable.read(tmp_path / "weights.json") == run.weights()
    with pytest.raises(mosesplug.DataError, match="no iteration 3"):
        run.weights(3)


def test_is_finished_when_all_iterations_are_summarized(work: Path) -> None:
    run = mosesplug.open_run(work)
    assert not run.is_finished
    finish(work)
    assert run.is_finished
    finish(work, iterations=1)
    assert not run.is_finished


def test_distinct_hypotheses(work: Path) -> None:
    table = mosesplug.open_run(work).hypotheses()
    assert len(table) == 6
    names = ("iteration", "sentence", "rank", "text")
    assert [tuple(row[name] for name in names) for row in table] == DISTINCT
    known = {(h.sentence, h.text.decode()): h for lists in reversed(LISTS) for h in lists}
    for row in table:
        hypothesis = known[row["sentence"], row["text"]]
        assert (row["LM0_0"], row["TM0_0"]) == hypothesis.dense
    with open_stored_run(work) as stored:
        merged = stored.store.tuning_set()
        expected = stored.metric.sentence_scores(merged.stats.astype(np.float64))
    stats = np.stack([table[f"statistic{i}"] for i in range(9)], axis=1)
    np.testing.assert_array_equal(stats, merged.stats)
    np.testing.assert_allclose(table["sentence_score"], expected)
    assert table["LM0_0"].dtype == np.float32


def test_lists_of_one_iteration(work: Path) -> None:
    run = mosesplug.open_run(work)
    table = run.hypotheses(iteration=2)
    assert len(table) == len(LISTS[1])
    assert table["text"].tolist() == [h.text.decode() for h in LISTS[1]]
    assert table["rank"].tolist() == [1, 2, 1, 1]
    assert set(table["iteration"].tolist()) == {2}
    with open_stored_run(work) as stored:
        scores = np.concatenate([stored.store.iteration_list(2, s).scores for s in range(3)])
    np.testing.assert_array_equal(table["model_score"], scores)
    with pytest.raises(mosesplug.DataError, match="no iteration 3"):
        run.hypotheses(iteration=3)


def test_some_sentences(work: Path) -> None:
    run = mosesplug.open_run(work)
    table = run.hypotheses(sentences=[2, 1, 1])
    assert len(table) == 4
    assert table["sentence"].tolist() == [1, 1, 1, 2]
    assert len(run.hypotheses(2, [0])) == 2
    assert len(run.hypotheses(sentences=[])) == len(list(run.hypotheses(sentences=[]))) == 0
    with pytest.raises(mosesplug.DataError, match="no sentence 3"):
        run.hypotheses(sentences=[3])


def test_hypotheses_are_read_in_batches(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = mosesplug.open_run(work)
    whole = list(run.hypotheses())
    monkeypatch.setattr("mosesplug.results.views.hypotheses._ROWS", 1)
    table = run.hypotheses()
    assert len(list(table._batches())) == 3
    assert list(table) == whole


def test_sentence_without_a_list(tmp_path: Path) -> None:
    run = mosesplug.open_run(make_run(tmp_path / "work", lists=(LISTS[0][:2],)))
    assert len(run.hypotheses()) == 2
    assert len(run.nbest(sentence=2)) == 0


def test_sparse_features_and_invalid_utf8(tmp_path: Path) -> None:
    hypotheses = (
        LISTS[0][0]._replace(text=b"the \xff house", sparse=(("WT_a~b", 2.0),)),
        LISTS[0][1],
    )
    run = mosesplug.open_run(make_run(tmp_path / "work", lists=(hypotheses,)))
    table = run.hypotheses()
    assert table["text"][0] == "the � house"
    assert table["sparse"].tolist() == [{"WT_a~b": 2.0}, {}]
    lists = run.nbest()
    # The bytes themselves are kept.
    assert lists.block.text(0) == b"the \xff house"
    assert lists.sparse.toarray().tolist() == [[2.0], [0.0]]
    assert run.hypotheses(1)["sparse"].tolist() == [{"WT_a~b": 2.0}, {}]
    vector = run.weights().vector
    assert (lists.features @ vector).tolist() == pytest.approx([-1.4, -1.6])


def test_nbest(work: Path) -> None:
    run = mosesplug.open_run(work)
    lists = run.nbest(sentence=1)
    assert lists.texts == [text for _, sentence, _, text in DISTINCT if sentence == 1]
    assert lists.sentence_ids.tolist() == [1, 1, 1]
    assert lists.dense.tolist() == [[-1.0, -1.0], [-3.0, 0.0], [-4.0, 0.0]]
    assert len(run.nbest()) == 6
    assert run.nbest(iteration=2).texts == [h.text.decode() for h in LISTS[1]]
    with pytest.raises(mosesplug.DataError, match="no sentence 9"):
        run.nbest(sentence=9)


def test_run_without_lists(tmp_path: Path) -> None:
    shards = ListFigures(0.25, 3, 9, 5)
    work = make_run(tmp_path / "work", lists=((), ()), shards=shards)
    (work / "shard.1").mkdir()
    run = mosesplug.open_run(work)
    assert run.iterations["score"].tolist() == [0.25, 0.25]
    assert list(run.weights(1).vector) == [0.5, 0.5]
    with pytest.raises(mosesplug.DataError, match=r"shard\.1"):
        run.hypotheses()


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(mosesplug.StoreError, match="no n-best store"):
        mosesplug.open_run(tmp_path)
    with pytest.raises(mosesplug.DataError, match="no finished iteration"):
        mosesplug.open_run(make_run(tmp_path / "work", lists=()))
    with pytest.raises(mosesplug.UsageError, match="no run 1"):
        mosesplug.open_run(tmp_path, run=1)


def test_directory_of_several_runs(tmp_path: Path) -> None:
    for number in (1, 2):
        make_run(tmp_path / f"run.{number}", lists=LISTS[:number])
    (tmp_path / "runs.json").write_text("{}")
    with pytest.raises(mosesplug.UsageError, match="holds 2 runs"):
        mosesplug.open_run(tmp_path)
    assert len(mosesplug.open_run(tmp_path, run=2).iterations) == 2
    with pytest.raises(mosesplug.UsageError, match="no run 3"):
        mosesplug.open_run(tmp_path, run=3)
    (tmp_path / "summary.json").write_text(json.dumps({"result": {"run": 1}}))
    assert mosesplug.open_run(tmp_path).path.parent.name == "run.1"
    # The mean of all runs differs from each of them.
    (tmp_path / "summary.json").write_text(json.dumps({"result": {"run": None}}))
    with pytest.raises(mosesplug.UsageError, match="run=1"):
        mosesplug.open_run(tmp_path)


WRITER = """
import sys
from pathlib import Path
from tests.api.test_run import add_second_iteration

add_second_iteration(Path(sys.argv[1]))
"""


def add_second_iteration(work: Path) -> None:
    """Add the second iteration of ``make_run``, on a signal from stdin."""
    judge = metric("BLEU")
    references = judge.prepare([REFERENCE])
    start = IterationStart(WEIGHTS[1], 7, {"algorithm": "mert"}, ("moses",), 1.5)
    with NBestStore.open(work / "nbests.lmdb", writable=True) as store:
        print("open", flush=True)
        sys.stdin.readline()
        store.add_iteration(
            2,
            [make_list(LISTS[1], GROUPS)],
            metric=judge,
            references=references,
            n_sentences=len(REFERENCE),
            record=start.as_record(),
        )
        print("added", flush=True)
        sys.stdin.readline()


def test_run_that_is_being_written(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work", lists=LISTS[:1])
    command = [sys.executable, "-c", WRITER, str(work)]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        run = mosesplug.open_run(work)
        before = run.hypotheses()
        assert len(run.iterations) == 1
        print("go", file=writer.stdin, flush=True)
        assert writer.stdout.readline() == "added\n"
        assert len(run.iterations) == 2
        assert len(run.hypotheses()) == 6
        # A table stays as it was when it was made.
        assert len(before) == len(list(before)) == 5
        assert before["iteration"].tolist() == [1] * 5
        print("end", file=writer.stdin, flush=True)
    assert writer.returncode == 0


def test_several_views_at_once(work: Path) -> None:
    one, other = mosesplug.open_run(work), mosesplug.open_run(work)
    for row in one.hypotheses():
        assert row["text"] in other.nbest(sentence=row["sentence"]).texts


def test_explanations_are_those_of_the_commands(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, refs = mosesplug.open_run(work), work.parent / "reference"
    refs.write_bytes(b"\n".join(REFERENCE) + b"\n")
    with pytest.raises(SystemExit):
        main(["weights", "why", str(work), "1", "1", "fear", "--refs", str(refs)])
    why = run.explain(1, 1, "fear", references=refs)
    assert capsys.readouterr().out == f"{why!r}\n"
    assert why.hypotheses["rank"].tolist() == [1, 2]
    assert why.table["feature"].tolist() == ["TM0_0", "LM0_0"]
    assert why.features["low"].tolist() == [-np.inf, 0.375]
    assert "<table" in why._repr_html_()
    sides = ["--weights", f"{work}:1", "--weights", "LM0= 1 TM0= 0"]
    with pytest.raises(SystemExit):
        main(["nbest", "diff", str(work), *sides, "--top", "1"])
    effect = run.compare_weights(f"{work}:1", "LM0= 1 TM0= 0", top=1)
    assert capsys.readouterr().out == f"{effect!r}\n"
    assert effect.score_a >= effect.score_b
    assert len(effect.table) == 3
    # None is the result, whatever its norm.
    same = run.compare_weights({"LM0": 1, "TM0": 3})
    assert not same.sentences["changed"].any()
    assert same.features["swing"].tolist() == [0.0, 0.0]
    with pytest.raises(mosesplug.UsageError, match="no hypothesis 'best'"):
        run.explain(0, "best")
    with pytest.raises(mosesplug.UsageError, match="there are no weights nowhere"):
        run.compare_weights("nowhere")
    with pytest.raises(mosesplug.UsageError, match="top"):
        run.compare_weights([1, 1], top=-1)


def test_importance_of_features(work: Path) -> None:
    table = mosesplug.open_run(work).importance(threads=1)
    assert sorted(table["feature"]) == ["LM0_0", "TM0_0"]
    assert (table["influence"] == table["weight"] * table["spread"]).all()
    assert (table["learned_loss"] >= 0.0).all()
