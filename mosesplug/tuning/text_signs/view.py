"""The view that a metric has of a text, by its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mosesplug.metrics.normalization import NORMALIZATIONS, Normalization
from mosesplug.metrics.tokenizers import TOKENIZERS, tokenize_lines, tokenizer_of_signature

Blanks = Literal["ascii", "unicode", "ignored"]
"""Characters that separate words: the ASCII blank, all blanks of Unicode, or no character."""

_SPLIT_AT_UNICODE = "TER-SACREBLEU"
"""The metric without a tokenizer that splits at all blanks of Unicode."""


@dataclass(frozen=True)
class TextView:
    """The view that a metric has of a text.

    Attributes:
        tokenizer: one of ``metrics.tokenizers.TOKENIZERS``.
        normalization: applied before the text is tokenized.
        is_cased: whether capital letters differ from small ones.
        blanks: which characters separate words.
        compares_characters: whether characters are compared, and not words.
    """

    tokenizer: str = "none"
    normalization: Normalization = field(default=Normalization())
    is_cased: bool = True
    blanks: Blanks = "ascii"
    compares_characters: bool = False

    def normalize(self, lines: Iterable[bytes]) -> list[bytes]:
        """Return normalized lines."""
        return self.normalization.lines(lines)

    def tokenize(self, lines: Iterable[bytes]) -> list[bytes]:
        """Return normalized lines as words with blanks between them."""
        return tokenize_lines(self.tokenizer, lines, lowercase=False)


LITERAL = TextView()
"""For a metric that compares texts as they are."""


def views_of_signatures(signatures: Iterable[str]) -> tuple[TextView, ...]:
    """Return the distinct views of metrics that compare texts.

    Args:
        signatures: the metrics' signatures; those of weighted sums have one view for each metric.
    """
    every = (view for signature in signatures for view in _list_views(signature))
    return tuple(dict.fromkeys(every))


def _list_views(signature: str) -> Iterator[TextView]:
    first, *fields = signature.split("|")
    names = first.split(",")
    if len(names) == 1:
        yield from _make_view(first, fields)
        return
    starts = [place for place, field in enumerate(fields) if field in names]
    for start, end in zip(starts, [*starts[1:], len(fields)], strict=True):
        yield from _make_view(fields[start], fields[start + 1 : end])


def _make_view(name: str, fields: Sequence[str]) -> Iterator[TextView]:
    settings = dict(field.split(":", 1) for field in fields if ":" in field)
    if "outside" in settings:
        return
    # A plug-in may use these names for something else.
    own_tokenizer = tokenizer_of_signature("|".join(fields))
    tokenizer = own_tokenizer if own_tokenizer in TOKENIZERS else "none"
    steps = settings.get("normalize", "").split("+")
    normalization = Normalization(tuple(step for step in NORMALIZATIONS if step in steps))
    blanks: Blanks = "ascii"
    if settings.get("space") == "no" or settings.get("blanks") == "remove":
        blanks = "ignored"
    elif tokenizer != "none" or name == _SPLIT_AT_UNICODE:
        blanks = "unicode"
    is_cased = not settings.get("case", "").startswith("lc") and "lower" not in normalization.steps
    compares_characters = "space" in settings or "blanks" in settings
    yield TextView(tokenizer, normalization, is_cased, blanks, compares_characters)
