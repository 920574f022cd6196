"""Parsed graphs beside their files: the same arrays, never those of another content."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from formats.graphs.hypergraph_reader import HypergraphFile, read_hypergraph
from formats.graphs.parsed import ParsedGraphs

FIRST = "# target ||| features ||| source-covered\n"
ALIKE = FIRST + (
    "3 4\n# node 0\n1\n<s> ||| LM=-1.000000 TM=0.500000  ||| 0\n# node 1\n2\n"
    "[0] a b ||| LM=-1.250000 TM=-0.000000  ||| 1\n[0] c ||| LM=-14.987647 TM=1e-05  ||| 1\n"
    "# node 2\n1\n[1] </s> ||| LM=0.000000 TM=0.000000  ||| 1\n"
)
TEXTS = {
    "alike": ALIKE,
    "bare": ALIKE.replace("<s> ||| LM=-1.000000 TM=0.500000 ", "<s> ||| "),
    "sparse": ALIKE.replace("TM=1e-05", "S_\u00e9=1"),
    "without features": FIRST + "2 2\n1\n<s> |||  ||| 0\n1\n[0] x |||  ||| 1\n",
}


def fail() -> HypergraphFile:
    raise AssertionError("parsed again")


@pytest.mark.parametrize("name", TEXTS)
def test_the_arrays_are_those_of_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "graphs" / "0"
    path.parent.mkdir()
    path.write_text(TEXTS[name])
    parsed = ParsedGraphs.beside(path.parent)
    first = parsed.read(path, lambda: read_hypergraph(path))
    again = parsed.read(path, fail)
    for each in fields(HypergraphFile):
        wanted, found = getattr(first, each.name), getattr(again, each.name)
        if isinstance(wanted, np.ndarray):
            assert found.dtype == wanted.dtype
            assert found.tobytes() == wanted.tobytes()
        else:
            assert found == wanted
    path.write_text(TEXTS[name] + "\n")
    with pytest.raises(AssertionError, match="parsed again"):
        parsed.read(path, fail)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:60] + b"x" + data[61:]]
)
def test_damaged_arrays_are_parsed_again(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    parsed = ParsedGraphs.beside(tmp_path / "graphs")
    parsed.read(path, lambda: read_hypergraph(path))
    [kept] = parsed.directory.iterdir()
    data = kept.read_bytes()
    assert callable(damage)
    kept.write_bytes(damage(data))
    assert parsed.read(path, lambda: read_hypergraph(path)).names == ("LM", "TM")
    assert kept.read_bytes() == data


def test_unused_arrays_are_removed_and_other_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "0"
    parsed = ParsedGraphs.beside(tmp_path / "graphs")
    for text in (ALIKE, TEXTS["sparse"]):
        path.write_text(text)
        parsed.read(path, lambda: read_hypergraph(path))
    (parsed.directory / "notes").write_text("")
    for each in parsed.directory.iterdir():
        os.utime(each, (0, 0))
    parsed.read(path, fail)
    parsed.forget_unused()
    assert len(list(parsed.directory.iterdir())) == 2
    ParsedGraphs.remove(tmp_path / "graphs")
    assert [each.name for each in parsed.directory.iterdir()] == ["notes"]


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    (tmp_path / "graphs.parsed").write_text("a file\n")
    parsed = ParsedGraphs.beside(tmp_path / "graphs")
    assert parsed.read(path, lambda: read_hypergraph(path)).names == ("LM", "TM")
    parsed.forget_unused()
    assert (tmp_path / "graphs.parsed").read_text() == "a file\n"


def test_a_directory_that_others_write_to_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    parsed = ParsedGraphs.beside(tmp_path / "graphs")
    parsed.read(path, lambda: read_hypergraph(path))
    parsed.read(path, fail)
    parsed.directory.chmod(0o777)
    with pytest.raises(AssertionError, match="parsed again"):
        parsed.read(path, fail)
    parsed.directory.chmod(0o755)
    parsed.read(path, fail)
    other = path.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    parsed.read(path, fail)  # of the owner of the graphs
    stat = Path.stat

    def of_another(self: Path, **options: bool) -> os.stat_result:
        found = list(stat(self, **options))
        found[4] += 2 * (self == parsed.directory)
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", of_another)
    with pytest.raises(AssertionError, match="parsed again"):
        parsed.read(path, fail)


def test_a_graph_that_changes_while_it_is_parsed_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    parsed = ParsedGraphs.beside(tmp_path / "graphs")

    def change_and_parse() -> HypergraphFile:
        path.write_text(ALIKE.replace("a b", "changed"))
        return read_hypergraph(path)

    parsed.read(path, change_and_parse)
    path.write_text(ALIKE)
    with pytest.raises(AssertionError, match="parsed again"):
        parsed.read(path, fail)
