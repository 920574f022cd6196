"""What calls return: pickled, as tables, and as data frames."""

from __future__ import annotations

import importlib.util
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from mosesplug.api.tables.records import Tabular
from mosesplug.api.tables.table import Table
from tests.api.examples import write_example_files

LISTS = "run1.best100.out.gz"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fit(directory: Path) -> mosesplug.Fit:
    return mosesplug.optimize(
        LISTS,
        references="dev.en",
        initial="run1.dense",
        report_metrics=["WER"],
        folds=2,
        options={"restarts": 1},
    )


def list_results(fit: mosesplug.Fit) -> dict[str, Any]:
    run = mosesplug.open_run("mert-work")
    lists = mosesplug.read_nbest(LISTS)
    systems = {"base": lists.texts[::3], "new": lists.texts[1::3]}
    return {
        "fit": fit,
        "weights": fit.weights,
        "gains": fit.gains,
        "validation": fit.validation,
        "lists": lists,
        "reranked": fit.rerank(lists),
        "scores": mosesplug.score(systems["base"], "dev.en", ["WER"], samples=10),
        "comparison": mosesplug.compare(systems, "dev.en", ["WER"], samples=10, trials=10),
        "analysis": mosesplug.analyze(systems, "dev.en", ["WER"]),
        "check": mosesplug.check("dev.fr", "dev.en", nbest=LISTS),
        "run": run,
        "iterations": run.iterations,
        "hypotheses": run.hypotheses(),
        "run's scores": run.scores(),
        "run's weights": run.weights(),
        "plugin": mosesplug.Plugin("metric", "x", "y", "z"),
        "report": mosesplug.WarmUpReport("score", 0, 0.5),
        "metric": mosesplug.StatisticsMetric(np.sum, name="SUM"),
        "usage": mosesplug.UsageError("a"),
        "format": mosesplug.FormatError("a", path="b", line=3, remedy="c"),
    }


def test_results_can_be_pickled(fit: mosesplug.Fit) -> None:
    for name, result in list_results(fit).items():
        copy = pickle.loads(pickle.dumps(result))
        assert type(copy) is type(result), name
        if not isinstance(result, mosesplug.StatisticsMetric | Exception):
            assert repr(copy) == repr(result), name
        else:
            assert str(copy) == str(result) or copy == result, name
    # A pickled fit does what the fit does.
    copy = pickle.loads(pickle.dumps(fit))
    assert copy.rerank(LISTS).texts == fit.rerank(LISTS).texts
    assert copy.score == fit.score


def test_what_prints_as_a_table_has_one(fit: mosesplug.Fit) -> None:
    for name, result in list_results(fit).items():
        if isinstance(result, Tabular):
            assert isinstance(result.table, Table), name
            assert len(result.table), name
            assert repr(result.table), name
        if not isinstance(result, Exception | mosesplug.StatisticsMetric):
            assert "object at 0x" not in repr(result), name


def test_gains_print_and_are_a_table(fit: mosesplug.Fit) -> None:
    gains = fit.gains
    assert [gain.data for gain in gains] == ["learned from", "folds"]
    assert repr(gains).count("gain on") == len(gains)
    assert "95 % interval" in repr(gains)
    assert gains._repr_html_().count("<table") == len(gains)
    table = gains.table
    assert set(table["metric"]) == {"BLEU", "WER"}
    first, row = gains[0].metrics[0], table[0]
    assert (row["data"], row["sentences"]) == (gains[0].data, gains[0].sentences)
    assert row["difference"] == first.difference
    assert row["low"] == (None if math.isnan(first.interval[0]) else first.interval[0])
    assert len(gains.of_data("folds")) == 1
    assert gains[:1][0] is gains[0]
    assert "hold out sentences" in repr(type(gains)())


def test_tables_of_weights_and_lists(fit: mosesplug.Fit) -> None:
    table = mosesplug.WeightTable.of_mapping({"TM": (0.25, -0.5)}, {"a_b": 1.0}).table
    assert list(table) == [
        {"feature": "TM_0", "weight": 0.25},
        {"feature": "TM_1", "weight": -0.5},
        {"feature": "a_b", "weight": 1.0},
    ]
    lists = mosesplug.NBest([0, 1], ["a", "b"], [[1.0], [2.0]], names=["id"], scores=[3, 4])
    assert list(lists.table) == [
        {"id": 0, "hyp": "a", "id_": 1.0, "model_score": 3.0},
        {"id": 1, "hyp": "b", "id_": 2.0, "model_score": 4.0},
    ]


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="no pandas")
def test_tables_become_data_frames(fit: mosesplug.Fit) -> None:
    for name, result in list_results(fit).items():
        if isinstance(result, Tabular | Table):
            frame = result.to_pandas()
            table = result.table if isinstance(result, Tabular) else result
            assert tuple(frame.columns) == table.columns, name
            assert len(frame) == len(table), name


def test_a_tuner_is_not_pickled(directory: Path) -> None:
    with (
        mosesplug.Tuner.open("asked", references="dev.en", features=["LM0"]) as tuner,
        pytest.raises(TypeError, match="a Tuner holds its directory: pickle its run"),
    ):
        pickle.dumps(tuner)
