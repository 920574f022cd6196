"""A sample of hostile files, and those that once did harm; ``fuzz.py`` makes a million."""

from __future__ import annotations

import contextlib
import cProfile
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import formats
from mosesplug.store import graph_records, merge
from tests.long_running import hostile_directory, hostile_store
from tests.long_running.fuzz import fuzz, inputs, read_one
from tests.long_running.hostile_readers import DATA, FAMILIES
from tests.long_running.mutations import Chance

ROOT = DATA.parents[1]
FOUND = sorted(path for path in (DATA / "invalid/found").glob("*.*") if path.suffix != ".md")


WRITES = re.compile("(write|format|spell|explain|name)_|atomic_write|weight_overwrite")
ELSEWHERE = {
    *("infer_groups", "collect_blocks", "replace_id", "parse_values"),
    *("register_format", "find_plugin", "find_weight_format", "find_named_format"),
    *(
        "wrap_files",
        "sync_directory",
        "find_directory",
        "length_companion",
        "sparse_companion",
        "whole_sentences",
    ),
    "list_model_files",
}
"""What reads no file: arrays and lines of the store, objects of callers, names of formats, plug-ins
and files; and what copies pipes, which every reader can be given."""


def test_every_reader_gets_files(tmp_path: Path) -> None:
    """Every public function of ``formats`` that does not write is called by some reader."""
    profile = cProfile.Profile(builtins=False)
    path = tmp_path / "input"
    for family in FAMILIES.values():
        for text in dict.fromkeys(family.corpus):
            path.write_bytes(text)
            family.begin(path)
            for read in family.readers.values():
                with profile, contextlib.suppress(*family.refusals):
                    read(path)
    called = {entry.code for entry in profile.getstats()}
    for module in pkgutil.walk_packages(formats.__path__, "formats."):
        if module.ispkg:
            continue
        published = importlib.import_module(module.name)
        for name in {name for name in vars(published) if name[0] != "_"} - ELSEWHERE:
            function = inspect.unwrap(getattr(published, name))
            is_own = inspect.isfunction(function) and function.__module__ == module.name
            if is_own and not WRITES.match(name):
                assert function.__code__ in called, f"{module.name}.{name}"


def test_a_sample(tmp_path: Path) -> None:
    found = fuzz(2, 0, 2500, tmp_path)
    assert found.inputs.keys() == FAMILIES.keys()
    assert not {where: finding.told for where, finding in found.findings.items()}
    assert not list(tmp_path.iterdir())
    # A fuzzer whose inputs are all refused at the first byte would find nothing.
    assert all(found.read[name] for name in FAMILIES)


def test_a_seed_gives_the_same_inputs() -> None:
    assert list(inputs(3, 4, 50)) == list(inputs(3, 4, 50))
    assert list(inputs(3, 4, 50)) != list(inputs(3, 5, 50))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_inputs_that_once_caused_failures(path: Path, tmp_path: Path) -> None:
    text = path.read_bytes()
    for name, family in FAMILIES.items():
        for reader in family.readers:
            _, finding = read_one(name, reader, text, tmp_path / "input")
            assert finding is None, f"{name}, {reader}: {finding.told if finding else ''}"


def test_findings_are_explained() -> None:
    said = (DATA / "invalid/found/README.md").read_text()
    assert FOUND
    assert [path.name for path in FOUND] == re.findall(r"^- `([^`]+)`: ", said, re.MULTILINE)


def test_a_broken_reader_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        np.zeros(3)[int(path.read_bytes())]

    monkeypatch.setitem(FAMILIES["weights"].readers, "broken", read)
    assert read_one("weights", "broken", b"2", tmp_path / "input") == (True, None)
    _, finding = read_one("weights", "broken", b"3", tmp_path / "input")
    assert finding is not None
    assert "IndexError in test_fuzz.py:read" in finding.where


def test_a_reader_that_writes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = tmp_path / "beside"
    monkeypatch.setitem(
        FAMILIES["weights"].readers, "writing", lambda _: beside.write_bytes(b"what no reader does")
    )
    _, finding = read_one("weights", "writing", b"", tmp_path / "input")
    assert finding is not None
    assert "open" in finding.told


def test_columns_without_a_name_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be read beyond the weights if the store did not look at its records."""
    chance = Chance((12,))
    texts = [hostile_store.made(chance) for _ in range(20)]
    path = tmp_path / "input"
    assert not any(read_one("store", "store", text, path)[1] for text in texts)
    monkeypatch.setattr(merge, "_check_columns", lambda rows, n_sparse: rows)
    monkeypatch.setattr(
        graph_records, "decode_sound_graph", lambda buffer, _: graph_records.decode_graph(buffer)
    )
    found = [read_one("store", "store", text, path)[1] for text in texts]
    wheres = {finding.where for finding in found if finding is not None}
    assert {"_check_set", "_check_graph"} <= {where.rpartition(":")[2] for where in wheres}


RUNS_FILES = re.compile(
    r"\b(?:import|from) (?:pickle|cPickle|marshal|shelve|dill|cloudpickle|joblib|code|runpy)\b"
    r"|(?<![\w.])(?:eval|exec|compile|__import__)\(|\byaml\.|\bos\.(?:system|popen)\("
    r"|\bnp\.load\((?!.*allow_pickle=False)|allow_pickle=True|\bfromfile\(|\bto_pickle\b"
)
SHELLS = re.compile(r"shell=True|[\"'](?:/bin/)?(?:ba)?sh[\"']|\bgetoutput\(|getstatusoutput\(")


def _matches(pattern: re.Pattern[str]) -> dict[str, list[str]]:
    """What matches in the source, by file."""
    found: dict[str, list[str]] = {}
    for package in ("formats", "mosesplug"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if matches := pattern.findall(path.read_text()):
                found[str(path.relative_to(ROOT))] = matches
    return found


def test_no_file_can_hold_code() -> None:
    assert not _matches(RUNS_FILES)


def test_a_shell_is_started_nowhere_but_where_it_is_documented() -> None:
    """For --transform-decoded-file, --transform, and the filter of the extractor."""
    assert {name: len(found) for name, found in _matches(SHELLS).items()} == {
        "mosesplug/decoders/processes/line_filter.py": 1,
        "mosesplug/moses_tools/scoring.py": 1,
        "mosesplug/decoders/lists/files.py": 1,
    }


def test_generated_directories_have_no_links_outside(tmp_path: Path) -> None:
    """What makes hostile files must do no harm itself: it never writes through a link."""
    outside = tmp_path / "outside"
    (tmp_path / "input").write_bytes(b"l0=%s\x00f0=text\x00p1\x00f1=text" % bytes(outside))
    hostile_directory.begin(tmp_path / "input")
    assert not outside.exists()
