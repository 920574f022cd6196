"""The oracle of all lists so far is one number everywhere, and is computed once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import mosesplug
from mosesplug.results.views import lists
from mosesplug.results.views.list_statistics import summarize_iterations
from mosesplug.results.views.run import open_run
from mosesplug.results.views.texts import ParallelText
from tests.results.runs import LISTS, gather_report, make_run


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of hypotheses of each search for an oracle."""
    counts: list[int] = []
    search = lists.score_oracle

    def counted(tuning_set: object, metric: object) -> float:
        counts.append(tuning_set.n_hyps)  # type: ignore[attr-defined]
        return search(tuning_set, metric)  # type: ignore[arg-type]

    monkeypatch.setattr(lists, "score_oracle", counted)
    return counts


def list_oracles(directory: Path) -> list[float | None]:
    with open_run(directory) as run:
        return [each.oracle for each in summarize_iterations(run)]


def test_list_report_and_table_have_the_same_oracles(tmp_path: Path) -> None:
    make_run(tmp_path)
    with open_run(tmp_path) as run:
        of_report = [each.oracle for each in gather_report(run, ParallelText()).iterations]
    of_table = mosesplug.open_run(tmp_path).scores()["oracle"].tolist()
    found = list_oracles(tmp_path)
    assert found == of_report == of_table
    assert sorted(map(float, of_table)) == of_table  # more lists allow no less


def test_oracles_are_searched_once(tmp_path: Path, searches: list[int]) -> None:
    make_run(tmp_path / "one", lists=LISTS[:1])
    store = make_run(tmp_path / "two") / "nbests.lmdb"
    found = list_oracles(tmp_path / "two")
    assert searches == [5, 6]
    assert list_oracles(tmp_path / "two") == found
    assert searches == [5, 6]
    # A file of another store is of no use, and what is finished later needs its own search.
    assert list_oracles(tmp_path / "one") == found[:1]
    shutil.copy(tmp_path / "one" / "nbests.lmdb" / "oracles.json", store)
    del searches[:]
    assert list_oracles(tmp_path / "two") == found
    assert len(searches) in (1, 2)  # 1 if both stores are of the same second


@pytest.mark.parametrize("damage", ["{", "[1]", '{"a": "b"}', '{"a": NaN}', ""])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: str) -> None:
    store = make_run(tmp_path) / "nbests.lmdb"
    found = list_oracles(tmp_path)
    path = store / "oracles.json"
    path.write_text(damage)
    assert list_oracles(tmp_path) == found
    assert sorted(json.loads(path.read_text()).values()) == found


def test_readers_without_permission_compute_them(tmp_path: Path, searches: list[int]) -> None:
    store = make_run(tmp_path) / "nbests.lmdb"
    target = tmp_path / "other"
    target.write_text("{}")
    (store / "oracles.json").symlink_to(target)
    found = list_oracles(tmp_path)
    (store / "oracles.json").unlink(missing_ok=True)
    (store / "oracles.json").mkdir()  # nothing can be written there, even by root
    assert list_oracles(tmp_path) == found
    assert len(searches) == 4
    assert target.read_text() == "{}"
    assert not list(store.glob(".*"))
