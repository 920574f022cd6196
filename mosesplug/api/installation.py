"""The plug-ins that other installed packages register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from formats.graphs.any_graph import GraphFormat
from formats.nbest.list_format import ListFormat
from formats.nbest.registry import list_formats
from mosesplug import plugins


@dataclass(frozen=True)
class Plugin:
    """A plug-in of an installed package.

    Attributes:
        kind: ``metric``, ``format``, ``graph``, ``decoder`` or ``algorithm``.
        name: what ``--metric``, ``--format``, ``plugin:NAME`` or ``--algorithm`` calls it.
        summary: one sentence; empty if the plug-in cannot be used.
        package: name and version of the package.
        problem: why it cannot be used; empty if it can.

    Example:
        >>> import mosesplug
        >>> plugin = mosesplug.Plugin("metric", "SACC", "Sentence accuracy", "acme 1.0")
        >>> plugin.problem
        ''
    """

    kind: str
    name: str
    summary: str
    package: str
    problem: str = ""


def list_plugins() -> list[Plugin]:
    """Import the plug-ins of other packages, and return them by kind and name.

    A plug-in that cannot be used is also logged as a warning.

    Example:
        >>> import mosesplug
        >>> [plugin.name for plugin in mosesplug.list_plugins() if plugin.kind == "metric"]
        []
    """
    from mosesplug.decoders.plugin import DecoderPlugin
    from mosesplug.metrics.plugin import MetricPlugin
    from mosesplug.metrics.registry import built_in_names
    from mosesplug.optimizers.registry import Algorithm, built_in_algorithms, check_options

    groups: list[tuple[str, str, type[Any], tuple[str, ...], Callable[[Any], None] | None]] = [
        ("metric", plugins.METRICS, MetricPlugin, built_in_names(), None),
        ("format", plugins.FORMATS, ListFormat, tuple(list_formats()), None),
        ("graph", plugins.GRAPHS, GraphFormat, (), None),
        ("decoder", plugins.DECODERS, DecoderPlugin, (), None),
        ("algorithm", plugins.ALGORITHMS, Algorithm, built_in_algorithms(), check_options),
    ]
    return [
        Plugin(kind, entry.name, "" if plugin is None else plugin.summary, entry.package, problem)
        for kind, group, type_, built_in, check in groups
        for entry, plugin, problem in plugins.load_plugins(group, type_, built_in, check)
        if not entry.is_bundled
    ]
