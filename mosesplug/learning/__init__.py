"""From existing n-best lists or search graphs to weights, without a decoder."""
