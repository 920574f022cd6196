"""Where a pattern occurs: in the input, the references, the hypotheses, or names of features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mosesplug.inspection.run import Run
from mosesplug.inspection.texts import Texts, decode_text

__all__ = ["FIELDS", "Field", "Hit", "hits"]

Field = Literal["source", "reference", "hypothesis", "feature"]
FIELDS: tuple[Field, ...] = ("source", "reference", "hypothesis", "feature")


@dataclass(frozen=True)
class Hit:
    """A text in which a pattern occurs.

    Attributes:
        field: what it is.
        sentence: line of the input, from 0; None for a feature.
        number: the hypothesis' row, the reference's number or the feature's column; 0 for input.
        text: all of it.
    """

    field: Field
    sentence: int | None
    number: int
    text: str


def hits(
    run: Run, pattern: re.Pattern[bytes], texts: Texts, fields: Sequence[Field]
) -> Iterator[Hit]:
    """Every text in which the pattern occurs: features first, then sentence by sentence.

    Hypotheses are those of all iterations, each once. Bytes are searched, whatever they encode.

    Raises:
        DataError: the texts are not this run's.
    """
    texts.check(run.n_sentences)
    if "feature" in fields:
        for column, name in enumerate(run.space.names or run.names):
            if pattern.search(name.encode("utf-8", "surrogateescape")):
                yield Hit("feature", None, column, name)
    for sentence in range(run.n_sentences):
        for field, strings in (
            ("source", texts.source[sentence : sentence + 1]),
            ("reference", [lines[sentence] for lines in texts.references]),
            ("hypothesis", _hypotheses(run, sentence) if "hypothesis" in fields else ()),
        ):
            if field not in fields:
                continue
            for number, string in enumerate(strings):
                if pattern.search(string):
                    yield Hit(field, sentence, number, decode_text(string))  # type: ignore[arg-type]


def _hypotheses(run: Run, sentence: int) -> Sequence[bytes]:
    """Distinct texts: hypotheses of other features may have the same."""
    return list(dict.fromkeys(run.store.hypotheses(sentence)))
