"""Translate the command line of ``mert-moses`` into the settings of a tuning run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mosesplug.cli.run.getopt import CommandLine
from mosesplug.cli.run.mert_options import (
    explain_refusal,
    list_additions,
    list_script_options,
)
from mosesplug.cli.run.tool_arguments import (
    ToolArguments,
    merge_metric_settings,
    read_tool_arguments,
)
from mosesplug.cli.run.tune import add_files
from mosesplug.errors import UsageError
from mosesplug.options import Opt, list_options
from mosesplug.settings.build import make_plan
from mosesplug.settings.checks import parse_assignments
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.programs import HelperScripts, choose_filter, find_decoder
from mosesplug.settings.toml import overlay_settings, read_settings

_FILES = "input-text, references, decoder-executable, decoder.ini"
_WITH_MERT = ("mert", "pro+mert")
_REFERENCE_LENGTHS = ("shortest", "average", "closest")
_METRIC = (*_REFERENCE_LENGTHS, "nocase", "metric", "metric-settings")
_MERT_ONLY = ("random-restarts", "random-directions", "number-of-random-directions")
_SEARCH = {"restarts": 20}
"""Defaults of MERT: the restarts of the script."""

_Values = dict[str, Any]


def make_script_plan(parsed: CommandLine) -> tuple[RunPlan, tuple[str, ...]]:
    """Return what a command line asks for, and notes to print, a sentence each.

    Args:
        parsed: the command line; values of settings have their names.

    Raises:
        UsageError: an option is refused, a file is missing, or options exclude each other.
    """
    _refuse(parsed)
    given: _Values = dict(parsed.values)
    values: _Values = {name: given[name] for name in _SETTINGS if name in given}
    if "option" in values:
        values["option"] = parse_assignments(values["option"], "--algorithm-option")
    file = read_settings(given["settings"]) if "settings" in given else {}
    algorithm = _algorithm(given, values, str(file.get("algorithm", "mert")))
    values["algorithm"] = algorithm
    tools = _tools(given, algorithm)
    _choose_by_flags(given, values)
    _set_learning(given, values, algorithm, tools, file)
    values = overlay_settings(file, values)
    values = _DEFAULTS | add_files(values, parsed.positionals, _FILES)
    values.setdefault("overwrite", not values.get("continue"))
    if tools.edges is not None and not values.get("forest"):
        raise UsageError("--batch-mira-args: --hg-prune is for --hg-mira: leave one of them out")
    notes = [] if "mertdir" not in given else [_MERTDIR]
    if not file or {"filter-command", "filter-phrase-table"} & given.keys():
        notes += _set_filter(given, values)
    notes += _idle(given, algorithm)
    return make_plan(values), tuple(notes)


_SETTINGS = {option.name: option for option in list_options(RunPlan)}
_DEFAULTS = {"working-dir": "mert-work", "threads": 1}
_MERTDIR = "--mertdir is not needed: metrics and optimizers are built in"


def _options() -> tuple[Opt, ...]:
    return (*list_script_options(), *list_additions())


def _refuse(parsed: CommandLine) -> None:
    """Reject refused options before anything else is checked."""
    refused = [
        explain_refusal(option)
        for option in _options()
        if option.is_refused and option.name in parsed.values
    ]
    if refused:
        raise UsageError("; ".join(refused))


def _algorithm(given: Mapping[str, Any], values: _Values, default: str) -> str:
    """Return the algorithm that ``--algorithm`` or a flag of the script names."""
    flags = {
        f"--{option.name}": str(option.sets["algorithm"])
        for option in _options()
        if "algorithm" in option.sets and given.get(option.name)
    }
    named = values.get("algorithm")
    if len(flags) + (named is not None) > 1:
        every = [*flags, *(["--algorithm"] if named is not None else [])]
        raise UsageError(f"{' and '.join(every)} exclude each other: use one of them")
    return str(named or next(iter(flags.values()), default))


def _choose_by_flags(given: Mapping[str, Any], values: _Values) -> None:
    """Translate the script's flags to settings."""
    if given.get("return-best-dev"):
        name = "select" if values.get("runs") is None else "select-run"
        if values.get(name) not in (None, "best-dev"):
            raise UsageError(
                f"--return-best-dev and --{name} exclude each other: use one of the two"
            )
        values[name] = "best-dev"
    if any(option.sets.get("forest") and given.get(option.name) for option in _options()):
        values["forest"] = True


def _set_learning(
    given: Mapping[str, Any],
    values: _Values,
    algorithm: str,
    tools: ToolArguments,
    file: _Values,
) -> None:
    """Translate the arguments of Moses' tools and the script's options to settings.

    The script's defaults do not replace settings of a file.
    """
    if not file or tools.metric or tools.settings or {*_METRIC} & {*given}:
        values["metric"], values["metric-settings"] = _metric(given, values, tools, file)
    options = dict(tools.options)
    if algorithm in _WITH_MERT:
        options = ({} if file else _SEARCH) | options | _mert_options(given)
    values["option"] = options | values.get("option", {})
    for name, value in (
        ("active", tools.active),
        ("threads", tools.threads),
        ("seed", tools.seed),
        ("forest-edges", tools.edges),
    ):
        if value is not None:
            values.setdefault(name, value)
    if "threads" in values:
        values["threads"] = max(1, values["threads"])


def _tools(given: Mapping[str, Any], algorithm: str) -> ToolArguments:
    """Return the arguments of all tools; later ones replace earlier ones.

    Arguments of ``mert`` are accepted with any algorithm, as in the script, since they may name the
    metric. Their options are used only if ``mert`` is the algorithm.
    """
    _refuse_arguments_of_others(given, algorithm)
    merged: dict[str, Any] = {}
    options: dict[str, object] = {}
    for name in ("batch-mira-args", "proargs", "mertargs", "mertmertargs", "extractorargs"):
        part = dict(vars(read_tool_arguments(given.get(name, ""), name)))
        own = part.pop("options")
        if algorithm in _WITH_MERT or name not in ("mertargs", "mertmertargs"):
            options |= own
        merged |= {field: value for field, value in part.items() if value is not None}
    return ToolArguments(**merged, options=options)


def _refuse_arguments_of_others(given: Mapping[str, Any], algorithm: str) -> None:
    """Reject arguments of a tool that does not run."""
    if given.get("batch-mira-args") and algorithm != "kbmira":
        raise UsageError(
            "--batch-mira-args are for --batch-mira and --hg-mira: give one of them too, or leave"
            " them out"
        )
    if given.get("proargs") and algorithm not in ("pro", "pro+mert"):
        raise UsageError(
            "--proargs are for --pairwise-ranked or --pro-starting-point: give one of them too, or"
            " leave them out"
        )


def _metric(
    given: Mapping[str, Any], values: _Values, tools: ToolArguments, file: _Values
) -> tuple[str, str]:
    """Return name and settings of the metric, as in ``--sctype`` and ``--scconfig``."""
    lengths = [name for name in _REFERENCE_LENGTHS if given.get(name)]
    if len(lengths) > 1:
        raise UsageError(
            f"{' and '.join('--' + name for name in lengths)} exclude each other: use one of them"
        )
    name = values.get("metric") or tools.metric or file.get("metric", "BLEU")
    if lengths and "BLEU" not in name.split(","):
        raise UsageError(f"--{lengths[0]} chooses the reference length of BLEU, not of {name}")
    case = "case:false" if given.get("nocase") else "" if file else "case:true"
    flags = [f"reflen:{length}" for length in lengths]
    own = values.get("metric-settings", "")
    base = file.get("metric-settings", "") if name == file.get("metric") else ""
    return name, merge_metric_settings(own, tools.settings or "", *flags, case, base)


def _mert_options(given: Mapping[str, Any]) -> dict[str, object]:
    """Return the script's options of MERT by the names of the algorithm's settings."""
    options: dict[str, object] = {}
    if "random-restarts" in given:
        options["restarts"] = given["random-restarts"]
    if given.get("random-directions"):
        options |= {"method": "random-direction", "random_directions": 50}
    if given.get("number-of-random-directions"):
        options["random_directions"] = given["number-of-random-directions"]
    return options


def _set_filter(given: Mapping[str, Any], values: _Values) -> list[str]:
    """Choose the filter command as the script does; return notes to print."""
    if "decoder" not in values:  # a command decodes, which has no model to filter
        return []
    asked = values.pop("filter-command", None)
    is_wanted = given.get("filter-phrase-table")
    program = find_decoder(values["decoder"], "the decoder").program
    if program is None and asked is None and is_wanted is None:
        return []
    scripts = HelperScripts.find(values.get("moses-scripts"), program)
    command, note = choose_filter(scripts, is_wanted, asked)
    if command is not None:
        values["filter-command"] = command
    return [] if note is None else [note]


def _idle(given: Mapping[str, Any], algorithm: str) -> list[str]:
    """Return notes on options that have no effect with this algorithm."""
    if algorithm in _WITH_MERT:
        return []
    return [
        f"--{name} has no effect with {algorithm}: it is an option of MERT"
        for name in _MERT_ONLY
        if name in given
    ]
