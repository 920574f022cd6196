"""The comparison of tuning programs (``tests.benchmarks.truth``) is reproducible."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.moses.ini import read_moses_ini
from tests.benchmarks.truth import protocol
from tests.benchmarks.truth.protocol import TestSet, run_system
from tests.benchmarks.truth.systems import Task, TuningSystem, tune
from tests.real_decoder.programs import Programs, run_here


def test_a_seed_decides_weights_and_scores(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a program of its own, and in this process, which hashes differently."""

    def run_command(command: list[str], directory: Path) -> float:
        run_here(command[1:])
        return 0.0

    system = programs.system
    flags = "-v 0 -search-algorithm 1 -cube-pruning-pop-limit 60 -s 30"
    home = programs.home
    task = Task(
        system.source, system.reference, system.config, home, home / "bin", flags, threads=2
    )
    judged = [TestSet("tuned", system.source, system.reference)]
    options = ("--algorithm", "kbmira", "--option", "epochs=5", "--max-iterations", "2")
    short = TuningSystem("kbmira", tune(*options), "mosesplug tune, two iterations")
    found = []
    for name in ("program", "here"):
        if name == "here":
            monkeypatch.setattr(protocol, "_run", run_command)
        out = programs.directory / name
        out.mkdir()
        result = run_system(short, 7, task, judged, out)
        run = out / "kbmira.7"
        weights = read_moses_ini(run / "work" / "moses.ini").weights
        found.append((result.bleu, result.iterations, weights, (run / "tuned.out").read_bytes()))
    assert found[0] == found[1]
