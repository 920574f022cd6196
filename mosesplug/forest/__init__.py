"""Algorithms on hypergraphs: search, sums, n-grams, oracles and line search."""

from mosesplug.forest.k_best import Derivations, k_best
from mosesplug.forest.line_search.envelope import Envelope, envelope
from mosesplug.forest.viterbi import Derivation, viterbi
from mosesplug.hypergraph import Hypergraph

__all__ = ["Derivation", "Derivations", "Envelope", "Hypergraph", "envelope", "k_best", "viterbi"]
