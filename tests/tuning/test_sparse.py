"""Sparse features: their weights travel in files of their own."""

from __future__ import annotations

from typing import Any

import pytest

from formats.moses.ini import read_moses_ini
from formats.weights.files import read_sparse
from mosesplug.events import CommandStarted, Note
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any


def test_sparse_starting_weights_keep_their_scale(toy: Toy, log: Log) -> None:
    (toy.directory / "start.sparse").write_text("wt_hund 0.6\nwt_never 0.3\n")
    config = toy.directory / "moses.ini"
    config.write_text(f"[weight-file]\n{toy.directory}/start.sparse\n\n" + config.read_text())
    result = tune(toy.configuration(flags="-sparse", maximum_iterations=2), log)
    work = toy.directory / "work"
    norm = 0.3 + 0.5 + 1.0 + 3 * 0.2
    assert read_sparse(work / "run1.sparse-weights") == pytest.approx(
        {"wt_hund": 0.6 / norm, "wt_never": 0.3 / norm}
    )
    decodings = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    for number, command in enumerate(decodings, start=1):
        assert command[command.index("-weight-file") + 1] == f"run{number}.sparse-weights"
    # MERT leaves sparse weights alone, up to the factor that normalizes all.
    before, after = result.iterations[1].weights, result.weights
    assert set(after.sparse) == {"wt_hund", "wt_never"}
    assert after.sparse["wt_never"] == pytest.approx(0.3 / norm)
    assert after.sparse["wt_hund"] > 0
    assert before.sparse["wt_hund"] > 0
    tuned = read_moses_ini(work / "moses.ini").section("weight-file")
    assert [value.text for value in tuned] == [str(work / "run3.sparse-weights")]


def test_no_sparse_file_without_sparse_weights(toy: Toy, log: Log) -> None:
    tune(toy.configuration(flags="-sparse", maximum_iterations=2), log)
    # Once, and not as a warning, which would end a strict run.
    (note,) = [note for note in log.of(Note) if "sparse" in note.text]
    assert "mert tunes dense features only: the weights of" in note.text
    assert not note.is_warning
    assert not list((toy.directory / "work").glob("*sparse-weights"))
