"""Features of a derivation, counted by hand.

``tests/real_decoder/test_templates.py`` compares them with those of Moses.
"""

from __future__ import annotations

import pytest

from mosesplug.templates.derivation import AlignedDerivation, Phrase, PhrasePair
from mosesplug.templates.functions import (
    PhraseLengthFeature,
    PhrasePairFeature,
    ShapeFeature,
    SourceWordDeletionFeature,
    TargetBigramFeature,
    TargetNgramFeature,
    TargetWordInsertionFeature,
    WordTranslationFeature,
)
from mosesplug.templates.template import PhraseTemplate, Template

# das alte Haus , 10 -> the old | of 10 | House
HOUSE = PhrasePair(("Haus", ","), ("House",), ((0, 0),))
DERIVATION = AlignedDerivation(
    ("das", "alte", "Haus", ",", "10"),
    (
        Phrase(0, PhrasePair(("das", "alte"), ("the", "old"), ((0, 0), (1, 1)))),
        Phrase(4, PhrasePair(("10",), ("of", "10"), ((0, 1),))),
        Phrase(2, HOUSE),
    ),
)


@pytest.mark.parametrize(
    ("template", "features"),
    [
        (WordTranslationFeature("WT"), "das~the alte~old 10~10 Haus~House"),
        (
            WordTranslationFeature(
                "WT", source_words=frozenset(("das", "10")), target_words=frozenset(("the",))
            ),
            "das~the OTHER~OTHER 10~OTHER OTHER~OTHER",
        ),
        (
            WordTranslationFeature("WT", simple=False, source_context=True, window=1),
            "<s>,das~the das,alte~the das,alte~old alte,Haus~old alte,Haus~House Haus,,~House "
            ",,10~10",
        ),
        (
            WordTranslationFeature("WT", simple=False, target_context=True, window=2),
            "das~<s>,the alte~the,old 10~old,10 10~of,10 Haus~of,House Haus~10,House",
        ),
        (
            WordTranslationFeature("WT", target_context=True, ignore_punctuation=True, window=1),
            "das~the das~<s>,the alte~old alte~the,old Haus~House",
        ),
        (TargetWordInsertionFeature("TWI"), "of"),
        (TargetWordInsertionFeature("TWI", words=frozenset(("the",))), "OTHER"),
        (SourceWordDeletionFeature("SWD"), ","),
        (PhrasePairFeature("PP"), "das~alte~~the~old 10~~of~10 Haus~,~~House"),
        (PhraseLengthFeature("PL"), "s2 t2 2,2 s1 t2 1,2 s2 t1 2,1"),
        (ShapeFeature("SH"), "a~~a 9~~a9 A.~~A"),
        (ShapeFeature("SH", False, True), "2,2:0-0,1-1 1,2:0-1 2,1:0-0"),
        (TargetBigramFeature("TB"), "<s>:the the:old old:of of:10 10:House House:</s>"),
        (TargetBigramFeature("TB", words=frozenset(("the", "old"))), "<s>:the the:old"),
        (TargetNgramFeature("TN", 1), "the old of 10 House"),
        (
            TargetNgramFeature("TN", 4, False),
            "<s>:the:old:of the:old:of:10 old:of:10:House of:10:House:</s>",
        ),
    ],
)
def test_counts(template: Template, features: str) -> None:
    expected = {f"{template.name}_{feature}": 0.0 for feature in features.split()}
    for feature in features.split():
        expected[f"{template.name}_{feature}"] += 1
    assert template.count(DERIVATION) == expected


def test_local_templates_are_sums_over_pairs() -> None:
    template = WordTranslationFeature("WT")
    assert template.scope == "phrase"
    assert template.count_pair(HOUSE) == {"WT_Haus~House": 1}
    context = WordTranslationFeature("WT", source_context=True)
    assert context.scope == "source"
    with pytest.raises(ValueError, match="depend on what surrounds"):
        context.count_pair(HOUSE)
    assert not isinstance(TargetBigramFeature("TB"), PhraseTemplate)


def test_unknown_words_are_neither_inserted_nor_deleted() -> None:
    pair = PhrasePair(("xyz",), ("xyz",))
    assert TargetWordInsertionFeature("TWI").count_pair(pair) == {}
    assert SourceWordDeletionFeature("SWD").count_pair(pair) == {}
    assert SourceWordDeletionFeature("SWD").count_pair(PhrasePair(("x",), ())) == {"SWD_x": 1}


def test_short_sentences_have_n_grams() -> None:
    """Moses writes the end of a sentence alone if it is shorter than the n-gram."""
    derivation = AlignedDerivation(("ja",), (Phrase(0, PhrasePair(("ja",), ("yes",), ((0, 0),))),))
    template = TargetNgramFeature("TN", 3)
    assert [*template.count(derivation)] == ["TN_yes", "TN_<s>:yes", "TN_yes:</s>", "TN_</s>"]
