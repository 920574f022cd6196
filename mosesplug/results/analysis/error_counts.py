"""Records of search and model errors: counts, sentences, and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import Annotated, ClassVar, Literal

from mosesplug.errors import count_noun
from mosesplug.results.render.record import Count, Share, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block

ErrorKind = Literal[
    "no error",
    "search error",
    "pruned",
    "ranked low",
    "below the list",
    "unreachable",
    "not in the graph",
]
"""The errors of a sentence, by whether and where the search found its reference."""

_MEANINGS: Mapping[ErrorKind, str] = {
    "no error": "the 1-best is a reference",
    "search error": "a reference scores higher than the 1-best, but the search lost it",
    "pruned": "the search lost the references, which score lower than the 1-best",
    "ranked low": "the search kept a reference, and other translations score higher",
    "below the list": "a reference scores too low for the list",
    "unreachable": "no derivation of a reference was found",
    "not in the graph": "unreachable or pruned: a wider search tells which",
}

_MANY_SEARCH_ERRORS = 0.1
"""Share of the reachable references from which on the search deserves attention first."""

_LOW_REACH = 0.5


@dataclass(frozen=True)
class SentenceErrors:
    """The kind of error of a sentence, and the scores that tell it.

    Attributes:
        sentence: its id.
        rank: position of the first reference in the list, from 1; None if it is not there.
        reference_score: model score of the best derivation of a reference that is known.
        best_score: model score of the 1-best; None without translations.
        wider_gain: by how much the 1-best of the wider search scores higher; None without one.
    """

    sentence: Text
    kind: Annotated[ErrorKind, Shown(is_text=True)]
    rank: Annotated[int | None, Shown()]
    reference_score: Annotated[float | None, Shown(".6g", "score of reference")]
    best_score: Annotated[float | None, Shown(".6g", "score of 1-best")]
    wider_gain: Annotated[float | None, Shown(".4g", "gain of wider search")] = None


@dataclass(frozen=True)
class ErrorCount:
    """The number of sentences of one kind, and their share of all."""

    kind: Annotated[ErrorKind, Shown(is_text=True)]
    sentences: Count
    share: Share
    meaning: Text


@dataclass(frozen=True)
class SearchErrors:
    """Errors of the search and of the model, counted and sentence by sentence.

    Attributes:
        rows: the sentences, in their order.
        tells_reach: whether forced decoding or a wider search shows which references were lost.
        shows_sentences: whether blocks show the sentences; the JSON document has them always.
    """

    JSON_KEYS: ClassVar = "sentences reachable counts advice search_gains? rows"

    rows: tuple[SentenceErrors, ...]
    tells_reach: bool
    shows_sentences: bool = False

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.rows)

    @property
    def reachable(self) -> int:
        """Sentences with a known derivation of a reference."""
        return sum(row.reference_score is not None for row in self.rows)

    @property
    def search_gains(self) -> int | None:
        """Sentences in which the wider search finds a higher score; None without one."""
        gains = [row.wider_gain for row in self.rows if row.wider_gain is not None]
        return sum(gain > 0.0 for gain in gains) if gains else None

    @property
    def counts(self) -> tuple[ErrorCount, ...]:
        """The sentences of each kind that occurs or could occur."""
        numbers = Counter(row.kind for row in self.rows)
        total = max(len(self.rows), 1)
        return tuple(
            ErrorCount(kind, numbers[kind], numbers[kind] / total, meaning)
            for kind, meaning in _MEANINGS.items()
            if numbers[kind]
            or kind in ("no error", "ranked low")
            or (kind == "search error" and self.tells_reach)
        )

    @property
    def advice(self) -> str:
        """A paragraph that says which errors are frequent, and what reduces them."""
        return " ".join(_advise(self, Counter(row.kind for row in self.rows)))

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield a table of counts, the advice, and the sentences if they are to be shown."""
        yield tabulate(ErrorCount, self.counts)
        if self.search_gains is not None:
            sentences = count_noun(self.sentences, "sentence")
            yield (f"the wider search finds a higher score in {self.search_gains} of {sentences}")
        yield fill(self.advice, medium.width) if medium.is_text else self.advice
        if self.shows_sentences:
            yield tabulate(SentenceErrors, self.rows)


def _advise(errors: SearchErrors, numbers: Mapping[ErrorKind, int]) -> Iterator[str]:
    """Yield the sentences of the advice."""
    total, reachable = errors.sentences, errors.reachable
    if reachable == 0:
        if errors.tells_reach:
            yield (
                "The system yields no reference: no weights and no beam help. Look at the phrase"
                " table, its limit of translations a phrase, and the distortion limit."
            )
        else:
            yield (
                "No search graph has a derivation of a reference: compare with graphs of a wider"
                " search."
            )
        return
    lost = numbers["search error"]
    ranked = sum(numbers[kind] for kind in ("pruned", "ranked low", "below the list"))
    yield f"The system is known to yield a reference of {count_noun(reachable, 'sentence')}:"
    yield f"in {numbers['no error']}, it is the 1-best;"
    if errors.tells_reach:
        yield f"in {lost}, it scores higher than the 1-best, but the search lost it;"
    yield f"in {ranked}, it scores lower."
    gains = errors.search_gains
    if lost >= _MANY_SEARCH_ERRORS * reachable or (gains or 0) >= _MANY_SEARCH_ERRORS * total:
        yield (
            "Search errors are frequent: raise the beam, the stack or the limit of cube pruning"
            " before tuning, since weights that are tuned on such lists make up for the search."
        )
    elif ranked and errors.tells_reach:
        yield (
            "Model errors prevail: a larger beam will not help these sentences. Tune the weights,"
            " or add features that distinguish the references from the 1-best."
        )
    if not errors.tells_reach:
        yield (
            "Search errors do not show in these graphs alone: compare them with graphs of a wider"
            " search, or tune with forced decoding."
        )
    elif reachable < _LOW_REACH * total:
        yield (
            f"For {total - reachable} of {total} sentences, no derivation of a reference was found:"
            " a larger phrase table, more translations a phrase or a higher distortion limit may"
            " yield one, or a larger beam, since the search for references prunes, too."
        )
