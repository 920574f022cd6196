"""Tuning with search graphs of the bundled decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from formats.nbest.files import read_nbest
from mosesplug.cli.run.mert_options import read_command_line
from mosesplug.cli.run.mert_settings import make_script_plan
from mosesplug.events import Event, PhaseStarted
from mosesplug.forest.n_best import GraphFeatures, make_nbest_list
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning import tune
from mosesplug.tuning.workdir.records import read_result
from tests.tuning.bundled import DEMO, write_bundled_decoder, write_demo_sentences
from tests.tuning.graphs.forest_runs import assert_same_graphs, open_store

Files = Callable[[Path], dict[str, bytes]]

pytestmark = pytest.mark.usefixtures("decoder_in_process")


def interrupting(phase: str) -> Callable[[Event], None]:
    """A watcher that ends a run where a phase of the second iteration begins."""

    def watch(event: Event) -> None:
        if event == PhaseStarted(2, phase):  # type: ignore[arg-type]
            raise KeyboardInterrupt

    return watch


def demo(directory: Path, config: Path, flag: str, iterations: int) -> Configuration:
    """A run of the demo system's bundled decoder on six sentences."""
    decoder = write_bundled_decoder(directory / "decoder")
    write_demo_sentences(directory, 6)
    words = [directory / "tarvian", directory / "english", decoder, config, flag]
    words += ["--nbest=10", f"--maximum-iterations={iterations}", "--seed=5", "--random-restarts=1"]
    words += ["--decoder-flags=-stack 10", "--forest-edges=20", f"--working-dir={directory}/work"]
    return make_script_plan(read_command_line([*map(str, words)]))[0].configuration


@pytest.mark.parametrize("flag", ["--hg-mira", "--lattice-mert"])
def test_the_score_includes_fixed_weights(tmp_path: Path, flag: str) -> None:
    config = tmp_path / "fixed.ini"
    text = (DEMO / "moses.ini").read_text().replace("path=", f"path={DEMO}/")
    text = text.replace("\nDistortion\n", "\nDistortion tuneable=false\n")
    text = text.replace("num-features=4", "num-features=4 tuneable-components=true,false,true,true")
    config.write_text(text)
    made = demo(tmp_path, config, flag, iterations=1)
    tune(made)
    fixed = {"UnknownWordPenalty0": 1.0, "Distortion0": 0.3, "TranslationModel0_2": 0.2}
    with open_store(made.working_directory) as store, store.graphs() as graphs:
        found = read_result(store.iterations()[0])
        features = GraphFeatures(graphs.space, fixed)
        weights = features.vector(found.weights.dense, {})
        lists = [
            make_nbest_list(number, graphs.of_sentence(number), features, weights, 1)
            for number in range(6)
        ]
    texts = ["" if each is None else each.text(0).decode() for each in lists]
    english = (tmp_path / "english").read_text().splitlines()
    bleu = sacrebleu.corpus_bleu(
        texts, [english], tokenize="none", smooth_method="none", force=True
    )
    assert found.optimum == pytest.approx(bleu.score / 100.0, abs=1e-6)


@pytest.mark.parametrize(
    ("flag", "phases"), [("--hg-mira", ["score", "optimize"]), ("--lattice-mert", [])]
)
def test_graphs_of_the_bundled_decoder(
    tmp_path: Path, left_by_run: Files, flag: str, phases: list[str]
) -> None:
    """What ``mert-moses`` asks for, cut off before and after the graphs are stored."""
    made = demo(tmp_path, DEMO / "moses.ini", flag, iterations=2)
    tune(made)
    work = made.working_directory
    with open_store(work) as store:
        first, second = store.iterations()
        assert (first.n_graphs, second.n_graphs) == (6, 6)
        assert read_result(first).optimum > first.first_best_score
    # Lists begin with what the decoder itself thinks best.
    listed = read_nbest(work / "run2.best10.out.gz")
    firsts = np.flatnonzero(np.diff(listed.sentence_ids, prepend=-1)).tolist()
    translations = (work / "run2.out").read_bytes().splitlines()
    assert [listed.text(row) for row in firsts] == [line.strip() for line in translations]
    if not phases:
        return
    killed = replace(made, working_directory=tmp_path / "killed", existing="continue")
    for phase in phases:
        with pytest.raises(KeyboardInterrupt):
            tune(killed, interrupting(phase))
    tune(killed)
    assert left_by_run(killed.working_directory) == left_by_run(work)
    assert_same_graphs(killed.working_directory, work, 6)
