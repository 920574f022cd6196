"""A command's options for the settings of every registered algorithm, made from their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, fields
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import typer

from mosesplug.optimizers import algorithms

__all__ = ["settings_of", "with_algorithm_options"]

_PREFIX = "algorithm_"

_Sources: TypeAlias = dict[tuple[str, str], list[str]]
"""Algorithms by the default of a setting and where it is from."""


def with_algorithm_options(function: Callable[..., None]) -> Callable[..., None]:
    """Put the registered algorithms' settings in the place of ``**chosen``, and say what each does.

    A setting with the name of a parameter that the command has already is the parameter
    ``algorithm_NAME``; ``settings_of`` gives all of them their own names.
    """
    signature = inspect.signature(function, eval_str=True)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for name, annotation in _algorithm_parameters({p.name for p in parameters}).items():
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        )

    def with_options(**values: Any) -> None:
        function(**values)

    with_options.__doc__ = f"{inspect.getdoc(function)}\n\n{_what_they_do()}"
    with_options.__name__ = "optimize"
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=keyword_only
    )
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def settings_of(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given, by their names in the algorithms' options."""
    return {name.removeprefix(_PREFIX): v for name, v in chosen.items() if v is not None}


def _what_they_do() -> str:
    """A line for each algorithm, kept as they are by click's mark of such paragraphs."""
    width = max(map(len, algorithms()))
    lines = (f"  {name:{width}}  {tuner.summary}" for name, tuner in algorithms().items())
    return "\n".join(["\b", "Algorithms:", *lines])


def _algorithm_parameters(taken: Collection[str]) -> dict[str, Any]:
    """Annotation of the option for each setting of any algorithm, by the parameter's name."""
    kinds: dict[str, Any] = {}
    choices: dict[str, dict[str, None]] = {}
    texts: dict[str, dict[str, _Sources]] = {}
    for tuner in algorithms().values():
        hints = get_type_hints(tuner.options)
        defaults = tuner.options()
        for setting in fields(tuner.options):
            hint = hints[setting.name]
            kind = hint if hint in (int, float, bool) else str
            # Where two algorithms differ, the one that is called reads the text itself.
            kinds[setting.name] = kind if kinds.get(setting.name, kind) is kind else str
            choices.setdefault(setting.name, {}).update(dict.fromkeys(_choices(hint)))
            about = texts.setdefault(setting.name, {}).setdefault(_help(setting), {})
            source = str(getattr(defaults, setting.name)), setting.metadata["source"]
            about.setdefault(source, []).append(tuner.name)
    parameters = {name: f"{_PREFIX}{name}" if name in taken else name for name in texts}
    return {
        parameters[name]: Annotated[
            kinds[name] | None,
            typer.Option(
                _spelling(parameters[name], kinds[name]),
                help=_described(about),
                metavar="|".join(choices[name]) or None,
                show_default=False,
            ),
        ]
        for name, about in texts.items()
    }


def _help(setting: Field[Any]) -> str:
    """What it is, and beside what else it counts."""
    text, condition = setting.metadata["help"], setting.metadata.get("only_with")
    return text if condition is None else f"{text}. Only with {condition}"


def _choices(hint: Any) -> tuple[str, ...]:
    """The words that a setting of this type can be; none if it can be anything."""
    return get_args(hint) if get_origin(hint) is Literal else ()


def _described(about: dict[str, _Sources]) -> str:
    """A setting's help, defaults and sources; algorithms that have the same stand together."""
    sentences = []
    for text, sources in about.items():
        owners = [name for names in sources.values() for name in names]
        whose = f"{', '.join(owners)}: " if len(about) > 1 else ""
        said = bool(whose) and len(sources) == 1
        notes = [
            f"[{default}; {'' if said else ', '.join(names) + ': '}{source}]"
            for (default, source), names in sources.items()
        ]
        sentences.append(f"{whose}{text}. {' '.join(notes)}")
    return " ".join(sentences)


def _spelling(name: str, kind: Any) -> str:
    """A setting as an option; one that is true or false can be set to either."""
    option = name.replace("_", "-")
    return f"--{option}/--no-{option}" if kind is bool else f"--{option}"
