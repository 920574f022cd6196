"""One of two texts that are compared, as a metric sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mosesplug.tuning.text_signs.view import TextView

_FEW_TOKENS = 100


@dataclass(frozen=True)
class Side:
    """Lines of one text as a metric sees them.

    Attributes:
        name: how a message calls the text.
    """

    name: str
    lines: Sequence[bytes]
    view: TextView

    @cached_property
    def texts(self) -> list[str]:
        """The lines as they are."""
        return [line.decode("utf-8", "replace") for line in self.lines]

    @cached_property
    def normalized(self) -> list[str]:
        """The lines without what the metric takes away."""
        return [line.decode("utf-8", "replace") for line in self.view.normalize(self.lines)]

    @cached_property
    def words(self) -> list[bytes]:
        """Normalized and tokenized lines."""
        return self.view.tokenize(self.view.normalize(self.lines))

    @cached_property
    def bag(self) -> Counter[bytes]:
        """The words of all lines."""
        return Counter(token for line in self.words for token in line.split())

    @cached_property
    def is_short(self) -> bool:
        """Whether there are too few words for statistics."""
        # Some languages write no blanks between words.
        return sum(map(len, self.words)) < 5 * _FEW_TOKENS


def measure_overlap(outputs: Sequence[bytes], others: Sequence[Sequence[bytes]]) -> float:
    """Share of output tokens that the closest other text has in the same line."""
    total = same = 0
    for number, line in enumerate(outputs):
        tokens = Counter(line.split())
        total += tokens.total()
        lines = (lines[number] for lines in others if number < len(lines))
        same += max(((tokens & Counter(other.split())).total() for other in lines), default=0)
    return same / max(total, 1)
