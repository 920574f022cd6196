"""Test that the help of every command fits on a screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from mosesplug.cli import application
from mosesplug.cli.main import main


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command of the application."""
    group: Any = typer.main.get_command(application._application)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from ((name, each) for each in command.list_commands(None))
        else:
            yield (name,)


@pytest.mark.parametrize("words", [(), *commands()], ids=" ".join)
def test_help_fits_on_a_screen(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert not ended.value.code
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert len(lines) <= 104
    assert max(map(len, lines)) <= 80
    # The type of a value is cut at its first blank, if no name stands in its place.
    assert not [line for line in lines if "range>" in line or re.match("  -.* <", line)]


@pytest.mark.parametrize("words", [(), ("nbest",), *commands()], ids=" ".join)
def test_short_option_of_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    shown = [_run([*words, option], capsys) for option in ("--help", "-h")]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", ["tune", "optimize"])
def test_common_options_are_a_part_of_all(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    common, every = (_list_options(_run([name, option], capsys)) for option in ("-h", "--help-all"))
    command: Any = typer.main.get_command(application._application).get_command(None, name)
    assert {f"--{each}" for each in command.common} <= common
    assert len(common) <= 20
    shown = {each.opts for each in map(_Names, command.params)}
    assert all(not names.isdisjoint(every) for names in shown if names)
    assert common < every


class _Names:
    """The names of an option that is shown."""

    def __init__(self, parameter: Any) -> None:
        is_shown = parameter.param_type_name == "option" and not parameter.hidden
        self.opts = frozenset(parameter.opts if is_shown else ())


def _list_options(text: str) -> set[str]:
    return set(re.findall(r"^  (-[\w-]+)", text, re.M))


def _run(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tun"], "No such command 'tun'. Did you mean tune?"),
        (["nbest", "shw"], "No such command 'shw'. Did you mean show?"),
        (["xyzzy"], "No such command 'xyzzy'."),
    ],
)
def test_unknown_command_gets_a_suggestion(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"{message}\n")
