"""The loop on what real Moses wrote: a decoder that plays back recorded n-best lists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sacrebleu

from formats.moses.ini import read_moses_ini
from formats.weights.files import read_dense, read_init_opt
from mosesplug.decoders.description import MosesDecoder
from mosesplug.metrics import metric
from mosesplug.tuning import Configuration, DecodingSettings, OptimizerSettings, tune

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


@pytest.mark.slow
def test_recorded_iterations(multi30k: Path, tmp_path: Path) -> None:
    recorded = multi30k / "mert-work"
    player = tmp_path / "moses"
    player.write_text(PLAYER.format(python=sys.executable, recorded=str(recorded)))
    player.chmod(0o755)
    work = tmp_path / "work"
    reference = multi30k / "text" / "dev.en"
    result = tune(
        Configuration(
            input=multi30k / "text" / "dev.de",
            references=reference,
            config=multi30k / "model" / "moses.ini",
            working_directory=work,
            metric=metric("BLEU", "case:true"),
            decoding=DecodingSettings(MosesDecoder(player, ("-threads", "2"))),
            optimization=OptimizerSettings(options={"restarts": 0, "polish": 0}, seed=1, threads=2),
            maximum_iterations=2,
        )
    )
    assert result.iterations[0].hypotheses == 69878
    names = {path.name for path in recorded.iterdir() if path.name[:4] in ("run1", "run2")}
    assert {n for n in names if not n.endswith("mert.log")} <= {p.name for p in work.iterdir()}
    assert read_dense(work / "run1.dense") == read_dense(recorded / "run1.dense")
    assert read_init_opt(work / "run1.init.opt") == read_init_opt(recorded / "run1.init.opt")
    references = [reference.read_text().splitlines()]
    for number, iteration in enumerate(result.iterations, start=1):
        translations = (recorded / f"run{number}.out").read_text().splitlines()
        bleu = sacrebleu.corpus_bleu(translations, references, tokenize="none", force=True)
        assert iteration.first_best_score == pytest.approx(bleu.score / 100, abs=1e-9)
    # Moses' mert found 0.4098 in the first lists, from 21 starts; this is one of them.
    assert 0.40 < result.iterations[0].optimum < 0.42
    ours, theirs = read_moses_ini(work / "moses.ini"), read_moses_ini(recorded / "moses.ini")
    assert set(ours.weights) == set(theirs.weights)
    assert ours.section("threads")[0].text == theirs.section("threads")[0].text
