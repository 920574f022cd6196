"""Search graphs as flat arrays, and what is computed on them."""

from mosesplug.forest.envelope import Envelope, envelope
from mosesplug.forest.hypergraph import Hypergraph
from mosesplug.forest.viterbi import Derivation, viterbi

__all__ = ["Derivation", "Envelope", "Hypergraph", "envelope", "viterbi"]
