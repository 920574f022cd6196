"""Scores of finished translations, confidence intervals, and comparisons of systems."""
