"""The options of commands that run the tuning loop; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from mosesplug.cli.run.mert_options import list_completed_options
from mosesplug.cli.shared.commands import NestedSettings
from mosesplug.cli.shared.completion import complete_setting_names
from mosesplug.cli.shared.parameters import Json
from mosesplug.options import Opt, list_options
from mosesplug.settings.configuration import RunPlan


@dataclass(frozen=True)
class TuneCommand:
    """Tune a system and write moses.ini. `mosesplug settings X` explains option X."""

    COMMON: ClassVar = frozenset(
        {"working-dir", "decode-command", "decoder-flags", "nbest", "metric", "algorithm", "option"}
        | {"threads", "seed", "max-iterations", "online", "heldout", "runs", "continue"}
        | {"overwrite", "quiet"}
    )
    files: Annotated[
        list[str] | None,
        Opt(
            "Source sentences, references, decoder, moses.ini. With --decode-command: INPUT REFS "
            "WEIGHTS.",
            is_positional=True,
            metavar="INPUT REFS DECODER CONFIG",
        ),
    ] = None
    settings: Annotated[
        Path | None, Opt("Settings file; the command line wins", "Data", metavar="FILE")
    ] = None
    json: Json = False
    given: Annotated[dict[str, Any] | None, NestedSettings(list_options(RunPlan))] = None


_PANELS = ("Data", "Learning", "Held-out", "Parallel", "Output")
_OF_DECODER = ("nbest", "weights-format", "config-weights-first", "online", "keep-lists")
_OMITTED = (
    *("refs", "config", "decoder", "working-dir", "continue", "last", "verbose", "quiet"),
    "heldout-decoder",
)


def _list_ask_options() -> tuple[Opt, ...]:
    return tuple(
        option
        for option in list_options(RunPlan)
        if option.name not in _OMITTED and (option.panel in _PANELS or option.name in _OF_DECODER)
    )


_Directory = Annotated[
    Path,
    Opt("The working directory of the run.", is_positional=True, metavar="DIR", is_output=True),
]
_Quiet = Annotated[bool, Opt("Print errors only.", name="quiet")]


@dataclass(frozen=True)
class AskCommand:
    """Print the weights for the next decoding, which you run yourself.

    Prints the path of a file of weights, or nothing if the run is finished; then the resulting
    weights are in DIR. Decode, and give the n-best list to `mosesplug tell DIR FILE`. Until then,
    the same weights are printed. Settings that are not given are those the run began with.

    With --online, a second line names a file with the sentence ids of a mini-batch, from 0. For a
    held-out set or a monitor, it has all ids, and a third line names the source sentences; 1-best
    lists suffice.

    Example: mosesplug ask tuning dev.en start.weights --algorithm kbmira
    """

    directory: _Directory
    files: Annotated[
        list[str] | None,
        Opt(
            "References, and a file with all features and their starting weights. Only needed to "
            "begin a run.",
            is_positional=True,
            metavar="REFS WEIGHTS",
            exists=("references", "path"),
        ),
    ] = None
    as_json: Annotated[bool, Opt("Print JSON.", name="json")] = False
    quiet: _Quiet = False
    # Those of a run that has no decoder of its own.
    given: Annotated[
        dict[str, Any] | None,
        NestedSettings(_list_ask_options()),
    ] = None


@dataclass(frozen=True)
class TellCommand:
    """Store and learn from the n-best list that answers `mosesplug ask`.

    If the list cannot be used, nothing is stored, and the request is still open. A list is told
    once: without an open request, this is an error, and so is the list of an earlier request,
    unless --iteration says that the decoder wrote it again.

    Example: mosesplug tell tuning run1.nbest
    """

    directory: _Directory
    lists: Annotated[
        Path,
        Opt(
            "The n-best lists of all sentences or of the mini-batch, in any format.",
            is_positional=True,
            metavar="FILE",
        ),
    ]
    iteration: Annotated[
        int | None,
        Opt("The open request's iteration; accepts repeated lists, too.", minimum=1),
    ] = None
    quiet: _Quiet = False


@dataclass(frozen=True)
class MertMosesCommand:
    """Tune with the command line of mert-moses.pl."""

    files: Annotated[
        list[str] | None, Opt("", is_positional=True, metavar="INPUT REFS DECODER CONFIG")
    ] = None
    given: Annotated[
        dict[str, Any] | None,
        NestedSettings(list_completed_options(), has_panels=False, are_negatable=False),
    ] = None


@dataclass(frozen=True)
class SettingsCommand:
    """Explain a setting, or print those of a run as TOML.

    The output without arguments is a settings file with all defaults, to be edited and given to
    `mosesplug tune --settings`.
    """

    name: Annotated[
        str | None,
        Opt(
            "A setting to explain.",
            is_positional=True,
            metavar="[NAME]",
            complete=complete_setting_names,
        ),
    ] = None
    schema: Annotated[bool, Opt("Print the JSON schema of a settings file.")] = False
    markdown: Annotated[bool, Opt("Print the reference of all settings.")] = False
