"""Test that the help of every command fits on a screen."""

from __future__ import annotations

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
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 80


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
