"""Whatever a decoder does wrong is told once and whole, costs nothing stored, and can be mended."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mosesplug.cli.getopt import parse
from mosesplug.cli.mert_options import ADDITIONS, OPTIONS
from mosesplug.cli.mert_settings import settings
from mosesplug.store import NBestStore
from tests.faults.decoder_faults import (
    FAULTS,
    Fault,
    System,
    begin,
    kept,
    make_system,
    outcome,
    run,
    whole,
)
from tests.faults.faulty_decoder import ACCEPTED, BEFORE, REFUSED

_MENDED = ("hangs", "order", "dies-at")
_GO_ON = "the same command with --continue goes on"
_SERVER = ("dies-at", "sleeps-at")
"""Others are in ``tests/decoders``, and in what ``decoder_faults`` prints."""


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], tuple[System, Path]]:
    """A system, and the directory of a run of one iteration on it; made when asked for."""
    made: dict[bool, tuple[System, Path]] = {}

    def get(server: bool) -> tuple[System, Path]:
        if server not in made:
            directory = tmp_path_factory.mktemp("system")
            system = make_system(directory, server=server)
            begin(system, directory / "begun")
            made[server] = system, directory / "begun"
        return made[server]

    return get


@pytest.fixture
def system(systems: Callable[[bool], tuple[System, Path]]) -> Iterator[System]:
    """One whose decoder works until it is told otherwise, and after the test again."""
    found, _ = systems(False)
    yield found
    found.breaks(None)


def test_every_fault_has_its_row() -> None:
    hows = [fault.how for fault in FAULTS if not fault.server]
    assert sorted(hows) == sorted([*BEFORE, *REFUSED])


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if not fault.server or fault.how in _SERVER],
    ids=lambda fault: fault.how,
)
def test_one_message_and_nothing_lost(
    fault: Fault, systems: Callable[[bool], tuple[System, Path]], tmp_path: Path
) -> None:
    system, begun = systems(fault.server)
    expected = whole(system, tmp_path / "whole") if fault.how in _MENDED else None
    met = outcome(system, fault, begun, expected, tmp_path / "work")
    assert met.code == 1
    assert met.said.startswith("mosesplug: iteration 2: ")
    command = "--server" if fault.server else "-n-best-list"
    for words in (*fault.said, command, "decoder.err)" if not fault.server else "", _GO_ON):
        assert words in met.said
    assert "Traceback" not in met.said
    assert met.kept[0] == 1
    assert met.same


@pytest.mark.parametrize("how", sorted(ACCEPTED))
def test_odd_lists_are_taken_as_they_are(how: str, system: System, tmp_path: Path) -> None:
    system.breaks(how)
    work = tmp_path / "work"
    code, said = run(system.arguments(work, "--max-iterations=1"))
    assert code == 0, said
    assert kept(work) == (1, 0)
    written = gzip.decompress((work / "run1.best10.out.gz").read_bytes()).splitlines()
    lines = [line.split(b" ||| ")[1].strip() for line in written if line]
    with NBestStore.open(work / "nbests.lmdb") as store:
        texts = [text for i in range(6) for text in store.iteration_list(1, i).texts]
        distinct = [text for i in range(6) for text in store.hypotheses(i)]
    assert texts == lines
    assert distinct == list(dict.fromkeys(lines))  # one that is listed twice counts once
    if how == "latin-1":
        assert any(b"h\xfcnd\xff" in text for text in texts)
        _look_at(work, tmp_path, texts)


def _look_at(work: Path, scratch: Path, texts: list[bytes]) -> None:
    """All that shows lists takes what is no UTF-8, and gives it back."""
    export = scratch / "exported"
    for words in (
        ["nbest", "show", str(work), "0"],
        ["nbest", "grep", str(work), "nd"],
        ["nbest", "export", str(work), "-o", str(export), "--iteration=1"],
        ["report", str(work), "-o", str(scratch / "report.html")],
    ):
        code, said = run(words)
        assert code == 0, said
    exported = export.read_bytes().splitlines()
    assert [line.split(b" ||| ")[1].strip() for line in exported] == texts


def test_a_list_that_was_compressed_by_halves(system: System, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    packed = gzip.compress(b"0 ||| ein hund ||| LM0= 1 ||| -1\n" * 500)
    (work / "run1.best10.out.gz").write_bytes(packed[: len(packed) // 2])
    files = (str(system.directory / n) for n in ("input", "reference", "decoder", "moses.ini"))
    words = ["mert-moses", *files, f"--working-dir={work}", "--nbest=10", "--skip-decoder"]
    code, said = run([*words, "--quiet"])
    assert code == 1
    assert "run1.best10.out.gz: the archive is cut short or damaged" in said
    assert "Traceback" not in said


def test_the_limit_reaches_every_decoder(system: System, tmp_path: Path) -> None:
    given = {name: str(system.directory / name) for name in ("input", "reference", "decoder")}
    words = [*given.values(), str(system.directory / "moses.ini"), "--decoder-timeout=30.5"]
    words += [f"--heldout={given['input']}", f"--heldout-refs={given['reference']}"]
    words += [f"--heldout-decoder={given['decoder']}"]
    specifications = [[option.specification for option in each] for each in (OPTIONS, ADDITIONS)]
    found = settings(parse(words, *specifications)).configuration
    assert found.decoding.decoder.timeout == 30.5
    assert found.held_out is not None
    assert found.held_out.decoder is not None
    assert found.held_out.decoder.timeout == 30.5
    for text in ("0", "-1", "nan"):
        code, said = run(system.arguments(tmp_path / "work", f"--decoder-timeout={text}"))
        assert code == 2
        assert "--decoder-timeout must be more than 0 seconds" in said
