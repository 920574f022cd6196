"""Sparse features of the bundled decoder, beside the templates that it computes them by."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.moses.ini import parse_moses_ini
from formats.nbest.entry import Place
from formats.nbest.files import read_nbest
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.templates.declaration import Templates, read_ini_function
from mosesplug.templates.reading import read_derivation, split_words

Decode = Callable[..., subprocess.CompletedProcess[bytes]]
DEMO = Path(__file__).parents[3] / "moses-config" / "demo"
FUNCTIONS = (
    "WordTranslationFeature name=WT",
    "TargetWordInsertionFeature name=TWI",
    "SourceWordDeletionFeature name=SWD",
    "PhrasePairFeature name=PP unrestricted=1",
    "PhraseLengthFeature name=PL",
    "ShapeFeature name=SH words=1 alignment=1",
    "WordTranslationFeature name=WC simple=0 source-context=1 window=2",
    "PhrasePairFeature name=PC simple=0 source-context=1 unrestricted=1",
    "WordTranslationFeature name=TC simple=0 target-context=1 window=1",
    "TargetBigramFeature name=TB",
    "TargetNgramFeature name=TN n=3",
)


def write_system(folder: Path, functions: tuple[str, ...]) -> None:
    ini = (DEMO / "moses.ini").read_text().replace("path=", f"path={DEMO}/")
    lines = "".join(f"{line}\n" for line in functions)
    (folder / "moses.ini").write_text(ini.replace("[feature]\n", f"[feature]\n{lines}"))
    source = (DEMO / "tune.tarvian").read_text().splitlines(keepends=True)[:6]
    (folder / "source").write_text("".join(source))


def test_lists_and_scores(decode: Decode, tmp_path: Path) -> None:
    """The lists have the features of their derivations, and scores include their weights."""
    (tmp_path / "sparse").write_text(
        "PL_s1 0.25\nPL_2,2 -0.5\nWC_rinoki,na~at 2\nTB_an:old 2\nXY_a 1\n"
    )
    write_system(tmp_path, FUNCTIONS)
    done = decode(
        *("-config", "moses.ini", "-input-file", "source", "-n-best-list", "nbest", "20"),
        *("-include-segmentation-in-n-best", "-print-alignment-info-in-n-best"),
        *("-weight-file", "sparse"),
    )
    assert done.returncode == 0
    assert b"sparse: 1 weights ignored: [feature] has no function of XY_a" in done.stderr
    templates = Templates("", tuple(read_ini_function(line, tmp_path) for line in FUNCTIONS))
    source = (tmp_path / "source").read_bytes().splitlines()
    block = read_nbest(tmp_path / "nbest")
    assert len(block) > 60
    contexts = {"WC_rinoki,na~at": 2.0, "TB_an:old": 2.0}
    weighted: set[str] = set()
    by_name = {"LM0": 0.5, "WordPenalty0": -1.0, "PhrasePenalty0": 0.2, "Distortion0": 0.3}
    by_name |= {"TranslationModel0": 0.2, "LexicalReordering0": 0.3}
    weights = [by_name[name] for name, width in block.groups for _ in range(width)]
    for row in range(len(block)):
        start, end = block.sparse_indptr[row : row + 2].tolist()
        names = [block.sparse_names[column] for column in block.sparse_indices[start:end].tolist()]
        values = dict(zip(names, block.sparse_data[start:end].tolist(), strict=True))
        sentence = split_words(source[block.sentence_ids[row]])
        place = Place("nbest", row + 1)
        derivation = read_derivation(sentence, block.text(row), block.extra(row), place)
        assert values == templates.count(derivation)
        unknown = sum(word in block.text(row).split() for word in (b"Wanda", b"Kasimir", b"Juno"))
        if not unknown:  # their penalty is in no list
            score = float(block.dense[row] @ weights)
            score += 0.25 * values.get("PL_s1", 0.0) - 0.5 * values.get("PL_2,2", 0.0)
            score += sum(weight * values.get(name, 0.0) for name, weight in contexts.items())
            assert block.scores[row] == pytest.approx(score, abs=2e-3)
            weighted.update(contexts.keys() & values.keys())
    assert weighted == contexts.keys()


def test_features_are_announced(decode: Decode, tmp_path: Path) -> None:
    write_system(tmp_path, FUNCTIONS[:2])
    done = decode("-config", "moses.ini", "-show-weights")
    assert done.stdout.endswith(b"\nWT=\nTWI=\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("WordTranslationFeature name=WT target-context=1", "target-context of WT has no window"),
        ("WordTranslationFeature name=WT domain-trigger=1", "support domain-trigger=false only"),
        ("PhraseBoundaryFeature name=PB", "does not support PhraseBoundaryFeature"),
    ],
)
def test_unsupported_functions(line: str, message: str) -> None:
    ini = parse_moses_ini(f"[feature]\n{line}\n".encode(), "moses.ini")
    with pytest.raises(FormatError, match=message) as caught:
        read_features(ini)
    assert caught.value.line == 2
