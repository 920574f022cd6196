"""Spellings that are accepted beside the documented ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from mosesplug.api.keywords import collect_keywords
from mosesplug.cli import application
from mosesplug.cli.run.mert_options import read_command_line
from mosesplug.options import list_options, list_spellings
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.spellings import spell_bounds, spell_range
from mosesplug.settings.toml import read_settings
from tests.cli.test_help import commands


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("refs", ["references"]),
        ("held-out", ["heldout"]),
        ("heldout-refs", ["heldout-references", "held-out-refs", "held-out-references"]),
        ("nbest", []),
        ("prefs", []),
    ],
)
def test_spellings(name: str, others: list[str]) -> None:
    assert list_spellings(name) == others


@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_every_option_of_every_command_has_them(words: tuple[str, ...]) -> None:
    if words == ("mert-moses",):
        return
    command: Any = typer.main.get_command(application._application)
    for word in words:
        command = command.get_command(None, word)
    options = (each for each in command.params if each.param_type_name == "option")
    names = [name for each in options for name in each.opts]
    for name in names:
        assert {f"--{each}" for each in list_spellings(name.lstrip("-"))} <= {*names}
    assert len(names) == len(set(names))


def test_lists_have_one_format_everywhere() -> None:
    [setting] = [each for each in list_options(ListSettings) if each.name == "format"]
    assert "list-format" in setting.accepted


def test_files_scripts_and_keywords_take_them(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[held-out]\nheld-out-every = 5\n[data]\nreferences = "dev.en"\n')
    assert read_settings(path) == {"heldout-every": 5, "refs": "dev.en"}
    read = read_command_line(["--held-out-every=5", "-references", "x"])
    assert read.values == {"heldout-every": 5, "refs": "x"}
    assert collect_keywords({"held_out_every": 5}) == {"heldout-every": 5}


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("LM:0:1", "LM:0..1"),
        ("LM:0..1", "LM:0..1"),
        ("LM::1", "LM:..1"),
        ("LM:-1:", "LM:-1.."),
        ("tm:0:1,-1e-3:.5,0..1", "tm:0..1,-1e-3...5,0..1"),
        ("a:b:>0", "a:b:>0"),
        ("LM:-inf:0", "LM:-inf..0"),
        ("LM:=1", "LM:=1"),
    ],
)
def test_bounds(text: str, spelled: str) -> None:
    assert spell_bounds(text) == spelled


def test_ranges() -> None:
    assert spell_range("2..5") == spell_range("2:5") == "2:5"
    assert spell_range("-5") == "-5"
