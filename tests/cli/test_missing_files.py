"""Test that every command rejects a missing input file as a usage error."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mosesplug.cli import application
from mosesplug.cli.main import main
from mosesplug.cli.shared.inputs import find_mark, list_kinds
from mosesplug.options import Opt
from tests.cli.test_help import commands

_FILES = ("FILE", "STORE", "NBEST", "GRAPHS", "WEIGHTS", "HYP", "REF", "SYSTEM", "INPUT")
"""Words in the names of values that are files."""
_ABSENT = "absent.file"


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a command, and what it declares about its files."""

    click: Any
    option: Opt

    @property
    def metavars(self) -> list[str]:
        """The name of each value in the help; a list of arguments has two values."""
        names = str(self.click.metavar or self.click.opts[0]).split()
        if self.click.param_type_name == "argument" and names[0].endswith("..."):
            names.insert(0, names[0])
        return names

    @property
    def names_files(self) -> bool:
        """Whether it is declared as files, or its name in the help is that of a file."""
        marked = self.option.exists or self.option.is_output
        return bool(marked) or any(word in str(self.click.metavar) for word in _FILES)

    def is_output(self, place: int) -> bool:
        """Whether a value names a file that the command creates."""
        marked = self.option.exists or self.option.is_output or self.option.kind == "path"
        return bool(marked) and not list_kinds(self.option, len(self.metavars))[place]

    def words(self, absent: int = -1) -> list[str]:
        """Return valid words for it; one of the values may name a missing file."""
        values = ["1" if "|" not in name else name.split("|")[0] for name in self.metavars]
        if self.names_files:
            paths = [_ABSENT if place == absent else "present" for place in range(len(values))]
            values = [
                (f"name={path},{path}" if "," in name else f"name={path}")
                if name.startswith("NAME=")
                else path
                for name, path in zip(self.metavars, paths, strict=True)
            ]
        return values if self.click.param_type_name == "argument" else [self.click.opts[0], *values]


def _parameters(words: tuple[str, ...]) -> list[_Parameter]:
    """Return the parameters of a command of the application."""
    command: Any = typer.main.get_command(application._application)
    for word in words:
        command = command.get_command(None, word)
    declared = inspect.signature(command.callback, eval_str=True).parameters
    return [
        _Parameter(each, option)
        for each in command.params
        if each.name in declared and (option := find_mark(declared[each.name], Opt))
    ]


def _calls() -> Iterator[Any]:
    """Yield calls of all commands, each with one missing file."""
    for words in commands():
        if words == ("mert-moses",):  # parsed as Perl does; its files are settings of tune
            continue
        parameters = _parameters(words)
        for each in parameters:
            for place, name in enumerate(each.metavars):
                if not each.names_files or each.is_output(place):
                    continue
                call = [*words]
                for other in parameters:
                    if other is each:
                        call += each.words(place)
                    elif other.click.required:
                        call += other.words()
                yield pytest.param(call, id=" ".join([*words, each.click.opts[0], name]))


@pytest.mark.parametrize("call", [*_calls()])
def test_missing_file_is_a_usage_error(
    call: list[str],
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    present = tmp_path / "present"
    present.touch(mode=0o755)
    with pytest.raises(SystemExit) as ended:
        main(call)
    output, error = capfd.readouterr()
    assert ended.value.code == 2, error
    assert _ABSENT in error
    assert error.count("\n") == 1
    assert output == ""
    assert [*tmp_path.iterdir()] == [present]
