"""``mosesplug cache``: list or remove files that only save time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mosesplug.cli.learn.options import CacheCommand
from mosesplug.cli.shared.tables import print_record
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable
from mosesplug.user_cache import CacheContents, clear_cache, list_cache


@dataclass(frozen=True)
class CacheReport:
    """The cached files by kind; its document is a list of these."""

    document: Sequence[CacheContents]

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a table of the files, or a line if there is no cache directory."""
        if not self.document:
            yield "nothing is kept: MOSESPLUG_CACHE_DIR is empty, or there is no home directory"
            return
        rows = [
            (
                contents.kind,
                str(contents.n_files),
                f"{contents.n_bytes / 1e6:.1f} MB",
                f"{contents.limit / 1e6:.0f} MB",
                str(contents.directory),
            )
            for contents in self.document
        ]
        yield TextTable([("kind", "files", "size", "at most", "directory"), *rows], left=1, last=1)


def cache(options: CacheCommand) -> None:
    """List or remove files that only save time."""
    if options.clear:
        clear_cache()
    print_record(CacheReport(list_cache()))
