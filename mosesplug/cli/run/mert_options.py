"""Every option of ``mert-moses.pl`` and of ``mert-moses``.

Those that are settings of a run come from the declared settings.

An option is *honored*, or *refused* before anything is done with the reason and what to use
instead. Options of the script that are not settings of a run are declared here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated

from mosesplug.cli.run.getopt import CommandLine, Kind, Specification, parse
from mosesplug.cli.shared.completion import find_completion
from mosesplug.cli.shared.panels import format_options
from mosesplug.options import PANELS, Opt, list_options, options_by_field
from mosesplug.settings.configuration import RunPlan

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


_NOT_PLANNED = "not planned: mix the tables before tuning (tmcombine)"


@dataclass(frozen=True)
class ScriptOptions:
    """Options of ``mert-moses.pl`` that are not settings of a run."""

    shortest: Annotated[bool, Opt("Use the shortest reference length", "Learning")] = False
    average: Annotated[bool, Opt("Use the average reference length", "Learning")] = False
    closest: Annotated[bool, Opt("Use the closest reference length [this]", "Learning")] = False
    nocase: Annotated[bool, Opt("Ignore case in the metric", "Learning")] = False
    nonorm: Annotated[
        bool, Opt("Does nothing", "Learning", note="as in the script: text is never normalized")
    ] = False
    help: Annotated[
        bool, Opt("Show this text", "Output", note="printed to stdout, exit code 0")
    ] = False
    mertdir: Annotated[
        str,
        Opt(
            "Ignored: optimizers are built in",
            "Decoder",
            note="not needed and not looked at: metrics and optimizers are built in",
        ),
    ] = ""
    mertargs: Annotated[
        str,
        Opt(
            "Arguments of extractor and mert",
            "Learning",
            note="--sctype, --scconfig, -n, -m, -r, -t, -o and --threads are accepted; the "
            "script's own options take precedence; others are rejected",
        ),
    ] = ""
    extractorargs: Annotated[
        str,
        Opt(
            "Arguments of extractor",
            "Learning",
            note="--sctype and --scconfig are accepted; others are rejected",
        ),
    ] = ""
    proargs: Annotated[
        str,
        Opt(
            "Arguments of pro",
            "Learning",
            note="with --pairwise-ranked or --pro-starting-point; -b and -r are accepted, others "
            "are rejected; for more, --algorithm-option name=value",
        ),
    ] = ""
    mertmertargs: Annotated[str, Opt("Arguments of mert", "Learning", note="as --mertargs")] = ""
    filter_phrase_table: Annotated[
        bool | None,
        Opt(
            "Filter the model for the input",
            "Decoder",
            note="the default is to filter if filter-model-given-input.pl is found, else to say "
            "that it is not; given, it must be found",
        ),
    ] = None
    random_directions: Annotated[bool, Opt("Search in random directions only", "Learning")] = False
    number_of_random_directions: Annotated[
        int | None, Opt("Random directions of a line search", "Learning")
    ] = None
    random_restarts: Annotated[int | None, Opt("Random starting points [20]", "Learning")] = None
    return_best_dev: Annotated[
        bool,
        Opt(
            "End with the best decoded weights",
            "Learning",
            note="the last iteration counts too",
            sets={"select": "best-dev"},
        ),
    ] = False
    pairwise_ranked: Annotated[
        bool,
        Opt(
            "PRO (Hopkins & May 2011)",
            "Learning",
            note="excludes the other optimizers, of which the script silently takes one",
            sets={"algorithm": "pro"},
        ),
    ] = False
    pro_starting_point: Annotated[
        bool,
        Opt(
            "Start MERT from PRO's weights",
            "Learning",
            note="MERT starts from the weights before, too; sparse weights keep PRO's proportions",
            sets={"algorithm": "pro+mert"},
        ),
    ] = False
    batch_mira: Annotated[
        bool, Opt("k-best MIRA (Cherry & Foster 2012)", "Learning", sets={"algorithm": "kbmira"})
    ] = False
    hg_mira: Annotated[
        bool,
        Opt(
            "MIRA on search graphs",
            "Learning",
            note="on those of all iterations, by BLEU with case, against the shortest reference",
            sets={"algorithm": "kbmira", "forest": True},
        ),
    ] = False
    batch_mira_args: Annotated[
        str,
        Opt(
            "Arguments of kbmira",
            "Learning",
            note="with --batch-mira or --hg-mira; -J, -C, -D, -r, --no-shuffle, --streaming, "
            "--model-bg, --safe-hope, --hg-prune, --sctype and --scconfig are accepted, others "
            "are rejected",
        ),
    ] = ""
    promix_training: Annotated[
        str, Opt("Refused", "Learning", note=_NOT_PLANNED, is_refused=True)
    ] = ""
    promix_table: Annotated[
        tuple[str, ...], Opt("Refused", "Learning", note=_NOT_PLANNED, is_refused=True)
    ] = ()


@dataclass(frozen=True)
class _Additions:
    """Options of ``mert-moses`` that are neither in the script nor settings of a run."""

    lattice_mert: Annotated[
        bool,
        Opt(
            "MERT on search graphs (Macherey et al. 2008)",
            "Learning",
            note="the same as --algorithm=mert --forest",
            sets={"algorithm": "mert", "forest": True},
        ),
    ] = False
    settings: Annotated[str, Opt("Settings file; the command line wins", "Data")] = ""


_SHORT_HELP = Specification("h", Kind.FLAG, "help")
"""An abbreviation that would be ambiguous."""


@cache
def list_script_options(cls: type = RunPlan) -> tuple[Opt, ...]:
    """Return the options of ``mert-moses.pl``, by panel."""
    settings = [option for option in list_options(cls) if option.script]
    return _sort_by_panel((*settings, *list_options(ScriptOptions)))


@cache
def list_additions(cls: type = RunPlan) -> tuple[Opt, ...]:
    """Return the options that the script does not have, by panel."""
    settings = [option for option in list_options(cls) if not option.script]
    return _sort_by_panel((*options_by_field(_Additions).values(), *settings))


def _sort_by_panel(options: Iterable[Opt]) -> tuple[Opt, ...]:
    return tuple(sorted(options, key=lambda option: PANELS.index(option.panel)))


def list_completed_options() -> tuple[Opt, ...]:
    """Return the options that a shell completes, by their names in ``mert-moses``."""
    return tuple(
        replace(
            option,
            name=find_spelling(option),
            aliases=(),
            script="",
            second="",
            is_argument=False,
            complete=find_completion(option),
        )
        for option in (*list_script_options(), *list_additions())
        if option.name != "help" and not option.is_refused
    )


def find_spelling(option: Opt) -> str:
    """Return the name under which ``mert-moses`` shows an option."""
    added = option.aliases[0] if option.can_be_abbreviated and option.aliases else option.name
    return option.script or added


def spell_option(option: Opt) -> str:
    """Return an option as it is typed on a command line."""
    kind, name = find_kind(option), find_spelling(option)
    return f"--[no-]{name}" if kind is Kind.NEGATABLE else f"--{name}{_VALUES.get(kind, '')}"


def read_command_line(words: Sequence[str], cls: type = RunPlan) -> CommandLine:
    """Read the command line of ``mert-moses``; its values have the names of settings.

    Abbreviations are resolved as by the script; then the additions are looked up, and at last
    the other spellings and settings of ``mosesplug tune``.

    Raises:
        UsageError: it cannot be read.
    """
    settings = list_options(cls)
    own = [*map(_specify, list_script_options(cls)), _SHORT_HELP]
    shared = {
        name: Specification(name, find_kind(option), option.name)
        for option in settings
        for name in option.accepted
        if name != option.script
    }
    additions = options_by_field(_Additions)
    old = {find_spelling(option) for option in settings if option.can_be_abbreviated}
    old.add(additions["lattice_mert"].name)
    added = [_specify(option) for option in list_additions(cls) if find_spelling(option) in old]
    others = [shared[name] for name in shared if name not in old]
    return parse(words, own, added, [*others, _specify(additions["settings"])])


def explain_refusal(option: Opt) -> str:
    """Return the sentence with which an option is refused."""
    return f"--{option.name} is refused: {option.note}"


def format_markdown_table(cls: type = RunPlan) -> str:
    """Return the options as a Markdown table."""
    rows = ["| option | what it does | state | note |", "|---|---|---|---|"]
    rows += [
        f"| `{spell_option(option)}` | {_explain(option)} |"
        f" {'refused' if option.is_refused else 'honored'} | {option.note} |"
        for option in list_script_options(cls)
    ]
    rows += [
        f"| `{spell_option(option)}` | {_explain(option)} | added | {option.note} |"
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
            (spell_option(option), _explain(option))
            for option in list_script_options(cls)
            if option.panel == panel
        ]
        added = [spell_option(option) for option in list_additions(cls) if option.panel == panel]
        lines += ["", f"{panel}:", *format_options(rows).splitlines()]
        lines += textwrap.wrap(
            " ".join(spelling.replace(" ", "\0") for spelling in added),
            _WIDTH,
            initial_indent="  added: " if added else "",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
    return "\n".join(lines).replace("\0", " ") + "\n"


def _specify(option: Opt) -> Specification:
    return Specification(find_spelling(option), find_kind(option), option.name)


def _explain(option: Opt) -> str:
    default = option.script_default or option.shown_default
    return f"{option.help} [{default}]" if default else option.help


def find_kind(option: Opt) -> Kind:
    """Return the type of an option's value, in the notation of Getopt::Long."""
    if option.kind == "flag" and option.default is not False:
        return Kind.NEGATABLE  # neither is a third answer, or the default is to be denied
    return Kind.STRING if option.is_joined else _KINDS.get(option.kind, Kind.STRING)
