"""Messages in the words of Python: options of the command line become keywords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from formats.errors import FormatError
from mosesplug.errors import DecoderError, MosesplugError
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.declare import list_settings
from mosesplug.settings.learning import LearningSettings

__all__ = ["name_keywords", "spell_options"]

_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])(?: (?=[\"'])|([ =])([a-z-]+\b))?")
"""An option of the command line, and the word after it."""

_OTHERS = frozenset(
    (
        *("ids", "list-format", "mbr", "metric", "nbest", "refs", "scale", "sparse-weights"),
        "weights",
    )
)
"""Options of commands that are not settings of a run or of learning, but keywords of calls."""

_COMMAND = re.compile(r"mosesplug [a-z][a-z -]*[^.,;:()]*$")
"""The beginning of a command line, whose options stay as they are."""


def spell_options(text: str, spelled: Callable[[str], str], cls: type = LearningSettings) -> str:
    """Return a text with options as keywords.

    ``--overwrite`` becomes ``overwrite=True``.

    Args:
        text: a message.
        spelled: returns the keyword of a setting.
        cls: the class of the settings; options of others and of commands keep their names, with
            underscores. Options of other programs stay as they are.
    """
    if "--" not in text:
        return text
    settings = {spelling: each for each in list_settings(cls) for spelling in each.spellings}

    def rename(found: re.Match[str]) -> str:
        if _COMMAND.search(text, 0, found.start()):
            return found[0]
        name, gap, word = found.groups(default="")
        if found[0].endswith(" "):  # a quoted value is behind it
            gap = "="
        setting = settings.get(name) or settings.get(name.removeprefix("no-"))
        if setting is None:
            is_own = name in _OTHERS or name in _spellings()
            return f"{name.replace('-', '_')}{gap}{word}" if is_own else found[0]
        keyword = spelled(setting.name)
        if setting.kind == "flag":
            return f"{keyword}={name in settings}{gap}{word}"
        if word in setting.choices:
            return f"{keyword}={word!r}"
        return f"{keyword}{gap}{word}"

    return _OPTION.sub(rename, text)


def _spellings() -> set[str]:
    """Return the options of all settings."""
    every = (*list_settings(LearningSettings), *list_settings(RunPlan))
    return {spelling for each in every for spelling in each.spellings}


@contextmanager
def name_keywords(cls: type, spelled: Callable[[str], str]) -> Iterator[None]:
    """Name settings as keywords in the errors of a block or of a function.

    Messages of other rooms name settings as the command line does. Those of decoders are left as
    they are: they quote command lines.

    Args:
        cls, spelled: as for ``spell_options``.
    """
    try:
        yield
    except DecoderError:
        raise
    except (MosesplugError, FormatError) as error:
        for attribute in ("message", "remedy"):
            if isinstance(text := getattr(error, attribute, None), str):
                setattr(error, attribute, spell_options(text, spelled, cls))
        error.args = tuple(spell_options(str(each), spelled, cls) for each in error.args)
        raise
