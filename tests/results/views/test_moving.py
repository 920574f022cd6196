"""Lists out of a store and into one again; searches; sizes; faults."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from formats.extractor.reader import read_features, read_scores
from mosesplug.errors import DataError, StoreError
from mosesplug.metrics import metric
from mosesplug.results.views.exporting import export_arrays, export_extractor, export_lists
from mosesplug.results.views.importing import IterationSource, find_iterations, import_lists
from mosesplug.results.views.list_statistics import measure_lists, summarize_iterations
from mosesplug.results.views.run import open_run
from mosesplug.results.views.search import FIELDS, SearchHit, search_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.store import NBestStore
from mosesplug.store.maintenance import compact, copy
from mosesplug.tuning.weights import Weights
from tests.results.runs import GROUPS, LISTS, REFERENCE, make_run, read_graph
from tests.store.toys import Hypothesis


def write_references(directory: Path) -> Path:
    path = directory / "reference"
    path.write_bytes(b"\n".join(REFERENCE) + b"\n")
    return path


def imported(directory: Path, files: list[IterationSource]) -> Path:
    target = directory / "imported"
    reports = import_lists(
        files,
        target,
        metric=metric("BLEU"),
        references=write_references(directory),
        source=None,
        threads=1,
    )
    assert [report.iteration for report in reports] == list(range(1, len(files) + 1))
    return target


def test_out_and_in_again(tmp_path: Path) -> None:
    lists = [[h._replace(sparse=(("T_a", 0.1),), score=-1.5, extra=b" 0-0") for h in LISTS[0]]]
    lists.append(list(LISTS[1]))
    files = [tmp_path / "one.gz", tmp_path / "two"]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        for number, file in enumerate(files, start=1):
            assert list(export_lists(run, file, number, range(3), 9)) == [1, 2, 3]
        before = run.store.tuning_set()
        kept = [run.store.iteration_list(1, sentence) for sentence in range(3)]
    with open_run(imported(tmp_path, find_iterations(files))) as run:
        after = run.store.tuning_set()
        for sentence, old in enumerate(kept):
            new = run.store.iteration_list(1, sentence)
            assert new.texts == old.texts
            assert new.extras == old.extras
            assert new.scores.tolist() == old.scores.tolist()
        assert run.weights.dense == (0.0, 0.0)
    assert before.space == after.space
    for name in ("offsets", "dense", "stats", "lengths"):
        assert np.array_equal(getattr(before, name), getattr(after, name))
    assert before.sparse is not None
    assert after.sparse is not None
    assert np.array_equal(before.sparse.data, after.sparse.data)


def test_an_import_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    with open_run(make_run(tmp_path / "work")) as run:
        for number, file in enumerate(files, start=1):
            list(export_lists(run, file, number, range(3), 9))
    before = {path.name for path in tmp_path.iterdir()}
    sources = find_iterations(files)
    child = os.fork()
    if not child:
        for _ in import_lists(
            sources, tmp_path / "imported", metric=metric("BLEU"),
            references=write_references(tmp_path), source=None, threads=1,
        ):  # fmt: skip
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = {path.name for path in tmp_path.iterdir()} - before - {"reference"}
    assert len(left) == 1
    assert not (tmp_path / "imported").exists()
    with open_run(imported(tmp_path, sources)) as run:
        assert len(run.store.iterations()) == 2
    assert {path.name for path in tmp_path.iterdir()} == before | {"reference", "imported"}


def test_merged_lists_are_in_the_order_of_the_result(tmp_path: Path) -> None:
    path = tmp_path / "merged"
    with open_run(make_run(tmp_path / "work")) as run:
        list(export_lists(run, path, None, [1], 6))
    assert path.read_text().splitlines() == [
        "1 ||| she sees a small dog  ||| LM0= -3 TM0= 0 ||| -0.75",
        "1 ||| she sees one dog  ||| LM0= -1 TM0= -1 ||| -1",
        "1 ||| she sees a small dog today  ||| LM0= -4 TM0= 0 ||| -1",
    ]


def test_extractor_files_and_arrays(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        lists = run.store.tuning_set()
        export_extractor(lists, "BLEU", tmp_path / "features", tmp_path / "scores")
        export_arrays(lists, run.signature, tmp_path / "lists.npz")
    features, scores = read_features(tmp_path / "features"), read_scores(tmp_path / "scores")
    assert features.names == ("LM0_0", "TM0_0")
    assert np.array_equal(features.dense, lists.dense)
    assert np.array_equal(scores.stats, lists.stats)
    with np.load(tmp_path / "lists.npz") as arrays:
        assert arrays["names"].tolist() == ["LM0_0", "TM0_0"]
        assert np.array_equal(arrays["statistics"], lists.stats)
        assert arrays["signature"].item() == run.signature


def test_working_directory_of_the_script(tmp_path: Path) -> None:
    work = tmp_path / "mert-work"
    work.mkdir()
    with open_run(make_run(tmp_path / "work")) as run:
        for number in (1, 2):
            list(export_lists(run, work / f"run{number}.best100.out", number, range(3), 9))
    (work / "run1.dense").write_text("LM0= 0.5\nTM0= 0.5\n")
    (work / "run2.dense").write_text("LM0= 0.2\nTM0= 0.6\n")
    (work / "run2.weights.txt").write_text("0.25 0.75\n")
    iterations = find_iterations([work])
    assert [each.weights and each.weights.dense for each in iterations] == [(0.5, 0.5), (0.2, 0.6)]
    assert [each.learned_weights and each.learned_weights.dense for each in iterations] == [
        (0.2, 0.6),
        (0.25, 0.75),
    ]
    with open_run(imported(tmp_path, iterations)) as run:
        lines = list(summarize_iterations(run))
        assert run.weights.dense == (0.25, 0.75)
    assert [line.change for line in lines] == pytest.approx([0.3, 0.15])
    assert all(line.optimum is not None for line in lines)
    (work / "run1.best100.out").unlink()
    with pytest.raises(DataError, match="iteration 1"):
        find_iterations([work])
    (work / "run2.best100.out").unlink()
    with pytest.raises(DataError, match="no lists"):
        find_iterations([work])


def test_recorded_working_directory(multi30k: Path, tmp_path: Path) -> None:
    iterations = find_iterations([multi30k / "mert-work"])[:2]
    reports = import_lists(
        iterations,
        tmp_path / "store",
        metric=metric("BLEU"),
        references=multi30k / "text" / "dev.en",
        source=multi30k / "text" / "dev.de",
        threads=2,
    )
    assert [report.hypotheses for report in reports] == [69878, 71282]
    with open_run(tmp_path / "store") as run:
        first, _ = summarize_iterations(run)
    assert first.score == pytest.approx(0.3913, abs=5e-5)
    # What one MERT of Moses reached in the first list.
    assert first.optimum == pytest.approx(0.4098, abs=5e-5)
    assert first.oracle is not None
    assert first.oracle > 0.57


def test_invalid_imports_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "list"
    with open_run(make_run(tmp_path / "work")) as run:
        list(export_lists(run, path, 1, range(3), 9))
    too_many = Weights((1.0, 2.0, 3.0))
    with pytest.raises(DataError, match="the file beside it has 3 weights"):
        imported(tmp_path, [IterationSource(path, too_many)])
    assert not (tmp_path / "imported").exists()
    imported(tmp_path, [IterationSource(path)])
    with pytest.raises(StoreError, match="exists already"):
        imported(tmp_path, [IterationSource(path)])
    with pytest.raises(DataError, match="one working directory"):
        find_iterations([tmp_path, path])


def test_overview(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work", graph=read_graph(tmp_path))
    with open_run(work) as run:
        first, second = summarize_iterations(run)
        (bare, _) = summarize_iterations(run, oracles=False)
    assert (first.graphs, first.hypotheses, first.new_hypotheses) == (1, 5, 5)
    assert (first.change, second.change) == (0.1, 0.1)  # as the results have it
    assert first.stored_bytes > second.stored_bytes > 500
    assert first.oracle is not None
    assert bare.oracle is None


def test_hits_of_every_field(tmp_path: Path) -> None:
    texts = ParallelText((b"ein Haus", b"ein H\xfcnd", b"heim"), [REFERENCE])
    with open_run(make_run(tmp_path / "work")) as run:
        found = list(search_run(run, re.compile(b"(?i)h.use|H\xfc|TM"), texts, FIELDS))
        only = list(search_run(run, re.compile(b"dog"), texts, ["reference"]))
    assert found == [
        SearchHit("-", "feature", 1, "TM0_0", None),
        SearchHit("0", "reference", 0, "the red house is old", 0),
        SearchHit("0", "hypothesis", 0, "the house is red old", 0),
        SearchHit("0", "hypothesis", 1, "the red house is old", 0),
        SearchHit("1", "source", 0, "ein H�nd", 1),
    ]
    assert only == [SearchHit("1", "reference", 0, "she sees a small dog today", 1)]


def test_lists_by_hand(tmp_path: Path) -> None:
    lists = [
        [
            Hypothesis(0, b"a b c", (1.0, 0.0)),
            Hypothesis(0, b"a b c", (2.0, 0.0)),
            Hypothesis(0, b"a b", (3.0, 0.0)),
            Hypothesis(2, b"a", (1.0, 0.0)),
        ]
    ]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        *_, facts = measure_lists(run, 1)
    assert (facts.sentences, facts.hypotheses) == (2, 4)
    assert (facts.shortest, facts.mean, facts.longest) == (1, 2.0, 3)
    assert facts.distinct == pytest.approx(3 / 4)
    assert facts.diversity == pytest.approx(2 / 5)
    assert facts.words == pytest.approx(9 / 4)


def test_sound_records_and_a_damaged_one(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    with open_run(work) as run:
        for iteration in (1, 2):
            assert [run.store.faults(iteration, sentence) for sentence in range(3)] == [[]] * 3
    data = work / "nbests.lmdb" / "data.mdb"
    content = data.read_bytes()
    # A feature's value in the record becomes infinite.
    value = np.float32(-4.0).tobytes()
    assert value in content
    data.write_bytes(content.replace(value, np.float32(np.inf).tobytes()))
    with NBestStore.open(data.parent, compare=False) as store:
        faults = [store.faults(2, sentence) for sentence in range(3)]
    assert faults[1] == ["a feature is not a finite number"]


def test_copies_and_compact_stores(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    store = work / "nbests.lmdb"
    with open_run(work) as run:
        truth = run.store.tuning_set()
    size = copy(store, tmp_path / "copy")
    assert size == (tmp_path / "copy" / "data.mdb").stat().st_size
    with pytest.raises(StoreError, match="exists already"):
        copy(store, tmp_path / "copy")
    with NBestStore.open(store, writable=True) as opened_store:
        opened_store.drop_last(2)
    before, after = compact(store)
    assert after <= before
    assert sorted(path.name for path in store.iterdir()) == ["data.mdb", "lock.mdb", "writer.lock"]
    with open_run(work) as run:
        assert len(run.records) == 1
        assert run.space.groups == GROUPS
    with open_run(tmp_path / "copy") as run:
        again = run.store.tuning_set()
    assert np.array_equal(truth.dense, again.dense)
    with pytest.raises(StoreError, match="no n-best store"):
        compact(tmp_path)
    with NBestStore.open(store, writable=True), pytest.raises(StoreError, match="already open"):
        compact(store)
