"""Patterns of sparse features, against the phrases that a decoder can use."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.weights.files import ShowWeights, WeightGroup
from mosesplug.errors import UsageError
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.tuning.selection import check_patterns

TABLE = "das haus ||| the house ||| 0.1 ||| 0-0 1-1\nklein ||| small ||| 0.7 ||| 0-0\n"
INI = """\
[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TM num-features=1 path=table
WordTranslationFeature name=WT simple=1 source-context=1
SourceWordDeletionFeature name=SWD
[weight]
UnknownWordPenalty0= 1
TM= 0.2
"""
SHOW = ShowWeights((WeightGroup("TM", (0.2,)),), sparse=("WT", "SWD"))


def check(tmp_path: Path, pattern: str, ini: str = INI, *flags: str) -> None:
    (tmp_path / "table").write_text(TABLE)
    (tmp_path / "moses.ini").write_text(ini)
    check_patterns(
        FeatureSelection(active=("TM", pattern)),
        SHOW,
        tmp_path / "moses.ini",
        flags,
        tmp_path,
        [b"das haus", b"neu"],
    )


@pytest.mark.parametrize(
    "pattern", ["WT_*", "WT_*~house", "*~the", "WT_das,haus~*", "WT_neu~*", "WT_<s>,neu*", "*"]
)
def test_patterns_that_a_hypothesis_can_match(tmp_path: Path, pattern: str) -> None:
    """Unknown words are translated by themselves; contexts are words of the sentence."""
    check(tmp_path, pattern)


@pytest.mark.parametrize("pattern", ["WT_*~small", "WT_haus,das~*", "SWD_*", "WT_neu,*"])
def test_patterns_that_no_hypothesis_can_match(tmp_path: Path, pattern: str) -> None:
    """``klein`` is in the phrase table only."""
    with pytest.raises(UsageError) as error:
        check(tmp_path, pattern)
    assert f"{{--active}}: there is no feature {pattern}; known: TM, WT_*" in error.value.template


@pytest.mark.parametrize(
    ("ini", "flags"),
    [
        (INI.replace("Memory", "Compact"), ()),
        (INI.replace("[weight]", "TargetBigramFeature name=TB factor=0 path=*\n[weight]"), ()),
        (INI, ("-xml-input", "exclusive")),
        (INI, ("-mark-unknown",)),
    ],
)
def test_features_that_only_lists_tell(tmp_path: Path, ini: str, flags: tuple[str, ...]) -> None:
    check(tmp_path, "WT_*~small", ini, *flags)
