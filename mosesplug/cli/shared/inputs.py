"""Check that the files exist which a command line names, before the command runs.

A parameter of type ``Path`` names an input. ``Annotated`` says where it does not, and which other
parameters name files::

    output: Annotated[Path, typer.Option("--output"), OUTPUT]
    refs: Annotated[Path, typer.Option("--refs"), REFERENCES]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from typer.models import ArgumentInfo, ParameterInfo


@dataclass(frozen=True)
class Files:
    """The kinds of files that the values of a parameter name.

    Attributes:
        kinds: the kind of each value, as ``Opt.exists`` has them; the first is that of all
            values but the last ones.
    """

    kinds: tuple[str, ...]

    def kinds_of(self, count: int) -> Sequence[str]:
        """Return the kinds of so many values."""
        first, *last = self.kinds
        return [*[first] * (count - len(last)), *last]


OUTPUT = Files(("",))
"""A file or directory that the command may create."""
REFERENCES = Files(("references",))
"""References: a file, or the prefix of several."""
SCORES = Files(("scores",))
"""``NAME=FILE,...`` with marks behind it."""
WEIGHTS = Files(("weights",))
"""Files of weights, a run, or the weights themselves."""
_INPUT = Files(("path",))


def check_inputs(parameters: Iterable[inspect.Parameter], values: Mapping[str, Any]) -> None:
    """Check that the input files of a command exist.

    Raises:
        UsageError: a file is missing, or a value has no valid form.
    """
    for parameter in parameters:
        value = values.get(parameter.name)
        files = find_files(parameter)
        if not value or files is None:
            continue
        each = list(value) if isinstance(value, list | tuple) else [value]
        if len(each) < len(files.kinds):
            continue  # the command itself says how many it takes
        for place, kind in enumerate(files.kinds_of(len(each))):
            if kind:
                _CHECKS[kind](each[place], _spell(parameter, place - len(each)))


def find_files(parameter: inspect.Parameter) -> Files | None:
    """Return what a parameter of a command names; None: no files."""
    marks = getattr(parameter.annotation, "__metadata__", ())
    marked = next((each for each in marks if isinstance(each, Files)), None)
    return marked or (_INPUT if _has_path(parameter.annotation) else None)


def _has_path(annotation: Any) -> bool:
    return annotation is Path or any(map(_has_path, get_args(annotation)))


def _spell(parameter: inspect.Parameter, place: int) -> str:
    """Return a value as messages call it: ``--refs``, or ``HYP``.

    Args:
        place: the value among those of the parameter, -1 for the last.
    """
    marks = parameter.annotation.__metadata__
    info = next(each for each in marks if isinstance(each, ParameterInfo))
    if isinstance(info, ArgumentInfo):
        names = str(info.metavar).split()
        return names[max(place, -len(names))].removesuffix("...")
    # Typer keeps the first spelling in the place of the default.
    spellings = [str(each) for each in (info.default, *(info.param_decls or ()))]
    long = (each for each in spellings if each.startswith("--"))
    return next(long, f"--{parameter.name.replace('_', '-')}")


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
    from mosesplug.settings.scores import parse_score_sources

    _check_named(parse_score_sources([value], what.removeprefix("--")), what)


def _check_features(value: str, what: str) -> None:
    from mosesplug.settings.features import parse_added_features

    _check_named(parse_added_features([value], what.removeprefix("--")), what)


def _check_named(named: Iterable[Any], what: str) -> None:
    for each in named:
        for path in each.paths:
            _check_path(path, f"{what} {each.name}:")


_CHECKS: Mapping[str, Callable[[Any, str], None]] = {
    "path": _check_path,
    "file": _check_path,
    "references": _check_references,
    "weights": _check_weights,
    "scores": _check_scores,
    "features": _check_features,
}
"""The check of each kind of files; whether a ``file`` is one is left to its reader."""
