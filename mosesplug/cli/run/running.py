"""A tuning run from the command line: progress on stderr, the table of iterations on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mosesplug.cli.run.progress import Reporter, table
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning import tune
from mosesplug.tuning.events import Note
from mosesplug.tuning.repeats.files import check_single

__all__ = ["run"]


def run(
    configuration: Configuration,
    *,
    notes: Sequence[str] = (),
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Tune, tell how it goes, and end with the table.

    Raises:
        UsageError: the working directory holds several runs.
        MosesplugError, FormatError, OSError: as ``tune``.
    """
    check_single(configuration.working_directory)
    reporter = Reporter(sys.stderr, quiet=quiet, verbose=verbose)
    for note in notes:
        reporter(Note(note))
    try:
        result = tune(configuration, reporter)
    finally:
        reporter.close()
    if not quiet:
        print(table(result), end="")
        print(f"tuned configuration: {configuration.working_directory / 'moses.ini'}")
