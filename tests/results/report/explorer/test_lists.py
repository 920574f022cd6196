"""Test what a page holds of the lists, against decoding."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics import metric
from mosesplug.metrics.protocol import score_sentences
from mosesplug.optimizers.line_search.winners import find_winners
from mosesplug.results.report.explorer.formulas import find_formula
from mosesplug.results.report.explorer.lists import RunLists, pack_lists, spread_sentences
from mosesplug.results.report.explorer.packing import pack_array
from mosesplug.results.report.explorer.run_data import gather_explorer
from mosesplug.results.report.explorer.selection import find_needed
from mosesplug.results.views.run import StoredRun, open_run
from mosesplug.results.views.texts import ParallelText
from tests.results.report.explorer.explored import make_explored_run
from tests.results.runs import gather_report, make_run
from tests.store.toys import ToyMetric


def visit(run: StoredRun) -> list[NDArray[np.float64]]:
    """The weights that the run visited."""
    weights = [run.decoding_weights(record.iteration) for record in run.records]
    return [own.normalize().vector(run.space) for own in (*weights, run.weights)]


def read_lists(run: StoredRun, sentences: int | None = None) -> RunLists:
    """The lists of some sentences, evenly spread."""
    held = spread_sentences(run.n_sentences, sentences)
    return RunLists.read(run, held)


def test_hypotheses_that_win_along_axes_and_between_iterations(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with open_run(make_explored_run(tmp_path / "work")) as run:
        merged, vectors = run.store.tuning_set(), visit(run)
        winners = find_winners(merged, run.metric, vectors)
        n_dense, starts = run.space.n_dense, merged.offsets[:-2]
        for place, start in enumerate(vectors):
            directions = [*np.eye(len(start))[:n_dense]]
            # The sparse features are one axis.
            directions.append(np.where(np.arange(len(start)) < n_dense, 0.0, start))
            directions += [end - start for end in vectors[place + 1 : place + 2]]
            for direction in directions:
                for step in rng.normal(scale=2.0, size=20):
                    scores = merged.model_scores(start + step * direction)
                    best = np.maximum.reduceat(scores, starts)
                    # Ties are many here: any of the tied will do.
                    held = np.maximum.reduceat(np.where(winners, scores, -np.inf), starts)
                    np.testing.assert_allclose(held, best, atol=1e-5)
    assert not winners.all()


def test_needed_hypotheses(tmp_path: Path) -> None:
    with open_run(make_explored_run(tmp_path / "work")) as run:
        merged, vectors = run.store.tuning_set(), visit(run)
        needed = find_needed(merged, run.metric, vectors)
        scores = score_sentences(run.metric, merged.stats)
        model = merged.model_scores(vectors[-1])
        for start, end in zip(merged.offsets[:-2], merged.offsets[1:-1], strict=True):
            own = np.flatnonzero(needed[start:end])
            for value in (scores, model + scores, model - scores):
                assert value[start:end].max() in value[start:end][own]
        for vector in vectors:
            assert needed[merged.first_best(vector)].all()


def test_size_is_bounded(tmp_path: Path) -> None:
    with open_run(make_explored_run(tmp_path / "work")) as run:
        lists, vectors = read_lists(run), visit(run)
        whole = pack_lists(lists, vectors, None)
        assert len(whole.rows) == lists.merged.n_hyps
        part = pack_lists(lists, vectors, 0.8 * whole.size)
        assert part.size <= 0.8 * whole.size
        needed = find_needed(lists.merged, run.metric, vectors)
        assert set(np.flatnonzero(needed).tolist()) <= set(part.rows.tolist())
        with pytest.raises(UsageError, match="max-size"):
            pack_lists(lists, vectors, 100)


def test_lists_of_some_sentences(tmp_path: Path) -> None:
    with open_run(make_explored_run(tmp_path / "work")) as run:
        whole, part = read_lists(run), read_lists(run, 5)
        widths = np.diff(whole.merged.offsets)
        held = [0, 2, 4, 7, 9]
        wanted = np.where(np.isin(np.arange(len(widths)), held), widths, 0)
        assert np.diff(part.merged.offsets).tolist() == wanted.tolist()
        rows = np.flatnonzero(np.repeat(wanted > 0, widths))
        assert part.ranks.tolist() == whole.ranks[:, rows].tolist()
        packed = pack_lists(part, visit(run), None)
        text = zlib.decompress(base64.b64decode(packed.arrays["texts"].text))
        assert text == b"".join(b"\n".join(run.store.hypotheses(sentence)) for sentence in held)
        assert packed.arrays["features"].length == 3 * len(rows)
        data = gather_report(run, ParallelText())
        document = gather_explorer(run, ParallelText(), data, "run", sentences=5).document
        assert document["sentences"] == held
        assert document["held"] == document["all"] == len(rows)


def test_ranks_in_lists_and_texts(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        lists = read_lists(run)
        packed = pack_lists(lists, visit(run), None)
    # By hand: the rows of sentence 0, then those of 1 and 2.
    assert lists.ranks.tolist() == [[1, 2, 1, 2, 0, 1], [2, 1, 0, 0, 1, 1]]
    text = zlib.decompress(base64.b64decode(packed.arrays["texts"].text))
    assert text.startswith(b"the house is red old\nthe red house is oldshe sees one dog\n")


def test_arrays_are_bytes_by_significance() -> None:
    packed = pack_array(np.array([[1, 2], [3, 0x01020304]], dtype=np.int32))
    assert (packed.type, packed.length) == ("Int32", 4)
    planes = zlib.decompress(base64.b64decode(packed.text))
    assert planes == bytes([1, 2, 3, 4, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1])


def test_formulas_of_sums_and_of_unknown_metrics() -> None:
    assert find_formula(ToyMetric()) is None
    assert find_formula(metric("BLEU:1+TER:3")) == {
        "kind": "sum",
        "width": 12,
        "parts": [
            {"share": 0.25, "formula": {"width": 9, "kind": "bleu"}},
            {"share": 0.75, "formula": {"width": 3, "kind": "ter"}},
        ],
    }
