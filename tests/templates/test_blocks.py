"""Features that blocks of n-best lists get, beside those of each derivation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import Place
from formats.nbest.files import read_nbest
from mosesplug.errors import UsageError
from mosesplug.templates.blocks import TemplateFeatures
from mosesplug.templates.declaration import Templates
from mosesplug.templates.functions import (
    PhrasePairFeature,
    ShapeFeature,
    SourceWordDeletionFeature,
    TargetBigramFeature,
    TargetNgramFeature,
    TargetWordInsertionFeature,
    WordTranslationFeature,
)
from mosesplug.templates.reading import read_derivation, split_words

SOURCES = (b"das alte Haus , das alte Haus", b"", b"ja")
LINES = """\
0 ||| the old house the house ||| LM= -1 XY_a= 2 ||| -1 ||| 0-1=0-1 2-3=2 4-6=3-4 ||| 0-0 2-2 4-3
0 ||| the old house the house ||| LM= -2 ||| -2 ||| 4-5=0-1 2-3=2 0-1=3 6=4 ||| 4-0 5-1 2-2 0-3 6-4
0 ||| the house the house ||| LM= -3 ||| -3 ||| 0-1=0 2-3=1 4=2 5=2 6=3 ||| 0-0 2-1 6-3
0 ||| the old house  the house ||| LM= -4 ||| -4 ||| 4-6=0-2 0=3 1-3=4 ||| 4-0 5-1 5-1 6-2 0-3 2-4
1 |||  ||| LM= 0 ||| 0 ||| |||
2 ||| yes ||| LM= -1 XY_b= 1 XY_a= 1 ||| -1 ||| 0=0 ||| 0-0
2 ||| ja ||| LM= -1 ||| -1 ||| 0=0 ||| 0-0
2 ||| ja\x01ja\x1f ja ||| LM= -1 ||| -1 ||| 0=0-1 ||| 0-0
"""
TEMPLATES = Templates(
    "templates.toml",
    (
        WordTranslationFeature("WT"),
        WordTranslationFeature("WS", simple=False, source_context=True),
        WordTranslationFeature("WA", target_context=True),
        TargetWordInsertionFeature("TWI"),
        SourceWordDeletionFeature("SWD"),
        PhrasePairFeature("PP"),
        ShapeFeature("SH", True, True),
        TargetBigramFeature("TB"),
        TargetNgramFeature("TN", 3),
        TargetNgramFeature("TM", 2, words=frozenset(("the", "house"))),
    ),
)


def read(folder: Path, text: str) -> NBestList:
    path = folder / "list"
    path.write_text(text)
    return read_nbest(path)


def list_features(block: NBestList) -> list[dict[str, float]]:
    rows = []
    for row in range(len(block)):
        start, end = block.sparse_indptr[row : row + 2].tolist()
        names = [block.sparse_names[column] for column in block.sparse_indices[start:end].tolist()]
        rows.append(dict(zip(names, block.sparse_data[start:end].tolist(), strict=True)))
        assert len(rows[-1]) == len(names)
    return rows


def count_each(block: NBestList, templates: Templates) -> list[dict[str, float]]:
    """Return the features of derivations that are read one by one."""
    return [
        own
        | templates.count(
            read_derivation(
                split_words(SOURCES[block.sentence_ids[row]]),
                block.text(row),
                block.extra(row),
                Place("list", row + 1),
                needs=templates.needs,
            )
        )
        for row, own in enumerate(list_features(block))
    ]


def test_all_templates(tmp_path: Path) -> None:
    """Of usual and unusual lines: phrases without words, doubled points, control characters."""
    block = read(tmp_path, LINES)
    features = TemplateFeatures(TEMPLATES, SOURCES, "source")
    assert list_features(features.append(block)) == count_each(block, TEMPLATES)
    # Again, with what is known from the first block.
    assert list_features(features.append(block)) == count_each(block, TEMPLATES)


@pytest.mark.parametrize("kind", [PhrasePairFeature, TargetBigramFeature])
def test_marks_are_removed(tmp_path: Path, kind: type[PhrasePairFeature]) -> None:
    marked = "0 ||| the |0-1| old house |2-3| the house |4-6| ||| LM= -1 ||| -1\n"
    block = read(tmp_path, marked + "2 ||| yes |0-0| ||| LM= 0 ||| 0\n")
    templates = Templates("", (kind("X"),))
    appended = TemplateFeatures(templates, SOURCES, "source").append(block)
    assert [appended.text(row) for row in range(2)] == [b"the old house the house", b"yes"]
    assert list_features(appended) == count_each(block, templates)
    assert list_features(appended)[1].keys() & {"X_ja~~yes", "X_yes:</s>"}


def test_n_grams_need_no_fields(tmp_path: Path) -> None:
    block = read(tmp_path, "0 ||| the house ||| LM= 1 ||| 1\n")
    templates = Templates("", (TargetBigramFeature("TB"),))
    appended = TemplateFeatures(templates, SOURCES, "source").append(block)
    assert [*list_features(appended)[0]] == ["TB_<s>:the", "TB_the:house", "TB_house:</s>"]


def test_empty_block(tmp_path: Path) -> None:
    block = replace(read(tmp_path, LINES))
    empty = replace(block, sentence_ids=block.sentence_ids[:0])
    assert TemplateFeatures(TEMPLATES, SOURCES, "source").append(empty) is empty


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 ||| a ||| LM= 1 ||| 1", "list:1: the hypothesis has no segmentation into phrases"),
        ("0 ||| a ||| LM= 1 ||| 1 ||| 0-6=0", "list:1: the hypothesis has no word alignment"),
        ("0 ||| a ||| LM= 1 ||| 1 ||| 0-6=0 ||| 7-0", "list:1: the alignment point 7-0 is outside"),
        ("0 ||| a b ||| LM= 1 ||| 1 ||| 0-6=0 ||| 0-0", "list:1: the phrases of the segmentation"),
        ("2 ||| a ||| LM= 1 ||| 1 ||| 0-6=0 ||| 0-0", "source sentence has 1"),
        ("3 ||| a ||| LM= 1 ||| 1 ||| 0=0 ||| 0-0", "list:1: sentence 3 is not in source, which"),
        ("0 ||| a ||| LM= 1 ||| 1 ||| 0-6=0 ||| ", "WT and SWD in t.toml cannot have features"),
    ],
)
def test_errors(tmp_path: Path, line: str, message: str) -> None:
    templates = (WordTranslationFeature("WT"), PhrasePairFeature("PP"))
    features = TemplateFeatures(
        Templates("t.toml", (*templates, SourceWordDeletionFeature("SWD"))), SOURCES, "source"
    )
    with pytest.raises(FormatError) as caught:
        features.append(read(tmp_path, line + "\n"))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["WT_a~b", "WT"])
def test_features_of_the_decoder(tmp_path: Path, name: str) -> None:
    block = read(tmp_path, f"2 ||| a ||| {name}= 1 ||| 1 ||| 0=0 ||| 0-0\n")
    features = TemplateFeatures(
        Templates("t.toml", (WordTranslationFeature("WT"),)), SOURCES, "source"
    )
    with pytest.raises(UsageError, match=rf"t.toml: \[WT\] computes features .* such as {name}"):
        features.append(block)
