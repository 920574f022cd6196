"""The stand-ins for Moses' programs against what the real ones wrote for the demo system.

The recordings lie in the repository (``tests/data/moses``, made by its ``record.sh``), so every
claim of identity is tested in a bare clone, too.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from formats.moses.ini import read_moses_ini
from formats.nbest.files import read_nbest
from formats.text import read_bytes
from formats.weights.files import read_dense, read_init_opt
from mosesplug.cli.moses import evaluator, extractor, hgdecode, kbmira, mert, pro
from mosesplug.cli.moses import sentence_bleu as sentence_bleu_program
from mosesplug.cli.run import mert_moses
from mosesplug.extras.phrase_decoder import program as decoder

DEMO = Path(__file__).parents[3] / "moses-config" / "demo"
MOSES = Path(__file__).parents[2] / "data" / "moses" / "demo"
NBEST = MOSES / "script" / "run1.best20.out.gz"


def run(program: Callable[[Sequence[str]], None], *words: object) -> None:
    """Run a program that must succeed."""
    with pytest.raises(SystemExit) as ended:
        program([str(word) for word in words])
    assert not ended.value.code


@pytest.mark.parametrize("name", ["BLEU", "PER", "WER", "CDER", "TER", "BLEU,TER"])
def test_extractor_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    settings = "weights:0.6+0.4" if "," in name else "case:true"
    files = ("--ffile", tmp_path / "f", "--scfile", tmp_path / "s")
    texts = ("--reference", MOSES / "reference", "--nbest", NBEST)
    run(extractor.main, "--sctype", name, "--scconfig", settings, *texts, *files)
    recorded = MOSES / f"scores.{name.replace(',', '+')}.dat.gz"
    assert (tmp_path / "s").read_bytes() == read_bytes(recorded)
    assert (tmp_path / "f").read_bytes() == read_bytes(MOSES / "features.dat.gz")


def test_extractor_writes_the_same_binary_files(tmp_path: Path) -> None:
    files = ("--ffile", tmp_path / "f", "--scfile", tmp_path / "s")
    texts = ("--reference", MOSES / "reference", "--nbest", NBEST)
    run(extractor.main, "-b", "--sctype", "BLEU", "--scconfig", "case:true", *texts, *files)
    assert (tmp_path / "f").read_bytes() == read_bytes(MOSES / "features.bin.gz")
    assert (tmp_path / "s").read_bytes() == read_bytes(MOSES / "scores.bin.gz")


@pytest.mark.parametrize("line", (MOSES / "evaluator.txt").read_text().splitlines())
def test_evaluator_prints_the_same_score(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, score = line.split()
    texts = ("--reference", MOSES / "reference", "--candidate", MOSES / "script" / "run1.out")
    run(evaluator.main, "--sctype", name, *texts)
    assert capsys.readouterr().out == f"{score}\n"


def test_sentence_bleu_prints_the_same_scores(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (MOSES / "script" / "run1.out").open() as translations:
        monkeypatch.setattr(sys, "stdin", translations)
        run(sentence_bleu_program.main, MOSES / "reference")
    assert capsys.readouterr().out == (MOSES / "sentence-bleu.txt").read_text()


def test_pro_writes_the_same_bytes(tmp_path: Path) -> None:
    words = ("--ffile", MOSES / "features.dat.gz", "--scfile", MOSES / "scores.BLEU.dat.gz")
    run(pro.main, *words, "-r", 1000, "--output-file", tmp_path / "pro")
    assert (tmp_path / "pro").read_bytes() == read_bytes(MOSES / "pro.dat.gz")


def test_mert_reaches_the_recorded_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--ffile", MOSES / "features.dat.gz", "--scfile", MOSES / "scores.BLEU.dat.gz")
    start = MOSES / "script" / "run1.init.opt"
    dense = ("-d", 14, "--scconfig", "case:true", "--ifile", start, "-n", 5, "-r", 1000)
    run(mert.main, *words, *dense)
    pattern = re.compile(r"Best point: (.*?) +=> (\S+)")
    found = pattern.search(capsys.readouterr().err)
    recorded = pattern.search((MOSES / "mert.best").read_text())
    assert found is not None
    assert recorded is not None
    assert len(found[1].split()) == len(recorded[1].split()) == 14
    assert float(found[2]) >= float(recorded[2])


def test_kbmira_learns_the_same_from_search_graphs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every hope, fear, loss and weight of three epochs, to the last digit shown."""
    graphs = ("--type", "hypergraph", "--hgdir", MOSES / "graphs")
    words = ("--dense-init", MOSES / "script" / "run1.dense", "--no-shuffle", "-J", 3, "-r", 1)
    texts = ("--reference", MOSES / "graphs.reference", "--verbose", "-o", tmp_path / "weights")
    run(kbmira.main, *graphs, *words, *texts)
    assert (tmp_path / "weights").read_text() == (MOSES / "kbmira.graphs.weights").read_text()
    assert capsys.readouterr().err == (MOSES / "kbmira.graphs.log").read_text()


def test_hgdecode_finds_the_same_translations(capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        weights = ("-d", MOSES / "script" / "run1.dense")
        run(hgdecode.main, "--hypergraph", MOSES / "graphs" / f"{number}.gz", *weights)
    assert capfd.readouterr().out == (MOSES / "hgdecode.txt").read_text()


PLAYER = """#!{python} -IS
import gzip, shutil, sys
from pathlib import Path
recorded = Path({recorded!r})
if "-show-weights" in sys.argv:
    sys.stdout.write((recorded / "features.list").read_text())
    sys.exit()
name = sys.argv[sys.argv.index("-n-best-list") + 1]
with gzip.open(recorded / (name + ".gz")) as source, open(name, "wb") as target:
    shutil.copyfileobj(source, target)
sys.stdout.write((recorded / (name.partition(".")[0] + ".out")).read_text())
"""
"""A decoder that plays back the recorded lists."""


def test_mert_moses_leaves_the_files_of_the_script(tmp_path: Path) -> None:
    recorded = MOSES / "script"
    player = tmp_path / "moses"
    player.write_text(PLAYER.format(python=sys.executable, recorded=str(recorded)))
    player.chmod(0o755)
    for name in ("input", "reference"):
        shutil.copy(MOSES / name, tmp_path)
    shutil.copy(DEMO / "moses.ini", tmp_path)
    work = tmp_path / "work"
    words = (tmp_path / "input", tmp_path / "reference", player, tmp_path / "moses.ini")
    options = ("--no-filter-phrase-table", "--nbest=20", "--maximum-iterations=2", "--threads=1")
    run(mert_moses.main, *words, f"--working-dir={work}", "--predictable-seeds", *options)
    names = {path.name for path in recorded.iterdir()}
    assert names <= {path.name for path in work.iterdir()}
    for name in ("features.list", "run1.out", "run2.out"):
        assert (work / name).read_bytes() == (recorded / name).read_bytes()
    assert read_bytes(work / NBEST.name) == read_bytes(NBEST)
    assert read_dense(work / "run1.dense") == read_dense(recorded / "run1.dense")
    assert read_init_opt(work / "run1.init.opt") == read_init_opt(recorded / "run1.init.opt")
    ours, theirs = read_moses_ini(work / "moses.ini"), read_moses_ini(recorded / "moses.ini")
    assert set(ours.weights) == set(theirs.weights)


def test_the_bundled_decoder_writes_the_lists_of_moses(tmp_path: Path) -> None:
    """Moses sums in single precision and prints six digits, so values may differ in the last."""
    first = dict(read_dense(MOSES / "script" / "run1.dense"))
    norm = sum(abs(value) for values in first.values() for value in values)
    weights = " ".join(
        f"{name}= {' '.join(f'{value / norm:.6f}' for value in values)}"
        for name, values in first.items()
    )
    files = ("-f", DEMO / "moses.ini", "-input-file", MOSES / "input")
    listed = ("-n-best-list", tmp_path / "lists", 20, "distinct")
    run(decoder.main, *files, *listed, "-weight-overwrite", weights)
    ours, theirs = read_nbest(tmp_path / "lists"), read_nbest(NBEST)
    assert ours.groups == theirs.groups
    for sentence in range(12):
        best = [np.flatnonzero(lists.sentence_ids == sentence)[0] for lists in (ours, theirs)]
        assert texts(ours, sentence)[0] == texts(theirs, sentence)[0]
        np.testing.assert_allclose(ours.dense[best[0]], theirs.dense[best[1]], rtol=2e-5)
        shared = set(texts(ours, sentence)) & set(texts(theirs, sentence))
        assert len(shared) >= 0.7 * len(texts(theirs, sentence))


def texts(lists: object, sentence: int) -> list[bytes]:
    """The hypotheses of a sentence."""
    rows = np.flatnonzero(lists.sentence_ids == sentence)  # type: ignore[attr-defined]
    return [
        lists.buffer[lists.text_starts[row] : lists.text_ends[row]].tobytes()  # type: ignore[attr-defined]
        for row in rows
    ]
