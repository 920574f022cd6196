"""Checks of list formats: blocks of whole sentences, archives, malformed files."""

from __future__ import annotations

import bz2
import gzip
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds, read_first_lines
from mosesplug.testing.checks import require, require_equal, require_error, run_checks

__all__ = ["LIST_FORMAT_CHECKS", "ListFormatCase", "check_list_format"]

CHANGES = 40
"""Damaged copies of each valid file."""


@dataclass(frozen=True)
class ListFormatCase:
    """A format, and files of it.

    Attributes:
        format: the format.
        valid: lists that it reads, files or directories.
        invalid: lists that it must reject.
        options: the options of all these files.
        is_recognized: whether ``auto`` must find it by the first lines of the valid files.
    """

    format: ListFormat
    valid: tuple[Path, ...]
    invalid: tuple[Path, ...]
    options: ListOptions = field(default_factory=ListOptions)
    is_recognized: bool = True

    @property
    def files(self) -> list[Path]:
        """Valid lists that are files; only these can be recognized, packed and damaged."""
        return [path for path in self.valid if path.is_file()]

    def read(self, path: Path) -> tuple[list[NBestList], tuple[str, ...]]:
        """Return the blocks of a file, and the ids that are texts."""
        ids = SentenceIds()
        return list(self.format.read_blocks(path, self.options, ids)), ids.names


def check_list_format(
    format: ListFormat,
    valid: Sequence[str | PathLike[str]],
    invalid: Sequence[str | PathLike[str]],
    options: ListOptions | None = None,
    *,
    is_recognized: bool = True,
) -> None:
    """Check that a format of n-best lists behaves as ``ListFormat`` says.

    Args:
        format: what the package registers.
        valid: at least one list that it reads.
        invalid: at least one list that it must reject with ``FormatError``.
        options: the options of all these files.
        is_recognized: whether ``--format auto`` must find it by the first lines.

    Raises:
        AssertionError: a check fails.
    """
    case = ListFormatCase(
        format,
        tuple(map(Path, valid)),
        tuple(map(Path, invalid)),
        options or ListOptions(),
        is_recognized,
    )
    require(bool(case.valid), "give at least one valid file")
    require(bool(case.invalid), "give at least one invalid file")
    run_checks(LIST_FORMAT_CHECKS, case, f"list format {format.name}")


def _description(case: ListFormatCase) -> None:
    require(0 < len(case.format.summary) <= 60, "summary must have 1 to 60 characters")
    require(case.format.name.strip() == case.format.name != "", "the name must not be blank")
    require(":" not in case.format.name, "the name must not have a colon")


def _recognition(case: ListFormatCase) -> None:
    if case.is_recognized:
        for path in case.files:
            require(case.format.recognizes(read_first_lines(path)), f"{path} is not recognized")
    for lines in ([b"x y\n"], [b"\xff\xfe\x00\n"], [b"a"], [b"0 1 2\n", b"x"]):
        found = case.format.recognizes(lines)
        require(isinstance(found, bool), "recognizes() must return a bool for any lines")


def _blocks(case: ListFormatCase) -> None:
    for path in case.valid:
        blocks, names = case.read(path)
        require(sum(map(len, blocks)) > 0, f"{path} has no hypotheses")
        for one, other in pairwise(block for block in blocks if len(block)):
            require(
                bool(one.sentence_ids[-1] < other.sentence_ids[0]),
                f"{path}: the hypotheses of a sentence are in two blocks, or ids decrease",
            )
        for block in blocks:
            _check_arrays(block, path)
        if names:
            last = max(int(block.sentence_ids[-1]) for block in blocks if len(block))
            require(last < len(names), f"{path}: sentence {last} has no name")


def _check_arrays(block: NBestList, path: Path) -> None:
    """Check shapes and types of a block."""
    n = len(block)
    width = sum(size for _, size in block.groups)
    require(block.dense.dtype == np.float32, f"{path}: dense values must be float32")
    require(block.dense.shape == (n, width), f"{path}: wrong shape {block.dense.shape} of values")
    require(bool(np.isfinite(block.dense).all()), f"{path}: a feature value is not finite")
    require(bool(np.isfinite(block.sparse_data).all()), f"{path}: a feature value is not finite")
    require(bool((np.diff(block.sentence_ids) >= 0).all()), f"{path}: sentence ids decrease")
    require(len(block.sparse_indptr) == n + 1, f"{path}: wrong length of sparse_indptr")
    if path.is_file() and path.suffix not in (".gz", ".bz2", ".xz"):
        lines = path.read_bytes().count(b"\n") + 1
        require(
            bool(((block.lines >= 1) & (block.lines <= lines)).all()),
            f"{path}: numbers of lines are outside of the file",
        )
    for row in range(n):
        block.text(row)


def _archives(case: ListFormatCase) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for path in case.files:
            expected, names = case.read(path)
            packers: dict[str, Callable[[bytes], bytes]] = {
                "list.gz": gzip.compress,
                "list.bz2": bz2.compress,
            }
            for file, pack in packers.items():
                packed = Path(directory, file)
                packed.write_bytes(pack(path.read_bytes()))
                found, found_names = case.read(packed)
                require(found_names == names, f"{path}: an archive has other ids")
                _require_same(expected, found, f"{path}: an archive reads differently")


def _texts(found: NBestList) -> list[bytes]:
    return [found.text(row) for row in range(len(found))]


def _require_same(first: list[NBestList], second: list[NBestList], what: str) -> None:
    one, other = concatenate(first), concatenate(second)
    require(len(one) == len(other) and one.groups == other.groups, what)
    require_equal(one.sentence_ids, other.sentence_ids, what)
    require_equal(one.dense, other.dense, what)
    require_equal(one.scores, other.scores, what)
    require(_texts(one) == _texts(other), what)


def _invalid_files(case: ListFormatCase) -> None:
    for path in case.invalid:
        error = require_error(FormatError, lambda path=path: case.read(path), f"{path}")  # type: ignore[misc]
        if isinstance(error, FormatError):
            require(error.path == str(path), f"{path}: the error names {error.path} as the file")
            require(bool(error.remedy), f"{path}: the error has no remedy: {error}")
    missing = Path(tempfile.gettempdir()) / "no such directory" / "list"
    require_error((FormatError, OSError), lambda: case.read(missing), "a file that is missing")


def _damaged_files(case: ListFormatCase) -> None:
    """Change bytes at random: each copy is read, or rejected by the one error."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        damaged = Path(directory, "damaged")
        for path in case.files:
            original = path.read_bytes()
            for _ in range(CHANGES):
                damaged.write_bytes(_damage(original, rng))
                try:
                    case.read(damaged)
                except FormatError:
                    continue
                except Exception as error:
                    kept = damaged.read_bytes()[:200]
                    raise AssertionError(
                        f"a damaged copy of {path} raises {type(error).__name__}: {error}; it must"
                        f" raise FormatError. It begins with {kept!r}"
                    ) from error


def _damage(data: bytes, rng: random.Random) -> bytes:
    """Return data with bytes changed, removed, repeated or cut off."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            changed[at : at + 1] = bytes([rng.choice(b"\x00\n\t |=:{}\"'-+.e09\xff")])
        elif kind == 1:
            del changed[at : at + rng.randint(1, 10)]
        elif kind == 2:
            changed[at:at] = changed[max(0, at - 20) : at]
        else:
            del changed[max(at, 1) :]
    return bytes(changed)


LIST_FORMAT_CHECKS: Mapping[str, Callable[[ListFormatCase], None]] = MappingProxyType(
    {
        "description": _description,
        "recognition": _recognition,
        "blocks": _blocks,
        "archives": _archives,
        "invalid files": _invalid_files,
        "damaged files": _damaged_files,
    }
)
"""The checks of ``check_list_format`` by name."""
