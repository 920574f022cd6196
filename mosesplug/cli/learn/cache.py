"""``mosesplug cache``: list or remove files that only save time."""

from __future__ import annotations

from dataclasses import asdict

from mosesplug.cli.learn.options import CacheCommand
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.tables import print_table
from mosesplug.user_cache import clear_cache, list_cache


def cache(options: CacheCommand) -> None:
    """List or remove files that only save time."""
    if options.clear:
        clear_cache()
    contents = list_cache()
    if options.json:
        print_json(
            [asdict(content) | {"directory": str(content.directory)} for content in contents]
        )
    elif not contents:
        print("nothing is kept: MOSESPLUG_CACHE_DIR is empty, or there is no home directory")
    else:
        rows = [
            (
                content.kind,
                str(content.n_files),
                f"{content.n_bytes / 1e6:.1f} MB",
                f"{content.limit / 1e6:.0f} MB",
                str(content.directory),
            )
            for content in contents
        ]
        print_table(("kind", "files", "size", "at most", "directory"), rows, left=1, last=1)
