"""Ranking beyond PRO's sampled pairs, several metrics, and summaries of sparse features."""
