"""A command's options for the settings of every registered algorithm, made from their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, get_type_hints

import typer

from mosesplug.optimizers import algorithms

__all__ = ["with_algorithm_options"]


def with_algorithm_options(function: Callable[..., None]) -> Callable[..., None]:
    """Put the registered algorithms' settings in the place of ``**chosen``."""
    signature = inspect.signature(function, eval_str=True)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for name, annotation in _algorithm_parameters().items():
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        )

    def with_options(**values: Any) -> None:
        function(**values)

    with_options.__doc__ = function.__doc__
    with_options.__name__ = "optimize"
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=keyword_only
    )
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def _algorithm_parameters() -> dict[str, Any]:
    """Annotation of the option for each setting of any algorithm, by the setting's name."""
    texts: dict[str, list[str]] = {}
    kinds: dict[str, Any] = {}
    for tuner in algorithms().values():
        hints = get_type_hints(tuner.options)
        defaults = tuner.options()
        for setting in fields(tuner.options):
            default = getattr(defaults, setting.name)
            source = f"[{default}; {tuner.name}: {setting.metadata['source']}]"
            first = f"{setting.metadata['help']}."
            texts.setdefault(setting.name, [first]).append(source)
            kind = hints[setting.name] if hints[setting.name] in (int, float, bool) else str
            # Where two algorithms differ, the one that is called reads the text itself.
            kinds[setting.name] = kind if kinds.get(setting.name, kind) is kind else str
    return {
        name: Annotated[
            kinds[name] | None,
            typer.Option(_spelling(name, kinds[name]), help=" ".join(text), show_default=False),
        ]
        for name, text in texts.items()
    }


def _spelling(name: str, kind: Any) -> str:
    """A setting as an option; one that is true or false can be set to either."""
    option = name.replace("_", "-")
    return f"--{option}/--no-{option}" if kind is bool else f"--{option}"
