"""Read the arguments of Moses' ``mert``, ``extractor``, ``kbmira`` and ``pro``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosesplug.cli.moses import extractor, kbmira, mert, pro
from mosesplug.cli.moses.arguments import Program, parse_value
from mosesplug.errors import UsageError

_NO_MATTER = ("--verbose", "--binary")
_INTEGERS = ("seed", "threads", "edges", "restarts", "random_directions")
_METRIC = {"--sctype": "metric", "--scconfig": "settings"}


@dataclass(frozen=True)
class ToolArguments:
    """The values that the arguments give; None for those that they do not mention.

    Attributes:
        metric: ``--sctype``.
        settings: ``--scconfig``.
        options: values for options of the algorithm, by field name.
        active: features to tune, as for ``--activate-features``.
        seed, threads: as the options of these names.
        edges: number of edges of a search graph to keep per reference word, ``--hg-prune``.
    """

    metric: str | None = None
    settings: str | None = None
    options: dict[str, object] = field(default_factory=dict)
    active: str | None = None
    seed: int | None = None
    threads: int | None = None
    edges: int | None = None


@dataclass(frozen=True)
class _Tool:
    """A program of Moses, and the settings that its options stand for.

    Attributes:
        shared: fields of ``ToolArguments`` by options of the program.
        own: options of the algorithm by options of the program that have a value.
        flags: an option of the algorithm and its value by flags of the program.
        supported: the options that are read, for messages.
    """

    program: Program[Any]
    shared: Mapping[str, str]
    supported: str
    own: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, object]] = field(default_factory=dict)


_MERT = _Tool(
    mert.PROGRAM,
    {**_METRIC, "--optimize": "active", "--rseed": "seed", "--threads": "threads"},
    "-n, -m, -r, -t, -o, --threads, --sctype, --scconfig",
    {"--ntry": "restarts", "--nrandom": "random_directions", "--type": "method"},
)
_EXTRACTOR = _Tool(
    extractor.PROGRAM,
    _METRIC,
    "--sctype, --scconfig. To change hypotheses before scoring, use --transform-decoded-file.",
)
_KBMIRA = _Tool(
    kbmira.PROGRAM,
    {**_METRIC, "--random-seed": "seed", "--hg-prune": "edges"},
    "-J, -C, -D, -r, --no-shuffle, --streaming, --model-bg, --safe-hope, --hg-prune, --sctype,"
    " --scconfig",
    {"--iters": "epochs", "--cparam": "step_cap", "--decay": "decay"},
    # Lists are not read again each epoch, so that --streaming only chooses the order.
    {
        "--no-shuffle": ("shuffle", False),
        "--streaming": ("shuffle", False),
        "--model-bg": ("background", "model"),
        "--safe-hope": ("safe_hope", True),
    },
)
_PRO = _Tool(
    pro.PROGRAM,
    {"--random-seed": "seed"},
    "-b, -r",
    flags={"--smooth-brevity-penalty": ("smooth_brevity_penalty", True)},
)
_TOOLS = {
    "mertargs": _MERT,
    "mertmertargs": _MERT,
    "extractorargs": _EXTRACTOR,
    "batch-mira-args": _KBMIRA,
    "proargs": _PRO,
}


def read_tool_arguments(text: str, option: str) -> ToolArguments:
    """Read the arguments that an option of ``mert-moses`` gives to a program.

    Args:
        text: the words of the command line.
        option: ``mertargs``, ``mertmertargs``, ``extractorargs``, ``batch-mira-args`` or
            ``proargs``.

    Raises:
        UsageError: they cannot be read, or one of them is not supported.
    """
    tool = _TOOLS[option]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--{option}={text!r}: {error}") from error
    if tool is _MERT:  # mert-moses.pl removes -binary and -b, which mert does not know
        words = [word for word in words if word not in ("-b", "-binary", "--binary")]
    try:
        # Boost rejects an option that is repeated; here, its last value counts.
        pairs = [(f"--{name}", value) for name, value in tool.program.split(words)]
    except UsageError as error:
        raise UsageError(f"--{option}: {error}") from error
    values: dict[str, Any] = {}
    options: dict[str, object] = {}
    for name, value in pairs:
        target = tool.shared.get(name) or tool.own.get(name)
        if name in tool.flags:
            chosen, meaning = tool.flags[name]
            options[chosen] = meaning
        elif target is not None:
            holder = values if name in tool.shared else options
            holder[target] = _parse(target, value, f"--{option}: {name}")
        elif name not in _NO_MATTER and (name, value) != ("--type", "nbest"):
            raise UsageError(f"--{option}: {name} is not supported. Supported: {tool.supported}")
    if "method" in options:
        method = next(option for option in mert.PROGRAM.options if option.name == "type")
        try:
            parse_value(method, str(options["method"]))
        except ValueError as error:
            raise UsageError(f"--{option}: -t {error}") from error
    return ToolArguments(**values, options=options)


def _parse(target: str, text: str, what: str) -> str | int:
    if target not in _INTEGERS:
        return text
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"{what} must be an integer, not {text!r}") from error


def merge_metric_settings(*settings: str) -> str:
    """Join metric settings ``name:value,...``; the first value of a name counts.

    Moses' programs do the same.
    """
    merged: dict[str, str] = {}
    for text in settings:
        for pair in text.replace(",", " ").split():
            name, _, value = pair.partition(":")
            merged.setdefault(name, value)
    return ",".join(f"{name}:{value}" for name, value in merged.items())
