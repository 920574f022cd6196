"""A second tuner in a working directory is rejected and does not disturb the first."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mosesplug.cli.run.progress import Reporter
from mosesplug.events import PhaseStarted
from mosesplug.store import NBestStore
from tests.long_running.decoder_faults import run
from tests.long_running.system import System, make_toy

_LEARNER = ["--algorithm=perceptron", "--option=batch=3", "--epochs=2", "--min-change=0"]
_ONLINE = [*_LEARNER, "--online", "--online-decoder=process", "--shards=2"]
REGIMES = {
    "mert-moses": ["--maximum-iterations=2", "--algorithm=perceptron", "--epochs=1"],
    "online, sharded": [*_ONLINE, "--mixing=average"],
    "online, async": [*_ONLINE, "--async", "--async-order=fixed"],
}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    """A toy to tune."""
    return make_toy(tmp_path_factory.mktemp("second") / "system")


def arguments(system: System, regime: str, work: Path, *more: str) -> list[str]:
    files = (system.directory / name for name in ("input", "reference", "decoder", "moses.ini"))
    program = "mert-moses" if regime == "mert-moses" else "tune"
    words = [program, *map(str, files), f"--working-dir={work}", "--nbest=5", "--seed=1"]
    return [*words, "--quiet", *REGIMES[regime], *more]


@pytest.mark.parametrize("regime", REGIMES)
def test_a_second_tuner_is_rejected(
    regime: str, system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, refused = tmp_path / "work", []

    class Beside(Reporter):
        """Starts other runs when the second iteration begins."""

        def __call__(self, event: Any) -> None:
            super().__call__(event)
            if event == PhaseStarted(2, "decode") and not refused:
                others = [arguments(system, regime, work, "--continue")]
                others += [arguments(system, "mert-moses", work)]  # replaces what it finds
                refused.extend(map(run, others))

    monkeypatch.setattr("mosesplug.cli.run.running.Reporter", Beside)
    code, said = run(arguments(system, regime, work))
    assert code == 0, said
    assert [code for code, _ in refused] == [1, 1]
    for _, said in refused:
        assert f"another tuning run, process {os.getpid()} on {socket.gethostname()}: wait" in said
    with NBestStore.open(work / "nbests.lmdb") as store:
        assert len(store.iterations()) == 2


def test_locks_of_a_dead_process_are_ignored(system: System, tmp_path: Path) -> None:
    """Those of shards, too."""
    work = tmp_path / "work"
    words = arguments(system, "online, sharded", work)
    assert run([*words, "--max-iterations=1"])[0] == 0
    dead = subprocess.Popen(["true"])
    dead.wait()
    locks = [work / "tuning.lock", *work.rglob("writer.lock")]
    assert len(locks) == 4
    for lock in locks:
        lock.write_text(f"process {dead.pid} on {socket.gethostname()}\n")
    code, said = run([*words, "--continue"])
    assert code == 0, said
