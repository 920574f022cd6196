"""Postcards: text of another kind than the training text.

Some Tarvian words have several English translations, all common in the training text. In postcards,
"bench" is far more frequent than "bank", "card" than "letter", "ride" than "drive", and "large"
than "big". Postcards are also short. How far they differ was chosen freely: what sparse features
gain on them says nothing about other text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from language import LARGE, Sentence, random_sentence

__all__ = ["write_postcard"]

LONGEST_SENTENCE = 12
RARE_WORDS = frozenset(
    (
        *("bank", "banks", "letter", "letters", "box", "boxes", "bag", "bags", "stone", "stones"),
        *("school", "schools", "soldier", "soldiers", "heavy", "stupid"),
        *("carry", "carries", "carried", "drive", "drives", "drove", "repair", "repairs"),
        *("repaired", "sell", "sells", "sold", "steal", "steals", "stole", "work", "works"),
        "worked",
    )
)
KEEP_RARE = 0.1
"""Probability that a sentence with such words is kept."""
SAY_LARGE = 0.9
"""Probability of "large" where the training text has "big" or "large"."""


def write_postcard(rng: random.Random, names: Sequence[str]) -> Sentence:
    """A sentence of a postcard."""
    while True:
        sentence = random_sentence(rng, names)
        is_rare = not RARE_WORDS.isdisjoint(sentence.english)
        if len(sentence.tarvian) <= LONGEST_SENTENCE and (not is_rare or rng.random() < KEEP_RARE):
            big, large = LARGE[0]
            words = (
                (large if rng.random() < SAY_LARGE else big) if word in (big, large) else word
                for word in sentence.english
            )
            return replace(sentence, english=tuple(words))
