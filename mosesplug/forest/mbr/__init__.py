"""Minimum Bayes risk and consensus decoding of search graphs and n-best lists."""
