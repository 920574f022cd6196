"""Directories of search graphs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph_directory import list_hypergraph_files


def test_files_of_sentences(tmp_path: Path) -> None:
    for name in ("10.gz", "2", "0.txt", "11.xz", "weights", ".3.gz.17.a8"):
        (tmp_path / name).touch()
    found = list_hypergraph_files(tmp_path)
    assert [(number, path.name) for number, path in found.items()] == [
        (0, "0.txt"),
        (2, "2"),
        (10, "10.gz"),
        (11, "11.xz"),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "the directory has no search graphs"),
        (("weights",), "the directory has no search graphs"),
        (
            ("0.gz", "notes.txt"),
            "notes.txt: not a search graph: the file name is not a sentence id",
        ),
        (("-1.gz",), "-1.gz: not a search graph: the file name is not a sentence id"),
        (("3.gz", "3"), "3.gz: sentence 3 has another file, 3"),
        (("03.gz", "3.gz"), "3.gz: sentence 3 has another file, 03.gz"),
    ],
)
def test_what_is_no_such_directory(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(FormatError) as caught:
        list_hypergraph_files(tmp_path)
    assert message in str(caught.value)


def test_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "absent"):
        with pytest.raises(FormatError, match=name):
            list_hypergraph_files(tmp_path / name)


def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe that nobody writes would be waited for; a link to nowhere is told as absent."""
    (tmp_path / "0.gz").symlink_to("nowhere")
    assert list_hypergraph_files(tmp_path) == {0: tmp_path / "0.gz"}
    with pytest.raises(FormatError, match=r"0\.gz: cannot be read: No such file"):
        list(read_graphs(tmp_path))
    (tmp_path / "0.gz").unlink()
    (tmp_path / "0.gz").symlink_to("0.gz")
    with pytest.raises(FormatError, match=r"0\.gz: cannot be read: Too many levels"):
        list(read_graphs(tmp_path))
    os.mkfifo(tmp_path / "1")
    with pytest.raises(FormatError, match=r"1: this is not a regular file\. Put a file there"):
        list_hypergraph_files(tmp_path)
    (tmp_path / "1").unlink()
    (tmp_path / "1.gz").mkdir()
    with pytest.raises(FormatError, match=r"1\.gz: this is not a regular file"):
        list_hypergraph_files(tmp_path)
