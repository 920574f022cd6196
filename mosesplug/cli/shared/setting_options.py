"""Options of reading lists for commands whose parameters are not all declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

from mosesplug.cli.shared.commands import make_parameters, take_values
from mosesplug.cli.shared.output import print_formats as print_formats
from mosesplug.options import list_options
from mosesplug.settings.lists import ListSettings, make_list_settings


def add_parameters(
    function: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """Put parameters in the place of ``**given`` of a command."""
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *parameters)]

    def command(**values: Any) -> None:
        function(**values)

    command.__doc__ = function.__doc__
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=keyword_only
    )
    return command


def make_list_parameters(without: Collection[str] = ()) -> list[inspect.Parameter]:
    """Return parameters for the settings of reading lists, except some."""
    settings = [each for each in list_options(ListSettings) if each.name not in without]
    return make_parameters(settings, has_panels=False)


def take_list_settings(given: dict[str, Any]) -> ListSettings:
    """Take the settings of reading lists out of the parameters of a command.

    Raises:
        UsageError: a value cannot be used.
    """
    return make_list_settings(take_values(list_options(ListSettings), given))
