"""Several runs of one tuning with different seeds, and their summary."""
