"""GLEU against counts with dictionaries, and against the published examples of NLTK."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from mosesplug.metrics import metric
from mosesplug.testing.metrics import as_text

GUIDE = (
    "It is a guide to action which ensures that the military always obeys the commands of the party"
)
GUIDE_REFERENCES = (
    "It is a guide to action that ensures that the military will forever heed Party commands",
    "It is the guiding principle which guarantees the military forces always being under the "
    "command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
)
READ = "he read the book because he was interested in world history"
READ_REFERENCE = "he was interested in world history because he read the book"


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], settings: str = ""
) -> float:
    """Return the corpus score; ``references[k][line]``."""
    scorer = metric("GLEU", settings)
    prepared = scorer.prepare([[line.encode() for line in lines] for lines in references])
    texts = as_text([(row, text.encode()) for row, text in enumerate(hypotheses)])
    return float(scorer.score(texts.statistics(scorer, prepared).sum(axis=0)))


def ngrams(text: str) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(
        tuple(words[start : start + order])
        for order in range(1, 5)
        for start in range(len(words) - order + 1)
    )


def by_dictionaries(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    matches = totals = 0
    for number, text in enumerate(hypotheses):
        own, pairs = ngrams(text), []
        for lines in references:
            theirs = ngrams(lines[number])
            if total := max(own.total(), theirs.total()):
                pairs.append(((own & theirs).total(), total))
        if pairs:
            match, total = max(pairs, key=lambda pair: pair[0] / pair[1])
            matches, totals = matches + match, totals + total
    return matches / totals if totals else 0.0


def test_published_examples() -> None:
    """The docstrings of ``nltk.translate.gleu_score``."""
    references = [[first, READ_REFERENCE] for first in GUIDE_REFERENCES]
    assert score([GUIDE, READ], references) == pytest.approx(0.5673, abs=1e-4)
    singles = score([GUIDE], [GUIDE_REFERENCES[:1]]), score([READ], [[READ_REFERENCE]])
    assert sum(singles) / 2 == pytest.approx(0.6144, abs=1e-4)


@pytest.mark.parametrize("n_references", [1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_score_is_that_of_dictionaries(seed: int, n_references: int) -> None:
    rng = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(rng.choice(list("aabcd"), rng.integers(0, 9)))

    hypotheses = [text() for _ in range(6)]
    references = [[text() for _ in range(6)] for _ in range(n_references)]
    assert score(hypotheses, references) == pytest.approx(by_dictionaries(hypotheses, references))


def test_case_and_tokens() -> None:
    assert score(["the Cat"], [["The cat"]], "case:false") == 1.0
    assert score(["a cat."], [["a cat ."]], "tokenize:13a") == 1.0
    assert score([""], [[""]]) == 0.0
