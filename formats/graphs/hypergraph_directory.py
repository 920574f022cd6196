"""List a directory of search graphs written by Moses: ``0.gz``, ``1.gz``, ..., ``weights``.

The number is the sentence id, from 0; files may be compressed or not (``0``, ``0.txt``,
``0.gz``), and of other formats than Moses' (``0.slf``, ``0.json.gz``). Files whose names begin
with a dot are ignored: a writer that was killed leaves such files.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path

from formats.errors import FormatError
from formats.text import regular_file

__all__ = ["list_hypergraph_files"]

_NAME = re.compile(r"([0-9]{1,9})(\.(txt|slf|json))?(\.(gz|bz2|xz))?")
_WEIGHTS = "weights"


def list_hypergraph_files(directory: str | PathLike[str]) -> dict[int, Path]:
    """Return the graph file of each sentence id, in ascending order.

    Raises:
        FormatError: the path is not a directory; or the directory has no graph, two graphs of one
            sentence, or an entry that is not a graph: another name, a directory, a pipe.
    """
    try:
        entries = sorted(Path(directory).iterdir())
    except OSError as error:
        raise FormatError(error.strerror or str(error), path=directory) from None
    files: dict[int, Path] = {}
    for entry in entries:
        if entry.name == _WEIGHTS or entry.name.startswith("."):
            continue
        match = _NAME.fullmatch(entry.name)
        if match is None:
            raise FormatError(
                "not a search graph: the file name is not a sentence id",
                path=entry,
                remedy="Remove it, or name it 0.gz, 1.gz, ...",
            )
        number = int(match[1])
        if number in files:
            raise FormatError(
                f"sentence {number} has another file, {files[number].name}",
                path=entry,
                remedy="Remove one of the two",
            )
        files[number] = regular_file(entry)
    if not files:
        raise FormatError(
            "the directory has no search graphs", path=directory, remedy="Expected 0.gz, 1.gz, ..."
        )
    return dict(sorted(files.items()))
