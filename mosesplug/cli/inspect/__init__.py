"""Commands that show lists, weights, scores and runs."""
