"""Reading many graphs: in order, in threads or in processes, with the reader's errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.graphs.any_graph import Scan, read_graph
from formats.graphs.hypergraph import HypergraphFile
from mosesplug.forest import scanner
from mosesplug.forest.scanner import choose_scan
from mosesplug.tuning.graphs.reading import start_reading

GRAPH = "# target ||| features ||| source-covered\n1 1\n1\nw{} ||| A={} ||| 0\n"


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / str(number) for number in range(20)]
    for number, path in enumerate(found):
        path.write_text(GRAPH.format(number, number))
    return found


def read(path: Path, scan: Scan | None) -> tuple[HypergraphFile, bool, int]:
    return read_graph(path, scan=scan), scan is not None, os.getpid()


def test_small_files_are_read_without_kernels(paths: list[Path]) -> None:
    assert choose_scan(paths) is None
    assert choose_scan([paths[0].with_name("missing")]) is None
    with start_reading(read, paths, 2) as results:
        found = list(results)
    assert [graph.words for graph, _, _ in found] == [(b"w%d" % i,) for i in range(20)]
    assert not any(scanned for _, scanned, _ in found)
    assert len({process for _, _, process in found} - {os.getpid()}) == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_large_files_are_scanned_in_threads(
    paths: list[Path], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "_LEAST_BYTES", 100)
    with start_reading(read, paths, threads) as results:
        found = list(results)
    assert [graph.words for graph, _, _ in found] == [(b"w%d" % i,) for i in range(20)]
    assert {(scanned, process) for _, scanned, process in found} == {(True, os.getpid())}


def test_other_kinds_are_read_in_processes(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "_LEAST_BYTES", 100)
    for path in paths:
        path.write_text("1 1\n1\nw ||| A=1\n")
    with start_reading(read, paths, 2) as results:
        assert not any(scanned for _, scanned, _ in results)


def test_errors_are_those_of_the_reader(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_LEAST_BYTES", 100)
    paths[7].write_text(GRAPH.format(7, "nan"))
    with start_reading(read, paths, 2) as results:
        assert len([next(results) for _ in range(7)]) == 7
        with pytest.raises(FormatError, match="value of feature A is 'nan'") as caught:
            next(results)
    assert (caught.value.path, caught.value.line) == (str(paths[7]), 4)
