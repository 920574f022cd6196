"""A conformance suite for stores of n-best lists, and toy data for it."""
