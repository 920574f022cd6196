"""Derivations of n-best lines, and what is wrong with them."""

from __future__ import annotations

import pytest

from formats.errors import FormatError
from formats.nbest.entry import Place
from mosesplug.templates.derivation import AlignedDerivation, Phrase, PhrasePair
from mosesplug.templates.reading import read_derivation
from mosesplug.templates.template import Need

SOURCE = ("das", "alte", "haus", "da")
PLACE = Place("list", 7)
EXPECTED = AlignedDerivation(
    SOURCE,
    (
        Phrase(0, PhrasePair(("das",), ("the",), ((0, 0),))),
        Phrase(2, PhrasePair(("haus", "da"), ("house", "there"), ((0, 0), (1, 1)))),
        Phrase(1, PhrasePair(("alte",), ())),
    ),
)


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        # Moses writes a phrase without words as if it had one, here at the end.
        (b"the house there", b" 0=0 2-3=1-2 1=3 ||| 0-0 2-1 3-2 "),
        (b"the |0-0| house there |2-3| |1-1|", b" 0-0 3-2 2-1 2-1"),
        (b"the |0-0,wa=0-0 ,total=-1.5,| house there |2-3,wa=1-1 0-0 ,total=2,| |1-1,wa=,t|", b""),
    ],
)
def test_forms(text: bytes, extra: bytes) -> None:
    assert read_derivation(SOURCE, text, extra, PLACE) == EXPECTED


def test_phrase_without_words_before_others() -> None:
    derivation = read_derivation(SOURCE, b"the house", b" 0=0 1=1 2-3=1 ||| ", PLACE)
    assert [phrase.pair.target for phrase in derivation.phrases] == [("the",), (), ("house",)]


def test_without_segmentation() -> None:
    """Templates that need none read the sentence as one phrase."""
    derivation = read_derivation(
        SOURCE, b"the house", b" 0-0 2-1 ", PLACE, needs=frozenset(("alignment",))
    )
    assert derivation.phrases == (
        Phrase(0, PhrasePair(SOURCE, ("the", "house"), ((0, 0), (2, 1)))),
    )


def test_empty_sentence() -> None:
    assert read_derivation((), b"", b" ||| ", PLACE) == AlignedDerivation((), ())


@pytest.mark.parametrize(
    ("text", "extra", "message"),
    [
        (b"the house", b"", "no segmentation into phrases"),
        (b"the house", b" 0-0 1-1 ", "no segmentation into phrases"),
        (b"the house", b" 0-3=0-1", "no word alignment"),
        (b"the house", b" 0-3=0-2 ||| ", "do not cover the 2 words"),
        (b"the house", b" 0-1=0 2-3=0-1 ||| ", None),
        (b"the house", b" 0-1=0 3=1 ||| ", "source word 2 is in no phrase"),
        (b"the house", b" 0-2=0 2-3=1 ||| ", "source word 2 is in two phrases"),
        (b"the house", b" 0-1=0 2=1 ||| ", "cover 3 source words, but the source sentence has 4"),
        (b"the house", b" 0-1=0 2~3=1 ||| ", "'2~3=1' in the segmentation"),
        (b"the house", b" 0-1=0 2-3=1 ||| 0-0 3-2", "3-2 is outside the sentence"),
        (b"the house", b" 0-1=0 2-3=1 ||| 0-0 1-1", "1-1 is outside its phrase"),
        (b"the |0-1,wa=0-1 ,total=1,| house |2-3|", b" 0-0", "0-1 is outside the phrase"),
        (b"the |0-1| house", b" 0-0", "no phrase boundary follows 'house'"),
    ],
)
def test_errors(text: bytes, extra: bytes, message: str | None) -> None:
    if message is None:
        read_derivation(SOURCE, text, extra, PLACE)
        return
    with pytest.raises(FormatError, match=message) as caught:
        read_derivation(SOURCE, text, extra, PLACE)
    assert str(caught.value).startswith("list:7: ")
    assert caught.value.remedy


def test_needs_decide() -> None:
    needs: frozenset[Need] = frozenset(("segmentation",))
    assert read_derivation(SOURCE, b"the", b" 0-3=0", PLACE, needs=needs).target == ("the",)
