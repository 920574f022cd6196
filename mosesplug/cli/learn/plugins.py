"""``mosesplug plugins``: list what other installed packages add."""

from __future__ import annotations

from mosesplug.cli.shared.parameters import Json

__all__ = ["plugins"]


def plugins(json: Json = False) -> None:
    """List the plug-ins of installed packages.

    They add metrics, formats of lists and graphs, decoders and algorithms. A package registers them
    through the entry points mosesplug.metrics, mosesplug.formats, mosesplug.graphs,
    mosesplug.decoders and mosesplug.algorithms.
    Plug-ins that cannot be used are listed with the reason; commands that do not name them work.

    Example: mosesplug plugins
    """
    # Loaded here, since --help needs none of it.
    from dataclasses import asdict

    from mosesplug.api.installation import list_plugins
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table

    found = list_plugins()
    if json:
        print_json([asdict(each) for each in found])
    elif not found:
        print("no plug-ins are installed")
    else:
        rows = [
            (each.kind, each.name, each.package, each.summary or "cannot be used") for each in found
        ]
        print_table(("kind", "name", "package", "summary"), rows, left=3, last=1)
