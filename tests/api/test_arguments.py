"""Test how settings are named in messages, and how progress is reported."""

from __future__ import annotations

import pytest

from formats.errors import FormatError
from mosesplug.api.keywords import RUN
from mosesplug.errors import DataError, DecoderError
from mosesplug.settings.defaults import fill_defaults


@pytest.mark.parametrize(
    ("option", "keyword"),
    [
        ("continue it with --continue, or name another --working-dir", "resume=True, or name"),
        ("name another --working-dir", "name another working_dir"),
        ("--select average or", "select='average' or"),
        ("leave --seed out", "leave seed out"),
        ("give --refs FILE", "give references FILE"),
        ("--runs 3", "runs 3"),
        ("use a cdec with --show_target_graph", "with --show_target_graph"),
        ("the mark --- of a separator--seed", "--- of a separator--seed"),
    ],
)
def test_messages_name_keywords(option: str, keyword: str) -> None:
    with pytest.raises(DataError, match=keyword), RUN.in_messages():
        raise DataError(option)


def test_messages_about_files_name_keywords_in_the_remedy() -> None:
    with pytest.raises(FormatError) as caught, RUN.in_messages():
        raise FormatError("no list", path="--seed", line=3, remedy="Use --overwrite")
    assert str(caught.value) == "--seed:3: no list. Use overwrite=True"


def test_command_lines_of_decoders_stay_as_they_are() -> None:
    error = DecoderError("moses --threads 2 died")
    with pytest.raises(DecoderError, match="--threads 2"), RUN.in_messages():
        raise error


def test_the_algorithm_depends_on_what_a_run_learns_from() -> None:
    assert fill_defaults({})["algorithm"] == "kbmira"
    assert fill_defaults({"forest": True})["algorithm"] == "mert"
    assert fill_defaults({"algorithm": "pro"})["algorithm"] == "pro"


def test_mert_has_no_random_restarts() -> None:
    assert fill_defaults({"algorithm": "mert"})["option"] == {"restarts": 0}
    assert (
        fill_defaults({"algorithm": "mert", "option": {"method": "powell"}})["option"]["restarts"]
        == 0
    )
    for graphs in ({"forest": True}, {"decoder": "forest:graphs", "algorithm": "mert"}):
        assert fill_defaults(graphs)["option"] == {"restarts": 0}
    for option in ({"restarts": 4}, {"method": "random"}):
        assert fill_defaults({"algorithm": "mert", "option": option})["option"] == option
    found = fill_defaults({"algorithm": "mert", "option": {"polish": 30}})["option"]
    assert found == {"restarts": 0, "polish": 30}
    for others in ({"algorithm": "pro+mert"}, {"range": ("LM0:0..1",)}):
        assert "option" not in fill_defaults({"algorithm": "mert", **others})


def test_weights_are_averaged_where_that_was_measured() -> None:
    assert fill_defaults({"algorithm": "pro"})["select"] == "best-dev"
    assert fill_defaults({})["select"] == "average"
    assert fill_defaults({"algorithm": "kbmira"})["select"] == "average"
    assert fill_defaults({"algorithm": "kbmira", "last": True}).get("select") is None
    for others in ({"forest": True}, {"decoder": "forest:graphs"}):
        assert fill_defaults({"algorithm": "kbmira", **others})["select"] == "best-dev"


@pytest.mark.parametrize("algorithm", ["kbmira", "mert", "pro"])
@pytest.mark.parametrize("more", [{}, {"forest": True}, {"heldout": ["a", "b"]}, {"online": True}])
def test_each_of_several_runs_selects_as_a_single_one(
    algorithm: str, more: dict[str, object]
) -> None:
    values = {"algorithm": algorithm, **more}
    alone, several = fill_defaults(values), fill_defaults({**values, "runs": 3})
    assert several.pop("select-run", None) == alone.pop("select", None)
    assert several == {**alone, "runs": 3}
