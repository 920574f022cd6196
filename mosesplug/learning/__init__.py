"""Learn weights from existing n-best lists, stores or search graphs, without a decoder."""
