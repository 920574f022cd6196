"""Options of the commands that read n-best lists, generated from their settings."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from mosesplug.cli.shared.setting_options import make_parameters, take_values
from mosesplug.settings.declare import list_settings
from mosesplug.settings.lists import ListSettings, make_list_settings

__all__ = ["make_list_parameters", "print_formats", "take_list_settings"]


def make_list_parameters(without: Collection[str] = ()) -> list[inspect.Parameter]:
    """Return a parameter with an option for each setting of reading lists, except some."""
    settings = [each for each in list_settings(ListSettings) if each.name not in without]
    return make_parameters(settings, has_panels=False)


def take_list_settings(given: dict[str, Any]) -> ListSettings:
    """Take the settings of reading lists out of the parameters of a command.

    Raises:
        UsageError: a value cannot be used.
    """
    return make_list_settings(take_values(list_settings(ListSettings), given))


def print_formats(files: Sequence[Path], settings: ListSettings, *, quiet: bool = False) -> None:
    """Print the formats that were found, where they are not that of Moses.

    Raises:
        FormatError: a file cannot be read, or has no known format.
    """
    if quiet:
        return
    from mosesplug.learning.list_blocks import describe_formats

    for line in describe_formats(files, settings):
        print(line, file=sys.stderr)
