"""``mosesplug plugins``: list what other installed packages add."""

from __future__ import annotations

from dataclasses import asdict

from mosesplug.api.installation import list_plugins
from mosesplug.cli.learn.options import PluginsCommand
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.tables import print_table


def plugins(options: PluginsCommand) -> None:
    """List the plug-ins of installed packages."""
    found = list_plugins()
    if options.json:
        print_json([asdict(each) for each in found])
    elif not found:
        print("no plug-ins are installed")
    else:
        rows = [
            (each.kind, each.name, each.package, each.summary or "cannot be used") for each in found
        ]
        print_table(("kind", "name", "package", "summary"), rows, left=3, last=1)
