"""Check that the files exist which a command line names, before the command runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mosesplug.errors import UsageError
from mosesplug.options import Opt

Mark = TypeVar("Mark")


def find_mark(parameter: inspect.Parameter, kind: type[Mark]) -> Mark | None:
    """Return the mark of this type in the annotation of a parameter."""
    marks = getattr(parameter.annotation, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def check_inputs(parameters: Iterable[inspect.Parameter], values: Mapping[str, Any]) -> None:
    """Check that the input files of a command exist.

    Raises:
        UsageError: a file is missing, or a value has no valid form.
    """
    for parameter in parameters:
        value, option = values.get(parameter.name), find_mark(parameter, Opt)
        if not value or option is None or not option.exists:
            continue
        names = list(value) if isinstance(value, list | tuple) else [value]
        if isinstance(option.exists, tuple) and len(names) < len(option.exists):
            continue  # the command itself says how many it takes
        for place, kind in enumerate(list_kinds(option, len(names))):
            if kind:
                _CHECKS[kind](names[place], _spell(option, place - len(names)))


def list_kinds(option: Opt, count: int) -> Sequence[str]:
    """Return the kind of files that each of so many values of an option names."""
    first, *last = (option.exists,) if isinstance(option.exists, str) else option.exists
    return [*[first] * (count - len(last)), *last]


def _spell(option: Opt, place: int) -> str:
    """Return a value as messages call it: ``--refs``, or ``HYP``.

    Args:
        place: the value among those of the option, -1 for the last.
    """
    if not option.is_positional:
        return f"--{option.name}" if len(option.name) > 1 else f"-{option.name}"
    names = option.metavar.split()
    return names[max(place, -len(names))].removesuffix("...")


def _check_path(value: str | Path, what: str) -> None:
    from mosesplug.settings.paths import require_path

    require_path(value, what)


def _check_references(value: str | Path, what: str) -> None:
    from mosesplug.settings.paths import require_references

    if not Path(value).exists():  # a pipe
        require_references(value, what)


def _check_weights(value: str, what: str) -> None:
    from formats.weights.named import find_weight_files
    from mosesplug.settings.paths import split_iteration

    for path in find_weight_files(value):
        if split_iteration(str(path)) is None:
            _check_path(path, what)


def _check_scores(value: str, what: str) -> None:
    from mosesplug.settings.scores.files import parse_score_sources

    _check_named(parse_score_sources([value], what.removeprefix("--")), what)


def _check_features(value: str, what: str) -> None:
    from mosesplug.settings.features import parse_added_features

    _check_named(parse_added_features([value], what.removeprefix("--")), what)


def _check_monitor(value: str, what: str) -> None:
    from mosesplug.settings.online import parse_monitors

    try:
        parse_monitors([value], what.removeprefix("--"))
    except ValueError as error:
        raise UsageError(f"{what} {error}") from error


def _check_named(named: Iterable[Any], what: str) -> None:
    for source in named:
        for path in source.paths:
            _check_path(path, f"{what} {source.name}:")


_CHECKS: Mapping[str, Callable[[Any, str], None]] = {
    "path": _check_path,
    "file": _check_path,
    "references": _check_references,
    "weights": _check_weights,
    "scores": _check_scores,
    "features": _check_features,
    "monitor": _check_monitor,
}
"""The check of each kind of files; whether a ``file`` is one is left to its reader."""
