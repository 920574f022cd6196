"""``mosesplug metrics``."""

from __future__ import annotations

import json

import pytest

from mosesplug.cli.main import main
from mosesplug.errors import UsageError
from mosesplug.metrics import metric, metric_names
from mosesplug.metrics.registry import list_absent_metrics, list_metrics


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(["metrics", *words])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_the_list_has_all_metrics_and_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "--json"))
    assert [row["name"] for row in document["metrics"]] == list(metric_names())
    for row in document["metrics"]:
        assert 0 < len(row["summary"]) <= 65
        for setting in row["settings"]:
            with pytest.raises(UsageError, match=f"{setting}|number|known"):
                metric(row["name"], f"{setting}:no-such-value")
    assert set(document["absent"]) == set(list_absent_metrics())


def test_it_says_what_is_not_there_and_how_to_bring_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys)
    for name in ("TESLA", "MEANT", "BEER", "COMET"):
        assert name in text
        with pytest.raises(UsageError, match=f"not supported: .*--scores {name}=FILE"):
            metric(name)
    assert "--scores NAME=FILE" in text
    assert len(list_metrics()) == len(metric_names())
