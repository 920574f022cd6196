"""Experiments: systems tuned on several texts with several seeds, tested and compared."""
