"""Directories of search graphs with anything in them.

An input is a list of entries with a zero byte between them: what it is (``f`` a file, ``d`` a
directory, ``p`` a pipe, ``l`` a link), its name, and behind ``=`` what is in it, or where it leads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph import list_hypergraph_files

__all__ = ["ENTRIES", "WORDS", "begin", "read"]

_GRAPH = Path(__file__).parents[1] / "data/valid/search_graph/tiny.hypergraph"

ENTRIES = (
    b"f0=\x00f1.gz=\x00fweights=P 1\n\x00f.2.gz.17=x",
    b"f3.slf=N=1\x00l4=0\x00f0=\x00f00=\x00f12345678901=",
    b"d0\x00p1\x00l2=/dev/zero\x00l3=nowhere\x00l4=4\x00f999999999=",
    b"f\xff=\x00f\nfoo=\x00f\xd9\xa3=\x00l0=..\x00l1=/etc/passwd\x00f-1=",
)
WORDS = (
    *(b"f", b"d", b"p", b"l", b"\x00", b"\x00f", b"=", b"0", b"1", b".gz", b".json", b".", b".."),
    *(b"weights", b"/dev/zero", b"/dev/stdin", b"\x1b[2J", b"\n", b"1\n1\n", b"\xe2\x80\xa8"),
)


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mosesplug-graphs-")


def _directory() -> Path:
    return Path(_place().name) / "graphs"


def begin(path: Path) -> None:
    """Make the directory that a file says."""
    directory = _directory()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    graph = _GRAPH.read_bytes()
    for entry in path.read_bytes().split(b"\0"):
        kind, (name, _, content) = entry[:1], entry[1:].partition(b"=")
        if not name or b"/" in name or name in (b".", b".."):
            continue
        place = os.path.join(os.fsencode(directory), name)  # noqa: PTH118 (of bytes)
        with contextlib.suppress(OSError):
            if kind == b"d":
                os.mkdir(place)  # noqa: PTH102
            elif kind == b"p":
                os.mkfifo(place)
            elif kind == b"l":
                os.symlink(content, place)  # noqa: PTH211
            else:
                with Path(os.fsdecode(place)).open("xb") as file:  # never through a link
                    file.write(content or graph)


def read(path: Path) -> None:
    """Read it.

    Raises:
        FormatError: something in it is no graph.
    """
    files = list_hypergraph_files(_directory())
    assert files
    assert list(files) == sorted(files)
    for number, file in files.items():
        assert 0 <= number < 10**9
        assert file.parent == _directory()
        with contextlib.suppress(FormatError):
            list(read_graphs(file))
    assert [number for number, _ in read_graphs(_directory())] == list(files)
