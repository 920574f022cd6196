"""Read the arguments of Moses' ``mert``, ``extractor``, ``kbmira`` and ``pro``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

from mosesplug.cli.moses import extractor, kbmira, mert, pro
from mosesplug.cli.moses.arguments import Program, parse_value
from mosesplug.errors import UsageError

_MERT_TAKEN = (
    *("--ntry", "--nrandom", "--type", "--rseed", "--threads", "--optimize"),
    *("--sctype", "--scconfig"),
)
_KBMIRA_VALUES = {"--iters": "epochs", "--cparam": "step_cap", "--decay": "decay"}
# Lists are not read again each epoch here, so that nothing is left of --streaming but the order.
_KBMIRA_FLAGS: dict[str, tuple[str, object]] = {
    "--no-shuffle": ("shuffle", False),
    "--streaming": ("shuffle", False),
    "--model-bg": ("background", "model"),
    "--safe-hope": ("safe_hope", True),
}
_NO_MATTER = frozenset(["--verbose", "--binary"])


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


def read_mert_arguments(text: str, option: str) -> ToolArguments:
    """Read arguments of ``mert``, given by the named option.

    Raises:
        UsageError: they cannot be read, or one of them is not supported.
    """
    # mert-moses.pl removes -binary and -b, which mert does not know.
    words = [w for w in _words(text, option) if w not in ("-b", "-binary", "--binary")]
    found: dict[str, str] = {}
    for name, value in _pairs(words, mert.PROGRAM, option):
        if name in _NO_MATTER:
            continue
        if name == "--type":
            method = next(each for each in mert.PROGRAM.options if each.name == "type")
            try:
                parse_value(method, value)
            except ValueError as error:
                raise UsageError(f"--{option}: -t {error}") from error
        if name not in _MERT_TAKEN:
            raise UsageError(
                f"--{option}: {name} is not supported. Supported: -n, -m, -r, -t, -o,"
                " --threads, --sctype, --scconfig"
            )
        found[name] = value
    options: dict[str, object] = {}
    for name, field_name in (("--ntry", "restarts"), ("--nrandom", "random_directions")):
        if name in found:
            options[field_name] = _integer(found[name], f"--{option}: {name}")
    if "--type" in found:
        options["method"] = found["--type"]
    seed, threads = (
        _integer(found[name], f"--{option}: {name}") if name in found else None
        for name in ("--rseed", "--threads")
    )
    return ToolArguments(
        found.get("--sctype"),
        found.get("--scconfig"),
        options,
        found.get("--optimize"),
        seed,
        threads,
    )


def read_extractor_arguments(text: str) -> ToolArguments:
    """Read arguments of ``extractor``.

    Raises:
        UsageError: they cannot be read, or one of them is not supported.
    """
    option = "extractorargs"
    found: dict[str, str] = {}
    for name, value in _pairs(_words(text, option), extractor.PROGRAM, option):
        if name in _NO_MATTER:
            continue
        if name not in ("--sctype", "--scconfig"):
            raise UsageError(
                f"--{option}: {name} is not supported. Supported: --sctype, --scconfig. To"
                " change hypotheses before scoring, use --transform-decoded-file."
            )
        found[name] = value
    return ToolArguments(found.get("--sctype"), found.get("--scconfig"))


def read_kbmira_arguments(text: str) -> ToolArguments:
    """Read arguments of ``kbmira``.

    Raises:
        UsageError: they cannot be read, or one of them is not supported.
    """
    option = "batch-mira-args"
    options: dict[str, object] = {}
    found: dict[str, str] = {}
    for name, value in _pairs(_words(text, option), kbmira.PROGRAM, option):
        if name in _KBMIRA_VALUES:
            options[_KBMIRA_VALUES[name]] = value
        elif name in _KBMIRA_FLAGS:
            setting, meaning = _KBMIRA_FLAGS[name]
            options[setting] = meaning
        elif name in ("--sctype", "--scconfig", "--random-seed", "--hg-prune"):
            found[name] = value
        elif name not in _NO_MATTER and (name, value) != ("--type", "nbest"):
            raise UsageError(
                f"--{option}: {name} is not supported. Supported: -J, -C, -D, -r,"
                " --no-shuffle, --streaming, --model-bg, --safe-hope, --hg-prune, --sctype,"
                " --scconfig"
            )
    edges = found.get("--hg-prune")
    return ToolArguments(
        found.get("--sctype"),
        found.get("--scconfig"),
        options,
        seed=_seed(found, option),
        edges=None if edges is None else _integer(edges, f"--{option}: --hg-prune"),
    )


def read_pro_arguments(text: str) -> ToolArguments:
    """Read arguments of ``pro``.

    Raises:
        UsageError: they cannot be read, or one of them is not supported.
    """
    option = "proargs"
    options: dict[str, object] = {}
    found: dict[str, str] = {}
    for name, value in _pairs(_words(text, option), pro.PROGRAM, option):
        if name == "--smooth-brevity-penalty":
            options["smooth_brevity_penalty"] = True
        elif name == "--random-seed":
            found[name] = value
        else:
            raise UsageError(f"--{option}: {name} is not supported. Supported: -b, -r")
    return ToolArguments(options=options, seed=_seed(found, option))


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


def _words(text: str, option: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--{option}={text!r}: {error}") from error


def _pairs(words: list[str], program: Program[Any], option: str) -> list[tuple[str, str]]:
    """Return the options with the texts of their values, by their long names."""
    try:
        # Boost rejects an option that is repeated; here, its last value counts.
        pairs = program.split(words)
    except UsageError as error:
        raise UsageError(f"--{option}: {error}") from error
    return [(f"--{name}", "" if value is True else value) for name, value in pairs]


def _seed(found: dict[str, str], option: str) -> int | None:
    if "--random-seed" not in found:
        return None
    return _integer(found["--random-seed"], f"--{option}: --random-seed")


def _integer(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"{what} must be an integer, not {text!r}") from error
