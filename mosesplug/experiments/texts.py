"""The texts of an experiment: some sentences of files, unpacked, in its directory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.references import read_references
from formats.text import read_lines
from mosesplug.experiments.file import Experiment
from mosesplug.experiments.keys import TextKeys

_PART = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True)
class SharedText:
    """A tuning set or test set in the directory of the experiment.

    Attributes:
        references: a file, or the prefix of several.
        digest: of the source sentences.
        full_digest: of source sentences and references.
    """

    name: str
    input: Path
    references: Path
    n_sentences: int
    digest: str
    full_digest: str


def plan_text(
    experiment: Experiment, table: str, name: str, keys: TextKeys
) -> tuple[SharedText, Mapping[Path, bytes]]:
    """Return the text that a table of the file asks for, and the content of its files.

    Args:
        table: ``tuning`` or ``tests``.

    Raises:
        UsageError: input and references differ in their numbers of lines, a file is empty or cannot
            be read, or there are fewer sentences than asked for. The message names file and key.
    """
    place = f"[{table}.{name}]"
    try:
        lines = read_lines(keys.input)
        if not lines:
            raise experiment.error(f"{place} input", f"{keys.input} is empty: give sentences")
        references = read_references(keys.refs, len(lines), input_path=keys.input)
    except FormatError as error:
        raise experiment.error(place, error) from error
    chosen = _choose(experiment, place, keys, len(lines)).tolist()
    lines = [lines[number] for number in chosen]
    references = [[reference[number] for number in chosen] for reference in references]
    directory = experiment.directory / "texts"
    source, prefix = directory / f"{table}.{name}.src", directory / f"{table}.{name}.ref"
    paths = [prefix]
    if len(references) > 1:
        paths = [Path(f"{prefix}{number}") for number in range(len(references))]
    data = _join(lines)
    files = {path: _join(own) for path, own in zip(paths, references, strict=True)}
    full_digest = digest(b"".join([data, *files.values()]))
    text = SharedText(name, source, prefix, len(lines), digest(data), full_digest)
    return text, {source: data, **files}


def _choose(experiment: Experiment, place: str, keys: TextKeys, count: int) -> NDArray[np.int64]:
    """Return the numbers of the sentences of a text, in their order."""
    numbers = np.arange(count)
    if keys.part:
        match = _PART.fullmatch(keys.part)
        if match is None or int(match[1]) > int(match[2]) or int(match[2]) > count:
            raise experiment.error(
                f"{place} part",
                f"expected K/N, as 1/2, with K at most N and N at most {count}, not {keys.part}",
            )
        # A fixed permutation: parts of one text do not overlap, in whatever experiment.
        order = np.random.default_rng(0).permutation(count)
        numbers = np.sort(order[int(match[1]) - 1 :: int(match[2])])
    if keys.sentences is not None and keys.sentences > len(numbers):
        raise experiment.error(
            f"{place} sentences",
            f"{keys.input} has only {len(numbers)} sentences{' in this part' if keys.part else ''}:"
            f" give {len(numbers)} or fewer, or leave it out",
        )
    return numbers[: keys.sentences]


def digest(data: bytes) -> str:
    """Return a digest of the content of a file, which tells whether it has changed."""
    return hashlib.sha256(data).hexdigest()[:16]


def _join(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
