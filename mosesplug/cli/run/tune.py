"""``mosesplug tune``: the native command line of the tuning loop."""

from __future__ import annotations

from typing import Any

from mosesplug.cli.run.options import TuneCommand
from mosesplug.cli.run.running import run
from mosesplug.decoders.description import ASK
from mosesplug.errors import UsageError
from mosesplug.settings.build import make_plan
from mosesplug.settings.defaults import fill_defaults
from mosesplug.settings.toml import overlay_settings, read_settings

FILES: tuple[str, ...] = ("input", "refs", "decoder", "config")
"""Settings that are given as arguments, in this order."""
_FILES_OF_COMMAND = ("input", "refs", "config")
"""The same, if a command decodes."""


def add_files(values: dict[str, Any], arguments: tuple[str, ...], usage: str) -> dict[str, Any]:
    """Return values with those of the arguments.

    There are four arguments, or three with a command that decodes.

    Args:
        values: the values by the names of settings; arguments replace them.

    Raises:
        UsageError: there is another number of arguments, or one of them is not given at all.
    """
    files, count, why = FILES, "four", ""
    if "decode-command" in values:
        files, count, why = _FILES_OF_COMMAND, "three", " with --decode-command"
        usage = "INPUT REFS WEIGHTS"
    if arguments and len(arguments) != len(files):
        raise UsageError(
            f"expected {count} arguments ({usage}){why}, got {len(arguments)}:"
            f" {' '.join(arguments)}"
        )
    values = values | dict(zip(files, arguments, strict=False))
    if values.get("decoder") == ASK:
        raise UsageError(
            "these settings belong to a run whose caller decodes: continue it by mosesplug ask"
            " and mosesplug tell"
        )
    if missing := [name for name in files if name not in values]:
        raise UsageError(
            f"{usage} are needed: give all {count} as arguments, or also"
            f" {' '.join('--' + name for name in missing)} (see --help)"
        )
    return values


def tune(options: TuneCommand) -> None:
    """Tune a system and write moses.ini."""
    values = dict(options.given or {})
    if options.settings is not None:
        values = overlay_settings(read_settings(options.settings), values)
    values = add_files(values, tuple(options.files or ()), "INPUT REFS DECODER CONFIG")
    run(make_plan(fill_defaults(values)), as_json=options.json)
