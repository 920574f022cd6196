"""Experiments: systems, tuned on texts with seeds, tested and compared."""
