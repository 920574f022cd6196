"""Log the lines of the command line as records of the logger ``mosesplug``.

Warnings have the level ``WARNING``, which Python shows on stderr where logging is not configured,
everything else ``INFO``. Options are spelled as keywords.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.text import StrPath
from mosesplug.escapes import escape_controls
from mosesplug.learning.lists.blocks import describe_formats
from mosesplug.results.render.run_lines import RunLines
from mosesplug.results.render.tables import Block, format_blocks
from mosesplug.settings.lists import ListSettings

__all__ = ["RunLog", "log_formats", "log_lines", "log_warnings"]

_LOGGER = logging.getLogger("mosesplug")


class RunLog(RunLines):
    """Logs the events of a run.

    Args:
        spelled: returns a text with options as keywords.
    """

    def __init__(self, spelled: Callable[[str], str]) -> None:
        super().__init__()
        self._spelled = spelled

    def write_line(self, text: str, *, is_warning: bool = False) -> None:
        """Log a line."""
        if is_warning:
            log_warnings([self._spelled(text)])
        else:
            _log(logging.INFO, self._spelled(text))

    def set_status(self, text: str) -> None:
        """Log nothing: a status is replaced many times a second."""


def log_lines(blocks: Iterable[Block]) -> None:
    """Log a report, a record for each line that is not empty."""
    if _LOGGER.isEnabledFor(logging.INFO):
        for line in format_blocks(blocks).splitlines():
            if line:
                _log(logging.INFO, line)


def log_warnings(warnings: Iterable[str]) -> None:
    """Log warnings."""
    for warning in warnings:
        _log(logging.WARNING, f"warning: {warning}")


def _log(level: int, text: str) -> None:
    """Log a text without the control characters of what it quotes."""
    _LOGGER.log(level, "%s", escape_controls(text, keeps_lines=True))


def log_formats(lists: Iterable[StrPath | NBestList], settings: ListSettings) -> None:
    """Log the formats that were found in files."""
    if _LOGGER.isEnabledFor(logging.INFO):
        files = [each for each in lists if not isinstance(each, NBestList)]
        try:
            for line in describe_formats(files, settings):
                _log(logging.INFO, line)
        except FormatError:
            return  # which reading raises
