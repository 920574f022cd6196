"""Exact line search on the corpus metric: envelopes, intervals and search spaces."""
