"""``mosesplug plugins``: list what other installed packages add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mosesplug.api.installation import Plugin, list_plugins
from mosesplug.cli.learn.options import PluginsCommand
from mosesplug.cli.shared.tables import print_record
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable


@dataclass(frozen=True)
class PluginList:
    """The plug-ins of installed packages; its document is a list of them."""

    document: Sequence[Plugin]

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a table of the plug-ins, or a line if none is installed."""
        if not self.document:
            yield "no plug-ins are installed"
            return
        rows = [
            (plugin.kind, plugin.name, plugin.package, plugin.summary or "cannot be used")
            for plugin in self.document
        ]
        yield TextTable([("kind", "name", "package", "summary"), *rows], left=3, last=1)


def plugins(_options: PluginsCommand) -> None:
    """List the plug-ins of installed packages."""
    print_record(PluginList(list_plugins()))
