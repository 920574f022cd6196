"""Decoder errors are reported once and in full, keep stored data, and can be fixed."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.nbest.files import read_nbest_blocks
from formats.weights.files import read_show_weights
from mosesplug.cli.run.mert_options import read_command_line
from mosesplug.cli.run.mert_settings import make_script_plan
from mosesplug.decoders.lists.files import check_blocks
from mosesplug.decoders.processes import run as child_process
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.decoders.servers import process
from mosesplug.errors import DecoderError
from mosesplug.events import ignore_event
from mosesplug.features import FeatureSpace
from mosesplug.store import NBestStore
from tests.long_running.decoder_faults import (
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
from tests.long_running.faulty_decoder import ACCEPTED, BEFORE, REFUSED
from tests.waiting import LIMIT, hurry

_WHOLE = (*BEFORE, "empty", "cut-in-line", "cut-after-line", "nan", "order", "fewer-features")
"""Those that a whole run meets; the others are met by what reads its list."""
_MENDED = ("hangs",)
_GO_ON = "continue with the same command and --continue"
_SERVER = ("dies-at",)
"""Others are in ``tests/decoders``, and in what ``decoder_faults`` prints."""


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], tuple[System, Path]]:
    """A system, and the directory of a run of one iteration on it; created on first use."""
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
    """A system whose decoder works unless the test sets a fault."""
    found, _ = systems(False)
    yield found
    found.breaks(None)


def test_every_fault_has_its_row() -> None:
    hows = [fault.how for fault in FAULTS if not fault.server]
    assert sorted(hows) == sorted([*BEFORE, *REFUSED])


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if fault.how in (*_WHOLE, *_SERVER)],
    ids=lambda fault: fault.how,
)
def test_one_message_and_nothing_lost(
    fault: Fault,
    systems: Callable[[bool], tuple[System, Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = tmp_path / "work"
    if fault.how == "hangs":
        hurry(monkeypatch, child_process, lambda: _says(work, b"translating"))
    monkeypatch.setattr(process, "_DYING_SECONDS", LIMIT)
    system, begun = systems(fault.server)
    expected = whole(system, tmp_path / "whole") if fault.how in _MENDED else None
    met = outcome(system, fault, begun, expected, work)
    assert met.code == 1
    assert met.said.startswith("mosesplug: iteration 2: ")
    command = "--server" if fault.server else "-n-best-list"
    for words in (*fault.said, command, "decoder.err)" if not fault.server else "", _GO_ON):
        assert words in met.said
    assert "Traceback" not in met.said
    assert met.kept[0] == 1
    assert met.same


def _says(work: Path, words: bytes) -> bool:
    """Whether a decoder of a run has written these words to its messages."""
    return any(words in path.read_bytes() for path in work.glob("*.err"))


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if not fault.server and fault.how not in _WHOLE],
    ids=lambda fault: fault.how,
)
def test_a_list_that_cannot_be_used(
    fault: Fault, systems: Callable[[bool], tuple[System, Path]], tmp_path: Path
) -> None:
    """As a run meets it; ``tests.long_running.decoder_faults`` does whole runs with these."""
    _, begun = systems(False)
    lines = gzip.decompress((begun / "run1.best10.out.gz").read_bytes()).splitlines(keepends=True)
    path = tmp_path / "run2.best10.out.gz"
    path.write_bytes(gzip.compress(b"".join(REFUSED[fault.how](lines)), 1))
    groups = FeatureSpace.of_names(read_show_weights(begun / "features.list").names).groups
    lists = DecodedInput(path, ("decoder",), begun / "run1.out", tmp_path / "run2.decoder.err", 0.0)
    with pytest.raises((DecoderError, FormatError)) as caught:
        for _ in check_blocks(
            read_nbest_blocks(path), lists, groups=groups, n_sentences=6, watch=ignore_event
        ):
            pass
    for words in fault.said:
        assert words in str(caught.value)


def test_unusual_lists_are_accepted_unchanged(system: System, tmp_path: Path) -> None:
    system.breaks(" ".join(ACCEPTED))
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
    assert any(b"h\xfcnd\xff" in text for text in texts)
    assert max(map(len, written)) > 100_000
    assert len(texts) == 70  # of ten, one is listed twice
    assert len(written) == 140


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


def test_a_decoder_that_hangs_before_it_announces_features(tmp_path: Path) -> None:
    system = make_system(tmp_path / "system")
    (system.directory / "decoder").write_text("#!/bin/sh\necho loading >&2\nexec sleep 600\n")
    code, said = run(system.arguments(tmp_path / "work", "--decoder-timeout=0.5"))
    assert code == 1
    assert said.startswith("mosesplug: the decoder wrote nothing for 0.5 s and was killed")
    assert "-show-weights" in said


def test_the_limit_reaches_every_decoder(system: System, tmp_path: Path) -> None:
    given = {name: str(system.directory / name) for name in ("input", "reference", "decoder")}
    words = [*given.values(), str(system.directory / "moses.ini"), "--decoder-timeout=30.5"]
    words += [f"--heldout={given['input']}", f"--heldout-refs={given['reference']}"]
    words += [f"--heldout-decoder={given['decoder']}"]
    found = make_script_plan(read_command_line(words))[0].configuration
    assert found.decoding.decoder.timeout == 30.5
    assert found.held_out is not None
    assert found.held_out.decoder is not None
    assert found.held_out.decoder.timeout == 30.5
    for text in ("0", "-1", "nan"):
        code, said = run(system.arguments(tmp_path / "work", f"--decoder-timeout={text}"))
        assert code == 2
        assert "--decoder-timeout must be more than 0, and finite" in said
