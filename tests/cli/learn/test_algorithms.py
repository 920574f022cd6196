"""Test the list of algorithms, the page of each, and the old spelling of their settings."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from mosesplug.cli.learn.setting_flags import rewrite_settings
from mosesplug.cli.main import main
from mosesplug.optimizers import Algorithm, algorithms
from mosesplug.options import options_by_field

every_algorithm = pytest.mark.parametrize(
    "algorithm", algorithms().values(), ids=lambda each: each.name
)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["algorithms", *words])
    assert not ended.value.code
    return capsys.readouterr().out


def joined(text: str) -> str:
    """Return a text without the line breaks, which may follow a hyphen."""
    return "".join(text.split())


def test_table_fits_a_screen_and_has_every_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    table = run(capsys, "--all")
    lines = table.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 80
    named = [line.split() for line in lines if line[:3].strip()]
    rows = {words[0]: words[1:5] for words in named}
    for name, algorithm in algorithms().items():
        able = (
            algorithm.graphs,
            algorithm.tunes_sparse,
            algorithm.learner is not None,
            algorithm.keeps_bounds,
        )
        assert rows[name] == ["yes" if each else "-" for each in able]
        assert joined(f"{algorithm.summary} ({algorithm.source})") in joined(
            table.replace(" " * 46, "")
        )


def test_wrong_name_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["algorithms", "mirra"])
    assert ended.value.code == 2
    assert "unknown algorithm 'mirra'; known: adagrad, " in (said := capsys.readouterr().err)
    assert said.endswith(". Did you mean mira?\n")


@every_algorithm
def test_page_has_every_setting(algorithm: Algorithm, capsys: pytest.CaptureFixture[str]) -> None:
    page = run(capsys, algorithm.name)
    lines = page.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 80
    assert f"--algorithm {algorithm.name} " in page
    defaults = algorithm.options()
    declared = options_by_field(algorithm.options)
    for setting in fields(algorithm.options):
        default = getattr(defaults, setting.name)
        of_tune = algorithm.tune_options.get(setting.name, default)
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        if of_tune != default:
            shown += f"; of tune: {of_tune}"
        (at,) = (at for at, line in enumerate(lines) if line.startswith(f"  {setting.name}  "))
        assert lines[at].endswith(f"  [{shown}]") or lines[at + 1] == f"      [{shown}]"
        assert joined(f"{declared[setting.name].help}.") in joined(page)
        assert joined(f"({declared[setting.name].source})") in joined(page)


@every_algorithm
def test_json_has_every_setting(algorithm: Algorithm, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, algorithm.name, "--json"))
    assert document["summary"] == algorithm.summary
    settings: list[dict[str, Any]] = document["settings"]
    assert [each["name"] for each in settings] == [each.name for each in fields(algorithm.options)]
    assert algorithm.options(**{each["name"]: each["default"] for each in settings})


def test_json_lists_every_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "--json"))
    assert [each["name"] for each in document] == list(algorithms())
    graphs = {each["name"] for each in document if each["graphs"]}
    assert graphs == {name for name, entry in algorithms().items() if entry.graphs}
    assert {"mert", "kbmira", "mira"} <= graphs


def test_settings_in_the_old_spelling_become_options() -> None:
    words = [
        *("lists", "--restarts", "5", "--no-shuffle", "--seed", "3", "--shuffle", "--epochs=3"),
        *("--algorithm-restarts", "-2", "--mistake", "x", "--", "--restarts", "1"),
    ]
    assert list(rewrite_settings(words, {"--seed"})) == [
        *("lists", "--option", "restarts=5", "--option", "shuffle=false", "--seed", "3"),
        *("--option", "shuffle=true", "--option", "epochs=3", "--option", "restarts=-2"),
        *("--mistake", "x", "--", "--restarts", "1"),
    ]


def test_old_spelling_is_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["optimize", "--help"])
    assert "--restarts" not in capsys.readouterr().out


def test_an_option_of_the_command_is_not_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(rewrite_settings(["--restarts", "5"], {"--restarts"})) == ["--restarts", "5"]
    with pytest.raises(SystemExit) as ended:
        main(["optimize", "--restart", "5"])
    assert ended.value.code == 2
    assert "No such option" in capsys.readouterr().err
