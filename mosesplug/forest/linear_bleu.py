"""Linear BLEU: corpus BLEU near given statistics, as a sum over words and n-grams.

A Taylor expansion of log BLEU tells what a sentence adds to a corpus of ``c`` words and ``m_n``
matching n-grams: each of its words ``-1 / c``, and each occurrence of an n-gram that its references
have ``1 / (4 m_n)`` (Tromble et al. 2008; survey, section 5.5.1, equation 52). Matches are not
clipped, as in Tromble et al., and so the gain of a derivation is a sum over its edges, given what
``ngram_states`` remembers, and the best one is found exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.bleu_oracle import Oracle, OracleGraph, judged
from mosesplug.forest.ngram_search import best_with_ngrams
from mosesplug.forest.ngram_states import TextGraph
from mosesplug.forest.reference_ngrams import BOUNDARY, ORDER
from mosesplug.kernels import kernel

__all__ = ["LinearBleu", "linear_bleu", "linear_oracle"]


@dataclass(frozen=True)
class LinearBleu:
    """What words and n-grams are worth.

    Attributes:
        word: each word of a translation.
        ngrams: float64 ``[4]``; each occurrence of an n-gram that the references have.
    """

    word: float
    ngrams: NDArray[np.float64]

    @classmethod
    def of_precisions(cls, precision: float, ratio: float) -> LinearBleu:
        """From the shape of typical statistics (Tromble et al. 2008, equation 6).

        Args:
            precision: of words, ``m_1 / c``.
            ratio: by which each precision is lower than that of n-grams one word shorter.

        The number of words does not matter for the best derivation, and is 1.
        """
        matches = precision * np.power(ratio, np.arange(ORDER, dtype=np.float64))
        return cls(-1.0, 1.0 / (ORDER * matches))


def linear_bleu(totals: NDArray[np.float64]) -> LinearBleu:
    """Linear BLEU near the statistics of a corpus (survey, equation 52).

    Args:
        totals: float64 ``[9]``, statistics of ``metrics.Bleu``.

    Raises:
        DataError: there is no match of some length.
    """
    matches = totals[0:-1:2]
    if not (matches > 0.0).all():
        raise DataError(
            "linear BLEU needs matches of all lengths, and no n-gram of "
            f"{int(np.argmin(matches)) + 1} words matches a reference"
        )
    return LinearBleu(-1.0 / float(totals[1]), 1.0 / (ORDER * matches))


def linear_oracle(
    graph: OracleGraph, gains: LinearBleu, *, model: float = 0.0, beam: int | None = None
) -> Oracle:
    """The derivation of the highest linear BLEU, exactly unless there is a beam.

    Args:
        graph: of the sentence, with its references.
        gains: what words and n-grams are worth.
        model: what a unit of the model's score is worth: 0 for the oracle, more for a hope,
            and with negative gains a fear.
        beam: partial derivations that are kept of a node; None for all that matter.

    Raises:
        ValueError: ``beam`` is not positive.
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    usable = graph.scores > -np.inf
    scores = np.full(len(usable), -np.inf)
    scores[usable] = model * graph.scores[usable] + gains.word * _words(graph.text)[usable]
    values = np.concatenate([[0.0], gains.ngrams])[graph.states.depths]
    found = best_with_ngrams(graph.text, scores, graph.states, values, beam=beam)
    return judged(graph, found.edges)


@kernel
def _words(graph: TextGraph) -> NDArray[np.float64]:
    """How many words of its own each edge has, float64 ``[n_edges]``."""
    words = np.zeros(len(graph.tail_offsets) - 1)
    for edge in range(len(words)):
        for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
            word = graph.targets[place]
            words[edge] += word != -1 and word != BOUNDARY
    return words
