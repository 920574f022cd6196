"""Every option of ``mert-moses.pl`` and of ``mert-moses``.

Those that are settings of a run come from the declared settings.

An option is *honored*, or *refused* before anything is done with the reason and what to use
instead. Options of the script that are not settings of a run are declared here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from mosesplug.cli.run.getopt import CommandLine, Kind, Specification, parse
from mosesplug.cli.shared.panels import format_options
from mosesplug.options import PANELS, Opt, list_options
from mosesplug.settings.configuration import RunPlan

__all__ = [
    "MARKERS",
    "ScriptOption",
    "explain_refusal",
    "find_spelling",
    "format_markdown_table",
    "format_usage",
    "list_additions",
    "list_script_options",
    "read_command_line",
]

MARKERS = ("<!-- options:begin -->", "<!-- options:end -->")

_WIDTH = 80
_KINDS: Mapping[str, Kind] = {
    "flag": Kind.FLAG,
    "integer": Kind.INTEGER,
    "real": Kind.REAL,
    "texts": Kind.STRINGS,
    "table": Kind.STRINGS,
}
_VALUES = {
    Kind.STRING: "=STRING",
    Kind.STRINGS: "=STRING ...",
    Kind.INTEGER: "=N",
    Kind.REAL: "=X",
}


@dataclass(frozen=True)
class ScriptOption:
    """One option of ``mert-moses``.

    Attributes:
        name: without dashes.
        kind: the type of its value.
        help: one line.
        panel: heading in ``--help``.
        note: how it differs from the script's option; why it is refused, and what to use instead.
        setting: name of the setting that takes its value; empty if there is none.
        sets: values of settings that a flag gives.
        is_refused: whether it is always refused.
    """

    name: str
    kind: Kind
    help: str
    panel: str
    note: str = ""
    setting: str = ""
    sets: Mapping[str, object] = field(default_factory=dict)
    is_refused: bool = False

    @property
    def specification(self) -> Specification:
        """The specification for the command line reader."""
        return Specification(self.name, self.kind, self.setting)

    @property
    def spelling(self) -> str:
        """The option as it is typed on a command line."""
        if self.kind is Kind.NEGATABLE:
            return f"--[no-]{self.name}"
        return f"--{self.name}{_VALUES.get(self.kind, '')}"

    @property
    def state(self) -> Literal["honored", "refused"]:
        """The status of the option in the reference: honored or refused."""
        return "refused" if self.is_refused else "honored"


_NOT_PLANNED = "not planned: mix the tables before tuning (tmcombine)"

_SCRIPT_ONLY = (
    ScriptOption("shortest", Kind.FLAG, "Use the shortest reference length", "Learning"),
    ScriptOption("average", Kind.FLAG, "Use the average reference length", "Learning"),
    ScriptOption("closest", Kind.FLAG, "Use the closest reference length [this]", "Learning"),
    ScriptOption("nocase", Kind.FLAG, "Ignore case in the metric", "Learning"),
    ScriptOption(
        "nonorm",
        Kind.FLAG,
        "Does nothing",
        "Learning",
        "as in the script: text is never normalized",
    ),
    ScriptOption("help", Kind.FLAG, "Show this text", "Output", "printed to stdout, exit code 0"),
    ScriptOption(
        "mertdir",
        Kind.STRING,
        "Ignored: optimizers are built in",
        "Decoder",
        "not needed and not looked at: metrics and optimizers are built in",
    ),
    ScriptOption(
        "mertargs",
        Kind.STRING,
        "Arguments of extractor and mert",
        "Learning",
        "--sctype, --scconfig, -n, -m, -r, -t, -o and --threads are read, and outweighed by the"
        " script's own options; the rest is refused",
    ),
    ScriptOption(
        "extractorargs",
        Kind.STRING,
        "Arguments of extractor",
        "Learning",
        "--sctype and --scconfig are read; the rest is refused",
    ),
    ScriptOption(
        "proargs",
        Kind.STRING,
        "Arguments of pro",
        "Learning",
        "with --pairwise-ranked or --pro-starting-point; -b and -r are read, the rest is refused;"
        " for more, --algorithm-option name=value",
    ),
    ScriptOption("mertmertargs", Kind.STRING, "Arguments of mert", "Learning", "as --mertargs"),
    ScriptOption(
        "filter-phrase-table",
        Kind.NEGATABLE,
        "Filter the model for the input",
        "Decoder",
        "the default is to filter if filter-model-given-input.pl is found, else to say that it is"
        " not; given, it must be found",
    ),
    ScriptOption("random-directions", Kind.FLAG, "Search in random directions only", "Learning"),
    ScriptOption(
        "number-of-random-directions",
        Kind.INTEGER,
        "Random directions of a line search",
        "Learning",
    ),
    ScriptOption("random-restarts", Kind.INTEGER, "Random starting points [20]", "Learning"),
    ScriptOption(
        "return-best-dev",
        Kind.FLAG,
        "End with the best decoded weights",
        "Learning",
        "the last iteration counts too",
        sets={"select": "best-dev"},
    ),
    ScriptOption(
        "pairwise-ranked",
        Kind.FLAG,
        "PRO (Hopkins & May 2011)",
        "Learning",
        "excludes the other optimizers, of which the script silently takes one",
        sets={"algorithm": "pro"},
    ),
    ScriptOption(
        "pro-starting-point",
        Kind.FLAG,
        "Start MERT from PRO's weights",
        "Learning",
        "MERT starts from the weights before, too; sparse weights keep PRO's proportions",
        sets={"algorithm": "pro+mert"},
    ),
    ScriptOption(
        "batch-mira",
        Kind.FLAG,
        "k-best MIRA (Cherry & Foster 2012)",
        "Learning",
        sets={"algorithm": "kbmira"},
    ),
    ScriptOption(
        "hg-mira",
        Kind.FLAG,
        "MIRA on search graphs",
        "Learning",
        "on those of all iterations, by BLEU with case, against the shortest reference",
        sets={"algorithm": "kbmira", "forest": True},
    ),
    ScriptOption(
        "batch-mira-args",
        Kind.STRING,
        "Arguments of kbmira",
        "Learning",
        "with --batch-mira or --hg-mira; -J, -C, -D, -r, --no-shuffle, --streaming, --model-bg,"
        " --safe-hope, --hg-prune, --sctype and --scconfig are read, the rest is refused",
    ),
    ScriptOption(
        "promix-training",
        Kind.STRING,
        "Refused",
        "Learning",
        _NOT_PLANNED,
        is_refused=True,
    ),
    ScriptOption(
        "promix-table", Kind.STRINGS, "Refused", "Learning", _NOT_PLANNED, is_refused=True
    ),
)
"""Options of the script that are not settings."""

_LATTICE_MERT = ScriptOption(
    "lattice-mert",
    Kind.FLAG,
    "MERT on search graphs (Macherey et al. 2008)",
    "Learning",
    "the same as --algorithm=mert --forest",
    sets={"algorithm": "mert", "forest": True},
)

_SHORT_HELP = Specification("h", Kind.FLAG, "help")
"""An abbreviation that would be ambiguous."""

_SETTINGS_FILE = ScriptOption(
    "settings", Kind.STRING, "Settings file; the command line wins", "Data"
)


@cache
def list_script_options(cls: type = RunPlan) -> tuple[ScriptOption, ...]:
    """Return the options of ``mert-moses.pl``, by panel."""
    found = [_of_setting(each, each.script) for each in list_options(cls) if each.script]
    return tuple(sorted((*found, *_SCRIPT_ONLY), key=lambda each: PANELS.index(each.panel)))


@cache
def list_additions(cls: type = RunPlan) -> tuple[ScriptOption, ...]:
    """Return the options that the script does not have, by panel."""
    found = [
        _of_setting(each, find_spelling(each)) for each in list_options(cls) if not each.script
    ]
    return tuple(
        sorted((_LATTICE_MERT, _SETTINGS_FILE, *found), key=lambda each: PANELS.index(each.panel))
    )


def find_spelling(setting: Opt) -> str:
    """Return the name under which ``mert-moses`` shows a setting."""
    added = setting.aliases[0] if setting.can_be_abbreviated and setting.aliases else setting.name
    return setting.script or added


def read_command_line(words: Sequence[str], cls: type = RunPlan) -> CommandLine:
    """Read the command line of ``mert-moses``; its values have the names of settings.

    Abbreviations are resolved as by the script; then the additions are looked up, and at last
    the other spellings and settings of ``mosesplug tune``.

    Raises:
        UsageError: it cannot be read.
    """
    settings = list_options(cls)
    own = [option.specification for option in list_script_options(cls)]
    own.append(_SHORT_HELP)
    shared = {
        name: Specification(name, _kind(each), each.name)
        for each in settings
        for name in each.accepted
        if name != each.script
    }
    old = {find_spelling(each) for each in settings if each.can_be_abbreviated} | {
        _LATTICE_MERT.name
    }
    added = [each.specification for each in list_additions(cls) if each.name in old]
    rest = [shared[name] for name in shared if name not in old]
    return parse(words, own, added, [*rest, _SETTINGS_FILE.specification])


def explain_refusal(option: ScriptOption) -> str:
    """Return the sentence with which an option is refused."""
    return f"--{option.name} is refused: {option.note}"


def format_markdown_table(cls: type = RunPlan) -> str:
    """Return the options as a Markdown table."""
    rows = ["| option | what it does | state | note |", "|---|---|---|---|"]
    rows += [
        f"| `{option.spelling}` | {option.help} | {option.state} | {option.note} |"
        for option in list_script_options(cls)
    ]
    rows += [
        f"| `{option.spelling}` | {option.help} | added | {option.note} |"
        for option in list_additions(cls)
    ]
    return "\n".join(rows) + "\n"


def format_usage(cls: type = RunPlan) -> str:
    """Return the text of ``--help``."""
    lines = [
        "usage: mert-moses input-text references decoder-executable decoder.ini [options]",
        "",
        "A panel lists the options of mert-moses.pl, then those that mert-moses adds.",
        "`mosesplug settings NAME` explains an option.",
    ]
    for panel in PANELS:
        rows = [
            (each.spelling, each.help) for each in list_script_options(cls) if each.panel == panel
        ]
        added = [each.spelling for each in list_additions(cls) if each.panel == panel]
        lines += ["", f"{panel}:", *format_options(rows).splitlines()]
        lines += textwrap.wrap(
            " ".join(spelling.replace(" ", "\0") for spelling in added),
            _WIDTH,
            initial_indent="  added: " if added else "",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
    return "\n".join(lines).replace("\0", " ") + "\n"


def _of_setting(setting: Opt, name: str) -> ScriptOption:
    default = setting.script_default or setting.shown_default
    return ScriptOption(
        name,
        _kind(setting),
        f"{setting.help} [{default}]" if default else setting.help,
        setting.panel,
        setting.note,
        setting.name,
    )


def _kind(setting: Opt) -> Kind:
    if setting.kind == "flag" and setting.default is None:
        return Kind.NEGATABLE  # neither is a third answer
    return Kind.STRING if setting.is_joined else _KINDS.get(setting.kind, Kind.STRING)
