"""Oracle derivations of search graphs by linear BLEU (``metrics.linear_bleu``).

As in Tromble et al. (2008), matches are not clipped. Given the states of ``ngrams.states``, the
gain of a derivation is then a sum over its edges, and the search for the best one is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY
from mosesplug.forest.ngrams.search import find_best_with_ngrams
from mosesplug.forest.ngrams.states import TextGraph
from mosesplug.forest.oracles.bleu import Oracle, OracleGraph, judge_derivation
from mosesplug.kernels import kernel
from mosesplug.metrics.linear_bleu import LinearBleu


def linear_oracle(graph: OracleGraph, gains: LinearBleu, *, beam: int | None = None) -> Oracle:
    """Return the derivation with the highest linear BLEU, exact without a beam.

    Args:
        graph: the graph of the sentence with its references.
        beam: number of partial derivations to keep per node; None keeps all that are needed.

    Raises:
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    usable = graph.scores > -np.inf
    scores = np.full(len(usable), -np.inf)
    scores[usable] = gains.word * _words(graph.text)[usable]
    values = np.concatenate([[0.0], gains.ngrams])[graph.states.depths]
    found = find_best_with_ngrams(graph.text, scores, graph.states, values, beam=beam)
    return judge_derivation(graph, found.edges)


@kernel
def _words(graph: TextGraph) -> NDArray[np.float64]:
    """Return each edge's number of own words, float64 ``[n_edges]``."""
    words = np.zeros(len(graph.tail_offsets) - 1)
    for edge in range(len(words)):
        for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
            word = graph.targets[place]
            words[edge] += word != -1 and word != BOUNDARY
    return words
