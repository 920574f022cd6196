"""Test how settings are named in messages, and how progress is reported."""

from __future__ import annotations

import pytest

from formats.errors import FormatError
from mosesplug.api.keywords import LEARNING, RUN
from mosesplug.errors import DataError, Message, spell_option
from mosesplug.settings.defaults import fill_defaults


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("continue with {--continue}", "continue with resume=True"),
        ("name another {--working-dir}", "name another working_dir"),
        ("{--select average} or", "select='average' or"),
        ("{--runs 3}, give {--refs} FILE", "runs=3, give references FILE"),
        ("leave {--online} out, or {--iteration 2}", "leave online=True out, or iteration=2"),
    ],
)
def test_messages_of_runs_name_keywords(template: str, expected: str) -> None:
    with pytest.raises(DataError) as caught, RUN.in_messages():
        raise DataError(template)
    assert str(caught.value) == expected
    caught.value.spell(spell_option)
    assert str(caught.value) == template.replace("{", "").replace("}", "")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("add {--folds 5} or {--held-out 0.2}", "add folds=5 or held_out=0.2"),
        ("{--heldout-refs} FILE ({--sparse-init})", "heldout_references FILE (sparse_initial)"),
        ("{--no-ids} and {--ids}", "ids=False and ids=True"),
        ("{--nbest} or {--from} STORE, {--async}", "lists or store STORE, asynchronous=True"),
        ("{--format nemo:N}, {--sparse-weights}", "format='nemo:N', sparse_weights"),
        ("cdec --show, --overwrite", "cdec --show, --overwrite"),
    ],
)
def test_messages_of_learning_name_keywords(template: str, expected: str) -> None:
    assert Message(template, LEARNING) == expected
    assert Message(Message(template), LEARNING) == expected


def test_messages_about_files_name_keywords_in_the_remedy() -> None:
    with pytest.raises(FormatError) as caught, RUN.in_messages():
        raise FormatError("no list", path="--seed", line=3, remedy="Use {--overwrite}")
    assert str(caught.value) == "--seed:3: no list. Use overwrite=True"


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
