"""Exact line search on n-best lists: envelopes and the score along a line (Och 2003)."""
