"""Metrics by the names and settings that Moses' programs give them.

``--sctype BLEU --scconfig case:false,reflen:shortest`` is ``metric("BLEU",
"case:false,reflen:shortest")``. What is registered here is what the conformance tests test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from mosesplug.errors import UsageError
from mosesplug.metrics.bleu import Bleu, ReferenceLength
from mosesplug.metrics.edit_distance import Cder, ReferenceChoice, Wer
from mosesplug.metrics.per import Per
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter import Ter

__all__ = ["metric", "metric_names", "parse_settings"]


def metric(name: str, settings: str = "") -> Metric:
    """The metric that ``--sctype name --scconfig settings`` asks for.

    Args:
        name: in Moses' spelling, such as ``BLEU``.
        settings: ``name:value`` pairs separated by commas or blanks, as in ``--scconfig``.

    Raises:
        UsageError: an unknown metric, setting or value; the message lists the known ones.
    """
    known = f"known metrics: {', '.join(metric_names())}"
    if "," in name:
        raise UsageError(f"interpolated metrics ({name}) are not supported yet; {known}")
    if name in _PLANNED:
        raise UsageError(f"the metric {name} is not supported yet; {known}")
    if name not in _FACTORIES:
        raise UsageError(f"unknown metric {name!r}; {known}")
    return _FACTORIES[name](parse_settings(settings))


def metric_names() -> tuple[str, ...]:
    """The names that ``metric`` knows, sorted."""
    return tuple(sorted(_FACTORIES))


def parse_settings(settings: str) -> dict[str, str]:
    """``"case:false,reflen:shortest"`` as ``{"case": "false", "reflen": "shortest"}``.

    Raises:
        UsageError: a piece is not ``name:value``, or one name is given two values.
    """
    parsed: dict[str, str] = {}
    for piece in settings.replace(",", " ").split():
        name, colon, value = piece.partition(":")
        if not (name and colon and value):
            raise UsageError(f"metric setting {piece!r} is not of the form name:value")
        if parsed.setdefault(name, value) != value:
            raise UsageError(
                f"metric setting {name} is given twice: {name}:{parsed[name]} and {name}:{value}"
            )
    return parsed


def _choice(metric: str, settings: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """The value of one setting; the first of ``values`` if it is not given."""
    value = settings.get(name, values[0])
    if value not in values:
        raise UsageError(
            f"{name}:{value} is not a setting of {metric}: {name} is one of {', '.join(values)}"
        )
    return value


def _refuse_others(metric: str, settings: Mapping[str, str], known: tuple[str, ...]) -> None:
    for name in settings:
        if name in ("regtype", "regwin"):
            raise UsageError(
                f"{name} regularises the line search and is no setting of {metric}: "
                "give it to the optimizer"
            )
        if name not in known:
            raise UsageError(
                f"unknown setting {name!r} of {metric}; known settings: {', '.join(known)}"
            )


def _bleu(settings: Mapping[str, str]) -> Metric:
    _refuse_others("BLEU", settings, ("case", "reflen"))
    case = _choice("BLEU", settings, "case", ("true", "false"))
    lengths = ("closest", "shortest", "average")
    reference_length = _choice("BLEU", settings, "reflen", lengths)
    return Bleu(cast(ReferenceLength, reference_length), lowercase=case == "false")


def _lowercase(metric: str, settings: Mapping[str, str]) -> bool:
    return _choice(metric, settings, "case", ("true", "false")) == "false"


def _per(settings: Mapping[str, str]) -> Metric:
    _refuse_others("PER", settings, ("case",))
    return Per(_lowercase("PER", settings))


def _wer(settings: Mapping[str, str]) -> Metric:
    _refuse_others("WER", settings, ("case", "refs"))
    choice = _choice("WER", settings, "refs", ("moses", "best"))
    return Wer(_lowercase("WER", settings), cast(ReferenceChoice, choice))


def _cder(settings: Mapping[str, str]) -> Metric:
    _refuse_others("CDER", settings, ("case", "refs"))
    choice = _choice("CDER", settings, "refs", ("moses", "best"))
    return Cder(_lowercase("CDER", settings), cast(ReferenceChoice, choice))


def _ter(settings: Mapping[str, str]) -> Metric:
    _refuse_others("TER", settings, ("case",))
    return Ter(_lowercase("TER", settings))


_FACTORIES: Mapping[str, Callable[[Mapping[str, str]], Metric]] = MappingProxyType(
    {"BLEU": _bleu, "CDER": _cder, "PER": _per, "TER": _ter, "WER": _wer}
)

_PLANNED = frozenset({"CHRF"})
