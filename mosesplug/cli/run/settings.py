"""``mosesplug settings``: what can be set, for people and for programs."""

from __future__ import annotations

import json

from mosesplug.cli.run.options import SettingsCommand
from mosesplug.errors import UsageError, suggest
from mosesplug.options import list_options, list_spellings
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.document import explain_setting, format_markdown, make_json_schema
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.toml import format_template


def settings(options: SettingsCommand) -> None:
    """Explain a setting, or print those of a run as TOML."""
    if options.name is not None:
        print(_explain(options.name.lstrip("-")), end="")
    elif options.schema:
        print(json.dumps(make_json_schema(), indent=2))
    elif options.markdown:
        print(format_markdown(), end="")
    else:
        print(format_template(), end="")


def _explain(name: str) -> str:
    """Return what is known about a setting of a run, and about that of ``optimize``."""
    of_run, of_optimize = (
        {spelling: option for option in list_options(cls) for spelling in option.spellings}
        for cls in (RunPlan, LearningSettings)
    )
    if name not in of_run and name not in of_optimize:
        known = (other for other in list_spellings(name) if other in of_run or other in of_optimize)
        name = next(known, name)
    if name not in of_run and name not in of_optimize:
        raise UsageError(f"unknown setting {name}{suggest(name, [*of_run, *of_optimize])}")
    texts = []
    if name in of_run:
        texts.append(explain_setting(of_run[name]))
    if name in of_optimize and (name not in of_run or of_run[name].help != of_optimize[name].help):
        texts.append(f"In `mosesplug optimize`:\n\n{explain_setting(of_optimize[name])}")
    return "\n".join(texts)
