"""Reference translations: one file, or a prefix of several.

The files of the prefix ``dev.en`` are ``dev.en0``, ``dev.en1``, ...
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from formats.errors import FormatError
from formats.text import read_lines
from formats.transcripts import move_ids_to_front


def reference_files(prefix: str | PathLike[str]) -> list[Path]:
    """Return the files that a name stands for, by the rule of ``mert-moses.pl``.

    The file ``prefix`` itself if it exists; else ``prefix0``, ``prefix1``, ...; if there is no
    ``prefix0``, then ``prefix.ref0``, ``prefix.ref1``, ... Numbers must have no gaps. A directory
    counts as missing.

    Raises:
        FormatError: none of these exists, or a number is missing.
    """
    name = fspath(prefix)
    if _is_there(name):
        return [Path(name)]
    if not _is_there(f"{name}0") and _is_there(f"{name}.ref0"):
        name += ".ref"
    files: list[Path] = []
    while _is_there(f"{name}{len(files)}"):
        files.append(Path(f"{name}{len(files)}"))
    if not files:
        raise FormatError(
            "no such reference file, and none with 0 or .ref0 appended to its name",
            path=prefix,
            remedy="Give the reference file, or the common prefix of several numbered 0, 1, 2",
        )
    if _is_there(f"{name}{len(files) + 1}"):
        raise FormatError(
            f"reference {len(files)} of the prefix {name} is missing, but the next one exists",
            path=f"{name}{len(files)}",
            remedy="Number the references from 0 without a gap",
        )
    return files


def read_reference(path: str | PathLike[str]) -> list[bytes]:
    """Return the lines of one reference file, without the ``\\r`` of a line end.

    With the ``\\r``, the last word of a line would match no word of a decoder's output. Lines of
    transcripts begin with their ids (``formats.transcripts``).

    Raises:
        FormatError: the file cannot be read.
    """
    lines = [line.removesuffix(b"\r") for line in read_lines(path)]
    return move_ids_to_front(lines, path)


def _is_there(name: str) -> bool:
    return Path(name).exists() and not Path(name).is_dir()


def read_references(
    prefix: str | PathLike[str],
    n_lines: int | None = None,
    *,
    input_path: str | PathLike[str] | None = None,
) -> list[list[bytes]]:
    """Return the lines of all references, ``[reference][line]``.

    ``read_reference`` reads each file.

    Args:
        prefix: see ``reference_files``.
        n_lines: number of input lines; default: that of the first reference.

    Raises:
        FormatError: there is no reference, one cannot be read, their numbers of lines differ, or
            they are empty.
    """
    files = reference_files(prefix)
    references = [read_reference(file) for file in files]
    other = fspath(files[0]) if n_lines is None else fspath(input_path or "the input")
    expected = len(references[0]) if n_lines is None else n_lines
    for file, lines in zip(files, references, strict=True):
        if len(lines) != expected:
            raise FormatError(
                f"{len(lines)} lines, but {other} has {expected}",
                path=file,
                remedy="Line N of a reference must be the translation of line N of the input",
            )
    if not expected:
        raise FormatError(
            "the file has no sentences",
            path=other,
            remedy="Give the input and its reference translation, one sentence a line",
        )
    return references
