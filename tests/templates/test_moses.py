"""Templates as lines of a moses.ini, which give the same templates again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.templates.declaration import Templates, read_ini_function
from mosesplug.templates.functions import (
    PhraseLengthFeature,
    PhrasePairFeature,
    ShapeFeature,
    TargetBigramFeature,
    TargetNgramFeature,
    TargetWordInsertionFeature,
    WordTranslationFeature,
)
from mosesplug.templates.moses import format_ini_functions
from mosesplug.templates.template import Template

WORDS = frozenset(("a", "b"))
ALL = (
    WordTranslationFeature("WT"),
    WordTranslationFeature("WC", False, True, source_words=WORDS, target_words=WORDS),
    TargetWordInsertionFeature("TWI", words=WORDS),
    WordTranslationFeature("WN", True, True, True, window=2),
    PhrasePairFeature("PP"),
    PhrasePairFeature("PC", True, True, True, WORDS),
    PhraseLengthFeature("PL"),
    ShapeFeature("SH", True, True),
    TargetBigramFeature("TB"),
    TargetBigramFeature("TR", WORDS),
    TargetNgramFeature("TN"),
    TargetNgramFeature("TL", 2, False, WORDS),
)


def test_round_trip(tmp_path: Path) -> None:
    lines, files = format_ini_functions(Templates("t.toml", ALL), str(tmp_path))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert len(files) == 5 + 1
    read = tuple(read_ini_function(line, tmp_path) for line in lines.splitlines())
    assert read == ALL
    # Moses never sets factors that are not given, so their values depend on what ran before.
    without = [line for line in lines.splitlines() if "factor=0" not in line]
    assert [line.split()[0] for line in without] == ["PhraseLengthFeature", "ShapeFeature"]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            WordTranslationFeature("WT", target_context=True),
            "target-context: no decoder computes .* window, .* rerank",
        ),
        (WordTranslationFeature("WT", target_words=WORDS), "both sides or of none"),
    ],
)
def test_impossible_functions(template: Template, message: str) -> None:
    with pytest.raises(UsageError, match=rf"t.toml: \[WT\].*{message}"):
        format_ini_functions(Templates("t.toml", (template,)), "words")
