"""``forest:PLACE`` for a decoder on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.moses.ini import read_moses_ini
from mosesplug.cli.main import main as mosesplug
from tests.tuning.forests import graph_decoder, write_toy_graphs


def run(*words: str | Path) -> int:
    """A command in this process; its exit code."""
    with pytest.raises(SystemExit) as ended:
        mosesplug([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_tune(toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, references, decoder, config = toy_files
    graphs = write_toy_graphs(Path(text), tmp_path / "graphs")
    common = ("--nbest", "10", "--seed", "1", "--threads", "1", "--online", "--epochs", "1")
    learner = ("--algorithm", "adagrad", "--option", "batch=4")
    heldout = ("--heldout", text, f"{references}0")
    forest = f"forest:{graphs}"
    words = ("tune", text, references, forest, config, *common, *learner, "--working-dir")
    assert run(*words, tmp_path / "a") == 0
    assert run(*words, tmp_path / "b", *heldout, "--heldout-decoder", decoder) == 0
    assert run(*words, tmp_path / "c", *heldout, "--heldout-decoder", forest) == 0
    capsys.readouterr()
    first, second, third = (read_moses_ini(tmp_path / name / "moses.ini").weights for name in "abc")
    assert second == third
    assert first.keys() == second.keys()
    monitor = f"same={text},{references}"
    assert run(*words, tmp_path / "e", "--monitor", f"{monitor},{forest}") == 0
    assert "monitor same: BLEU" in capsys.readouterr().out
    assert f'"{monitor},{forest}"' in (tmp_path / "e" / "settings.toml").read_text()
    assert run(*words, tmp_path / "d", "--monitor", monitor) == 2
    assert f"name its own, --monitor {monitor},forest:DIR" in capsys.readouterr().err
    assert run(*words, tmp_path / "d", *heldout) == 2
    assert "--heldout-decoder" in capsys.readouterr().err
    assert run(*words, tmp_path / "d", "--heldout-decoder", decoder) == 2
    assert "--heldout-decoder requires --heldout" in capsys.readouterr().err
    assert run(*words, tmp_path / "d", "--decoder-flags", "-threads 2") == 2
    assert "decoder flags" in capsys.readouterr().err
    assert run(*words, tmp_path / "d", "--online-decoder", "server") == 2
    assert "--online-decoder" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_flags_go_to_the_program_that_translates_held_out_text(
    toy_files: list[str], tmp_path: Path
) -> None:
    text, references, decoder, config = toy_files
    forest = f"forest:{write_toy_graphs(Path(text), tmp_path / 'graphs')}"
    log = tmp_path / "words"
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {decoder} "$@"\n')
    spy.chmod(0o755)
    words = ("--nbest", "5", "--max-iterations", "1", "--working-dir", tmp_path / "w", "--quiet")
    heldout = ("--heldout", text, f"{references}0", "--heldout-decoder", spy)
    flags = ("--decoder-flags", "-threads 2", "--option", "epochs=1")
    assert run("tune", text, references, forest, config, *words, *heldout, *flags) == 0
    assert "-threads 2" in log.read_text()


def test_redecode_every(
    toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, references, _, config = toy_files
    decoder = graph_decoder(tmp_path / "graph-decoder")
    words = ("tune", text, references, decoder, config, "--working-dir", tmp_path / "w")
    more = ("--nbest", "5", "--max-iterations", "2", "--min-change", "0", "--algorithm", "kbmira")
    assert run(*words, *more, "--redecode-every", "2") == 2
    assert "--redecode-every requires --forest" in capsys.readouterr().err
    assert run(*words, *more, "--redecode-every", "2", "--forest", "--verbose") == 0
    assert capsys.readouterr().err.count("-output-search-graph-hypergraph") == 1
    # The stored graphs of the run are a decoder for the next run.
    again = ("tune", text, references, f"forest:{tmp_path}/w", config, "--working-dir")
    assert run(*again, tmp_path / "x", *more) == 0
    assert (tmp_path / "x" / "run2.best5.out.gz").is_file()


def test_rejected(toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, references, _, config = toy_files
    words = ("tune", text, references)
    more = (config, "--working-dir", tmp_path / "w")
    assert run(*words, f"forest:{tmp_path}/none", *more) == 2
    assert f"{tmp_path}/none does not exist" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(*words, f"forest:{tmp_path}/empty", *more) == 1
    assert "there are no search graphs in" in capsys.readouterr().err
    graphs = write_toy_graphs(Path(text), tmp_path / "graphs")
    assert run(*words, f"forest:{graphs}", config, "--working-dir", graphs) == 2
    assert "name another --working-dir" in capsys.readouterr().err
    assert len(list(graphs.iterdir())) == 9
