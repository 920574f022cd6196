"""Parsed graphs in a cache directory: the same arrays, never those of another content."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from formats.graphs.hypergraph import HypergraphFile
from formats.graphs.hypergraph_reader import read_hypergraph
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
    parsed = ParsedGraphs.open(tmp_path / "cache")
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
    parsed = ParsedGraphs.open(tmp_path / "cache")
    parsed.read(path, lambda: read_hypergraph(path))
    [kept] = parsed.list_files()
    data = kept.read_bytes()
    assert callable(damage)
    kept.write_bytes(damage(data))
    assert parsed.read(path, lambda: read_hypergraph(path)).names == ("LM", "TM")
    assert kept.read_bytes() == data


def test_the_least_recently_used_make_room(tmp_path: Path) -> None:
    """Each of sixteen folders has its share, so that no file is added beyond the bound."""
    path, many = tmp_path / "0", ParsedGraphs(tmp_path / "cache", 1e12)

    def read(number: int, parsed: ParsedGraphs) -> None:
        path.write_text(ALIKE.replace("a b", f"a{number}"))
        parsed.read(path, lambda: read_hypergraph(path))

    for number in range(64):
        read(number, many)
    (tmp_path / "cache" / "0" / "notes").write_text("")
    sizes = {file: file.stat().st_size for file in many.list_files()}
    assert len(sizes) == 64
    largest = max(sizes.values())
    few = replace(many, limit=16 * 2 * largest)
    for age, file in enumerate(sorted(sizes)):
        os.utime(file, (age, age))
    for number in range(64, 128):
        read(number, few)
    left = set(few.list_files())
    assert sum(file.stat().st_size for file in left) <= few.limit
    for folder in (tmp_path / "cache").iterdir():
        # Those of the second pass have today's time, so all that is left of the first is newest.
        old = sorted(file for file in sizes if file.parent == folder)
        kept = [file for file in old if file in left]
        assert kept == old[len(old) - len(kept) :]
    assert (tmp_path / "cache" / "0" / "notes").exists()


def test_what_this_command_uses_is_not_removed(tmp_path: Path) -> None:
    """Else a set of graphs beyond the bound would be written each time and never read."""
    path = tmp_path / "0"
    parsed = replace(ParsedGraphs.open(tmp_path / "cache"), limit=16 * 700)
    texts = [ALIKE.replace("a b", f"a{number}") for number in range(64)]
    for text in texts:
        path.write_text(text)
        parsed.read(path, lambda: read_hypergraph(path))
    first = set(parsed.list_files())
    assert 0 < len(first) <= 16
    for text in texts:
        path.write_text(text)
        parsed.read(path, lambda: read_hypergraph(path))
    assert set(parsed.list_files()) == first


@pytest.mark.parametrize("where", ["nowhere", "file"])
def test_nothing_is_kept_where_nothing_can_be_written(where: str, tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    (tmp_path / "file").write_text("a file\n")
    parsed = ParsedGraphs.open(None if where == "nowhere" else tmp_path / "file")
    for _ in range(2):
        assert parsed.read(path, lambda: read_hypergraph(path)).names == ("LM", "TM")
    assert not list(parsed.list_files())
    assert {file.name for file in tmp_path.iterdir()} == {"0", "file"}


@pytest.mark.parametrize("change", ["mode", "link", "owner"])
def test_a_directory_that_others_write_to_is_not_read(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    parsed = ParsedGraphs.open(tmp_path / "cache")
    parsed.read(path, lambda: read_hypergraph(path))
    parsed.read(path, fail)
    if change == "mode":
        (tmp_path / "cache").chmod(0o770)
    elif change == "link":
        (tmp_path / "cache").rename(tmp_path / "other")
        (tmp_path / "cache").symlink_to(tmp_path / "other")
    else:
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(AssertionError, match="parsed again"):
        parsed.read(path, fail)


def test_a_graph_that_changes_while_it_is_parsed_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "0"
    path.write_text(ALIKE)
    parsed = ParsedGraphs.open(tmp_path / "cache")

    def change_and_parse() -> HypergraphFile:
        path.write_text(ALIKE.replace("a b", "changed"))
        return read_hypergraph(path)

    parsed.read(path, change_and_parse)
    path.write_text(ALIKE)
    with pytest.raises(AssertionError, match="parsed again"):
        parsed.read(path, fail)
