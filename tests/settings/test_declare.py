"""One field of a settings class is enough: everything else is generated from it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from mosesplug.cli.main import main
from mosesplug.cli.run.mert_options import (
    format_markdown_table,
    format_usage,
    list_additions,
    list_script_options,
    read_command_line,
    spell_option,
)
from mosesplug.cli.shared.commands import NestedSettings, make_command, make_parameters
from mosesplug.cli.table import COMMANDS, Command
from mosesplug.errors import UsageError
from mosesplug.options import PANELS, Opt, OptionGroup, list_compared_values, list_options
from mosesplug.settings.checks import check_settings
from mosesplug.settings.configuration import Configuration, RunPlan
from mosesplug.settings.decoding import DecodingSettings
from mosesplug.settings.document import explain_setting, format_markdown, make_json_schema
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.optimizer import OptimizerSettings
from mosesplug.settings.toml import format_settings, format_template, read_settings


@dataclass(frozen=True)
class _Learning(OptimizerSettings):
    """A copy of a settings class with one more field."""

    patience_factor: Annotated[
        float,
        Opt(
            "Factor of patience",
            "Learning",
            minimum=1.0,
            aliases=("pf",),
            script="patiencefactor",
            excludes=("last",),
            excludes_because="The last weights are not waited for",
            requires=("epochs",),
            stored_name="patience factor",
            details="More about the factor.",
        ),
    ] = 1.5


@dataclass(frozen=True)
class _Configuration(Configuration):
    optimization: _Learning = field(default_factory=_Learning)


@dataclass(frozen=True)
class _Plan(RunPlan):
    configuration: _Configuration


@dataclass(frozen=True)
class _Inner:
    size: Annotated[int, Opt("Size", "Data")] = 1
    kind: Annotated[Literal["a", "b"], Opt("Kind", "Data")] = "a"


@dataclass(frozen=True)
class _Outer:
    inner: Annotated[_Inner | None, OptionGroup(Opt("Ask for it", "Data"))] = None


@dataclass(frozen=True)
class _New:
    """Tune."""

    given: Annotated[dict[str, Any], NestedSettings(list_options(_Plan))]


KEPT: list[_New] = []


def keep(options: _New) -> None:
    """Keep the options that a command line gives."""
    KEPT.append(options)


NEW = next(each for each in list_options(_Plan) if each.name == "patience-factor")


def test_a_field_is_a_setting() -> None:
    assert {each.name for each in list_options(_Plan)} - {
        each.name for each in list_options(RunPlan)
    } == {"patience-factor"}
    assert (NEW.kind, NEW.default, NEW.panel) == ("real", 1.5, "Learning")
    assert NEW.path == ("configuration", "optimization", "patience_factor")


@pytest.mark.parametrize("cls", [RunPlan, LearningSettings, ListSettings])
def test_attributes_of_settings_have_their_types(cls: type) -> None:
    types = {each.name: str(each.type) for each in fields(Opt)}
    for found in list_options(cls):
        for name, kind in types.items():
            value = getattr(found, name)
            if kind == "tuple[str, ...]":
                assert type(value) is tuple, (found.name, name)
                assert all(type(each) is str for each in value), (found.name, name)
            elif kind in ("str", "bool"):
                assert type(value).__name__ == kind, (found.name, name)


def test_a_field_is_an_option_of_tune(capsys: pytest.CaptureFixture[str]) -> None:
    command = make_command("new", Command(f"{__name__}:keep", "", f"{__name__}:_New"))
    for spelling in ("--patience-factor", "--pf", "--patiencefactor"):
        KEPT.clear()
        with pytest.raises(SystemExit) as ended:
            command([spelling, "2"])
        assert not ended.value.code
        assert [_New({"patience-factor": 2.0})] == KEPT
    with pytest.raises(SystemExit):
        command(["--help"])
    text = capsys.readouterr().out
    learning = text.partition("Learning:")[2].partition("\n\n")[0]
    assert re.search(r"--patience-factor X +Factor of patience \[1.5\]", learning)
    assert "--pf" not in text


def test_a_field_is_an_option_of_mert_moses() -> None:
    option = next(each for each in list_script_options(_Plan) if each.script == "patiencefactor")
    assert spell_option(option) == "--patiencefactor=X"
    for spelling in ("--patiencefactor=2", "-patiencef=2", "--patience-factor=2", "--pf=2"):
        assert read_command_line([spelling], _Plan).values == {"patience-factor": 2.0}
    assert "--patiencefactor=X" in format_usage(_Plan)
    assert "| `--patiencefactor=X` | Factor of patience [1.5] | honored |" in format_markdown_table(
        _Plan
    )


def test_a_field_appears_in_settings_files_and_documents(tmp_path: Path) -> None:
    text = format_settings({"patience-factor": 2.5}, _Plan)
    assert text == "\n[learning]\npatience-factor = 2.5\n"
    file = tmp_path / "run.toml"
    file.write_text(text)
    assert read_settings(file, _Plan) == {"patience-factor": 2.5}
    with pytest.raises(UsageError, match="unknown setting"):
        read_settings(file)
    schema = make_json_schema(_Plan)["properties"]["learning"]["properties"]["patience-factor"]
    assert schema == {
        "type": "number",
        "description": "Factor of patience",
        "minimum": 1.0,
        "default": 1.5,
    }
    assert "patience-factor" in format_template(_Plan)
    assert explain_setting(NEW) in format_markdown(_Plan)
    assert "More about the factor." in explain_setting(NEW)


def test_a_field_is_checked() -> None:
    good = {"patience-factor": 2.0, "epochs": 3}
    check_settings(list_options(_Plan), good)
    for values, said in (
        ({**good, "patience-factor": 0.5}, "--patience-factor must be at least 1, not 0.5"),
        ({"patience-factor": 2.0}, "--patience-factor requires --epochs: add --epochs, or "),
        (
            {**good, "last": True},
            "--patience-factor and --last exclude each other: use one of them. The last weights",
        ),
    ):
        with pytest.raises(UsageError, match=said):
            check_settings(list_options(_Plan), values)


def test_a_field_is_compared_when_a_run_is_continued() -> None:
    assert list_compared_values(_Learning())["patience factor"] == "1.5"
    assert list_compared_values(_Learning(patience_factor=2.0))["patience factor"] == "2.0"
    assert "patience factor" not in list_compared_values(OptimizerSettings())


def test_groups_require_the_setting_that_enables_them() -> None:
    found = {option.name: option for option in list_options(_Outer)}
    assert found["inner"].kind == "flag"
    assert found["size"].requires == ("inner",)
    assert found["kind"].choices == ("a", "b")


SETTINGS = list_options(RunPlan)


def test_every_help_is_short() -> None:
    for each in SETTINGS:
        assert len(each.help.split()) <= 12, each.name
        assert each.help.endswith("...") or not each.help.endswith("."), each.name


def test_no_spelling_is_used_twice() -> None:
    spellings = [name for each in SETTINGS for name in each.spellings]
    assert len(spellings) == len(set(spellings))


def test_conditions_name_settings() -> None:
    names = {each.name for each in SETTINGS}
    for each in SETTINGS:
        for condition in (*each.requires, *each.excludes):
            for alternative in condition.split(" or "):
                assert alternative.partition("=")[0] in names, each.name


def test_every_spelling_works_in_both_programs() -> None:
    command = make_command("tune", COMMANDS["tune"])
    words = {word for option in command.params for word in option.opts}
    for each in SETTINGS:
        if each.name == "heldout-refs":  # mosesplug tune has --heldout INPUT REFS
            continue
        for spelling in each.spellings:
            assert f"--{spelling}" in words
            value = {"integer": "=1", "real": "=1", "flag": ""}.get(each.kind, "=a=b")
            assert list(read_command_line([f"--{spelling}{value}"]).values) == [each.name]


def test_help_fits_on_a_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["tune", "--help"], ["mert-moses", "--help"], ["settings", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].lower().startswith("usage: "), words
        assert len(lines) <= 104, words
        assert max(map(len, lines)) <= 80, words
    assert all(f"\n{panel}:\n" in format_usage() for panel in PANELS)


def test_added_options_are_named_in_the_help() -> None:
    assert {each.name for each in list_additions()} >= {"heldout", "online", "shards", "runs"}


def test_parameters_have_no_default() -> None:
    assert all(each.default is None for each in make_parameters(SETTINGS))
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in make_parameters(SETTINGS))


def test_values_are_compared_under_the_names_of_the_store() -> None:
    found = list_compared_values(replace(OptimizerSettings(), window=2))
    assert list(found) == [
        *("active features", "dropped features", "least sentences of sparse features"),
        *(
            "number of sparse features",
            "ranges",
            "earlier iterations",
            "historic bests",
            "interpolation",
        ),
        "interpolation start",
        "predictable seeds",
    ]
    assert found["earlier iterations"] == "2"
    assert [each.stored_name for each in list_options(DecodingSettings) if each.stored_name] == [
        *("n-best size", "lattice samples", "forced decoding", "transformation"),
    ]


def test_the_page_of_settings_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text() == format_markdown(), (
        "run: mosesplug settings --markdown > docs/settings.md"
    )
