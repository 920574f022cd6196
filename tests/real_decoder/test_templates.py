"""Templates beside the feature functions of the real decoder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from formats.nbest.entry import Place
from formats.nbest.files import read_nbest
from mosesplug.templates.declaration import Templates, read_ini_function
from mosesplug.templates.reading import read_derivation, split_words
from tests.real_decoder.system import System

FUNCTIONS = """\
WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-context=1
WordTranslationFeature name=WTR input-factor=0 output-factor=0 \
simple=1 source-context=1 source-path={de} target-path={en}
WordTranslationFeature name=WTI input-factor=0 output-factor=0 \
simple=1 source-context=1 ignore-punctuation=1
TargetWordInsertionFeature name=TWI factor=0
TargetWordInsertionFeature name=TWIR factor=0 path={en}
SourceWordDeletionFeature name=SWD factor=0
SourceWordDeletionFeature name=SWDR factor=0 path={de}
PhrasePairFeature name=PP input-factor=0 output-factor=0 unrestricted=1 simple=1 source-context=1
PhrasePairFeature name=PPR input-factor=0 output-factor=0 \
simple=0 source-context=1 ignore-punctuation=1 path={de}
PhraseLengthFeature name=PL
TargetBigramFeature name=TB factor=0 path=*
TargetBigramFeature name=TBR factor=0 path={en}
TargetNgramFeature name=TN factor=0 n=3 lower-ngrams=1 file=*
TargetNgramFeature name=TNR factor=0 n=2 lower-ngrams=0 file={en}
"""


@pytest.mark.parametrize("marks", [(), ("-report-segmentation-enriched", "true")])
def test_values_equal_those_of_moses(
    moses_home: Path, system: System, tmp_path: Path, marks: tuple[str, ...]
) -> None:
    """Every value of every hypothesis, with contexts, vocabularies and punctuation."""
    paths = {"de": tmp_path / "top.de", "en": tmp_path / "top.en"}
    paths["de"].write_text("ein\nmann\neine\n,\n.\n")
    paths["en"].write_text("a\nman\nin\nis\n,\n.\n")
    lines = FUNCTIONS.format(**paths).splitlines()
    ini = system.config.read_text().replace("[feature]\n", "\n".join(["[feature]", *lines, ""]), 1)
    (tmp_path / "moses.ini").write_text(ini)
    source = [*system.source.read_bytes().splitlines()[:8], b"ein mann ~ = ist x ."]
    (tmp_path / "source").write_bytes(b"".join(line + b"\n" for line in source))
    subprocess.run(
        [
            *(str(moses_home / "bin" / "moses"), "-f", "moses.ini", "-i", "source", "-v", "0"),
            *("-n-best-list", "nbest", "15", "distinct", "-print-alignment-info-in-n-best"),
            *("-include-segmentation-in-n-best", *marks, "-search-algorithm", "1"),
            *("-cube-pruning-pop-limit", "50", "-s", "20"),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    templates = Templates("", tuple(read_ini_function(line, tmp_path) for line in lines))
    block = read_nbest(tmp_path / "nbest")
    values = 0
    for row in range(len(block)):
        start, end = block.sparse_indptr[row : row + 2]
        expected = {
            block.sparse_names[column]: value
            for column, value in zip(
                block.sparse_indices[start:end].tolist(),
                block.sparse_data[start:end].tolist(),
                strict=True,
            )
            if value  # Moses writes 0 for what the hypothesis that it began with had
        }
        extra = b"" if marks else block.extra(row)
        sentence = split_words(source[block.sentence_ids[row]])
        derivation = read_derivation(sentence, block.text(row), extra, Place("nbest", row + 1))
        assert templates.count(derivation) == expected
        values += len(expected)
    assert len(block) > 100
    assert values > 200 * len(block)
