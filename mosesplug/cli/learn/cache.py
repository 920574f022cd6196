"""``mosesplug cache``: list or remove files that only save time."""

from __future__ import annotations

from dataclasses import asdict

from mosesplug.cli.learn.options import Cache
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.tables import print_table
from mosesplug.user_cache import clear_cache, list_cache


def cache(options: Cache) -> None:
    """List or remove files that only save time."""
    if options.clear:
        clear_cache()
    contents = list_cache()
    if options.json:
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
