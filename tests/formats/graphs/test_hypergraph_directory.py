"""Directories of search graphs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph_directory import hypergraph_files


def test_files_of_sentences(tmp_path: Path) -> None:
    for name in ("10.gz", "2", "0.txt", "11.xz", "weights", ".3.gz.17.a8"):
        (tmp_path / name).touch()
    found = hypergraph_files(tmp_path)
    assert [(number, path.name) for number, path in found.items()] == [
        (0, "0.txt"),
        (2, "2"),
        (10, "10.gz"),
        (11, "11.xz"),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "there is no search graph in it"),
        (("weights",), "there is no search graph in it"),
        (("0.gz", "notes.txt"), "notes.txt: this is no search graph"),
        (("-1.gz",), "-1.gz: this is no search graph"),
        (("3.gz", "3"), "3.gz: 3 is of the same sentence"),
        (("03.gz", "3.gz"), "3.gz: 03.gz is of the same sentence"),
    ],
)
def test_what_is_no_such_directory(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(FormatError) as caught:
        hypergraph_files(tmp_path)
    assert message in str(caught.value)


def test_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "absent"):
        with pytest.raises(FormatError, match=name):
            hypergraph_files(tmp_path / name)


def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe that nobody writes would be waited for; a link to nowhere is told as absent."""
    (tmp_path / "0.gz").symlink_to("nowhere")
    assert hypergraph_files(tmp_path) == {0: tmp_path / "0.gz"}
    with pytest.raises(FormatError, match=r"0\.gz: cannot be read: No such file"):
        list(read_graphs(tmp_path))
    (tmp_path / "0.gz").unlink()
    (tmp_path / "0.gz").symlink_to("0.gz")
    with pytest.raises(FormatError, match=r"0\.gz: cannot be read: Too many levels"):
        list(read_graphs(tmp_path))
    os.mkfifo(tmp_path / "1")
    with pytest.raises(FormatError, match=r"1: this is not a regular file\. Put a file there"):
        hypergraph_files(tmp_path)
    (tmp_path / "1").unlink()
    (tmp_path / "1.gz").mkdir()
    with pytest.raises(FormatError, match=r"1\.gz: this is not a regular file"):
        hypergraph_files(tmp_path)
