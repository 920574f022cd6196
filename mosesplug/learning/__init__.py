"""Learn weights from n-best lists, stores or search graphs, without a decoder."""
