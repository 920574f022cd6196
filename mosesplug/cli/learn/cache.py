"""``mosesplug cache``: list or remove files that only save time."""

from __future__ import annotations

from typing import Annotated

import typer

from mosesplug.cli.shared.parameters import Json

__all__ = ["cache"]


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove the files.")] = False,
    json: Json = False,
) -> None:
    """List the files that only save time, in the user's cache directory.

    They are the arrays of search graphs that a command has parsed. The environment variable
    MOSESPLUG_CACHE_DIR names another directory; if it is empty, nothing is kept.

    Example: mosesplug cache
    """
    from dataclasses import asdict

    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.user_cache import clear_cache, list_cache

    if clear:
        clear_cache()
    contents = list_cache()
    if json:
        print_json([asdict(each) | {"directory": str(each.directory)} for each in contents])
    elif not contents:
        print("nothing is kept: MOSESPLUG_CACHE_DIR is empty, or there is no home directory")
    else:
        rows = [
            (
                each.kind,
                str(each.n_files),
                f"{each.n_bytes / 1e6:.1f} MB",
                f"{each.limit / 1e6:.0f} MB",
                str(each.directory),
            )
            for each in contents
        ]
        print_table(("kind", "files", "size", "at most", "directory"), rows, left=1, last=1)
