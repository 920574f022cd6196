"""The entry point of ``mosesplug``; ``application`` holds its commands."""

from __future__ import annotations

import atexit
import gc
import sys

from mosesplug.cli.shared.interrupts import EndOnInterrupt

TYPE_CHECKING = False  # imports here delay every command
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``mosesplug`` and exit."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        # Looking for garbage at the end of the process would take a third of a second.
        atexit.register(gc.freeze)
    with EndOnInterrupt("mosesplug"):
        if words[:1] == ["mert-moses"]:
            # Options in Perl's spelling must not be parsed by Typer.
            from mosesplug.cli.run import mert_moses

            mert_moses.main(words[1:])
        from mosesplug.cli import application

        application.run(words)
