"""Decoders that are a command: ``my-decoder {weights} {input} {nbest}``.

Nothing here starts a process or touches a file.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from formats.weights.files import format_weight
from formats.weights.json_file import format_json_weights
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.kinds import WeightsFormat
from mosesplug.errors import UsageError

PLACEHOLDERS: Mapping[str, str] = {
    "weights": "file with the weights to decode with",
    "input": "file with the source sentences",
    "nbest": "file that the decoder writes its n-best lists to",
    "nbest-size": "most hypotheses of a sentence",
    "iteration": "number of the iteration, from 1",
}
"""The placeholders of a command, without braces, with their meanings."""

_REQUIRED = ("weights", "nbest")
_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z_-]*)\}")


@dataclass(frozen=True)
class CommandTemplate:
    """The command line of a decoder that is called with files.

    Attributes:
        words: the program, and arguments with placeholders.
        directory: the current directory of the command.
        weights_format: the format of the file of weights.
        timeout: seconds without output after which it is ended, or None.
    """

    words: tuple[str, ...]
    directory: Path = field(default_factory=Path.cwd)
    weights_format: WeightsFormat = "dense"
    timeout: float | None = None

    @property
    def takes_input(self) -> bool:
        """Whether the command names the file with the source sentences."""
        return any("{input}" in word for word in self.words)

    def call(
        self, *, weights: Path, input_file: Path, nbest_file: Path, nbest: int, iteration: int
    ) -> tuple[str, ...]:
        """Return the command line with each placeholder replaced within its word.

        Args:
            weights: file with the weights.
            input_file: file with the source sentences.
            nbest_file, nbest: file and length of the n-best lists.
        """
        values = {
            "weights": str(weights),
            "input": str(input_file),
            "nbest": str(nbest_file),
            "nbest-size": str(nbest),
            "iteration": str(iteration),
        }
        return tuple(_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.words)


def parse_command(text: str, option: str) -> tuple[str, ...]:
    """Split a command into words as a shell does, and check its placeholders.

    Args:
        text: the command.
        option: what messages call it.

    Raises:
        UsageError: a quote is not closed, a placeholder is unknown, or ``{weights}`` or
            ``{nbest}`` is missing.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from error
    used = [name for word in words for name in _PLACEHOLDER.findall(word)]
    spelled = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    for name in used:
        if name not in PLACEHOLDERS:
            similar = difflib.get_close_matches(name, PLACEHOLDERS, n=1)
            hint = f" Did you mean {{{similar[0]}}}?" if similar else ""
            raise UsageError(
                f"{option}: unknown placeholder {{{name}}}.{hint} The placeholders are {spelled}."
            )
    if missing := [f"{{{name}}}" for name in _REQUIRED if name not in used]:
        raise UsageError(
            f"{option} {text!r} has no {' and no '.join(missing)}: the decoder reads its weights"
            " from the file {weights} and writes its n-best lists to the file {nbest}"
        )
    return words


def format_decoder_weights(weights: ModelWeights, kind: WeightsFormat) -> bytes:
    """Return the text of a file of weights, with all digits.

    ``dense`` has ``Name= value value`` lines and then ``name value`` lines of sparse features,
    ``one-line`` the same words on one line, ``json`` is described in ``formats.weights.json_file``.

    Raises:
        ValueError: the format is ``moses``, which replaces weights in another file.
    """
    if kind == "json":
        groups = ((group.name, group.values) for group in weights.groups)
        return format_json_weights(groups, weights.sparse)
    if kind not in get_args(WeightsFormat) or kind == "moses":
        raise ValueError(f"weights cannot be written as {kind}")
    words = [
        f"{group.name}= {' '.join(format_weight(v) for v in group.values if v is not None)}"
        for group in weights.groups
        if group.is_tuneable
    ]
    words += [f"{name} {format_weight(value)}" for name, value in weights.sparse.items()]
    end = " " if kind == "one-line" else "\n"
    return (end.join(words) + "\n").encode("utf-8", "surrogateescape")
