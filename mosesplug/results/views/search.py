"""Search source sentences, references, hypotheses and feature names for a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from mosesplug.results.render.record import Count, Shown, Text
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text

SearchField = Literal["source", "reference", "hypothesis", "feature"]
FIELDS: tuple[SearchField, ...] = ("source", "reference", "hypothesis", "feature")


@dataclass(frozen=True)
class SearchHit:
    """A text in which a pattern occurs.

    Attributes:
        sentence: the sentence id; None for a feature.
        number: row of the hypothesis, number of the reference or column of the feature; 0 for a
            source sentence.
        name: the sentence as the lists name it; ``-`` for a feature.
    """

    JSON_KEYS: ClassVar = "field sentence number text"

    name: Annotated[str, Shown(label="sentence", is_text=True)]
    field: Annotated[SearchField, Shown(is_text=True)]
    number: Count
    text: Text
    sentence: int | None


def search_run(
    run: StoredRun,
    pattern: re.Pattern[bytes],
    text: ParallelText,
    fields: Sequence[SearchField],
) -> Iterator[SearchHit]:
    """Yield every text in which the pattern occurs: features first, then by sentence.

    Hypotheses are the distinct texts of all iterations. Bytes are searched, whatever the encoding.

    Raises:
        DataError: the text does not belong to the run.
    """
    text.check_length(run.n_sentences)
    if "feature" in fields:
        for column, name in enumerate(run.space.names or run.names):
            if pattern.search(name.encode("utf-8", "surrogateescape")):
                yield SearchHit("-", "feature", column, name, None)
    for sentence in range(run.n_sentences):
        texts: dict[SearchField, Sequence[bytes]] = {
            "source": text.source[sentence : sentence + 1],
            "reference": [lines[sentence] for lines in text.references],
        }
        if "hypothesis" in fields:
            # Hypotheses with different features may have the same text.
            texts["hypothesis"] = list(dict.fromkeys(run.store.hypotheses(sentence)))
        for field, strings in texts.items():
            if field not in fields:
                continue
            for number, string in enumerate(strings):
                if pattern.search(string):
                    name, shown = run.name_sentence(sentence), decode_text(string)
                    yield SearchHit(name, field, number, shown, sentence)
