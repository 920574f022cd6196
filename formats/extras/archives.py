"""Files of a directory with a key and a text or number for each hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from formats.decimals import parse_number
from formats.errors import MACHINE_REMEDIES, FormatError
from formats.nbest.entry import BLANKS, is_not_finite
from formats.text import open_text

_Result = TypeVar("_Result")


def search_directory(find: Callable[[Path], _Result], path: Path) -> _Result:
    """Return what ``find`` finds at a path."""
    try:
        return find(path)
    except OSError as error:
        raise FormatError(
            f"cannot be read: {error.strerror}",
            path=error.filename or path,
            remedy=MACHINE_REMEDIES.get(error.errno or 0, "Check the name and the permissions"),
        ) from error


def find_file(directory: Path, names: Sequence[str]) -> Path | None:
    """Return the first of some files of a directory that exists, maybe compressed."""
    spelled = [f"{name}{end}" for name in names for end in ("", ".gz")]
    return next((directory / name for name in spelled if (directory / name).exists()), None)


def name_of_feature(path: Path) -> str:
    """Return the name of the feature that a file has the values of."""
    return path.name.removesuffix(".gz")


def read_first_line(path: Path) -> bytes:
    """Return the first line of a file, cut if it is long."""
    with open_text(path) as file:
        return file.readline(1 << 16)


def has_number(line: bytes, key: bytes) -> bool:
    """Return whether a line is the key and one number."""
    fields = line.split()
    if len(fields) != 2 or fields[0] != key:
        return False
    return parse_number(fields[1]) == parse_number(fields[1]) or is_not_finite(fields[1])


def iter_entries(file: BinaryIO) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the number, the key and the rest of each line that is not empty."""
    for number, line in enumerate(file, start=1):
        key, *rest = line.strip(BLANKS).split(None, 1)[:2] or [b""]
        if key:
            yield number, key, rest[0] if rest else b""
