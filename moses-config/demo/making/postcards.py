"""Postcards: text of another kind than the training text.

They are short. They tell of rides, benches and cards, seldom of drives, banks and letters, and
their writers say "large", where the training text says "big" as often. So Tarvian words that stand
for several English ones mean something else than in most of the training text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from language import LARGE, Sentence, random_sentence

__all__ = ["write_postcard"]

LONGEST_SENTENCE = 12
WORDS_OF_OTHERS = frozenset(
    (
        *("bank", "banks", "letter", "letters", "box", "boxes", "bag", "bags", "stone", "stones"),
        *("school", "schools", "soldier", "soldiers", "heavy", "stupid"),
        *("carry", "carries", "carried", "drive", "drives", "drove", "repair", "repairs"),
        *("repaired", "sell", "sells", "sold", "steal", "steals", "stole", "work", "works"),
        "worked",
    )
)
KEPT = 0.1
"""Share of the sentences with such words that are sentences of postcards, too."""
SAYS_LARGE = 0.9


def write_postcard(rng: random.Random, names: Sequence[str]) -> Sentence:
    """A sentence of a postcard."""
    while True:
        sentence = random_sentence(rng, names)
        is_rare = not WORDS_OF_OTHERS.isdisjoint(sentence.english)
        if len(sentence.tarvian) <= LONGEST_SENTENCE and (not is_rare or rng.random() < KEPT):
            big, large = LARGE[0]
            words = (
                (large if rng.random() < SAYS_LARGE else big) if word in (big, large) else word
                for word in sentence.english
            )
            return replace(sentence, english=tuple(words))
