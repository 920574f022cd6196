"""``mert-moses``: tune with the command line of ``mert-moses.pl``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

from mosesplug.cli.run.mert_options import find_spelling, format_usage, read_command_line
from mosesplug.cli.shared.compiling import note_compiling
from mosesplug.cli.shared.exits import TUNING_CONTINUES, exit_code
from mosesplug.cli.shared.interrupts import EndOnInterrupt
from mosesplug.errors import OptionName, spell_option
from mosesplug.options import list_options
from mosesplug.settings.configuration import RunPlan


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run ``mert-moses`` and exit."""
    words = sys.argv[1:] if arguments is None else arguments
    action = partial(_run, words)
    with EndOnInterrupt("mert-moses"):
        if "_MERT_MOSES_COMPLETE" in os.environ or words[:1] in (
            ["--install-completion"],
            ["--show-completion"],
        ):
            from mosesplug.cli.application import complete_mert_moses

            complete_mert_moses(words)
        sys.exit(exit_code("mert-moses", action, after_interrupt=TUNING_CONTINUES, spelling=_spell))


def _spell(option: OptionName) -> str:
    """Return an option as ``mert-moses`` shows it."""
    names = {known.name: find_spelling(known) for known in list_options(RunPlan)}
    return spell_option(replace(option, name=names.get(option.name, option.name)))


def _run(words: Sequence[str]) -> None:
    parsed = read_command_line(words)
    if parsed.values.get("help"):
        print(format_usage(), end="")
        return
    # Imported after the command line is read, since Numba loads slowly.
    from mosesplug.cli.run.mert_settings import make_script_plan
    from mosesplug.cli.run.running import run

    with note_compiling(bool(parsed.values.get("quiet"))):
        run(*make_script_plan(parsed))
